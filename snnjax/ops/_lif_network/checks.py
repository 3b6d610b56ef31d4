"""The checks of `lif_network`'s arguments."""

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax.typing import DTypeLike

from snnjax._check import (
    check_choice,
    check_float,
    check_integer,
    check_integers,
    check_kept,
    check_real_array,
    check_rounding,
    check_shape,
    check_switches,
    check_within,
    fail,
    plural,
    short_repr,
)
from snnjax._compare import check_like, same_array
from snnjax._neuron_table import RESETS
from snnjax._quantised import Quantised, check_weights
from snnjax._sparse_spikes import SparseSpikes, check_spikes
from snnjax._synapses import Synapses
from snnjax._types import State, Unchecked, accumulation_dtype
from snnjax.ops._connection import DENSE, Connection
from snnjax.surrogates import Surrogate, as_surrogate

_OP = "lif_network"
LONGEST_PERIOD = 1 << 24  # steps: float32 holds the whole numbers up to it
_OWN_STATE = "Use lif_network_state, or the state from an earlier call of the same network"


def check_network(inputs: Any, layers: Sequence[Any], readout: Any, chunk: int | None) -> int:
    """Check that inputs, layers and readout match, and return the batch size."""
    if len(layers) == 0:
        fail(f"{_OP}: `layers` must hold at least one layer, got none. Pass [LIFLayer(weights, decay)].")
    if chunk is not None:
        check_integer(_OP, "chunk", chunk, 1)
    width, batch = _check_inputs(inputs)
    if layers[0].weights is None:
        _check_currents(inputs)
    else:
        check_weights(_OP, "layers[0].weights", layers[0].weights)
    dtype = (inputs if layers[0].weights is None else layers[0].weights).dtype
    each: list[Any] = [*layers] if readout is None else [*layers, readout]
    for index, layer in enumerate(each):
        name = f"layers[{index}]" if index < len(layers) else "readout"
        if index > 0 or layer.weights is not None:
            width = _check_connection(name, layer, width, dtype)
        else:
            _check_plain(name, layer)
        if index < len(layers):
            _check_delays(name, layer)
        if index < len(layers) and layer.factor is not None:
            _check_factor(f"{name}.factor", layer, width, dtype)
        if layer.bias is not None:
            _check_array(f"{name}.bias", layer.bias, (width,), "neurons", dtype)
        if index < len(layers):
            _check_recurrent(name, layer, width, dtype)
            _check_recurrent_delays(name, layer, width)
        _check_decays(name, layer)
        if index < len(layers) and layer.refractory is not None:
            _check_period(f"{name}.refractory", layer.refractory)
    return batch


def _check_decays(name: str, layer: Any) -> None:
    """Check the decays of the membrane and of the second state."""
    check_kept(_OP, f"{name}.decay", layer.decay)
    second = getattr(layer, "second_state", None)
    if second is not None:
        check_kept(_OP, f"{name}.second_state.w_decay", second.w_decay)


def _check_period(argument: str, steps: Unchecked) -> None:
    """Check that refractory periods are whole numbers of steps."""
    if not isinstance(steps, int):
        check_integers(_OP, argument, steps)
    check_within(_OP, argument, steps, LONGEST_PERIOD, "Count it in steps")


def _check_currents(inputs: Any) -> None:
    """Check that the inputs can be the currents of a first layer without weights."""
    if isinstance(inputs, SparseSpikes) or not jnp.issubdtype(inputs.dtype, jnp.floating):
        expected = "be a floating-point array of currents for a first layer without weights"
        actual = "SparseSpikes" if isinstance(inputs, SparseSpikes) else inputs.dtype.name
        fail(f"{_OP}: `inputs` must {expected}, got {actual}. Give the layer weights, or cast the currents.")


def _check_plain(name: str, layer: Any) -> None:
    """Check that nothing stands between given currents and their neurons."""
    if layer.connection != DENSE or layer.delays is not None:
        actual = "delays" if layer.connection == DENSE else short_repr(layer.connection)
        expected = "have neither a connection nor delays without weights"
        fail(f"{_OP}: `{name}` must {expected}, got {actual}. Give it weights, or leave them out.")


def _check_factor(argument: str, layer: Any, neurons: int, dtype: np.dtype) -> None:
    """Check the factor of given currents, which is in their accumulation dtype."""
    if layer.weights is not None:
        fail(f"{_OP}: `{argument}` must be None with weights, got an array. Multiply the weights with it.")
    _check_array(argument, layer.factor, (neurons,), "neurons", accumulation_dtype(dtype))


