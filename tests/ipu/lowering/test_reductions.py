"""Reductions over dimensions and windows, with and without the place of an extreme."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jax import lax

from tests.ipu.lowering.arrays import DTYPES, edges, numbers, shapes
from tests.ipu.lowering.checks import check, plan_of

dtypes = pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: np.dtype(dtype).name)


@given(shapes, st.sampled_from(DTYPES), st.data())
def test_reductions_equal_cpu(shape, dtype, data):
    axes = data.draw(st.sets(st.integers(0, max(len(shape) - 1, 0)), max_size=len(shape)))

    def all_kinds(x):
        axis = tuple(axes)
        results = {"any": jnp.any(x, axis), "all": jnp.all(x, axis)}
        if np.dtype(dtype).kind in "iub":
            bits = {"and": lax.reduce_and, "or": lax.reduce_or, "xor": lax.reduce_xor}
            results |= {name: f(x, axis) for name, f in bits.items()}
        if dtype == np.bool_:
            return results
        extremes = {"max": lax.reduce_max(x, axis), "min": lax.reduce_min(x, axis)}
        return (
            results
            | extremes
            | {"sum": lax.reduce_sum(x, axis), "prod": lax.reduce_prod(x[:2] if shape else x, axis)}
        )

    check(all_kinds, numbers(dtype, shape))


@dtypes
def test_reductions_of_edges_equal_cpu(dtype):
    x = edges(dtype)
    if dtype == np.bool_:
        check(lambda x: (jnp.any(x), jnp.all(x), lax.reduce_xor(x, (0,))), x)
    elif np.dtype(dtype).kind in "iu":
        check(
            lambda x: (
                lax.reduce_and(x, (0,)),
                lax.reduce_or(x, (0,)),
                lax.reduce_xor(x, (0,)),
                x.sum(),
                x.max(),
            ),
            x,
        )
    else:
        check(lambda x: (x.max(), x.min(), jnp.nanmax(x), x[:2].min(), x[:11].max(), x[:12].min()), x)


def test_reduction_from_another_start_equals_cpu():
    x = numbers(np.float32, (3, 4))
    check(lambda x: (lax.reduce(x, 2.0, lax.add, (0,)), lax.reduce(x, np.float32(1), lax.max, (0, 1))), x)
    check(lambda x, start: lax.reduce(x, start, lax.mul, (1,)), x, np.float32(0.5))


@given(st.lists(st.integers(1, 5), min_size=1, max_size=3).map(tuple), st.sampled_from(DTYPES), st.data())
def test_places_of_extremes_equal_cpu(shape, dtype, data):
    axis = data.draw(st.integers(0, len(shape) - 1))
    x = numbers(dtype, shape)
    if np.dtype(dtype).kind in "fV":
        x = np.where(data.draw(st.booleans()) & (x == x.reshape(-1)[0]), np.nan, x).astype(dtype)
    dtypes = jnp.int32, jnp.uint32, jnp.int16
    check(lambda x: [find(x, axis, own) for find in (lax.argmax, lax.argmin) for own in dtypes], x)


@given(shapes.filter(len), st.sampled_from(DTYPES[:-1]), st.booleans(), st.data())
def test_cumulative_reductions_equal_cpu(shape, dtype, reverse, data):
    axis = data.draw(st.integers(0, len(shape) - 1))
    functions = (lax.cumsum, lax.cumprod, lax.cummax, lax.cummin)
    check(lambda x: [function(x, axis, reverse) for function in functions], numbers(dtype, shape))


def test_cumulative_functions_equal_cpu():
    x = numbers(np.float32, (7,))
    check(lambda x: (lax.associative_scan(jnp.maximum, x), jnp.cumsum(x[:1])), x, rtol=1e-5)
    assert "cumulative" in [i.op for i in plan_of(jnp.cumsum, x).main.instructions]


@given(
    st.integers(1, 3),
    st.integers(1, 3),
    st.sampled_from(["SAME", "VALID"]),
    st.sampled_from([np.float32, np.int32]),
)
def test_pooling_equals_cpu(window, stride, padding, dtype):
    x = numbers(dtype, (6, 5))
    zero, low = (
        np.asarray(0, dtype),
        np.asarray(-np.inf if dtype == np.float32 else np.iinfo(dtype).min, dtype),
    )
    arguments = (window, window + 1), (stride, 1), padding
    check(
        lambda x: (
            lax.reduce_window(x, zero, lax.add, *arguments),
            lax.reduce_window(x, low, lax.max, *arguments),
        ),
        x,
    )


def test_pooling_from_another_start_equals_cpu():
    """Padding adds nothing to a window."""
    x = numbers(np.float32, (6, 5))
    check(lambda x: lax.reduce_window(x, 0.5, lax.add, (2, 3), (1, 2), "SAME", (2, 1)), x)
    check(lambda x: lax.reduce_window(x, np.float32(1), lax.max, (3, 3), (1, 2), "SAME"), x)


def test_pooling_with_dilations_equals_cpu():
    def pooled(x):
        return lax.reduce_window(x, 0.0, lax.add, (2, 3), (1, 2), ((1, 0), (2, 2)), (2, 1), (1, 2))

    check(pooled, numbers(np.float32, (4, 6)))
    check(jax.grad(lambda x: jnp.sum(pooled(x) ** 2)), numbers(np.float32, (4, 6)))
