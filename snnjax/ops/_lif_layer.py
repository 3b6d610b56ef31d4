"""The jnp reference of one LIF layer over all time steps, forward and backward.

All time steps of a layer are known once the layer below has run, so products with weights are done for all steps at
once and only the neurons themselves (and recurrent weights) run step by step. Arrays are ``[time, batch, neurons]``.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from snnjax._types import sum_dtype, wide
from snnjax.ops.select_spikes import candidates, cap
from snnjax.ops.spike_matmul import dense_product
from snnjax.surrogates import Surrogate


class LayerSwitches(NamedTuple):
    """What is static about a layer."""

    capacity: int | None  # None: every neuron receives its gradient
    surrogate: Surrogate
    reset: str
    detach_reset: bool


class LayerConstants(NamedTuple):
    """What a layer computes with besides its input product, arrays that broadcast over the batch."""

    recurrent: Array | None  # [neurons, neurons]
    decay: Array  # [1 | neurons], as the two below
    threshold: Array
    gain: Array
    second_threshold: Any  # [1 | neurons]; None among cotangents


class LayerRun(NamedTuple):
    """A layer over all time steps, arrays ``[time, batch, neurons]``."""

    v: Array  # the membranes after each step, in the dtype of sums
    listed: Array | None  # bool, the neurons in the capped lists; None without capacity


class LayerCotangents(NamedTuple):
    """The cotangents that the layer's backward pass yields."""

    current: Array  # [time, batch, neurons]
    constants: LayerConstants  # without that of the second threshold, which has none
    v: Array  # [batch, neurons], of the first membrane
    spikes: Array | None  # [batch, neurons], of the spikes before the first step, of recurrent layers


def rows_of(array: Array) -> Array:
    """``[time, batch, neurons]`` as ``[time * batch, neurons]``."""
    return array.reshape(int(np.prod(array.shape[:-1])), array.shape[-1])


def _row(constant: Array) -> Array:
    return wide(constant)[None, :]


def _choose(valid: Array | None, inside: Array, after: Array) -> Array:
    """`inside` where a sequence has not ended yet, `after` behind its end (valid ``[batch]``)."""
    return inside if valid is None else jnp.where(valid[:, None], inside, after)


def fire(v: Array, threshold: Array, surrogate: Surrogate) -> Array:
    """The spikes of membranes, in the dtype of `threshold`'s sums."""
    return surrogate.fire(wide(v) - wide(threshold).reshape((1,) * (v.ndim - 1) + (-1,)))


def reset(v: Array, constants: LayerConstants, switches: LayerSwitches) -> Array:
    """``u``: the membrane after the reset by its own spikes."""
    spikes = fire(v, constants.threshold, switches.surrogate)
    threshold = wide(constants.threshold).reshape((1,) * (v.ndim - 1) + (-1,))
    if switches.reset == "subtract":
        return wide(v) - threshold * spikes
    return wide(v) * (1 - spikes) if switches.reset == "zero" else wide(v)


def listed_mask(
    v: Array, valid: Array | None, constants: LayerConstants, switches: LayerSwitches
) -> Array | None:
    """The neurons in the capped lists of the rows of ``v [..., neurons]``; None without capacity."""
    if switches.capacity is None:
        return None
    rows = rows_of(v)
    threshold, second = (
        jnp.broadcast_to(c[None, :], rows.shape) for c in (constants.threshold, constants.second_threshold)
    )
    spikes, near = candidates(rows, threshold, second)
    if valid is not None:
        inside = valid.reshape(-1)[:, None]
        spikes, near = spikes & inside, near & inside
    spikes, near = cap(rows, spikes, near, switches.capacity)
    return (spikes | near).reshape(v.shape)


def layer_forward(
    current: Array,
    valid: Array | None,
    first: tuple[Array, Array | None],
    constants: LayerConstants,
    switches: LayerSwitches,
) -> tuple[LayerRun, tuple[Array, Array | None]]:
    """Run a layer from its first membrane and (recurrent layers) spikes; yields also the last of both.

    Membranes are carried in the dtype of sums: in bfloat16 a small current would vanish beside them.
    """
    is_recurrent = constants.recurrent is not None

    def step(carry: tuple[Array, Any], xs: tuple[Array, Array | None]) -> tuple[Any, Any]:
        v, spikes = carry
        total, inside = xs
        if constants.recurrent is not None:
            total = total + dense_product(spikes, constants.recurrent)
        u = reset(v, constants, switches)
        v_new = _choose(inside, _row(constants.decay) * u + _row(constants.gain) * total, v)
        if not is_recurrent:
            return (v_new, None), (v_new,)
        listed = listed_mask(v_new, inside, constants, switches)
        fired = listed_spikes(v_new, None, listed, constants, switches, spikes.dtype)
        spikes = _choose(inside, fired, spikes)
        return (v_new, spikes), (v_new, listed)

    last, history = jax.lax.scan(step, first, (current, valid))
    if is_recurrent:
        return LayerRun(*history), last
    (v,) = history
    return LayerRun(v, listed_mask(v, valid, constants, switches)), last


def listed_spikes(
    v: Array,
    valid: Array | None,
    listed: Array | None,
    constants: LayerConstants,
    switches: LayerSwitches,
    dtype: Any,
) -> Array:
    """The spikes that reach other neurons, dense."""
    spikes = fire(v, constants.threshold, switches.surrogate).astype(dtype)
    if listed is not None:
        return jnp.where(listed, spikes, 0)
    return spikes if valid is None else jnp.where(valid[..., None], spikes, 0)


