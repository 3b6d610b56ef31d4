"""The building blocks of a network: specifications of layers, and the pytrees of their arrays."""

import dataclasses
import functools
import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import Array, Float, Int

from snnjax._check import check_integer, check_rounding, check_switches, fail, short_repr
from snnjax._jax_compat import Tracer
from snnjax._network.connections import Convolve, Dense, Fitted, Flatten, Pool, Shape, Weighted, fit
from snnjax._network.delays import Axonal, Delays, Pending
from snnjax._quantised import Quantised, dequantise
from snnjax.neurons import Neuron, leaky_integrator, lif
from snnjax.neurons._neuron import check_spiking
from snnjax.ops.select_spikes import usual_second_threshold
from snnjax.sparse_spikes import SparseSpikes

# Number of neurons whose thresholds are drawn for a check when those of the parameters are not known yet.
_DRAWN = 64
# A process has 2^48 addresses, and XLA ends one that describes an array of 2^60 entries.
_LOG2_WEIGHTS = 48
# One object for all layers, so that they share compiled functions.
_DEFAULT_NEURON = lif()


@dataclass(frozen=True)
class LayerSpec:
    """A layer of spiking neurons, its connection, and how its spikes are passed on; made by `layer`."""

    connection: Weighted | Fitted  # fitted in the layers of a network
    neuron: Neuron
    recurrent: bool
    bias: bool
    capacity: int | float | None  # an integer in the layers of a network
    second_threshold: float | None  # None means nine tenths of the way from rest to the threshold
    delays: Axonal | None
    per_channel: bool
    rounds_record: bool = False  # whether the backward pass reads membranes in bfloat16

    @property
    def fitted(self) -> Fitted:
        """The connection of a network's layer."""
        assert isinstance(self.connection, Fitted)
        return self.connection

    @property
    def num_neurons(self) -> int:
        """The number of neurons; with a convolution it is only known inside a network."""
        assert not isinstance(self.connection, Convolve)
        return self.connection.num_neurons


@dataclass(frozen=True)
class ReadoutSpec:
    """A read-out of neurons that do not spike; made by `leaky_readout`."""

    connection: Dense | Fitted
    neuron: Neuron
    bias: bool

    @property
    def fitted(self) -> Fitted:
        """The connection of a network's read-out."""
        assert isinstance(self.connection, Fitted)
        return self.connection

    @property
    def num_outputs(self) -> int:
        """Its width."""
        return self.connection.num_neurons


class LayerParams(NamedTuple):
    """The parameters of a layer or read-out; with a convolution, biases and neurons may be per channel."""

    # [inputs, neurons] or [*kernel, channels / groups, channels]; `Quantised` in a network that only runs.
    weights: Float[Array, "..."] | Any
    bias: Float[Array, " neurons"] | None
    recurrent: Float[Array, "neurons neurons"] | Any | None
    neuron: Any  # the neuron's parameters
    delays: Delays | None = None


class NetworkParams(NamedTuple):
    """The parameters of a network: a plain pytree of arrays, for `jax.grad` and any optimiser."""

    layers: tuple[LayerParams, ...]
    readout: LayerParams | None


class NetworkState(NamedTuple):
    """The state that a network carries from one piece of a sequence to the next."""

    neurons: tuple[Any, ...]  # each layer's neuron state, arrays [batch, neurons]
    spikes: tuple[Float[Array, "batch neurons"] | None, ...]  # the last listed spikes of recurrent layers
    readout: Any  # the read-out's neuron state
    pending: tuple[Pending | None, ...]  # for each layer with delays: the spikes in transit to it


class NetworkOutput(NamedTuple):
    """The results of a network; tuples have one entry per layer."""

    output: Float[Array, "time batch outputs"]  # membranes of the read-out, or spikes of the last layer
    activity: tuple[Float[Array, "batch neurons"], ...]  # mean true spikes per step, before capping
    dropped: tuple[Int[Array, " batch"], ...]  # spikes that did not fit into the lists
    spikes: tuple[SparseSpikes | Float[Array, "time batch neurons"], ...] | None = None  # if recorded
    # If recorded: the membranes of each step before the reset by its spikes; 0 after the end of a sequence.
    membranes: tuple[Float[Array, "time batch neurons"], ...] | None = None


