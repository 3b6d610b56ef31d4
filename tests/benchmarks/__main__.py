"""Measure speed, memory and start-up against plain JAX and, on request, other libraries.

    python -m tests.benchmarks --out out/bench [--only W3 density] [--peers .venv/bin/python ...] [--quick]
    python -m tests.benchmarks --compare [--only W3 | --results out/bench/results.json]
    python -m tests.benchmarks --keep [--only W3 | --results out/bench/results.json]

Every program has a process of its own. All of it takes more than an hour on two cores, which should have nothing else
to do. `--compare` exits with 1 if a ratio lost more than 10 % of what `expected/` keeps, and with 2 if there is nothing
to compare with.
"""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from tests.benchmarks import compare, report, sections
from tests.benchmarks.plan import Plan, quick
from tests.benchmarks.timing import say


def arguments(words: Sequence[str] | None) -> argparse.Namespace:
    summary = str(__doc__).splitlines()[0]
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description=summary)
    parser.add_argument("--out", type=Path, default=Path("out/bench"), help="folder to write to")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--only", nargs="+", choices=sections.SECTIONS, help="sections, by default all")
    which.add_argument("--results", type=Path, help="of an earlier run, instead of measuring")
    parser.add_argument(
        "--peers", nargs="+", default=[], metavar="PYTHON", help="where to look for other libraries"
    )
    parser.add_argument("--rounds", type=int, help="of each interleaved run, but for sweeps")
    parser.add_argument("--quick", action="store_true", help="tiny sizes: only shows that it runs")
    then = parser.add_mutually_exclusive_group()
    then.add_argument("--compare", action="store_true", help="with the ratios that are kept, by default all")
    then.add_argument("--keep", action="store_true", help="the ratios, to compare with")
    given = parser.parse_args(words)
    if given.keep and given.quick:
        parser.error("--keep takes the full sizes: leave --quick out")
    if given.results and not (given.compare or given.keep):
        parser.error("--results is for --compare and --keep")
    return given


def run(plan: Plan, names: Sequence[str], folder: Path) -> compare.Results:
    """Run sections and write after each table, so that an interrupted run keeps what it has."""
    tables = []
    for name in names:
        for table in sections.SECTIONS[name](plan):
            say(report.as_markdown(table))
            tables.append(table._replace(section=name))
            report.write(folder, tables)
    from tests.benchmarks import pictures  # matplotlib is slow to import

    pictures.write(folder, tables)
    say(f"written to {folder}")
    return report.content(tables)


def compared(plan: Plan, given: argparse.Namespace) -> int:
    """The exit status. What seems lost is measured once more, and is lost if it is so again."""
    earlier = compare.read_results(given.results) if given.results else None
    kept = compare.read_kept(earlier["machine"] if earlier else report.machine())
    names = given.only or [name for name in sections.SECTIONS if name in kept]
    results = earlier or run(plan, names, given.out)
    found = compare.rows(results, kept)
    lost = list(dict.fromkeys(row.cell.section for row in found if row.is_lost))
    if lost and not earlier:
        say(f"measured again: {', '.join(lost)}")
        again = run(plan, lost, given.out / "again")
        found = compare.better(found, compare.rows(again, kept))
    say("\n".join([*compare.other_facts(results, kept), "", compare.as_markdown(found)]))
    return int(any(row.is_lost or row.is_missing for row in found))


def follow(given: argparse.Namespace) -> int:
    """Run the command line; returns the exit status."""
    peers = tuple(given.peers)
    plan = quick(peers) if given.quick else Plan(peers=peers)
    if given.rounds is not None:
        plan = replace(plan, rounds=given.rounds)
    if given.compare:
        return compared(plan, given)
    results = compare.read_results(given.results) if given.results else None
    results = results or run(plan, given.only or [*sections.SECTIONS], given.out)
    if given.keep:
        say(f"kept in {compare.keep(results)}")
    return 0


def main(words: Sequence[str] | None = None) -> int:
    """The command line; returns the exit status."""
    given = arguments(words)
    try:
        return follow(given)
    except compare.Refusal as error:
        sys.stderr.write(f"{error}\n")
        return 2


if __name__ == "__main__":
    sys.exit(main())
