"""The jnp reference of `lif_network`: its layers one after another, and backwards in reverse order."""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple, cast

import jax
import jax.numpy as jnp
from jax.typing import DTypeLike
from jaxtyping import Array

from snnjax._sparse_spikes import SparseSpikes, gather, list_ids, scatter
from snnjax._types import id_dtype, steps_within, upcast
from snnjax.ops._connection import Connection
from snnjax.ops._glif_step import align
from snnjax.ops._lif_network.layer import (
    Known,
    LayerRun,
    Neurons,
    all_rows,
    as_taps,
    layer_again,
    layer_forward,
    product,
    recorded,
    replayed,
    returned_over_time,
    rows_of,
    states_again,
)
from snnjax.ops._lif_network.recorded import membranes_of, packed, recorded_membranes, unpacked
from snnjax.ops._lif_network.records import (
    BackwardArguments,
    Cotangents,
    ForwardResults,
    Kept,
    LayerRecord,
    LayerState,
    Operands,
    ReadoutOperands,
    Record,
    Results,
    Weighted,
)
from snnjax.ops._lif_network.shapes import LEFT_OUT
from snnjax.ops._lif_network.switches import LayerSwitches, Needs, Switches, differentiable, reads_currents
from snnjax.ops._tables.delay_spikes import Operands as DelayOperands
from snnjax.ops._time_scan import PLAIN, Loops
from snnjax.ops.delay_spikes import arrivals
from snnjax.ops.spike_matmul import of_tested_weights, untested, without_zeros


class LayerOverTime(NamedTuple):
    """A layer and what happened in it."""

    neurons: Neurons
    current: Any  # of its inputs; None where nothing needs it
    run: LayerRun
    sent: Array  # the listed spikes, dense
    last: LayerState


def forward(
    operands: Operands,
    switches: Switches,
    loops: Loops = PLAIN,
    keep: Callable[[Record, list[LayerRun]], Record] = lambda record, _: record,
) -> ForwardResults:
    """Run the network over all time steps; also return the record if the switches require it.

    `keep` may remember what the record was made of, for the backward pass.
    """
    valid, dtype = valid_steps(operands), operands.dtype
    layers = _run_layers(operands, switches, loops)
    counts, dropped, spikes = [], [], []
    for neurons, _, run, sent, _ in layers:
        true_spikes = neurons.true_spikes(run, valid, dtype)
        counts.append(jnp.sum(upcast(true_spikes), axis=0))
        dropped.append(_dropped(true_spikes, neurons.switches.capacity))
        spikes.append(
            _as_result(neurons, sent, true_spikes, run) if neurons.switches.records_spikes else None
        )
    output, last_readout = None, None
    if operands.readout is not None:
        output, last_readout = _leaky_forward(
            current_of(operands.readout.linear, layers[-1].sent, switches.readout, loops),
            valid,
            operands,
            loops,
        )
    last = tuple(layer.last for layer in layers)
    results = Results(output, tuple(counts), tuple(dropped), tuple(spikes), last, last_readout)
    if not switches.keeps_record:
        return ForwardResults(results, None)
    runs = [_as_recorded(layer, operands.dtype) for layer in layers]
    return ForwardResults(results, keep(record_of(operands, layers), runs))


def valid_steps(operands: Operands) -> Array | None:
    """Where a sequence has not ended yet, bool ``[time, batch]``; None without lengths."""
    return steps_within(jax.tree.leaves(operands.inputs)[0].shape[0], operands.lengths)


def _run_layers(
    operands: Operands, switches: Switches, loops: Loops, runs: list[LayerRun] | None = None
) -> list[LayerOverTime]:
    """The layers one after another; if they ran before, as recorded, and with no spike or cotangent rounded."""
    x, valid, layers = dense_inputs(operands, switches), valid_steps(operands), []
    made = neurons_of(operands, switches, loops, replays=runs is not None)
    each = zip(operands.linears, made, operands.first, strict=True)
    for index, (linear, neurons, first) in enumerate(each):
        connection, before = neurons.switches.connection, first._replace(pending=None)
        x, left = delayed_inputs(operands, linear, x, first, connection)
        again, is_fed_back = runs is not None, neurons.constants.recurrent is not None
        current = current_of(linear, x, connection, loops, again, in_rows=again and not is_fed_back)
        given = neurons, current, valid, before
        if runs is None:
            run, x, last = layer_forward(*given, operands.dtype)
        else:
            run, x, last = layer_again(*given, runs[index])
        layers.append(LayerOverTime(neurons, current, run, x, last._replace(pending=left)))
    return layers


