"""The jnp reference of one layer of generalised LIF neurons over all time steps, forward and backward.

All time steps of the inputs are known once the layer below has run, so products with weights are computed for all steps
at once; only the neurons (and recurrent weights) run step by step. Arrays are ``[time, batch, neurons]``.
"""

import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array

from snnjax._types import wide
from snnjax.ops._lif_network.records import LayerConstants, LayerState, SecondState
from snnjax.ops._lif_network.switches import LayerSwitches
from snnjax.ops.select_spikes import candidates, cap
from snnjax.ops.spike import spike
from snnjax.ops.spike_matmul import dense_product


class LayerRun(NamedTuple):
    """The run of a layer over all time steps; arrays are ``[time, batch, neurons]``."""

    v: Array  # the membranes after each step, in the accumulation dtype
    w: Any  # the second states after each step, or None
    listed: Any  # bool, the neurons in the capped lists; None without capacity


class Neurons(NamedTuple):
    """The neurons of a layer, and their equations.

    A `state` is a `LayerState` or a `LayerRun`, of one or several steps: ``[..., batch, neurons]``.
    """

    constants: LayerConstants
    switches: LayerSwitches

    def threshold(self, state: Any) -> Array:
        """The threshold, raised by the second state if coupled to it, in the accumulation dtype."""
        return self._raised(self.constants.threshold, state)

    def second_threshold(self, state: Any) -> Array:
        """The second threshold, which keeps its distance from the threshold."""
        return self._raised(self.constants.second_threshold, state)

    def _raised(self, constant: Array, state: Any) -> Array:
        second = self.constants.second_state
        if second is None or second.threshold_coupling is None:
            return along(constant, state.v)
        return along(constant, state.v) + along(second.threshold_coupling, state.v) * state.w

    def fire(self, state: Any) -> Array:
        """The spikes, in the accumulation dtype."""
        return spike(wide(state.v) - self.threshold(state), self.switches.surrogate)

    def slope(self, state: Any) -> Array:
        """The derivative of the spikes with respect to the membrane."""
        return self.switches.surrogate.derivative(wide(state.v) - self.threshold(state))

    def reset(self, state: Any) -> Array:
        """``u``: the membrane after the reset by its spikes."""
        v, spikes = wide(state.v), self.fire(state)
        spikes = jax.lax.stop_gradient(spikes) if self.switches.detach_reset else spikes
        if self.switches.reset == "subtract":
            return v - self.threshold(state) * spikes
        return v * (1 - spikes) if self.switches.reset == "zero" else v

    def advance(self, state: LayerState, current: Array) -> tuple[Array, Any]:
        """The membrane and the second state after a step with the current `current`."""
        constants, second = self.constants, self.constants.second_state
        v = along(constants.decay, current) * self.reset(state) + along(constants.gain, current) * current
        if second is None:
            return v, None
        w = self.advance_second(state, current)
        if second.v_coupling is not None:
            v = v + along(second.v_coupling, current) * w
        return v, w

    def advance_second(self, state: LayerState, current: Any) -> Array:
        """The second state after a step; the current may be None if it does not affect it."""
        second = self.constants.second_state
        assert second is not None
        w = along(second.w_decay, state.w) * state.w
        if second.w_membrane is not None:
            w = w + along(second.w_membrane, w) * wide(state.v)
        if second.w_gain is not None:
            w = w + along(second.w_gain, w) * current
        if second.w_jump is not None:
            w = w + along(second.w_jump, w) * self.fire(state)
        return w.astype(state.w.dtype)

    def listed(self, state: Any, valid: Array | None) -> Array | None:
        """The mask of the neurons in the capped lists; None without capacity."""
        v, capacity = state.v, self.switches.capacity
        if capacity is None:
            return None
        rows, threshold, second = (
            rows_of(jax.lax.stop_gradient(jnp.broadcast_to(each.astype(v.dtype), v.shape)))
            for each in (v, self.threshold(state), self.second_threshold(state))
        )
        spikes, near = candidates(rows, threshold, second)
        if valid is not None:
            inside = valid.reshape(-1)[:, None]
            spikes, near = spikes & inside, near & inside
        spikes, near = cap(rows, spikes, near, capacity)
        return (spikes | near).reshape(v.shape)

    def listed_spikes(self, ran: LayerRun, valid: Array | None, dtype: Any) -> Array:
        """The listed spikes, which reach other neurons, as a dense array."""
        spikes = self.fire(ran).astype(dtype)
        if ran.listed is not None:
            return jnp.where(ran.listed, spikes, 0)
        return spikes if valid is None else jnp.where(valid[..., None], spikes, 0)

    def counted_spikes(self, ran: LayerRun, true_spikes: Array) -> Array:
        """The true spikes in the accumulation dtype, with a gradient only above the second threshold."""
        near = ran.v > self.second_threshold(ran)
        return wide(jnp.where(near, true_spikes, jax.lax.stop_gradient(true_spikes)))


