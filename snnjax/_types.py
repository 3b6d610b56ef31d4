"""Small shared notions of type."""

from typing import Any

import jax.numpy as jnp
from jaxtyping import Array


def sum_dtype(dtype: Any) -> Any:
    """The dtype in which sums and membranes of `dtype` accumulate: float64 for float64, else float32."""
    return jnp.float64 if dtype == jnp.float64 else jnp.float32


def wide(array: Array) -> Array:
    """`array` in the dtype in which it accumulates."""
    return array.astype(sum_dtype(array.dtype))
