"""Numbers whose sums are exact, so that results can be compared bit for bit, and functions to compare results."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np


def dyadic(rng: np.random.Generator, low: int, high: int, *shape: int) -> jax.Array:
    """Multiples of 1/16 between low/16 and high/16."""
    return jnp.asarray(rng.integers(low, high + 1, shape) / 16, jnp.float32)


def halves(rng: np.random.Generator, *shape: int) -> jax.Array:
    """1/2 or 1/4."""
    return jnp.asarray(0.5 ** rng.integers(1, 3, shape), jnp.float32)


def assert_close(
    actual: Any, expected: Any, *, rtol: float = 0.0, atol: float = 0.0, of_largest: float = 0.0
) -> None:
    """Equal trees: structure aside, the same shapes, and values within the tolerances; without any, the same values.

    `of_largest` is relative to the largest finite entry of each array, or to 1 where that is smaller.
    """
    for ours, theirs in zip(jax.tree.leaves(actual), jax.tree.leaves(expected), strict=True):
        assert jnp.shape(ours) == jnp.shape(theirs)
        a, b = (np.asarray(each).astype(np.float64) for each in (ours, theirs))
        largest = np.max(np.abs(b), initial=1.0, where=np.isfinite(b))
        np.testing.assert_allclose(a, b, rtol=rtol, atol=atol + of_largest * largest)


def assert_same_bits(actual: Any, expected: Any) -> None:
    """Equal trees: the same structure, dtypes, shapes and bits."""
    assert jax.tree.structure(actual) == jax.tree.structure(expected)
    for ours, theirs in zip(jax.tree.leaves(actual), jax.tree.leaves(expected), strict=True):
        a, b = np.asarray(ours), np.asarray(theirs)
        assert (a.dtype, a.shape) == (b.dtype, b.shape)
        assert a.tobytes() == b.tobytes()