def _check_connection(name: str, layer: Any, inputs: int, dtype: np.dtype) -> int:
    """Check that connection and weights match the inputs, and return the number of neurons."""
    connection = layer.connection
    if not isinstance(connection, Connection):
        actual = short_repr(connection)
        fail(
            f"{_OP}: `{name}.connection` must be a Connection, got {actual}. Leave it out for dense weights."
        )
    if connection.pooling is not None and connection.pooling.obstacle is not None:
        expected, actual = "pool adjacent windows by sum or mean", connection.pooling.words
        fail(f"{_OP}: `{name}.connection` must {expected}, got {actual}. Call pool_spikes before.")
    shape = connection.weights_shape(inputs)
    axes = "inputs, neurons" if len(shape) == 2 else "*kernel, channels / groups, channels"
    argument, weights = f"{name}.weights", layer.weights
    if weights is None:
        fail(f"{_OP}: `{argument}` must be an array after the first layer, got None. Give it weights.")
    if connection.convolution is not None and isinstance(weights, Quantised):
        hint = "Pass quantisation.dequantise(weights)"
        fail(f"{_OP}: `{argument}` must be floating-point in a convolution, got int8. {hint}.")
    _check_array(argument, weights, shape, axes, dtype)
    width = connection.num_inputs(weights.shape)
    if width != inputs:
        expected, hint = f"have {plural(inputs, 'input')}, like the layer", "Give it the shape of the inputs"
        fail(f"{_OP}: `{name}.connection` must {expected}, got {width}. {hint}.")
    return connection.num_outputs(weights.shape)


def _check_delays(name: str, layer: Any) -> None:
    """Check that delays are given if and only if the connection has a `max_delay`; one for all inputs or one each."""
    has_delays = layer.connection.max_delay is not None
    argument = f"{name}.delays"
    if (layer.delays is not None) != has_delays:
        expected = "be given with a `max_delay`" if has_delays else "be None without a `max_delay`"
        actual = "None" if layer.delays is None else "delays"
        fail(f"{_OP}: `{argument}` must {expected}, got {actual}. Give both or neither.")
    if layer.delays is None:
        return
    check_float(_OP, argument, layer.delays)
    inputs = layer.connection.num_inputs(layer.weights.shape)
    if np.shape(layer.delays) not in ((), (inputs,)):
        expected, actual = f"be a scalar or have shape [inputs] = [{inputs}]", list(np.shape(layer.delays))
        fail(f"{_OP}: `{argument}` must {expected}, got {actual}. Pass one delay, or one per input.")


def _check_recurrent(name: str, layer: Any, neurons: int, dtype: np.dtype) -> None:
    """Check recurrent weights: of all pairs of neurons, or of the synapses that are given."""
    argument, weights, synapses = f"{name}.recurrent", layer.recurrent, layer.recurrent_synapses
    if synapses is None:
        if weights is not None:
            _check_array(argument, weights, (neurons, neurons), "neurons, neurons", dtype)
        return
    name = f"{name}.recurrent_synapses"
    if not isinstance(synapses, Synapses):
        hint = "Make them with Synapses.from_mask, for instance"
        fail(f"{_OP}: `{name}` must be Synapses, got {short_repr(synapses)}. {hint}.")
    if weights is None:
        expected, hint = "be given with `recurrent` weights", "Give both or neither"
        fail(f"{_OP}: `{name}` must {expected}, got Synapses alone. {hint}.")
    sizes = synapses.num_neurons, synapses.num_targets
    if sizes != (neurons, neurons):
        expected, actual = f"lead from {neurons} neurons to as many", f"{sizes[0]} and {sizes[1]}"
        fail(f"{_OP}: `{name}` must {expected}, got {actual}. Make them for this layer.")
    _check_array(argument, weights, (synapses.num_synapses,), "synapses", dtype, neurons)


def _check_recurrent_delays(name: str, layer: Any, neurons: int) -> None:
    """Check that recurrent spikes have delays alone: one for all neurons, one each, or one for each synapse."""
    connection, delays = layer.recurrent_connection, layer.recurrent_delays
    is_plain = isinstance(connection, Connection) and connection == DENSE.behind(None, connection.max_delay)
    if not is_plain:
        expected, actual = "be a Connection with a `max_delay` alone", short_repr(connection)
        fail(f"{_OP}: `{name}.recurrent_connection` must {expected}, got {actual}. Leave it out.")
    if layer.synaptic_delays is not None:
        _check_synaptic_delays(f"{name}.synaptic_delays", layer)
        return
    argument, has_delays = f"{name}.recurrent_delays", connection.max_delay is not None
    if (delays is not None) != has_delays or (has_delays and layer.recurrent is None):
        expected = "be given with `recurrent` weights and a `max_delay` of `recurrent_connection`, or be None"
        actual = "None" if delays is None else "delays"
        fail(f"{_OP}: `{argument}` must {expected}, got {actual}. Give all of them or none.")
    if delays is None:
        return
    check_float(_OP, argument, delays)
    if np.shape(delays) not in ((), (neurons,)):
        expected, actual = f"be a scalar or have shape [neurons] = [{neurons}]", list(np.shape(delays))
        fail(f"{_OP}: `{argument}` must {expected}, got {actual}. Pass one delay, or one per neuron.")


