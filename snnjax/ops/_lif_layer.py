"""The jnp reference of one layer of generalised LIF neurons over all time steps, forward and backward.

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
    records_spikes: bool = False  # as a result
    # What the backward pass needs of a second state, beside the membranes (see `with_records`).
    records_w: bool = False
    records_current: bool = False


class SecondState(NamedTuple):
    """The constants of the second state of `lif_network`'s neurons, ``w``; those that are None are absent.

    One value or one per neuron each::

        w = w_decay w' + w_membrane v' + w_gain current + w_jump s'
        v = decay reset(v', s') + gain current + v_coupling w
        s = [v > threshold + threshold_coupling w]
    """

    w_decay: Any
    w_membrane: Any = None
    w_gain: Any = None
    w_jump: Any = None
    v_coupling: Any = None
    threshold_coupling: Any = None


class LayerConstants(NamedTuple):
    """What a layer computes with besides its input product, arrays that broadcast over the batch."""

    recurrent: Array | None  # [neurons, neurons]
    decay: Array  # [1 | neurons], as the two below
    threshold: Array
    gain: Array
    second_threshold: Any  # [1 | neurons]; None among cotangents
    second_state: Any  # SecondState of [1 | neurons] each, or None


class LayerState(NamedTuple):
    """What a layer carries from step to step, ``[batch, neurons]``."""

    v: Array
    w: Any  # of layers with a second state, else None
    spikes: Any  # of recurrent layers, else None: the listed spikes


class LayerRun(NamedTuple):
    """A layer over all time steps, arrays ``[time, batch, neurons]``."""

    v: Array  # the membranes after each step, in the dtype of sums
    w: Any  # the second states after each step, or None
    listed: Array | None  # bool, the neurons in the capped lists; None without capacity


class LayerCotangents(NamedTuple):
    """The cotangents that the layer's backward pass yields."""

    current: Array  # [time, batch, neurons]
    constants: LayerConstants  # without that of the second threshold, which has none
    first: LayerState


def rows_of(array: Array) -> Array:
    """``[time, batch, neurons]`` as ``[time * batch, neurons]``."""
    return array.reshape(int(np.prod(array.shape[:-1])), array.shape[-1])


def _row(constant: Array) -> Array:
    return wide(constant)[None, :]


def _choose(valid: Array | None, inside: Array, after: Array) -> Array:
    """`inside` where a sequence has not ended yet, `after` behind its end (valid ``[batch]``)."""
    return inside if valid is None else jnp.where(valid[:, None], inside, after)


def _raised(constant: Array, w: Array | None, constants: LayerConstants, ndim: int) -> Array:
    """A threshold, raised by the second state where it is coupled; it broadcasts over the leading axes."""
    row = wide(constant).reshape((1,) * (ndim - 1) + (-1,))
    second = constants.second_state
    if w is None or second is None or second.threshold_coupling is None:
        return row
    return row + wide(second.threshold_coupling).reshape((1,) * (ndim - 1) + (-1,)) * w


def raised_threshold(v: Array, w: Array | None, constants: LayerConstants) -> Array:
    """The threshold of the membranes `v`, in the dtype of sums."""
    return _raised(constants.threshold, w, constants, v.ndim)


def raised_second_threshold(v: Array, w: Array | None, constants: LayerConstants) -> Array:
    """The second threshold, which keeps its distance from the threshold."""
    return _raised(constants.second_threshold, w, constants, v.ndim)


def fire(v: Array, w: Array | None, constants: LayerConstants, switches: LayerSwitches) -> Array:
    """The spikes of membranes, in the dtype of sums."""
    return switches.surrogate.fire(wide(v) - raised_threshold(v, w, constants))


def reset(v: Array, w: Array | None, constants: LayerConstants, switches: LayerSwitches) -> Array:
    """``u``: the membrane after the reset by its own spikes."""
    spikes = fire(v, w, constants, switches)
    if switches.reset == "subtract":
        return wide(v) - raised_threshold(v, w, constants) * spikes
    return wide(v) * (1 - spikes) if switches.reset == "zero" else wide(v)


