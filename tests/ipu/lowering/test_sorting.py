"""Sorts: by one key and several, up and down, with payloads; and the largest of a row."""

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jax import lax

from tests.ipu.lowering.arrays import DTYPES, FLOATS, edges, numbers, pairs, seeds
from tests.ipu.lowering.checks import check, plan_of

dtypes = pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: np.dtype(dtype).name)


@dtypes
def test_sorts_equal_cpu(dtype):
    x = np.stack([numbers(dtype, (9,), seed) for seed in range(4)])
    check(
        lambda x: {
            "rows": jnp.sort(x, 1),
            "columns": jnp.sort(x, 0),
            "down": jnp.sort(x, 1, descending=True),
            "places": jnp.argsort(x, 1),
            "places down": jnp.argsort(x, 1, descending=True),
        },
        x,
    )


@pytest.mark.parametrize("dtype", FLOATS, ids=lambda dtype: np.dtype(dtype).name)
def test_sorts_of_edges_equal_cpu(dtype):
    x = np.concatenate([edges(dtype), -edges(dtype)])
    check(lambda x: (jnp.sort(x), jnp.argsort(x), lax.sort((x, jnp.arange(26)), num_keys=1)[1]), x)


def test_sorts_of_complex_numbers_equal_cpu():
    """By the real part, then by the imaginary one; also of edges, and with other arrays and keys."""
    x, y = (each[np.random.default_rng(0).permutation(each.size)] for each in pairs(np.float32))
    shape = (13, 13)

    def parts(z):
        return jnp.real(z), jnp.imag(z)

    def sorts(x, y):
        z = lax.complex(x, y)
        by_two = lax.sort((jnp.round(x[:9]), z[:9], y[:9]), num_keys=2)
        rows = jnp.sort(z.reshape(shape), 0, descending=True)
        return parts(jnp.sort(z)), jnp.argsort(z), parts(rows), parts(by_two[1]), by_two[2]

    check(sorts, x, y, rtol=0, atol=0)


@given(st.integers(1, 3), seeds)
def test_sorts_by_several_keys_equal_cpu(num_keys, seed):
    rng = np.random.default_rng(seed)
    arrays = (
        rng.integers(0, 3, (2, 12)).astype(np.int32),
        rng.integers(0, 3, (2, 12)).astype(np.float32),
        rng.integers(0, 2, (2, 12)).astype(bool),
        rng.integers(0, 99, (2, 12)).astype(np.uint8),
    )
    check(lambda *arrays: lax.sort(arrays, dimension=1, num_keys=num_keys), *arrays)


def test_keys_come_before_what_they_sort():
    def sorted_(x, y):
        return lax.sort((x, y), num_keys=2)

    plan = plan_of(sorted_, numbers(np.int32, (5,)), numbers(np.float32, (5,)))
    (sort,) = (instruction for instruction in plan.main.instructions if instruction.op == "sort")
    assert sort.texts == ("ascending", "ascending")
    assert sort.ints == ((0, 1),)


@dtypes
def test_largest_equal_cpu(dtype):
    if dtype != np.bool_:
        check(lambda x: (lax.top_k(x, 3), lax.top_k(x[0], 1)), numbers(dtype, (4, 9)))


def test_largest_of_edges_equal_cpu():
    check(lambda x: lax.top_k(x, 13), edges(np.float32))
    plan = plan_of(lambda x: lax.top_k(x, 2), edges(np.float32))
    assert [instruction.op for instruction in plan.main.instructions] == ["top_k"]


def test_functions_that_sort_equal_cpu():
    x = numbers(np.float32, (3, 10))
    check(lambda x: (jnp.median(x, 1), jnp.quantile(x, 0.3), jnp.lexsort((x[0], x[1]))), x)
    check(lambda x: (jnp.searchsorted(jnp.sort(x[0]), x[1]), jnp.unique(x, size=9)), x)
