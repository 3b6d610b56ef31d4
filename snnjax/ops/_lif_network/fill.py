"""The operands of `lif_network` as its target takes them, from arrays as they were given."""

import dataclasses
import math
from typing import Any

import jax
import jax.numpy as jnp
from jax.typing import DTypeLike
from jaxtyping import Array

from snnjax._schema import fields
from snnjax._sharding import vary_alike
from snnjax._sparse_spikes import SparseSpikes
from snnjax._types import accumulation_dtype, uint16_or_int32
from snnjax.ops._lif_network.records import LayerConstants, LayerState, Operands, Weighted
from snnjax.ops._lif_network.switches import LayerSwitches, Switches
from snnjax.ops.delay_spikes import bounded
from snnjax.ops.lif_step import per_neuron
from snnjax.ops.select_spikes import usual_second_threshold


def filled(op: str, given: Operands, switches: Switches) -> Operands:
    """The operands of the target, from checked arguments of `op`.

    Constants and delays may be numbers, a gain and a second threshold None.
    """
    inputs = jnp.asarray(given.inputs) if not isinstance(given.inputs, SparseSpikes) else given.inputs
    if isinstance(inputs, SparseSpikes):
        counts = dict.fromkeys(("num_spikes", "num_listed", "num_dropped"))
        inputs = dataclasses.replace(inputs.with_values(), ids=uint16_or_int32(inputs.ids), **counts)
    each = zip(given.constants, given.first, switches.layers, strict=True)
    operands = given._replace(
        inputs=inputs,
        linears=tuple(map(_linear, given.linears, switches.layers)),
        constants=tuple(_constants(op, *layer) for layer in each),
        readout=None if given.readout is None else _spread(op, given.readout, given.first_readout),
    )
    return vary_alike(operands)


def _spread(op: str, record: Any, v: Any) -> Any:
    """A record whose constants are ``[1 | neurons]`` in the dtype of `v`; an absent gain is ``1 - decay``.

    Its table says what is a constant: what has one value per neuron, or one for all.
    """
    found = {}
    for name, kind in fields(type(record)).items():
        own: Any = getattr(record, name)
        arrays: Any = getattr(kind, "__metadata__", None)
        if name == "gain" and own is None:
            found[name] = 1 - found["decay"]
        elif own is not None and arrays is None:
            found[name] = _spread(op, own, v)
        elif own is not None and arrays[0].axes == ("neurons_or_1",):
            found[name] = per_neuron(op, name, own, v)
    return record._replace(**found)


def _constants(op: str, given: LayerConstants, first: LayerState, switches: LayerSwitches) -> LayerConstants:
    second, v, longest = given.second_threshold, first.v, switches.recurrent_delay
    if switches.capacity is None:
        second = -jnp.inf
    elif second is None:
        second = usual_second_threshold(per_neuron(op, "threshold", given.glif.threshold, v))
    found: LayerConstants = _spread(op, given._replace(second_threshold=second), v)
    late, synaptic = given.recurrent_delays, given.synaptic_delays
    if synaptic is not None:
        shape = jnp.shape(synaptic)
        # Where no delay is possible, none has a derivative.
        synaptic = _delays(synaptic, longest, shape, v.dtype) if longest else jnp.zeros(shape, v.dtype)
    return found._replace(
        second_threshold=jax.lax.stop_gradient(found.second_threshold),
        recurrent_delays=None if longest is None else _delays(late, longest, (v.shape[-1],), v.dtype),
        synaptic_delays=synaptic,
    )


def _linear(given: Weighted, switches: LayerSwitches) -> Weighted:
    weights, longest = given.weights, switches.connection.max_delay
    if weights is None or longest is None:
        return given._replace(delays=None)
    shape = (switches.connection.num_inputs(weights.shape),)
    return given._replace(delays=_delays(given.delays, longest, shape, accumulation_dtype(weights.dtype)))


def _delays(given: Any, longest: int, shape: tuple[int, ...], dtype: DTypeLike) -> Array | None:
    """Delays in their bounds."""
    if given is None:
        return None
    return bounded(jnp.asarray(given).reshape(-1), longest, math.prod(shape), dtype).reshape(shape)