def listed_mask(
    v: Array, w: Array | None, valid: Array | None, constants: LayerConstants, switches: LayerSwitches
) -> Array | None:
    """The neurons in the capped lists of the rows of ``v [..., neurons]``; None without capacity."""
    if switches.capacity is None:
        return None
    rows = rows_of(v)
    threshold, second = (
        jnp.broadcast_to(raised(v, w, constants).astype(v.dtype), v.shape).reshape(rows.shape)
        for raised in (raised_threshold, raised_second_threshold)
    )
    spikes, near = candidates(rows, threshold, second)
    if valid is not None:
        inside = valid.reshape(-1)[:, None]
        spikes, near = spikes & inside, near & inside
    spikes, near = cap(rows, spikes, near, switches.capacity)
    return (spikes | near).reshape(v.shape)


def layer_forward(
    current: Array, valid: Array | None, first: LayerState, constants: LayerConstants, switches: LayerSwitches
) -> tuple[LayerRun, LayerState]:
    """Run a layer from its first state; yields also the last one.

    States are carried in the dtype of sums: in bfloat16 a small current would vanish beside them.
    """
    is_recurrent = constants.recurrent is not None

    def step(state: LayerState, xs: tuple[Array, Array | None]) -> tuple[LayerState, LayerRun]:
        total, inside = xs
        if constants.recurrent is not None:
            total = total + dense_product(state.spikes, constants.recurrent)
        w = None if state.w is None else _choose(inside, _next_w(state, total, constants, switches), state.w)
        u = reset(state.v, state.w, constants, switches)
        v = _row(constants.decay) * u + _row(constants.gain) * total
        if w is not None and constants.second_state.v_coupling is not None:
            v = v + _row(constants.second_state.v_coupling) * w
        v = _choose(inside, v, state.v)
        if not is_recurrent:
            return LayerState(v, w, None), LayerRun(v, w, None)
        listed = listed_mask(v, w, inside, constants, switches)
        spikes = listed_spikes(LayerRun(v, w, listed), None, constants, switches, state.spikes.dtype)
        return LayerState(v, w, _choose(inside, spikes, state.spikes)), LayerRun(v, w, listed)

    last, ran = jax.lax.scan(step, first, (current, valid))
    if not is_recurrent:
        ran = ran._replace(listed=listed_mask(ran.v, ran.w, valid, constants, switches))
    return ran, last


def _next_w(state: LayerState, total: Array, constants: LayerConstants, switches: LayerSwitches) -> Array:
    """The second state of the next step, whose current is `total`."""
    second = constants.second_state
    w = _row(second.w_decay) * state.w
    if second.w_membrane is not None:
        w = w + _row(second.w_membrane) * wide(state.v)
    if second.w_gain is not None:
        w = w + _row(second.w_gain) * total
    if second.w_jump is not None:
        w = w + _row(second.w_jump) * fire(state.v, state.w, constants, switches)
    return w.astype(state.w.dtype)


def listed_spikes(
    ran: LayerRun,
    valid: Array | None,
    constants: LayerConstants,
    switches: LayerSwitches,
    dtype: Any,
) -> Array:
    """The spikes that reach other neurons, dense."""
    spikes = fire(ran.v, ran.w, constants, switches).astype(dtype)
    if ran.listed is not None:
        return jnp.where(ran.listed, spikes, 0)
    return spikes if valid is None else jnp.where(valid[..., None], spikes, 0)


class _Next(NamedTuple):
    """The cotangents that a step sends back to the state before it."""

    u: Array  # of the membrane after its reset
    w: Any  # of the second state, or None


def _through_reset(
    g_u: Array, state: LayerRun, constants: LayerConstants, switches: LayerSwitches
) -> tuple[Array, Array]:
    """The cotangents of the membrane, and of the threshold as far as the reset holds it, from that of ``u``."""
    v, threshold = state.v, raised_threshold(state.v, state.w, constants)
    spikes = fire(v, state.w, constants, switches)
    g_v = g_u * (1 - spikes) if switches.reset == "zero" else g_u
    g_threshold = -g_u * spikes if switches.reset == "subtract" else jnp.zeros_like(g_u)
    if switches.detach_reset or switches.reset == "none":
        return g_v, g_threshold
    removed = wide(v) if switches.reset == "zero" else threshold
    through_spike = -g_u * removed * switches.surrogate.derivative(wide(v) - threshold)
    return g_v + through_spike, g_threshold - through_spike


