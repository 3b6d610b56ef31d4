"""Numbers whose sums are exact, so that results can be compared bit for bit, and functions to compare results."""

from collections.abc import Callable
from typing import Any

import chex
import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike, DTypeLike

Pick = Callable[..., Any]


def array(values: ArrayLike, dtype: DTypeLike) -> jax.Array:
    """Converted by NumPy and moved as it is: `jnp.asarray` compiles a program for each shape."""
    return jax.device_put(np.asarray(values).astype(jnp.dtype(dtype)))


def dyadic(rng: np.random.Generator, low: int, high: int, *shape: int) -> jax.Array:
    """Multiples of 1/16 between low/16 and high/16."""
    return array(rng.integers(low, high + 1, shape) / 16, jnp.float32)


def dyadic_spikes(rng: np.random.Generator, low: int, high: int, *shape: int) -> jax.Array:
    """Such numbers, or ones, among zeros; rows differ in how many are not 0."""
    values = rng.integers(low, high + 1, shape) / 16 if rng.random() < 0.5 else np.ones(shape)
    share = rng.choice([0.0, 0.03, 0.25, 0.5, 1.0], (*shape[:-1], 1))
    return array(np.where(rng.random(shape) < share, values, 0), jnp.float32)


def picker(rng: np.random.Generator) -> Pick:
    """A function that picks one of its arguments."""
    return lambda *choices: choices[int(rng.integers(len(choices)))]


def halves(rng: np.random.Generator, *shape: int) -> jax.Array:
    """1/2 or 1/4."""
    return array(0.5 ** rng.integers(1, 3, shape), jnp.float32)


def assert_close(actual, expected, *, of_largest: float, rtol: float = 0.0, atol: float = 0.0) -> None:
    """Like `chex.assert_trees_all_close`, in float64 and with a tolerance that chex has not, for sums that cancel.

    `of_largest` is relative to the largest finite entry of each array, or to 1 where that is smaller.
    """
    for ours, theirs in zip(jax.tree.leaves(actual), jax.tree.leaves(expected), strict=True):
        assert jnp.shape(ours) == jnp.shape(theirs)
        a, b = (np.asarray(each).astype(np.float64) for each in (ours, theirs))
        largest = np.max(np.abs(b), initial=1.0, where=np.isfinite(b))
        np.testing.assert_allclose(a, b, rtol=rtol, atol=atol + of_largest * largest)


def assert_same_bits(actual, expected) -> None:
    """Equal trees: the same structure, dtypes, shapes and bits; chex takes -0.0 for 0.0 and every NaN for one."""

    def bits(leaf) -> tuple[Any, ...]:
        array = np.asarray(leaf)
        return array.dtype, array.shape, array.tobytes()

    chex.assert_trees_all_equal_comparator(
        lambda ours, theirs: bits(ours) == bits(theirs),
        lambda ours, theirs: f"{ours!r} has other bits than {theirs!r}",
        actual,
        expected,
    )
