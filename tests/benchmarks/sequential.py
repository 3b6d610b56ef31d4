"""The digits of the package pixel by pixel: a recurrent spiking network beside an LSTM with as many parameters.

``python -m tests.benchmarks.sequential --permuted`` trains both with the same batches, optimiser, schedule and readout
(the mean over all steps), for the same number of epochs; the last one is tested. Pixels are the means of squares of
``28 / side`` pixels. Nothing but `--learning-rate` was chosen, for each network on validation data (`--validate`).
"""

import argparse
import json
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

import snnjax
from snnjax import data, metrics, neurons

CLASSES = 10
VALIDATION = 1600  # of the training digits, with --validate


class Model(NamedTuple):
    """A network as functions of pixels [time, batch, 1]: parameters from a key, and classes [batch, 10]."""

    init: Callable[[Any, Any], Any]
    apply: Callable[[Any, Any], Any]


def spiking(width: int) -> Model:
    """SE-adLIF neurons with recurrent weights, a tenth of which fire in a step at first."""
    hidden = snnjax.layer(width, neurons.se_adlif(), recurrent=True)
    net = snnjax.network(1, [hidden], snnjax.leaky_readout(CLASSES))
    return Model(
        lambda key, pixels: net.init(key, pixels, target_activity=0.1),
        lambda params, pixels: net.apply(params, None, pixels)[0].output.mean(axis=0),
    )


def lstm(width: int) -> Model:
    """The equations of Hochreiter and Schmidhuber with forget gates, whose bias starts at 1."""

    def init(key: Any, _: Any) -> Any:
        keys = jax.random.split(key)
        weights = jax.random.normal(keys[0], (1 + width, 4 * width)) / jnp.sqrt(width)
        bias = jnp.zeros(4 * width).at[width : 2 * width].set(1.0)
        return (
            weights,
            bias,
            jax.random.normal(keys[1], (width, CLASSES)) / jnp.sqrt(width),
            jnp.zeros(CLASSES),
        )

    def apply(params: Any, pixels: Any) -> Any:
        weights, bias, out, out_bias = params

        def step(state: Any, x: Any) -> Any:
            h, c = state
            gates = jnp.concatenate([x, h], axis=1) @ weights + bias
            into, forget, new, show = jnp.split(gates, 4, axis=1)
            c = jax.nn.sigmoid(forget) * c + jax.nn.sigmoid(into) * jnp.tanh(new)
            h = jax.nn.sigmoid(show) * jnp.tanh(c)
            return (h, c), h

        zeros = jnp.zeros((pixels.shape[1], width))
        return jax.lax.scan(step, (zeros, zeros), pixels)[1].mean(axis=0) @ out + out_bias

    return Model(init, apply)


def sequences(split: str, side: int, permuted: bool) -> tuple[np.ndarray, np.ndarray]:
    """Pixels of mean 0 and deviation 1 [digits, time, 1], row by row or in one random order, and labels."""
    digits = data.load_mnist_10k(split)
    size = 28 // side
    pixels = (
        np.asarray(digits.images, np.float32).reshape(len(digits), side, size, side, size).mean(axis=(2, 4))
    )
    pixels = pixels.reshape(len(digits), side * side)
    order = np.random.default_rng(0).permutation(side * side) if permuted else np.arange(side * side)
    return (pixels[:, order, None] - pixels.mean()) / pixels.std(), np.asarray(digits.labels)


def trained(model: Model, known: Any, unknown: Any, options: argparse.Namespace) -> dict[str, Any]:
    """The accuracy on `unknown` after training on `known`."""
    pixels, labels = known
    key = jax.random.key(options.seed)
    params = model.init(key, jnp.asarray(pixels[:64].swapaxes(0, 1)))
    steps = options.epochs * (len(labels) // options.batch_size)
    schedule = optax.warmup_cosine_decay_schedule(0.0, options.learning_rate, steps // 20, steps)
    optimiser = optax.chain(optax.clip_by_global_norm(1.0), optax.adam(schedule))

    @jax.jit
    def step(params: Any, state: Any, x: Any, y: Any) -> Any:
        def loss(params: Any) -> Any:
            return optax.softmax_cross_entropy_with_integer_labels(model.apply(params, x), y).mean()

        updates, state = optimiser.update(jax.grad(loss)(params), state, params)
        return optax.apply_updates(params, updates), state

    @jax.jit
    def right(params: Any, x: Any, y: Any) -> Any:
        return jnp.sum(jnp.argmax(model.apply(params, x), axis=1) == y)

    start, state = time.process_time(), optimiser.init(params)
    for epoch in range(options.epochs):
        for indices in data.batches(key, len(labels), options.batch_size, epoch=epoch, drop_last=True):
            params, state = step(
                params, state, pixels[indices].swapaxes(0, 1), labels[indices].astype(np.int32)
            )
    seconds = time.process_time() - start
    batches = data.batches(None, len(unknown[1]), 400)
    count = sum(int(right(params, unknown[0][part].swapaxes(0, 1), unknown[1][part])) for part in batches)
    found = {"accuracy": count / len(unknown[1]), "parameters": metrics.parameter_count(params)}
    return found | {"cpu_seconds": seconds}


MODELS = {"spiking": spiking, "lstm": lstm}


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", choices=tuple(MODELS))
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--permuted", action="store_true", help="in one random order, instead of row by row")
    parser.add_argument("--side", type=int, default=28, help="pixels per side, a divisor of 28")
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--learning-rate", type=float, default=5e-3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--validate", action="store_true", help="judge on training digits that are held out")
    parser.add_argument("--out", type=Path, help="file for the result")
    options = parser.parse_args(arguments)
    known = sequences("train", options.side, options.permuted)
    if options.validate:
        known, unknown = (
            [part[where] for part in known] for where in (np.s_[VALIDATION:], np.s_[:VALIDATION])
        )
    else:
        unknown = sequences("test", options.side, options.permuted)
    settings = {name: value for name, value in vars(options).items() if name != "out"}
    text = json.dumps(settings | trained(MODELS[options.model](options.width), known, unknown, options))
    sys.stdout.write(text + "\n")
    if options.out is not None:
        options.out.write_text(text + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
