"""Gathers, scatters and dynamic slices, with indices in and out of range."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jax import lax

from tests.ipu.lowering.arrays import DTYPES, numbers
from tests.ipu.lowering.checks import check, plan_of

ROWS = np.array([3, 0, -1, 7, -9, 3, 2], np.int32)  # of 5


def test_modes_of_indices_equal_cpu():
    """What they do in all their generality is drawn by tests/ipu/device/test_indexing.py."""
    x, updates = numbers(np.float32, (5, 4, 3)), numbers(np.float32, (7, 4, 3), 1)
    check(
        lambda x, i, u: {
            "clip": jnp.take(x, i, axis=1, mode="clip"),
            "fill": jnp.take(x, i, axis=0, mode="fill", fill_value=1),
            "along": jnp.take_along_axis(x[:, :, 0], i[:5, None], axis=1),
            "narrow": x[i.astype(jnp.uint8)],
            "set": x.at[i.at[5].set(4)].set(u, mode="drop"),
            "clipped": x.at[i[:2]].set(u[:2], mode="clip"),
        },
        x,
        ROWS,
        updates,
    )


@given(st.data())
def test_windows_equal_cpu(data):
    shape = tuple(data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=3)))
    sizes = tuple(data.draw(st.integers(1, n)) for n in shape)
    start = st.integers(-2, 5) | st.sampled_from((-(2**31), -1, 2**31 - 1))
    starts = [np.int32(data.draw(start)) for _ in shape]
    dtype = data.draw(st.sampled_from(DTYPES))
    x, update = numbers(dtype, shape), numbers(dtype, sizes, 1)
    check(
        lambda x, u, *s: (lax.dynamic_slice(x, s, sizes), lax.dynamic_update_slice(x, u, s)),
        x,
        update,
        *starts,
    )
    check(
        lambda x, u: (lax.dynamic_slice(x, starts, sizes), lax.dynamic_update_slice(x, u, starts)), x, update
    )


def test_segment_sums_and_one_hots_equal_cpu():
    x, i = numbers(np.float32, (7,)), np.array([0, 2, 1, 2, 9, -1, 0], np.int32)
    check(lambda x, i: (jax.ops.segment_sum(x, i, 4), jnp.bincount(i, length=4), jax.nn.one_hot(i, 4)), x, i)


def test_empty_updates_change_nothing():
    x = numbers(np.float32, (4, 3))
    check(
        lambda x: (x.at[jnp.zeros((0,), jnp.int32)].add(1.0), x[jnp.zeros((0,), jnp.int32)], x[:0].sum(0)), x
    )


def test_slices_without_elements_equal_cpu():
    x, i = np.ones((4, 0), np.float32), np.array([1, 0], np.int32)
    check(lambda x, i: lax.dynamic_slice(x, i, (4, 0)), x, i)
    check(lambda x, i: lax.dynamic_slice(x, i, (0, 3)), numbers(np.float32, (4, 3)), i)


def test_slice_at_a_constant_is_a_slice():
    plan = plan_of(lambda x: lax.dynamic_slice(x, (1, 0), (2, 3)), numbers(np.float32, (4, 3)))
    assert [instruction.op for instruction in plan.main.instructions] == ["slice"]


@pytest.mark.parametrize("rows", [5, 100])
def test_own_rows_are_batching_dimensions(rows):
    x, columns = numbers(np.float32, (rows, 7)), np.arange(rows * 3, dtype=np.int32).reshape(rows, 3) % 9

    def function(x, columns):
        own = jnp.arange(rows)[:, None]
        picked = x[own, columns]
        return picked, jnp.zeros_like(x).at[own, columns].add(picked, mode="drop")

    check(function, x, columns)
    instructions = {i.op: i for i in plan_of(function, x, columns).main.instructions}
    assert instructions["gather"].ints[1:5] == ((1,), (0,), (0,), (1,))
    assert instructions["scatter"].ints[1:5] == ((1,), (0,), (0,), (1,))


def test_own_rows_of_two_axes_are_batching_dimensions():
    x, columns = numbers(np.float32, (9, 8, 7)), np.arange(9 * 8 * 2, dtype=np.int32).reshape(9, 8, 2) % 9

    def function(x, columns):
        return x.at[jnp.arange(9)[:, None, None], jnp.arange(8)[:, None], columns].set(0.5)

    check(function, x, columns)
    (scatter,) = (i for i in plan_of(function, x, columns).main.instructions if i.op == "scatter")
    assert scatter.ints[1:5] == ((2,), (0, 1), (0, 1), (2,))


def test_rows_that_are_not_all_stay_indices():
    x, columns = numbers(np.float32, (80, 7)), np.zeros((70, 2), np.int32)
    check(lambda x, c: (x[jnp.arange(70)[:, None], c], x[jnp.arange(70)[::-1, None], c], x[c, c]), x, columns)


def test_starts_below_zero_are_counted_from_the_end_by_the_gather():
    x = numbers(np.float32, (5, 4))

    def function(x, i):
        other = jnp.where(i < 0, i + 2, i)  # not the end of a dimension
        return (
            x[i],
            x[i, i],
            lax.gather(
                x,
                other[:, None],
                lax.GatherDimensionNumbers((1,), (0,), (0,)),
                (1, 4),
                mode="clip",
            ),
        )

    check(function, x, ROWS)
    gathers = [i for i in plan_of(function, x, ROWS).main.instructions if i.op == "gather"]
    assert [gather.ints[7] for gather in gathers] == [(5,), (5, 4), (0,)]
