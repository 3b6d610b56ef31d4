"""Accuracy of a trained run when its test recordings are disturbed or its network made smaller: table and picture.

``python -m tests.benchmarks.trained.robustness out/nmnist --data PATH --picture robustness.png``. The network is
trained on undisturbed recordings; each disturbance is drawn once, from a fixed seed. The camera's polarities are the
two halves of the inputs, as the readers number them.
"""

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from snnjax import plot, quantisation, train
from snnjax._types import Params
from snnjax.data import EventDataset
from snnjax.data.event_lists import RaggedLists, pack
from snnjax.train.progress import CHECKPOINT

Grid = np.ndarray  # bool [samples, time, inputs]: where there is an event


def lost(random: np.random.Generator, grid: Grid, share: float) -> Grid:
    """A share of the events is dropped."""
    return grid & (random.random(grid.shape, np.float32) >= share)


def noise(random: np.random.Generator, grid: Grid, share: float) -> Grid:
    """A share of all places have an event of noise."""
    return grid | (random.random(grid.shape, np.float32) < share)


def jitter(random: np.random.Generator, grid: Grid, steps: float) -> Grid:
    """Each event is up to so many steps early or late, all amounts being equally likely."""
    sample, step, place = np.nonzero(grid)
    moved = step + random.integers(-int(steps), int(steps) + 1, step.size)
    out = np.zeros_like(grid)
    out[sample, np.clip(moved, 0, grid.shape[1] - 1), place] = True
    return out


def speed(random: np.random.Generator, grid: Grid, factor: float) -> Grid:
    """Everything happens so many times as fast; what is then after the end is not seen."""
    steps = np.floor((np.arange(grid.shape[1]) + 0.5) * factor).astype(np.int64)
    inside = steps < grid.shape[1]
    return grid[:, np.where(inside, steps, 0)] & inside[:, None]


def polarity(random: np.random.Generator, grid: Grid, missing: float) -> Grid:
    """One polarity, 0 or 1, is missing; -1 is none."""
    halves = np.repeat([0, 1], grid.shape[2] // 2)
    return grid & (halves != missing)


DISTURBANCES: dict[str, tuple[Callable[..., Grid], tuple[float, ...]]] = {
    "events lost": (lost, (0.0, 0.1, 0.25, 0.5, 0.75)),
    "places with noise": (noise, (0.0, 0.001, 0.003, 0.01, 0.03)),
    "jitter in steps": (jitter, (0, 1, 2, 4)),
    "speed": (speed, (0.5, 0.75, 1.0, 1.5, 2.0)),
    "missing polarity": (polarity, (-1, 0, 1)),
}
CAPACITIES = (0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 0.99)
BITS = (4, 8)  # of integers; then bfloat16, and float32
POLARITIES = {-1: "none", 0: "off", 1: "on"}
ACROSS, PANEL = 4, (2.3, 2.1)  # panels in a row, inches


def disturbed(
    events: EventDataset, change: Callable[..., Grid], amount: float, seed: int = 0
) -> EventDataset:
    """The recordings after a disturbance; lists are as long as they need to be."""
    grid = np.zeros((len(events), events.num_steps, events.num_neurons + 1), bool)
    np.put_along_axis(grid, events.ids.astype(np.int64), True, axis=-1)
    changed = change(np.random.default_rng(seed), grid[:, :, :-1], amount)
    lists = RaggedLists(np.nonzero(changed)[2].astype(events.ids.dtype), changed.sum(axis=-1, dtype=np.int32))
    ids, counts = pack(lists, events.num_neurons, None)
    return replace(events, ids=ids, counts=counts)


def measure(folder: Path, path: Path | None) -> dict[str, list[tuple[float, float]]]:
    """Pairs of an amount and an accuracy, for each disturbance and each saving."""
    settings = train.TaskSettings.from_header(train.read_run(folder / CHECKPOINT))
    # Inputs as the readers number them: polarity first.
    raw = train.load_task(replace(settings, convolutions=(), hidden=(1,), residual_blocks=0), path)
    trained = train.read_trained(folder / CHECKPOINT, raw.num_inputs, raw.num_classes)
    params, (loss, decoder) = trained.params, train.loss_of(settings)

    def accuracy(events: EventDataset, params: Params = params, net=trained.network) -> float:
        seen = events if settings.image is None else events.channels_last(2)
        options: dict[str, Any] = {"stats": trained.stats, "loss": loss, "decoder": decoder}
        return train.evaluate(net, params, seen, **options)["accuracy"]

    found: dict[str, list[tuple[float, float]]] = {}
    for name, (change, amounts) in DISTURBANCES.items():
        if change is not polarity or settings.task in ("nmnist", "digits", "fashion", "dvs-gesture"):
            found[name] = [(each, accuracy(disturbed(raw.test, change, each))) for each in amounts]
    found["capacity"] = []
    for capacity in CAPACITIES:
        smaller = train.build_network(replace(settings, capacity=capacity), raw.num_inputs, raw.num_classes)
        found["capacity"].append((capacity, accuracy(raw.test, net=smaller)))
    # Weights of bfloat16, computed with in float32: the rounding alone.
    half = jax.tree.map(lambda leaf: leaf.astype(jnp.bfloat16).astype(leaf.dtype), params)
    rounded = {bits: quantisation.quantise_network(params, bits) for bits in BITS} | {16: half, 32: params}
    found["bits of the weights"] = [(bits, accuracy(raw.test, each)) for bits, each in rounded.items()]
    return found


def draw(found: dict[str, list[tuple[float, float]]], path: Path) -> None:
    """A curve for each disturbance and saving."""
    from matplotlib import pyplot

    down = -(-len(found) // ACROSS)
    size = (PANEL[0] * ACROSS, PANEL[1] * down)
    figure, axes = pyplot.subplots(
        down, ACROSS, sharey=True, squeeze=False, figsize=size, layout="constrained"
    )
    for ax, (name, pairs) in zip(axes.flat, found.items(), strict=False):
        ax.plot(range(len(pairs)), [100 * share for _, share in pairs], "o-", color=plot.BLUE, markersize=4)
        labels = POLARITIES if name == "missing polarity" else {}
        ticks = [labels.get(int(amount), f"{amount:g}") for amount, _ in pairs]
        ax.set_xticks(range(len(pairs)), ticks, fontsize=8)
        ax.set_xlabel(name)
    for ax in axes.flat[len(found) :]:
        ax.axis("off")
    figure.supylabel("test accuracy (%)")
    plot.save(figure, path)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", type=Path, help="folder of a run of snnjax train")
    parser.add_argument("--data", type=Path, help="as for snnjax train")
    parser.add_argument("--picture", type=Path, help="file of the picture")
    options = parser.parse_args(arguments)
    found = measure(options.run, options.data)
    for name, pairs in found.items():
        line = ", ".join(f"{amount:g}: {100 * share:.2f} %" for amount, share in pairs)
        sys.stdout.write(f"{name}: {line}\n")
    (options.run / "robustness.json").write_text(json.dumps(found, indent=1))
    if options.picture is not None:
        draw(found, options.picture)
    return 0


if __name__ == "__main__":
    sys.exit(main())
