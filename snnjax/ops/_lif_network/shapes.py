"""The shapes of what `lif_network` yields."""

from typing import Any

import jax
import jax.numpy as jnp

from snnjax._types import id_dtype, sum_dtype
from snnjax.ops._lif_network.recorded import recorded_dtype
from snnjax.ops._lif_network.records import (
    ForwardResults,
    LayerConstants,
    LayerRecord,
    Operands,
    Record,
    Results,
)
from snnjax.ops._lif_network.switches import LayerSwitches, Switches
from snnjax.sparse_spikes import SparseSpikes


def result_shapes(operands: Operands, switches: Switches) -> ForwardResults:
    """The shapes and dtypes of the results and of the record."""
    steps, batch = jax.tree.leaves(operands.inputs)[0].shape[:2]

    def timed(*shape: int, dtype: Any = operands.dtype) -> Any:
        return jax.ShapeDtypeStruct((steps, batch, *shape), dtype)

    def per_sequence(*shape: int, dtype: Any) -> Any:
        return jax.ShapeDtypeStruct((batch, *shape), dtype)

    def marks(width: int) -> Any:
        return timed(-(-width // 8), dtype=jnp.uint8)

    def spikes(width: int, capacity: int | None) -> Any:
        if capacity is None:
            return timed(width)
        slots, count = timed(capacity), timed(dtype=jnp.int32)
        return SparseSpikes(timed(capacity, dtype=id_dtype(width)), slots, count, count, width)

    def record(width: int, constants: LayerConstants, layer: LayerSwitches) -> LayerRecord:
        kept = recorded_dtype(constants, operands.dtype, layer.rounds_record)
        return LayerRecord(
            v=timed(width, dtype=kept),
            listed_v=timed(layer.capacity or 0, dtype=kept) if layer.records_listed else None,
            current=timed(width, dtype=wide) if layer.records_current else None,
            spikes=marks(width),
            listed=None if layer.capacity is None else marks(width),
        )

    wide, widths = sum_dtype(operands.dtype), [state.v.shape[-1] for state in operands.first]
    each = list(zip(widths, operands.constants, switches.layers, strict=True))
    last, readout = jax.tree.map(_shape_of, (operands.first, operands.first_readout))
    last = tuple(_left(own, layer) for own, layer in zip(last, switches.layers, strict=True))
    results = Results(
        output=None if readout is None else timed(readout.shape[-1]),
        counts=tuple(per_sequence(width, dtype=wide) for width in widths),
        dropped=tuple(per_sequence(dtype=jnp.int32) for _ in widths),
        spikes=tuple(spikes(n, own.capacity) if own.records_spikes else None for n, _, own in each),
        last=last,
        last_readout=readout,
    )
    if not switches.keeps_record:
        return ForwardResults(results, None)
    of_inputs: tuple[Any, Any] = (None, None)
    if not isinstance(operands.inputs, SparseSpikes) and not operands.has_currents:
        of_inputs = marks(operands.inputs.shape[-1]), timed(dtype=jnp.bool_)
    return ForwardResults(results, Record(*of_inputs, tuple(record(*own) for own in each)))


def _left(state: Any, layer: LayerSwitches) -> Any:
    """The shapes of a state after the last step, with all rows of the spikes in transit."""
    longest = layer.connection.max_delay
    if longest is None:
        return state
    shape = longest + 1, *state.pending.shape[1:]
    return state._replace(pending=jax.ShapeDtypeStruct(shape, state.pending.dtype))


def _shape_of(array: Any) -> Any:
    return jax.ShapeDtypeStruct(array.shape, array.dtype)
