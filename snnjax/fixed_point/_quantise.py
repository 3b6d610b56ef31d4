"""The integers of a network for a chip: straight-through, so that training and conversion share them to the bit."""

import functools
from typing import Any, NamedTuple, cast

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from snnjax._types import Params, Stats, upcast
from snnjax.blocks._dense import Dense
from snnjax.blocks.block import one_per_neuron
from snnjax.blocks.conv import Convolve
from snnjax.blocks.readout import Integrator
from snnjax.blocks.spiking import Spiking
from snnjax.fixed_point._chips import FixedPoint
from snnjax.fixed_point._derivative import Real, SpikeRule
from snnjax.fixed_point._network import IntegerLayer
from snnjax.fixed_point._route import route_of
from snnjax.fixed_point._step import Neurons, kept_share
from snnjax.graph.layers import ChainLayer
from snnjax.neurons import GLIF

# A threshold is at most this share of the range of a membrane, so that the membrane rarely comes to its bounds; so is a
# membrane of 1 of neurons that do not spike.
_ROOM = 1 / 4


class Decays(NamedTuple):
    """The shares that states keep in a step: those of the network, and those of the chip."""

    wanted: Float[Array, " neurons"]
    synapse_wanted: Float[Array, " neurons"]  # 0 for neurons without synapse
    had: Float[Array, " neurons"]
    synapse_had: Float[Array, " neurons"]


class Quantised(NamedTuple):
    """The integers of a layer, and how they were found."""

    layer: IntegerLayer
    real: Real  # with derivatives straight through
    rule: SpikeRule | None  # None for neurons that do not spike
    decays: Decays
    scale: Float[Array, " neurons"]  # a weight of 1, in integers
    clipped: dict[str, Array]  # how many integers were clipped, of those named
    # Whether all numbers are that became integers: NaN would be the weight 0, as if nothing were wrong.
    is_finite: Bool[Array, ""]


class _Physical(NamedTuple):
    """The constants of the real neurons, each [neurons]."""

    decay: Array
    gain: Array  # of the membrane for a constant current: what it adds in a step, over 1 - decay
    synapse_decay: Array
    synapse_gain: Array  # of the current for a constant input
    threshold: Array


def quantised_layer(chip: FixedPoint, own: ChainLayer, params: Params, stats: Stats) -> Quantised:
    """The integers of a layer.

    Weights of neuron `j` are multiplied by a scale, and its threshold by that and by what the chip's filters amplify:
    scales cost nothing. Neurons that do not spike have one scale for all, by which they can be compared.
    """
    nodes = (own.connection, own.neuron, *own.returning)
    held = [
        {node.name: tree[node.name] for node in nodes if node.name in tree} for tree in (params, stats or {})
    ]
    neuron = cast(Spiking | Integrator, own.neuron.block).neuron
    assert neuron.glif is not None
    rule = SpikeRule(neuron.surrogate, neuron.glif.detach_reset) if neuron.spikes else None
    layer, *rest = _quantised(chip, own, *held)
    return Quantised(layer, rest[0], rule, *rest[1:])


# Outside of `jit` each of its many operations would be compiled alone.
@functools.partial(jax.jit, static_argnames=("chip", "own"))
def _quantised(chip: FixedPoint, own: ChainLayer, params: Params, stats: Stats) -> tuple[Any, ...]:
    block = cast(Spiking | Integrator, own.neuron.block)
    form = block.neuron.glif
    assert form is not None
    real = _physical(block, params.get(own.neuron.name), stats.get(own.neuron.name), own.out_shape)
    decay, synapse_decay = _decays(chip, real)
    had, synapse_had = kept_share(chip, decay), kept_share(chip, synapse_decay)
    found = _weights(own, params)
    weights, recurrent, bias = found
    spikes = block.neuron.spikes
    gain = _amplification(chip, real, had, synapse_had)
    fits = _one_scale if chip.one_scale else functools.partial(_scales, gain=gain, spikes=spikes)
    factor = jax.lax.stop_gradient(fits(chip, found, real.threshold))
    scale = jnp.broadcast_to(factor, gain.shape)
    unit = jax.lax.stop_gradient(scale * gain)
    clipped: dict[str, Array] = {}
    thresholds, clipped["thresholds"] = _threshold(chip, unit * real.threshold, form, spikes)
    bias = None if bias is None else one_per_neuron(bias, own.out_shape)
    smooth_bias, whole_bias, clipped["biases"] = _bias(chip, bias, scale, synapse_had)
    whole = _whole(chip, weights, factor), None if recurrent is None else _whole(chip, recurrent, factor)
    layer = IntegerLayer(
        weights=_as_int8(whole[0]),
        recurrent=None if whole[1] is None else _as_int8(whole[1]),
        neurons=Neurons(thresholds, decay, synapse_decay[None], whole_bias),
        unit=unit,
        shift=jnp.int32(chip.weight_shift),
        recurrent_shift=jnp.int32(chip.weight_shift),
        route=route_of(own),
        name=own.neuron.name,
    )
    held = Real(*whole, real.threshold, smooth_bias, unit, had, synapse_had[None])
    decays = Decays(real.decay, real.synapse_decay, had, synapse_had)
    return layer, held, decays, scale, clipped, _are_finite(found, real)


