"""A layer of integer neurons over all steps, with and without its derivative."""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int32

from snnjax._quantised import Quantised
from snnjax.blocks.block import aligned_mask, choose
from snnjax.fixed_point._chips import FixedPoint
from snnjax.fixed_point._network import IntegerLayer, LayerState
from snnjax.fixed_point._step import (
    Membranes,
    Smooth,
    advance,
    beside,
    overflowed,
    with_derivative,
)
from snnjax.ops.spike_matmul import spike_matmul
from snnjax.surrogates import Surrogate


class Real(NamedTuple):
    """What the derivative of a layer reads."""

    smooth: Smooth
    spiking: tuple[Surrogate, bool] | None  # and whether the reset is detached; None for neurons without spikes


class Steps(NamedTuple):
    """What a layer did in each step: int32, or float32 with a derivative."""

    spikes: Array  # [time, batch, neurons]
    v: Array  # [time, batch, neurons]
    current: Array  # [time, synapses, batch, neurons]


class _Sources(NamedTuple):
    """What arrives in a step, source by source, for chips whose currents saturate after each."""

    spikes: Array  # [batch, sources]
    weights: Array  # int32 [synapses, sources, neurons], shifted


def run_layer(
    chip: FixedPoint,
    layer: IntegerLayer,
    state: LayerState,
    spikes: Float[Array, "time batch inputs"],
    valid: Bool[Array, "time batch"] | None,
    real: Real | None = None,
) -> tuple[Steps, LayerState]:
    """All steps of a layer; its state stays after the end of a sequence, and spikes there are 0.

    With `real` weights and state are float32 that holds integers.
    """
    if valid is not None:
        spikes = jnp.where(aligned_mask(valid, 3), spikes, 0)
    late = None
    if state.arriving is not None:
        rows = jnp.concatenate([state.arriving[None], spikes])
        late = rows[-1] if valid is None else _last(rows, valid)
        spikes = rows[:-1]
    inputs = spikes, _drive(layer.weights, layer.shift, spikes)
    real = None if real is None else real._replace(smooth=beside(real.smooth))
    step = functools.partial(_step, chip, layer, real)
    (membranes, fired), steps = jax.lax.scan(step, (state.membranes, state.fired), (inputs, valid))
    return steps, LayerState(membranes, late, fired)


def _step(
    chip: FixedPoint, layer: IntegerLayer, real: Real | None, carry: Any, xs: Any
) -> tuple[Any, Steps]:
    (before, fired), ((spikes, drive), inside) = carry, xs
    if layer.recurrent is not None:
        drive = drive + _drive(layer.recurrent, layer.recurrent_shift, fired)
    whole = jax.tree.map(_integers, before)
    arriving = _integers(drive)
    if chip.each_source:
        arriving = _in_order(chip, layer, whole.current, arriving, spikes, fired)
    after, count = advance(chip, jax.tree.map(_integers, beside(layer.neurons)), whole, arriving)
    if real is not None:
        after, count = with_derivative(chip, real.smooth, real.spiking, before, drive, (after, count))
    after, count = choose_state(inside, after, before), choose(inside, count, jnp.zeros_like(count))
    own = None if fired is None else choose(inside, count.astype(fired.dtype), fired)
    return (after, own), Steps(count, after.v, after.current)


def choose_state(inside: Array | None, after: Membranes, before: Membranes) -> Membranes:
    """The state of the sequences that have not ended; currents have the synapses first."""
    if inside is None:
        return after
    is_inside = inside[:, None]
    return Membranes(
        jnp.where(is_inside, after.v, before.v), jnp.where(is_inside[None], after.current, before.current)
    )


def _integers(array: Array) -> Int32[Array, "..."]:
    return jax.lax.stop_gradient(array).astype(jnp.int32)


def _drive(weights: Array, shift: Any, spikes: Array) -> Float[Array, "*axes synapses batch neurons"]:
    """The sums of the weights of all spikes, float32 that holds integers: exact below 2^24, in any order."""
    synapses, inputs, neurons = weights.shape
    flat = jnp.moveaxis(weights, 0, 1).reshape(inputs, synapses * neurons)
    if flat.dtype == jnp.int8:
        flat = Quantised(flat, jnp.ones(synapses * neurons, jnp.float32))
    sums = spike_matmul(spikes, flat).reshape(*spikes.shape[:-1], synapses, neurons)
    return jnp.moveaxis(sums, -2, -3) * (1 << jnp.asarray(shift, jnp.int32)).astype(jnp.float32)


def _in_order(
    chip: FixedPoint,
    layer: IntegerLayer,
    current: Int32[Array, "synapses batch neurons"],
    arriving: Int32[Array, "synapses batch neurons"],
    spikes: Float[Array, "batch inputs"],
    fired: Float[Array, "batch neurons"] | None,
) -> Int32[Array, "synapses batch neurons"]:
    """What all sources together change of a current that saturates after each of them.

    It is their sum, unless they could reach a bound on the way; only then they are added one by one.
    """
    sources = [_Sources(_integers(spikes), _integers(layer.weights) << layer.shift)]
    if layer.recurrent is not None and fired is not None:
        sources.append(_Sources(_integers(fired), _integers(layer.recurrent) << layer.recurrent_shift))
    way = jnp.abs(current)
    for own in sources:
        most = jnp.max(jnp.abs(own.weights), axis=1, initial=0)  # [synapses, neurons]
        way += jnp.sum(own.spikes, axis=-1)[None, :, None] * most[:, None]

    def add(held: Array, source: tuple[Array, Array]) -> tuple[Array, None]:
        counts, weights = source
        return overflowed(chip, held + counts[None, :, None] * weights[:, None]), None

    def one_by_one() -> Array:
        end = current
        for own in sources:
            end, _ = jax.lax.scan(add, end, (own.spikes.T, jnp.moveaxis(own.weights, 1, 0)))
        return end - current

    return jax.lax.cond(jnp.any(way > chip.bounds[1]), one_by_one, lambda: arriving)


def _last(rows: Float[Array, "rows batch inputs"], valid: Bool[Array, "time batch"]) -> Array:
    """The last spikes of each sequence, of rows that begin with those before the first step."""
    lengths = jnp.sum(valid, axis=0, dtype=jnp.int32)
    return jnp.take_along_axis(rows, lengths[None, :, None], axis=0)[0]