def layer(
    connection: int | Weighted,
    neuron: Neuron | None = None,
    *,
    recurrent: bool = False,
    bias: bool = True,
    capacity: int | float | np.integer[Any] | np.floating[Any] | None = None,
    second_threshold: float | None = None,
    delays: Axonal | None = None,
    per_channel: bool = True,
    record_dtype: Any = None,
) -> LayerSpec:
    """Specify a layer of spiking neurons and its connection.

    Args:
        connection: the number of neurons, with dense weights from all inputs; or a result of `dense`, `conv1d`,
            `conv2d`.
        neuron: a neuron of `snnjax.neurons`; `lif()` by default.
        recurrent: also feed the layer's spikes of the previous step back to it, through weights ``[neurons, neurons]``;
            not behind a convolution.
        bias: add a learned bias to the current of every step, one per neuron, or per channel for a convolution.
        capacity: slots of its spike lists, an integer, or a float below 1 for a fraction of the layer's width; None
            lists all neurons, with the full surrogate gradient.
        second_threshold: membranes between it and the threshold are listed for their gradient, in the unit of the
            membrane. None means nine tenths of the way from rest to each neuron's threshold: 0.9 for a threshold of 1.
            If it is not below the threshold, neurons that do not spike have no gradient, and a warning is issued.
        delays: result of `axonal`, for all inputs of the layer, including its recurrent spikes.
        per_channel: whether the neurons after a convolution have one set of constants per channel or one per neuron.
        record_dtype: ``jnp.bfloat16`` halves the memory of the membranes recorded for the backward pass, as in
            `lif_network`: of neurons without a second state that `lif_network` runs; others ignore it.

    Raises:
        ValueError: if the width, the capacity, a switch or the dtype is invalid, or `neuron` is not a spiking neuron.

    Example:
        >>> from snnjax import layer
        >>> layer(512, capacity=0.1).capacity
        52

    Reference:
        Finkbeiner et al. 2024, arXiv:2311.04386, for capacity and second threshold.
    """
    connection = _as_connection("layer", connection)
    neuron = _DEFAULT_NEURON if neuron is None else neuron
    check_spiking("layer", neuron)
    check_switches("layer", recurrent=recurrent, bias=bias, per_channel=per_channel)
    if recurrent and isinstance(connection, Convolve):
        hint = "Feed it back through dense(...), or leave it False"
        fail(f"layer: `recurrent` must be False behind a convolution, got {recurrent}. {hint}.")
    share = _checked_capacity(capacity)
    if not isinstance(delays, Axonal | None):
        hint = "Make them with snnjax.axonal(max_delay=...)"
        fail(f"layer: `delays` must be None or axonal delays, got {short_repr(delays)}. {hint}.")
    if share is not None and second_threshold is not None:
        warn_unless_below("layer", second_threshold, neuron)
    slots = _slots(connection.num_neurons, share) if isinstance(connection, Dense) else share
    rounds = check_rounding("layer", "record_dtype", record_dtype)
    options = (slots, second_threshold, delays, per_channel, rounds)
    return LayerSpec(connection, neuron, recurrent, bias, *options)


def _as_connection(op: str, connection: Any) -> Weighted:
    if isinstance(connection, Weighted):
        return connection
    if not isinstance(connection, int | np.integer) or isinstance(connection, bool):
        expected = "be a number of neurons, or weights such as dense(...) and conv2d(...)"
        hint = (
            "Put it into the list of layers by itself"
            if isinstance(connection, Pool | Flatten)
            else "Pass an int"
        )
        fail(f"{op}: `connection` must {expected}, got {short_repr(connection)}. {hint}.")
    check_integer(op, "connection", connection, 1)
    return Dense(int(connection), None)


def _checked_capacity(capacity: Any) -> int | float | None:
    """A capacity, as a number of Python."""
    if capacity is None:
        return None
    if isinstance(capacity, float | np.floating):
        if not 0 < capacity < 1:
            fail(
                f"layer: `capacity` must be a fraction between 0 and 1 or an integer, got {capacity}. "
                "Pass a whole number of slots, or None for the full gradient."
            )
        return float(str(capacity))  # 0.1 in float32 means 0.1, not the next larger number of float64
    check_integer("layer", "capacity", capacity, 1)
    return int(capacity)


def _slots(num_neurons: int, capacity: int | float | None) -> int | None:
    return math.ceil(capacity * num_neurons) if isinstance(capacity, float) else capacity


def leaky_readout(
    num_outputs: int,
    *,
    decay: float = 0.95,
    bias: bool = True,
    normalize: bool = True,
    learn_decay: bool = False,
) -> ReadoutSpec:
    """Specify a read-out of leaky integrators: ``v = decay * v + gain * (weights s + bias)``, without reset.

    Args:
        num_outputs: the number of outputs.
        decay: fraction of the membrane kept per step, between 0 and 1.
        bias: add a learned bias to the current of every step.
        normalize: ``gain = 1 - decay``, else 1.
        learn_decay: whether the decay is learned.

    Raises:
        ValueError: if the width is below 1, or the decay is outside (0, 1).

    Example:
        >>> from snnjax import leaky_readout
        >>> leaky_readout(10).num_outputs
        10
    """
    check_integer("leaky_readout", "num_outputs", num_outputs, 1)
    check_switches("leaky_readout", bias=bias)
    neuron = leaky_integrator(decay=decay, normalize=normalize, learn_decay=learn_decay)
    return ReadoutSpec(Dense(num_outputs, None), neuron, bias)