def neurons_of(
    operands: Operands, switches: Switches, loops: Loops = PLAIN, *, replays: bool = False
) -> list[Neurons]:
    """The neurons of each layer; delays of recurrent synapses are part of their weights (`as_taps`)."""
    each = zip(operands.constants, switches.layers, strict=True)
    return [Neurons(as_taps(constants, layer), layer, loops, replays) for constants, layer in each]


def record_of(operands: Operands, layers: list[LayerOverTime]) -> Record:
    """The record for the backward pass."""
    x, bits = operands.inputs, (None, None)
    if not isinstance(x, SparseSpikes) and not operands.has_currents:
        x = _inside(x.astype(operands.dtype), valid_steps(operands))
        bits = packed(x != 0), jnp.all((x == 0) | (x == 1), axis=-1)
    each = zip(layers, operands.linears, operands.first, strict=True)
    return Record(*bits, tuple(_record_of_layer(*layer) for layer in each))


def _record_of_layer(layer: LayerOverTime, linear: Weighted, first: LayerState) -> LayerRecord:
    (constants, switches, *_), current, run, sent, _ = layer
    if switches.records_current and constants.recurrent is not None:
        before = jnp.concatenate([first.spikes[None], sent])[:-1]
        current = current + returned_over_time(constants, switches, before, first)
    v, listed_v = recorded_membranes(run.v, constants, sent.dtype, switches.rounds_record), None
    if switches.capacity is not None and switches.records_listed:
        ids = list_ids(run.listed, switches.capacity)
        listed_v = gather(rows_of(v), rows_of(ids)).reshape(ids.shape)
    return LayerRecord(
        None if reads_currents(linear, constants) else v,
        listed_v,
        current if switches.records_current else None,
        packed(sent > 0),
        None if run.listed is None else packed(run.listed),
    )


def _as_recorded(layer: LayerOverTime, dtype: DTypeLike) -> LayerRun:
    """A run with membranes as precise as those that a backward pass reads."""
    (constants, switches, *_), run = layer.neurons, layer.run
    record = recorded_membranes(run.v, constants, dtype, switches.rounds_record)
    return run._replace(v=membranes_of(record, constants.glif.threshold))


def dense_inputs(operands: Operands, switches: Switches) -> Array:
    """The inputs ``[time, batch, inputs]``, 0 after the end of each sequence.

    They have the weights' dtype, but those of lists are sums and have the accumulation dtype.
    """
    x, are_lists = operands.inputs, isinstance(operands.inputs, SparseSpikes)
    if are_lists:
        ids, values = x.ids, x.values
        width = switches.layers[0].connection.num_inputs(operands.linears[0].weights.shape)
        x = as_dense(ids, upcast(values.astype(operands.dtype)), width)
    return _inside(x if are_lists else x.astype(operands.dtype), valid_steps(operands))


def _inside(x: Array, valid: Array | None) -> Array:
    """`x`, 0 after the end of each sequence."""
    return x if valid is None else jnp.where(valid[:, :, None], x, 0)


def as_dense(ids: Array, values: Array, num_neurons: int) -> Array:
    """``[time, batch, neurons]`` from lists."""
    return scatter(rows_of(ids), rows_of(values), num_neurons).reshape(*ids.shape[:-1], num_neurons)


def delayed_inputs(
    operands: Operands, linear: Weighted, x: Array, first: LayerState, connection: Connection
) -> tuple[Array, Any]:
    """The part of `x` that arrives at a layer, in the accumulation dtype, and the spikes then in transit to it."""
    if connection.max_delay is None:
        return x, None
    given = DelayOperands(x, first.pending.astype(x.dtype), linear.delays, _ends(operands, x.shape[0]))
    results = arrivals(given, connection.max_delay)
    return results.delayed, results.left.astype(first.pending.dtype)


