"""The kernels of `spike_matmul` at sizes that reach all code: rows in place, packed and dense, by row and by neuron.

The table in `tests/cases.py` covers what does not depend on size.
"""

import functools
from typing import Any, NamedTuple

import chex
import hypothesis
import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from snnjax import SparseSpikes, spike_matmul
from tests.numbers import array, assert_close
from tests.ops.common import jit
from tests.ops.kernel_checks import needs_kernels
from tests.project.sampling import each_meeting

pytestmark = needs_kernels

BOTH = ("cpu", "reference")


class Product(NamedTuple):
    """The sizes of a product of lists."""

    rows: int
    neurons: int
    outputs: int
    capacity: int
    dtype: str = "float32"
    ids: str = "uint16"


# Beside the kernels' own thresholds: few and many rows, few and many uses of each row of the weights, sums over more
# neurons than one pass takes, outputs that fill no vector, one, and several tiles with a rest.
PRODUCTS = (
    Product(1, 300, 700, 40),
    Product(3, 1000, 33, 1000),
    Product(20, 2500, 70, 600, ids="int32"),
    Product(70, 40, 300, 12),
    Product(70, 40, 130, 40, ids="int16"),
    Product(200, 64, 1, 30),
    Product(600, 90, 17, 25),
    Product(1, 300, 700, 300, "bfloat16"),
    Product(9, 500, 40, 30, "bfloat16", "uint32"),
    Product(70, 40, 130, 40, "bfloat16", "int32"),
    Product(40, 1100, 3, 500, "bfloat16", "int32"),
    Product(0, 5, 3, 2),
    Product(4, 0, 3, 2, ids="int32"),
    Product(4, 5, 0, 2),
    Product(4, 5, 3, 0, "bfloat16"),
)
each_product = pytest.mark.parametrize("product", PRODUCTS, ids=lambda p: "-".join(map(str, p)))


def lists(rng: np.random.Generator, p: Product, density: float) -> tuple[jax.Array, jax.Array]:
    """Ids of which a share is used, some of them twice, and values of which some are 0 or all are 1."""
    ids = rng.integers(0, max(p.neurons, 1), (p.rows, p.capacity))
    outside = rng.choice([p.neurons, p.neurons + 1, 2**15 - 1], ids.shape)
    if p.ids.startswith("int"):
        outside = np.where(rng.random(ids.shape) < 0.5, -outside - 1, outside)
    ids = np.where(rng.random(ids.shape) < density, ids, outside)
    # Those of one neuron add up without rounding.
    values = rng.integers(-4, 5, ids.shape) / 4 if rng.random() < 0.5 else np.ones(ids.shape)
    return array(ids, p.ids), array(values, p.dtype)


def product_and_gradients(neurons: int, implementation: str):
    def of(ids, values, weights, g):
        count = jnp.zeros(ids.shape[:-1], jnp.int32)

        def function(values, weights):
            spikes = SparseSpikes(ids, values, count, count, 0 * count, neurons)
            return spike_matmul(spikes, weights, implementation=implementation)

        out, pull_back = jax.vjp(function, values, weights)
        return out, *pull_back(g)

    return of


@functools.cache
def compiled_product(neurons: int, implementation: str):
    return jit(product_and_gradients(neurons, implementation))


def exact(p: Product, ids, values, weights, g) -> list[tuple[np.ndarray, np.ndarray]]:
    """The results in float64, each with the sums of the absolute values of its terms."""
    ids, values, weights, g = (np.asarray(array).astype(np.float64) for array in (ids, values, weights, g))
    used = (ids >= 0) & (ids < p.neurons)
    where = np.where(used, ids, 0).astype(int)
    dense = np.zeros((2, p.rows, p.neurons + 1))
    row = np.arange(p.rows)[:, None]
    for form, entries in zip(dense, (values, np.abs(values)), strict=True):
        np.add.at(form, (row, np.where(used, where, p.neurons)), entries)
    each = []
    for spikes, own_weights, own_g in ((dense[0], weights, g), (dense[1], np.abs(weights), np.abs(g))):
        products = np.concatenate([own_g @ own_weights.T, np.zeros((p.rows, 1))], axis=1)
        d_values = products[row, np.where(used, where, p.neurons)]
        each.append((spikes[:, :-1] @ own_weights, d_values, spikes[:, :-1].T @ own_g))
    return list(zip(*each, strict=True))


@each_product
@hypothesis.given(seed=st.integers(0, 2**32 - 1), density=st.sampled_from([0.0, 0.02, 0.3, 1.0]))
@hypothesis.settings(max_examples=4)
def test_product_is_within_the_rounding_of_its_sums(product: Product, seed: int, density: float) -> None:
    """A float32 sum of n terms is within n 2^-24 of the sum of their absolute values, in whatever order."""
    rng, p = np.random.default_rng(seed), product
    ids, values = lists(rng, p, density)
    weights, g = (array(rng.normal(size=s), p.dtype) for s in ((p.neurons, p.outputs), (p.rows, p.outputs)))
    terms = max(p.rows, p.capacity, p.outputs) + 2
    rounding = {"float32": 2**-24, "bfloat16": 2**-8}[p.dtype]
    expected = exact(p, ids, values, weights, g)
    for implementation in BOTH:
        results = compiled_product(p.neurons, implementation)(ids, values, weights, g)
        for ours, (theirs, absolute) in zip(results, expected, strict=True):
            error = np.abs(np.asarray(ours).astype(np.float64) - theirs)
            assert np.all(error <= terms * 2**-24 * absolute + rounding * np.abs(theirs))


