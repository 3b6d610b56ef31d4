"""One step of integer neurons, in int32."""

from typing import NamedTuple, TypeVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Int32

from snnjax.fixed_point._chips import FixedPoint

T = TypeVar("T")


class Neurons(NamedTuple):
    """The integers of the neurons of a layer."""

    threshold: Int32[Array, " neurons"]
    decay: Int32[Array, " neurons"]
    synapse_decay: Int32[Array, "synapses neurons"]
    bias: Int32[Array, " neurons"]  # added to the membrane


class Membranes(NamedTuple):
    """The state of the neurons of a layer."""

    v: Int32[Array, "batch neurons"]
    current: Int32[Array, "synapses batch neurons"]


def beside(constants: T) -> T:
    """Constants with an axis for the batch before that of the neurons."""
    return jax.tree.map(lambda own: jnp.expand_dims(own, -2), constants)


def decayed(chip: FixedPoint, x: Array, decay: Array) -> Array:
    """What a decay leaves of integers ``[*, neurons]``: ``x - D(x, decay)``."""
    magnitude = jnp.abs(x) if chip.rounding == "to_zero" else x
    if chip.decay == "shift":
        lost = magnitude >> decay
        lost = jnp.sign(x) * lost if chip.rounding == "to_zero" else lost
        return x - (jnp.where((x > 0) & (lost == 0), 1, lost) if chip.at_least_one else lost)
    # (x m) >> bits in two parts, which are the same number, and which int32 holds for 24 bits of x and 12 of m.
    bits, kept = chip.decay_bits, (1 << chip.decay_bits) - decay
    part = (magnitude >> bits) * kept + (((magnitude & ((1 << bits) - 1)) * kept) >> bits)
    return jnp.sign(x) * part if chip.rounding == "to_zero" else part


def saturated(chip: FixedPoint, x: Array) -> Array:
    """States within their bounds."""
    return jnp.clip(x, *chip.bounds)


def overflowed(chip: FixedPoint, x: Array) -> Array:
    """Currents within theirs; a sum of two is beyond them once at most."""
    if chip.overflow == "none":
        return x
    if chip.overflow == "saturate":
        return saturated(chip, x)
    top = 1 << (chip.state_bits - 1)
    if chip.symmetric:
        return jnp.where(x > top, x - 2 * top, jnp.where(x <= -top, x + 2 * top, x))
    return ((x + top) & (2 * top - 1)) - top


def advance(
    chip: FixedPoint, neurons: Neurons, state: Membranes, arriving: Int32[Array, "synapses batch neurons"]
) -> tuple[Membranes, Int32[Array, "batch neurons"]]:
    """One step: the state after it, and the number of spikes of each neuron; the integers are `beside` the state."""
    v, current = state
    arriving = arriving << chip.input_shift
    if chip.input_first:
        current = decayed(chip, overflowed(chip, current + arriving), neurons.synapse_decay)
    else:
        current = overflowed(chip, decayed(chip, current, neurons.synapse_decay) + arriving)
    total, kept = jnp.sum(current, axis=0), decayed(chip, v, neurons.decay)
    if chip.change_first:
        low = chip.bounds[0]
        leak = jnp.where(v - kept == low, low, kept - v)  # the negative of the least number is itself
        change = saturated(chip, saturated(chip, total + leak) + neurons.bias)
        v = saturated(chip, v + change)
    else:
        v = kept + total + neurons.bias
        v = v if chip.bounded_last else saturated(chip, v)
    fires = v >= neurons.threshold if chip.inclusive else v > neurons.threshold
    spikes = fires.astype(v.dtype)
    if chip.max_spikes > 1:
        # In float32, which vector units divide: for whole numbers below 2^24 the floor is that of their quotient.
        times = v.astype(jnp.float32) / jnp.maximum(neurons.threshold, 1).astype(jnp.float32)
        spikes *= jnp.clip(times, 1, chip.max_spikes).astype(v.dtype)
    after = v - spikes * neurons.threshold if chip.reset == "subtract" else jnp.where(fires, 0, v)
    return Membranes(saturated(chip, after) if chip.bounded_last else after, current), spikes


def kept_share(chip: FixedPoint, decay: Array) -> Array:
    """The share of a state that a decay keeps, without rounding."""
    if chip.decay == "shift":
        return 1 - 2.0 ** -decay.astype(jnp.float32)
    return 1 - decay.astype(jnp.float32) / 2**chip.decay_bits