def _ends(operands: Operands, num_steps: int) -> Array | None:
    """The step after the last one of each sequence."""
    return None if operands.lengths is None else jnp.clip(operands.lengths, 0, num_steps)


def current_of(
    linear: Weighted,
    x: Array,
    connection: Connection,
    loops: Loops = PLAIN,
    again: bool = False,
    in_rows: bool = False,
) -> Array:
    """The input current, with its bias, for all steps at once, in the accumulation dtype."""
    # Without loops a product of `x` as it is keeps the layout that the neurons need. The gradient of the weights of a
    # layer that is not recurrent is a product of rows, which no tile transposes: 5.2 in place of 5.5 thousand cycles a
    # step with 2,048 neurons and 4 samples. With 512 recurrent ones and 64 samples rows take 26.2 in place of 24.4.
    entries = x if loops.hopes and not (in_rows or connection.parts) else rows_of(x)
    guard = without_zeros if loops.branches else of_tested_weights
    guard = untested if loops.hopes else guard
    multiply = product if again else functools.partial(Connection.current, guard=guard)
    has_weights = linear.weights is not None
    current: Any = multiply(connection, entries, linear.weights) if has_weights else upcast(entries)
    current = current if linear.factor is None else current * align(linear.factor, current)
    current = current if linear.bias is None else current + align(upcast(linear.bias), current)
    return current.reshape(*x.shape[:-1], current.shape[-1])


def _dropped(true_spikes: Array, capacity: int | None) -> Array:
    """The number of spikes of each sequence that were not listed, int32 ``[batch]``."""
    if capacity is None:
        return jnp.zeros(true_spikes.shape[1], jnp.int32)
    count = jnp.sum(true_spikes > 0, axis=-1, dtype=jnp.int32)
    return jnp.sum(jnp.maximum(count - capacity, 0), axis=0, dtype=jnp.int32)


def _as_result(neurons: Neurons, x: Array, true_spikes: Array, run: LayerRun) -> Array | SparseSpikes:
    """The spikes of a layer in the form returned to the user."""
    capacity = neurons.switches.capacity
    if capacity is None:
        return x
    v, listed = rows_of(run.v), rows_of(run.listed)
    threshold = rows_of(jnp.broadcast_to(neurons.threshold(run).astype(v.dtype), run.v.shape))
    above = v > threshold
    ids = list_ids(listed & above, capacity, then=listed & ~above).astype(id_dtype(x.shape[-1]))
    return SparseSpikes(
        ids.reshape(*x.shape[:-1], capacity),
        gather(rows_of(x), ids).reshape(*x.shape[:-1], capacity),
        jnp.sum(true_spikes > 0, axis=-1, dtype=jnp.int32),
        jnp.sum(run.listed, axis=-1, dtype=jnp.int32),
        LEFT_OUT,
        x.shape[-1],
    )


def _leaky_step(constants: tuple[Array, Array], v: Array, current: Array, known: Known) -> Array:
    """A step of the leaky readout, ``v = decay * v + gain * current``."""
    decay, gain = (align(upcast(constant), v) for constant in constants)
    new = decay * v + gain * current
    new = new if known.inside is None else jnp.where(known.inside[..., None], new, v)
    return new if known.record is None else recorded(new, known.record)


def _leaky_forward(
    current: Array, valid: Array | None, operands: Operands, loops: Loops
) -> tuple[Array, Array]:
    """The leaky readout over time; returns all membranes and the last."""
    readout, dtype = cast(ReadoutOperands, operands.readout), operands.dtype

    def step(constants: tuple[Array, Array], v: Array, xs: tuple[Array, Array | None]) -> tuple[Array, Array]:
        v = _leaky_step(constants, v, xs[0], Known(xs[1], None))
        return v, v.astype(dtype)

    given = (readout.decay, readout.gain), operands.first_readout, (current, valid)
    last, output = loops.apart(step, *given)
    return output, last


