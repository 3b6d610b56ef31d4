"""A profile as figures, drawn with matplotlib.

Colours are those of Okabe and Ito (2008, "Color Universal Design"), which are safe for all types of colour vision.
"""

from typing import Any

import numpy as np

from snnjax.ipu.profiles.costs import Costs
from snnjax.ipu.profiles.tiles import grid

COLOURS = {"compute": "#0072B2", "exchange": "#E69F00", "sync": "#999999", "host": "#CC79A7"}
_KIND_COLOURS = ("#0072B2", "#56B4E9", "#009E73", "#E69F00", "#CC79A7")
_SHOWN = 16
_NOTE = "IPU Model, not measured on hardware"
_KIB = 1024
Figure = Any  # of matplotlib, which is imported when something is drawn


def draw(profile: Costs) -> dict[str, Figure]:
    """The figures by name; each states that nothing was measured on hardware."""
    from matplotlib import figure as of_matplotlib

    pictures = {"phases": _phases, "operations": _operations, "tiles": _tiles, "memory": _memory}
    figures = {}
    for name, picture in pictures.items():
        figures[name] = figure = of_matplotlib.Figure(figsize=(8.6, 3.6), layout="constrained")
        picture(figure, profile)
        figure.supxlabel(_NOTE, fontsize="x-small", color="#555555", x=0.99, ha="right")
    return figures


def _phases(figure: Figure, profile: Costs) -> None:
    """Each step of the program in order: its width shows its time, its colours the phases."""
    axes = figure.subplots()
    microseconds = 1e6 / profile.data["clock_hz"]
    begin = np.cumsum([0, *(step.cycles for step in profile.steps)])[:-1]
    for phase, colour in COLOURS.items():
        widths = np.array([getattr(step.phases, phase) for step in profile.steps])
        label = f"{phase}, {100 * getattr(profile.phases, phase) / max(profile.cycles, 1):.1f} %"
        axes.barh(0, widths * microseconds, left=begin * microseconds, color=colour, label=label, height=0.8)
        begin = begin + widths
    axes.set(yticks=[], ylim=(-1.0, 1.0), xlabel="modelled time of the steps, in the program's order (us)")
    axes.set_title("phases", fontsize="medium", loc="left")
    axes.legend(frameon=False, ncols=4, loc="upper left")
    axes.spines[["top", "right", "left"]].set_visible(False)


def _operations(figure: Figure, profile: Costs) -> None:
    axes = figure.subplots()
    listed = profile.operations[:_SHOWN][::-1]
    names = [f"{each.name}  {each.where}" for each in listed]
    begin = np.zeros(len(listed))
    for phase, colour in COLOURS.items():
        widths = np.array([getattr(each.phases, phase) for each in listed], float)
        axes.barh(range(len(listed)), widths, left=begin, color=colour, label=phase)
        begin += widths
    axes.set(xlabel="cycles")
    axes.set_yticks(range(len(listed)), names, fontsize="small")
    axes.set_title("most expensive operations", fontsize="medium", loc="left")
    axes.legend(frameon=False, loc="lower right")
    axes.spines[["top", "right"]].set_visible(False)


def _tiles(figure: Figure, profile: Costs) -> None:
    pictures = (
        ("computing (% of the time)", 100 * profile.tile_utilisation),
        ("memory (KiB)", profile.tile_memory / _KIB),
    )
    for axes, (title, values) in zip(figure.subplots(1, 2), pictures, strict=True):
        image = axes.imshow(grid(values, profile.data["ipus"]), cmap="cividis", vmin=0)
        axes.set(xticks=[], yticks=[])
        axes.set_title(title, fontsize="medium", loc="left")
        figure.colorbar(image, ax=axes, shrink=0.8)


def _memory(figure: Figure, profile: Costs) -> None:
    """Memory of each tile by kind, and live memory at each operation if memory is reused over time."""
    live = profile.live_memory
    axes = figure.subplots(1, 2 if live else 1, squeeze=False)[0]
    kinds = {kind.replace("_", " "): values / _KIB for kind, values in profile.tile_memory_by_kind.items()}
    tiles = np.arange(len(profile.tile_memory))
    axes[0].stackplot(tiles, list(kinds.values()), labels=list(kinds), colors=_KIND_COLOURS, step="mid")
    axes[0].set(xlabel="tile", ylabel=f"KiB of {profile.data['memory_per_tile'] / _KIB:g}", ylim=(0, None))
    axes[0].set_title("memory of each tile", fontsize="medium", loc="left")
    figure.legend(frameon=False, loc="outside right upper", fontsize="small")
    if live:
        alive = [point.bytes / _KIB for point in live]
        axes[1].fill_between(range(len(live)), alive, step="mid", color=COLOURS["compute"])
        axes[1].set(xlabel="operation of the program, in order", ylabel="KiB, all tiles", ylim=(0, None))
        axes[1].set_title("live variables", fontsize="medium", loc="left")
    for each in axes:
        each.spines[["top", "right"]].set_visible(False)