def _through_state(
    g_s: Array,
    g_direct: LayerState,
    g_next: _Next,
    state: LayerRun,
    constants: LayerConstants,
    switches: LayerSwitches,
) -> tuple[Array, Array | None, Array]:
    """The cotangents of the membrane, the second state and the threshold of one step.

    From those of its spikes as others see them, of the state itself, and of the step after it.
    """
    second = constants.second_state
    if second is not None and second.w_jump is not None:
        g_s = g_s + _row(second.w_jump) * g_next.w
    slope = switches.surrogate.derivative(wide(state.v) - raised_threshold(state.v, state.w, constants))
    through_spike = jnp.where(g_s == 0, 0, g_s * slope)
    g_reset, g_reset_threshold = _through_reset(g_next.u, state, constants, switches)
    g_v = g_direct.v + g_reset + through_spike
    g_threshold = g_reset_threshold - through_spike
    if second is None:
        return g_v, None, g_threshold
    if second.w_membrane is not None:
        g_v = g_v + _row(second.w_membrane) * g_next.w
    g_w = g_direct.w + _row(second.w_decay) * g_next.w
    if second.threshold_coupling is not None:
        g_w = g_w + _row(second.threshold_coupling) * g_threshold
    return g_v, g_w, g_threshold


def _current_cotangent(g_v: Array, g_w: Array | None, constants: LayerConstants) -> Array:
    """The cotangent of the current of a step; any leading axes."""
    shape = (1,) * (g_v.ndim - 1) + (-1,)
    g = wide(constants.gain).reshape(shape) * g_v
    second = constants.second_state
    if g_w is None or second is None or second.w_gain is None:
        return g
    return g + wide(second.w_gain).reshape(shape) * g_w


class _Sums(NamedTuple):
    """Cotangents summed from the last step on, ``[batch, neurons]``."""

    threshold: Array
    threshold_coupling: Any  # or None


def _add_threshold(sums: _Sums, g_threshold: Array, w: Array | None) -> _Sums:
    coupling = None
    if sums.threshold_coupling is not None and w is not None:
        coupling = sums.threshold_coupling + g_threshold * w
    return _Sums(sums.threshold + g_threshold, coupling)


def layer_backward(
    g_spikes: Array,
    g_counts: Array,
    g_last: LayerState,
    ran: LayerRun,
    first: LayerState,
    current: Array,
    valid: Array | None,
    constants: LayerConstants,
    switches: LayerSwitches,
) -> LayerCotangents:
    """Back-propagation through time.

    Args:
        g_spikes: cotangent of the listed spikes ``[time, batch, neurons]``.
        g_counts: cotangent of the spike counts ``[batch, neurons]``.
        g_last: cotangents of the last state.
        first: the state before the first step.
        current: the input product ``[time, batch, neurons]``, without its recurrent part.
    """

    def step(carry: tuple[Any, ...], xs: tuple[Any, ...]) -> tuple[tuple[Any, ...], Any]:
        # A state's cotangent arrives directly (g_direct) or through the step after it (g_next), never both.
        g_direct, g_next, sums = carry
        state, g_listed, inside = xs
        g_s = wide(g_listed) if g_direct.spikes is None else wide(g_listed) + g_direct.spikes
        g_s = g_s if state.listed is None else jnp.where(state.listed, g_s, 0)
        near = state.v > raised_second_threshold(state.v, state.w, constants)
        g_s = g_s + jnp.where(near, wide(g_counts), 0)
        g_v, g_w, g_threshold = _through_state(g_s, g_direct, g_next, state, constants, switches)
        g_w = _with_coupled(g_w, g_v, constants)
        g_before = None
        if constants.recurrent is not None:
            g_current = _current_cotangent(g_v, g_w, constants).astype(g_listed.dtype)
            g_before = wide(jnp.matmul(g_current, constants.recurrent.T))
        nothing = jnp.zeros_like(g_v)
        g_before = LayerState(nothing, None if g_w is None else nothing, g_before)
        new = (g_before, _Next(_row(constants.decay) * g_v, g_w), _add_threshold(sums, g_threshold, state.w))
        kept = jax.tree.map(lambda n, old: _choose(inside, n, old), new, carry)
        yielded = jax.tree.map(lambda g: _choose(inside, g, jnp.zeros_like(g)), (g_v, g_w))
        return kept, yielded

    start = _behind_the_end(g_last, constants)
    (g_direct, g_next, sums), (g_v, g_w) = jax.lax.scan(step, start, (ran, g_spikes, valid), reverse=True)
    before = LayerRun(first.v, first.w, None)
    g_first = _through_state(jnp.zeros_like(before.v), g_direct, g_next, before, constants, switches)
    sums = _add_threshold(sums, g_first[2], first.w)
    g_current = _current_cotangent(g_v, g_w, constants).astype(g_spikes.dtype)
    through = (g_v, g_w, g_current, sums)
    g_constants = _constant_cotangents(*through, ran, first, current, valid, constants, switches)
    spikes = None if g_direct.spikes is None else g_direct.spikes.astype(g_spikes.dtype)
    return LayerCotangents(g_current, g_constants, LayerState(g_first[0], g_first[1], spikes))


