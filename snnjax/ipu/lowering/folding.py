"""Constant folding: operations on constants are evaluated in NumPy at compile time.

It applies to small results, to equal elements, and to types without registers on an IPU: threefry counts in uint64.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from snnjax.ipu.lowering import views
from snnjax.ipu.lowering.builder import MAX_CONSTANT, is_small
from snnjax.ipu.lowering.operation import Operation
from snnjax.ipu.lowering.plan import is_splat
from snnjax.ipu.lowering.types import WIDE, ArrayType, numpy_dtype

_COMPARISONS = {
    "EQ": np.equal,
    "NE": np.not_equal,
    "LT": np.less,
    "LE": np.less_equal,
    "GT": np.greater,
    "GE": np.greater_equal,
}


def _shift(function: Callable[..., Any]) -> Callable[..., Any]:
    """A shift that yields 0 if it shifts every bit out."""

    def shifted(x: np.ndarray, by: np.ndarray) -> np.ndarray:
        unsigned = np.dtype(f"u{x.dtype.itemsize}")
        distance, width = by.view(unsigned), unsigned.itemsize * 8
        kept = function(x.view(unsigned), np.minimum(distance, width - 1).astype(unsigned))
        return np.where(distance < width, kept, 0).astype(unsigned).view(x.dtype)

    return shifted


def _divide(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Towards zero as in XLA: an integer divided by 0 has all bits set, and the least one divided by -1 is itself."""
    if x.dtype.kind not in "iu":
        return x / y
    by = np.where(y == 0, y.dtype.type(1), y)
    rounded = x // by  # down
    quotient = rounded + ((x % by != 0) & ((x < 0) != (by < 0))).astype(x.dtype)
    return np.where(y == 0, ~np.zeros_like(x), quotient)


def _remainder(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """With the sign of `x`; of an integer divided by 0, the integer."""
    return np.fmod(x, y) if x.dtype.kind not in "iu" else np.where(y == 0, x, np.fmod(x, y))


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "abs": np.abs,
    "add": lambda x, y: x | y if x.dtype == np.bool_ else x + y,
    "and": np.bitwise_and,
    "ceil": np.ceil,
    "clamp": lambda low, x, high: np.minimum(np.maximum(x, low), high),
    "cosine": np.cos,
    "divide": _divide,
    "exponential": np.exp,
    "exponential_minus_one": np.expm1,
    "floor": np.floor,
    "is_finite": np.isfinite,
    "log": np.log,
    "log_plus_one": np.log1p,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "multiply": lambda x, y: x & y if x.dtype == np.bool_ else x * y,
    "negate": np.negative,
    "not": np.invert,
    "or": np.bitwise_or,
    "remainder": _remainder,
    "rsqrt": lambda x: x.dtype.type(1) / np.sqrt(x),
    "select": lambda condition, x, y: np.where(condition, x, y),
    "shift_left": _shift(np.left_shift),
    "shift_right_logical": _shift(np.right_shift),
    "sine": np.sin,
    "sqrt": np.sqrt,
    "subtract": np.subtract,
    "tanh": np.tanh,
    "xor": np.bitwise_xor,
}


def _convert(x: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Convert as XLA does: towards zero, saturating, NaN to 0."""
    if dtype == np.bool_:
        return x != 0
    if x.dtype.kind in "fV" and dtype.kind in "iu":
        limits = np.iinfo(dtype)
        number = x.astype(np.float64)
        low, high = number <= limits.min, number >= float(limits.max + 1)  # powers of two, exact in float64
        inside = np.where(low | high | np.isnan(number), 0, number).astype(dtype)
        return np.where(low, dtype.type(limits.min), np.where(high, dtype.type(limits.max), inside))
    return x.astype(dtype)


def total_order(x: np.ndarray) -> np.ndarray:
    """Integers that sort like floating-point numbers in the total order of IEEE 754."""
    if x.dtype.kind in "iub":
        return x
    bits = x.view(np.dtype(f"i{x.dtype.itemsize}"))
    return np.where(bits < 0, bits ^ np.iinfo(bits.dtype).max, bits)


def _function(operation: Operation) -> Callable[..., Any] | None:
    """The NumPy form of an elementwise operation."""
    dtype = numpy_dtype(operation.types[0].dtype)
    match operation.name.removeprefix("stablehlo."):
        case "compare":
            compared = _COMPARISONS[operation.enumeration("comparison_direction")]
            if operation.enumeration("compare_type") != "TOTALORDER":
                return compared
            return lambda x, y: compared(total_order(x), total_order(y))
        case "convert":
            return lambda x: _convert(x, dtype)
        case "bitcast_convert" if operation.input_types()[0].shape == operation.types[0].shape:
            return lambda x: x.view(dtype)
        case name:
            return _FUNCTIONS.get(name)


def fold(operation: Operation) -> list[int] | None:
    """The results of an operation, if it is elementwise, its operands are constants, and folding it is worthwhile."""
    builder = operation.builder
    arrays = [builder.constants[value] for value in operation.inputs if value in builder.constants]
    if not arrays or len(arrays) != len(operation.inputs) or len(operation.types) != 1:
        return None
    (type_,) = operation.types
    types = (*operation.input_types(), type_)
    splat = all(map(is_splat, arrays))
    if not splat and not is_small(type_.size, *(each.dtype for each in types)):
        return None
    function = _function(operation)
    if function is None:
        return None
    return [views.constant(builder, _apply(function, arrays, type_, splat))]


def _apply(
    function: Callable[..., Any], arrays: Sequence[np.ndarray], type_: ArrayType, splat: bool
) -> np.ndarray:
    if splat:
        arrays = [array[(0,) * array.ndim].reshape(1) for array in arrays]
    with np.errstate(all="ignore"):
        result = np.asarray(function(*arrays)).astype(numpy_dtype(type_.dtype))
    if splat:
        return np.broadcast_to(result.reshape(()), type_.shape)
    if type_.dtype not in WIDE and result.size > MAX_CONSTANT and _is_uniform(result):
        return np.broadcast_to(result.flat[0], type_.shape)
    return result


def _is_uniform(array: np.ndarray) -> bool:
    """Whether all elements have the same bits: -0 is not 0."""
    bits = array.view(np.dtype(f"u{array.dtype.itemsize}"))
    return bool(np.all(bits == bits.flat[0]))
