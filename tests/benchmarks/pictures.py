"""The pictures of a run: how many times faster than plain JAX, by workload and by density, and how time grows."""

import statistics
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib import pyplot as plt
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from tests.benchmarks.peers import PEERS
from tests.benchmarks.programs import networks
from tests.benchmarks.programs.networks import DONATED
from tests.benchmarks.report import OWN, alternatives, columns, ratio
from tests.benchmarks.tables import DENSITY, PRODUCTS, SCALING, SPEED, Table

PANELS_ACROSS, PANEL_INCHES = 3, (4.2, 2.9)
SPEED_INCHES, BAR_INCHES = 8.0, 0.15
DOTS_PER_INCH = 120
LOWEST_ALLOWED = 0.95  # ratio at any density
# The same thing has the same colour in all pictures: plain JAX and the reference in grey, then ours, then others.
TAB10 = mpl.colormaps["tab10"].colors
GREYS = dict(zip((*networks.PLAIN, "snnjax reference, lists"), ("black", "grey", "grey"), strict=True))
OURS = dict(zip((*networks.KERNELS, *networks.CAPPED), TAB10, strict=False)) | {"snnjax, lists": TAB10[1]}
OTHERS = dict(zip(PEERS, TAB10[5:], strict=False))
# Of an axis that starts at 0: below this many per cent it is linear.
LINEAR_PERCENT = 0.5


def write(folder: Path, tables: Sequence[Table]) -> None:
    """One picture of each kind that a table asks for."""
    mpl.rcParams.update({"font.size": 8, "axes.titlesize": 8, "legend.fontsize": 7})
    draws: dict[str, Callable[[Sequence[Table]], Any]] = {
        SPEED: draw_speed,
        DENSITY: lambda chosen: panels(chosen, draw_ratios),
        PRODUCTS: lambda chosen: panels(chosen, draw_ratios),
        SCALING: lambda chosen: panels(chosen, draw_times),
    }
    for name, draw in draws.items():
        chosen = [table for table in tables if table.picture == name]
        if chosen:
            figure = draw(chosen)
            figure.savefig(folder / f"{name}.png", dpi=DOTS_PER_INCH)
            plt.close(figure)


def colour(name: str):
    """Of an alternative, or of a peer with its version."""
    return {**GREYS, **OURS}.get(name) or OTHERS[name.split()[0]]


def shown(table: Table, column: str) -> list[str]:
    """The alternatives that have a bar: our kernels and other libraries."""
    hidden = {*networks.PLAIN, *networks.EXACT} - {*networks.KERNELS}
    return [
        name for name in alternatives(table) if name not in hidden and ratio(table, column, name) is not None
    ]


def draw_speed(tables: Sequence[Table]):
    """A group of bars for each workload and task."""
    groups = [(table, column) for table in tables for column in columns(table) if DONATED not in column]
    bars = [(table, column, shown(table, column)) for table, column in groups]
    height = BAR_INCHES * sum(len(names) + 1 for *_, names in bars) + 1
    figure, axis = plt.subplots(figsize=(SPEED_INCHES, height), layout="constrained")
    place, ticks, handles = 0, {}, {}
    for table, column, names in bars:
        ticks[f"{table.title}, {column}"] = place + (len(names) - 1) / 2
        for name in names:
            value = ratio(table, column, name) or 0.0
            handles[name] = axis.barh(place, value, color=colour(name))
            axis.text(value, place, f" {value:.2g}", va="center", fontsize=6)
            place += 1
        place += 1
    axis.set_yticks([*ticks.values()], labels=[*ticks])
    axis.set(xscale="log", xlabel="times faster than the fastest plain JAX")
    axis.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.xaxis.set_minor_locator(NullLocator())
    axis.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.axvline(1, color="black", linewidth=0.8)
    axis.invert_yaxis()
    axis.margins(y=0.01)
    figure.legend([*handles.values()], [*handles], loc="outside upper center", ncols=2)
    return figure


def panels(tables: Sequence[Table], draw: Callable[[Any, Table], None]):
    """A grid of panels under one legend."""
    across = min(PANELS_ACROSS, len(tables))
    down = -(-len(tables) // across)
    size = (PANEL_INCHES[0] * across, PANEL_INCHES[1] * down + 0.5)
    figure, axes = plt.subplots(down, across, squeeze=False, figsize=size, layout="constrained")
    handles: dict[str, Any] = {}
    for axis, table in zip(axes.flat, tables, strict=False):
        draw(axis, table)
        axis.set(title=table.title, xlabel=table.across)
        handles |= dict(zip(*reversed(axis.get_legend_handles_labels()), strict=True))
    for axis in axes.flat[len(tables) :]:
        axis.axis("off")
    figure.legend([*handles.values()], [*handles], loc="outside upper center", ncols=5)
    return figure


def draw_ratios(axis, table: Table) -> None:
    """How many times faster, over density."""
    for name in alternatives(table):
        if name.startswith(OWN):
            ratios = [ratio(table, column, name) for column in columns(table)]
            axis.plot(places(table), ratios, marker=".", label=name, color=colour(name))
    axis.axhline(LOWEST_ALLOWED, color="black", linestyle=":", label=f"{LOWEST_ALLOWED}")
    axis.set_xscale("symlog", linthresh=LINEAR_PERCENT)
    axis.set_xlim(left=0)
    plain_numbers(axis, places(table))
    axis.set_ylabel("times faster")


def draw_times(axis, table: Table) -> None:
    """Milliseconds over a size."""
    for name in alternatives(table):
        medians = [1e3 * statistics.median(table.cells[column, name]) for column in columns(table)]
        axis.plot(places(table), medians, marker=".", label=name, color=colour(name))
    axis.set_xscale("log")
    plain_numbers(axis, places(table))
    axis.set_ylabel("milliseconds")


def places(table: Table) -> list[float]:
    """The numbers that the columns begin with."""
    return [float(column.split()[0]) for column in columns(table)]


def plain_numbers(axis, ticks: Sequence[float]) -> None:
    """Ticks at what was measured, logarithmic values upwards, and no powers of ten."""
    axis.set_yscale("log")
    axis.set_xticks(ticks, labels=[f"{tick:g}" for tick in ticks], rotation=60)
    axis.xaxis.set_minor_locator(NullLocator())
    axis.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.yaxis.set_minor_locator(NullLocator())
    axis.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.grid(visible=True, linewidth=0.3)
