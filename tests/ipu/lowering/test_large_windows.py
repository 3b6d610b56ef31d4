"""Windows that are combined axis by axis: as on the CPU, in few steps."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jax import lax

from snnjax.ipu.lowering.rules.windows import SMALL_WINDOW
from tests.ipu.lowering.arrays import numbers
from tests.ipu.lowering.checks import check, equal, on_ipu, plan_of
from tests.ipu.lowering.test_by_function import after, last_largest
from tests.ipu.lowering.test_control_of_elements import greatest_divisor


@st.composite
def geometries(draw):
    """Windows over two dimensions, whose product of sizes is large, and a shape that holds some."""
    small, large = draw(st.integers(1, 9)), draw(st.integers(1, 90))
    window = (small, max(large, SMALL_WINDOW // small + 1))
    strides, holes, base = (draw(st.tuples(st.integers(1, top), st.integers(1, top))) for top in (4, 2, 2))
    strides = draw(st.sampled_from([strides, window]))
    padding = [(draw(st.integers(0, 3)), draw(st.integers(0, 3))) for _ in window]
    needed = [-(-(size - 1) * hole // gap) + 1 for size, hole, gap in zip(window, holes, base, strict=True)]
    shape = [n + draw(st.integers(0, 9)) for n in needed]
    return shape, {
        "window_dimensions": window,
        "window_strides": strides,
        "padding": padding,
        "base_dilation": base,
        "window_dilation": holes,
    }


@given(geometries(), st.sampled_from([np.int32, np.uint32, np.int8, np.bool_]))
def test_windows_of_integers_equal_cpu(geometry, dtype):
    shape, arguments = geometry
    x = numbers(dtype, shape)

    def pooled(x):
        if dtype == np.bool_:
            return lax.reduce_window(x, False, lax.bitwise_or, **arguments)
        low = np.iinfo(dtype).min
        return [
            lax.reduce_window(x, dtype(start), function, **arguments)
            for start, function in ((0, lax.add), (low, lax.max), (100, lax.min), (1, lax.mul))
        ]

    check(pooled, x)


@given(geometries())
def test_windows_of_numbers_equal_cpu(geometry):
    """Bit for bit, for no sum of eighths is rounded."""
    shape, arguments = geometry
    x = numbers(np.float32, shape)
    check(lambda x: lax.reduce_window(x, -jnp.inf, lax.max, **arguments), x, rtol=0, atol=0)
    check(lambda x: lax.reduce_window(x, np.float32(0), lax.add, **arguments), x, rtol=0, atol=0)


@pytest.mark.parametrize("dtype", [np.float16, jnp.bfloat16])
def test_sums_of_halves_are_rounded_once(dtype):
    x = numbers(dtype, (200, 3))

    def pooled(x):
        return [
            lax.reduce_window(x, np.zeros((), x.dtype), lax.add, (90, 1), strides, "SAME")
            for strides in ((7, 1), (90, 1))
        ]

    wide = on_ipu(pooled, x.astype(np.float32))
    equal(on_ipu(pooled, x), [each.astype(dtype) for each in wide], rtol=0, atol=0)


def test_functions_keep_the_order():
    x, y = np.sign(numbers(np.float32, (3, 150)) + 1 / 16), numbers(np.float32, (3, 150), 1)
    arguments = (2, 100), (1, 7), "VALID"

    def pooled(x, y):
        return lax.reduce_window((x, y), (np.float32(1), np.float32(0)), after, *arguments)

    def places(x):
        counted = lax.broadcasted_iota(np.int32, x.shape, 1)
        return lax.reduce_window((jnp.round(x), -counted), (-jnp.inf, 0), last_largest, *arguments)

    check(pooled, x, y, rtol=0, atol=0)
    check(places, y, rtol=0, atol=0)


def test_functions_with_loops():
    x = 6 * np.random.default_rng(0).integers(1, 100, 200).astype(np.int32)
    results = on_ipu(lambda x: lax.reduce_window(x, np.int32(0), greatest_divisor, (70,), (9,), "VALID"), x)
    equal(results, np.gcd.reduce(np.lib.stride_tricks.sliding_window_view(x, 70)[::9], axis=1))


def test_forward_derivatives_equal_cpu():
    x = numbers(np.float32, (12, 15)) + np.arange(180, dtype=np.float32).reshape(12, 15) % 31
    pool = lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (9, 9), (1, 2), "SAME")  # noqa: E731
    check(lambda x: jax.jvp(pool, (x,), (2 * x,)), x)


def test_complex_numbers_equal_cpu():
    def pooled(x, y):
        summed = lax.reduce_window(lax.complex(x, y), np.complex64(1), lax.add, (9, 9), (2, 9), "SAME")
        return jnp.real(summed), jnp.imag(summed)

    check(pooled, *(numbers(np.float32, (20, 20), seed) for seed in (0, 1)), rtol=0, atol=0)


@pytest.mark.parametrize("size", [65, 127, 1000])
def test_steps_are_twice_as_many_as_the_size_has_bits(size):
    plan = plan_of(
        lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (size,), (1,), "VALID"), np.ones(2000, np.float32)
    )
    ops = [each.op for each in plan.main.instructions]
    assert ops.count("elementwise") < 2 * size.bit_length()


def test_windows_side_by_side_are_one_reduction():
    plan = plan_of(
        lambda x: lax.reduce_window(x, 0.0, lax.add, (1, 16, 16, 1), (1, 16, 16, 1), "VALID"),
        np.ones((2, 40, 32, 5), np.float32),
    )
    assert [each.op for each in plan.main.instructions if each.op in ("elementwise", "reduce")] == ["reduce"]
