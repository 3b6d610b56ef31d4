"""`lif_network`: a whole network of LIF layers over all time steps, as one op."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float, Int, Num

from snnjax._check import as_lengths, check_size
from snnjax._quantised import Quantised
from snnjax._sharding import gathered, vary_alike
from snnjax._types import sum_dtype
from snnjax.ops._chunks import in_chunks
from snnjax.ops._connection import DENSE, Connection
from snnjax.ops._lif_network import checks
from snnjax.ops._lif_network.primitive import run_network
from snnjax.ops._lif_network.records import (
    LayerConstants,
    LayerState,
    Linear,
    Operands,
    Readout,
    Results,
)
from snnjax.ops._lif_network.records import SecondState as SecondState
from snnjax.ops._lif_network.switches import LayerSwitches, Switches
from snnjax.ops.delay_spikes import bounded
from snnjax.ops.lif_step import per_neuron
from snnjax.ops.select_spikes import usual_second_threshold
from snnjax.sparse_spikes import SparseSpikes
from snnjax.surrogates import Surrogate, as_surrogate


class LIFLayer(NamedTuple):
    """One layer of `lif_network`: weights and the constants of its neurons."""

    weights: Float[Array, "..."] | Quantised  # [inputs, neurons], or convolution weights
    decay: Float[ArrayLike, "..."]  # scalar or [neurons]
    threshold: Float[ArrayLike, "..."] = 1.0  # scalar or [neurons]
    gain: Float[ArrayLike, "..."] | None = None  # scalar or [neurons]; None is 1 - decay
    bias: Float[Array, " neurons"] | None = None
    recurrent: Float[Array, "neurons neurons"] | Quantised | None = None
    second_state: SecondState | None = None  # of neurons with a second linear state; None for plain LIF
    connection: Connection = DENSE  # delays, pooling, a convolution, or several of them before the layer
    # In steps, a scalar or [inputs]; required if and only if `connection.max_delay` is given.
    delays: Float[ArrayLike, "..."] | None = None


class LeakyReadout(NamedTuple):
    """The leaky integrators after the last layer: ``v = decay * v + gain * (weights s + bias)``, no reset."""

    weights: Float[Array, "inputs outputs"] | Quantised
    decay: Float[ArrayLike, "..."]  # scalar or [outputs]
    gain: Float[ArrayLike, "..."] | None = None  # scalar or [outputs]; None is 1 - decay
    bias: Float[Array, " outputs"] | None = None
    connection: Connection = DENSE  # pooling before the read-out


class LIFNetworkState(NamedTuple):
    """The state that a network carries from one piece of a sequence to the next; membranes are at least float32."""

    v: tuple[Float[Array, "batch neurons"], ...]  # the membranes of each layer
    w: tuple[Float[Array, "batch neurons"] | None, ...]  # the second states of the layers that have one
    spikes: tuple[Float[Array, "batch neurons"] | None, ...]  # the last listed spikes of recurrent layers
    readout: Float[Array, "batch outputs"] | None  # the membranes of the read-out
    # Spikes in transit to layers with delays, as in `delay_spikes`; no rows stand for rows of zeros. None without
    # such layers.
    pending: tuple[Float[Array, "rows batch inputs"] | None, ...] | None = None


class LIFNetworkOutput(NamedTuple):
    """The results of a network; tuples have one entry per layer."""

    output: Float[Array, "time batch outputs"]  # membranes of the read-out, or spikes of the last layer
    activity: tuple[Float[Array, "batch neurons"], ...]  # mean true spikes per step, before capping
    dropped: tuple[Int[Array, " batch"], ...]  # spikes that did not fit into the lists
    # If recorded, else None; the entry of a layer that is not recorded is None as well.
    spikes: tuple[SparseSpikes | Float[Array, "time batch neurons"] | None, ...] | None


def lif_network(
    inputs: Num[Array, "time batch inputs"] | SparseSpikes | Any,
    layers: Sequence[LIFLayer],
    readout: LeakyReadout | None = None,
    state: LIFNetworkState | None = None,
    *,
    lengths: Int[ArrayLike, " batch"] | None = None,
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
    names the other constants. A reset subtracts the raised threshold, and the second threshold is raised with it. The
    result equals the composition of the single ops. Its derivative is back-propagation through time with the surrogate
    at the listed neurons, and at all neurons through ``w_jump``. Without capacity every neuron receives its gradient.

    Args:
        inputs: spikes or currents ``[time, batch, inputs]`` of any numeric dtype, or `SparseSpikes` with the leading
            axes ``[time, batch]``. Time 0 returns the state unchanged.
        layers: a sequence of `LIFLayer`; the dtype of their weights is the dtype of the op. Constants and membranes are
            at least float32: only results are rounded to bfloat16. Dense weights may be `quantisation.Quantised`, whose
            rows of int8 are then read, and which refuse a gradient.
        readout: a `LeakyReadout`; None returns the spikes of the last layer, which is then fully listed.
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
            bfloat16 network. Layers with a second state and float64 networks round none.
        chunk: recompute the forward pass in chunks of this many steps to save memory; any length works.
        implementation: None chooses automatically; "reference" forces the jnp reference; "cpu" forces the compiled
            kernels or raises; "gpu" runs the neurons of layers without recurrent weights in one kernel of a GPU each,
            or raises; "composed" is plain jnp with forward mode and second-order derivatives.

    Returns:
        `LIFNetworkOutput` and the new `LIFNetworkState`. The backward pass of the activity is the surrogate at every
        neuron above the second threshold, listed or dropped.

    Raises:
        ValueError: if shapes do not match, weights are integers, dtypes are mixed, a switch is unknown, or a forced
            implementation is unavailable.

    Example:
        >>> import jax.numpy as jnp
        >>> from snnjax import LeakyReadout, LIFLayer, lif_network
        >>> layer = LIFLayer(weights=jnp.ones((2, 3)), decay=0.5, gain=1.0)
        >>> readout = LeakyReadout(weights=jnp.ones((3, 1)), decay=0.5, gain=1.0)
        >>> out, state = lif_network(jnp.ones((2, 1, 2)), [layer], readout)
        >>> out.output[:, 0, 0], out.activity[0]
        (Array([3. , 4.5], dtype=float32), Array([[1., 1., 1.]], dtype=float32))

    Reference:
        Finkbeiner et al. 2024, arXiv:2311.04386 (two thresholds, capped lists, sparse back-propagation); Teeter et al.
        2018, doi:10.1038/s41467-017-02717-4 (generalised LIF neurons).
    """
    layers = tuple(layers)
    options = (surrogate, reset, detach_reset, record_spikes, record_dtype, implementation)
    switches = network_switches(layers, readout, capacity, *options)
    output, end = count_network(inputs, layers, readout, state, lengths, second_threshold, switches, chunk)
    num_steps, batch = output.output.shape[:2]
    lengths = None if lengths is None else as_lengths("lif_network", lengths, num_steps, batch)
    return output._replace(activity=mean_activity(output.activity, num_steps, lengths)), end


