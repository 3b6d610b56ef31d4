"""The shapes of what `lif_network` yields."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.typing import DTypeLike
from jaxtyping import PyTree

from snnjax._sparse_spikes import SparseSpikes
from snnjax._types import State, accumulation_dtype, id_dtype
from snnjax.ops._lif_network.recorded import recorded_dtype
from snnjax.ops._lif_network.records import (
    ForwardResults,
    LayerConstants,
    LayerRecord,
    Operands,
    Record,
    Results,
    Weighted,
)
from snnjax.ops._lif_network.switches import LayerSwitches, Switches, reads_currents

# The spikes that are in no list: `run_network` counts them.
LEFT_OUT: Any = None


def result_shapes(operands: Operands, switches: Switches) -> ForwardResults:
    """The shapes and dtypes of the results and of the record."""
    steps, batch = jax.tree.leaves(operands.inputs)[0].shape[:2]

    def timed(*shape: int, dtype: DTypeLike = operands.dtype) -> PyTree:
        return jax.ShapeDtypeStruct((steps, batch, *shape), dtype)

    def per_sequence(*shape: int, dtype: DTypeLike) -> PyTree:
        return jax.ShapeDtypeStruct((batch, *shape), dtype)

    def marks(width: int) -> PyTree:
        return timed(-(-width // 8), dtype=jnp.uint8)

    def record(width: int, linear: Weighted, constants: LayerConstants, layer: LayerSwitches) -> LayerRecord:
        kept = recorded_dtype(constants, operands.dtype, layer.rounds_record)
        return LayerRecord(
            v=None if reads_currents(linear, constants) else timed(width, dtype=kept),
            listed_v=timed(layer.capacity or 0, dtype=kept) if layer.records_listed else None,
            current=timed(width, dtype=sums) if layer.records_current else None,
            spikes=marks(width),
            listed=None if layer.capacity is None else marks(width),
        )

    sums, widths = accumulation_dtype(operands.dtype), [state.v.shape[-1] for state in operands.first]
    each = list(zip(widths, operands.linears, operands.constants, switches.layers, strict=True))
    last, readout = jax.tree.map(_shape_of, (operands.first, operands.first_readout))
    last = tuple(_left(*layer) for layer in zip(last, switches.layers, strict=True))
    results = Results(
        output=None if readout is None else timed(readout.shape[-1]),
        counts=tuple(per_sequence(width, dtype=sums) for width in widths),
        dropped=tuple(per_sequence(dtype=jnp.int32) for _ in widths),
        spikes=tuple(_spikes(timed, n, layer) if layer.records_spikes else None for n, _, _, layer in each),
        last=last,
        last_readout=readout,
    )
    if not switches.keeps_record:
        return ForwardResults(results, None)
    of_inputs: tuple[Any, Any] = (None, None)
    if not isinstance(operands.inputs, SparseSpikes) and not operands.has_currents:
        of_inputs = marks(operands.inputs.shape[-1]), timed(dtype=jnp.bool_)
    return ForwardResults(results, Record(*of_inputs, tuple(record(*layer) for layer in each)))


def _spikes(timed: Callable[..., Any], width: int, layer: LayerSwitches) -> PyTree:
    """Spikes of every step: rows, or lists of a layer with a capacity."""
    if layer.capacity is None:
        return timed(width)
    ids, slots = timed(layer.capacity, dtype=id_dtype(width)), timed(layer.capacity)
    count = timed(dtype=jnp.int32)
    return SparseSpikes(ids, slots, count, count, LEFT_OUT, width)


def _left(state: State, layer: LayerSwitches) -> PyTree:
    """The shapes of a state after the last step, with all rows of what is in transit."""

    def full(rows: Any, count: int) -> PyTree:
        return jax.ShapeDtypeStruct((count, *rows.shape[1:]), rows.dtype)

    return layer.in_transit(state, full)


def _shape_of(array: Any) -> Any:
    return jax.ShapeDtypeStruct(array.shape, array.dtype)
