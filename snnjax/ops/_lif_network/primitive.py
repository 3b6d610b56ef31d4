"""`lif_network` as one primitive with a derivative: the batch axes of its operands, and its record."""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, cast

import jax
import jax.numpy as jnp
from jaxtyping import Array, PyTree

from snnjax import _platforms
from snnjax._batching import SHARED
from snnjax._dispatch import Target, evaluate, kernel_in_jax
from snnjax._quantised import refuse_gradient
from snnjax._sparse_spikes import SparseSpikes, beyond
from snnjax._types import Signal, State
from snnjax.ops._kernel_operands import dtype_obstacle
from snnjax.ops._lif_network.chain import backward, forward
from snnjax.ops._lif_network.kernel import BACKWARD_KERNEL, KERNEL
from snnjax.ops._lif_network.records import (
    BackwardArguments,
    Cotangents,
    ForwardResults,
    Kept,
    LayerState,
    Operands,
    Record,
    Results,
)
from snnjax.ops._lif_network.shapes import result_shapes
from snnjax.ops._lif_network.switches import Needs, Switches, as_read, differentiable, with_records
from snnjax.ops._time_scan import KERNELS, UNROLLED


def _obstacle(operands: Operands) -> str | None:
    """Why the kernels of a GPU do not support operands, or None: a grid of programs has a known size."""
    sizes = [size for leaf in jax.tree.leaves(operands) for size in leaf.shape]
    if not all(isinstance(size, int) for size in sizes):
        return "sizes that are not known"
    return dtype_obstacle("weights", operands)


# Any surrogate, reset and second state: the kernels of a GPU are traced from the reference's own steps. They are called
# unasked where they have been measured (docs/explanation/gpu.md).
GPU_KERNEL = kernel_in_jax(
    functools.partial(forward, loops=KERNELS),
    lambda operands, switches: _obstacle(operands),
    _platforms.is_hopper,
)
GPU_BACKWARD_KERNEL = kernel_in_jax(
    functools.partial(backward, loops=KERNELS),
    lambda arguments, static: _obstacle(arguments.operands),
    _platforms.is_hopper,
)
FORWARD = Target(
    "snnjax_lif_network",
    "lif_network",
    forward,
    {"cpu": KERNEL, "gpu": GPU_KERNEL},
    {"gpu": functools.partial(forward, loops=UNROLLED)},
)
BACKWARD = Target(
    "snnjax_lif_network_backward",
    "lif_network",
    backward,
    {"cpu": BACKWARD_KERNEL, "gpu": GPU_BACKWARD_KERNEL},
    {"gpu": functools.partial(backward, loops=UNROLLED)},
)


def _axes(operands: Operands) -> Operands:
    """The batch axis of each operand."""
    shared: Any = jax.tree.map(lambda _: SHARED, operands)
    return shared._replace(
        inputs=jax.tree.map(lambda _: 1, operands.inputs),
        first=_state_axes(operands.first),
        first_readout=jax.tree.map(lambda _: 0, operands.first_readout),
        lengths=jax.tree.map(lambda _: 0, operands.lengths),
    )


def _state_axes(states: State) -> PyTree:
    """The batch axes of the states of layers."""
    axes: Any = jax.tree.map(lambda _: 0, states)
    return tuple(_of_transit(state, lambda _: 1) for state in axes)


def _of_transit(state: LayerState, change: Callable[[Any], Any]) -> LayerState:
    """A state with something else for its rows of what is in transit, where it has any."""
    rows = {name: getattr(state, name) for name in ("pending", "earlier_spikes", "arriving")}
    return state._replace(**{name: change(own) for name, own in rows.items() if own is not None})


def _result_axes(shapes: ForwardResults) -> ForwardResults:
    """The batch axis of each result and each part of the record."""
    timed: Any = jax.tree.map(lambda _: 1, shapes)
    per_sequence: Any = jax.tree.map(lambda _: 0, shapes.results)
    last = _state_axes(shapes.results.last)
    results = per_sequence._replace(output=timed.results.output, spikes=timed.results.spikes, last=last)
    return ForwardResults(results, timed.record)


def _forward(operands: Operands, switches: Switches) -> ForwardResults:
    shapes = result_shapes(operands, switches)
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


