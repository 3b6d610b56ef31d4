"""`fire`: the spikes that reach other neurons, listed or not, and those that count."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array

from snnjax._sparse_spikes import SparseSpikes, gather
from snnjax._types import Unchecked
from snnjax.blocks.block import Context, choose
from snnjax.neurons import Neuron
from snnjax.ops._glif_step import align
from snnjax.ops.select_spikes import select_spikes


def fire(
    neuron: Neuron,
    own: Any,
    slots: int | None,
    fired: tuple[Array, Array, Array, Array],
    second: Unchecked,
    inside: Array | None,
    context: Context,
) -> tuple[Any, Array]:
    """The spikes of a step that reach other neurons, and the true ones as the activity counts them.

    `own` are the neuron's parameters, `fired` the membrane, the threshold, the true spikes and their magnitudes, all
    ``[..., batch, neurons]`` in the accumulation dtype. Counted spikes have a gradient only above the second threshold.
    """
    membrane, threshold, spikes, counts = fired
    if slots is None:
        spikes, counts = (choose(inside, own, jnp.zeros_like(own)) for own in (spikes, counts))
        return spikes, counts
    if neuron.levels[0] < 0:  # neurons are listed by the size of their membrane
        membrane = jnp.abs(membrane)
    # The second threshold keeps its distance from an adaptive one.
    resting = jnp.broadcast_to(
        align(neuron.threshold(own).astype(threshold.dtype), threshold), threshold.shape
    )
    second = align(jnp.asarray(second, threshold.dtype), threshold)
    second = jnp.broadcast_to(second, threshold.shape)
    second = jax.lax.stop_gradient(second + (threshold - resting))
    counted = jnp.where(membrane > second, counts, jax.lax.stop_gradient(counts))
    shown = choose(inside, membrane, jnp.full_like(membrane, -jnp.inf))  # nothing is listed after the end
    options: dict[str, Any] = {"surrogate": neuron.surrogate, "implementation": context.implementation}
    listed = select_spikes(shown, threshold, second, capacity=slots, **options)
    if neuron.is_graded:
        listed = _with_values(listed, spikes, choose(inside, counts, jnp.zeros_like(counts)))
    return listed, choose(inside, counted, jnp.zeros_like(counted))


def _with_values(listed: SparseSpikes, spikes: Array, counts: Array) -> SparseSpikes:
    """Lists with the values of graded spikes ``[..., neurons]``; their counts are sums of magnitudes."""
    rows = spikes.reshape(-1, spikes.shape[-1])
    values = gather(rows, listed.ids.reshape(-1, listed.capacity)).reshape(listed.ids.shape)

    def total(magnitudes: Array) -> Array:
        return jnp.sum(jax.lax.stop_gradient(magnitudes), axis=-1).astype(jnp.int32)

    count, kept = total(counts), total(jnp.abs(values))
    return dataclasses.replace(listed, values=values, num_spikes=count, num_dropped=count - kept)
