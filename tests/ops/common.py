"""Code shared by the property tests: the float leaves of arguments and results, losses, comparisons."""

import functools
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.extend.core import jaxprs_in_params
from jax.test_util import check_vjp

from tests.cases import CASES, OPS, Case
from tests.numbers import array

# Tests compile far more than they compute.
jit = functools.partial(jax.jit, compiler_options={"xla_backend_optimization_level": 0})
# Central differences in float64: the error is about STEP^2 times a third derivative (slope^2 = 9 of the surrogate,
# a few steps deep) plus 1e-16 / STEP.
STEP, GRADIENT_TOLERANCE = 1e-5, 1e-6
each_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
# For properties that do not depend on the implementation.
each_op = pytest.mark.parametrize("case", OPS, ids=lambda case: case.id)


def is_float(leaf) -> bool:
    return jnp.issubdtype(jax.typeof(leaf).dtype, jnp.floating)


def float_leaves(tree) -> list[Any]:
    return [leaf for leaf in jax.tree.leaves(tree) if is_float(leaf)]


def of_floats(
    function: Callable[..., Any], arguments: tuple[Any, ...]
) -> tuple[Callable[..., Any], list[Any]]:
    """`function` from the float leaves of its arguments to the float leaves of its results, and those arguments."""
    leaves, tree = jax.tree.flatten(arguments)
    places = [place for place, leaf in enumerate(leaves) if is_float(leaf)]

    def wrapped(floats: list[Any]) -> list[Any]:
        filled = list(leaves)
        for place, value in zip(places, floats, strict=True):
            filled[place] = value
        return float_leaves(function(*jax.tree.unflatten(tree, filled)))

    return wrapped, [leaves[place] for place in places]


def weighted_sum(results) -> jax.Array:
    """A loss with a different weight for every float entry of `results`, in float32 or wider."""
    total = 0.0
    for leaf in float_leaves(results):
        wide = leaf.astype(jnp.float32) if leaf.dtype.itemsize < 4 else leaf
        weights = jnp.cos(jnp.arange(wide.size, dtype=wide.dtype)).reshape(wide.shape)
        total = total + jnp.sum(weights * wide).astype(jnp.float32)
    return total


def with_gradient(function: Callable[..., Any]) -> Callable[..., Any]:
    """The float results, and the gradients of their `weighted_sum` with respect to the float leaves of the
    arguments."""

    def of(*arguments) -> tuple[list[Any], list[Any]]:
        wrapped, floats = of_floats(function, arguments)

        def loss(leaves: list[Any]) -> tuple[jax.Array, list[Any]]:
            values = wrapped(leaves)
            return weighted_sum(values), values

        gradients, values = jax.grad(loss, has_aux=True)(floats)
        return values, gradients

    return of


def check_gradient(function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    """Compare the gradients with respect to all float leaves with finite differences, in float64."""
    wrapped, floats = of_floats(function, arguments)
    forward = jit(wrapped)
    pull_back = jit(lambda leaves, g: jax.vjp(wrapped, leaves)[1](g))
    with_pull_back = lambda leaves: (forward(leaves), functools.partial(pull_back, leaves))  # noqa: E731
    check_vjp(forward, with_pull_back, (floats,), atol=GRADIENT_TOLERANCE, rtol=GRADIENT_TOLERANCE, eps=STEP)


def generic(tree, seed: int = 0):
    """`tree` in float64, moved off the dyadic grid so that no membrane meets a threshold within a step."""
    rng = np.random.default_rng(seed)

    def move(leaf):
        return (
            jnp.asarray(leaf, jnp.float64) + rng.uniform(-0.02, 0.02, leaf.shape) if is_float(leaf) else leaf
        )

    return jax.tree.map(move, tree)


def stack(trees: list[Any]):
    return jax.tree.map(lambda *leaves: array(np.stack(leaves), leaves[0].dtype), *trees)


def pick(tree, index: int):
    return jax.tree.map(lambda leaf: array(np.asarray(leaf)[index], leaf.dtype), tree)


def draws(case: Case, count: int, seed: int = 0) -> list[tuple[Any, ...]]:
    """`count` independent sets of arguments."""
    return [case.arguments(np.random.default_rng(seed + number)) for number in range(count)]


@functools.cache
def compiled(case: Case) -> Callable[..., Any]:
    """The op's values and gradients, compiled once for all tests of a file."""
    return jit(with_gradient(case.function))


def equations(jaxpr) -> Iterator[Any]:
    """The equations of a jaxpr and of all jaxprs within it."""
    for equation in jaxpr.eqns:
        yield equation
        for inner in jaxprs_in_params(equation.params):
            yield from equations(inner)
