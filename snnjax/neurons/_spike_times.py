"""Spikes whose times have derivatives: a spike of `current_lif` that moves instead of one that a surrogate makes.

In its step a straight line from the membrane ``u'`` after the last reset to the membrane ``v`` crosses the threshold at
the fraction f. A spike at f is worth ``1 - f`` of one now and ``f`` of one in the next step: sent in two parts it
would be a differentiable program, of second order in the step. The forward pass sends the whole spike now, and takes
the derivative of that program.
"""

import dataclasses
import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.lax import stop_gradient
from jax.typing import DTypeLike
from jaxtyping import Array

from snnjax._check import fail, short_repr
from snnjax._types import Params, State, Unchecked
from snnjax.neurons._glif import advance
from snnjax.neurons._neuron import Neuron
from snnjax.neurons._step import Bound
from snnjax.ops._glif_step import align

GRADIENTS = ("surrogate", "spike_times")
MIN_RISE = 0.25  # of a membrane, if nothing is said
SPIKE_TIMES = ("gradient", "min_rise")  # what only such neurons keep of their arguments


class SpikeTimesState(NamedTuple):
    """The state of neurons whose spike times have derivatives."""

    neuron: State  # the state without them
    # [batch, neurons]: 0, with the tangent of the fraction of the last step at which a spike came in it.
    moved: Array


class _Stepped(NamedTuple):
    """The state of a step before its spikes are sent."""

    state: SpikeTimesState
    left: Array  # `moved` of the step before: what its spikes leave for this step


def with_spike_times(neuron: Neuron, min_rise: float) -> Neuron:
    """The neuron, of the generalised LIF equation, with spikes that move."""
    bound = {"neuron": neuron}
    return dataclasses.replace(
        neuron,
        initial_state=Bound(_initial_state, **bound),
        integrate=Bound(_integrate, **bound, min_rise=min_rise),
        sent=_sent,
        fire=_fire,
    )


def check_no_spike_times(op: str, min_rise: Unchecked) -> None:
    """Refuse the option of such neurons for others, which would ignore it."""
    if not (isinstance(min_rise, float) and min_rise == MIN_RISE):
        actual, hint = short_repr(min_rise), "Leave it out"
        fail(f"{op}: `min_rise` must be given with gradient='spike_times' alone, got {actual}. {hint}.")


def check_spike_times(op: str, arguments: dict[str, Any]) -> None:
    """Refuse what has no such derivative."""
    rise = arguments["min_rise"]
    if not (isinstance(rise, float | int) and 0 < rise < math.inf):
        fail(f"{op}: `min_rise` must be positive and finite, got {short_repr(rise)}. Try {MIN_RISE}.")
    needed = {
        "detach_reset": (False, "its reset moves with a spike"),
        "reset": ("subtract", "a reset to zero loses what the membrane rose since the crossing"),
        "reset_time": ("before_decay", "the crossing is on the way to the new membrane"),
        "inclusive": (False, "a line that ends at the threshold does not cross it"),
        "spike_from": ("new", "the crossing is on the way to the new membrane"),
    }
    for name, (value, why) in needed.items():
        if arguments[name] != value:
            actual = arguments[name]
            fail(
                f"{op}: `{name}` must be {value!r} for gradient='spike_times', got {actual!r}: {why}. "
                f"Pass {name}={value!r}, or gradient='surrogate'."
            )


def _initial_state(
    params: Params, batch: int, num_neurons: int, dtype: DTypeLike = jnp.float32, *, neuron: Neuron
) -> SpikeTimesState:
    own = neuron.initial_state(params, batch, num_neurons, dtype)
    return SpikeTimesState(own, jnp.zeros_like(own.v))


def _integrate(
    params: Params, state: SpikeTimesState, inputs: Array, *, neuron: Neuron, min_rise: float
) -> tuple[Array, Array, _Stepped]:
    form, v = neuron.glif, state.neuron.v
    assert form is not None
    given = form.constants(params)
    decay, threshold = align(given.decay, v), align(given.threshold, v)
    spiked = stop_gradient(v > threshold).astype(v.dtype)
    # A spike at the fraction f lowers the membrane by ``threshold (decay + (1 - decay) f)`` at the end of its step.
    v = v - threshold * spiked * (1 - decay) * state.moved
    own = state.neuron._replace(v=v)
    detached = form._replace(detach_reset=True)
    membrane, _, after = advance("current_lif.step", detached, neuron.surrogate, params, own, inputs)
    before = v - threshold * spiked
    # Of a membrane that was above the threshold already, no crossing lies in this step.
    crosses = (membrane > threshold) & (before <= threshold)
    rise = jnp.maximum(membrane - before, min_rise)
    by_start = stop_gradient(jnp.where(crosses, 1 / rise, 0))
    by_rise = stop_gradient(jnp.minimum((threshold - before) * by_start, 1)) * by_start
    moved = _tangent_of(by_start * (threshold - before) - by_rise * (membrane - before))
    return membrane, given.threshold, _Stepped(SpikeTimesState(after, moved), state.moved)


@jax.custom_jvp
def _tangent_of(x: Array) -> Array:
    """0, with the tangent of `x`."""
    return jnp.zeros_like(x)


@_tangent_of.defjvp
def _tangent_of_jvp(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    return _tangent_of(*primals), tangents[0]


def _sent(stepped: _Stepped, spikes: Array) -> Array:
    """The spikes with the derivative of ``1 - f`` now, and of the f of the step before."""
    moved = stepped.left - stepped.state.moved
    return stop_gradient(spikes) + moved.astype(spikes.dtype)


def _fire(stepped: _Stepped, spikes: Array) -> SpikeTimesState:
    del spikes
    return stepped.state
