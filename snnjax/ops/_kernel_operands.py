"""What the compiled kernels of all ops have in common: the dtypes they take, and names as the numbers they know."""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array

from snnjax.sparse_spikes import in_range

# In the order of `SurrogateKind` in xla_ext/cpu/kernels.hpp.
SURROGATES = ("superspike", "arctan", "triangle", "gaussian", "sigmoid", "boxcar", "straight_through")


def dtype_obstacle(what: str, array: Any) -> str | None:
    """The kernels compute in float32, from float32 or bfloat16."""
    return None if array.dtype in (jnp.float32, jnp.bfloat16) else f"{array.dtype.name} {what}"


def as_kernel_ids(ids: Array, num_neurons: int) -> Array:
    """`ids` in a dtype that the kernels read; one that does not fit into it must not become another one."""
    if ids.dtype in (jnp.uint16, jnp.int32):
        return ids
    return jnp.where(in_range(ids, num_neurons), ids.astype(jnp.int32), -1)


def groups_of(groups: int, *shape: int, dtype: Any) -> jax.ShapeDtypeStruct:
    """The result of a kernel behind its groups axis."""
    return jax.ShapeDtypeStruct((groups, *shape), dtype)