def _with_coupled(g_w: Any, g_v: Array, constants: LayerConstants) -> Any:
    """The cotangent of the second state with what the membrane of the same step sends it."""
    if g_w is None or constants.second_state.v_coupling is None:
        return g_w
    return g_w + _row(constants.second_state.v_coupling) * g_v


def _behind_the_end(g_last: LayerState, constants: LayerConstants) -> tuple[LayerState, _Next, _Sums]:
    """What back-propagation starts from."""
    direct, second = jax.tree.map(wide, g_last), constants.second_state
    nothing = jnp.zeros_like(direct.v)
    has_coupling = second is not None and second.threshold_coupling is not None
    next_w = None if second is None else nothing
    return direct, _Next(nothing, next_w), _Sums(nothing, nothing if has_coupling else None)


def _constant_cotangents(
    g_v: Array,
    g_w: Array | None,
    g_current: Array,
    sums: _Sums,
    ran: LayerRun,
    first: LayerState,
    current: Array,
    valid: Array | None,
    constants: LayerConstants,
    switches: LayerSwitches,
) -> LayerConstants:
    """The cotangents of the constants, from those of the states and of the current.

    All steps at once: these are ``[time, batch, neurons]``.
    """
    v_before = jnp.concatenate([first.v[None], ran.v])[:-1]
    w_before = None if ran.w is None else jnp.concatenate([first.w[None], ran.w])[:-1]
    recurrent = None
    if constants.recurrent is not None and first.spikes is not None:
        spikes = listed_spikes(ran, valid, constants, switches, g_current.dtype)
        spikes = jnp.concatenate([first.spikes[None], spikes])[:-1]
        recurrent = outer(spikes, g_current).astype(constants.recurrent.dtype)
        rows = dense_product(rows_of(spikes), constants.recurrent)
        current = current + rows.reshape(current.shape)

    second = constants.second_state
    if second is not None:
        of_coupling = second.threshold_coupling
        second = SecondState(
            w_decay=_summed(g_w, w_before, second.w_decay),
            w_membrane=_summed(g_w, v_before, second.w_membrane),
            w_gain=_summed(g_w, current, second.w_gain),
            w_jump=_summed(g_w, fire(v_before, w_before, constants, switches), second.w_jump),
            v_coupling=_summed(g_v, ran.w, second.v_coupling),
            threshold_coupling=None if of_coupling is None else _reduce(sums.threshold_coupling, of_coupling),
        )
    return LayerConstants(
        recurrent,
        decay=_summed(g_v, reset(v_before, w_before, constants, switches), constants.decay),
        threshold=_reduce(sums.threshold, constants.threshold),
        gain=_summed(g_v, current, constants.gain),
        second_threshold=None,
        second_state=second,
    )


def _summed(g: Any, factor: Any, like: Array | None) -> Any:
    """The cotangent of a constant that is multiplied with `factor`, over all steps; None for an absent one."""
    if like is None:
        return None
    if factor is None:  # not recorded, for nobody needs this one
        return jnp.zeros_like(like)
    return _reduce(jnp.sum(g * wide(factor), axis=0), like)


def outer(spikes: Array, g: Array) -> Array:
    """The weight gradient ``sum_{time, batch} spikes^T g``, summed wide."""
    return jnp.matmul(rows_of(spikes).T, rows_of(g), preferred_element_type=sum_dtype(g.dtype))


def _reduce(g: Array, like: Array) -> Array:
    """The cotangent of a constant ``[1 | neurons]`` from that of its broadcast ``[batch, neurons]``."""
    total = jnp.sum(g, axis=0)
    return (jnp.sum(total, keepdims=True) if like.shape == (1,) else total).astype(like.dtype)