def rows_of(array: Array) -> Array:
    """``[time, batch, neurons]`` as ``[time * batch, neurons]``."""
    return array.reshape(math.prod(array.shape[:-1]), array.shape[-1])


def along(constant: Array, like: Array) -> Array:
    """A constant ``[1 | neurons]`` with the leading axes of `like`, in the accumulation dtype."""
    return wide(constant).reshape((1,) * (like.ndim - 1) + (-1,))


def _choose(valid: Array | None, inside: Any, after: Any) -> Any:
    """Arrays from `inside` before the end of a sequence, from `after` after it (valid ``[batch]``)."""
    if valid is None:
        return inside
    return jax.tree.map(lambda new, old: jnp.where(valid[:, None], new, old), inside, after)


def layer_forward(
    neurons: Neurons, current: Array, valid: Array | None, first: LayerState
) -> tuple[LayerRun, LayerState]:
    """Run a layer from its first state; also return the last one.

    States are carried in the accumulation dtype: in bfloat16 a small current would be rounded away.
    """
    recurrent = neurons.constants.recurrent

    def step(state: LayerState, xs: tuple[Array, Array | None]) -> tuple[LayerState, LayerRun]:
        total, inside = xs
        if recurrent is not None:
            total = total + dense_product(state.spikes, recurrent)
        v, w = _choose(inside, neurons.advance(state, total), (state.v, state.w))
        ran = LayerRun(v, w, None)
        if recurrent is None:
            return LayerState(v, w, None), ran
        ran = ran._replace(listed=neurons.listed(ran, inside))
        spikes = neurons.listed_spikes(ran, None, state.spikes.dtype)
        return LayerState(v, w, _choose(inside, spikes, state.spikes)), ran

    last, ran = jax.lax.scan(step, first, (current, valid))
    if recurrent is None:
        ran = ran._replace(listed=neurons.listed(ran, valid))
    return ran, last


def _of_spikes(neurons: Neurons, g_listed: Array, g_recurrent: Any, g_counts: Array, state: Any) -> Array:
    """The cotangent of a step's spikes, from the cotangents of the listed spikes and of the counts."""
    g_s = wide(g_listed) if g_recurrent is None else wide(g_listed) + g_recurrent
    g_s = g_s if state.listed is None else jnp.where(state.listed, g_s, 0)
    return g_s + jnp.where(state.v > neurons.second_threshold(state), wide(g_counts), 0)


def second_states(neurons: Neurons, v: Array, current: Any, valid: Array | None, first: LayerState) -> Array:
    """The second states of a run, recomputed from its membranes and, if they matter, its currents."""
    before = jnp.concatenate([first.v[None], v])[:-1]

    def step(w: Array, xs: tuple[Array, Any, Array | None]) -> tuple[Array, Array]:
        v, current, inside = xs
        w = _choose(inside, neurons.advance_second(LayerState(v, w, None), current), w)
        return w, w

    return jax.lax.scan(step, first.w, (before, current, valid))[1]


