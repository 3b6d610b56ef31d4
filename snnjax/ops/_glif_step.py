"""The equation of generalised LIF neurons: one step, which every op, neuron and reference calls."""

import functools
from typing import Any, NamedTuple

import jax
from jaxtyping import Array

from snnjax._neuron_table import GLIFConstants, SecondState
from snnjax.ops.spike import spike
from snnjax.surrogates import Surrogate


class LIFConvention(NamedTuple):
    """The static switches of a step (`snnjax.lif_step`)."""

    surrogate: Surrogate
    reset: str
    detach_reset: bool
    reset_time: str = "before_decay"
    spike_from: str = "new"
    inclusive: bool = False

    def fire(self, distance: Array) -> Array:
        """The spikes of neurons whose membranes are this far above their thresholds."""
        return spike(distance, self.surrogate, inclusive=self.inclusive)


class GLIFStep(NamedTuple):
    """A step of neurons; its spikes are ``convention.fire(membrane - threshold)``."""

    v: Array
    w: Any  # None without a second state
    membrane: Array
    threshold: Array


def align(constant: Array, like: Array) -> Array:
    """A constant ``[]`` or ``[1 | neurons]`` with dtype and rank of `like`: it broadcasts along the last axis."""
    constant = constant.astype(like.dtype)
    return constant.reshape((1,) * (like.ndim - 1) + (-1,)) if constant.ndim == 1 else constant


def raised(threshold: Array, second: SecondState | None, v: Array, w: Any) -> Array:
    """A threshold of neurons in the state ``v``, ``w``: raised by the second state if it is coupled to it."""
    threshold = align(threshold, v)
    if second is None or second.threshold_coupling is None:
        return threshold
    return threshold + align(second.threshold_coupling, v) * w


@functools.partial(jax.jit, static_argnums=1, inline=True)
def glif_step(
    constants: GLIFConstants, convention: LIFConvention, v: Array, w: Any, current: Array
) -> GLIFStep:
    """One step of neurons ``[..., neurons]``, all arrays but the constants in the accumulation dtype.

    It is one program outside of jit too: operation by operation it would be slow, and round differently.
    """
    second = constants.second_state

    def threshold(w: Any) -> Array:
        return raised(constants.threshold, second, v, w)

    def reset(membrane: Array, spikes: Array, w: Any) -> Array:
        spikes = jax.lax.stop_gradient(spikes) if convention.detach_reset else spikes
        if convention.reset == "subtract":
            return membrane - threshold(w) * spikes
        return membrane * (1 - spikes) if convention.reset == "zero" else membrane

    before = convention.fire(v - threshold(w))
    after = w if second is None else _second_state(second, v, w, current, before)
    u = reset(v, before, w) if convention.reset_time == "before_decay" else v
    new = align(constants.decay, v) * u + align(constants.gain, v) * current
    if second is not None and second.v_coupling is not None:
        new = new + align(second.v_coupling, v) * after
    if convention.reset_time == "immediate":
        raised_now = threshold(after)
        return GLIFStep(reset(new, convention.fire(new - raised_now), after), after, new, raised_now)
    new = reset(new, before, w) if convention.reset_time == "after_decay" else new
    if convention.spike_from == "old":
        return GLIFStep(new, after, v, threshold(w))
    return GLIFStep(new, after, new, threshold(after))


def _second_state(second: SecondState, v: Array, w: Array, current: Array, spikes: Array) -> Array:
    """``w_decay w + w_membrane v + w_gain current + w_jump spikes``, without what is absent."""
    total = align(second.w_decay, v) * w
    sources = (second.w_membrane, v), (second.w_gain, current), (second.w_jump, spikes)
    for factor, source in sources:
        total = total if factor is None else total + align(factor, v) * source
    return total
