"""Xylo, bit for bit: stored traces of its simulator, and the specification that it reads.

``python -m tests.integers.test_xylo FILE`` compares any file of `tests/golden/make_xylo.py`.
"""

import sys
from pathlib import Path

import numpy as np
import pytest

from snnjax import fixed_point

GOLDEN = Path(__file__).parents[1] / "golden"
ARGUMENTS = 15  # of a specification


def networks(path):
    """The networks of a file: the arguments, inputs and states of each."""
    found: dict[str, dict[str, np.ndarray]] = {}
    for key, values in np.load(path).items():
        number, name = key.split("/", 1)
        found.setdefault(number, {})[name] = values
    return found.values()


def differing(own):
    """How many values of a network differ from those of the simulator, and how many there are."""
    names = [name for name in own if name not in ("x", "s_out", "s", "v", "i", "i2", "v_out", "i_out")]
    assert len(names) == ARGUMENTS
    whole = fixed_point.from_xylo({name: own[name] for name in names})
    record = ("spikes", "membranes", "currents")
    found, _ = fixed_point.run(whole, own["x"][:, None].astype(np.int32), record=record)
    pairs = [(found.output, own["s_out"]), (found.spikes["hidden"], own["s"])]
    pairs += [(found.membranes["hidden"], own["v"]), (found.membranes["readout"], own["v_out"])]
    pairs += [(found.currents["hidden"][:, place], own[name]) for place, name in enumerate(("i", "i2"))]
    pairs += [(found.currents["readout"][:, 0], own["i_out"])]
    wrong = sum(int(np.sum(np.asarray(ours)[:, 0] != theirs)) for ours, theirs in pairs)
    return wrong, sum(theirs.size for _, theirs in pairs)


@pytest.mark.parametrize(("name", "count"), [("xylo", 12), ("xylo_trained", 1)])
def test_all_values_are_those_of_the_simulator(name, count):
    found = [differing(own) for own in networks(GOLDEN / f"{name}.npz")]
    assert len(found) == count
    assert sum(wrong for wrong, _ in found) == 0


if __name__ == "__main__":
    counts = [differing(own) for own in networks(sys.argv[1])]
    wrong, total = (sum(each) for each in zip(*counts, strict=True))
    print(f"{len(counts)} networks: {wrong} of {total} values differ")
