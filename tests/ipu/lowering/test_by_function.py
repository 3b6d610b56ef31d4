"""Reductions, windows and scatters by functions: what is associative, and does not commute, tells the order."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from tests.ipu.lowering.arrays import numbers
from tests.ipu.lowering.checks import check, plan_of


def either(a, b):
    """1 - (1 - a)(1 - b)."""
    return a + b - a * b


def after(x, y):
    """``a t + b`` after another of these."""
    return x[0] * y[0], x[1] * y[0] + y[1]


def last_largest(x, y):
    first = x[0] > y[0]
    return jnp.where(first, x[0], y[0]), jnp.where(first, x[1], y[1])


@pytest.mark.parametrize("axes", [(1,), (0, 2), (0, 1, 2), ()], ids=str)
def test_reductions_equal_cpu(axes):
    x = numbers(np.float32, (3, 7, 5)) / 8
    check(lambda x: lax.reduce(x, np.float32(0.5), either, axes), x, rtol=1e-4, atol=1e-4)


def test_reductions_of_several_arrays_keep_the_order():
    x = numbers(np.float32, (3, 7, 2)) / 4

    def both(x):
        places = lax.broadcasted_iota(np.int32, x.shape, 1)
        affine = lax.reduce((x, x + 1), (np.float32(1), np.float32(0)), after, (1,))
        return affine, lax.reduce((jnp.round(x), -places), (-jnp.inf, 0), last_largest, (1,))

    check(both, x, rtol=1e-4, atol=1e-4)


def test_reductions_take_as_many_steps_as_the_length_has_bits():
    plan = plan_of(lambda x: lax.reduce(x, np.float32(0), either, (0,)), numbers(np.float32, (32, 3)))
    assert sum(each.op == "elementwise" for each in plan.main.instructions) <= 6


def test_reductions_of_nothing_are_their_start():
    check(lambda x: lax.reduce(x, np.float32(3), either, (1,)), np.ones((2, 0), np.float32))


def test_windows_equal_cpu():
    x = numbers(np.float32, (3, 7, 5)) / 4

    def pooled(x):
        args = (1, 3, 2), (1, 2, 1)
        by_one = lax.reduce_window(x, -np.inf, jnp.logaddexp, *args, "SAME", window_dilation=(1, 2, 1))
        of_two = jax.jvp(lambda x: lax.reduce_window(x, -np.inf, lax.max, *args, "VALID"), (x,), (2 * x,))
        return by_one, of_two

    check(pooled, x, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("size", [(2, 1), (2, 7)])
@pytest.mark.parametrize("start", [0, 3])
def test_windows_leave_out_places_without_an_element(start, size):
    """A start that changes what it is combined with counts once for each window, and for none of its gaps."""
    x = numbers(np.float32, (4, 9)) / 4
    args = size, (1, 1), ((0, 3), (1, 2))

    def pooled(x):
        function = lambda x, y: (either(x[0], y[0]), x[1] + y[1])  # noqa: E731
        starts = np.float32(start), np.complex64(start)
        y, z = lax.reduce_window((x, lax.complex(x, 2 * x)), starts, function, *args, (2, 3))
        return y, z.real, z.imag

    check(pooled, x, rtol=1e-5, atol=1e-5)


def test_scatters_equal_cpu():
    y, i = numbers(np.float32, (6, 4)), np.array([1, 2, 1, -1, 9], np.int32)

    def applied(y, i):
        known = y.at[jnp.array([1, 2])].apply(jnp.sin), y.at[1].apply(jnp.sin)
        promised = y.at[i[2:]].apply(jnp.sin, unique_indices=True)
        return known, promised, y.at[i].apply(jnp.sin), y.at[i, i % 4].apply(jnp.cos)

    check(applied, y, i)
    check(
        jax.vmap(lambda y, i: y.at[i, :2].apply(jnp.sin)),
        numbers(np.float32, (2, 6, 4)),
        np.array([[0, 1, 0], [2, 2, -1]], np.int32),
    )


def test_scatters_without_twice_the_same_place_need_no_loop():
    y, i = numbers(np.float32, (6,)), np.array([1, 3], np.int32)

    def ops(function, *arguments):
        return {each.op for each in plan_of(function, *arguments).main.instructions}

    assert "repeat" not in ops(lambda y: y.at[jnp.array([1, 3])].apply(jnp.sin), y)
    assert "repeat" not in ops(lambda y, i: y.at[i].apply(jnp.sin, unique_indices=True), y, i)
    assert "repeat" in ops(lambda y, i: y.at[i].apply(jnp.sin), y, i)
