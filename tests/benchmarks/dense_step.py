"""A training step through `lif_network` against a hand-written dense `lax.scan`: W3, interleaved in one process.

W3: 2312 -> 1024 -> 512 -> 256 -> 10 LIF neurons, 100 steps, batch 48, 2 % input spikes, one step of Adam.
Run it with ``python tests/benchmarks/dense_step.py``.
"""

import functools
import itertools
import sys
import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

from snnjax import LIFLayer, SparseSpikes, Surrogate, lif_network

STEPS, BATCH, WIDTHS, INPUT_RATE = 100, 48, (2312, 1024, 512, 256, 10), 0.02
DECAY, SLOPE, LEARNING_RATE = 0.9, 25.0, 1e-3
# Keeps the hidden layers at about the activity of the input.
WEIGHT_SCALE = 3.0
CAPACITY = [width // 10 for width in WIDTHS[1:-1]] + [WIDTHS[-1]]
INPUT_SLOTS = 100  # of the event lists: twice the mean number of input spikes, none is lost
REPEATS = 10

Loss = Callable[[list[Any], Any, Any], Any]


@jax.custom_vjp
def spike(v: Any) -> Any:
    return (v > 0).astype(v.dtype)


spike.defvjp(lambda v: (spike(v), v), lambda v, g: (g / (1 + SLOPE * jnp.abs(v)) ** 2,))


def hand_written(weights: list[Any], inputs: Any, labels: Any) -> Any:
    """The loss as a user writes it in plain JAX."""

    def step(carry: Any, x: Any) -> Any:
        after = []
        for w, v in zip(weights, carry, strict=True):
            v = DECAY * v + x @ w
            x = spike(v - 1)
            after.append(v - jax.lax.stop_gradient(x))
        return after, x

    start = [jnp.zeros((BATCH, width)) for width in WIDTHS[1:]]
    return cross_entropy(jax.lax.scan(step, start, inputs)[1], labels)


def through_lif_network(weights: list[Any], inputs: Any, labels: Any, capacity: Any = None) -> Any:
    """The same loss through the op."""
    layers = [LIFLayer(w, decay=DECAY, gain=1.0) for w in weights]
    shape = Surrogate("superspike", SLOPE)
    output, _ = lif_network(inputs, layers, capacity=capacity, second_threshold=0.9, surrogate=shape)
    return cross_entropy(output.output, labels)


def cross_entropy(spikes: Any, labels: Any) -> Any:
    return jnp.mean(optax.softmax_cross_entropy_with_integer_labels(jnp.sum(spikes, axis=0), labels))


def training_step(loss: Loss) -> Callable[..., Any]:
    optimizer = optax.adam(LEARNING_RATE)

    @jax.jit
    def step(weights: list[Any], state: Any, inputs: Any, labels: Any) -> Any:
        value, gradients = jax.value_and_grad(loss)(weights, inputs, labels)
        updates, state = optimizer.update(gradients, state)
        return optax.apply_updates(weights, updates), state, value

    return step


def seconds(step: Callable[..., Any], *arguments: Any) -> float:
    start = time.perf_counter()
    jax.block_until_ready(step(*arguments))
    return time.perf_counter() - start


def main() -> None:
    """Print the table; the first round compiles."""
    rng = np.random.default_rng(0)
    dense = jnp.asarray(rng.random((STEPS, BATCH, WIDTHS[0])) < INPUT_RATE, jnp.float32)
    labels = jnp.asarray(rng.integers(0, WIDTHS[-1], BATCH), jnp.int32)
    shapes = itertools.pairwise(WIDTHS)
    weights = [jnp.asarray(rng.normal(0, WEIGHT_SCALE / n**0.5, (n, m)), jnp.float32) for n, m in shapes]
    sparse = functools.partial(through_lif_network, capacity=CAPACITY)
    rows: dict[str, tuple[Loss, Any]] = {
        "hand-written lax.scan": (hand_written, dense),
        "dense spikes": (through_lif_network, dense),
        "sparse spikes": (sparse, dense),
        "sparse spikes, events in": (sparse, SparseSpikes.from_dense(dense, INPUT_SLOTS)),
    }
    programs = {name: (training_step(loss), inputs) for name, (loss, inputs) in rows.items()}
    state = optax.adam(LEARNING_RATE).init(weights)
    times: dict[str, list[float]] = {name: [] for name in rows}
    for _ in range(REPEATS + 1):
        for name, (step, inputs) in programs.items():
            times[name].append(seconds(step, weights, state, inputs, labels))
    base = np.array(times["hand-written lax.scan"][1:])
    sys.stdout.write(
        f"{'W3, one training step':<26}{'median':>10}{'ratio of medians':>18}{'median of ratios':>18}\n"
    )
    for name, each in times.items():
        own = np.array(each[1:])
        ratios = np.median(own) / np.median(base), np.median(own / base)
        sys.stdout.write(f"{name:<26}{1e3 * np.median(own):>7.0f} ms{ratios[0]:>18.2f}{ratios[1]:>18.2f}\n")


if __name__ == "__main__":
    main()