def _check_synaptic_delays(argument: str, layer: Any) -> None:
    """Check that delays of recurrent synapses are one for each weight, and the only ones."""
    delays, weights = layer.synaptic_delays, layer.recurrent
    is_alone = layer.recurrent_delays is None
    if weights is None or layer.recurrent_connection.max_delay is None or not is_alone:
        expected = "be given with `recurrent` weights and a `max_delay` of `recurrent_connection`, or be None"
        actual = "delays alone" if is_alone else "`recurrent_delays` too"
        fail(f"{_OP}: `{argument}` must {expected}, got {actual}. Give delays of neurons or of synapses.")
    if isinstance(weights, Quantised):
        expected, hint = "be None with weights of 8 bits", "Pass quantisation.dequantise(weights)"
        fail(f"{_OP}: `{argument}` must {expected}, got delays. {hint}.")
    check_float(_OP, argument, delays)
    axes = "neurons, neurons" if layer.recurrent_synapses is None else "synapses"
    check_shape(_OP, argument, delays, weights.shape, axes, "Pass one for each weight")


def _check_array(
    argument: str,
    array: Any,
    shape: tuple[int | None, ...],
    axes: str,
    dtype: DTypeLike,
    num_targets: int | None = None,
) -> None:
    """Check weights; `num_targets` is given for those of synapses."""
    check_weights(_OP, argument, array, num_targets)
    check_shape(_OP, argument, array, shape, axes, "Match its shape to the layer below and to its neurons")
    if array.dtype != dtype:
        expected = f"have the dtype of the first layer, {np.dtype(dtype).name}"
        fail(f"{_OP}: `{argument}` must {expected}, got {array.dtype.name}. Cast one of them.")


def _check_inputs(inputs: Any) -> tuple[int, int]:
    """The number of inputs and the batch size."""
    if isinstance(inputs, SparseSpikes):
        check_spikes(_OP, "inputs", inputs)
        good = inputs.ids.ndim == 3
        hint = "Pass lists with leading axes [time, batch]"
    else:
        check_real_array(_OP, "inputs", inputs)
        good = inputs.ndim == 3
        hint = "Add the missing axis, for instance inputs[:, None] for a batch of one"
    shape = inputs.shape if isinstance(inputs, SparseSpikes) else np.shape(inputs)
    if not good:
        fail(f"{_OP}: `inputs` must have axes [time, batch, inputs], got shape {list(shape)}. {hint}.")
    return shape[-1], shape[1]


def one_per_layer(op: str, argument: str, value: Any, num_layers: int) -> tuple[Any, ...]:
    """A scalar for all layers, or one value per layer in a sequence or in an array ``[layers]``."""
    if not isinstance(value, Sequence) and np.ndim(value) == 0:
        return (value,) * num_layers
    if len(value) != num_layers:
        expected, hint = (
            f"hold {plural(num_layers, 'value')}, one per layer",
            "Pass a scalar to use it everywhere",
        )
        fail(f"{op}: `{argument}` must {expected}, got {len(value)}. {hint}.")
    return tuple(value)


def check_capacity(capacity: Any, num_layers: int) -> tuple[int | None, ...]:
    """One capacity per layer, each None or an integer."""
    each = one_per_layer(_OP, "capacity", capacity, num_layers)
    for value in each:
        if value is not None:
            check_integer(_OP, "capacity", value, 0)
    return tuple(None if value is None else int(value) for value in each)


def switch_per_layer(argument: str, value: Any, num_layers: int) -> tuple[Any, ...]:
    """One switch for all layers, or one per layer in a list or tuple."""
    return (
        one_per_layer(_OP, argument, value, num_layers)
        if isinstance(value, list | tuple)
        else (value,) * num_layers
    )


def check_each_switch(argument: str, value: Any, num_layers: int) -> tuple[bool, ...]:
    """One True or False for each layer."""
    each = switch_per_layer(argument, value, num_layers)
    for given in each:
        check_switches(_OP, **{argument: given})
    return tuple(bool(given) for given in each)


def check_surrogates(surrogate: Any, num_layers: int) -> tuple[Surrogate, ...]:
    """One surrogate per layer."""
    each = switch_per_layer("surrogate", surrogate, num_layers)
    return tuple(as_surrogate(_OP, given) for given in each)


def check_resets(reset: Any, num_layers: int) -> tuple[str, ...]:
    """One reset per layer, each one of the op's."""
    each = switch_per_layer("reset", reset, num_layers)
    for name in each:
        check_choice(_OP, "reset", name, RESETS)
    return each


def check_record_dtypes(record_dtype: Any, num_layers: int) -> tuple[bool, ...]:
    """Whether each layer rounds its recorded membranes."""
    each = switch_per_layer("record_dtype", record_dtype, num_layers)
    return tuple(check_rounding(_OP, "record_dtype", dtype) for dtype in each)


def check_state(state: State, like: Any) -> None:
    """Check that `state` has the structure, shapes and dtypes of `like`, those of this network and batch size."""
    check_like(_OP, "state", state, like, same_array, _OWN_STATE)
