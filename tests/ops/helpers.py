"""What the property tests share: the float leaves of arguments and results, losses, comparisons."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.cases import CASES, Case

each_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)


def is_float(leaf: Any) -> bool:
    return jnp.issubdtype(jnp.asarray(leaf).dtype, jnp.floating)


def float_leaves(tree: Any) -> list[Any]:
    return [leaf for leaf in jax.tree.leaves(tree) if is_float(leaf)]


def of_floats(function: Callable[..., Any], arguments: tuple[Any, ...]) -> tuple[Callable[..., Any], list[Any]]:
    """`function` from the float leaves of its arguments to the float leaves of its results, and those arguments."""
    leaves, tree = jax.tree.flatten(arguments)
    places = [place for place, leaf in enumerate(leaves) if is_float(leaf)]

    def wrapped(floats: list[Any]) -> list[Any]:
        filled = list(leaves)
        for place, value in zip(places, floats, strict=True):
            filled[place] = value
        return float_leaves(function(*jax.tree.unflatten(tree, filled)))

    return wrapped, [leaves[place] for place in places]


def weighted_sum(results: Any) -> jax.Array:
    """A loss that sees every float entry of `results` with another weight, in float32 or wider."""
    total: Any = 0.0
    for leaf in float_leaves(results):
        wide = leaf.astype(jnp.float32) if leaf.dtype.itemsize < 4 else leaf
        weights = jnp.cos(jnp.arange(wide.size, dtype=wide.dtype)).reshape(wide.shape)
        total = total + jnp.sum(weights * wide).astype(jnp.float32)
    return total


def gradient(function: Callable[..., Any]) -> Callable[..., Any]:
    """The gradients of `weighted_sum` of the function with respect to the float leaves of its arguments."""

    def of(*arguments: Any) -> list[Any]:
        wrapped, floats = of_floats(function, arguments)
        return jax.grad(lambda leaves: weighted_sum(wrapped(leaves)))(floats)

    return of


def assert_same(actual: Any, expected: Any, rtol: float = 0.0, atol: float = 0.0) -> None:
    """Equal trees: structure aside, the same shapes, and values within the tolerances; 0 means to the bit."""
    ours, theirs = jax.tree.leaves(actual), jax.tree.leaves(expected)
    assert len(ours) == len(theirs)
    for a, b in zip(ours, theirs, strict=True):
        assert jnp.shape(a) == jnp.shape(b)
        wide = [np.asarray(x).astype(np.float64) for x in (a, b)]
        np.testing.assert_allclose(*wide, rtol=rtol, atol=atol)


def stack(trees: list[Any]) -> Any:
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *trees)


def pick(tree: Any, index: int) -> Any:
    return jax.tree.map(lambda leaf: leaf[index], tree)


def draws(case: Case, count: int, seed: int = 0) -> list[tuple[Any, ...]]:
    """`count` independent sets of arguments."""
    return [case.arguments(np.random.default_rng(seed + number)) for number in range(count)]