def network_switches(
    layers: Sequence[LIFLayer],
    readout: LeakyReadout | None,
    capacity: Any,
    surrogate: Any,
    reset: Any,
    detach_reset: Any,
    record_spikes: Any,
    record_dtype: Any,
    implementation: str | None,
) -> Switches:
    """The static switches of a network, from values given once or per layer."""
    num_layers = len(layers)
    capacities = checks.check_capacity(capacity, num_layers)
    if readout is None:  # so that a silent class can still learn
        capacities = (*capacities[:-1], *(None for _ in capacities[-1:]))
    surrogates = checks.switch_per_layer("surrogate", surrogate, num_layers)
    each = zip(
        (layer.connection for layer in layers),
        capacities,
        (as_surrogate("lif_network", own) for own in surrogates),
        checks.check_resets(reset, num_layers),
        checks.switch_per_layer("detach_reset", detach_reset, num_layers),
        checks.switch_per_layer("record_spikes", record_spikes, num_layers),
        checks.check_record_dtypes(record_dtype, num_layers),
        strict=True,
    )
    last = DENSE if readout is None else readout.connection
    return Switches(tuple(LayerSwitches(*own) for own in each), last, implementation)


def count_network(
    inputs: Any,
    layers: tuple[LIFLayer, ...],
    readout: LeakyReadout | None,
    state: LIFNetworkState | None,
    lengths: Any,
    second_threshold: Any,
    switches: Switches,
    chunk: int | None = None,
) -> tuple[LIFNetworkOutput, LIFNetworkState]:
    """`lif_network` with spike counts instead of the activity."""
    given = inputs, layers, readout, state, lengths
    inputs, layers, readout, state, lengths = gathered(given)
    batch = checks.check_network(inputs, layers, readout, chunk)
    second = checks.one_per_layer("second_threshold", second_threshold, len(layers))
    if state is None:
        state = lif_network_state(batch, layers, readout)
    checks.check_state(state, batch, layers, readout)
    lengths = None if lengths is None else as_lengths("lif_network", lengths, inputs.shape[0], batch)
    operands = _operands(inputs, layers, readout, state, lengths, second, switches)
    operands = vary_alike(operands)
    results: Any = run_network(operands, switches) if chunk is None else _chunked(operands, switches, chunk)
    records = any(layer.records_spikes for layer in switches.layers)
    spikes = results.spikes if records else None
    v, w, carried, pending = (tuple(each) for each in zip(*results.last, strict=True))
    output = LIFNetworkOutput(results.output, results.counts, results.dropped, spikes)
    return output, LIFNetworkState(v, w, carried, results.last_readout, _if_any(pending))


