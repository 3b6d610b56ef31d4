"""What each operation of an elementwise program computes, on arrays of 32-bit slots (as the executor's README)."""

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np

F32, S32, U32 = np.float32, np.int32, np.uint32
REGISTERS = {"f32": F32, "s32": S32, "u32": U32, "bool": U32}
TYPES = {
    "bool": np.bool_, "s8": np.int8, "u8": np.uint8, "s16": np.int16, "u16": np.uint16, "s32": S32, "u32": U32,
    "f16": np.float16, "bf16": jnp.bfloat16, "f32": F32,
}  # fmt: skip


def load(array: np.ndarray, dtype: str) -> np.ndarray:
    """The slots of elements of a type."""
    assert array.dtype == TYPES[dtype], (array.dtype, dtype)
    if dtype in ("f16", "bf16", "f32"):
        return np.asarray(array.astype(F32)).view(U32)
    wide = S32 if dtype.startswith("s") else U32
    return np.asarray(array.astype(wide)).view(U32)


def store(slot: np.ndarray, dtype: str) -> np.ndarray:
    """The elements of a type in slots; they must be such elements already."""
    if dtype in ("f16", "bf16", "f32"):
        values = slot.view(F32)
    elif dtype == "bool":
        values = slot
        assert np.all(slot <= 1)
    else:
        values = slot.view(S32 if dtype.startswith("s") else U32)
    result = values.astype(TYPES[dtype])
    same = result.astype(values.dtype) == values
    assert np.all(same | (values != values)), f"not rounded to {dtype}"
    return result


def _round_afz(x: np.ndarray) -> np.ndarray:
    whole = np.trunc(x)
    return np.where(np.abs(x - whole) >= 0.5, whole + np.copysign(F32(1), x), whole).astype(F32)


def _logistic(x: np.ndarray) -> np.ndarray:
    return (1 / (1 + np.exp(-x.astype(np.float64)))).astype(F32)


def _erf(x: np.ndarray) -> np.ndarray:
    from math import erf

    return np.vectorize(erf, otypes=[F32])(x)


UNARY: dict[str, Callable[..., Any]] = {
    "abs": np.abs, "negate": np.negative, "sign": np.sign, "square": np.square,
    "ceil": np.ceil, "floor": np.floor, "round_nearest_even": np.rint, "round_nearest_afz": _round_afz,
    "trunc": np.trunc, "rsqrt": lambda x: F32(1) / np.sqrt(x), "sqrt": np.sqrt, "cbrt": np.cbrt,
    "exponential": np.exp, "exponential_minus_one": np.expm1, "log": np.log, "log_plus_one": np.log1p,
    "tanh": np.tanh, "logistic": _logistic, "sine": np.sin, "cosine": np.cos, "tan": np.tan, "erf": _erf,
    "is_finite": np.isfinite,
    "popcnt": np.bitwise_count,
    "count_leading_zeros": lambda x: 32 - np.ceil(np.log2(x.astype(np.float64) + 1)),
}  # fmt: skip


