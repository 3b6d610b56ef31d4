"""Dtypes and names shared by several layers.

Kernels and codelets identify a name by its position in its table (poplar_kernels/conventions.hpp).
"""

from typing import Any

import jax.numpy as jnp
import numpy as np

RESETS = ("subtract", "zero", "none")
RESET_TIMES = ("before_decay", "after_decay", "immediate")
SPIKE_SOURCES = ("new", "old")
SURROGATES = ("superspike", "arctan", "triangle", "gaussian", "sigmoid", "boxcar", "straight_through")

# uint16 ids halve the memory of a list; the pad id, which is the number of neurons, must fit as well.
MAX_UINT16_NEURONS = 65_535

# The bits of a float32 that an IPU writes for each recorded membrane, which stays on its tiles: a NaN that no arithmetic
# yields.
LEFT_ON_TILES = 0x7FC5717E


def id_dtype(num_neurons: int) -> np.dtype:
    """The dtype of the ids of `num_neurons` neurons: uint16 if the pad id fits, else int32."""
    return np.dtype(np.uint16 if num_neurons <= MAX_UINT16_NEURONS else np.int32)


def sum_dtype(dtype: Any) -> Any:
    """The dtype in which sums and membranes of `dtype` accumulate: float64 for float64, else float32."""
    return jnp.float64 if dtype == jnp.float64 else jnp.float32


def wide(array: Any) -> Any:
    """`array` in its accumulation dtype."""
    return array.astype(sum_dtype(array.dtype))