def lif_network_state(
    batch: int, layers: Sequence[LIFLayer], readout: LeakyReadout | None = None
) -> LIFNetworkState:
    """Make the state before the first step: every membrane at 0, no spikes.

    Raises:
        ValueError: if `batch` is not an integer of at least 0.

    Example:
        >>> import jax.numpy as jnp
        >>> from snnjax import LIFLayer, lif_network_state
        >>> lif_network_state(2, [LIFLayer(weights=jnp.ones((4, 3)), decay=0.9)]).v[0].shape
        (2, 3)
    """
    check_size("lif_network_state", "batch", batch)

    def zeros(layer: LIFLayer | LeakyReadout, dtype: Any) -> Array:
        return jnp.zeros((batch, layer.connection.num_outputs(layer.weights.shape)), dtype)

    def membranes(layer: LIFLayer | LeakyReadout) -> Array:
        return zeros(layer, sum_dtype(layer.weights.dtype))

    def rows(layer: LIFLayer) -> Array | None:
        connection, most = layer.connection, layer.connection.max_delay
        shape = layer.weights.shape
        inputs = connection.num_inputs(shape)
        return None if most is None else jnp.zeros((most + 1, batch, inputs), layer.weights.dtype)

    return LIFNetworkState(
        v=tuple(membranes(layer) for layer in layers),
        w=tuple(None if layer.second_state is None else membranes(layer) for layer in layers),
        spikes=tuple(
            None if layer.recurrent is None else zeros(layer, layer.weights.dtype) for layer in layers
        ),
        readout=None if readout is None else membranes(readout),
        pending=_if_any(tuple(rows(layer) for layer in layers)),
    )


def _if_any(pending: tuple[Array | None, ...]) -> tuple[Array | None, ...] | None:
    """The spikes in transit to each layer; None if no layer has delays."""
    return None if all(rows is None for rows in pending) else pending


