"""Networks as pure functions, `init` and `apply`, of plain pytrees of arrays."""

import dataclasses
import math
import warnings
from collections.abc import Iterable, Sequence
from typing import Any, NoReturn

import jax
import jax.numpy as jnp
from jaxtyping import Array

from snnjax._check import (
    MAX_SIZE,
    as_lengths,
    batch_hint,
    check,
    check_choice,
    check_dtype,
    check_integer,
    check_key,
    check_real_array,
    check_size,
    concrete,
    fail,
    message,
    shown,
)
from snnjax._dispatch import IMPLEMENTATIONS
from snnjax._network.compare import check_dtypes, check_params, check_state
from snnjax._network.connections import Between, Shape, Weighted
from snnjax._network.delays import Delays, Pending, no_pending
from snnjax._network.init import Sample, init_params
from snnjax._network.run import Call, LayerPath, delays_of, layer_path, run
from snnjax._network.scan import Carry, rounded, run_layer, widened, within
from snnjax._network.specs import (
    LayerParams,
    LayerSpec,
    NetworkOutput,
    NetworkParams,
    NetworkState,
    ReadoutSpec,
    expand,
    fit_layers,
    second_thresholds,
    warn_unless_below,
)
from snnjax._sharding import gathered
from snnjax._types import steps_within, upcast
from snnjax.ops._lif_network.checks import one_per_layer
from snnjax.ops.lif_network import mean_activity
from snnjax.sparse_spikes import SparseSpikes, check_spikes

# What `apply` can record.
RECORDS = ("spikes", "membranes")
# Above it, inputs are taken for the bytes of images: counts of events in a step are smaller, and so are currents.
_LARGEST_INPUT = 64


