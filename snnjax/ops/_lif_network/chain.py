"""The jnp reference of `lif_network`: its layers one after another, and backwards in reverse order."""

import dataclasses
from typing import Any, cast

import jax
import jax.numpy as jnp
from jaxtyping import Array

from snnjax._types import LEFT_ON_TILES, id_dtype, steps_within, wide
from snnjax.ops._connection import Connection
from snnjax.ops._lif_network.layer import (
    LayerRun,
    Neurons,
    along,
    layer_backward,
    layer_forward,
    reduced,
    rows_of,
    second_states,
)
from snnjax.ops._lif_network.recorded import membranes_of, packed, recorded_membranes, unpacked
from snnjax.ops._lif_network.records import (
    BackwardArguments,
    ForwardResults,
    LayerRecord,
    LayerState,
    Linear,
    Operands,
    Readout,
    Record,
    Results,
)
from snnjax.ops._lif_network.switches import Needs, Switches
from snnjax.ops.delay_spikes import arrivals, delayed_backward
from snnjax.ops.spike_matmul import dense_product
from snnjax.sparse_spikes import SparseSpikes, gather, list_ids, scatter


def forward(operands: Operands, switches: Switches) -> ForwardResults:
    """Run the network over all time steps; also return the record if the switches require it."""
    x = _dense_inputs(operands, switches)
    bits = (
        None
        if isinstance(operands.inputs, SparseSpikes)
        else (packed(x != 0), jnp.all((x == 0) | (x == 1), axis=-1))
    )
    valid = steps_within(x.shape[0], operands.lengths)
    counts, dropped, spikes, last, records = [], [], [], [], []
    for linear, neurons, first in zip(
        operands.linears, _neurons(operands, switches), operands.first, strict=True
    ):
        x, left = _delayed(operands, linear, x, first, neurons.switches.connection)
        current = _apply(linear, x, neurons.switches.connection)
        ran, end = layer_forward(neurons, current, valid, first._replace(pending=None))
        end = end._replace(pending=left)
        x = neurons.listed_spikes(ran, valid, operands.dtype)
        true_spikes = neurons.listed_spikes(ran._replace(listed=None), valid, operands.dtype)
        counts.append(jnp.sum(neurons.counted_spikes(ran, true_spikes), axis=0))
        dropped.append(_dropped(true_spikes, neurons.switches.capacity))
        spikes.append(_as_result(neurons, x, true_spikes, ran) if neurons.switches.records_spikes else None)
        last.append(end)
        records.append(_record(neurons, ran, x, current, first))
    output, last_readout = x, None
    if operands.readout is not None:
        output, last_readout = _leaky_forward(
            _apply(operands.readout.linear, x, switches.readout), valid, operands
        )
    results = Results(output, tuple(counts), tuple(dropped), tuple(spikes), tuple(last), last_readout)
    record = Record(*(bits or (None, None)), tuple(records)) if switches.keeps_record else None
    return ForwardResults(results, record)


def _neurons(operands: Operands, switches: Switches) -> list[Neurons]:
    return [Neurons(*own) for own in zip(operands.constants, switches.layers, strict=True)]


def _record(neurons: Neurons, ran: LayerRun, x: Array, current: Array, first: LayerState) -> LayerRecord:
    """The record for the backward pass of a layer whose listed spikes are `x`."""
    constants, switches = neurons
    if switches.records_current and constants.recurrent is not None:
        before = jnp.concatenate([first.spikes[None], x])[:-1]
        current = current + dense_product(rows_of(before), constants.recurrent).reshape(current.shape)
    v, listed_v = recorded_membranes(ran.v, constants, x.dtype, switches.rounds_record), None
    if switches.capacity is not None and switches.records_listed:
        ids = list_ids(ran.listed, switches.capacity)
        listed_v = gather(rows_of(v), rows_of(ids)).reshape(ids.shape)
    return LayerRecord(
        v,
        listed_v,
        current if switches.records_current else None,
        packed(x > 0),
        None if ran.listed is None else packed(ran.listed),
    )