def _operands(
    inputs: Any,
    layers: tuple[LIFLayer, ...],
    readout: LeakyReadout | None,
    state: LIFNetworkState,
    lengths: Array | None,
    second: tuple[Any, ...],
    switches: Switches,
) -> Operands:
    """All arrays in the form of the target's operands."""
    given = inputs if isinstance(inputs, SparseSpikes) else jnp.asarray(inputs)
    constants = []
    for layer, v, second_threshold, switch in zip(layers, state.v, second, switches.layers, strict=True):
        decay, threshold, gain = _constants(layer, v)
        if switch.capacity is None:
            second_threshold = -jnp.inf
        elif second_threshold is None:
            second_threshold = usual_second_threshold(threshold)
        second_threshold = per_neuron("lif_network", "second_threshold", second_threshold, v)
        second_threshold = jax.lax.stop_gradient(second_threshold)
        second_state = _second_state(layer.second_state, v)
        constants.append(
            LayerConstants(layer.recurrent, decay, threshold, gain, second_threshold, second_state)
        )
    last = None
    if readout is not None:
        decay, _, gain = _constants(readout, state.readout)
        last = Readout(Linear(readout.weights, readout.bias), decay, gain)
    pending = (None,) * len(layers) if state.pending is None else state.pending
    return Operands(
        given,
        tuple(Linear(layer.weights, layer.bias, _delays(layer)) for layer in layers),
        tuple(constants),
        last,
        tuple(LayerState(*own) for own in zip(state.v, state.w, state.spikes, pending, strict=True)),
        state.readout,
        lengths,
    )


def _delays(layer: LIFLayer) -> Array | None:
    """The delays of a layer's inputs as ``[inputs]``."""
    most = layer.connection.max_delay
    if most is None or layer.delays is None:
        return None
    inputs = layer.connection.num_inputs(layer.weights.shape)
    return bounded(jnp.asarray(layer.delays), most, inputs, sum_dtype(layer.weights.dtype))


def _second_state(second: SecondState | None, v: Any) -> SecondState | None:
    """The constants of the second state as ``[1 | neurons]``."""
    if second is None:
        return None
    given = second._asdict().items()
    return SecondState(
        *(None if each is None else per_neuron("lif_network", name, each, v) for name, each in given)
    )


def _constants(layer: LIFLayer | LeakyReadout, v: Any) -> tuple[Array, Array, Array]:
    """Decay, threshold and gain as ``[1 | neurons]``, in the dtype of the membranes, not rounded to bfloat16."""
    decay = per_neuron("lif_network", "decay", layer.decay, v)
    threshold = per_neuron("lif_network", "threshold", getattr(layer, "threshold", 0.0), v)
    gain = 1 - decay if layer.gain is None else per_neuron("lif_network", "gain", layer.gain, v)
    return decay, threshold, gain


def _chunked(operands: Operands, switches: Switches, chunk: int) -> Results:
    """The results, computed in chunks of `chunk` steps."""

    def run(inputs: Any, state: Any, lengths: Array | None) -> tuple[Any, Any, Any]:
        piece = operands._replace(inputs=inputs, first=state[0], first_readout=state[1], lengths=lengths)
        results: Any = run_network(piece, switches)
        state = (results.last, results.last_readout)
        return (results.output, results.spikes), (results.counts, results.dropped), state

    state = (operands.first, operands.first_readout)
    (output, spikes), summed, state = in_chunks(run, operands.inputs, state, operands.lengths, chunk)
    counts, dropped = summed
    return Results(output, counts, dropped, spikes, last=state[0], last_readout=state[1])


def mean_activity(
    counts: Sequence[Array], num_steps: int, lengths: Int[Array, " batch"] | None
) -> tuple[Float[Array, "batch neurons"], ...]:
    """Spike counts divided by the number of steps of each sequence."""
    if lengths is None:
        return tuple(count / max(num_steps, 1) for count in counts)
    steps = jnp.clip(lengths, 1, max(num_steps, 1))
    return tuple(count / steps.astype(count.dtype)[:, None] for count in counts)
