"""What the compiled kernels of all ops share: supported dtypes, and the numeric codes of names."""

import math
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from snnjax._types import SURROGATES
from snnjax.sparse_spikes import in_range
from snnjax.surrogates import Surrogate


def dtype_obstacle(what: str, array: Any) -> str | None:
    """Why kernels do not support an array, or None: they compute in float32, from float32 or bfloat16."""
    return None if array.dtype in (jnp.float32, jnp.bfloat16) else f"{array.dtype.name} {what}"


def obstacle_of(what: str, array: Any, surrogate: Surrogate) -> str | None:
    """Why a kernel with neurons does not support a dtype or a surrogate, or None."""
    return surrogate.obstacle or dtype_obstacle(what, array)


def surrogate_attributes(surrogate: Surrogate) -> dict[str, Any]:
    """The kernel attributes of a surrogate."""
    return {
        "surrogate": np.int64(SURROGATES.index(surrogate.name)),
        "slope": np.float32(surrogate.slope),
        "reach": reach_of(surrogate),
    }


def reach_of(surrogate: Surrogate) -> np.float32:
    """The distance from the threshold at which the derivative ends, or 0 if it does not end."""
    return np.float32(0.0 if math.isinf(surrogate.reach) else surrogate.reach)


def as_kernel_ids(ids: Array, num_neurons: int) -> Array:
    """`ids` in a dtype that the kernels read; an id that does not fit must not turn into a valid one."""
    if ids.dtype in (jnp.uint16, jnp.int32):
        return ids
    return jnp.where(in_range(ids, num_neurons), ids.astype(jnp.int32), -1)