def _dense_inputs(operands: Operands, switches: Switches) -> Array:
    """The inputs ``[time, batch, inputs]``, 0 after the end of each sequence.

    They have the weights' dtype, but those of lists are sums and have the accumulation dtype.
    """
    x, are_lists = operands.inputs, isinstance(operands.inputs, SparseSpikes)
    if are_lists:
        ids, values = x.ids, x.values
        width = switches.layers[0].connection.num_inputs(operands.linears[0].weights.shape)
        x = _as_dense(ids, wide(values.astype(operands.dtype)), width)
    valid = steps_within(x.shape[0], operands.lengths)
    x = x if are_lists else x.astype(operands.dtype)
    return x if valid is None else jnp.where(valid[:, :, None], x, 0)


def _as_dense(ids: Array, values: Array, num_neurons: int) -> Array:
    """``[time, batch, neurons]`` from lists."""
    return scatter(rows_of(ids), rows_of(values), num_neurons).reshape(*ids.shape[:-1], num_neurons)


def _delayed(
    operands: Operands, linear: Linear, x: Array, first: LayerState, connection: Connection
) -> tuple[Array, Any]:
    """The part of `x` that arrives at a layer, in the accumulation dtype, and the spikes then in transit to it."""
    if connection.max_delay is None:
        return x, None
    given = (x, first.pending.astype(x.dtype), linear.delays, _ends(operands, x.shape[0]))
    arrived, left = arrivals(given, connection.max_delay)
    return arrived, left.astype(first.pending.dtype)


def _ends(operands: Operands, num_steps: int) -> Array | None:
    """The step after the last one of each sequence."""
    return None if operands.lengths is None else jnp.clip(operands.lengths, 0, num_steps)


def _delayed_backward(
    operands: Operands, index: int, x: Array, g: Array, g_left: Any, connection: Connection
) -> tuple[Array, Any, Any]:
    """The cotangents of a layer's undelayed inputs, delays and pending spikes, from those of its delayed inputs."""
    if connection.max_delay is None:
        return g, None, None
    delays, pending = operands.linears[index].delays, operands.first[index].pending
    if g_left.shape[0] == 0:
        g_left = jnp.zeros((connection.max_delay + 1, *g_left.shape[1:]), g_left.dtype)
    given = (wide(x), wide(pending), delays, _ends(operands, x.shape[0]), g, g_left)
    g_x, g_pending, g_delays = delayed_backward(given, connection.max_delay)
    return g_x, g_delays, g_pending.astype(pending.dtype)


def _apply(linear: Linear, x: Array, connection: Connection) -> Array:
    """The input current, with its bias, for all steps at once, in the accumulation dtype."""
    rows = connection.current(rows_of(x), linear.weights)
    rows = rows if linear.bias is None else rows + wide(linear.bias)[None, :]
    return rows.reshape(*x.shape[:-1], rows.shape[-1])


def _dropped(true_spikes: Array, capacity: int | None) -> Array:
    """The number of spikes of each sequence that were not listed, int32 ``[batch]``."""
    if capacity is None:
        return jnp.zeros(true_spikes.shape[1], jnp.int32)
    count = jnp.sum(true_spikes > 0, axis=-1, dtype=jnp.int32)
    return jnp.sum(jnp.maximum(count - capacity, 0), axis=0, dtype=jnp.int32)


def _as_result(neurons: Neurons, x: Array, true_spikes: Array, ran: LayerRun) -> Array | SparseSpikes:
    """The spikes of a layer in the form returned to the user."""
    capacity = neurons.switches.capacity
    if capacity is None:
        return x
    v, listed = rows_of(ran.v), rows_of(ran.listed)
    threshold = rows_of(jnp.broadcast_to(neurons.threshold(ran).astype(v.dtype), ran.v.shape))
    above = v > threshold
    ids = list_ids(listed & above, capacity, then=listed & ~above).astype(id_dtype(x.shape[-1]))
    return SparseSpikes(
        ids.reshape(*x.shape[:-1], capacity),
        gather(rows_of(x), ids).reshape(*x.shape[:-1], capacity),
        jnp.sum(true_spikes > 0, axis=-1, dtype=jnp.int32),
        jnp.sum(ran.listed, axis=-1, dtype=jnp.int32),
        x.shape[-1],
    )


