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
    check_choice,
    check_integer,
    check_key,
    check_real_array,
    check_shape,
    check_size,
    concrete,
    fail,
    short_repr,
    type_words,
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
        fail(f"network: `network` must be run by its function `apply`, got a call of itself. {hint}.")

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
        if not jnp.issubdtype(dtype, jnp.floating):
            name = jnp.dtype(dtype).name
            fail(
                f"network.init: `dtype` must be floating-point, got {name}. Pass jnp.float32 or jnp.bfloat16."
            )
        sample = None
        if inputs is not None:
            _check_inputs("network.init", inputs, self.num_inputs)
            _warn_of_bytes(inputs)
            is_number = isinstance(target_activity, int | float)  # a traced value cannot be checked
            if is_number and not 0 < target_activity < 1:
                fail(
                    f"network.init: `target_activity` must be between 0 and 1, got {target_activity}. Try 0.05, "
                    "one spike per neuron in 20 steps."
                )
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
                JAX): "cpu" and "gpu" raise if one of them has no kernel there. "composed" scans every layer in plain
                jnp, which supports forward mode (`jax.jvp`, `jax.jacfwd`) and derivatives of any order; the kernels
                only support first order in reverse mode.

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
        _check_inputs("network.apply", inputs, self.num_inputs)
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
    if math.prod(shape) > MAX_SIZE:
        fail(
            f"network: `inputs` must make at most {MAX_SIZE} neurons, got {math.prod(shape)}. Split the image."
        )
    _check_specs(layers, readout)
    specs, last = fit_layers(shape, layers, readout)
    if len(specs) == 0:
        fail("network: `layers` must hold at least one layer, got none. Add a snnjax.layer(...).")
    return Network(shape, specs, last)


def _check_specs(layers: Any, readout: Any) -> None:
    """Check that layers and read-out are made by their functions, and are in their places."""
    if not isinstance(layers, Sequence) or isinstance(layers, str):
        actual = short_repr(layers)
        fail(f"network: `layers` must be a sequence of layers, got {actual}. Write [snnjax.layer(...)].")
    for index, spec in enumerate(layers):
        if isinstance(spec, ReadoutSpec):
            actual, hint = "a leaky read-out", "Pass it as the argument `readout`"
        else:
            actual, hint = short_repr(spec), "Make it with snnjax.layer(...)"
        if not isinstance(spec, LayerSpec | Weighted | Between):
            fail(f"network: `layers[{index}]` must be a spiking layer, got {actual}. {hint}.")
    if not (
        isinstance(readout, ReadoutSpec) or (isinstance(readout, LayerSpec) and readout.capacity is None)
    ):
        fail(
            f"network: `readout` must be a read-out, got {short_repr(readout)}. "
            "Make it with snnjax.leaky_readout(...) or snnjax.spiking_readout(...)."
        )


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
    names = (record,) if isinstance(record, str) else record
    if not isinstance(names, Sequence) or any(name not in RECORDS for name in names):
        fail(
            f"network.apply: `record` must be 'spikes', 'membranes' or a tuple of them, got {short_repr(record)}. "
            "Try record='spikes', or record=('spikes', 'membranes') for both."
        )
    if "membranes" in names and implementation == "cpu":
        fail(
            "network.apply: `implementation` must be None or 'reference' where membranes are recorded, got 'cpu'. "
            "Leave it None."
        )
    return tuple(names)


def _check_inputs(op: str, inputs: Any, num_inputs: int) -> None:
    if isinstance(inputs, SparseSpikes):
        check_spikes(op, "inputs", inputs)
    else:
        check_real_array(op, "inputs", inputs)
    hint = "Time comes first; add a missing batch axis with inputs[:, None]"
    check_shape(op, "inputs", inputs, (None, None, num_inputs), "time, batch, inputs", hint)


def _warn_of_bytes(inputs: Any) -> None:
    """Warn about inputs that are the bytes of an image: they would drive all neurons at once."""
    known = concrete(inputs.values if isinstance(inputs, SparseSpikes) else inputs)
    if known is not None and known.size > 0 and known.max() > _LARGEST_INPUT:
        text = (
            f"network.init: `inputs` must be spikes or currents of at most {_LARGEST_INPUT}, got values up to "
            f"{known.max():g}. Divide the bytes of images by 255, and clip counts of events."
        )
        warnings.warn(text, RuntimeWarning, stacklevel=3)


def _check_batch(state: Any, steps: int, batch: int) -> None:
    """Check that a state has the batch size of the inputs."""
    if not isinstance(state, NetworkState):
        fail(
            f"network.apply: `state` must be a NetworkState or None, got {type_words(state)}. "
            "Make it with network.initial_state(params, batch), or pass None."
        )
    have = {leaf.shape[0] for leaf in jax.tree.leaves(state._replace(pending=())) if leaf.ndim}
    have |= {rows.shape[1] for rows in jax.tree.leaves(state.pending)}
    if not have <= {batch}:
        hint = batch_hint(sorted(have), steps, batch, "Make it with network.initial_state(params, batch)")
        actual = " and ".join(map(str, sorted(have)))
        fail(f"network.apply: `state` must have batch size {batch}, like the inputs, got {actual}. {hint}.")