@dataclasses.dataclass(frozen=True)
class Network:
    """A network: pure functions of parameters and state; made by `network`.

    **Non-finite numbers.** A NaN membrane does not spike, so a NaN among the inputs permanently silences its layer
    while the output stays finite: a diverged run shows NaN only in the state. ``metrics.diverged(state)`` detects it,
    also under `jax.jit`, and recorded membranes show where it began; JAX's ``jax_debug_nans`` only detects it in
    functions that return the state. ``jax_debug_infs`` is of use under `jax.jit` only: elsewhere it raises at
    infinities that are meant, such as the second threshold of a layer without capacity, -inf.
    """

    input_shape: Shape
    layers: tuple[LayerSpec, ...]  # including a spiking read-out as the last one
    readout: ReadoutSpec | None

    @property
    def num_inputs(self) -> int:
        """The number of inputs, over all axes of their shape."""
        return math.prod(self.input_shape)

    @property
    def num_outputs(self) -> int:
        """The number of outputs, which is the number of classes that the network can distinguish."""
        last = self.layers[-1] if self.readout is None else self.readout
        return last.fitted.num_neurons

    @property
    def paths(self) -> tuple[LayerPath, ...]:
        """The path by which `apply` computes each layer, with the reason."""
        return tuple(layer_path(spec) for spec in self.layers)

    def __call__(self, *arguments: Any, **options: Any) -> NoReturn:
        """A network is run by `apply`: it holds no parameters."""
        hint = "Write network.apply(params, state, inputs)"
        fail("network", "network", "be run by its function apply", "a call of the network", hint)

    def init(
        self,
        key: Array,
        inputs: Any = None,
        *,
        lengths: Any = None,
        target_activity: float = 0.05,
        dtype: Any = jnp.float32,
    ) -> NetworkParams:
        """Draw the initial parameters: weights are scaled to their fan-in and neuron model.

        With sample `inputs`, they are also scaled layer by layer until each layer's activity is `target_activity`, over
        the steps within `lengths`.

        Raises:
            ValueError: if inputs or lengths do not fit, or the activity is outside (0, 1).

        Warns:
            RuntimeWarning: if sample inputs are as large as the bytes of an image.
        """
        check_key("network.init", key)
        check_dtype("network.init", dtype)
        sample = None
        if inputs is not None:
            _check_inputs(inputs, self.num_inputs)
            _warn_of_bytes(inputs)
            if isinstance(target_activity, int | float):  # a traced value cannot be checked
                good, hint = 0 < target_activity < 1, "Try 0.05, one spike per neuron in 20 steps"
                check(good, "network.init", "target_activity", "be between 0 and 1", target_activity, hint)
            lengths = None if lengths is None else as_lengths("network.init", lengths, *inputs.shape[:2])
            sample = Sample(inputs, lengths, target_activity)
        return init_params(key, self.layers, self.readout, dtype, sample, _run_alone)

    def initial_state(self, params: NetworkParams, batch: int) -> NetworkState:
        """Make the state before the first step.

        Raises:
            ValueError: if `batch` is not an integer of at least 0.
        """
        check_size("network.initial_state", "batch", batch)
        params = self.expand(params)
        last = None
        if self.readout is not None and params.readout is not None:
            last = self.readout.neuron.initial_state(params.readout.neuron, batch)
        each = list(zip(self.layers, params.layers, strict=True))
        return NetworkState(
            tuple(spec.neuron.initial_state(own.neuron, batch) for spec, own in each),
            tuple(_no_spikes(own, batch) for own in params.layers),
            last,
            tuple(_nothing_pending(spec, own, batch) for spec, own in each),
        )

    def delays(self, params: NetworkParams) -> tuple[Delays | None, ...]:
        """The delays of each layer in steps, ``[inputs]`` and ``[neurons]``; None if it has none."""
        check_params("network", params, self.layers, self.readout)
        each = zip(self.layers, params.layers, strict=True)
        return tuple(None if own.delays is None else delays_of(spec, own) for spec, own in each)

    def expand(self, params: NetworkParams) -> NetworkParams:
        """The parameters as `apply` uses them: one constant per neuron, and masked weights."""
        check_params("network", params, self.layers, self.readout)
        last = None
        if self.readout is not None and params.readout is not None:
            last = expand(self.readout, params.readout)
        each = zip(self.layers, params.layers, strict=True)
        return NetworkParams(tuple(expand(*own) for own in each), last)

    def apply(
        self,
        params: NetworkParams,
        state: NetworkState | None,
        inputs: Any,
        *,
        lengths: Any = None,
        second_threshold: Any = None,
        record: str | Sequence[str] = (),
        chunk: int | None = None,
        implementation: str | None = None,
    ) -> tuple[NetworkOutput, NetworkState]:
        """Run the network over all time steps, with the arguments and results of `lif_network`.

        Consecutive generalised LIF layers (`neurons.GLIF`) are one call of that op; other neurons are scanned step by
        step, layer by layer, with equal results. ``network.paths`` says which path each layer takes, and why.

        Args:
            params: from `init`.
            state: from `initial_state` or an earlier call; None starts from 0.
            inputs: ``[time, batch, inputs]``, an array or `SparseSpikes`.
            lengths: number of steps of each sequence.
            second_threshold: overrides those of the layers; it may be traced.
            record: what to add to the `NetworkOutput` for every layer and step: "spikes", "membranes", or the tuple
                ``("spikes", "membranes")``; networks that record membranes are scanned.
            chunk: recompute the forward pass in chunks of this many steps to save memory.
            implementation: the implementation of every product, list and fused op (the neurons themselves are plain
                JAX): "cpu" raises if one of them has no kernel. "composed" scans every layer in plain jnp, which
                supports forward mode (`jax.jvp`, `jax.jacfwd`) and derivatives of any order; the kernels only support
                first order in reverse mode.

        Raises:
            ValueError: if inputs, state, thresholds or implementation do not fit.
        """
        check_choice("network.apply", "implementation", implementation, IMPLEMENTATIONS)
        if chunk is not None:
            check_integer("network.apply", "chunk", chunk, 1)
        records = _check_record(record, implementation)
        is_new = state is None
        params, state, inputs, lengths = self.checked(params, state, inputs, lengths)
        state = _without_rows(state) if is_new and chunk is None else state
        second = self.second_thresholds(params, second_threshold)
        call = Call(self.layers, self.readout, params, second, records, implementation)
        return run(call, inputs, state, lengths, chunk)

    def checked(
        self, params: NetworkParams, state: NetworkState | None, inputs: Any, lengths: Any
    ) -> tuple[NetworkParams, NetworkState, Any, Array | None]:
        """The arguments of `apply`, checked, in the form in which the layers run: by `expand`, and with a state."""
        params, state, inputs, lengths = gathered((params, state, inputs, lengths))
        _check_inputs(inputs, self.num_inputs)
        if state is None:
            state = self.initial_state(params, inputs.shape[1])
        else:
            _check_batch(state, *inputs.shape[:2])
            check_state("network.apply", "state", state, self.initial_state, params, inputs.shape[1])
        lengths = None if lengths is None else as_lengths("network.apply", lengths, *inputs.shape[:2])
        params = self.expand(params)
        check_dtypes("network.apply", params)
        return params, state, inputs, lengths

    def second_thresholds(self, params: NetworkParams, override: Any = None) -> Sequence[Any]:
        """The second threshold of each layer that lists its spikes, for parameters of `expand`, else None.

        Overriding thresholds are checked.
        """
        if override is None:
            given = [spec.second_threshold for spec in self.layers]
            return second_thresholds(self.layers, params.layers, given)
        given = one_per_layer("network.apply", "second_threshold", override, len(self.layers))
        for spec, own, second in zip(self.layers, params.layers, given, strict=True):
            if spec.capacity is not None and second is not None:
                threshold = spec.neuron.threshold(own.neuron)
                warn_unless_below("network.apply", second, spec.neuron, threshold)
        return second_thresholds(self.layers, params.layers, given)


