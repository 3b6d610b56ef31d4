"""Operations that move elements."""

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jax import lax

from tests.ipu.lowering.arrays import DTYPES, numbers, seeds, shapes
from tests.ipu.lowering.checks import check, plan_of

dtypes = pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: np.dtype(dtype).name)


@given(shapes, st.sampled_from(DTYPES), st.data())
def test_views_equal_cpu(shape, dtype, data):
    x = numbers(dtype, shape)
    permutation = data.draw(st.permutations(range(len(shape))))
    dims = data.draw(st.sets(st.integers(0, max(len(shape) - 1, 0)), max_size=len(shape)))
    starts = [data.draw(st.integers(0, n)) for n in shape]
    limits = [data.draw(st.integers(start, n)) for start, n in zip(starts, shape, strict=True)]
    strides = [data.draw(st.integers(1, 3)) for _ in shape]
    check(
        lambda x: (
            lax.transpose(x, permutation),
            lax.rev(x, sorted(dims)),
            lax.slice(x, starts, limits, strides),
            x.reshape(-1),
            lax.broadcast_in_dim(x, (3, *shape, 2), range(1, len(shape) + 1)),
            jnp.concatenate([x[None], x[None]]),
        ),
        x,
    )


@given(st.lists(st.tuples(st.integers(0, 4), *[st.integers(-2, 3)] * 2, st.integers(0, 2)), min_size=1, max_size=3),
       st.sampled_from(DTYPES))  # fmt: skip
def test_pad_equals_cpu(dims, dtype):
    shape = tuple(n for n, *_ in dims)
    spread = [n + max(n - 1, 0) * gap for n, _, _, gap in dims]
    config = [
        (max(low, -n), max(high, -(n + min(max(low, -n), 0))), gap)
        for n, (_, low, high, gap) in zip(spread, dims, strict=True)
    ]
    check(lambda x, y: lax.pad(x, y, config), numbers(dtype, shape), numbers(dtype, ()))


@dtypes
def test_iota_equals_cpu(dtype):
    if dtype != np.bool_:
        check(
            lambda x: (x[None] + lax.iota(dtype, 100), lax.broadcasted_iota(dtype, (9, 11), 1)),
            numbers(dtype, ()),
        )
        check(lambda: (lax.broadcasted_iota(dtype, (5, 40), 0), jnp.arange(7, dtype=dtype)))


@given(seeds)
def test_shapes_in_a_row_equal_cpu(seed):
    x = numbers(np.float32, (2, 1, 3, 4), seed)
    check(lambda x: x.reshape(6, 4).T.reshape(2, 2, 6)[:, None].transpose(3, 1, 0, 2).squeeze(1).sum(0), x)
    check(lambda x: jnp.broadcast_to(x.reshape(2, 3, 4)[:, :, :1], (2, 3, 4)) + x[:, 0], x)


@dtypes
def test_constants_are_kept(dtype):
    large = numbers(dtype, (50, 3))
    check(lambda x: (jnp.asarray(large), jnp.where(x, jnp.asarray(large), jnp.zeros_like(large))), large != 0)


def test_reshape_of_a_reshape_is_dropped():
    plan = plan_of(lambda x: x.reshape(6, 2).reshape(3, 4) + 1.0, np.ones((3, 4), np.float32))
    assert [instruction.op for instruction in plan.main.instructions] == ["elementwise"]


def test_equal_elements_are_one_constant():
    def add(x):
        twos = jnp.pad(jnp.full((20, 49), 2.0), ((0, 0), (1, 0)), constant_values=2.0)
        return x + jnp.concatenate([twos, twos])

    assert plan_of(add, np.ones((40, 50), np.float32)).constants == {}


def test_counts_are_written_by_the_device():
    plan = plan_of(lambda x: x + jnp.asarray(np.arange(1000, dtype=np.int32)), np.ones(1000, np.int32))
    assert [instruction.op for instruction in plan.main.instructions] == ["iota", "elementwise"]