def _leaky_forward(current: Array, valid: Array | None, operands: Operands) -> tuple[Array, Array]:
    """The leaky read-out ``v = decay * v + gain * current`` over time; returns all membranes and the last."""
    readout, first = cast(Readout, operands.readout), operands.first_readout
    decay, gain = along(readout.decay, first), along(readout.gain, first)

    def step(v: Array, xs: tuple[Array, Array | None]) -> tuple[Array, Array]:
        total, inside = xs
        v_new = decay * v + gain * total
        v_new = v_new if inside is None else jnp.where(inside[:, None], v_new, v)
        return v_new, v_new.astype(operands.dtype)

    last, output = jax.lax.scan(step, first, (current, valid))
    return output, last


def _leaky_backward(
    g_output: Array, g_last: Any, output: Array, current: Any, valid: Array | None, operands: Operands
) -> tuple[Array, Array, Array, Array]:
    """The cotangents of the read-out's current, decay, gain and first membrane."""
    readout, first = cast(Readout, operands.readout), operands.first_readout
    decay, gain = along(readout.decay, first), along(readout.gain, first)

    def step(g: Array, xs: tuple[Array, Array | None]) -> tuple[Array, Array]:
        g_now, inside = xs
        g = g + wide(g_now)
        if inside is None:
            return decay * g, g
        return jnp.where(inside[:, None], decay * g, g), jnp.where(inside[:, None], g, 0)

    g_first, g_v = jax.lax.scan(step, wide(g_last), (g_output, valid), reverse=True)
    # The rounded output is accurate enough as membranes: only the gradient of the decay uses them.
    before = jnp.concatenate([first[None], wide(output)])[:-1]
    g_decay, g_gain = (
        reduced(jnp.sum(g_v * factor, axis=(0, 1))[None], like)
        for factor, like in ((before, readout.decay), (current, readout.gain))
    )
    return gain[None] * g_v, g_decay, g_gain, g_first.astype(first.dtype)


def _linear_backward(
    x: Array, g_current: Array, linear: Linear, connection: Connection
) -> tuple[Array, Linear]:
    """The cotangents of the inputs, ``[time, batch, inputs]``, and of weights and bias."""
    rows, weights = connection.backward(rows_of(x), linear.weights, rows_of(g_current))
    bias = linear.bias
    if bias is not None:
        bias = jnp.sum(wide(g_current), axis=(0, 1)).astype(bias.dtype)
    return rows.reshape(x.shape), Linear(weights.astype(linear.weights.dtype), bias)