def backward(
    arguments: BackwardArguments,
    static: tuple[Switches, Needs],
    loops: Loops = PLAIN,
    kept: Callable[[Record, list[LayerRun]], list[LayerRun]] = lambda _, runs: runs,
) -> Operands:
    """The cotangents of the operands (None for second thresholds and integers).

    They are the vjp of the same network, in which each scan over time stands for the states that it recorded. `kept`
    may know the layers from the forward pass.
    """
    operands, results, record, g = arguments
    g = g._replace(counts=g.counts if static[1].counts else ())
    g = g._replace(last=tuple(_all_rows(*layer) for layer in zip(g.last, static[0].layers, strict=True)))

    records = _with_currents(record, operands, static[0])
    each = zip(records, neurons_of(operands, static[0], loops), operands.first, strict=True)
    runs = kept(record, [run_of(*layer, valid_steps(operands)) for layer in each])

    def again(given: Operands) -> Cotangents:
        full = jax.tree.map(lambda old, new: old if new is None else new, operands, given, is_leaf=_is_none)
        return _results_again(full, results, runs, *static, loops)

    found, pull_back = jax.vjp(again, differentiable(operands, operands))
    return pull_back(jax.tree.map(lambda leaf, like: leaf.astype(like.dtype), g, found))[0]


def _with_currents(record: Record, operands: Operands, switches: Switches) -> tuple[LayerRecord, ...]:
    """The records of the layers, with the currents of the first one where these are given."""
    linear, first = operands.linears[0], record.layers[0]
    if not reads_currents(linear, operands.constants[0]):
        return record.layers
    current = current_of(linear, dense_inputs(operands, switches), switches.layers[0].connection)
    return first._replace(current=current), *record.layers[1:]


def _is_none(leaf: Any) -> bool:
    return leaf is None


def _results_again(
    operands: Operands, results: Kept, runs: list[LayerRun], switches: Switches, needs: Needs, loops: Loops
) -> Cotangents:
    """The results that have cotangents, at the recorded states, in the accumulation dtype."""
    valid = valid_steps(operands)

    layers = _run_layers(operands, switches, loops, runs)
    output, last_readout = None, None
    if operands.readout is not None:
        readout = operands.readout
        current = current_of(readout.linear, layers[-1].sent, switches.readout, loops, again=True)
        # The rounded output is accurate enough as membranes: only the gradient of the decay uses them.
        states = upcast(results.output)
        given = (readout.decay, readout.gain), operands.first_readout, current, Known(valid, states), states
        replay: Any = replayed(_leaky_step, loops.apart, None, *given)
        output, last_readout = replay
    counts = ()
    if needs.counts:
        counts = tuple(
            jnp.sum(layer.neurons.true_spikes(layer.run, valid, layer.sent.dtype), axis=0) for layer in layers
        )
    spikes = tuple(
        _values(layer.sent, lists) if layer.neurons.switches.records_spikes else None
        for layer, lists in zip(layers, results.spikes, strict=True)
    )
    return Cotangents(output, counts, spikes, tuple(layer.last for layer in layers), last_readout)


def _values(sent: Array, lists: Any) -> Array:
    """The values of recorded spikes."""
    if not isinstance(lists, SparseSpikes):
        return sent
    return gather(rows_of(sent), rows_of(lists.ids)).reshape(lists.ids.shape)


def _all_rows(g: LayerState, layer: LayerSwitches) -> LayerState:
    """The cotangents of a state, where no rows stand for rows of zeros."""
    return layer.in_transit(g, all_rows)


def run_of(record: LayerRecord, neurons: Neurons, first: LayerState, valid: Array | None) -> LayerRun:
    """The layer over all time steps, as the forward pass recorded it, or again."""
    num_neurons, (v, listed_v, current, *_) = first.v.shape[-1], record
    listed = None if record.listed is None else unpacked(record.listed, num_neurons)
    if v is None and listed_v is None:
        return layer_forward(neurons, current, valid, first, current.dtype)[0]._replace(listed=listed)
    capacity = neurons.switches.capacity
    if listed is not None and capacity is not None and v is None:  # 0 elsewhere, where it has no effect
        v = as_dense(list_ids(listed, capacity), listed_v, num_neurons)
    v = membranes_of(cast(Array, v), neurons.constants.glif.threshold)
    return states_again(neurons, v, current, valid, first)._replace(listed=listed)
