"""Hostile numbers of any dtype."""

import functools
import math

import jax.numpy as jnp
import numpy as np
from jax.typing import DTypeLike

# What ASan fills new memory with (malloc_fill_byte as it is by default), as numbers of 2 and 4 bytes: a result that
# shows it was never written.
UNWRITTEN = {2: np.uint16(0xBEBE), 4: np.uint32(0xBEBEBEBE)}

KINDS = ("plain", "zeros", "ones", "few hostile", "hostile", "extreme")
_FLOATS = (0.0, -0.0, 1.0, -1.0, 0.5, np.nan, np.inf, -np.inf, 65535.0)
_EXTREME_FLOATS = (*_FLOATS, 3e38, -3e38, 1e-45, -2e-39)  # sums of these depend on their order
_INTEGERS = (0, 1, 2, 3, -1, -2, 127, 128, 255, 256, 65534, 65535, 65536, 65537, 2**31 - 1, -(2**31))
_SHARE = 0.02  # of hostile numbers among "few"
_SUPPLY = 1 << 20  # numbers of a kind and a dtype that are drawn at once, much faster than for each array


def piece(rng: np.random.Generator, kind: str, shape: tuple[int, ...], dtype: DTypeLike) -> np.ndarray:
    """An array full of `kind`, cut from a random place of a supply. It is a copy, whose bounds a sanitizer guards."""
    size = math.prod(shape)
    if size > _SUPPLY // 2:
        return array(rng, kind, shape, dtype)
    start = int(rng.integers(_SUPPLY - size))
    return _supply(kind, jnp.dtype(dtype))[start : start + size].reshape(shape).copy()


@functools.cache
def _supply(kind: str, dtype: DTypeLike) -> np.ndarray:
    return array(np.random.default_rng(KINDS.index(kind)), kind, (_SUPPLY,), dtype)


def array(rng: np.random.Generator, kind: str, shape: tuple[int, ...], dtype: DTypeLike) -> np.ndarray:
    """An array full of `kind`."""
    dtype = jnp.dtype(dtype)
    is_float = jnp.issubdtype(dtype, jnp.inexact)
    if kind in ("zeros", "ones"):
        return np.full(shape, kind == "ones", dtype)
    plain = rng.integers(-8, 25, shape) / (16 if is_float else 1)
    if kind == "plain":
        return _cast(plain, dtype)
    floats = _EXTREME_FLOATS if kind == "extreme" else _FLOATS
    pool = np.array(floats if is_float else _INTEGERS)
    share = _SHARE if kind == "few hostile" else 1.0
    return _cast(np.where(rng.random(shape) < share, rng.choice(pool, shape), plain), dtype)


def _cast(numbers: np.ndarray, dtype: DTypeLike) -> np.ndarray:
    """Integers wrap, as they do where ids are made without care."""
    with np.errstate(all="ignore"):
        if jnp.issubdtype(dtype, jnp.integer):
            return numbers.astype(np.int64).astype(dtype)
        return numbers.astype(dtype)


def is_unwritten(result: np.ndarray) -> bool:
    """Whether a number has the bytes of fresh memory; bytes and bfloat16 may have them by right."""
    if result.dtype not in (np.float32, np.int32, np.uint16) or result.size == 0:
        return False
    unwritten = UNWRITTEN[result.dtype.itemsize]
    return bool(np.any(np.ascontiguousarray(result).view(unwritten.dtype) == unwritten))