def _through_reset(neurons: Neurons, g_u: Array, state: Any) -> tuple[Array, Array]:
    """The cotangents of the membrane, and of the threshold in the reset, from that of ``u``."""
    switches, spikes = neurons.switches, neurons.fire(state)
    g_v = g_u * (1 - spikes) if switches.reset == "zero" else g_u
    g_threshold = -g_u * spikes if switches.reset == "subtract" else jnp.zeros_like(g_u)
    if switches.detach_reset or switches.reset == "none":
        return g_v, g_threshold
    removed = wide(state.v) if switches.reset == "zero" else neurons.threshold(state)
    through_spike = -g_u * removed * neurons.slope(state)
    return g_v + through_spike, g_threshold - through_spike


def _through_state(
    neurons: Neurons, g_s: Array, g_direct: LayerState, g_next: tuple[Array, Any], state: Any
) -> tuple[Array, Any, Array]:
    """The cotangents of the membrane, the second state and the threshold of one step.

    They follow from the cotangents of its outgoing spikes, of the state itself, and of the next step: of the membrane
    after its reset, and of the second state.
    """
    second, (g_u, g_next_w) = neurons.constants.second_state, g_next
    if second is not None and second.w_jump is not None:
        g_s = g_s + along(second.w_jump, g_s) * g_next_w
    through_spike = jnp.where(g_s == 0, 0, g_s * neurons.slope(state))
    g_reset, g_reset_threshold = _through_reset(neurons, g_u, state)
    g_v = g_direct.v + g_reset + through_spike
    g_threshold = g_reset_threshold - through_spike
    if second is None:
        return g_v, None, g_threshold
    if second.w_membrane is not None:
        g_v = g_v + along(second.w_membrane, g_v) * g_next_w
    g_w = g_direct.w + along(second.w_decay, g_v) * g_next_w
    if second.threshold_coupling is not None:
        g_w = g_w + along(second.threshold_coupling, g_v) * g_threshold
    return g_v, g_w, g_threshold


def _current_cotangent(constants: LayerConstants, g_v: Array, g_w: Array | None) -> Array:
    """The cotangent of the current of one or several steps."""
    g, second = along(constants.gain, g_v) * g_v, constants.second_state
    if g_w is None or second is None or second.w_gain is None:
        return g
    return g + along(second.w_gain, g_v) * g_w


def _add_threshold(sums: tuple[Array, Any], g_threshold: Array, w: Any) -> tuple[Array, Any]:
    """The cotangents ``[batch, neurons]`` of threshold and threshold coupling, summed backwards from the last step."""
    coupling = None if sums[1] is None else sums[1] + g_threshold * w
    return sums[0] + g_threshold, coupling


def layer_backward(
    neurons: Neurons,
    g_spikes: Array,
    g_counts: Array,
    g_last: LayerState,
    ran: LayerRun,
    first: LayerState,
    current: Array,
    valid: Array | None,
) -> tuple[Array, LayerConstants, LayerState]:
    """Back-propagation through time: the cotangents of the current, of the constants and of the first state.

    Args:
        g_spikes: cotangent of the listed spikes ``[time, batch, neurons]``, in the accumulation dtype.
        g_counts: cotangent of the spike counts ``[batch, neurons]``.
        g_last: cotangents of the last state.
        first: the state before the first step.
        current: the input product ``[time, batch, neurons]``, without its recurrent part.
    """
    constants, second = neurons.constants, neurons.constants.second_state
    recurrent, nothing = constants.recurrent, jnp.zeros_like(first.v)
    no_w = None if second is None else nothing

    def step(carry: Any, xs: tuple[Any, ...]) -> tuple[Any, Any]:
        # A state's cotangent arrives directly (g_direct) or through the next step (g_next), never both.
        g_direct, g_next, sums = carry
        state, g_listed, inside = xs
        g_s = _of_spikes(neurons, g_listed, g_direct.spikes, g_counts, state)
        g_v, g_w, g_threshold = _through_state(neurons, g_s, g_direct, g_next, state)
        if second is not None and second.v_coupling is not None:
            g_w = g_w + along(second.v_coupling, g_v) * g_v
        g_before = None
        if recurrent is not None:
            g_before = _current_cotangent(constants, g_v, g_w) @ wide(recurrent).T
        g_before = LayerState(nothing, no_w, g_before)
        g_next = along(constants.decay, g_v) * g_v, g_w
        kept = _choose(inside, (g_before, g_next, _add_threshold(sums, g_threshold, state.w)), carry)
        return kept, _choose(inside, (g_v, g_w), (nothing, no_w))

    has_coupling = second is not None and second.threshold_coupling is not None
    start = jax.tree.map(wide, g_last), (nothing, no_w), (nothing, nothing if has_coupling else None)
    (g_direct, g_next, sums), g_states = jax.lax.scan(step, start, (ran, g_spikes, valid), reverse=True)
    g_v, g_w, g_threshold = _through_state(neurons, jnp.zeros_like(first.v), g_direct, g_next, first)
    sums = _add_threshold(sums, g_threshold, first.w)
    g_current = _current_cotangent(constants, *g_states)
    g_constants = _constant_cotangents(neurons, g_states, g_current, sums, ran, first, current, valid)
    spikes = None if g_direct.spikes is None else g_direct.spikes.astype(first.spikes.dtype)
    return g_current, g_constants, LayerState(g_v, g_w, spikes)


