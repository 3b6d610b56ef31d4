"""The jnp reference of `lif_network`: its layers one after the other, forward, and backward in reverse order."""

from typing import Any, NamedTuple, cast

import jax
import jax.numpy as jnp
from jaxtyping import Array

from snnjax._types import sum_dtype, wide
from snnjax.ops._lif_layer import (
    LayerConstants,
    LayerRun,
    LayerState,
    LayerSwitches,
    layer_backward,
    layer_forward,
    listed_spikes,
    outer,
    raised_threshold,
    rows_of,
)
from snnjax.ops.select_spikes import Selection, spike_lists
from snnjax.ops.spike_matmul import dense_product
from snnjax.sparse_spikes import gather, scatter


class Linear(NamedTuple):
    """Weights ``[inputs, outputs]`` and a bias ``[outputs]`` or None."""

    weights: Array
    bias: Array | None


class Readout(NamedTuple):
    """A leaky integrator behind the last layer."""

    linear: Linear
    decay: Array  # [1 | outputs]
    gain: Array  # [1 | outputs]


class Lists(NamedTuple):
    """The leaves of `SparseSpikes`, ``[time, batch, ...]``."""

    ids: Array
    values: Array
    num_spikes: Array
    num_listed: Array


class Operands(NamedTuple):
    """What the target computes with."""

    inputs: Any  # [time, batch, inputs], or the ids and values of lists [time, batch, capacity]
    linears: tuple[Linear, ...]  # one per layer
    constants: tuple[LayerConstants, ...]  # in the dtype of sums but for recurrent weights, as the read-out's
    readout: Readout | None
    first: tuple[LayerState, ...]  # of each layer
    first_readout: Array | None  # [batch, outputs], in the dtype of sums, as all membranes
    lengths: Array | None  # int32 [batch]


class Switches(NamedTuple):
    """What is static about the target."""

    layers: tuple[LayerSwitches, ...]
    implementation: str | None = None
    keeps_record: bool = False  # for the backward pass


class Results(NamedTuple):
    """What the target yields."""

    output: Array  # [time, batch, outputs]
    counts: tuple[Array, ...]  # [batch, neurons], true spikes, in the dtype of sums
    dropped: tuple[Array, ...]  # int32 [batch]
    spikes: tuple[Any, ...]  # Lists, or dense [time, batch, neurons], of each layer; None unless recorded
    last: tuple[LayerState, ...]
    last_readout: Array | None


class LayerRecord(NamedTuple):
    """What the backward pass needs of the forward pass of a layer, marks as one bit a neuron (`packed`)."""

    v: Array  # [time, batch, neurons], the membranes after each step (`recorded_membranes`)
    w: Array | None  # [time, batch, neurons], the second states, where `with_records` asks for them
    current: Array | None  # likewise
    spikes: Array  # uint8 [time, batch, ceil(neurons / 8)], the listed spikes
    listed: Array | None  # likewise, all listed neurons; None without capacity


class InputRecord(NamedTuple):
    """Which dense inputs were spikes: a kernel reads them again as bits."""

    bits: Array  # uint8 [time, batch, ceil(inputs / 8)], the inputs that are not 0
    is_binary: Array  # bool [time, batch], where they are 0 or 1


class Record(NamedTuple):
    """What the backward pass needs of the forward pass."""

    inputs: InputRecord | None  # of dense inputs
    layers: tuple[LayerRecord, ...]


def recorded_membranes(v: Array, constants: LayerConstants, dtype: Any) -> Array:
    """What the backward pass of a network of this dtype keeps of membranes.

    Of a bfloat16 network their distance to the threshold, in bfloat16: half the memory of membranes in float32. The
    membrane itself, so rounded, would change sides of the threshold, and with it resets and spikes. Its distance keeps
    its sign, and the surrogate and the second threshold see it to 8 bits. Where a second state may move the threshold,
    membranes are kept as they are.
    """
    if dtype != jnp.bfloat16 or constants.second_state is not None:
        return v
    return (v - _origin(constants.threshold, v)).astype(dtype)


def membranes_of(record: Array, threshold: Array) -> Array:
    """The membranes that `recorded_membranes` recorded: above the threshold if and only if they were."""
    return wide(record) + _origin(threshold, record) if record.dtype == jnp.bfloat16 else record


def _origin(threshold: Array, like: Array) -> Array:
    """What distances are taken from: from an infinite threshold all would be the same."""
    return jnp.where(jnp.isfinite(threshold), threshold, 0).reshape((1,) * (like.ndim - 1) + (-1,))