def _divide(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Towards zero; by 0 all bits are ones."""
    if x.dtype == F32:
        return x / y
    x64, y64 = x.astype(np.int64), y.astype(np.int64)
    quotient = np.sign(x64) * np.sign(y64) * (np.abs(x64) // np.where(y64 == 0, 1, np.abs(y64)))
    return np.where(y64 == 0, -1, quotient).astype(x.dtype)


def _remainder(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The sign is that of x; by 0 it is x."""
    if x.dtype == F32:
        return np.fmod(x, y)
    y64 = y.astype(np.int64)
    return np.where(y64 == 0, x, np.fmod(x.astype(np.int64), np.where(y64 == 0, 1, y64))).astype(x.dtype)


def _power(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Modulo 2^32; negative powers are 0, but for those of 1 and -1."""
    if x.dtype == F32:
        return np.power(x, y)
    result, base, left = np.ones_like(x), x.copy(), y.astype(np.int64)
    inverse = np.where(x == 1, 1, np.where((x.astype(np.int64) == -1), np.where(left % 2 == 0, 1, -1), 0))
    negative = left < 0
    left = np.where(negative, 0, left)
    while np.any(left):
        result = np.where(left & 1, result * base, result).astype(x.dtype)
        base, left = base * base, left >> 1
    return np.where(negative, inverse, result).astype(x.dtype)


def _shift_left(x: np.ndarray, by: np.ndarray) -> np.ndarray:
    return np.where(by < 32, x << np.minimum(by, 31), 0).astype(U32)


def _shift_right_logical(x: np.ndarray, by: np.ndarray) -> np.ndarray:
    return np.where(by < 32, x >> np.minimum(by, 31), 0).astype(U32)


def _shift_right_arithmetic(x: np.ndarray, by: np.ndarray) -> np.ndarray:
    return x >> np.minimum(by.view(U32), 31).astype(S32)


BINARY: dict[str, Callable[..., Any]] = {
    "add": np.add, "subtract": np.subtract, "multiply": np.multiply, "divide": _divide, "remainder": _remainder,
    "maximum": np.maximum, "minimum": np.minimum, "power": _power, "atan2": np.arctan2,
    "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor,
    "shift_left": _shift_left, "shift_right_logical": _shift_right_logical,
    "shift_right_arithmetic": _shift_right_arithmetic,
}  # fmt: skip
COMPARISONS: dict[str, Callable[..., Any]] = {
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater,
    "ge": np.greater_equal,
}  # fmt: skip


def total_order(x: np.ndarray) -> np.ndarray:
    """Integers in the total order of IEEE 754."""
    bits = x.view(S32)
    return np.where(bits < 0, bits ^ S32(0x7FFFFFFF), bits)


def _to_integer(x: np.ndarray, limits: Any) -> np.ndarray:
    wide = np.where(np.isnan(x), 0, x).astype(np.float64)
    return np.trunc(np.clip(wide, limits.min, limits.max)).astype(np.int64).astype(limits.dtype)


CONVERSIONS: dict[str, Callable[..., Any]] = {
    "convert_f32_s32": lambda x: _to_integer(x.view(F32), np.iinfo(S32)),
    "convert_f32_u32": lambda x: _to_integer(x.view(F32), np.iinfo(U32)),
    "convert_s32_f32": lambda x: x.view(S32).astype(F32),
    "convert_u32_f32": lambda x: x.astype(F32),
    "convert_f32_bool": lambda x: (x.view(F32) != 0).astype(U32),
    "convert_s32_bool": lambda x: (x != 0).astype(U32),
}


def apply(operation: str, *slots: np.ndarray) -> np.ndarray:
    """The slots that an operation writes."""
    if operation in CONVERSIONS:
        return np.asarray(CONVERSIONS[operation](*slots)).view(U32)
    name, _, dtype = operation.partition(".")
    if name == "select":
        return np.where(slots[0] != 0, slots[1], slots[2])
    if name == "round":
        return load(slots[0].view(F32).astype(TYPES[dtype]), dtype)
    if name == "wrap":
        return load(slots[0].astype(TYPES[dtype]), dtype)
    if name == "not":
        return slots[0] ^ U32(1) if dtype == "bool" else ~slots[0]
    arrays = [slot.view(REGISTERS[dtype]) for slot in slots]
    if name.endswith("_total"):
        return COMPARISONS[name.removesuffix("_total")](*map(total_order, arrays)).astype(U32)
    if name in COMPARISONS:
        return COMPARISONS[name](*arrays).astype(U32)
    result = np.asarray((UNARY if len(arrays) == 1 else BINARY)[name](*arrays))
    if name == "is_finite":
        return result.astype(U32)
    return result.astype(REGISTERS[dtype]).view(U32)