class Rows(NamedTuple):
    """The sizes of a product of rows."""

    rows: int
    neurons: int
    outputs: int
    dtype: str = "float32"


# As above: listed in place, packed and dense; several tasks of lists, which must not run into one another.
ROWS = (
    Rows(1, 300, 700),
    Rows(3, 1000, 33),
    Rows(200, 700, 40),
    Rows(70, 40, 130, "bfloat16"),
    Rows(0, 5, 3),
    Rows(4, 0, 3),
    Rows(4, 5, 0, "bfloat16"),
)


@functools.cache
def compiled_rows(implementation: str):
    def of(rows, weights, g):
        multiply = functools.partial(spike_matmul, implementation=implementation)
        out, pull_back = jax.vjp(multiply, rows, weights)
        return out, *pull_back(g)

    return jit(of)


@each_meeting(sizes=ROWS, density=[0.0, 0.02, 0.3, 1.0], values=["ones", "any", "ones and any"])
def test_product_of_rows_is_within_the_rounding_of_its_sums(sizes: Rows, density: float, values: str) -> None:
    rng = np.random.default_rng(0)

    def draw(*shape: int):
        return array(rng.normal(size=shape), sizes.dtype)

    weights, g = draw(sizes.neurons, sizes.outputs), draw(sizes.rows, sizes.outputs)
    entries = rng.integers(-4, 5, (sizes.rows, sizes.neurons)) / 4
    ones = {"ones": True, "any": False, "ones and any": np.arange(sizes.rows)[:, None] % 2 == 0}[values]
    spikes = np.where(rng.random(entries.shape) < density, np.where(ones, 1.0, entries), 0.0)
    own, w, own_g = (np.asarray(array).astype(np.float64) for array in (spikes, weights, g))
    pairs = ((own, w), (own_g, w.T), (own.T, own_g))
    rounding = {"float32": 2**-24, "bfloat16": 2**-8}[sizes.dtype]
    terms = max(sizes.rows, sizes.neurons, sizes.outputs) + 2
    for implementation in BOTH:
        results = compiled_rows(implementation)(jnp.asarray(spikes, sizes.dtype), weights, g)
        for ours, (left, right) in zip(results, pairs, strict=True):
            error = np.abs(np.asarray(ours).astype(np.float64) - left @ right)
            bound = terms * 2**-24 * (np.abs(left) @ np.abs(right)) + rounding * np.abs(left @ right)
            assert np.all(error <= bound)


def test_rows_of_zeros_meet_no_weight_that_is_not_finite() -> None:
    weights = jnp.ones((300, 40)).at[7].set(jnp.nan).at[9].set(jnp.inf)
    spikes = jnp.zeros((20, 300)).at[:, 5].set(1.0).at[3, 7].set(2.0).at[4, 9].set(-1.0)
    for implementation in BOTH:
        out = spike_matmul(spikes, weights, implementation=implementation)
        assert jnp.all(jnp.isnan(out[3])) and jnp.all(out[4] == -jnp.inf)
        assert jnp.all(jnp.delete(out, jnp.array([3, 4]), axis=0) == 1.0)


@each_product
def test_product_with_weights_that_are_not_finite(product: Product) -> None:
    """Infinities and NaNs reach the rows that list them, dense or not, and no others."""
    rng, p = np.random.default_rng(0), product._replace(ids="int32")
    ids = np.argsort(rng.random((p.rows, p.neurons)), axis=1)[:, : p.capacity]  # no id twice
    values = array(rng.choice([0, 1, -1, 2], ids.shape), p.dtype)
    weights = rng.choice([0.5, -1.0, 2.0], (p.neurons, p.outputs))
    holes = rng.random(weights.shape) < 0.01
    weights = array(np.where(holes, rng.choice([np.nan, np.inf, -np.inf], holes.shape), weights), p.dtype)
    g = array(rng.choice([0.5, -1.0, 2.0], (p.rows, p.outputs)), p.dtype)
    given = array(ids, jnp.int32), values, weights, g
    chex.assert_trees_all_equal(
        *(compiled_product(p.neurons, implementation)(*given) for implementation in BOTH), strict=True
    )


@pytest.mark.parametrize("mapped", [0, 1, 2, 3, None], ids=["ids", "values", "weights", "g", "all"])
def test_groups_are_products_of_their_own(mapped: int | None) -> None:
    """`vmap` over each argument: bit for bit what the kernel yields for one."""
    rng, p = np.random.default_rng(0), Product(20, 100, 50, 30, ids="int32")

    def draw() -> tuple[Any, ...]:
        shapes = (p.neurons, p.outputs), (p.rows, p.outputs)
        return *lists(rng, p, 0.7), *(array(rng.normal(size=s), jnp.float32) for s in shapes)

    sets = [draw() for _ in range(3)]
    axes = tuple(0 if mapped in (None, place) else None for place in range(4))
    stacked = [
        jnp.stack(arrays) if axis == 0 else arrays[0]
        for arrays, axis in zip(zip(*sets, strict=True), axes, strict=True)
    ]
    results = jit(jax.vmap(product_and_gradients(p.neurons, "cpu"), axes))(*stacked)
    for index, own in enumerate(sets):
        given = [a if axis == 0 else first for a, first, axis in zip(own, sets[0], axes, strict=True)]
        assert_close(
            jax.tree.map(lambda leaf, i=index: leaf[i], results),
            compiled_product(p.neurons, "cpu")(*given),
            of_largest=1e-5,
        )
