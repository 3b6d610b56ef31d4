"""`drive`: how strong the currents of a neuron model should be at the start."""

import functools
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array

from snnjax._types import wide
from snnjax.neurons._neuron import Neuron

# The spikes per step and input that weights are scaled for, and at which neurons should then spike: the activity that
# sparse training aims for, kept alive in deep layers.
EXPECTED_RATE = 0.05
# A normal membrane is above the threshold in 5 % of the steps if its deviation is the distance divided by this.
_QUANTILE = 1.645
# The response to an impulse is followed for this many steps, in this many neurons with constants that may be random.
_STEPS, _NEURONS = 64, 64


@functools.cache
def drive(neuron: Neuron) -> float:
    """The standard deviation of the currents at which these neurons spike at `EXPECTED_RATE`, without their resets.

    Random spikes at that rate are noise in time plus a constant for each neuron, its mean input. A read-out has no
    threshold: then the deviation of its membranes is 1 / 1.645.
    """
    with jax.ensure_compile_time_eval():
        return float(_drive(neuron))


@functools.partial(jax.jit, static_argnums=0)
def _drive(neuron: Neuron) -> Array:
    params = neuron.init(jax.random.key(0), _NEURONS, jnp.float32)
    start = neuron.initial_state(params, 1)

    def step(state: Any, current: Array) -> tuple[Any, Array]:
        membrane, _, after = neuron.advance(params, state, jnp.broadcast_to(current, (1, _NEURONS)))
        return neuron.finish(after, jnp.zeros_like(membrane)), membrane[0]

    impulse = jnp.zeros(_STEPS, jnp.float32).at[0].set(1)
    quiet = jax.lax.scan(step, start, jnp.zeros_like(impulse))[1]
    response = jax.lax.scan(step, start, impulse)[1] - quiet
    noise, mean = jnp.sum(response**2, axis=0), jnp.sum(response, axis=0) ** 2
    deviation = jnp.sqrt((1 - EXPECTED_RATE) * noise + EXPECTED_RATE * mean)
    distance = jnp.abs(wide(neuron.threshold(params)) - quiet[0])
    distance = jnp.where(jnp.isfinite(distance), distance, 1)
    # The median, because single neurons may be unstable.
    return jnp.median(distance / deviation) / _QUANTILE