def backward(arguments: BackwardArguments, static: tuple[Switches, Needs]) -> Operands:
    """The cotangents of the operands (None for second thresholds and integers)."""
    operands, results, record, g = arguments
    arguments = arguments._replace(g=g._replace(output=_known(g.output, record)))
    valid = steps_within(results.output.shape[0], operands.lengths)
    each = list(zip(_neurons(operands, static[0]), record.layers, strict=True))
    runs = [
        _run_of(own, neurons, first, valid)
        for (neurons, own), first in zip(each, operands.first, strict=True)
    ]
    xs = [_dense_inputs(operands, static[0])]
    xs += [
        neurons.listed_spikes(ran, valid, operands.dtype)
        for (neurons, _), ran in zip(each, runs, strict=True)
    ]
    g_x, readout, g_first_readout = _readout_backward(xs[-1], valid, arguments, static[0].readout)
    linears, constants, first = [], [], []
    for index in reversed(range(len(each))):
        neurons, linear, sent = each[index][0], operands.linears[index], xs[index]
        connection = neurons.switches.connection
        x, _ = _delayed(operands, linear, sent, operands.first[index], connection)
        if neurons.switches.records_spikes:
            g_x = g_x + wide(_dense_cotangent(results.spikes[index], g.spikes[index]))
        g_left, own_first = g.last[index].pending, operands.first[index]._replace(pending=None)
        after, before = (g.counts[index], g.last[index]._replace(pending=None)), (runs[index], own_first)
        current = _apply(linear, x, connection)  # for the gain; XLA removes it if unused
        g_current, g_constants, g_first = layer_backward(neurons, g_x, *after, *before, current, valid)
        g_x, g_linear = _linear_backward(x, g_current, linear, connection)
        g_x, g_delays, g_pending = _delayed_backward(operands, index, sent, g_x, g_left, connection)
        linears.insert(0, g_linear._replace(delays=g_delays))
        constants.insert(0, g_constants)
        first.insert(0, g_first._replace(pending=g_pending))
    inputs = _inputs_as_given(g_x, operands)
    return Operands(inputs, tuple(linears), tuple(constants), readout, tuple(first), g_first_readout, None)


def _known(g: Array, record: Record) -> Array:
    """The cotangent of the output, or NaN where the record stayed on the tiles of an IPU: it tells no gradient here."""
    v = record.layers[0].v if record.layers[0].v is not None else record.layers[0].listed_v
    if v.dtype != jnp.float32 or v.size == 0:
        return g
    first = jax.lax.bitcast_convert_type(v[0, 0, 0], jnp.uint32)
    return jnp.where(first == jnp.uint32(LEFT_ON_TILES), jnp.asarray(jnp.nan, g.dtype), g)


def _run_of(record: LayerRecord, neurons: Neurons, first: LayerState, valid: Array | None) -> LayerRun:
    """The layer over all time steps, as the forward pass recorded it."""
    num_neurons = first.v.shape[-1]
    listed = None if record.listed is None else unpacked(record.listed, num_neurons)
    v, capacity = record.v, neurons.switches.capacity
    if listed is not None and capacity is not None and v is None:  # 0 elsewhere, where it has no effect
        v = _as_dense(list_ids(listed, capacity), record.listed_v, num_neurons)
    v = membranes_of(v, neurons.constants.threshold)
    w = second_states(neurons, v, record.current, valid, first) if neurons.switches.needs_w else None
    return LayerRun(v, w, listed)


def _readout_backward(
    x: Array, valid: Array | None, arguments: BackwardArguments, connection: Connection
) -> tuple[Array, Readout | None, Array | None]:
    """The cotangents of the last layer's spikes, the read-out's parameters and its first membrane."""
    operands, results, _, g = arguments
    if operands.readout is None:
        return wide(g.output), None, None
    linear = operands.readout.linear
    g_current, g_decay, g_gain, g_first = _leaky_backward(
        g.output, g.last_readout, results.output, _apply(linear, x, connection), valid, operands
    )
    g_x, g_linear = _linear_backward(x, g_current, linear, connection)
    return g_x, Readout(g_linear, g_decay, g_gain), g_first


def _dense_cotangent(spikes: Any, g: Array) -> Array:
    """The dense cotangent ``[time, batch, neurons]`` of recorded spikes."""
    return _as_dense(spikes.ids, g, spikes.num_neurons) if isinstance(spikes, SparseSpikes) else g


def _inputs_as_given(g_x: Array, operands: Operands) -> Any:
    """The cotangent of the inputs in their original form; None for integers."""
    inputs = operands.inputs
    if isinstance(inputs, SparseSpikes):
        values = gather(rows_of(g_x), rows_of(inputs.ids)).reshape(inputs.values.shape)
        values = values.astype(inputs.dtype)
        return dataclasses.replace(inputs, ids=None, values=values, num_spikes=None, num_listed=None)
    return g_x.astype(inputs.dtype) if jnp.issubdtype(inputs.dtype, jnp.floating) else None
