"""A layer of integer neurons over all steps."""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Bool, Float, Int32

from snnjax.blocks.block import aligned_mask
from snnjax.fixed_point._chips import FixedPoint
from snnjax.fixed_point._network import IntegerLayer, LayerState
from snnjax.fixed_point._route import drive_of
from snnjax.fixed_point._step import Membranes, advance, beside, overflowed


class Steps(NamedTuple):
    """What a layer did in each step."""

    spikes: Int32[Array, "time batch neurons"]
    v: Int32[Array, "time batch neurons"]
    current: Int32[Array, "time synapses batch neurons"]


# The state of neurons, and their last spikes if they are recurrent.
Start = tuple[Membranes, Array | None]


class Arriving(NamedTuple):
    """What arrives at a layer from outside."""

    spikes: Float[Array, "time batch inputs"]
    drive: Float[Array, "time synapses batch neurons"]  # their sums, float32 that holds integers
    valid: Bool[Array, "time batch"] | None  # within a sequence


def run_layer(
    chip: FixedPoint,
    layer: IntegerLayer,
    state: LayerState,
    spikes: Float[Array, "time batch inputs"],
    valid: Bool[Array, "time batch"] | None,
) -> tuple[Steps, LayerState]:
    """All steps of a layer; its state stays after the end of a sequence, and spikes there are 0."""
    spikes, late = delivered(state.arriving, spikes, valid)
    arriving = Arriving(spikes, drive_of(layer.weights, layer.shift, spikes, layer.route), valid)
    (membranes, fired), steps = scan_neurons(chip, layer, (state.membranes, state.fired), arriving)
    return steps, LayerState(membranes, late, fired)


def delivered(
    before: Array | None, spikes: Float[Array, "time batch inputs"], valid: Array | None
) -> tuple[Array, Array | None]:
    """The spikes that arrive in each step, and those that arrive after the last one; None where none are late."""
    if valid is not None:
        spikes = jnp.where(aligned_mask(valid, 3), spikes, 0)
    if before is None:
        return spikes, None
    rows = jnp.concatenate([before[None], spikes])
    if valid is None:
        return rows[:-1], rows[-1]
    lengths = jnp.sum(valid, axis=0, dtype=jnp.int32)
    return rows[:-1], jnp.take_along_axis(rows, lengths[None, :, None], axis=0)[0]


def scan_neurons(
    chip: FixedPoint, layer: IntegerLayer, start: Start, arriving: Arriving
) -> tuple[Start, Steps]:
    """The steps of neurons on given drives; `start` is their state, and their last spikes if they are recurrent.

    Where currents saturate after each source, the drive is the sum of all unless a current could have come to a bound
    on the way: only then all steps are run again, with the sources one by one.
    """
    plain = _scan(chip, layer, start, arriving, in_order=False)
    if not chip.each_source:
        return plain
    again = functools.partial(_scan, chip, layer, start, arriving, in_order=True)
    held = jnp.max(jnp.abs(plain[1].current), axis=(1, 3), initial=0)
    before = jnp.concatenate([jnp.max(jnp.abs(start[0].current), axis=(0, 2), initial=0)[None], held[:-1]])
    way = before + _reach(layer.weights, layer.shift, arriving.spikes)
    if layer.recurrent is not None and start[1] is not None:
        fired = jnp.concatenate([start[1][None], plain[1].spikes[:-1].astype(jnp.float32)])
        way += _reach(layer.recurrent, layer.recurrent_shift, fired)
    return jax.lax.cond(jnp.any(way > chip.bounds[1]), again, lambda: plain)


def _scan(
    chip: FixedPoint, layer: IntegerLayer, start: Start, arriving: Arriving, *, in_order: bool
) -> tuple[Start, Steps]:
    neurons = beside(layer.neurons)

    def step(carry: Start, xs: tuple[Array | None, Array, Array | None]) -> tuple[Start, Steps]:
        (before, fired), (spikes, drive, inside) = carry, xs
        if spikes is not None:
            whole = _in_order(chip, layer, before.current, spikes, fired)
        else:
            whole = drive if fired is None else drive + _feedback(layer, fired)
        after, count = advance(chip, neurons, before, whole.astype(jnp.int32))
        if inside is not None:
            within = inside[:, None]
            current = jnp.where(within[None], after.current, before.current)
            after, count = (
                Membranes(jnp.where(within, after.v, before.v), current),
                jnp.where(within, count, 0),
            )
        if fired is not None:
            own = count.astype(jnp.float32)
            fired = own if inside is None else jnp.where(inside[:, None], own, fired)
        return (after, fired), Steps(count, after.v, after.current)

    return jax.lax.scan(step, start, (arriving.spikes if in_order else None, arriving.drive, arriving.valid))


def _feedback(layer: IntegerLayer, fired: Float[Array, "batch neurons"]) -> Array:
    assert layer.recurrent is not None
    return drive_of(layer.recurrent, layer.recurrent_shift, fired)


def _reach(weights: Array, shift: ArrayLike, spikes: Array) -> Int32[Array, "time batch"]:
    """How far the spikes of a step could move any current on the way, at most."""
    most = jnp.max(jnp.abs(weights.astype(jnp.int32)), initial=0) << jnp.asarray(shift)
    return jnp.sum(spikes, axis=-1).astype(jnp.int32) * most


def _in_order(
    chip: FixedPoint,
    layer: IntegerLayer,
    current: Int32[Array, "synapses batch neurons"],
    spikes: Float[Array, "batch inputs"],
    fired: Float[Array, "batch neurons"] | None,
) -> Int32[Array, "synapses batch neurons"]:
    """What all sources, one by one, change of a current that saturates after each of them."""

    def add(shift: ArrayLike, held: Array, source: tuple[Array, Array]) -> tuple[Array, None]:
        counts, weights = (each.astype(jnp.int32) for each in source)
        return overflowed(chip, held + counts[None, :, None] * (weights[:, None] << jnp.asarray(shift))), None

    end = current
    for sources, weights, shift in (
        (spikes, layer.weights, layer.shift),
        (fired, layer.recurrent, layer.recurrent_shift),
    ):
        if sources is not None and weights is not None:
            pairs = sources.T, jnp.moveaxis(weights, 1, 0)
            end, _ = jax.lax.scan(functools.partial(add, shift), end, pairs)
    return end - current