def _are_finite(held: "_Weights", real: _Physical) -> Bool[Array, ""]:
    threshold = jnp.where(jnp.isinf(real.threshold), 0, real.threshold)  # readouts never reach theirs
    numbers = [*held, threshold, real.decay, real.synapse_decay]
    return jnp.all(jnp.stack([jnp.all(jnp.isfinite(own)) for own in numbers if own is not None]))


def _physical(block: Spiking | Integrator, params: Params, stats: Stats, shape: tuple[int, ...]) -> _Physical:
    form = block.neuron.glif
    assert form is not None
    found = form.constants(block.neuron_params(params, stats, shape))
    count, second = int(np.prod(shape)), found.second_state
    each = lambda value: jnp.broadcast_to(upcast(jnp.asarray(value)), (count,)).astype(jnp.float32)  # noqa: E731
    steady = lambda gain, decay: gain / jnp.where(decay == 1, 1, 1 - decay)  # noqa: E731
    decay, threshold = each(found.decay), each(found.threshold)
    if second is None:
        none, one = jnp.zeros(count), jnp.ones(count)
        return _Physical(decay, steady(each(found.gain), decay), none, one, threshold)
    synapse = each(second.w_decay)
    gain, synapse_gain = each(second.v_coupling), each(second.w_gain)
    return _Physical(decay, steady(gain, decay), synapse, steady(synapse_gain, synapse), threshold)


def _decays(chip: FixedPoint, real: _Physical) -> tuple[Array, Array]:
    """The nearest decays: of shifts on a logarithmic scale of the time constant."""
    most = 2**chip.decay_bits - 1
    if chip.decay == "shift":
        near = lambda kept: jnp.round(-jnp.log2(jnp.maximum(1 - kept, 2.0**-most)))  # noqa: E731
    else:
        near = lambda kept: jnp.round((1 - kept) * 2**chip.decay_bits)  # noqa: E731
    whole = lambda kept, least, most: jnp.clip(near(kept), least, most).astype(jnp.int32)  # noqa: E731
    least = chip.least_synapse_decay
    return whole(real.decay, 0, most), whole(real.synapse_decay, least, most + chip.synapse_offset)


def _amplification(chip: FixedPoint, real: _Physical, had: Array, synapse_had: Array) -> Array:
    """A membrane of 1 over a weight of 1, in integers: a constant input has the effect that it has on real neurons."""
    first = synapse_had if chip.input_first else jnp.ones_like(synapse_had)
    steady = lambda decay: jnp.where(decay == 1, 1, 1 - decay)  # noqa: E731
    moved = first / (real.synapse_gain * steady(synapse_had)) / (real.gain * steady(had))
    return moved * 2.0 ** (chip.input_shift + chip.weight_shift)


def _scales(
    chip: FixedPoint, held: "_Weights", threshold: Array, *, gain: Array, spikes: bool
) -> Float[Array, "..."]:
    """The largest scale of each neuron at which weights fit into their bits, and thresholds into a membrane."""
    every = held.weights if held.recurrent is None else jnp.concatenate([held.weights, held.recurrent])
    size = jnp.max(jnp.abs(every), axis=0, initial=0)
    tiny, top = jnp.finfo(jnp.float32).tiny, 2.0 ** (chip.state_bits - 1)
    room = _ROOM * top / jnp.maximum(gain * (threshold if spikes else 1), tiny)
    found = jnp.minimum(chip.most_weight / jnp.maximum(size, tiny * chip.most_weight), room)
    return found if spikes else jnp.min(found)


