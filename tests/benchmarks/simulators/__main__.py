"""Measure circuits in NEST, Brian2 and snnjax, each in processes of its own with its own interpreter.

    python -m tests.benchmarks.simulators --nest build/nest --brian2 build/brian2 [--only CUBA] [--rounds 3]

All rounds take about ten minutes on two idle cores, most of them in NEST and in compiling Brian2's programs. The table
has medians of the rounds: CPU time and wall time of a simulated second, and those of building.
"""

import argparse
import functools
import json
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.benchmarks import process, report
from tests.benchmarks.process import Held
from tests.benchmarks.simulators import circuits, in_brian2, in_nest, in_snnjax
from tests.benchmarks.simulators.circuits import Measured, Run
from tests.benchmarks.timing import say

MEASURES = {"snnjax": in_snnjax.measure, "Brian2": in_brian2.measure, "NEST": in_nest.measure}
ALL = tuple(MEASURES)
OWN = ALL[:1]
# By name: the run, who does it, and whether in every round. Brian2 has no row of the column, whose synapses it would
# read as arrays; the largest ones run once, as they take long.
Row = tuple[Run, tuple[str, ...], bool]
ROWS: dict[str, Row] = {
    "COBA 4,000": (Run(circuits.coba, 4000, 2.0), ALL, True),
    "CUBA 4,000": (Run(circuits.cuba, 4000, 5.0), ALL, True),
    "voltage jumps 4,000": (Run(circuits.pulses, 4000, 5.0), ALL, True),
    "Brunel 12,500": (Run(circuits.brunel, 12_500, 1.0), ALL, True),
    "microcircuit 0.1": (Run(circuits.microcircuit, 0.1, 2.0), ("snnjax", "NEST"), True),
    "microcircuit 0.3": (Run(circuits.microcircuit, 0.3, 1.0), ("snnjax", "NEST"), False),
    "microcircuit 1.0, one thread": (Run(circuits.microcircuit, 1.0, 4.0), OWN, False),
    "microcircuit 1.0, two threads": (Run(circuits.microcircuit, 1.0, 4.0, threads=2), OWN, False),
}
SMALL: dict[str, Row] = {
    "COBA 200": (Run(circuits.coba, 200, 0.1, 0.1), ALL, True),
    "microcircuit 0.01": (Run(circuits.microcircuit, 0.01, 0.1, 0.1), ("snnjax", "NEST"), True),
}


def measured(name: str, run: Run, python: str) -> Measured:
    """A run in a new process of an interpreter."""
    with process.opened(python) as own:
        own.send(Held.ask, functools.partial(circuits.pinned, MEASURES[name], run))
        return own.answer()


def rounds_of(rows: Mapping[str, Row], pythons: Mapping[str, str], rounds: int) -> dict[str, dict[str, list]]:
    """By row and simulator, the runs of each round, which have seeds of their own."""
    found: dict[str, dict[str, list]] = {}
    for k in range(rounds):
        for row, (run, simulators, is_repeated) in rows.items():
            for name in simulators:
                if name in pythons and (k == 0 or is_repeated):
                    took = measured(name, run._replace(seed=k + 1), pythons[name])
                    found.setdefault(row, {}).setdefault(name, []).append(took)
                    say(f"{row}, {name}: {took.cpu:.3f} s CPU, {took.wall:.3f} s wall a second")
    return found


def as_markdown(found: Mapping[str, Mapping[str, Sequence[Measured]]]) -> str:
    """The medians, and how many times the CPU time is that of snnjax."""
    lines = [
        "| network | | CPU a second | wall a second | CPU, times snnjax | building, CPU | building, wall | Hz |",
        "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for row, by_name in found.items():
        own = statistics.median(each.cpu for each in by_name["snnjax"]) if "snnjax" in by_name else None
        for name, runs in by_name.items():
            cpu, wall, build_cpu, build_wall = (
                statistics.median(getattr(each, field) for each in runs)
                for field in ("cpu", "wall", "build_cpu", "build_wall")
            )
            ratio = "" if own is None or name == "snnjax" else f"{cpu / own:.1f}"
            rate = statistics.median(statistics.mean(each.rates.values()) for each in runs)
            times = f"{cpu:.3f} s | {wall:.3f} s | {ratio} | {build_cpu:.2f} s | {build_wall:.2f} s"
            lines.append(f"| {row} | {name} | {times} | {rate:.1f} |")
    return "\n".join(lines)


def as_json(found: Mapping[str, Mapping[str, Sequence[Measured]]]) -> dict[str, Any]:
    """Every round."""
    runs = {
        row: {name: [each._replace(spikes=None)._asdict() for each in own] for name, own in by_name.items()}
        for row, by_name in found.items()
    }
    return {"machine": report.machine(), "runs": runs}


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m tests.benchmarks.simulators", description=str(__doc__).splitlines()[0]
    )
    parser.add_argument("--out", type=Path, default=Path("out/simulators"), help="folder to write to")
    parser.add_argument("--only", nargs="+", help="rows whose names begin so, by default all")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="tiny sizes: only shows that it runs")
    parser.add_argument("--snnjax", default=".venv", help="environment, like the following")
    parser.add_argument("--brian2", help="left out without one")
    parser.add_argument("--nest", help="likewise")
    given = parser.parse_args(words)
    folders = {"snnjax": given.snnjax, "Brian2": given.brian2, "NEST": given.nest}
    pythons = {name: f"{folder}/bin/python" for name, folder in folders.items() if folder}
    rows = SMALL if given.quick else ROWS
    if given.only:
        rows = {name: row for name, row in rows.items() if name.startswith(tuple(given.only))}
    found = rounds_of(rows, pythons, given.rounds)
    given.out.mkdir(parents=True, exist_ok=True)
    text = as_markdown(found)
    (given.out / "simulators.md").write_text(text + "\n", encoding="utf-8")
    (given.out / "simulators.json").write_text(json.dumps(as_json(found), indent=1), encoding="utf-8")
    say(f"{text}\nwritten to {given.out}")


if __name__ == "__main__":
    main()