def _through_reset(
    g_u: Array, v: Array, constants: LayerConstants, switches: LayerSwitches
) -> tuple[Array, Array]:
    """The cotangents of the membrane, and of the threshold as far as the reset holds it, from that of ``u``."""
    threshold = _row(constants.threshold)
    spikes = fire(v, constants.threshold, switches.surrogate)
    g_v = g_u * (1 - spikes) if switches.reset == "zero" else g_u
    g_threshold = -g_u * spikes if switches.reset == "subtract" else jnp.zeros_like(g_u)
    if switches.detach_reset or switches.reset == "none":
        return g_v, g_threshold
    removed = wide(v) if switches.reset == "zero" else threshold
    through_spike = -g_u * removed * switches.surrogate.derivative(wide(v) - threshold)
    return g_v + through_spike, g_threshold - through_spike


def layer_backward(
    g_spikes: Array,
    g_counts: Array,
    g_last: tuple[Array, Array | None],
    ran: LayerRun,
    first: tuple[Array, Array | None],
    current: Array,
    valid: Array | None,
    constants: LayerConstants,
    switches: LayerSwitches,
) -> LayerCotangents:
    """Back-propagation through time.

    Args:
        g_spikes: cotangent of the listed spikes ``[time, batch, neurons]``.
        g_counts: cotangent of the spike counts ``[batch, neurons]``.
        g_last: cotangents of the last membrane and the last spikes.
        first: the membrane and the spikes before the first step.
        current: the input product ``[time, batch, neurons]``, without its recurrent part.
    """
    decay, threshold, gain = (_row(c) for c in constants[1:4])

    def step(carry: tuple[Any, ...], xs: tuple[Any, ...]) -> tuple[tuple[Any, ...], Array]:
        # A membrane's cotangent arrives directly (g_direct) or through the u of the step after it (g_u), never both.
        g_direct, g_u, g_carried, g_threshold = carry
        v, g_listed, listed, inside = xs
        g_s = wide(g_listed) if g_carried is None else wide(g_listed) + g_carried
        g_s = g_s if listed is None else jnp.where(listed, g_s, 0)
        g_s = g_s + jnp.where(v > constants.second_threshold[None, :], wide(g_counts), 0)
        through_spike = jnp.where(g_s == 0, 0, g_s * switches.surrogate.derivative(wide(v) - threshold))
        g_reset, g_reset_threshold = _through_reset(g_u, v, constants, switches)
        g_v = g_direct + g_reset + through_spike
        g_before = None
        if constants.recurrent is not None:
            g_before = wide(jnp.matmul((gain * g_v).astype(g_listed.dtype), constants.recurrent.T))
        new = (jnp.zeros_like(g_v), decay * g_v, g_before, g_threshold + g_reset_threshold - through_spike)
        kept = jax.tree.map(lambda n, old: _choose(inside, n, old), new, carry)
        return kept, _choose(inside, g_v, jnp.zeros_like(g_v))

    nothing = jnp.zeros_like(wide(g_last[0]))
    start = (wide(g_last[0]), nothing, None if g_last[1] is None else wide(g_last[1]), nothing)
    xs = (ran.v, g_spikes, ran.listed, valid)
    (g_direct, g_u, g_carried, g_threshold), g_v = jax.lax.scan(step, start, xs, reverse=True)
    g_reset, g_reset_threshold = _through_reset(g_u, first[0], constants, switches)
    g_current = (gain[None] * g_v).astype(g_spikes.dtype)
    g_constants = _constant_cotangents(g_v, g_current, ran, first, current, valid, constants, switches)
    g_threshold = _reduce(g_threshold + g_reset_threshold, constants.threshold)
    return LayerCotangents(
        g_current,
        g_constants._replace(threshold=g_threshold),
        v=(g_direct + g_reset).astype(first[0].dtype),
        spikes=None if g_carried is None else g_carried.astype(g_spikes.dtype),
    )


def _constant_cotangents(
    g_v: Array,
    g_current: Array,
    ran: LayerRun,
    first: tuple[Array, Array | None],
    current: Array,
    valid: Array | None,
    constants: LayerConstants,
    switches: LayerSwitches,
) -> LayerConstants:
    """The cotangents of the constants but the threshold, from those of the membranes, ``g_v``, and of the current.

    All steps at once: both are ``[time, batch, neurons]``.
    """
    v_before = jnp.concatenate([first[0][None], ran.v])[:-1]
    recurrent = None
    if constants.recurrent is not None and first[1] is not None:
        spikes = listed_spikes(ran.v, valid, ran.listed, constants, switches, g_current.dtype)
        spikes = jnp.concatenate([first[1][None], spikes])[:-1]
        recurrent = outer(spikes, g_current).astype(constants.recurrent.dtype)
        rows = dense_product(rows_of(spikes), constants.recurrent)
        current = current + rows.reshape(current.shape)
    return LayerConstants(
        recurrent,
        decay=_reduce(jnp.sum(g_v * reset(v_before, constants, switches), axis=0), constants.decay),
        threshold=constants.threshold,
        gain=_reduce(jnp.sum(g_v * wide(current), axis=0), constants.gain),
        second_threshold=None,
    )


def outer(spikes: Array, g: Array) -> Array:
    """The weight gradient ``sum_{time, batch} spikes^T g``, summed wide."""
    return jnp.matmul(rows_of(spikes).T, rows_of(g), preferred_element_type=sum_dtype(g.dtype))


def _reduce(g: Array, like: Array) -> Array:
    """The cotangent of a constant ``[1 | neurons]`` from that of its broadcast ``[batch, neurons]``."""
    total = jnp.sum(g, axis=0)
    return (jnp.sum(total, keepdims=True) if like.shape == (1,) else total).astype(like.dtype)