def _one_scale(chip: FixedPoint, held: "_Weights", threshold: Array) -> Float[Array, ""]:
    """The largest scale of a layer at which everything fits into its bits, as `discretize` of sinabs finds it."""

    def fits(own: Array, bits: int) -> Array:
        top, low, high = 2.0 ** (bits - 1), jnp.abs(jnp.min(own)), jnp.abs(jnp.max(own))
        return jnp.where(low <= high * (top / (top - 1)), (top - 1) / high, top / low)

    found = [fits(held.weights, chip.weight_bits), fits(threshold, chip.threshold_bits + 1)]
    if held.bias is not None:
        found.append(fits(held.bias, chip.bias_bits))
    return jnp.min(jnp.stack(found))


class _Weights(NamedTuple):
    """The weights as they are multiplied, float32."""

    weights: Array
    recurrent: Array | None
    bias: Array | None


def _weights(own: ChainLayer, params: Params) -> _Weights:
    """The weights, those of the neurons themselves, and the bias."""
    block = cast(Dense | Convolve, own.connection.block)
    held = params[own.connection.name]
    weights = block.used(held.weights).astype(jnp.float32) * route_of(own).factor
    bias = None if held.bias is None else held.bias.astype(jnp.float32)
    if not own.returning:
        return _Weights(weights, None, bias)
    returning = cast(Dense, own.returning[-1].block)
    recurrent = returning.used(params[own.returning[-1].name].weights).astype(jnp.float32)
    return _Weights(weights, recurrent, bias)


def _whole(chip: FixedPoint, weights: Array, scale: Array) -> Float[Array, "1 *inputs neurons"]:
    """Whole weights in float32, with the derivative of those that are not rounded."""
    scaled = (weights * (scale if scale.ndim == 0 else scale[None]))[None]
    rounded = jnp.clip(jnp.round(jax.lax.stop_gradient(scaled)), chip.least_weight, chip.most_weight)
    return rounded + (scaled - jax.lax.stop_gradient(scaled))


def _as_int8(weights: Array) -> Array:
    return jax.lax.stop_gradient(weights).astype(jnp.int8)


def _threshold(chip: FixedPoint, real: Array, form: GLIF, spikes: bool) -> tuple[Array, Array]:
    """Thresholds as the chip compares them, and how many it does not hold.

    Whole numbers are above a real threshold if they are at least the next integer; with one scale the nearest integer
    is what sinabs takes.
    """
    step, most = 2**chip.threshold_shift, (2**chip.threshold_bits - 1) << chip.threshold_shift
    if not spikes:
        return jnp.full(real.shape, most, jnp.int32), jnp.int32(0)
    first = jnp.ceil(real) if form.inclusive else jnp.floor(real) + 1
    first = real if chip.one_scale else first if chip.inclusive else first - 1
    wanted = step * jnp.round(first / step)
    clipped = jnp.clip(wanted, step, most)
    return clipped.astype(jnp.int32), jnp.sum(wanted != clipped)


def _bias(
    chip: FixedPoint, bias: Array | None, scale: Array, synapse_had: Array
) -> tuple[Array, Array, Array]:
    """The bias of the membrane, smooth and whole: that of the input, once its current has settled."""
    if bias is None:
        none = jnp.zeros_like(scale)
        return none, none.astype(jnp.int32), jnp.int32(0)
    first = synapse_had if chip.input_first else jnp.ones_like(synapse_had)
    settled = scale * first / jnp.where(synapse_had == 1, 1, 1 - synapse_had)
    smooth = bias * settled * 2.0 ** (chip.input_shift + chip.weight_shift)
    most = 2.0 ** (chip.bias_bits - 1) - 1
    exponent = jnp.ceil(jnp.log2(jnp.maximum(jnp.abs(smooth) / most, 1)))
    step = 2.0 ** jnp.clip(exponent, 0, chip.bias_shift)
    mantissa = jnp.round(smooth / step)
    least = -most - 1 if chip.one_scale else -most
    held = jnp.clip(mantissa, least, most)
    whole = jax.lax.stop_gradient(held * step)
    return smooth, whole.astype(jnp.int32), jnp.sum(held != mantissa)
