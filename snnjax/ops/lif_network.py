"""`lif_network`: a whole network of LIF layers over all time steps, as one op."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.typing import DTypeLike
from jaxtyping import Array, ArrayLike, Float, Int, Integer, Num

from snnjax._arguments import explained
from snnjax._check import as_lengths, check_no_nan, check_size, fail
from snnjax._neuron_table import GLIFConstants, SecondState
from snnjax._quantised import Quantised
from snnjax._sharding import gathered
from snnjax._sparse_spikes import SparseSpikes
from snnjax._synapses import Synapses, ends_and_targets
from snnjax._types import accumulation_dtype
from snnjax.ops._chunks import in_chunks
from snnjax.ops._connection import DENSE, Connection
from snnjax.ops._lif_network import checks
from snnjax.ops._lif_network.fill import filled
from snnjax.ops._lif_network.primitive import run_network
from snnjax.ops._lif_network.records import (
    LayerConstants,
    LayerState,
    Operands,
    ReadoutOperands,
    Results,
    Weighted,
)
from snnjax.ops._lif_network.switches import LayerSwitches, Switches
from snnjax.surrogates import Surrogate


@explained
class LIFLayer(NamedTuple):
    """One layer of `lif_network`: weights and the constants of its neurons."""

    # [inputs, neurons], or convolution weights. None in a first layer whose inputs are its currents; then bias and
    # recurrent currents are added to these.
    weights: Float[Array, "..."] | Quantised | None
    decay: Float[ArrayLike, "..."]  # scalar or [neurons]
    threshold: Float[ArrayLike, "..."] = 1.0  # scalar or [neurons]
    gain: Float[ArrayLike, "..."] | None = None  # scalar or [neurons]; None is 1 - decay
    bias: Float[Array, " neurons"] | None = None
    # [neurons, neurons], or one weight for each of `recurrent_synapses`
    recurrent: Float[Array, "..."] | Quantised | None = None
    second_state: SecondState | None = None  # of neurons with a second linear state; None for plain LIF
    connection: Connection = DENSE  # delays, pooling, a convolution, or several of them before the layer
    # In steps, a scalar or [inputs]; required if and only if `connection.max_delay` is given.
    delays: Float[ArrayLike, "..."] | None = None
    # Of a first layer without weights: its currents are multiplied with it. None is 1.
    factor: Float[Array, " neurons"] | None = None
    # Of `recurrent`, which may have delays alone. They come on top of the one step that its spikes take.
    recurrent_connection: Connection = DENSE
    recurrent_delays: Float[ArrayLike, "..."] | None = None  # likewise, a scalar or [neurons]
    recurrent_synapses: Synapses | None = None  # which exist; None if all do
    # Of each recurrent synapse, as `recurrent`: in place of `recurrent_delays`, and likewise with a `max_delay` of
    # `recurrent_connection`. A spike is split between two steps as in `delayed_spike_matmul`.
    synaptic_delays: Float[Array, "..."] | None = None
    # Whole steps after a spike in which a neuron stays as it is, a scalar or [neurons]; None for none
    refractory: Integer[ArrayLike, "..."] | None = None


@explained
class LIFReadout(NamedTuple):
    """The leaky integrators after the last layer: ``v = decay * v + gain * (weights s + bias)``, no reset."""

    weights: Float[Array, "inputs outputs"] | Quantised
    decay: Float[ArrayLike, "..."]  # scalar or [outputs]
    gain: Float[ArrayLike, "..."] | None = None  # scalar or [outputs]; None is 1 - decay
    bias: Float[Array, " outputs"] | None = None
    connection: Connection = DENSE  # pooling before the readout


class LIFNetworkState(NamedTuple):
    """The state that a network carries from one piece of a sequence to the next; membranes are at least float32."""

    layers: tuple[LayerState, ...]  # fields of a layer that has no such state are None
    readout: Float[Array, "batch outputs"] | None  # the membranes of the readout


class LIFNetworkOutput(NamedTuple):
    """The results of a network; tuples have one entry per layer."""

    # The membranes of the readout; without one the spikes of the last layer, lists if it has a capacity.
    output: Float[Array, "time batch outputs"] | Any
    activity: tuple[Float[Array, "batch neurons"], ...]  # mean true spikes per step, before capping
    dropped: tuple[Int[Array, " batch"], ...]  # spikes that did not fit into the lists
    # If recorded, else None; the entry of a layer that is not recorded is None as well.
    spikes: tuple[SparseSpikes | Float[Array, "time batch neurons"] | None, ...] | None


@explained
def lif_network(
    inputs: Num[Array, "time batch inputs"] | SparseSpikes | Any,
    layers: Sequence[LIFLayer],
    readout: LIFReadout | None = None,
    state: LIFNetworkState | None = None,
    *,
    lengths: Integer[ArrayLike, " batch"] | None = None,
    capacity: int | Sequence[int | None] | None = None,
    second_threshold: Any = None,
    surrogate: str | Surrogate | Sequence[str | Surrogate] = "superspike",
    reset: str | Sequence[str] = "subtract",
    detach_reset: bool | Sequence[bool] = True,
    record_spikes: bool | Sequence[bool] = False,
    record_dtype: Any = None,
    chunk: int | None = None,
    implementation: str | None = None,
) -> tuple[LIFNetworkOutput, LIFNetworkState]:
    r"""Run a network of generalised LIF (GLIF) layers over all time steps.

    In every step the layers run in order, each on the spikes that the layer below fires in the same step:

    .. math::

        I &= x W + \mathrm{bias} + \bar s' W_\mathrm{recurrent} \\
        w &= \alpha_w w' + a v' + g_w I + b s' \quad \text{(with a SecondState only)} \\
        v &= \alpha\, \mathrm{reset}(v', s') + g I + c w \\
        s &= [v > \theta + \kappa w]

    where a prime marks the previous step, :math:`s'` are the true spikes, :math:`\bar s` those in the layer's list of
    `capacity` slots (see `select_spikes`), :math:`x` the inputs or the :math:`\bar s` of the layer below, the reset is
    that of `lif_step`, :math:`\alpha` is `decay`, :math:`g` is `gain`, :math:`\theta` is `threshold`, and `SecondState`
    names the other constants. In the `refractory` steps after a spike, :math:`v` and :math:`w` stay as they are, and
    :math:`s` is 0: the reset follows when the period is over. A reset subtracts the raised threshold, and the second
    threshold is raised with it. The result equals the composition of the single ops. Its derivative is back-propagation
    through time with the surrogate at the listed neurons, and at all neurons through ``w_jump``. Without capacity every
    neuron receives its gradient.

    An entry of 0 adds nothing to a product whatever its weights, including NaN and infinities, except where the device
    `ipu` computes plain products of matrices because these are faster. A NaN membrane does not spike.

    Args:
        inputs: spikes or currents ``[time, batch, inputs]`` of any numeric dtype, or `SparseSpikes` with the leading
            axes ``[time, batch]``; or, in front of a first layer without weights, the currents of its neurons
            ``[time, batch, neurons]``, floating-point, to be multiplied with its `factor`. Time 0 returns the state
            unchanged.
        layers: a sequence of `LIFLayer`; the dtype of their weights, and of given currents, is the dtype of the op.
            Constants and membranes are at least float32: only results are rounded to bfloat16. Dense weights may be
            `quantisation.Quantised`, whose rows of int8 are then read, and which refuse a gradient.
        readout: a `LIFReadout`; None returns the spikes of the last layer, as lists if it has a capacity (a neuron
            that is not listed then receives no gradient).
        state: from an earlier call, to run a long sequence in pieces; None starts from 0.
        lengths: number of steps of each sequence. The state freezes after the end, and padded steps are not counted.
        capacity: slots in the list of a layer, one value or one per layer; None lists all neurons.
        second_threshold: neurons between it and the threshold are listed for their gradient; one value or one per
            layer. None means ``threshold - 0.1 |threshold|``. It may be traced (for a schedule) and has no gradient. It
            has no effect if capacity is None.
        surrogate, reset, detach_reset: as in `lif_step`; one value or one per layer.
        record_spikes: also return the spikes of each layer; one value or one per layer.
        record_dtype: ``jnp.bfloat16`` records the membranes for the backward pass in half the memory, one value or one
            per layer: the surrogate and the cotangents of decay and threshold then see the distance of a membrane to
            the threshold with a relative error of up to 2^-9, and on the right side. None rounds only those of a
            bfloat16 network. Layers with a second state and float64 networks round none; neurons on given currents
            without recurrent weights record none.
        chunk: recompute the forward pass in chunks of this many steps to save memory; any length works.
        implementation: None chooses automatically; "reference" forces the jnp reference; "cpu" forces the compiled
            kernels or raises; "gpu" forces a kernel of a GPU for the neurons of each layer without recurrent weights,
            or raises; "composed" is plain jnp with forward mode and second-order derivatives.

    Returns:
        `LIFNetworkOutput` and the new `LIFNetworkState`. The backward pass of the activity is the surrogate at every
        neuron above the second threshold, listed or dropped.

    Raises:
        ValueError: if shapes do not match, weights are integers, dtypes are mixed, a decay is outside [0, 1], a switch
            is unknown, or a forced implementation is unavailable.

    Example:
        >>> import jax.numpy as jnp
        >>> from snnjax import LIFReadout, LIFLayer, lif_network
        >>> layer = LIFLayer(weights=jnp.ones((2, 3)), decay=0.5, gain=1.0)
        >>> readout = LIFReadout(weights=jnp.ones((3, 1)), decay=0.5, gain=1.0)
        >>> out, state = lif_network(jnp.ones((2, 1, 2)), [layer], readout)
        >>> out.output[:, 0, 0], out.activity[0]
        (Array([3. , 4.5], dtype=float32), Array([[1., 1., 1.]], dtype=float32))

    Reference:
        Finkbeiner et al. 2024, arXiv:2311.04386 (two thresholds, capped lists, sparse back-propagation); Teeter et al.
        2018, doi:10.1038/s41467-017-02717-4 (generalised LIF neurons).
    """
    inputs, layers, readout, state, lengths = gathered((inputs, tuple(layers), readout, state, lengths))
    batch = checks.check_network(inputs, layers, readout, chunk)
    num_steps = inputs.shape[0]
    second = checks.one_per_layer("lif_network", "second_threshold", second_threshold, len(layers))
    options = capacity, surrogate, reset, detach_reset, record_spikes, record_dtype
    switches = _switches(layers, readout, implementation, *options)
    if state is None:
        state = _state_of(batch, layers, readout, jnp.zeros, inputs)
        state = _without_rows(state) if chunk is None else state  # chunks are a scan, which carries them
    else:
        checks.check_state(state, _state_of(batch, layers, readout, jax.ShapeDtypeStruct, inputs))
    lengths = None if lengths is None else as_lengths("lif_network", lengths, num_steps, batch)
    operands = filled("lif_network", _given(inputs, layers, readout, state, lengths, second), switches)
    results: Any = run_network(operands, switches) if chunk is None else _chunked(operands, switches, chunk)
    records = checks.check_each_switch("record_spikes", record_spikes, len(layers))
    spikes = (own if asked else None for own, asked in zip(results.spikes, records, strict=True))
    output = LIFNetworkOutput(
        results.spikes[-1] if readout is None else results.output,
        mean_activity(results.counts, num_steps, lengths),
        results.dropped,
        tuple(spikes) if any(records) else None,
    )
    return output, LIFNetworkState(results.last, results.last_readout)


def _records(layer: LIFLayer, second_threshold: Any) -> tuple[Weighted, LayerConstants]:
    """A layer in the records of the target, by the names of their fields."""
    synapses = layer.recurrent_synapses
    ends, targets = (None, None) if synapses is None else ends_and_targets(synapses)
    of_layer: dict[str, Any] = layer._asdict() | {"recurrent_ends": ends, "recurrent_targets": targets}
    check_no_nan(
        "lif_network", "second_threshold", second_threshold, "Pass -inf to list all neurons that fit"
    )
    of_layer["second_threshold"] = second_threshold
    of_layer["glif"] = GLIFConstants(**{name: of_layer[name] for name in GLIFConstants._fields})
    weighted = Weighted(**{name: of_layer[name] for name in Weighted._fields})
    return weighted, LayerConstants(**{name: of_layer[name] for name in LayerConstants._fields})


def _given(
    inputs: Any,
    layers: Sequence[LIFLayer],
    readout: LIFReadout | None,
    state: LIFNetworkState,
    lengths: Array | None,
    second_thresholds: Sequence[Any],
) -> Operands:
    """The arguments in the records of the target, as they were given."""
    linears, constants = zip(*map(_records, layers, second_thresholds), strict=True)
    last = None
    if readout is not None:
        last = ReadoutOperands(Weighted(readout.weights, readout.bias), readout.decay, readout.gain)
    return Operands(inputs, linears, constants, last, state.layers, state.readout, lengths)


def _switches(
    layers: Sequence[LIFLayer],
    readout: LIFReadout | None,
    implementation: str | None,
    capacity: Any,
    surrogate: Any,
    reset: Any,
    detach_reset: Any,
    record_spikes: Any,
    record_dtype: Any,
) -> Switches:
    """The static switches, from values given once or per layer.

    Without a readout the spikes of the last layer are recorded: they are the output.
    """
    num_layers = len(layers)
    records = checks.check_each_switch("record_spikes", record_spikes, num_layers)
    each: dict[str, Any] = {
        "surrogate": checks.check_surrogates(surrogate, num_layers),
        "reset": checks.check_resets(reset, num_layers),
        "detach_reset": checks.check_each_switch("detach_reset", detach_reset, num_layers),
        "capacity": checks.check_capacity(capacity, num_layers),
        "connection": [layer.connection for layer in layers],
        "records_spikes": records if readout is not None else (*records[:-1], True),
        "rounds_record": checks.check_record_dtypes(record_dtype, num_layers),
        "recurrent_delay": [layer.recurrent_connection.max_delay for layer in layers],
    }
    rows = zip(*each.values(), strict=True)
    found = tuple(LayerSwitches(**dict(zip(each, row, strict=True))) for row in rows)
    return Switches(found, DENSE if readout is None else readout.connection, implementation)


@explained
def lif_network_state(
    batch: int, layers: Sequence[LIFLayer], readout: LIFReadout | None = None, *, currents: Any = None
) -> LIFNetworkState:
    """Make the state before the first step: every membrane at 0, no spikes.

    If the first layer has no weights, `currents` are its inputs, or anything else of their shape and dtype.

    Raises:
        ValueError: if `batch` is not an integer of at least 0, or `currents` are missing.

    Example:
        >>> import jax.numpy as jnp
        >>> from snnjax import LIFLayer, lif_network_state
        >>> lif_network_state(2, [LIFLayer(weights=jnp.ones((4, 3)), decay=0.9)]).layers[0].v.shape
        (2, 3)
    """
    batch = check_size("lif_network_state", "batch", batch)
    if layers and layers[0].weights is None and currents is None:
        expected = "be given for a first layer without weights"
        fail(f"lif_network_state: `currents` must {expected}, got None. Pass the inputs of lif_network.")
    return _state_of(batch, layers, readout, jnp.zeros, currents)


def _state_of(
    batch: int,
    layers: Sequence[LIFLayer],
    readout: LIFReadout | None,
    make: Callable[..., Any],
    currents: Any,
) -> LIFNetworkState:
    """A state of arrays that `make` makes of shapes and dtypes; `currents` have those of a layer without weights."""

    def source(layer: LIFLayer | LIFReadout) -> Any:
        return currents if layer.weights is None else layer.weights

    def per_output(layer: LIFLayer | LIFReadout, dtype: DTypeLike) -> Any:
        return make((batch, layer.connection.num_outputs(source(layer).shape)), dtype)

    def membranes(layer: LIFLayer | LIFReadout) -> Any:
        return per_output(layer, accumulation_dtype(source(layer).dtype))

    def pending(layer: LIFLayer, longest: int) -> Any:
        num_inputs = layer.connection.num_inputs(source(layer).shape)
        return make((longest + 1, batch, num_inputs), source(layer).dtype)

    def fed_back(layer: LIFLayer, rows: int, dtype: DTypeLike) -> Any:
        return make((rows, batch, layer.connection.num_outputs(source(layer).shape)), dtype)

    def state_of(layer: LIFLayer) -> LayerState:
        longest, recurrent, dtype = layer.connection.max_delay, _longest(layer), source(layer).dtype
        earlier, arriving = layer.recurrent_delays is not None, layer.synaptic_delays is not None
        return LayerState(
            v=membranes(layer),
            w=None if layer.second_state is None else membranes(layer),
            spikes=None if layer.recurrent is None else per_output(layer, dtype),
            pending=None if longest is None else pending(layer, longest),
            earlier_spikes=fed_back(layer, recurrent + 1, dtype) if earlier else None,
            arriving=fed_back(layer, recurrent, accumulation_dtype(dtype)) if arriving else None,
            remaining=None if layer.refractory is None else membranes(layer),
        )

    return LIFNetworkState(
        tuple(state_of(layer) for layer in layers), None if readout is None else membranes(readout)
    )


def _longest(layer: LIFLayer) -> int:
    """The longest delay of recurrent spikes, 0 without delays."""
    return layer.recurrent_connection.max_delay or 0


def _without_rows(state: LIFNetworkState) -> LIFNetworkState:
    """A state with no rows of what is under way to a layer, which stand for rows of zeros."""

    def without(own: LayerState) -> LayerState:
        pending, arriving = (None if rows is None else rows[:0] for rows in (own.pending, own.arriving))
        return own._replace(pending=pending, arriving=arriving)

    return state._replace(layers=tuple(map(without, state.layers)))


def _chunked(operands: Operands, switches: Switches, chunk: int) -> Results:
    """The results, computed in chunks of `chunk` steps."""

    def run(inputs: Any, state: LIFNetworkState, lengths: Array | None) -> tuple[Any, Any, Any]:
        first = {"first": state.layers, "first_readout": state.readout}
        results: Any = run_network(operands._replace(inputs=inputs, lengths=lengths, **first), switches)
        state = LIFNetworkState(results.last, results.last_readout)
        return (results.output, results.spikes), (results.counts, results.dropped), state

    state = LIFNetworkState(operands.first, operands.first_readout)
    (output, spikes), summed, state = in_chunks(run, operands.inputs, state, operands.lengths, int(chunk))
    counts, dropped = summed
    return Results(output, counts, dropped, spikes, last=state.layers, last_readout=state.readout)


def mean_activity(
    counts: Sequence[Array], num_steps: int, lengths: Integer[Array, " batch"] | None
) -> tuple[Float[Array, "batch neurons"], ...]:
    """Spike counts divided by the number of steps of each sequence."""
    if lengths is None:
        return tuple(count / max(num_steps, 1) for count in counts)
    steps = jnp.clip(lengths, 1, max(num_steps, 1))
    return tuple(count / steps.astype(count.dtype)[:, None] for count in counts)
