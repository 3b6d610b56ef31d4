"""`lif_network` as one primitive with a derivative: where its operands have their batch axes, and what it records."""

import functools
from typing import Any, cast

import jax
import jax.numpy as jnp
from jaxtyping import Array

from snnjax import _dispatch
from snnjax.ops._lif_network.chain import backward, forward
from snnjax.ops._lif_network.kernel import BACKWARD_KERNEL, KERNEL
from snnjax.ops._lif_network.records import (
    BackwardArguments,
    LayerRecord,
    Needs,
    Operands,
    Record,
    Results,
    Switches,
    differentiable,
    with_records,
)
from snnjax.sparse_spikes import SparseSpikes


def _axes(operands: Operands) -> Operands:
    """Where each operand has its batch axis."""
    shared = functools.partial(jax.tree.map, lambda _: _dispatch.SHARED)
    first = functools.partial(jax.tree.map, lambda _: 0)
    return Operands(
        jax.tree.map(lambda _: 1, operands.inputs),
        *shared(operands[1:4]),
        *first(operands[4:]),
    )


def _result_axes(operands: Operands, switches: Switches) -> Results:
    """Where each result has its batch axis: a tree of axis numbers in the place of arrays."""
    results, lists = (cast(Any, kind) for kind in (Results, SparseSpikes))
    zeros, last = tuple(0 for _ in switches.layers), jax.tree.map(lambda _: 0, operands.first)
    each = (
        1 if layer.capacity is None else lists(1, 1, 1, 1, linear.weights.shape[-1])
        for layer, linear in zip(switches.layers, operands.linears, strict=True)
    )
    spikes = tuple(
        axes if layer.records_spikes else None for axes, layer in zip(each, switches.layers, strict=True)
    )
    last_readout = None if operands.readout is None else 0
    return results(1, zeros, zeros, spikes, last, last_readout)


def _record_axes(operands: Operands, switches: Switches) -> Record:
    """Likewise of the record."""
    layer = cast(Any, LayerRecord)
    layers = tuple(
        layer(
            v=1,
            current=1 if own.records_current else None,
            spikes=1,
            listed=None if own.capacity is None else 1,
        )
        for own in switches.layers
    )
    of_inputs = None if isinstance(operands.inputs, tuple) else 1
    return Record(of_inputs, of_inputs, layers)


def _forward(operands: Operands, switches: Switches) -> tuple[Results, Any]:
    record = _record_axes(operands, switches) if switches.keeps_record else None
    return _dispatch.evaluate(
        "snnjax_lif_network",
        forward,
        operands,
        _axes(operands),
        (_result_axes(operands, switches), record),
        switches,
        kernel=KERNEL,
        implementation=switches.implementation,
    )


@functools.partial(jax.custom_vjp, nondiff_argnums=(1,))
def network_primitive(operands: Operands, switches: Switches) -> Results:
    """All layers over all time steps."""
    return _forward(operands, switches)[0]


def _fwd(marked: Any, switches: Switches) -> tuple[Results, tuple[Any, ...]]:
    """The operands arrive with the mark whether a derivative is taken of them."""
    perturbed = jax.tree.map(lambda leaf: bool(leaf.perturbed), marked)
    operands = jax.tree.map(lambda leaf: leaf.value, marked)
    results, record = _forward(operands, with_records(switches, operands, perturbed))
    return results, (Needs(perturbed, counts=True), operands, results, record)


def _bwd(switches: Switches, residuals: tuple[Any, ...], g: Any) -> tuple[Operands]:
    needs, operands, results, record = residuals
    switches = with_records(switches, operands, needs.operands)
    axes, result_axes = _axes(operands), _result_axes(operands, switches)
    values = tuple(each.values if isinstance(each, SparseSpikes) else each for each in g.spikes)
    needs = Needs(needs.operands, any(not _is_zero(count) for count in g.counts))
    g = jax.tree.map(_filled, g._replace(dropped=(), spikes=values))
    g_axes = result_axes._replace(dropped=(), spikes=jax.tree.map(lambda _: 1, values))
    cotangents = _dispatch.evaluate(
        "snnjax_lif_network_backward",
        backward,
        BackwardArguments(operands, results, record, g),
        BackwardArguments(axes, result_axes, _record_axes(operands, switches), g_axes),
        differentiable(axes, operands),
        (switches, needs),
        kernel=BACKWARD_KERNEL,
        implementation=switches.implementation,
    )
    return (cotangents,)


def _is_zero(g: Any) -> bool:
    """Whether nothing depends on this result."""
    return isinstance(g, jax.custom_derivatives.SymbolicZero)


def _filled(g: Any) -> Array:
    return jnp.zeros(g.aval.shape, g.aval.dtype) if _is_zero(g) else g


network_primitive.defvjp(_fwd, _bwd, symbolic_zeros=True)
