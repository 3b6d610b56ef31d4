"""`drive`: how strong the currents of a neuron model should be at the start."""

import functools
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array

from snnjax.neurons._neuron import Neuron, drawn

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
    params = drawn(neuron, jax.random.key(0), _NEURONS)
    start = neuron.initial_state(params, 1, _NEURONS)

    def step(state: Any, current: Array) -> tuple[Any, Array]:
        membrane, _, after = neuron.advance(params, state, jnp.broadcast_to(current, (1, _NEURONS)))
        return neuron.finish(after, jnp.zeros_like(membrane)), membrane[0]

    impulse = jnp.zeros(_STEPS, jnp.float32).at[0].set(1)
    quiet = jax.lax.scan(step, start, jnp.zeros_like(impulse))[1]
    response = jax.lax.scan(step, start, impulse)[1] - quiet
    noise, mean = jnp.sum(response**2, axis=0), jnp.sum(response, axis=0) ** 2
    deviation = jnp.sqrt((1 - EXPECTED_RATE) * noise + EXPECTED_RATE * mean)
    if not neuron.spikes:
        return jnp.median(1 / deviation)
    distance = jnp.abs(neuron.threshold(params).astype(quiet.dtype) - quiet[0])
    has_reset = neuron.glif is None or neuron.glif.reset != "none"
    share = _SHARE + (_SHARE_OF_SQUARE * (mean / noise) ** 2 if has_reset else 0)
    return jnp.median(share * distance / deviation)  # the median, because single neurons may be unstable
