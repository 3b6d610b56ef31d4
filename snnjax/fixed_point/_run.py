"""A layer of integer neurons over all steps: one target, whose reference here is the definition."""

import functools
from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Float, Int32

from snnjax._batching import SHARED, any_group
from snnjax._dispatch import Kernel, Target, evaluate
from snnjax._sharding import gathered
from snnjax._types import steps_within
from snnjax.fixed_point._chips import FixedPoint
from snnjax.fixed_point._network import IntegerLayer, LayerState
from snnjax.fixed_point._route import drive_of, pooled_on
from snnjax.fixed_point._step import Membranes, Neurons, advance, beside, overflowed
from snnjax.ops._kernel_operands import call_by_records
from snnjax.ops._tables.integer_layer import ChipNumbers, Operands, Results


class Steps(NamedTuple):
    """What a layer did in each step; float32 that holds integers."""

    spikes: Float[Array, "time batch neurons"]
    v: Float[Array, "time batch neurons"]
    current: Float[Array, "time synapses batch neurons"]
    counts: Int32[Array, "batch neurons"]  # of spikes in all steps


# The state of neurons, and their last spikes if they are recurrent.
_Carry = tuple[Membranes, Array | None]


def run_layer(
    chip: FixedPoint,
    layer: IntegerLayer,
    state: LayerState,
    spikes: Array,
    lengths: Int32[Array, " batch"] | None,
    *,
    implementation: str | None = None,
) -> tuple[Steps, LayerState]:
    """All steps of a layer; its state stays after the end of a sequence, and spikes there are 0."""
    operands = _operands(layer, state, spikes, lengths)
    steps, size = spikes.shape[0], state.membranes
    shapes = (own.shape for own in (size.v, size.v, size.current))
    seen = (jax.ShapeDtypeStruct((steps, *own), jnp.float32) for own in shapes)
    last = (jax.ShapeDtypeStruct(own.shape, jnp.int32) for own in (size.v, *size))
    held = ((name, own) for name, own in operands._asdict().items() if own is not None)
    found: Results = evaluate(
        _TARGET,
        jax.lax.stop_gradient(operands),
        operands._replace(**{name: _BATCH_AXES.get(name, SHARED) for name, _ in held}),
        Results(1, 1, 2, 0, 0, 1),
        chip,
        results=Results(*seen, *last),
        droppable=Results(True, True, True, False, False, False),
        implementation=implementation,
    )
    return Steps(*found[:4]), LayerState(
        Membranes(found.v, found.current),
        _last(state.arriving, spikes, lengths),
        _last(state.fired, found.spikes, lengths),
    )


# The batch axes of those operands that have one.
_BATCH_AXES = {"spikes": 1, "before": 0, "drive": 2, "v": 0, "current": 1, "fired": 0, "lengths": 0}


def _operands(layer: IntegerLayer, state: LayerState, spikes: Array, lengths: Array | None) -> Operands:
    """What the target reads: spikes and weights; the sums behind a convolution."""
    route, before = layer.route, state.arriving
    if route.convolution is not None:
        drive = drive_of(layer.weights, layer.shift, delivered(before, spikes), route)
        sent = {"spikes": None, "before": None, "weights": None, "drive": drive}
    else:
        before = None if before is None else pooled_on(route, before)
        sent = {"spikes": pooled_on(route, spikes), "before": before, "weights": layer.weights, "drive": None}
    operands = Operands(
        **sent,
        recurrent=layer.recurrent,
        shift=jnp.asarray(layer.shift, jnp.int32),
        recurrent_shift=jnp.asarray(layer.recurrent_shift, jnp.int32),
        **layer.neurons._asdict(),
        **state.membranes._asdict(),
        fired=state.fired,
        lengths=lengths,
    )
    return gathered(operands)


def delivered(before: Array | None, spikes: Array) -> Float[Array, "time batch inputs"]:
    """The spikes that arrive in each step: those of the step before, where spikes are late."""
    spikes = spikes.astype(jnp.float32)
    return spikes if before is None else a_step_later(before, spikes)


def a_step_later(before: Array, rows: Array) -> Array:
    """The row of the step before, in each step."""
    return jnp.concatenate([before[None], rows])[: rows.shape[0]]


def _last(before: Array | None, rows: Array, lengths: Array | None) -> Array | None:
    """The row of the last step of each sequence; that before where it has none, and None where none is kept."""
    if before is None or rows.shape[0] == 0:
        return before
    if lengths is None:
        return rows[-1].astype(jnp.float32)
    place = jnp.clip(lengths - 1, 0, rows.shape[0] - 1)
    found = jnp.take_along_axis(rows, place[None, :, None], axis=0)[0]
    return jnp.where(lengths[:, None] > 0, found.astype(jnp.float32), before)


