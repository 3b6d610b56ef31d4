"""The statistics by which implementations of the cortical microcircuit are compared, beside the spread of NEST's seeds.

    python -m tests.benchmarks.simulators.reference --nest build/nest [--scale 0.1] [--seconds 5] [--seeds 10]

As in ``PyNEST/reference_data`` of github.com/INM-6/microcircuit-PD14-model: the distributions over neurons of rates and
of the variation of intervals, and over pairs of up to 250 neurons of the correlation of counts in 2 ms, by population;
and the distances of Kolmogorov and Smirnov between such distributions. What is published are figures of 900 s at full
scale, and no data, so that NEST's own seeds are the reference here.
"""

import argparse
import itertools
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from tests.benchmarks.simulators import circuits
from tests.benchmarks.simulators.__main__ import measured
from tests.benchmarks.simulators.circuits import Circuit, Run
from tests.benchmarks.timing import say

WARM_UP = 0.5  # s
_LEAST_SPIKES = 3  # of a neuron whose intervals vary
_PAIRED = 250  # neurons
_BIN = 2.0  # ms
NAMES = ("rates", "variation", "correlation")
Spikes = tuple[np.ndarray, np.ndarray]  # times in ms, and numbers of neurons
Statistics = dict[str, dict[str, np.ndarray]]  # by name and population


def statistics(circuit: Circuit, spikes: Spikes, seconds: float) -> Statistics:
    """The distributions of a run."""
    times, ids = spikes
    order = np.lexsort((times, ids))
    times, ids = times[order], ids[order]
    found: Statistics = {name: {} for name in NAMES}
    first, draw = 0, np.random.default_rng(12345)
    for name, size in circuit.sizes.items():
        ends = np.searchsorted(ids, np.arange(first, first + size + 1))
        trains = [times[start:end] for start, end in itertools.pairwise(ends)]
        found["rates"][name] = np.diff(ends) / seconds
        gaps = [np.diff(train) for train in trains if len(train) >= _LEAST_SPIKES]
        found["variation"][name] = np.array([np.std(each) / np.mean(each) for each in gaps])
        chosen = draw.choice(size, min(size, _PAIRED), replace=False)
        found["correlation"][name] = _correlations([trains[k] for k in chosen], seconds)
        first += size
    return found


def _correlations(trains: Sequence[np.ndarray], seconds: float) -> np.ndarray:
    """Of all pairs of neurons that spike."""
    edges = np.linspace(0, 1000 * seconds, round(1000 * seconds / _BIN) + 1)
    counts = np.array([np.histogram(train, edges)[0] for train in trains if len(train)])
    if len(counts) < 2:
        return np.zeros(0)
    return np.corrcoef(counts)[np.triu_indices(len(counts), 1)]


def distances(pairs: Sequence[tuple[Statistics, Statistics]]) -> dict[tuple[str, str], np.ndarray]:
    """The distance between the distributions of each pair of runs, by statistic and population."""
    return {
        (name, population): np.array(
            [_distance(one[name][population], other[name][population]) for one, other in pairs]
        )
        for name in NAMES
        for population in pairs[0][0][name]
    }


def _distance(one: np.ndarray, other: np.ndarray) -> float:
    """The largest difference of the two cumulative distributions."""
    shares = [
        np.searchsorted(np.sort(own), np.concatenate([one, other]), "right") / max(len(own), 1)
        for own in (one, other)
    ]
    return float(np.max(np.abs(shares[0] - shares[1]), initial=0.0))


def as_markdown(ours: Sequence[Statistics], theirs: Sequence[Statistics]) -> str:
    """Mean distances, and the largest ones, of NEST's seeds among each other and of ours to them."""
    among = distances(list(itertools.combinations(theirs, 2)))
    beside = distances(list(itertools.product(ours, theirs)))
    lines = ["| | | NEST to NEST | snnjax to NEST |", "| --- | --- | ---: | ---: |"]
    for (name, population), own in among.items():
        other = beside[name, population]
        texts = (f"{each.mean():.3f} ({each.max():.3f})" for each in (own, other))
        lines.append(f"| {name} | {population} | {' | '.join(texts)} |")
    return "\n".join(lines)


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m tests.benchmarks.simulators.reference", description=str(__doc__).splitlines()[0]
    )
    parser.add_argument("--nest", default="build/nest", help="its environment")
    parser.add_argument("--snnjax", default=".venv", help="likewise")
    parser.add_argument("--scale", type=float, default=0.1)
    parser.add_argument("--seconds", type=float, default=5.0, help="of each seed")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--out", type=Path, default=Path("out/simulators"))
    given = parser.parse_args(words)
    circuit = circuits.microcircuit(given.scale)
    found: dict[str, list[Statistics]] = {"snnjax": [], "NEST": []}
    for seed in range(1, given.seeds + 1):
        run = Run(circuits.microcircuit, given.scale, given.seconds, WARM_UP, seed, spikes=True)
        for name, folder in (("snnjax", given.snnjax), ("NEST", given.nest)):
            took = measured(name, run, f"{folder}/bin/python")
            assert took.spikes is not None
            found[name].append(statistics(circuit, took.spikes, given.seconds))
            say(f"seed {seed}, {name}: {took.cpu:.2f} s CPU a second")
    text = as_markdown(found["snnjax"], found["NEST"])
    given.out.mkdir(parents=True, exist_ok=True)
    (given.out / "reference.md").write_text(text + "\n", encoding="utf-8")
    say(text)


if __name__ == "__main__":
    main()
