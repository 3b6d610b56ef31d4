"""Elementwise operations, as plans and as constants: each on the edges of each dtype."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jax import lax

from snnjax.ipu.lowering import folding
from snnjax.ipu.lowering.builder import MAX_CONSTANT
from tests.ipu.lowering.arrays import DTYPES, FLOATS, INTEGERS, SIGNED, edges, numbers, pairs, seeds, shapes
from tests.ipu.lowering.checks import check, equal, on_ipu

REAL = {
    "abs": lax.abs, "cbrt": lax.cbrt, "ceil": lax.ceil, "cos": lax.cos, "exp": lax.exp, "expm1": lax.expm1,
    "floor": lax.floor, "is_finite": lax.is_finite, "log": lax.log, "log1p": lax.log1p, "logistic": lax.logistic,
    "neg": lax.neg, "rsqrt": lax.rsqrt, "sign": lax.sign, "sin": lax.sin, "sqrt": lax.sqrt, "square": lax.square,
    "tan": lax.tan, "tanh": lax.tanh, "erf": lax.erf, "erf_inv": lax.erf_inv,
    "round": lambda x: lax.round(x, lax.RoundingMethod.TO_NEAREST_EVEN),
    "round_afz": lambda x: lax.round(x, lax.RoundingMethod.AWAY_FROM_ZERO),
    "integer_pow": lambda x: lax.integer_pow(x, 3), "asin": lax.asin, "sinh": lax.sinh, "lgamma": lax.lgamma,
}  # fmt: skip
WHOLE = {
    "neg": lax.neg, "not": lax.bitwise_not, "popcnt": lax.population_count,
    "clz": lax.clz, "integer_pow": lambda x: lax.integer_pow(x, 3),
}  # fmt: skip
OF_TWO_REALS = {
    "add": lax.add, "sub": lax.sub, "mul": lax.mul, "div": lax.div, "rem": lax.rem, "max": lax.max, "min": lax.min,
    "pow": lax.pow, "atan2": lax.atan2,
}  # fmt: skip
OF_TWO_INTEGERS = {
    "add": lax.add, "sub": lax.sub, "mul": lax.mul, "div": lax.div, "rem": lax.rem, "max": lax.max, "min": lax.min,
    "and": lax.bitwise_and, "or": lax.bitwise_or, "xor": lax.bitwise_xor, "shl": lax.shift_left,
    "shr": lax.shift_right_logical, "sar": lax.shift_right_arithmetic,
}  # fmt: skip
OF_TWO_FOLDED = {
    "add": lax.add, "subtract": lax.sub, "multiply": lax.mul, "divide": lax.div, "remainder": lax.rem,
    "maximum": lax.max, "minimum": lax.min, "and": lax.bitwise_and, "or": lax.bitwise_or, "xor": lax.bitwise_xor,
    "shift_left": lax.shift_left, "shift_right_logical": lax.shift_right_logical,
}  # fmt: skip
COMPARISONS = {"eq": lax.eq, "ne": lax.ne, "lt": lax.lt, "le": lax.le, "gt": lax.gt, "ge": lax.ge}


def check_both(function, *arguments, **tolerances):
    """With the arguments as parameters of the program, and as constants that are known when it is compiled."""
    expected = jax.jit(function)(*arguments)
    equal(on_ipu(function, *arguments), expected, **tolerances)
    for first in range(0, len(arguments[0]), MAX_CONSTANT):  # as many as are folded at once
        own = slice(first, first + MAX_CONSTANT)
        constants = [jnp.asarray(argument[own]) for argument in arguments]
        part = jax.tree.map(lambda x, own=own: x[own], expected)
        equal(on_ipu(lambda constants=constants: function(*constants)), part, **tolerances)


def all_of(functions):
    return lambda *arguments: {name: function(*arguments) for name, function in functions.items()}


of_reals = pytest.mark.parametrize("dtype", FLOATS, ids=lambda dtype: np.dtype(dtype).name)
of_integers = pytest.mark.parametrize("dtype", INTEGERS, ids=lambda dtype: np.dtype(dtype).name)
of_all = pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: np.dtype(dtype).name)


@of_reals
def test_functions_of_reals_equal_cpu(dtype):
    check_both(all_of(REAL), edges(dtype), rtol=1e-5)


@of_reals
def test_precisions_are_reduced_as_on_cpu(dtype):
    """Random bits: numbers of every size, those below the smallest normal one among them."""
    bits = np.random.default_rng(0).integers(0, 2**32, 4000, np.uint32)
    x = bits.astype(f"u{np.dtype(dtype).itemsize}").view(dtype)
    kept = [(5, 10), (8, 7), (5, 2), (4, 3), (8, 10), (5, 23), (1, 3), (8, 1)]
    results = on_ipu(lambda x: [lax.reduce_precision(x, *each) for each in kept], x)
    for each, result in zip(kept, results, strict=True):
        expected = np.asarray(jax.jit(lax.reduce_precision, static_argnums=(1, 2))(x, *each))
        is_nan = np.isnan(expected.astype(np.float32))
        np.testing.assert_array_equal(np.isnan(result.astype(np.float32)), is_nan, err_msg=str(each))
        np.testing.assert_array_equal(bits_of(result[~is_nan]), bits_of(expected[~is_nan]), err_msg=str(each))


def bits_of(x):
    return x.view(f"u{x.dtype.itemsize}")


@of_reals
def test_subnormal_numbers_are_kept(dtype: type) -> None:
    """Also where constants are folded, on a thread of XLA's, which takes them for 0. Their bits count like integers."""
    bits = np.arange(2, 2 + 2 * MAX_CONSTANT, 2).astype(f"u{np.dtype(dtype).itemsize}")

    def results(x: jax.Array) -> tuple[jax.Array, ...]:
        return lax.add(x, x), lax.mul(x, dtype(0.5)), lax.neg(lax.neg(x)), lax.add(x, dtype(1))

    x = bits.view(dtype)
    for found in (on_ipu(results, x), on_ipu(lambda: results(jnp.asarray(x)))):
        *exact, rounded = found
        for result, expected in zip(exact, (2 * bits, bits // 2, bits), strict=True):
            np.testing.assert_array_equal(bits_of(result), expected)
        np.testing.assert_array_equal(rounded, np.ones_like(x))


@of_integers
def test_functions_of_integers_equal_cpu(dtype):
    signed = {"abs": lax.abs, "sign": lax.sign} if dtype in SIGNED else {"sign": lax.sign}
    check_both(all_of(WHOLE | signed), edges(dtype))


@of_reals
def test_functions_of_two_reals_equal_cpu(dtype):
    check_both(all_of(OF_TWO_REALS), *pairs(dtype), rtol=1e-5)


def test_functions_that_jax_makes_of_others_equal_cpu():
    functions = (jnp.hypot, jnp.nextafter, jnp.fmod, jnp.remainder, lambda x, _: (jnp.trunc(x), jnp.isnan(x)))
    check(lambda x, y: [f(x, y) for f in functions], *pairs(np.float32), rtol=1e-5)


@of_integers
def test_functions_of_two_integers_equal_cpu(dtype):
    check_both(all_of(OF_TWO_INTEGERS), *pairs(dtype))


@of_all
def test_comparisons_equal_cpu(dtype):
    check_both(all_of(COMPARISONS), *pairs(dtype))


def test_operations_of_bools_equal_cpu():
    functions = (lax.bitwise_and, lax.bitwise_or, lax.bitwise_xor, lax.max, lax.min)
    check_both(lambda x, y: [f(x, y) for f in functions] + [~x, x.astype(jnp.float32)], *pairs(bool))


@of_all
def test_conversions_equal_cpu(dtype):
    values = edges(dtype)
    if np.dtype(dtype).kind in "fV":
        values = np.concatenate([values, np.array([300.0, -300.0, 60000.0, -6e4], dtype)])
    check_both(lambda x: {np.dtype(other).name: x.astype(other) for other in DTYPES}, values)


@pytest.mark.parametrize(
    "dtype, other",
    [
        (np.float32, np.int32),
        (np.float32, np.uint32),
        (np.int32, np.uint32),
        (np.float16, np.uint16),
        (jnp.bfloat16, np.int16),
        (np.int8, np.uint8),
    ],
)
def test_bit_casts_equal_cpu(dtype, other):
    check_both(lambda x: lax.bitcast_convert_type(x, other), edges(dtype)[:-1])
    check_both(lambda x: lax.bitcast_convert_type(x, dtype) + 0, numbers(other, (7,)) + np.asarray(3, other))


@pytest.mark.parametrize(
    "wide, narrow",
    [
        (np.float32, np.uint8),
        (np.uint32, np.int16),
        (np.int32, jnp.bfloat16),
        (np.float16, np.int8),
        (jnp.bfloat16, np.uint8),
    ],
)
def test_bit_casts_between_sizes_equal_cpu(wide, narrow):
    """Into a new last dimension, the lowest bits first, and back; of one number too."""
    x = edges(wide)[:-1]
    check_both(lambda x: lax.bitcast_convert_type(x, narrow), x)
    check_both(lambda x: lax.bitcast_convert_type(x[0], narrow), x)
    ratio = np.dtype(wide).itemsize // np.dtype(narrow).itemsize
    parts = numbers(narrow, (3, 5, ratio))
    check_both(lambda x: lax.bitcast_convert_type(x.reshape(parts.shape), wide), parts)


@of_all
def test_select_and_clamp_equal_cpu(dtype):
    x, y = pairs(dtype)
    condition = np.arange(x.size) % 3 == 0
    check_both(lambda c, a, b: (jnp.where(c, a, b), lax.select_n(c, a, b)), condition, x, y)
    if dtype != np.bool_:
        check_both(lambda a: lax.clamp(jnp.asarray(1, dtype), a, jnp.asarray(9, dtype)), x)
        check(lambda low, a: lax.clamp(low, a, jnp.asarray(9, dtype)), np.asarray(2, dtype), x)


@given(shapes, st.sampled_from(DTYPES), seeds)
def test_chain_of_any_shape_equals_cpu(shape, dtype, seed):
    x, y = numbers(dtype, shape, seed), numbers(dtype, shape, seed + 1)

    def chain(x, y):
        z = jnp.where(x > y, x, y)
        return z, (z == x), z.astype(jnp.float32) * 2.5 + jnp.sum(y.astype(jnp.float32))

    check(chain, x, y)


@given(st.integers(1, 4), st.integers(1, 4), seeds)
def test_broadcasts_in_chains_equal_cpu(rows, columns, seed):
    x, row, one = (numbers(np.float32, shape, seed) for shape in ((rows, columns), (columns,), ()))

    def chain(x, row, one):
        centred = (x - row[None]) * one + jnp.full_like(x, 3.0)
        return centred / (1.0 + jnp.abs(centred)), centred.T * one

    check(chain, x, row, one)


def test_minus_zero_is_kept():
    (result,) = on_ipu(lambda x: (x - 0.0) * 1.0, np.array([-0.0, 0.0], np.float32))
    assert np.signbit(result).tolist() == [True, False]
    (result,) = on_ipu(lambda x: x + 0.0, np.array([-0.0, 0.0], np.float32))
    assert np.signbit(result).tolist() == [False, False]


def test_signed_edges_divide_without_an_exception():
    for dtype in SIGNED:
        limits = np.iinfo(dtype)
        x = np.array([limits.min, limits.min, 5], dtype)
        check(lax.div, x, np.array([-1, 1, 0], dtype))


def extremes(dtype):
    """More numbers at the edges of an integer dtype than pairs of them fit in a constant."""
    limits = np.iinfo(dtype)
    bits = limits.bits
    near = {
        limits.min,
        limits.min + 1,
        limits.min // 2,
        limits.min // 3,
        limits.max,
        limits.max - 1,
        limits.max // 3,
    }
    signed = {-1, -2, -3, -7, -bits} if limits.min < 0 else set()
    return np.array(sorted(near | signed | {0, 1, 2, 3, 7, bits - 1, bits, bits + 1}), dtype)


# Those of 64 bits, which an IPU has no registers for, may only be constants.
of_every_width = pytest.mark.parametrize(
    "dtype", (*INTEGERS, np.int64, np.uint64), ids=lambda d: np.dtype(d).name
)


@of_every_width
def test_folded_operations_of_extremes_equal_cpu(dtype):
    values = extremes(dtype)
    x, y = np.repeat(values, values.size), np.tile(values, values.size)
    with jax.enable_x64(True), np.errstate(all="ignore"):
        expected = jax.jit(all_of(OF_TWO_FOLDED))(x, y)
        folded = [folding._FUNCTIONS[name](x, y) for name in expected]
    equal(folded, expected)


@of_every_width
def test_folded_conversions_of_extremes_equal_cpu(dtype):
    limits = [
        float(edge) * by for edge in (2**7, 2**8, 2**15, 2**16, 2**31, 2**32, 2**63, 2**64) for by in (1, -1)
    ]
    with jax.enable_x64(True), np.errstate(all="ignore"):
        for source in (np.float64, np.float32, np.float16, jnp.bfloat16):
            edges = np.array([*limits, *np.nextafter(limits, 0), np.inf, -np.inf, np.nan, 0.5, -0.5]).astype(
                source
            )
            expected = np.asarray(jax.jit(lambda x: lax.convert_element_type(x, dtype))(edges))
            np.testing.assert_array_equal(folding._convert(edges, np.dtype(dtype)), expected)
        for source in (*INTEGERS, np.int64, np.uint64):
            expected = np.asarray(jax.jit(lambda x: lax.convert_element_type(x, dtype))(extremes(source)))
            np.testing.assert_array_equal(folding._convert(extremes(source), np.dtype(dtype)), expected)


def test_zeros_of_both_signs_are_not_one_number():
    """Narrowed from more elements than a constant may have, unless all are alike."""
    with jax.enable_x64(True):
        wide = np.where(np.arange(100) % 2 == 0, -0.0, 0.0)
        (result,) = on_ipu(lambda: lax.convert_element_type(jnp.asarray(wide), np.float32))
    np.testing.assert_array_equal(np.signbit(result), np.signbit(wide))
