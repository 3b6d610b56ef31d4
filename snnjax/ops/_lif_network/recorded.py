"""How `lif_network` records membranes and spikes for its backward pass."""

from typing import Any

import jax.numpy as jnp
from jax.typing import DTypeLike
from jaxtyping import Array

from snnjax._types import accumulation_dtype, upcast
from snnjax.ops._lif_network.records import LayerConstants


def recorded_dtype(constants: LayerConstants, dtype: DTypeLike, rounds: bool = False) -> Any:
    """The dtype of the membranes recorded for the backward pass of a network of `dtype` (`recorded_membranes`)."""
    sums = accumulation_dtype(dtype)
    rounded = dtype == jnp.bfloat16 or (rounds and sums == jnp.float32)
    return jnp.dtype(jnp.bfloat16) if rounded and constants.glif.second_state is None else sums


def recorded_membranes(v: Array, constants: LayerConstants, dtype: DTypeLike, rounds: bool = False) -> Array:
    """The membranes as recorded for the backward pass of a network of this dtype.

    A bfloat16 network, or a layer that `rounds` them, records their distance to the threshold in bfloat16, half the
    memory of float32 membranes. Rounding the membrane itself could move it across the threshold, and so change resets
    and spikes. The rounded distance keeps its sign, and the surrogate and the second threshold see it to 8 bits. If a
    second state may move the threshold, or in a float64 network, membranes are recorded unchanged.
    """
    kept = recorded_dtype(constants, dtype, rounds)
    return (v - _origin(constants.glif.threshold, v)).astype(kept) if kept == jnp.bfloat16 else v


def membranes_of(record: Array, threshold: Array) -> Array:
    """The membranes from their record; they are above the threshold if and only if the original ones were."""
    return upcast(record) + _origin(threshold, record) if record.dtype == jnp.bfloat16 else record


def _origin(threshold: Array, like: Array) -> Array:
    """The origin of the distances: from an infinite threshold all would be the same."""
    return jnp.where(jnp.isfinite(threshold), threshold, 0).reshape((1,) * (like.ndim - 1) + (-1,))


def packed(marks: Array) -> Array:
    """Bool ``[..., neurons]`` as bits, the first neuron lowest: uint8 ``[..., ceil(neurons / 8)]``."""
    if marks.size == 0:  # which jnp does not accept
        return jnp.zeros((*marks.shape[:-1], -(-marks.shape[-1] // 8)), jnp.uint8)
    return jnp.packbits(marks, axis=-1, bitorder="little")


def unpacked(bits: Array, num_neurons: int) -> Array:
    """Undo `packed`."""
    if bits.size == 0:
        return jnp.zeros((*bits.shape[:-1], num_neurons), bool)
    return jnp.unpackbits(bits, axis=-1, count=num_neurons, bitorder="little").astype(bool)