class Needs(NamedTuple):
    """What the backward pass has to yield; the rest is left to XLA to drop, and kernels leave it out."""

    operands: tuple[bool, ...]  # of each leaf of `Operands`
    counts: bool  # whether the counts have a cotangent


def packed(marks: Array) -> Array:
    """Bool ``[..., neurons]`` as bits, the first neuron in the lowest: uint8 ``[..., ceil(neurons / 8)]``."""
    if marks.size == 0:  # which jnp refuses
        return jnp.zeros((*marks.shape[:-1], -(-marks.shape[-1] // 8)), jnp.uint8)
    return jnp.packbits(marks, axis=-1, bitorder="little")


def unpacked(bits: Array, num_neurons: int) -> Array:
    """The marks that `packed` packed."""
    if bits.size == 0:
        return jnp.zeros((*bits.shape[:-1], num_neurons), bool)
    return jnp.unpackbits(bits, axis=-1, count=num_neurons, bitorder="little").astype(bool)


def with_records(switches: Switches, operands: Operands, needed: Operands) -> Switches:
    """The switches of a forward pass whose backward pass has to yield what is true in `needed`.

    Membranes and listed spikes are always recorded: they give the slope of the surrogate and the reset. The second
    states are where the threshold follows them, or for the cotangents of the constants that they are multiplied with.
    The currents are where they reach both states: elsewhere the sums over the weights give the cotangent of the gain.
    """

    def with_own(layer: LayerSwitches, constants: LayerConstants, need: LayerConstants) -> LayerSwitches:
        second, need_second = constants.second_state, need.second_state
        if second is None or need_second is None:
            return layer
        w = second.threshold_coupling is not None or need_second.w_decay or bool(need_second.v_coupling)
        current = second.w_gain is not None and bool(need.gain or need_second.w_gain)
        return layer._replace(records_w=w, records_current=current)

    each = zip(switches.layers, operands.constants, needed.constants, strict=True)
    return switches._replace(layers=tuple(with_own(*own) for own in each), keeps_record=True)


def _total_current(current: Array, x: Array, first: LayerState, constants: LayerConstants) -> Array:
    """The input product of a layer and its recurrent part."""
    if constants.recurrent is None or first.spikes is None:
        return current
    before = jnp.concatenate([first.spikes[None], x])[:-1]
    return current + dense_product(rows_of(before), constants.recurrent).reshape(current.shape)


def forward(operands: Operands, switches: Switches) -> tuple[Results, Record | None]:
    """Run the network over all time steps; yields also the record if the switches ask for it."""
    x, dtype = dense_inputs(operands), operands.linears[0].weights.dtype
    inputs = None if isinstance(operands.inputs, tuple) else _input_record(x)
    valid = _valid(operands, x.shape[0])
    counts, dropped, spikes, last, records = [], [], [], [], []
    for linear, constants, first, layer in zip(*operands[1:3], operands.first, switches.layers, strict=True):
        current = apply_linear(x, linear)
        ran, end = layer_forward(current, valid, first, constants, layer)
        x = listed_spikes(ran, valid, constants, layer, dtype)
        true_spikes = listed_spikes(ran._replace(listed=None), valid, constants, layer, dtype)
        counts.append(jnp.sum(wide(true_spikes), axis=0))
        dropped.append(_dropped(true_spikes, layer.capacity))
        spikes.append(_recorded(x, true_spikes, ran, constants, layer) if layer.records_spikes else None)
        last.append(end)
        listed = None if ran.listed is None else packed(ran.listed)
        w = ran.w if layer.records_w else None
        total = _total_current(current, x, first, constants) if layer.records_current else None
        records.append(
            LayerRecord(recorded_membranes(ran.v, constants, dtype), w, total, packed(x > 0), listed)
        )
    output, last_readout = x, None
    if operands.readout is not None:
        output, last_readout = _leaky_forward(apply_linear(x, operands.readout.linear), valid, operands)
    results = Results(output, tuple(counts), tuple(dropped), tuple(spikes), tuple(last), last_readout)
    return results, Record(inputs, tuple(records)) if switches.keeps_record else None


def _input_record(x: Array) -> InputRecord:
    return InputRecord(packed(x != 0), jnp.all((x == 0) | (x == 1), axis=-1))


def dense_inputs(operands: Operands) -> Array:
    """The inputs ``[time, batch, inputs]`` in the weights' dtype, 0 behind the end of each sequence."""
    dtype, inputs = operands.linears[0].weights.dtype, operands.inputs
    if isinstance(inputs, tuple):
        ids, values = inputs
        num_inputs = operands.linears[0].weights.shape[0]
        dense = scatter(rows_of(ids), rows_of(values).astype(dtype), num_inputs)
        inputs = dense.reshape(*ids.shape[:-1], num_inputs)
    valid = _valid(operands, inputs.shape[0])
    x = inputs.astype(dtype)
    return x if valid is None else jnp.where(valid[:, :, None], x, 0)


def _valid(operands: Operands, num_steps: int) -> Array | None:
    """True where a sequence has not ended yet, bool ``[time, batch]``; None without lengths."""
    if operands.lengths is None:
        return None
    return jnp.arange(num_steps, dtype=jnp.int32)[:, None] < operands.lengths[None, :]


def apply_linear(x: Array, linear: Linear) -> Array:
    """``x @ weights + bias`` for all steps at once, in the dtype of sums."""
    rows = dense_product(rows_of(x), linear.weights)
    rows = rows if linear.bias is None else rows + wide(linear.bias)[None, :]
    return rows.reshape(*x.shape[:-1], linear.weights.shape[-1])


def _dropped(true_spikes: Array, capacity: int | None) -> Array:
    """How many spikes of each sequence were not listed, int32 ``[batch]``."""
    if capacity is None:
        return jnp.zeros(true_spikes.shape[1], jnp.int32)
    count = jnp.sum(true_spikes > 0, axis=-1, dtype=jnp.int32)
    return jnp.sum(jnp.maximum(count - capacity, 0), axis=0, dtype=jnp.int32)


def _recorded(
    x: Array, true_spikes: Array, ran: LayerRun, constants: LayerConstants, layer: LayerSwitches
) -> Array | Lists:
    """The spikes of a layer as the user gets them."""
    if layer.capacity is None or ran.listed is None:
        return x
    axes, v, listed = x.shape[:-1], rows_of(ran.v), rows_of(ran.listed)
    threshold = raised_threshold(ran.v, ran.w, constants).astype(v.dtype)
    threshold = jnp.broadcast_to(threshold, ran.v.shape).reshape(v.shape)
    above = v > threshold
    selection = Selection(layer.capacity, layer.surrogate)
    ids, values = spike_lists(v, threshold, listed & above, listed & ~above, selection)
    return Lists(
        ids.reshape(*axes, layer.capacity),
        values.reshape(*axes, layer.capacity).astype(x.dtype),
        jnp.sum(true_spikes > 0, axis=-1, dtype=jnp.int32),
        jnp.sum(ran.listed, axis=-1, dtype=jnp.int32),
    )


def _leaky_forward(current: Array, valid: Array | None, operands: Operands) -> tuple[Array, Array]:
    """The leaky read-out ``v = decay * v + gain * current`` over time; yields all membranes and the last."""
    readout, first = cast(Readout, operands.readout), cast(Array, operands.first_readout)
    decay, gain = wide(readout.decay)[None, :], wide(readout.gain)[None, :]

    def step(v: Array, xs: tuple[Array, Array | None]) -> tuple[Array, Array]:
        total, inside = xs
        v_new = decay * v + gain * total
        v_new = v_new if inside is None else jnp.where(inside[:, None], v_new, v)
        return v_new, v_new.astype(readout.linear.weights.dtype)

    last, output = jax.lax.scan(step, first, (current, valid))
    return output, last


def _leaky_backward(
    g_output: Array, g_last: Any, output: Array, current: Any, valid: Array | None, operands: Operands
) -> tuple[Array, Readout, Array]:
    """The cotangents of the read-out's current, of its constants (not its linear part), and of its first membrane."""
    readout, first = cast(Readout, operands.readout), cast(Array, operands.first_readout)
    decay, gain = wide(readout.decay)[None, :], wide(readout.gain)[None, :]

    def step(g: Array, xs: tuple[Array, Array | None]) -> tuple[Array, Array]:
        g_now, inside = xs
        g = g + wide(g_now)
        if inside is None:
            return decay * g, g
        return jnp.where(inside[:, None], decay * g, g), jnp.where(inside[:, None], g, 0)

    g_first, g_v = jax.lax.scan(step, wide(g_last), (g_output, valid), reverse=True)
    # The rounded output will do for the membranes: the gradient of the decay alone asks for them.
    before = jnp.concatenate([first[None], wide(output)])[:-1]
    g_decay, g_gain = (jnp.sum(g_v * factor, axis=(0, 1)) for factor in (before, current))
    constants = [
        (jnp.sum(g, keepdims=True) if like.shape == (1,) else g).astype(like.dtype)
        for g, like in ((g_decay, readout.decay), (g_gain, readout.gain))
    ]
    g_current = (gain[None] * g_v).astype(output.dtype)
    return g_current, Readout(readout.linear, *constants), g_first.astype(first.dtype)


def _linear_backward(x: Array, g_current: Array, linear: Linear) -> Linear:
    """The cotangents of weights and bias."""
    weights = outer(x, g_current).astype(linear.weights.dtype)
    if linear.bias is None:
        return Linear(weights, None)
    return Linear(weights, jnp.sum(wide(g_current), axis=(0, 1)).astype(linear.bias.dtype))


def _input_cotangent(g_current: Array, linear: Linear) -> Array:
    """The cotangent of a layer's input ``[time, batch, inputs]``."""
    rows = jnp.matmul(rows_of(g_current), linear.weights.T, preferred_element_type=sum_dtype(g_current.dtype))
    return rows.astype(g_current.dtype).reshape(*g_current.shape[:-1], linear.weights.shape[0])


class BackwardArguments(NamedTuple):
    """What the backward pass computes with."""

    operands: Operands
    results: Results
    record: Record
    g: Results  # cotangents of the results; in place of `Lists` stand those of their values


def backward(arguments: BackwardArguments, static: tuple[Switches, Needs]) -> Operands:
    """The cotangents of the operands (those of second thresholds and whole numbers are None)."""
    operands, results, record, g = arguments
    switches = static[0]
    valid = _valid(operands, results.output.shape[0])
    xs, runs = [dense_inputs(operands)], []
    for own, constants, layer in zip(record.layers, operands.constants, switches.layers, strict=True):
        listed = None if own.listed is None else unpacked(own.listed, own.v.shape[-1])
        runs.append(LayerRun(membranes_of(own.v, constants.threshold), own.w, listed))
        xs.append(listed_spikes(runs[-1], valid, constants, layer, xs[0].dtype))
    g_x, readout, g_first_readout = _readout_backward(xs[-1], valid, arguments)
    linears, constants, first = [], [], []
    for index in reversed(range(len(switches.layers))):
        if switches.layers[index].records_spikes:
            recorded = _recorded_cotangent(
                results.spikes[index], g.spikes[index], operands.first[index].v.shape[-1]
            )
            g_x = g_x + recorded
        after, before = (g.counts[index], g.last[index]), (runs[index], operands.first[index])
        layer = operands.constants[index], switches.layers[index]
        current = apply_linear(xs[index], operands.linears[index])  # for the gain; dropped where nobody asks
        cotangents = layer_backward(g_x, *after, *before, current, valid, *layer)
        linears.insert(0, _linear_backward(xs[index], cotangents.current, operands.linears[index]))
        constants.insert(0, cotangents.constants)
        first.insert(0, cotangents.first)
        g_x = _input_cotangent(cotangents.current, operands.linears[index])
    inputs = _inputs_as_given(g_x, operands)
    return Operands(inputs, tuple(linears), tuple(constants), readout, tuple(first), g_first_readout, None)


def _readout_backward(
    x: Array, valid: Array | None, arguments: BackwardArguments
) -> tuple[Array, Readout | None, Array | None]:
    """The cotangents of the last layer's spikes, of the read-out's parameters and of its first membrane."""
    operands, results, _, g = arguments
    if operands.readout is None:
        return g.output, None, None
    linear = operands.readout.linear
    g_current, readout, g_first = _leaky_backward(
        g.output, g.last_readout, results.output, apply_linear(x, linear), valid, operands
    )
    return (
        _input_cotangent(g_current, linear),
        readout._replace(linear=_linear_backward(x, g_current, linear)),
        g_first,
    )


def _recorded_cotangent(spikes: Any, g: Array, num_neurons: int) -> Array:
    """The dense cotangent ``[time, batch, neurons]`` that arrives through recorded spikes."""
    if not isinstance(spikes, Lists):
        return g
    dense = scatter(rows_of(spikes.ids), rows_of(g), num_neurons)
    return dense.reshape(*spikes.ids.shape[:-1], num_neurons)


def _inputs_as_given(g_x: Array, operands: Operands) -> Any:
    """The cotangent of the inputs in their own form; None for whole numbers."""
    if isinstance(operands.inputs, tuple):
        ids, values = operands.inputs
        listed = gather(rows_of(g_x), rows_of(ids)).reshape(values.shape)
        return (None, listed.astype(values.dtype))
    if not jnp.issubdtype(operands.inputs.dtype, jnp.floating):
        return None
    return g_x.astype(operands.inputs.dtype)
