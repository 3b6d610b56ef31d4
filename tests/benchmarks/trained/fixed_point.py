"""Accuracy of networks in the integers of a chip: trained in floating point, converted, trained on straight through.

``python -m tests.benchmarks.trained.fixed_point --data nmnist_1100.npz`` prints a line for each task, chip and seed.
N-MNIST has 17 x 17 x 2 inputs and 40 steps, 800 recordings for training and 300 for the test; vowels are where each of
12 coefficients crosses one of four levels, upwards or downwards. Both networks exceed the inputs of Xylo, so they have
its arithmetic and not its size. In brackets are the spikes of a hidden neuron in a step. ``--specification FILE``
instead writes the network of vowels for Xylo, of the first seed, with the inputs of all test utterances, for
`tests/golden/make_xylo.py`. ``--speed`` instead prints the CPU time of networks of random weights and inputs, in
floating point and in integers, of all threads: the least of interleaved rounds.
"""

import argparse
import dataclasses
import functools
import itertools
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import snnjax
from snnjax import data, fixed_point, losses, neurons, train
from snnjax._types import Params

BATCH, BOUND = 25, 0.1  # samples; spikes of a neuron in a step, above which a penalty keeps them
MORE = 2  # epochs straight through, and in floating point for comparison
XYLO = dataclasses.replace(fixed_point.XYLO, max_inputs=None, max_hidden=None, max_outputs=None)
CHIPS = {"Xylo": XYLO, "lava": fixed_point.LAVA_LOIHI}
REPEAT = 3  # steps for each of the series
LEVELS = (-1.0, -1 / 3, 1 / 3, 1.0)  # of a coefficient, in its standard deviations


class Spikes(NamedTuple):
    """A data set of dense spikes."""

    inputs: np.ndarray  # uint8 [samples, time, inputs]
    labels: np.ndarray
    lengths: np.ndarray

    def __len__(self) -> int:
        """The number of samples."""
        return len(self.labels)

    def take(self, indices: np.ndarray) -> data.Batch:
        """The samples at `indices`."""
        inputs = jnp.asarray(np.moveaxis(self.inputs[indices], 0, 1))
        return data.Batch(inputs, jnp.asarray(self.labels[indices]), jnp.asarray(self.lengths[indices]))


def nmnist(path: Path) -> tuple[Spikes, Spikes]:
    """The recordings of an array file at half the resolution, in 40 steps."""
    parts = [data.load_nmnist(path, split, num_steps=40) for split in ("train", "test")]
    grids, labels = [], []
    for part in parts:
        for first in range(0, len(part), 100):
            batch = part.take(np.arange(first, min(first + 100, len(part))))
            dense = np.asarray(batch.inputs.to_dense() > 0)
            pixels = dense.reshape(*dense.shape[:2], 2, 17, 2, 17, 2).any(axis=(4, 6))
            grids.append(np.moveaxis(pixels.reshape(*dense.shape[:2], 578), 1, 0).astype(np.uint8))
            labels.append(np.asarray(batch.labels))
    order = np.random.default_rng(0).permutation(sum(map(len, labels)))
    grid, label = np.concatenate(grids)[order], np.concatenate(labels).astype(np.int32)[order]
    lengths = np.full(len(label), 40, np.int32)
    return Spikes(grid[:800], label[:800], lengths[:800]), Spikes(grid[800:], label[800:], lengths[800:])


