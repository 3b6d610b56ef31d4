"""Measure speed, memory and start-up beside plain JAX and, on request, beside other libraries.

    python -m tests.benchmarks --out out/bench [--only W3 density] [--peers .venv/bin/python ...] [--quick]

All of it takes the better part of an hour on two cores, which should have nothing else to do.
"""

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from tests.benchmarks import report, sections
from tests.benchmarks.plan import Plan, quick
from tests.benchmarks.timing import say


def arguments(words: Sequence[str] | None) -> argparse.Namespace:
    summary = str(__doc__).splitlines()[0]
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description=summary)
    parser.add_argument("--out", type=Path, default=Path("out/bench"), help="folder to write to")
    parser.add_argument("--only", nargs="+", choices=sections.SECTIONS, default=[*sections.SECTIONS])
    parser.add_argument(
        "--peers", nargs="+", default=[], metavar="PYTHON", help="where to look for other libraries"
    )
    parser.add_argument("--rounds", type=int, help="of each interleaved run, but for sweeps")
    parser.add_argument("--quick", action="store_true", help="tiny sizes: only shows that it runs")
    return parser.parse_args(words)


def run(plan: Plan, names: Sequence[str], folder: Path) -> None:
    """Run sections and write after each table, so that an interrupted run keeps what it has."""
    tables = []
    for name in names:
        for table in sections.SECTIONS[name](plan):
            say(report.as_markdown(table))
            tables.append(table)
            report.write(folder, tables)
    from tests.benchmarks import pictures  # matplotlib is slow to import

    pictures.write(folder, tables)
    say(f"written to {folder}")


def main(words: Sequence[str] | None = None) -> None:
    """The command line."""
    given = arguments(words)
    peers = tuple(given.peers)
    plan = quick(peers) if given.quick else Plan(peers=peers)
    if given.rounds is not None:
        plan = replace(plan, rounds=given.rounds)
    run(plan, given.only, given.out)


if __name__ == "__main__":
    main()