def spiking_readout(
    num_outputs: int, neuron: Neuron | None = None, *, recurrent: bool = False, bias: bool = True
) -> LayerSpec:
    """Specify a spiking read-out: a layer that is always fully listed, so that a silent class can still learn.

    Raises:
        ValueError: if the width is below 1, or `neuron` is not a spiking neuron.

    Example:
        >>> from snnjax import spiking_readout
        >>> spiking_readout(10).capacity is None
        True
    """
    check_integer("spiking_readout", "num_outputs", num_outputs, 1)
    check_spiking("spiking_readout", _DEFAULT_NEURON if neuron is None else neuron)
    return layer(num_outputs, neuron, recurrent=recurrent, bias=bias, capacity=None)


def fit_layers(
    shape: Shape, items: Sequence[Any], readout: ReadoutSpec | LayerSpec
) -> tuple[tuple[LayerSpec, ...], ReadoutSpec | None]:
    """The layers of a network, each fitted to the one before it; a spiking read-out becomes the last one."""
    layers, pools, is_flat = [], [], False
    for item in (*items, readout):
        if isinstance(item, Pool):
            pools.append(item)
            continue
        if isinstance(item, Flatten):
            is_flat = True
            continue
        spec = layer(item) if isinstance(item, Weighted) else item
        fitted = fit(spec.connection, shape, pools, is_flat)
        _check_weights(fitted, isinstance(spec, LayerSpec) and spec.recurrent)
        if isinstance(spec, ReadoutSpec):
            return tuple(layers), dataclasses.replace(spec, connection=fitted)
        slots = _slots(fitted.num_neurons, spec.capacity)
        layers.append(dataclasses.replace(spec, connection=fitted, capacity=slots))
        shape, pools, is_flat = fitted.out_shape, [], False
    return tuple(layers), None


def _check_weights(fitted: Fitted, recurrent: bool) -> None:
    """Check that the weights of a layer can be addressed."""
    count = max(math.prod(fitted.weights_shape), fitted.num_neurons**2 if recurrent else 0)
    if count > 2**_LOG2_WEIGHTS:
        limit = f"2**{_LOG2_WEIGHTS}"
        fail(f"network: `layers` must have at most {limit} weights each, got {count}. Use fewer neurons.")


def expand(spec: LayerSpec | ReadoutSpec, own: LayerParams) -> LayerParams:
    """The parameters in the form of the ops: one bias and constant per neuron, and masked weights."""
    fitted, neuron = spec.fitted, own.neuron
    if fitted.connection.convolution is not None and isinstance(spec, LayerSpec) and spec.per_channel:
        neuron = jax.tree.map(fitted.expand, neuron)
    weights = own.weights
    if fitted.connection.convolution is not None and isinstance(weights, Quantised):
        weights = dequantise(weights)  # they are few, and every pixel meets them
    bias = None if own.bias is None else fitted.expand(own.bias)
    return own._replace(weights=fitted.masked(weights), bias=bias, neuron=neuron)


def second_thresholds(layers: Sequence[Any], params: Sequence[Any], given: Sequence[Any]) -> tuple[Any, ...]:
    """The second threshold of each layer that lists its spikes, from the one `given` or from its own threshold."""
    return tuple(
        usual_second_threshold(spec.neuron.threshold(own.neuron), spec.neuron.rest)
        if spec.capacity is not None and second is None
        else second
        for spec, own, second in zip(layers, params, given, strict=True)
    )


def warn_unless_below(op: str, second: Any, neuron: Neuron, threshold: Array | None = None) -> None:
    """Warn about a number that is not below the threshold: neurons that do not spike would have no gradient.

    A traced number cannot be checked. `threshold` is that of the parameters; without it, or if it is traced, the
    initial thresholds of the neurons are used.
    """
    if isinstance(second, Tracer) or np.ndim(second) > 0:
        return
    if threshold is None or isinstance(threshold, Tracer):
        lowest = _lowest_threshold(neuron)
    else:
        lowest = float(np.min(np.asarray(threshold)))
    if not float(second) < lowest:
        text = (
            f"{op}: `second_threshold` must be below the threshold, {lowest:g}, got {float(second)}. "
            "Leave it None for nine tenths of the way from rest to the threshold."
        )
        warnings.warn(text, RuntimeWarning, stacklevel=3)


@functools.cache
def _lowest_threshold(neuron: Neuron) -> float:
    """The lowest initial threshold of neurons of this kind."""
    with jax.ensure_compile_time_eval():
        thresholds = jax.jit(lambda: neuron.threshold(neuron.init(jax.random.key(0), _DRAWN)))()
        return float(np.min(thresholds))