def vowels() -> tuple[Spikes, Spikes]:
    """The speakers of the vowels, with a spike for each level that a coefficient crosses, upwards or downwards."""
    parts = [data.load_japanese_vowels(split) for split in ("train", "test")]
    batches = [part.take(np.arange(len(part))) for part in parts]
    held = [np.moveaxis(np.asarray(batch.inputs), 0, 1) for batch in batches]
    lengths = [np.asarray(batch.lengths) for batch in batches]
    inside = [np.arange(x.shape[1])[None] < n[:, None] for x, n in zip(held, lengths, strict=True)]
    mean, deviation = held[0][inside[0]].mean(0), held[0][inside[0]].std(0)
    found = []
    for x, n, batch in zip(held, lengths, batches, strict=True):
        levels = (((x - mean) / deviation)[..., None] > np.array(LEVELS)).reshape(*x.shape[:2], -1)
        change = np.diff(levels.astype(np.int8), axis=1, prepend=0)
        spikes = np.zeros((len(x), REPEAT * x.shape[1], 2 * levels.shape[2]), np.uint8)
        spikes[:, ::REPEAT] = np.concatenate([change > 0, change < 0], axis=-1)
        found.append(Spikes(spikes, np.asarray(batch.labels), (REPEAT * n).astype(np.int32)))
    return found[0], found[1]


def network_of(learn: Spikes, chip: fixed_point.FixedPoint, hidden: int) -> snnjax.Network:
    """The network of a task with the neurons of a chip."""
    neuron = neurons.current_lif(0.9, 1.0, 0.7, reset=chip.reset)
    readout = snnjax.leaky_readout(int(learn.labels.max()) + 1, decay=0.95)
    return snnjax.network(learn.inputs.shape[2], [snnjax.layer(hidden, neuron)], readout)


def fit(learn: Spikes, seed: int, network: snnjax.Network, params: Any, epochs: int, rate: float) -> Any:
    """The params after some epochs."""
    config = train.TrainConfig(
        epochs=epochs,
        batch_size=BATCH,
        learning_rate=rate,
        selection="last",
        activity_bound=BOUND,
        seed=seed,
    )
    return train.fit(network, params, learn, None, loss=losses.cross_entropy_sum, config=config).params


def write_specification(parts: tuple[Spikes, Spikes], hidden: int, epochs: int, path: Path) -> None:
    """Train a network for Xylo, and write its specification with the inputs of each test sample."""
    learn, test = parts
    net = network_of(learn, XYLO, hidden)
    params = fit(learn, 0, net, net.init(jax.random.key(0)), epochs, 5e-3)
    given = fixed_point.to_xylo(fixed_point.convert(net, params, XYLO)[0])
    inputs = [own[:steps] for own, steps in zip(test.inputs, test.lengths, strict=True)]
    every = [
        (number, name, own) for number, x in enumerate(inputs) for name, own in (given | {"x": x}).items()
    ]
    np.savez_compressed(path, **{f"{number}/{name}": own for number, name, own in every})


def measure(
    parts: tuple[Spikes, Spikes], chip: fixed_point.FixedPoint, hidden: int, epochs: int, seed: int
) -> str:
    """A line of accuracies in percent, and activities."""
    learn, test = parts
    net = network_of(learn, chip, hidden)
    whole, fitted = fixed_point.on_chip(net, chip), functools.partial(fit, learn, seed)

    def right(network, params):
        found = train.evaluate(network, params, test, loss=losses.cross_entropy_sum)
        return 100 * found["accuracy"], found["activity"][0]

    params = fitted(net, net.init(jax.random.key(seed)), epochs, 5e-3)
    floats, converted = right(net, params), right(whole, params)
    trained = right(whole, fitted(whole, params, MORE, 1e-3))
    longer = right(net, fitted(net, params, MORE, 1e-3))
    names = ("float", "converted", "straight through", "float as long")
    pairs = zip(names, (floats, converted, trained, longer), strict=True)
    return ", ".join(f"{name} {share:.2f} ({activity:.3f})" for name, (share, activity) in pairs)


class Shape(NamedTuple):
    """Of a network with 100 hidden neurons, its inputs, and the share of them that spike."""

    steps: int
    batch: int
    inputs: int
    outputs: int
    rate: float


SHAPES = {
    "N-MNIST": Shape(40, BATCH, 578, 10, 0.02),
    "vowels": Shape(87, BATCH, 96, 9, 0.05),
    "60 steps of 64": Shape(60, 64, 96, 9, 0.05),
}
ROUNDS, CALLS = 30, 5  # of a round, each program in turn