def network(
    inputs: int | Sequence[int],
    layers: Sequence[LayerSpec | Weighted | Between],
    readout: ReadoutSpec | LayerSpec,
) -> Network:
    """Make a network from spiking layers and a read-out.

    Args:
        inputs: number of inputs ``[time, batch, inputs]``, an array or `SparseSpikes`; or, if they are the flattened
            pixels of an image (row-major), its shape (height, width, channels) or (length, channels).
        layers: results of `layer`, or just a connection (`dense`, `conv1d`, `conv2d`), which makes a layer of LIF
            neurons; between them `sum_pool`, `mean_pool` and `flatten`.
        readout: result of `leaky_readout` or `spiking_readout`.

    Raises:
        ValueError: if there are no layers, or something is not a layer or a read-out.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> import snnjax
        >>> net = snnjax.network(20, [snnjax.layer(32, capacity=8)], snnjax.leaky_readout(3))
        >>> params = net.init(jax.random.key(0))
        >>> output, state = net.apply(params, net.initial_state(params, 2), jnp.ones((5, 2, 20)))
        >>> output.output.shape, output.activity[0].shape
        ((5, 2, 3), (2, 32))
    """
    shape = tuple(inputs) if isinstance(inputs, Iterable) else (inputs,)
    for length in shape:
        check_integer("network", "inputs", length, 0 if len(shape) == 1 else 1)
    count = math.prod(shape)
    check(count <= MAX_SIZE, "network", "inputs", f"be at most {MAX_SIZE}", count, "Split the image")
    _check_specs(layers, readout)
    specs, last = fit_layers(shape, layers, readout)
    check(len(specs) > 0, "network", "layers", "hold at least one layer", "none", "Add a snnjax.layer(...)")
    return Network(shape, specs, last)


def _check_specs(layers: Any, readout: Any) -> None:
    """Check that layers and read-out are made by their functions, and are in their places."""
    op = "network"
    good = isinstance(layers, Sequence) and not isinstance(layers, str)
    check(good, op, "layers", "be a sequence of layers", shown(layers), "Write [snnjax.layer(...)]")
    for index, spec in enumerate(layers):
        if isinstance(spec, ReadoutSpec):
            actual, hint = "a leaky read-out", "Pass it as the argument `readout`"
        else:
            actual, hint = shown(spec), "Make it with snnjax.layer(...)"
        good = isinstance(spec, LayerSpec | Weighted | Between)
        check(good, op, f"layers[{index}]", "be a spiking layer", actual, hint)
    hint = "Make it with snnjax.leaky_readout(...) or snnjax.spiking_readout(...)"
    good = isinstance(readout, ReadoutSpec) or (isinstance(readout, LayerSpec) and readout.capacity is None)
    check(good, op, "readout", "be a read-out", shown(readout), hint)


