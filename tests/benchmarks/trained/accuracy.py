"""The picture above the page of results: accuracy over the number of parameters, beside published results."""

import statistics
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from snnjax import plot

ACROSS, PANEL = 4, (2.3, 2.1)  # panels in a row, inches
RANGE = (1e3, 3e6)  # of the number of parameters


class Result(NamedTuple):
    """A point of the picture."""

    parameters: int
    percent: float
    deviation: float = 0.0


class Published(NamedTuple):
    """A published result on the same data."""

    result: Result
    who: str


PUBLISHED: dict[str, tuple[Published, ...]] = {
    "qtdb": (
        Published(
            Result(1734, 85.4, 0.65), "BRF, 36 neurons, by validation (Higuchi et al. 2024, its tables)"
        ),
        Published(Result(1734, 85.9), "SRNN, 36 neurons (Yin, Corradi, Bohte 2021)"),
    ),
    "nmnist": (
        Published(Result(1_188_864, 94.0), "MLP, last epoch (example of SLAYER, Shrestha, Orchard 2018)"),
    ),
}
PICTURE = "accuracy.png"


def ours(runs: Iterable[Mapping[str, Any]]) -> dict[str, list[Result]]:
    """Mean and deviation of each network, by task; folds are a task of their own."""
    groups: dict[tuple[Any, ...], list[float]] = {}
    for run in runs:
        folded = ", folds" if run.get("fold") is not None else ""
        key = run["task"] + folded, run["network"], run["epochs"], run["parameters"]
        groups.setdefault(key, []).append(100 * run["test"]["accuracy"])
    found: dict[str, list[Result]] = {}
    for (task, *_, parameters), percent in groups.items():
        spread = statistics.stdev(percent) if len(percent) > 1 else 0.0
        found.setdefault(task, []).append(Result(parameters, statistics.mean(percent), spread))
    return found


def draw(runs: Iterable[Mapping[str, Any]], path: Path) -> None:
    """A panel for each task: ours with the deviation over seeds or folds, and published results."""
    from matplotlib import pyplot

    found = ours(runs)
    down = -(-len(found) // ACROSS)
    size = (PANEL[0] * ACROSS, PANEL[1] * down + 0.3)
    figure, axes = pyplot.subplots(down, ACROSS, squeeze=False, figsize=size, layout="constrained")
    for axis, (task, results) in zip(axes.flat, found.items(), strict=False):
        others = [each.result for each in PUBLISHED.get(task, ())]
        for points, marker, colour, label in (
            (results, "o", plot.BLUE, "snnjax"),
            (others, "s", plot.RED, "published"),
        ):
            if points:
                sizes, percent, spread = zip(*points, strict=True)
                axis.errorbar(
                    sizes, percent, spread, fmt=marker, color=colour, label=label, markersize=4, capsize=2
                )
        axis.set(title=task, xscale="log", xlim=RANGE)
    for axis in axes.flat[len(found) :]:
        axis.axis("off")
    figure.supxlabel("parameters")
    figure.supylabel("test accuracy (%)")
    handles = {
        label: handle
        for axis in axes.flat
        for handle, label in zip(*axis.get_legend_handles_labels(), strict=True)
    }
    figure.legend([*handles.values()], [*handles], loc="outside upper right", ncols=2)
    plot.save(figure, path)


def caption() -> str:
    """The picture and the sources of its published results, in Markdown."""
    lines = [
        f"- {task}: {each.who}, {each.result.percent:g} % with {each.result.parameters:,} parameters."
        for task, results in PUBLISHED.items()
        for each in results
    ]
    title = "Test accuracy over the number of parameters, for each task"
    return "\n".join([f"![{title}]({PICTURE})\n", "Published results on the same data:\n", *lines, "\n"])
