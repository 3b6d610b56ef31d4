"""A guard: compare the ratios of a run with those stored in `expected/`, in a file for each instruction set.

Ratios are those of medians to the fastest plain JAX of the same interleaved run, so that a busier or slower machine of
the same kind changes them little. Files hold, by section, what they were measured with and the ratios by title, column
and alternative.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from tests.benchmarks.report import KERNELS, OWN

EXPECTED = Path(__file__).with_name("expected")
# A ratio lower than the stored one by this much is a loss.
LOSS = 0.1
# Kept ratios are rounded, so that a new run changes few digits that mean nothing.
DIGITS = 3

# What `report.content` makes and `results.json` holds; and what a file of `expected/` holds.
Results = Mapping[str, Any]
Kept = dict[str, Any]


class Refusal(ValueError):
    """The requested comparison is impossible here; the text says what to do."""


def refuse(argument: str, expected: str, actual: str, hint: str) -> NoReturn:
    raise Refusal(f"benchmarks: `{argument}` must {expected}, got {actual}. {hint}.")


class Cell(NamedTuple):
    """The place of a ratio."""

    section: str
    title: str
    column: str
    alternative: str


class Ratio(NamedTuple):
    """A measured one."""

    median: float
    quartiles: tuple[float, float]  # of the rounds


class Row(NamedTuple):
    """A ratio that is kept, measured, or both."""

    cell: Cell
    expected: float | None
    now: Ratio | None

    @property
    def change(self) -> float:
        """By how much it grew, as a share; 0 where one of the two is absent."""
        if self.expected is None or self.now is None:
            return 0.0
        return self.now.median / self.expected - 1

    @property
    def is_lost(self) -> bool:
        return self.change < -LOSS

    @property
    def is_missing(self) -> bool:
        """Kept, and no longer measured: a loss would not be seen."""
        return self.now is None


def file_of(machine: Mapping[str, str]) -> Path:
    """Where the ratios of the machine's instruction set are kept."""
    kernels = machine[KERNELS]
    if not kernels.isalnum():  # a sentence that says why they are missing
        refuse(KERNELS, "be loaded", repr(kernels), "Compile them with `make kernels`")
    return EXPECTED / f"{kernels}.json"


def read_kept(machine: Mapping[str, str]) -> Kept:
    path = file_of(machine)
    if not path.exists():
        hint = "Measure it with `make bench-keep` on a machine that does nothing else"
        refuse("--compare", f"find {path}", "no such file", hint)
    return json.loads(path.read_text())


def read_results(path: Path) -> Results:
    """Those of an earlier run."""
    if not path.exists():
        refuse("--results", "be a file that a run wrote", str(path), "Write one with `make bench`")
    return json.loads(path.read_text(encoding="utf-8"))


def measured(results: Results) -> dict[Cell, Ratio]:
    """The ratios of all that is ours."""
    return {
        Cell(table["section"], table["title"], cell["column"], cell["alternative"]): Ratio(
            cell["ratio"], tuple(cell["ratio quartiles"])
        )
        for table in results["tables"]
        for cell in table["cells"]
        if cell["ratio"] is not None and cell["alternative"].startswith(OWN)
    }


def keep(results: Results) -> Path:
    """Write the ratios of the sections that were measured; those of all others stay."""
    path = file_of(results["machine"])
    kept: Kept = read_kept(results["machine"]) if path.exists() else {}
    ratios: dict[str, Any] = {}
    for cell, ratio in measured(results).items():
        of_column = ratios.setdefault(cell.section, {}).setdefault(cell.title, {}).setdefault(cell.column, {})
        of_column[cell.alternative] = float(f"{ratio.median:.{DIGITS}g}")
    for section, titles in ratios.items():
        kept[section] = {"machine": results["machine"], "ratios": titles}
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(dict(sorted(kept.items())), indent=1) + "\n")
    return path


def cells_kept(kept: Kept, sections: Sequence[str]) -> Iterator[tuple[Cell, float]]:
    for section in sections:
        for title, columns in kept.get(section, {"ratios": {}})["ratios"].items():
            for column, alternatives in columns.items():
                for alternative, ratio in alternatives.items():
                    yield Cell(section, title, column, alternative), ratio


def rows(results: Results, kept: Kept) -> list[Row]:
    """Of the sections that were measured: what is kept first, then what is new."""
    sections = list(dict.fromkeys(table["section"] for table in results["tables"]))
    now, expected = measured(results), dict(cells_kept(kept, sections))
    return [Row(cell, expected.get(cell), now.get(cell)) for cell in {**expected, **now}]


def better(first: Sequence[Row], second: Sequence[Row]) -> list[Row]:
    """The first rows, each with the higher ratio of both runs: noise seldom strikes the same row twice."""
    again = {row.cell: row.now for row in second}
    found = [(row, [ratio for ratio in (row.now, again.get(row.cell)) if ratio]) for row in first]
    return [row._replace(now=max(ratios, default=None)) for row, ratios in found]


def other_facts(results: Results, kept: Kept) -> list[str]:
    """What was measured with something else than what is kept."""
    lines = []
    for section in dict.fromkeys(table["section"] for table in results["tables"] if table["section"] in kept):
        then, now = kept[section]["machine"], results["machine"]
        differ = [
            f"{name} {then.get(name)}, now {now.get(name)}" for name in now if then.get(name) != now[name]
        ]
        if differ:
            lines.append(f"- {section} was kept with {'; '.join(differ)}.")
    return lines


def verdict(row: Row) -> str:
    if row.is_missing:
        return "missing"
    if row.expected is None:
        return "new"
    return f"{100 * row.change:+.0f} %" + (" LOST" if row.is_lost else "")


def line_of(row: Row) -> str:
    expected = "" if row.expected is None else f"{row.expected:.2f}x"
    now = ""
    if row.now is not None:
        low, high = row.now.quartiles
        now = f"{row.now.median:.2f}x ({low:.2f} to {high:.2f})"
    return f"| {row.cell.column} | {row.cell.alternative} | {expected} | {now} | {verdict(row)} |"


def as_markdown(found: Sequence[Row]) -> str:
    """A table for each title, and a last line that counts."""
    lines: list[str] = []
    for title in dict.fromkeys(row.cell.title for row in found):
        lines += [
            f"### {title}",
            "",
            "| | | expected | now (quartiles) | change |",
            "| --- | --- | ---: | ---: | ---: |",
        ]
        lines += [*(line_of(row) for row in found if row.cell.title == title), ""]
    lost, missing = sum(row.is_lost for row in found), sum(row.is_missing for row in found)
    lines.append(f"{lost} of {len(found)} ratios lost more than {100 * LOSS:.0f} %, {missing} are missing.")
    return "\n".join(lines)