def _run_alone(spec: LayerSpec, own: LayerParams, x: Any, lengths: Array | None) -> tuple[Any, Array]:
    """The spikes of a layer and its mean activity before capping; delays move spikes but hardly change it."""
    own, batch, valid = expand(spec, own), x.shape[1], steps_within(x.shape[0], lengths)
    before = jax.tree.map(upcast, _no_spikes(own, batch))
    start = Carry(spec.neuron.initial_state(own.neuron, batch), before, None)
    full = dataclasses.replace(spec, capacity=None)
    x = widened(rounded(within(x, valid), own.weights.dtype))
    steps = run_layer(full, own, start, x, None, valid, None)[1]
    return steps.listed, _activity(steps.counted, lengths)


def _activity(spikes: Array, lengths: Array | None) -> Array:
    """The mean activity of a layer over the sequences with at least one step."""
    (rates,) = mean_activity([jnp.sum(upcast(spikes), axis=0)], spikes.shape[0], lengths)
    return jnp.mean(rates, where=None if lengths is None else lengths[:, None] > 0)


def _no_spikes(own: LayerParams, batch: int) -> Array | None:
    if own.recurrent is None:
        return None
    return jnp.zeros((batch, own.recurrent.shape[1]), own.weights.dtype)


def _nothing_pending(spec: LayerSpec, own: LayerParams, batch: int) -> Pending | None:
    if spec.delays is None:
        return None
    neurons = spec.num_neurons if spec.recurrent else None
    return no_pending(spec.delays, batch, math.prod(spec.fitted.in_shape), neurons, own.weights.dtype)


def _without_rows(state: NetworkState) -> NetworkState:
    """An initial state without inputs in transit, represented by no rows instead of rows of zeros."""
    pending = (None if own is None else own._replace(inputs=own.inputs[:0]) for own in state.pending)
    return state._replace(pending=tuple(pending))


def _check_record(record: str | Sequence[str], implementation: str | None) -> tuple[str, ...]:
    hint = f"Try record={RECORDS[0]!r}, or record={RECORDS} for both"
    good = isinstance(record, str | Sequence)
    check(good, "network.apply", "record", "be a name or a sequence of names", shown(record), hint)
    names = (record,) if isinstance(record, str) else tuple(record)
    for name in names:
        expected = f"be {' or '.join(map(repr, RECORDS))}, or a sequence of them"
        check(name in RECORDS, "network.apply", "record", expected, shown(name), hint)
    good = "membranes" not in names or implementation != "cpu"
    expected = "be None or 'reference' if membranes are recorded"
    check(good, "network.apply", "implementation", expected, "'cpu'", "Leave it None")
    return names


def _check_inputs(inputs: Any, num_inputs: int) -> None:
    if isinstance(inputs, SparseSpikes):
        check_spikes("network", "inputs", inputs)
    else:
        check_real_array("network", "inputs", inputs)
    axes_fit = len(inputs.shape) == 3 and inputs.shape[-1] == num_inputs
    expected = f"have shape [time, batch, inputs] = [any, any, {num_inputs}]"
    hint = "Time comes first; add a missing batch axis with inputs[:, None]"
    check(axes_fit, "network", "inputs", expected, list(inputs.shape), hint)


def _warn_of_bytes(inputs: Any) -> None:
    """Warn about inputs that are the bytes of an image: they would drive all neurons at once."""
    known = concrete(inputs.values if isinstance(inputs, SparseSpikes) else inputs)
    if known is not None and known.size > 0 and known.max() > _LARGEST_INPUT:
        hint = "Divide the bytes of images by 255, and clip counts of events"
        expected = f"be of the order of 1, spikes or currents of at most {_LARGEST_INPUT}"
        text = message("network.init", "inputs", expected, f"values up to {known.max():g}", hint)
        warnings.warn(text, RuntimeWarning, stacklevel=3)


def _check_batch(state: Any, steps: int, batch: int) -> None:
    """Check that a state has the batch size of the inputs."""
    hint = "Make it with network.initial_state(params, batch), or pass None"
    good = isinstance(state, NetworkState)
    check(good, "network.apply", "state", "be a NetworkState or None", type(state).__name__, hint)
    have = {leaf.shape[0] for leaf in jax.tree.leaves(state._replace(pending=())) if leaf.ndim}
    have |= {rows.shape[1] for rows in jax.tree.leaves(state.pending)}
    hint = batch_hint(sorted(have), steps, batch, "Make it with network.initial_state(params, batch)")
    expected = f"have batch size {batch}, like the inputs"
    check(have <= {batch}, "network", "state", expected, sorted(have), hint)
