"""`drive`: how strong the currents of a neuron model should be at the start."""

import functools
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from snnjax._types import Params, State
from snnjax.neurons._neuron import Neuron, drawn
from snnjax.ops._glif_step import align

# The spikes per step and input that weights are scaled for, and at which neurons should then spike: the activity that
# sparse training aims for, kept alive in deep layers.
EXPECTED_RATE = 0.05
# The deviation of the membrane that yields this rate, as a share of the distance to the threshold. Without a reset a
# normal membrane is above its threshold in 5 % of the steps at 1 / 1.645. A reset takes what has been summed, so the
# share grows with the steps that a membrane remembers: 0.6 + steps^2 / 400 meets simulations of fourteen neurons, with
# time constants of 1 to 100 steps, within a factor of 1.7.
_SHARE, _SHARE_OF_SQUARE = 0.6, 1 / 400
# The response to an impulse is followed for this many steps, in this many neurons with constants that may be random.
_STEPS, _NEURONS = 32, 64
# Membranes need not be linear: one that runs away above a critical value has no response to a large impulse, and one in
# mV rounds that to a small one away. Of these impulses, in the unit of the currents, each neuron gets the one next to 1
# whose response is, at its largest, within these shares of the distance to the threshold. Powers of two scale a linear
# response exactly.
_IMPULSES = 4.0 ** np.arange(-32, 33)
_LEAST_RESPONSE, _LARGEST_RESPONSE = 2.0**-10, 2.0**-2


@functools.cache
def drive(neuron: Neuron) -> float:
    """The standard deviation of the currents at which these neurons spike at `EXPECTED_RATE`, without their resets.

    Random spikes at that rate are noise in time plus a constant for each neuron, its mean input. Of neurons that do
    not spike it is the one at which their membranes deviate by 1. Not a number if no current has a finite response.
    """
    # One program that runs now, also while another one is traced.
    each = np.asarray(jax.jit(functools.partial(_drives, neuron)).lower().compile()())
    stable = each[~np.isnan(each)]  # single neurons may not be, so the median counts
    return float(np.median(stable)) if stable.size else math.nan


def _drives(neuron: Neuron) -> Array:
    """`drive` of single neurons; not a number for those without a finite response."""
    # Neurons that need all steps share their constants.
    count = neuron.num_neurons or (_NEURONS if neuron.num_steps is None else 1)
    params = drawn(neuron, jax.random.key(0), count)
    response = _responses if neuron.sequence is None else _responses_at_once
    distance, noise, mean = response(neuron, params)
    deviation = jnp.sqrt((1 - EXPECTED_RATE) * noise + EXPECTED_RATE * mean)
    has_reset = neuron.glif is None or neuron.glif.reset != "none"
    if not neuron.spikes:
        return 1 / deviation
    if neuron.sequence is not None or not has_reset:
        share: Array | float = _SHARE
    else:
        share = _SHARE + _SHARE_OF_SQUARE * (mean / noise) ** 2
    return share * distance / deviation


def _distance(neuron: Neuron, params: Params, quiet: Array) -> Array:
    """How far membranes without input are from the threshold; 1 where they do not spike, or any current suffices."""
    if not neuron.spikes:
        return jnp.ones_like(quiet)
    distance = jnp.abs(align(neuron.threshold(params).astype(quiet.dtype), quiet) - quiet)
    return jnp.where(distance > 0, distance, 1)


def _responses(neuron: Neuron, params: Params) -> tuple[Array, Array, Array]:
    """The distance to the threshold, and the sum of squares and the square of the sum of an impulse's responses.

    Neurons that spike without input respond until then.
    """
    impulses = jnp.asarray([*_IMPULSES, 0], jnp.float32)[:, None]  # the last one is none
    count = neuron.num_neurons or _NEURONS
    start = neuron.initial_state(params, len(impulses), count)

    def step(state: State, currents: Array) -> tuple[Any, tuple[Array, Array]]:
        membrane, threshold, after = neuron.advance(params, state, currents)
        spikes = (membrane > align(threshold, membrane))[-1] & neuron.spikes
        return neuron.finish(after, jnp.zeros_like(membrane)), (membrane, spikes)

    currents = jnp.zeros((_STEPS, len(impulses), neuron.num_receptors * count), jnp.float32)
    currents = currents.at[0, :, :count].set(impulses)  # to the first receptor
    membranes, spikes = jax.lax.scan(step, start, currents)[1]
    distance = _distance(neuron, params, membranes[0, -1])
    first = jnp.where(jnp.any(spikes, axis=0), jnp.argmax(spikes, axis=0), 2 * _STEPS)
    ended = jnp.arange(_STEPS)[:, None] > first[None] // 2
    responses = jnp.where(ended[:, None], 0, membranes[:, :-1] - membranes[:, -1:])
    largest = jnp.max(jnp.abs(responses), axis=0) / distance[None]  # [impulses, neurons], NaN if any is
    good = (largest >= _LEAST_RESPONSE) & (largest <= _LARGEST_RESPONSE)
    order = jnp.asarray(np.abs(np.log2(_IMPULSES)))[:, None]
    chosen = jnp.argmin(jnp.where(good, order, jnp.inf), axis=0)
    own = jnp.take_along_axis(responses, chosen[None, None], axis=1)[:, 0] / impulses[chosen].T
    own = jnp.where(jnp.any(good, axis=0)[None], own, jnp.nan)
    return distance, jnp.sum(own**2, axis=0), jnp.sum(own, axis=0) ** 2


def _responses_at_once(neuron: Neuron, params: Params) -> tuple[Array, Array, Array]:
    """`_responses` of neurons that compute all steps at once, for each step: to an impulse of 1 at each step."""
    assert neuron.sequence is not None
    steps, neurons = neuron.num_steps or _STEPS, 1 if neuron.num_steps else _NEURONS
    impulses = jnp.broadcast_to(jnp.eye(steps, dtype=jnp.float32)[:, :, None], (steps, steps, neurons))

    def run(currents: Array) -> Array:
        start = neuron.initial_state(params, currents.shape[1], neurons)
        return neuron.sequence(params, start, currents, None)[0]  # type: ignore[misc]

    quiet = run(jnp.zeros_like(impulses[:, :1]))
    response = run(impulses) - quiet
    noise, total = jnp.sum(response**2, axis=1, keepdims=True), jnp.sum(response, axis=1, keepdims=True)
    return _distance(neuron, params, quiet), noise, total**2