def _droppable(shapes: ForwardResults, switches: Switches) -> PyTree:
    """The results that may be dropped.

    They are the counts; the states at the end, if no further call continues from them, but for recurrent spikes; and
    of the membranes recorded twice those that the backward pass does not read.
    """
    flags: Any = jax.tree.map(lambda _: False, shapes)
    results, record = flags.results, flags.record
    counts, last = jax.tree.map(lambda _: True, (results.counts, results.last))
    last = [state._replace(spikes=None if state.spikes is None else False) for state in last]
    if record is not None:
        twice = zip(record.layers, switches.layers, strict=True)
        layers = [
            layer._replace(v=True, listed_v=True) if switch.records_listed else layer
            for layer, switch in twice
        ]
        record = record._replace(layers=tuple(layers))
    return ForwardResults(results._replace(counts=counts, last=tuple(last)), record)


def run_network(operands: Operands, switches: Switches) -> Results:
    """All layers over all time steps."""
    composed = switches.implementation == "composed"
    results: Any = forward(operands, switches).results if composed else _network_primitive(operands, switches)
    return results._replace(spikes=tuple(_with_dropped(own) for own in results.spikes))


def _with_dropped(spikes: Signal) -> PyTree:
    """Recorded lists with the number of spikes that are in none, which targets leave out."""
    if not isinstance(spikes, SparseSpikes):
        return spikes
    return dataclasses.replace(spikes, num_dropped=beyond(spikes.num_spikes, spikes.capacity))


@functools.partial(jax.custom_vjp, nondiff_argnums=(1,))
def _network_primitive(operands: Operands, switches: Switches) -> Results:
    return _forward(operands, switches).results


def _fwd(marked: PyTree, switches: Switches) -> tuple[Results, tuple[Any, ...]]:
    """The operands are marked with whether they are differentiated."""
    perturbed = jax.tree.map(lambda leaf: bool(leaf.perturbed), marked)
    operands = jax.tree.map(lambda leaf: leaf.value, marked)
    refuse_gradient("lif_network", operands)
    results, record = _forward(operands, with_records(switches, operands, perturbed))
    kept = Kept(results.output, results.spikes)
    return results, (Needs(perturbed, counts=True), operands, kept, record)


def _bwd(switches: Switches, residuals: tuple[Any, ...], g: PyTree) -> tuple[Operands]:
    needs, operands, kept, record = residuals
    switches = with_records(switches, operands, needs.operands)
    axes, all_axes = _axes(operands), _result_axes(result_shapes(operands, switches))
    result_axes, record_axes = all_axes.results, cast(Record, all_axes.record)
    values = tuple(each.values if isinstance(each, SparseSpikes) else each for each in g.spikes)
    needs = Needs(needs.operands, any(not _is_zero(count) for count in g.counts))
    _, record_axes = as_read(switches, record_axes, needs.counts)
    switches, record = as_read(switches, record, needs.counts)
    last = tuple(_of_transit(state, _rows_of_cotangents) for state in g.last)
    g = jax.tree.map(_filled, Cotangents(g.output, g.counts, values, last, g.last_readout))
    g_axes = Cotangents(
        result_axes.output,
        result_axes.counts,
        jax.tree.map(lambda _: 1, values),
        result_axes.last,
        result_axes.last_readout,
    )
    cotangents = evaluate(
        BACKWARD,
        BackwardArguments(operands, kept, record, g),
        BackwardArguments(axes, Kept(result_axes.output, result_axes.spikes), record_axes, g_axes),
        differentiable(axes, operands),
        (switches, needs),
        results=differentiable(operands, operands),
        implementation=switches.implementation,
    )
    return (cotangents,)


def _is_zero(g: PyTree) -> bool:
    """Whether a cotangent is zero because nothing depends on the result."""
    return isinstance(g, jax.custom_derivatives.SymbolicZero)


def _rows_of_cotangents(g: PyTree) -> PyTree:
    """The cotangents of what is left in transit: no rows if nothing depends on them."""
    return jnp.zeros((0, *g.aval.shape[1:]), g.aval.dtype) if _is_zero(g) else g


def _filled(g: PyTree) -> Array:
    return jnp.zeros(g.aval.shape, g.aval.dtype) if _is_zero(g) else g


_network_primitive.defvjp(_fwd, _bwd, symbolic_zeros=True)
