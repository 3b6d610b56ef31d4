"""Accuracy of the digits after training with each capacity and second threshold: table and picture.

``python -m tests.benchmarks.trained.capacities docs/how_to/capacities.png``. Each pair of the two is trained for a few
epochs from the same initial weights, with the other settings of the task, and judged on its validation data.
"""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from snnjax import plot, train
from tests.benchmarks.timing import say

CAPACITIES = (0.01, 0.02, 0.05, 0.1, 0.3, 0.99)  # shares of a layer's width; the last one is nearly all
SECOND_THRESHOLDS = (0.5, 0.75, 0.9, 0.999)  # the last one, just below the threshold of 1, lists spikes alone
EPOCHS = 2
SIZE = (4.5, 2.8)  # inches


class Judged(NamedTuple):
    """What a trained network reaches on the validation data."""

    accuracy: float
    dropped: float  # share of the spikes, the mean of the layers


def judge(settings: train.TaskSettings) -> Judged:
    """Train with these settings, and test on the validation data."""
    task = train.load_task(settings)
    network = train.build_network(settings, task.num_inputs, task.num_classes)
    loss, decoder = train.loss_of(settings)
    params = train.init_params(settings, network, task.sample)
    options: dict[str, Any] = {"loss": loss, "decoder": decoder}
    result = train.fit(network, params, task.train, task.validation, config=settings.training, **options)
    if result.interrupted:
        sys.exit("interrupted")
    found = train.evaluate(network, result.params, task.validation, **options)
    return Judged(found["accuracy"], float(np.mean(found["dropped_share"])))


def measure(settings: train.TaskSettings) -> dict[tuple[float | None, float | None], Judged]:
    """By capacity and second threshold; without either, the full gradient."""
    pairs = [(capacity, second) for capacity in CAPACITIES for second in SECOND_THRESHOLDS]
    found: dict[tuple[float | None, float | None], Judged] = {}
    for capacity, second in [(None, None), *pairs]:
        config = replace(settings.training, second_threshold=second, selection="last")
        found[capacity, second] = judge(replace(settings, capacity=capacity, training=config))
        say(f"capacity {capacity}, second threshold {second}: {found[capacity, second]}")
    return found


def draw(found: dict[tuple[float | None, float | None], Judged], path: Path) -> None:
    """Accuracy over the capacity, a curve for each second threshold; dropped spikes are below the capacities."""
    from matplotlib import colormaps, pyplot

    figure, ax = pyplot.subplots(figsize=SIZE, layout="constrained")
    places = range(len(CAPACITIES))
    colours = colormaps["viridis"](np.linspace(0.9, 0.0, len(SECOND_THRESHOLDS)))
    for second, colour in zip(SECOND_THRESHOLDS, colours, strict=True):
        percent = [100 * found[capacity, second].accuracy for capacity in CAPACITIES]
        ax.plot(places, percent, "o-", color=colour, markersize=4, label=f"{second:g}")
    ax.axhline(100 * found[None, None].accuracy, color="grey", linestyle=":", label="full gradient")
    dropped = [
        np.mean([found[capacity, second].dropped for second in SECOND_THRESHOLDS]) for capacity in CAPACITIES
    ]
    labels = [f"{100 * each:g}\n{100 * lost:.2g}" for each, lost in zip(CAPACITIES, dropped, strict=True)]
    ax.set_xticks(places, labels)
    ax.set_xlabel("capacity, % of the neurons\ndropped spikes, %")
    ax.set_ylabel("validation accuracy (%)")
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(frameon=False, title="second threshold", loc="lower right")
    plot.save(figure, path)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("picture", type=Path, help="file of the picture")
    options = parser.parse_args(arguments)
    digits = train.TASKS["digits"]
    draw(measure(replace(digits, training=replace(digits.training, epochs=EPOCHS))), options.picture)
    return 0


if __name__ == "__main__":
    sys.exit(main())
