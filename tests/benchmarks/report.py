"""What the measurement writes: a table to read, the same in JSON with every round, and the pictures."""

import json
import os
import platform
import statistics
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from snnjax import _targets, compiler_options
from tests.benchmarks.tables import SECONDS, Table
from tests.benchmarks.timing import quartiles

# Ratios are those of the fastest plain alternative's median to an alternative's own.
PLAIN = "plain JAX"
OWN = "snnjax"
# The fact of the machine that names the instruction set of the kernels, or says why there are none.
KERNELS = "CPU kernels"
PACKAGES = ("snnjax", "jax", "jaxlib", "numpy", "optax")


def machine() -> dict[str, str]:
    """What the numbers depend on."""
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    processor = next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), "")
    return {
        "processor": processor or platform.machine(),
        "cores": str(len(os.sched_getaffinity(0))),
        "python": platform.python_version(),
        **{package: version_of(package) for package in PACKAGES},
        "compiler options": ", ".join(f"{name}={value}" for name, value in compiler_options().items()),
        "XLA_FLAGS": os.environ.get("XLA_FLAGS", ""),  # which may limit the instructions of plain JAX
        KERNELS: _targets.missing() or _targets.instruction_set(),
    }


def version_of(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:  # snnjax itself, run from its folder
        return "not installed"


def columns(table: Table) -> list[str]:
    return list(dict.fromkeys(column for column, _ in table.cells))


def alternatives(table: Table) -> list[str]:
    return list(dict.fromkeys(name for _, name in table.cells))


def fastest_plain(table: Table, column: str) -> list[float] | None:
    """The rounds of the fastest plain alternative of the column; None where there is none."""
    plain = [
        values
        for (other, alternative), values in table.cells.items()
        if other == column and alternative.startswith(PLAIN)
    ]
    return min(plain, key=statistics.median) if plain and table.unit == SECONDS else None


def ratio(table: Table, column: str, name: str) -> float | None:
    """How many times faster than the fastest plain alternative of the column; None where there is none."""
    own, plain = table.cells.get((column, name)), fastest_plain(table, column)
    return None if own is None or plain is None else statistics.median(plain) / statistics.median(own)


def ratio_quartiles(table: Table, column: str, name: str) -> tuple[float, float] | None:
    """Those of the same ratio, round by round."""
    own, plain = table.cells.get((column, name)), fastest_plain(table, column)
    if own is None or plain is None:
        return None
    return quartiles([theirs / ours for theirs, ours in zip(plain, own, strict=True)])


def cpu_of(table: Table) -> Table:
    """The same in the CPU time of all threads: the minimum, which other programs of the machine change least."""
    cells = {key: [min(values)] for key, values in table.cpu.items()}
    return table._replace(cells=cells, cpu={})


def text(table: Table, column: str, name: str) -> str:
    """The median, and the ratio where there is one."""
    values = table.cells.get((column, name))
    if values is None:
        return ""
    if table.unit != SECONDS:
        return f"{statistics.median(values):.0f}"
    own, times = 1e3 * statistics.median(values), ratio(table, column, name)
    digits = f"{own:.3g}" if own < 100 else f"{own:.0f}"
    return digits if times is None else f"{digits} ({times:.2f}x)"


def widest_spread(table: Table) -> float:
    """The largest distance between the quartiles over the median: how noisy the run was."""
    medians = {key: statistics.median(values) for key, values in table.cells.items()}
    spreads = {key: quartiles(values) for key, values in table.cells.items()}
    return max((spreads[key][1] - spreads[key][0]) / medians[key] for key in medians if medians[key] > 0)


def lowest_ratios(table: Table) -> list[str]:
    """Of a sweep: where each alternative of ours does worst, and where it is slower than plain JAX."""
    lines = []
    for name in alternatives(table):
        ratios = {column: ratio(table, column, name) for column in columns(table)}
        known = {column: each for column, each in ratios.items() if each is not None}
        if not name.startswith(OWN) or not known:
            continue
        worst = min(known, key=lambda column: known[column])
        slower = ", ".join(column for column, each in known.items() if each < 1) or "no density"
        lines.append(f"- {name}: lowest {known[worst]:.2f}x at {worst}, under 1x at {slower}.")
    return lines


def grid(table: Table, unit: str) -> list[str]:
    """Alternatives down and columns across."""
    across = columns(table)
    lines = [f"| {unit} | {' | '.join(across)} |", "| --- |" + " ---: |" * len(across)]
    for name in alternatives(table):
        cells = " | ".join(text(table, column, name) for column in across)
        lines.append(f"| {name} | {cells} |")
    return [*lines, ""]


def as_markdown(table: Table) -> str:
    """The table, and below it that of the CPU time where it is known."""
    unit = "milliseconds" if table.unit == SECONDS else table.unit
    lines = [f"### {table.title}", "", *grid(table, unit)]
    if table.cpu:
        lines += grid(cpu_of(table), "milliseconds of CPU, all threads, minimum")
    notes = [*lowest_ratios(table)] if table.across.startswith("density") else []
    notes.append(f"- Widest spread between quartiles: {100 * widest_spread(table):.0f} % of the median.")
    return "\n".join([*lines, *notes, ""])


def as_json(table: Table) -> dict[str, Any]:
    cells = [
        {
            "column": column,
            "alternative": name,
            "median": statistics.median(values),
            "minimum": min(values),
            "quartiles": quartiles(values),
            "ratio": ratio(table, column, name),
            "ratio quartiles": ratio_quartiles(table, column, name),
            "rounds": values,
            **cpu_as_json(table, column, name),
        }
        for (column, name), values in table.cells.items()
    ]
    unit = "seconds" if table.unit == SECONDS else table.unit
    return {
        "section": table.section,
        "title": table.title,
        "unit": unit,
        "across": table.across,
        "cells": cells,
    }


def cpu_as_json(table: Table, column: str, name: str) -> dict[str, Any]:
    """Nothing where it is not known."""
    values = table.cpu.get((column, name))
    if values is None:
        return {}
    return {
        "CPU median": statistics.median(values),
        "CPU minimum": min(values),
        "CPU ratio": ratio(cpu_of(table), column, name),  # of the minima
        "CPU rounds": values,
    }


def content(tables: Sequence[Table]) -> dict[str, Any]:
    """What `results.json` holds."""
    return {"machine": machine(), "tables": [as_json(table) for table in tables]}


def write(folder: Path, tables: Sequence[Table]) -> None:
    """`results.md` and `results.json`."""
    folder.mkdir(parents=True, exist_ok=True)
    written = content(tables)
    (folder / "results.json").write_text(json.dumps(written, indent=1) + "\n")
    head = (
        "Medians; in brackets how many times faster than the fastest plain JAX of the same interleaved run. Where the "
        "CPU time is given, every program has a process of its own."
    )
    facts = ", ".join(f"{name} {value}" for name, value in written["machine"].items() if value)
    parts = ["## Benchmarks", "", head, "", facts + ".", "", *map(as_markdown, tables)]
    (folder / "results.md").write_text("\n".join(parts))
