"""Make `rectifiers.npz`: the weights of a small rectifier network that knows 97.85 % of the test digits.

    python tests/golden/make_rectifiers.py

Made with jax 0.10 on a CPU, by 12 epochs of Adam. The arrays are named in the order of the layers, those of a batch
norm in the order of Keras: scale, bias, mean, variance.
"""

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

from snnjax._types import Params, State, Stats
from snnjax.data import load_mnist_10k

EPOCHS, BATCH, RATE, EPSILON = 12, 100, 4e-3, 1e-3
SHAPES = [(5, 5, 1, 8), (3, 3, 8, 16), (256, 64), (64, 10)]


def network(params: Params, stats: Stats, x, train: bool) -> tuple[jax.Array, Any]:
    """Two convolutions with norms, the first with a stride and a pool after it, and two dense layers."""
    after = []
    for place, stride in ((0, 2), (1, 1)):
        kernel, scale, bias = params[place]
        axes = ("NHWC", "HWIO", "NHWC")
        x = jax.lax.conv_general_dilated(x, kernel, (stride, stride), "VALID", dimension_numbers=axes)
        mean, variance = (x.mean((0, 1, 2)), x.var((0, 1, 2))) if train else stats[place]
        old = stats[place]
        after.append((0.9 * old[0] + 0.1 * mean, 0.9 * old[1] + 0.1 * variance))
        x = jax.nn.relu((x - mean) * jax.lax.rsqrt(variance + EPSILON) * scale + bias)
        if place == 0:
            x = x.reshape(-1, 6, 2, 6, 2, 8).mean((2, 4))
    x = x.reshape(len(x), -1)
    x = jax.nn.relu(x @ params[2][0] + params[2][1])
    return x @ params[3][0] + params[3][1], after


def main() -> None:
    """Train, and write the weights."""
    train, test = load_mnist_10k("train"), load_mnist_10k("test")
    rng = np.random.default_rng(0)
    drawn = [rng.normal(0, (2 / np.prod(shape[:-1])) ** 0.5, shape).astype(np.float32) for shape in SHAPES]
    params: Params = [(jnp.asarray(w), jnp.ones(w.shape[-1]), jnp.zeros(w.shape[-1])) for w in drawn[:2]]
    params += [(jnp.asarray(w), jnp.zeros(w.shape[-1])) for w in drawn[2:]]
    stats = [(jnp.zeros(w.shape[-1]), jnp.ones(w.shape[-1])) for w in drawn[:2]]
    steps = len(train) // BATCH
    optimiser = optax.adam(optax.cosine_decay_schedule(RATE, EPOCHS * steps))

    @jax.jit
    def step(params: Params, stats: Stats, state: State, x: jax.Array, y: jax.Array):
        def loss(params: Params):
            logits, after = network(params, stats, x, train=True)
            return optax.softmax_cross_entropy_with_integer_labels(logits, y).mean(), after

        gradients, after = jax.grad(loss, has_aux=True)(params)
        updates, state = optimiser.update(gradients, state)
        return optax.apply_updates(params, updates), after, state

    state: State = optimiser.init(params)
    for _ in range(EPOCHS):
        order = rng.permutation(len(train)).reshape(steps, BATCH)
        for batch in order:
            x = (train.images[batch] / 255.0).astype(np.float32)[..., None]
            params, stats, state = step(params, stats, state, x, train.labels[batch].astype(np.int32))
    x = (test.images / 255.0).astype(np.float32)[..., None]
    logits, _ = network(params, stats, x, train=False)
    print("accuracy", np.mean(np.argmax(logits, 1) == test.labels))
    arrays = [[*own, *extra] for own, extra in zip(params[:2], stats, strict=True)] + params[2:]
    flat = [np.asarray(array, np.float16) for own in arrays for array in own]
    named = {f"{place:02d}": array for place, array in enumerate(flat)}
    np.savez_compressed(Path(__file__).with_name("rectifiers.npz"), **named)


if __name__ == "__main__":
    main()