def least_times(programs: dict[str, Callable[[], Any]]) -> dict[str, float]:
    """The milliseconds of CPU time of each program."""
    found = dict.fromkeys(programs, float("inf"))
    for program in programs.values():
        jax.block_until_ready(program())
    for _ in range(ROUNDS):
        for name, program in programs.items():
            started = time.process_time()
            for _ in range(CALLS):
                jax.block_until_ready(program())
            found[name] = min(found[name], 1e3 * (time.process_time() - started) / CALLS)
    return found


def programs_of(shape: Shape, chip: fixed_point.FixedPoint, recurrent: bool) -> dict[str, Callable[[], Any]]:
    """Inference and a gradient, in floating point and in the integers of a chip."""
    neuron = neurons.current_lif(0.9, 1.0, 0.7, reset=chip.reset)
    readout = snnjax.leaky_readout(shape.outputs, decay=0.95)
    net = snnjax.network(shape.inputs, [snnjax.layer(100, neuron, recurrent=recurrent)], readout)
    params = net.init(jax.random.key(0))
    if (
        recurrent
    ):  # with weights as large as these, neurons of Xylo drive one another to their 31 spikes in each step
        params["layer_0/recurrent"] = jax.tree.map(lambda own: own / 4, params["layer_0/recurrent"])
    random = np.random.default_rng(0).random((shape.steps, shape.batch, shape.inputs))
    x = jnp.asarray((random < shape.rate).astype(np.uint8))
    labels = jnp.zeros(shape.batch, jnp.int32)
    whole, _ = fixed_point.convert(net, params, chip)

    def gradient(network: snnjax.Network) -> Callable[[], Any]:
        def loss(params: Params, x: jax.Array) -> jax.Array:
            return losses.cross_entropy_sum(network.apply(params, None, x)[0].output, labels)

        return functools.partial(jax.jit(jax.grad(loss)), params, x)

    return {
        "float": functools.partial(
            jax.jit(lambda params, x: net.apply(params, None, x)[0].output), params, x
        ),
        "integers": functools.partial(
            jax.jit(lambda whole, x: fixed_point.run(whole, x)[0].output), whole, x
        ),
        "float step": gradient(net),
        "integers step": gradient(fixed_point.on_chip(net, chip)),
    }


def print_speed() -> None:
    """A line for each shape and chip."""
    for (name, shape), (chip_name, chip), recurrent in itertools.product(
        SHAPES.items(), CHIPS.items(), (False, True)
    ):
        found = least_times(programs_of(shape, chip, recurrent))
        pairs = [(found[f"float{what}"], found[f"integers{what}"]) for what in ("", " step")]
        words = [f"{ours:.2f} ms beside {theirs:.2f}, {theirs / ours:.2f}x" for theirs, ours in pairs]
        kind = "recurrent" if recurrent else "feed-forward"
        sys.stdout.write(f"{name}, {kind}, {chip_name}: run {words[0]}; step {words[1]}\n")
        sys.stdout.flush()


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, help="N-MNIST, as for data.load_nmnist")
    parser.add_argument("--specification", type=Path, metavar="FILE", help="write a network for XyloSim")
    parser.add_argument("--speed", action="store_true", help="only the CPU time of random networks")
    options = parser.parse_args()
    if options.speed:
        print_speed()
        return
    tasks = {"vowels": (vowels(), 100, 30, range(16))}
    if options.specification is not None:
        write_specification(*tasks["vowels"][:3], options.specification)
        return
    if options.data is not None:
        tasks["nmnist"] = (nmnist(options.data), 100, 6, range(3))
    for name, (parts, hidden, epochs, seeds) in tasks.items():
        for chip_name, chip in CHIPS.items():
            for seed in seeds:
                started = time.process_time()
                line = measure(parts, chip, hidden, epochs, seed)
                sys.stdout.write(
                    f"{name}, {chip_name}, {seed}: {line}; {time.process_time() - started:.0f} s CPU\n"
                )
                sys.stdout.flush()


if __name__ == "__main__":
    main()
