"""Hostile numbers of any dtype."""

from typing import Any

import jax.numpy as jnp
import numpy as np

# What ASan fills new memory with (the default of malloc_fill_byte): a result that shows it was never written.
UNWRITTEN = 0xBE

_FLOATS = (0.0, -0.0, 1.0, -1.0, 0.5, np.nan, np.inf, -np.inf, 3e38, -3e38, 1e-45, -2e-39, 65535.0)
_INTEGERS = (0, 1, 2, 3, -1, -2, 127, 128, 255, 256, 65534, 65535, 65536, 65537, 2**31 - 1, -(2**31))
KINDS = ("plain", "hostile", "zeros", "ones", "few hostile")


def array(rng: np.random.Generator, kind: str, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """An array full of `kind`."""
    dtype = jnp.dtype(dtype)
    if kind in ("zeros", "ones"):
        return np.full(shape, kind == "ones", dtype)
    plain = rng.integers(-8, 25, shape) / (16 if jnp.issubdtype(dtype, jnp.inexact) else 1)
    if kind == "plain":
        return _cast(plain, dtype)
    pool = np.array(_FLOATS if jnp.issubdtype(dtype, jnp.inexact) else _INTEGERS)
    share = 1.0 if kind == "hostile" else 0.02
    return _cast(np.where(rng.random(shape) < share, rng.choice(pool, shape), plain), dtype)


def _cast(numbers: np.ndarray, dtype: Any) -> np.ndarray:
    """Integers wrap, as whoever fills a list of ids carelessly makes them."""
    with np.errstate(all="ignore"):
        if jnp.issubdtype(dtype, jnp.integer):
            return numbers.astype(np.int64).astype(dtype)
        return numbers.astype(dtype)


def is_unwritten(result: np.ndarray) -> bool:
    """Whether a number wider than a byte has the bytes of fresh memory; single bytes may be so by right."""
    width = result.dtype.itemsize
    if result.dtype not in (np.float32, np.int32, np.uint16) or result.size == 0:
        return False
    data = np.ascontiguousarray(result).view(np.uint8).reshape(-1, width)
    return bool(np.any(np.all(data == UNWRITTEN, axis=1)))
