"""Running a network over all time steps: consecutive generalised LIF layers as one fused op, other layers scanned."""

import dataclasses
import functools
import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array

from snnjax._network.delays import Delays, Pending, delayed
from snnjax._network.scan import (
    Carry,
    overflow,
    rounded,
    run_layer,
    run_readout,
    widened,
    within,
)
from snnjax._network.specs import (
    LayerParams,
    LayerSpec,
    NetworkOutput,
    NetworkParams,
    NetworkState,
    ReadoutSpec,
)
from snnjax._types import steps_within, upcast
from snnjax.neurons import GLIF, GLIFConstants
from snnjax.ops import LeakyReadout, LIFLayer, LIFNetworkState
from snnjax.ops._chunks import in_chunks
from snnjax.ops._connection import DENSE
from snnjax.ops._lif_network.primitive import run_network
from snnjax.ops._lif_network.records import LayerState
from snnjax.ops._lif_network.switches import LayerSwitches, Switches
from snnjax.ops.lif_network import as_operands, mean_activity


class LayerPath(NamedTuple):
    """How `Network.apply` computes a layer."""

    fused: bool  # in the op `snnjax.lif_network`, else in a scan of the neuron's functions
    why: str


def layer_path(spec: LayerSpec) -> LayerPath:
    """The path of a layer, with the reason."""
    if spec.recurrent and spec.delays is not None:
        return LayerPath(False, "its recurrent spikes are delayed: its step is scanned")
    neuron, form = spec.neuron, spec.neuron.glif
    if neuron.fused is not None:
        return LayerPath(True, f"this {neuron.name} is a generalised LIF neuron: one op over all steps")
    if form is None or neuron.integrate is not None or not form.conventions:
        return LayerPath(False, f"this {neuron.name} is not a generalised LIF neuron: its step is scanned")
    switches = " and ".join(f"{name}={value!r}" for name, value in form.conventions.items())
    what = "a convention" if len(form.conventions) == 1 else "conventions"
    why = f"this {neuron.name} has {switches}, {what} of other libraries: its step is scanned"
    return LayerPath(False, why)


class Call(NamedTuple):
    """The arguments of a call of `Network.apply` that do not depend on time."""

    layers: Sequence[LayerSpec]
    readout: ReadoutSpec | None
    params: NetworkParams
    second_threshold: Sequence[Any]
    record: Sequence[str]
    implementation: str | None  # of the ops
    # For each layer, added to the distances from the threshold at which neurons spike, [time, batch, neurons]; then
    # these distances are recorded instead of membranes.
    offsets: Sequence[Array] | None = None

    def pieces(self) -> list[tuple[bool, range]]:
        """Whether each piece is fused, and its layers: runs of fused layers, and single scanned layers."""
        # The op does not return membranes.
        scans_all = self.implementation == "composed" or "membranes" in self.record

        def is_fused(index: int) -> bool:
            return layer_path(self.layers[index]).fused and not scans_all

        found: list[tuple[bool, range]] = []
        for fused, group in itertools.groupby(range(len(self.layers)), is_fused):
            own = list(group)
            starts = own[:1] if fused else own
            found += [(fused, range(*ends)) for ends in itertools.pairwise([*starts, own[-1] + 1])]
        return found

    def delays(self, index: int) -> Delays:
        """The delays of a layer, in steps."""
        return delays_of(self.layers[index], self.params.layers[index])

    def ends_with(self, own: range) -> bool:
        """Whether these layers are the last ones, and computed together with the read-out."""
        fits = self.readout is None or self.integrator() is not None
        return fits and own.stop == len(self.layers)

    def integrator(self) -> GLIFConstants | None:
        """The constants of a read-out that the op computes, a leaky integrator of one state."""
        form = None if self.readout is None else self.readout.neuron.fused
        if form is None or form.reset != "none" or self.readout is None or self.params.readout is None:
            return None
        constants = form.constants(self.params.readout.neuron)
        is_leaky = not self.readout.neuron.spikes and constants.second_state is None
        return constants if is_leaky else None


class _LayerResults(NamedTuple):
    """The results of a layer."""

    counts: Array
    dropped: Array
    spikes: Any  # None if they are neither recorded nor passed on
    membranes: Any
    neuron: Any  # the neuron state
    carried: Any  # the last spikes of a recurrent layer
    pending: Any  # spikes in transit to it


