"""`lif_network` as one primitive with a derivative: the batch axes of its operands, and its record."""

import functools
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array

from snnjax._batching import SHARED
from snnjax._dispatch import Target, evaluate
from snnjax._quantised import refuse_gradient
from snnjax._types import id_dtype, sum_dtype
from snnjax.ops._lif_network.chain import backward, forward
from snnjax.ops._lif_network.kernel import BACKWARD_KERNEL, KERNEL
from snnjax.ops._lif_network.records import (
    BackwardArguments,
    LayerConstants,
    LayerRecord,
    LayerSwitches,
    Needs,
    Operands,
    Record,
    Results,
    Switches,
    as_read,
    differentiable,
    recorded_dtype,
    with_records,
)
from snnjax.sparse_spikes import SparseSpikes

FORWARD = Target("snnjax_lif_network", "lif_network", forward, {"cpu": KERNEL})
BACKWARD = Target("snnjax_lif_network_backward", "lif_network", backward, {"cpu": BACKWARD_KERNEL})


def _axes(operands: Operands) -> Operands:
    """The batch axis of each operand."""
    shared = functools.partial(jax.tree.map, lambda _: SHARED)
    return Operands(
        jax.tree.map(lambda _: 1, operands.inputs),
        *shared(operands[1:4]),
        first=_state_axes(operands.first),
        first_readout=jax.tree.map(lambda _: 0, operands.first_readout),
        lengths=jax.tree.map(lambda _: 0, operands.lengths),
    )


def _state_axes(states: Any) -> Any:
    """The batch axes of the states of layers."""
    axes: Any = jax.tree.map(lambda _: 0, states)
    return tuple(own._replace(pending=None if own.pending is None else 1) for own in axes)


def _shapes(operands: Operands, switches: Switches) -> tuple[Results, Record | None]:
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
        output=timed(widths[-1] if readout is None else readout.shape[-1]),
        counts=tuple(per_sequence(width, dtype=wide) for width in widths),
        dropped=tuple(per_sequence(dtype=jnp.int32) for _ in widths),
        spikes=tuple(spikes(n, own.capacity) if own.records_spikes else None for n, _, own in each),
        last=last,
        last_readout=readout,
    )
    if not switches.keeps_record:
        return results, None
    of_inputs: tuple[Any, Any] = (None, None)
    if not isinstance(operands.inputs, tuple):
        of_inputs = marks(operands.inputs.shape[-1]), timed(dtype=jnp.bool_)
    return results, Record(*of_inputs, tuple(record(*own) for own in each))


def _left(state: Any, layer: LayerSwitches) -> Any:
    """The shapes of a state after the last step, with all rows of the spikes in transit."""
    longest = layer.connection.max_delay
    if longest is None:
        return state
    shape = longest + 1, *state.pending.shape[1:]
    return state._replace(pending=jax.ShapeDtypeStruct(shape, state.pending.dtype))


def _shape_of(array: Any) -> Any:
    return jax.ShapeDtypeStruct(array.shape, array.dtype)


def _result_axes(shapes: tuple[Results, Record | None]) -> Any:
    """The batch axis of each result and each part of the record."""
    timed, record = jax.tree.map(lambda _: 1, shapes)
    per_sequence = jax.tree.map(lambda _: 0, shapes[0])
    last = _state_axes(shapes[0].last)
    return per_sequence._replace(output=timed.output, spikes=timed.spikes, last=last), record


def _forward(operands: Operands, switches: Switches) -> tuple[Results, Any]:
    shapes = _shapes(operands, switches)
    return evaluate(
        FORWARD,
        operands,
        _axes(operands),
        _result_axes(shapes),
        switches,
        results=shapes,
        droppable=_droppable(shapes, switches),
        implementation=switches.implementation,
    )


def _droppable(shapes: tuple[Results, Record | None], switches: Switches) -> Any:
    """The results that may be dropped.

    They are the spikes in transit at the end, if no further call continues from them, and of the membranes recorded
    twice those that the backward pass does not read.
    """
    results, record = jax.tree.map(lambda _: False, shapes)
    last = [own._replace(pending=jax.tree.map(lambda _: True, own.pending)) for own in results.last]
    if record is not None:
        twice = zip(record.layers, switches.layers, strict=True)
        layers = [own._replace(v=True, listed_v=True) if by.records_listed else own for own, by in twice]
        record = record._replace(layers=tuple(layers))
    return results._replace(last=tuple(last)), record


def run_network(operands: Operands, switches: Switches) -> Results:
    """All layers over all time steps."""
    if switches.implementation == "composed":
        return forward(operands, switches)[0]
    return _network_primitive(operands, switches)


@functools.partial(jax.custom_vjp, nondiff_argnums=(1,))
def _network_primitive(operands: Operands, switches: Switches) -> Results:
    return _forward(operands, switches)[0]


def _fwd(marked: Any, switches: Switches) -> tuple[Results, tuple[Any, ...]]:
    """The operands are marked with whether they are differentiated."""
    perturbed = jax.tree.map(lambda leaf: bool(leaf.perturbed), marked)
    operands = jax.tree.map(lambda leaf: leaf.value, marked)
    refuse_gradient("lif_network", operands)
    results, record = _forward(operands, with_records(switches, operands, perturbed))
    return results, (Needs(perturbed, counts=True), operands, _residual(results), record)


def _bwd(switches: Switches, residuals: tuple[Any, ...], g: Any) -> tuple[Operands]:
    needs, operands, results, record = residuals
    switches = with_records(switches, operands, needs.operands)
    axes, (result_axes, record_axes) = _axes(operands), _result_axes(_shapes(operands, switches))
    values = tuple(each.values if isinstance(each, SparseSpikes) else each for each in g.spikes)
    needs = Needs(needs.operands, any(not _is_zero(count) for count in g.counts))
    _, record_axes = as_read(switches, record_axes, needs.counts)
    switches, record = as_read(switches, record, needs.counts)
    last = tuple(own._replace(pending=_rows_of_cotangents(own.pending)) for own in g.last)
    g = jax.tree.map(_filled, g._replace(dropped=(), spikes=values, last=last))
    g_axes = result_axes._replace(dropped=(), spikes=jax.tree.map(lambda _: 1, values))
    cotangents = evaluate(
        BACKWARD,
        BackwardArguments(operands, results, record, g),
        BackwardArguments(axes, _residual(result_axes), record_axes, g_axes),
        differentiable(axes, operands),
        (switches, needs),
        results=differentiable(operands, operands),
        implementation=switches.implementation,
    )
    return (cotangents,)


def _residual(results: Results) -> Results:
    """The part of the results that the backward pass needs."""
    return results._replace(counts=(), dropped=(), last=(), last_readout=None)


def _is_zero(g: Any) -> bool:
    """Whether a cotangent is zero because nothing depends on the result."""
    return isinstance(g, jax.custom_derivatives.SymbolicZero)


def _rows_of_cotangents(g: Any) -> Any:
    """The cotangents of the spikes left in transit: no rows if nothing depends on them."""
    return jnp.zeros((0, *g.aval.shape[1:]), g.aval.dtype) if _is_zero(g) else g


def _filled(g: Any) -> Array:
    return jnp.zeros(g.aval.shape, g.aval.dtype) if _is_zero(g) else g


_network_primitive.defvjp(_fwd, _bwd, symbolic_zeros=True)
