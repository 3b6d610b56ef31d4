"""Derivatives of spike times beside surrogates, trained: the table of docs/how_to/spike_times.md.

``python -m tests.benchmarks.trained.spike_times --nmnist PATH`` trains each on three seeds and prints the table;
without the path, vowels alone. The last epoch counts, and nothing was chosen by the test data.
"""

import argparse
import functools
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

import snnjax
from snnjax import data, losses, neurons, train

SEEDS, WIDTH = (0, 1, 2), 128
MEMBRANE_TIME, SYNAPSE_TIME = 20.0, 10.0  # ms


class Task(NamedTuple):
    """A task."""

    name: str
    parts: Callable[[int], tuple[Any, Any]]  # (seed) -> training and test data
    dt: float  # ms
    classes: int
    epochs: int


class Way(NamedTuple):
    """A gradient, and how much less the last step counts in the loss: ``exp(-fade)`` of the first."""

    name: str
    gradient: str
    fade: float


WAYS = (
    Way("surrogate, mean over time", "surrogate", 0.0),
    Way("surrogate, early steps count more", "surrogate", 2.0),
    Way("spike times, mean over time", "spike_times", 0.0),
    Way("spike times, early steps count more", "spike_times", 2.0),
)


def tasks(nmnist: Path | None) -> Iterator[Task]:
    """The vowels as currents, 29 steps that stand for 5 ms each; recordings of 300 ms in steps of 5 ms."""
    vowels = data.load_japanese_vowels(), data.load_japanese_vowels("test")
    yield Task("vowels", lambda seed: vowels, 5.0, 9, 60)
    if nmnist is not None:

        def fold(seed: int) -> tuple[Any, Any]:
            train, test = (
                data.load_nmnist(nmnist, each, fold=seed, num_steps=60) for each in ("train", "test")
            )
            return train, test

        yield Task("N-MNIST, folds 0 to 2", fold, 5.0, 10, 20)


def accuracy(task: Task, way: Way, seed: int) -> dict[str, Any]:
    """Train a recurrent layer, and test its last epoch."""
    decay, synapse_decay = (float(np.exp(-task.dt / each)) for each in (MEMBRANE_TIME, SYNAPSE_TIME))
    is_moving = way.gradient == "spike_times"
    neuron = neurons.current_lif(
        decay, 1.0, synapse_decay, gradient=way.gradient, detach_reset=not is_moving, normalize_synapse=False
    )
    training, test = task.parts(seed)
    sample = training.take(np.arange(64))
    inputs, steps = sample.inputs.shape[-1], jax.tree.leaves(sample.inputs)[0].shape[0]
    if isinstance(sample.inputs, snnjax.SparseSpikes):
        inputs = sample.inputs.num_neurons
    items = [snnjax.layer(WIDTH, neuron, recurrent=True)]
    net = snnjax.network(inputs, items, snnjax.leaky_readout(task.classes, decay=decay))
    weights = np.exp(-way.fade * np.arange(steps) / steps).astype(np.float32)
    loss = functools.partial(losses.cross_entropy_sum, weights=10 * weights / weights.sum())
    config = train.TrainConfig(
        epochs=task.epochs, batch_size=50, seed=seed, selection="last", learning_rate=4e-3, activity_bound=0.1
    )
    params = net.init(jax.random.key(seed), sample.inputs, lengths=sample.lengths)
    start = time.process_time()
    found = train.fit(net, params, training, None, loss=loss, config=config)
    spent = time.process_time() - start
    return train.evaluate(net, found.params, test, loss=loss) | {"cpu_seconds": spent}


def main() -> None:
    """Train all, and print a table of Markdown."""
    given = argparse.ArgumentParser(description=__doc__)
    given.add_argument("--nmnist", type=Path)
    lines = [
        "| task | gradient, loss | test accuracy | active | CPU time |",
        "| --- | --- | ---: | ---: | ---: |",
    ]
    for task in tasks(given.parse_args().nmnist):
        for way in WAYS:
            found = [accuracy(task, way, seed) for seed in SEEDS]
            right = [100 * each["accuracy"] for each in found]
            active = 100 * statistics.mean(each["activity"][0] for each in found)
            spent = statistics.mean(each["cpu_seconds"] for each in found)
            score = f"{statistics.mean(right):.1f} ± {statistics.stdev(right):.1f} %"
            lines.append(f"| {task.name} | {way.name} | {score} | {active:.1f} % | {spent:.0f} s |")
            sys.stdout.write(lines[-1] + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