def run(
    call: Call, inputs: Any, state: NetworkState, lengths: Array | None, chunk: int | None
) -> tuple[NetworkOutput, NetworkState]:
    """Run the layers in order; maximal runs of generalised LIF layers are one op each."""
    if chunk is None:
        results = _run_pieces(call, inputs, state, lengths)
    else:
        results = in_chunks(functools.partial(_run_pieces, call), inputs, state, lengths, chunk)
    (output, spikes, membranes), (counts, dropped), state = results
    activity = mean_activity(counts, inputs.shape[0], lengths)
    return NetworkOutput(output, activity, dropped, spikes, membranes), state


def _run_pieces(
    call: Call, inputs: Any, state: NetworkState, lengths: Array | None
) -> tuple[Any, Any, NetworkState]:
    """All pieces in order; returns results per step, results summed over steps, and the new state."""
    valid, pieces, dtype = (
        steps_within(inputs.shape[0], lengths),
        call.pieces(),
        call.params.layers[0].weights.dtype,
    )
    x, output, last = inputs if pieces[0][0] else rounded(within(inputs, valid), dtype), None, None
    layers: list[_LayerResults] = []
    for fused, own in pieces:
        if fused:
            ran, output, last = _run_fused(call, own, state, x, lengths)
        else:
            x, pending = _delayed(call, own.start, state, widened(x), lengths)
            ran = [_run_scanned(call, own.start, state, x, valid, pending)]
        x = ran[-1].spikes
        layers += ran
    if call.readout is not None and call.params.readout is not None and last is None:
        options = (call.params.readout, state.readout, widened(x), valid, call.implementation)
        last, output = run_readout(call.readout, *options)
    output = rounded(x, dtype) if output is None else output
    counts, dropped, spikes, membranes, neurons, carried, pending = zip(*layers, strict=True)
    timed = (
        output,
        tuple(rounded(own, dtype) for own in spikes) if "spikes" in call.record else None,
        membranes if "membranes" in call.record else None,
    )
    return timed, (counts, dropped), NetworkState(neurons, carried, last, pending)


def delays_of(spec: LayerSpec, own: LayerParams) -> Delays:
    """The delays of a layer, in steps, one per neuron."""
    assert spec.delays is not None
    assert own.delays is not None
    inputs, recurrent = own.delays
    back = None if recurrent is None else spec.delays.steps(recurrent, spec.fitted.out_shape)
    return Delays(spec.delays.steps(inputs, spec.fitted.in_shape), back)


def _delayed(
    call: Call, index: int, state: NetworkState, x: Any, lengths: Array | None
) -> tuple[Any, Pending | None]:
    """The delayed inputs of a layer, and the spikes then in transit to it."""
    spec, pending = call.layers[index].delays, state.pending[index]
    if spec is None or pending is None:
        return x, None
    steps = call.delays(index).inputs
    x, left = delayed(spec, steps, x, upcast(pending.inputs), lengths, call.implementation)
    return x, pending._replace(inputs=left.astype(pending.inputs.dtype))


def _run_scanned(
    call: Call, index: int, state: NetworkState, x: Any, valid: Array | None, pending: Pending | None
) -> _LayerResults:
    """One layer, in a scan of its neuron's functions."""
    spec, own, second = call.layers[index], call.params.layers[index], call.second_threshold[index]
    feedback = None
    if pending is not None and pending.recurrent is not None and spec.delays is not None:
        feedback = call.delays(index).recurrent
    carried = state.spikes[index], None if pending is None else pending.recurrent
    start = Carry(state.neurons[index], *jax.tree.map(upcast, carried))
    offsets = None if call.offsets is None else call.offsets[index]
    options = (valid, call.implementation, "membranes" in call.record, feedback, offsets)
    end, steps = run_layer(spec, own, start, x, second, *options)
    counts = jnp.sum(upcast(steps.counted), axis=0)
    last, left = jax.tree.map(lambda new, old: new.astype(old.dtype), (end.spikes, end.pending), carried)
    pending = None if pending is None else pending._replace(recurrent=left)
    return _LayerResults(
        counts=counts,
        dropped=overflow(steps.listed),
        spikes=steps.listed,
        membranes=steps.membranes,
        neuron=end.neuron,
        carried=last,
        pending=pending,
    )