def _reference(operands: Operands, chip: FixedPoint) -> Results:
    """The steps of neurons.

    Where currents saturate after each source, the drive is the sum of all unless a current could have come to a bound
    on the way: only then all steps are run again, with the sources one by one.
    """
    spikes, drive = None, operands.drive
    if drive is None:
        spikes = delivered(operands.before, operands.spikes)
        drive = drive_of(operands.weights, operands.shift, spikes)
    plain = _scan(chip, operands, None, drive)
    if not chip.each_source or spikes is None:
        return plain
    held = jnp.max(jnp.abs(plain.currents), axis=(1, 3), initial=0)
    before = jnp.max(jnp.abs(operands.current), axis=(0, 2), initial=0).astype(jnp.float32)
    way = a_step_later(before, held).astype(jnp.int32)
    way += _reach(operands.weights, operands.shift, spikes)
    if operands.recurrent is not None:
        fired = a_step_later(operands.fired, plain.spikes)
        way += _reach(operands.recurrent, operands.recurrent_shift, fired)
    again = functools.partial(_scan, chip, operands, spikes, drive)
    return jax.lax.cond(any_group(way > chip.bounds[1]), again, lambda: plain)


def _scan(
    chip: FixedPoint,
    operands: Operands,
    spikes: Float[Array, "time batch inputs"] | None,
    drive: Float[Array, "time synapses batch neurons"],
) -> Results:
    """All steps on sums that arrive; with `spikes` by each source in order."""
    own = operands
    neurons = beside(Neurons(own.threshold, own.decay, own.synapse_decay, own.bias))

    def step(carry: _Carry, xs: tuple[Array | None, Array, Array | None]) -> tuple[_Carry, tuple[Array, ...]]:
        (before, fired), (sources, whole, inside) = carry, xs
        if sources is not None:
            whole = _in_order(chip, own, before.current, sources, fired)
        elif fired is not None:
            whole = whole + drive_of(own.recurrent, own.recurrent_shift, fired)
        after, count = advance(chip, neurons, before, whole.astype(jnp.int32))
        if inside is not None:
            within = inside[:, None]
            current = jnp.where(within[None], after.current, before.current)
            after = Membranes(jnp.where(within, after.v, before.v), current)
            count = jnp.where(within, count, 0)
        if fired is not None:
            now = count.astype(jnp.float32)
            fired = now if inside is None else jnp.where(inside[:, None], now, fired)
        return (after, fired), (count, after.v, after.current)

    start = Membranes(own.v, own.current), own.fired
    xs = spikes, drive, steps_within(drive.shape[0], own.lengths)
    (end, _), steps = jax.lax.scan(step, start, xs)
    spikes, membranes, currents = (each.astype(jnp.float32) for each in steps)
    return Results(spikes, membranes, currents, jnp.sum(steps[0], 0), *end)


def _reach(weights: Array, shift: ArrayLike, spikes: Array) -> Int32[Array, "time batch"]:
    """How far the spikes of a step could move any current on the way, at most."""
    most = jnp.max(jnp.abs(weights.astype(jnp.int32)), initial=0) << jnp.asarray(shift)
    return jnp.sum(spikes, axis=-1).astype(jnp.int32) * most


def _in_order(
    chip: FixedPoint,
    operands: Operands,
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
        (spikes, operands.weights, operands.shift),
        (fired, operands.recurrent, operands.recurrent_shift),
    ):
        if sources is not None:
            pairs = sources.T, jnp.moveaxis(weights, 1, 0)
            end, _ = jax.lax.scan(functools.partial(add, shift), end, pairs)
    return end - current


def _call(operands: Operands, chip: FixedPoint, results: Sequence[jax.ShapeDtypeStruct]) -> list[Array]:
    numbers = ChipNumbers(
        state_bits=chip.state_bits,
        decay_bits=chip.decay_bits,
        input_shift=chip.input_shift,
        max_spikes=chip.max_spikes,
        shifts=chip.decay == "shift",
        to_zero=chip.rounding == "to_zero",
        at_least_one=chip.at_least_one,
        saturates=chip.overflow == "saturate",
        wraps=chip.overflow == "wrap",
        symmetric=chip.symmetric,
        each_source=chip.each_source and operands.drive is None,
        input_first=chip.input_first,
        change_first=chip.change_first,
        bounded_last=chip.bounded_last,
        subtracts=chip.reset == "subtract",
        inclusive=chip.inclusive,
    )
    return call_by_records("snnjax_integer_layer", operands, Results(*results), [numbers])


def _obstacle(shapes: Operands, _: FixedPoint) -> str | None:
    for what, own in (("weights", shapes.weights), ("recurrent weights", shapes.recurrent)):
        if own is not None and own.dtype != jnp.int8:
            return f"{own.dtype.name} {what}"
    return None


_TARGET = Target("snnjax_integer_layer", "integer_layer", _reference, {"cpu": Kernel(_call, _obstacle)})