def _constant_cotangents(
    neurons: Neurons,
    g_states: tuple[Array, Any],
    g_current: Array,
    sums: tuple[Array, Any],
    ran: LayerRun,
    first: LayerState,
    current: Array,
    valid: Array | None,
) -> LayerConstants:
    """The cotangents of the constants, from those of the states and of the current, for all steps at once."""
    constants, second, (g_v, g_w) = neurons.constants, neurons.constants.second_state, g_states
    before = LayerRun(_before(first.v, ran.v), None if ran.w is None else _before(first.w, ran.w), None)
    recurrent = None
    if constants.recurrent is not None:
        spikes = _before(first.spikes, neurons.listed_spikes(ran, valid, first.spikes.dtype))
        recurrent = outer(spikes, g_current).astype(constants.recurrent.dtype)
        current = current + dense_product(rows_of(spikes), constants.recurrent).reshape(current.shape)
    if second is not None:
        of_coupling = second.threshold_coupling
        second = SecondState(
            w_decay=_summed(g_w, before.w, second.w_decay),
            w_membrane=_summed(g_w, before.v, second.w_membrane),
            w_gain=_summed(g_w, current, second.w_gain),
            w_jump=_summed(g_w, neurons.fire(before), second.w_jump),
            v_coupling=_summed(g_v, ran.w, second.v_coupling),
            threshold_coupling=None if of_coupling is None else reduced(sums[1], of_coupling),
        )
    return LayerConstants(
        recurrent,
        decay=_summed(g_v, neurons.reset(before), constants.decay),
        threshold=reduced(sums[0], constants.threshold),
        gain=_summed(g_v, current, constants.gain),
        second_threshold=None,
        second_state=second,
    )


def _before(first: Array, after: Array) -> Array:
    """The values before each step, ``[time, batch, neurons]``, from the first one and those after each step."""
    return jnp.concatenate([first[None], after])[:-1]


def _summed(g: Any, factor: Any, like: Array | None) -> Any:
    """The cotangent of a constant that multiplies `factor`, summed over all steps; None for an absent one."""
    if like is None:
        return None
    if factor is None:  # not recorded, because it is not needed
        return jnp.zeros_like(like)
    return reduced(jnp.sum(g * wide(factor), axis=0), like)


def outer(spikes: Array, g: Array) -> Array:
    """The weight gradient ``sum_{time, batch} spikes^T g``, in the accumulation dtype."""
    return wide(rows_of(spikes)).T @ rows_of(g)


def reduced(g: Array, like: Array) -> Array:
    """The cotangent of a constant ``[1 | neurons]`` from that of its broadcast ``[batch, neurons]``."""
    total = jnp.sum(g, axis=0)
    return (jnp.sum(total, keepdims=True) if like.shape == (1,) else total).astype(like.dtype)