def _run_fused(
    call: Call, own: range, state: NetworkState, x: Any, lengths: Array | None
) -> tuple[list[_LayerResults], Array | None, Any]:
    """A run of generalised LIF layers as one op; also the output and the read-out's state if it ends the network."""
    is_end, forms = call.ends_with(own), [_form(call.layers[i]) for i in own]
    layers = tuple(_op_layer(call, i, form) for i, form in zip(own, forms, strict=True))
    readout, first_readout = _readout_of(call, layers[-1], state, is_end)
    records = ["spikes" in call.record or (i + 1 == own.stop and not is_end) for i in own]
    each = zip((call.layers[i] for i in own), forms, layers, records, strict=True)
    switches = Switches(
        layers=tuple(_op_switches(*layer) for layer in each),
        readout=DENSE if readout is None else readout.connection,
        implementation=call.implementation,
    )
    first = LIFNetworkState(tuple(_op_state(state, i) for i in own), first_readout)
    second = tuple(call.second_threshold[i] for i in own)
    operands = as_operands("network.apply", x, layers, readout, first, lengths, second, switches)
    results: Any = run_network(operands, switches)
    spikes = [*results.spikes[:-1], results.output if results.spikes[-1] is None else results.spikes[-1]]
    ran = [
        _LayerResults(
            counts=results.counts[place],
            dropped=results.dropped[place],
            spikes=spikes[place],
            membranes=None,
            neuron=type(state.neurons[i])(*((last.v,) if last.w is None else (last.v, last.w))),
            carried=last.spikes,
            pending=None if last.pending is None else Pending(last.pending, None),
        )
        for place, (i, last) in enumerate(zip(own, results.last, strict=True))
    ]
    if not is_end:
        return ran, None, None
    last = None if call.readout is None else state.readout._replace(v=results.last_readout)
    return ran, results.output, last


def _op_layer(call: Call, index: int, form: GLIF) -> LIFLayer:
    own, spec = call.params.layers[index], call.layers[index]
    connection, delays = spec.fitted.connection, None
    if spec.delays is not None:
        connection = dataclasses.replace(connection, max_delay=spec.delays.max_delay)
        delays = call.delays(index).inputs
    return LIFLayer(
        own.weights,
        **form.constants(own.neuron)._asdict(),
        bias=own.bias,
        recurrent=own.recurrent,
        connection=connection,
        delays=delays,
    )


def _op_switches(spec: LayerSpec, form: GLIF, layer: LIFLayer, records_spikes: bool) -> LayerSwitches:
    assert not isinstance(spec.capacity, float)  # an integer in the layers of a network
    return LayerSwitches(
        connection=layer.connection,
        capacity=spec.capacity,
        surrogate=spec.neuron.surrogate,
        reset=form.reset,
        detach_reset=form.detach_reset,
        records_spikes=records_spikes,
        rounds_record=spec.rounds_record,
    )


def _op_state(state: NetworkState, index: int) -> LayerState:
    """The state of a layer in the form of the op."""
    (v, *second), pending = state.neurons[index], state.pending[index]
    return LayerState(
        v=v,
        w=second[0] if second else None,
        spikes=state.spikes[index],
        pending=None if pending is None else pending.inputs,
    )


def _form(spec: LayerSpec) -> GLIF:
    form = spec.neuron.fused
    assert form is not None  # the piece is fused
    return form


def _readout_of(
    call: Call, below: LIFLayer, state: NetworkState, is_end: bool
) -> tuple[LeakyReadout | None, Array | None]:
    """The read-out that the op computes after a run of layers, and its first membrane."""
    if is_end and call.readout is None:
        return None, None
    own, integrator = call.params.readout, call.integrator()
    if not is_end or own is None or integrator is None or call.readout is None:
        # None would list the last layer in full: a read-out with no neurons keeps the lists and costs nothing.
        width, dtype = below.connection.num_outputs(below.weights.shape), below.weights.dtype
        nothing = jnp.zeros((), dtype)
        return LeakyReadout(jnp.zeros((width, 0), dtype), nothing, nothing), _no_membranes(state)
    connection = call.readout.fitted.connection
    readout = LeakyReadout(own.weights, integrator.decay, integrator.gain, own.bias, connection)
    return readout, state.readout.v


def _no_membranes(state: NetworkState) -> Array:
    v = jax.tree.leaves(state.neurons)[0]
    return jnp.zeros((v.shape[0], 0), v.dtype)
