"""Arrays for the tests of the lowering: every dtype of the IPU, with the values at the edges of each."""

import hypothesis.strategies as st
import jax.numpy as jnp
import numpy as np

FLOATS = (np.float32, np.float16, jnp.bfloat16)
SIGNED = (np.int32, np.int16, np.int8)
UNSIGNED = (np.uint32, np.uint16, np.uint8)
INTEGERS = SIGNED + UNSIGNED
DTYPES = (*FLOATS, *INTEGERS, np.bool_)

_FLOAT_EDGES = (0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.5, 1e-3, -7.25, 100.0, np.inf, -np.inf, np.nan)


def edges(dtype: object) -> np.ndarray:
    """The values at the edges of a dtype, and a few between."""
    dtype = np.dtype(dtype)
    if dtype == np.bool_:
        return np.array([False, True, True, False])
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        signed = [-1, -2, -7, -100] if limits.min < 0 else []
        return np.array([limits.min, limits.max, 0, 1, 2, 3, 9, 31, 100, *signed], dtype)
    return np.array(_FLOAT_EDGES, dtype)


def numbers(dtype: object, shape: tuple[int, ...], seed: int = 0) -> np.ndarray:
    """Random numbers of a size at which sums and products are exact enough to compare."""
    rng = np.random.default_rng(seed)
    dtype = np.dtype(dtype)
    if dtype == np.bool_:
        return rng.integers(0, 2, shape).astype(bool)
    if dtype.kind in "iu":
        return rng.integers(0 if dtype.kind == "u" else -9, 10, shape).astype(dtype)
    return (rng.integers(-32, 33, shape) / 8).astype(dtype)


def pairs(dtype: object) -> tuple[np.ndarray, np.ndarray]:
    """Every edge with every edge."""
    values = edges(dtype)
    return np.repeat(values, values.size), np.tile(values, values.size)


shapes = st.lists(st.integers(0, 5), min_size=0, max_size=4).map(tuple)
seeds = st.integers(0, 2**16)
