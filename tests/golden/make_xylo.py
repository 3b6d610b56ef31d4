"""Make `xylo.npz`: random small networks in XyloSim, with all of its states and spikes.

    python make_xylo.py                            # where rockpool and xylosim are installed
    python make_xylo.py /tmp/xylo.npz 1000 7       # more of them, of another seed, elsewhere
    python make_xylo.py trained.npz given.npz 1    # the first of the networks of a file with their inputs

Made with xylosim 0.1.3, rockpool 3.1.0 and numpy 2.4.6 in Python 3.11. A quarter of the networks is feed-forward, one
has recurrent weights of one synapse, one those of two, and one has weights, shifts and inputs so large that all states
saturate. `<number>/<name>` are the arguments of `XyloSim.from_specification`, the input `x`, and what it recorded.
`tests/integers/test_xylo.py` compares them, and any such file with `python -m tests.integers.test_xylo FILE`.
`xylo_trained.npz` is a trained network with an utterance, which `python -m tests.benchmarks.trained.fixed_point
--specification given.npz` writes.
"""

import sys
import types
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import rockpool

# The packages of rockpool that hold the simulator import the driver of the chip too, which it does not use.
for name in ("", ".syns61201", ".syns61300"):
    package = types.ModuleType(f"rockpool.devices.xylo{name}")
    package.__path__ = [str(Path(rockpool.__file__).parent / f"devices/xylo{name.replace('.', '/')}")]
    sys.modules[package.__name__] = package

from rockpool.devices.xylo.syns61201.xylo_sim import XyloSim  # noqa: E402

KINDS = ("feed_forward", "one_synapse", "two_synapses", "saturating")
# inputs, hidden neurons, readouts; few, so that few programs are compiled.
SHAPES = ((5, 14, 3), (16, 21, 8), (1, 2, 1))
STEPS = 50
RECORDED = {"Vmem": "v", "Isyn": "i", "Isyn2": "i2", "Spikes": "s", "Vmem_out": "v_out", "Isyn_out": "i_out"}


def specification(rng: np.random.Generator, kind: str, shape: tuple[int, int, int]) -> dict[str, np.ndarray]:
    """The arguments of a random network, and its input `x`."""
    n_in, n, n_out = shape
    loud = kind == "saturating"
    size = 128 if loud else 40
    weights_rec = rng.integers(-size, size, (n, n, 2)) * (rng.random((n, n, 2)) < 0.2)
    weights_in = rng.integers(-size, size, (n_in, n, 2))
    if kind in ("feed_forward", "one_synapse"):
        weights_in[:, :, 1] = weights_rec[:, :, 1] = 0
    shifts = rng.integers(0, 6 if loud else 2, 3)
    return {
        "weights_in": weights_in,
        "weights_rec": weights_rec * (kind != "feed_forward"),
        "weights_out": rng.integers(-size, size, (n, n_out)),
        "threshold": rng.integers(1, 32768, n) if loud else rng.integers(50, 800, n),
        "threshold_out": rng.integers(1, 2000, n_out),
        "dash_mem": rng.integers(0, 8, n),
        "dash_mem_out": rng.integers(0, 8, n_out),
        "dash_syn": rng.integers(1, 8, n),
        "dash_syn_2": rng.integers(1, 8, n),
        "dash_syn_out": rng.integers(1, 8, n_out),
        "bias": rng.integers(-100, 100, n) * (rng.random(n) < 0.3),
        "bias_out": rng.integers(-100, 100, n_out) * (rng.random(n_out) < 0.3),
        "weight_shift_in": shifts[0],
        "weight_shift_rec": shifts[1],
        "weight_shift_out": shifts[2],
        "x": rng.poisson(2.0 if loud else 0.2, (STEPS, n_in)).clip(0, 15),
    }


def recorded(given: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The states and spikes of a network in XyloSim, ``[time, neurons]``."""
    chosen = {name: value for name, value in given.items() if name != "x"}
    plain = {name: int(value) if np.ndim(value) == 0 else value for name, value in chosen.items()}
    spikes, _, record = XyloSim.from_specification(**plain).evolve(given["x"], record=True)
    return {"s_out": spikes} | {name: record[key] for key, name in RECORDED.items()}


def given(count: int, seed: int) -> Iterator[dict[str, np.ndarray]]:
    """Random networks."""
    for number in range(count):
        rng = np.random.default_rng((seed, number))
        yield specification(rng, KINDS[number % 4], SHAPES[number // 4 % 3])


def stored(path: str, count: int) -> Iterator[dict[str, np.ndarray]]:
    """The first networks of a file."""
    held = np.load(path)
    names = [name.split("/", 1)[1] for name in held if name.startswith("0/")]
    for number in range(count):
        yield {name: held[f"{number}/{name}"] for name in names}


def main() -> None:
    """Write the networks to a file."""
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).with_name("xylo.npz")
    first, last = sys.argv[2:] or ("12", "2026")
    networks = given(int(first), int(last)) if first.isdigit() else stored(first, int(last))
    saved = {}
    for number, network in enumerate(networks):
        for name, values in (network | recorded(network)).items():
            values = np.asarray(values)
            saved[f"{number}/{name}"] = values.astype(np.min_scalar_type(-int(abs(values).max()) - 1))
    np.savez_compressed(path, **saved)


if __name__ == "__main__":
    main()
