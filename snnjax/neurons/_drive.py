"""`drive`: how strong the currents of a neuron model should be at the start."""

import functools
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array

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


@functools.cache
def drive(neuron: Neuron) -> float:
    """The standard deviation of the currents at which these neurons spike at `EXPECTED_RATE`, without their resets.

    Random spikes at that rate are noise in time plus a constant for each neuron, its mean input. Of neurons that do
    not spike it is the one at which their membranes deviate by 1.
    """
    # One program that runs now, also while another one is traced.
    return float(jax.jit(functools.partial(_drive, neuron)).lower().compile()())


def _drive(neuron: Neuron) -> Array:
    # Neurons that need all steps share their constants.
    count = _NEURONS if neuron.num_steps is None else 1
    params = drawn(neuron, jax.random.key(0), count)
    response = _responses if neuron.sequence is None else _responses_at_once
    quiet, noise, mean = response(neuron, params)
    deviation = jnp.sqrt((1 - EXPECTED_RATE) * noise + EXPECTED_RATE * mean)
    if not neuron.spikes:
        return jnp.median(1 / deviation)
    distance = jnp.abs(align(neuron.threshold(params).astype(quiet.dtype), quiet) - quiet)
    has_reset = neuron.glif is None or neuron.glif.reset != "none"
    if neuron.sequence is not None or not has_reset:
        share: Array | float = _SHARE
    else:
        share = _SHARE + _SHARE_OF_SQUARE * (mean / noise) ** 2
    return jnp.median(share * distance / deviation)  # the median, because single neurons may be unstable


def _responses(neuron: Neuron, params: Any) -> tuple[Array, Array, Array]:
    """The membranes without input, and the sum of squares and the square of the sum of an impulse's responses."""
    start = neuron.initial_state(params, 1, _NEURONS)

    def step(state: Any, current: Array) -> tuple[Any, Array]:
        membrane, _, after = neuron.advance(params, state, jnp.broadcast_to(current, (1, _NEURONS)))
        return neuron.finish(after, jnp.zeros_like(membrane)), membrane[0]

    impulse = jnp.zeros(_STEPS, jnp.float32).at[0].set(1)
    quiet = jax.lax.scan(step, start, jnp.zeros_like(impulse))[1]
    response = jax.lax.scan(step, start, impulse)[1] - quiet
    return quiet[0], jnp.sum(response**2, axis=0), jnp.sum(response, axis=0) ** 2


def _responses_at_once(neuron: Neuron, params: Any) -> tuple[Array, Array, Array]:
    """`_responses` of neurons that compute all steps at once, for each step: to an impulse at each step."""
    assert neuron.sequence is not None
    steps, neurons = neuron.num_steps or _STEPS, 1 if neuron.num_steps else _NEURONS
    impulses = jnp.broadcast_to(jnp.eye(steps, dtype=jnp.float32)[:, :, None], (steps, steps, neurons))

    def run(currents: Array) -> Array:
        start = neuron.initial_state(params, currents.shape[1], neurons)
        return neuron.sequence(params, start, currents, None)[0]  # type: ignore[misc]

    quiet = run(jnp.zeros_like(impulses[:, :1]))
    response = run(impulses) - quiet
    noise, total = jnp.sum(response**2, axis=1, keepdims=True), jnp.sum(response, axis=1, keepdims=True)
    return quiet, noise, total**2
