"""How `lif_network` calls its compiled kernels: their arrays, attributes and results.

Every array has a leading groups axis here. Static values become attributes (see xla_ext/cpu/lif_network.hpp).
"""

import functools
import math
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from snnjax import _targets
from snnjax._dispatch import Kernel
from snnjax._quantised import Quantised
from snnjax._types import RESETS, SURROGATES
from snnjax.ops._connection import Connection
from snnjax.ops._convolution import Convolution
from snnjax.ops._kernel_operands import as_kernel_ids, dtype_obstacle, reach_of
from snnjax.ops._lif_network.records import (
    BackwardArguments,
    Linear,
    Needs,
    Operands,
    Readout,
    SecondState,
    Switches,
    differentiable,
)
from snnjax.ops.pool_spikes import Pooling
from snnjax.sparse_spikes import SparseSpikes

# Rows of cotangents are read in whole vectors of so many numbers (`strideOf` in xla_ext/cpu/products.hpp).
_WIDEST_VECTOR = 16


def _obstacle(operands: Operands, switches: Switches) -> str | None:
    """Why the kernels do not support these operands, or None."""
    connections = (*(layer.connection for layer in switches.layers), switches.readout)
    parts = (part for connection in connections for part in connection.parts)
    if unknown := next((part for part in parts if not isinstance(part, Pooling | Convolution)), None):
        return unknown.words
    each = zip(switches.layers, operands.constants, strict=True)
    if any(layer.connection.convolution and own.recurrent is not None for layer, own in each):
        return "recurrent layers after a convolution"
    if switches.readout.convolution is not None:
        return "a read-out after a convolution"
    surrogates = (layer.surrogate.obstacle for layer in switches.layers)
    return dtype_obstacle("weights", operands) or next((each for each in surrogates if each), None)


def _attributes(operands: Operands, switches: Switches) -> dict[str, Any]:
    """The static values as kernel attributes."""
    layers = [
        (
            linear.bias is not None,
            constants.recurrent is not None,
            RESETS.index(layer.reset),
            layer.detach_reset,
            SURROGATES.index(layer.surrogate.name),
            -1 if layer.capacity is None else layer.capacity,
            _mask(constants.second_state),
            layer.needs_w,
            layer.records_current,
            layer.records_spikes,
            layer.connection.rounds_cotangents,
            layer.records_listed,
        )
        for linear, constants, layer in zip(
            operands.linears, operands.constants, switches.layers, strict=True
        )
    ]
    readout = operands.readout
    connections = [*(layer.connection for layer in switches.layers), switches.readout]
    return {
        "connections": np.array([_geometry(each) for each in connections], np.int64).reshape(-1),
        "layers": np.array(layers, np.int64).reshape(-1),
        "slopes": np.array([layer.surrogate.slope for layer in switches.layers], np.float32),
        "exact_within": np.array([layer.connection.exact_within for layer in switches.layers], np.float32),
        "reaches": np.array([reach_of(layer.surrogate) for layer in switches.layers], np.float32),
        "has_lists": isinstance(operands.inputs, tuple),
        "has_readout": readout is not None,
        "readout_has_bias": readout is not None and readout.linear.bias is not None,
        "has_lengths": operands.lengths is not None,
    }


def _geometry(connection: Connection) -> tuple[int, ...]:
    """The kernel's numbers for the delays, the pooling and the convolution of a connection; 0 if there is none."""
    pooling, convolution = connection.pooling, connection.convolution
    windows = (0,) * 6
    if pooling is not None:
        # One dimension is an image of height 1.
        shape, window = (((1,) * (3 - len(shape)) + shape) for shape in (pooling.shape, (*pooling.window, 0)))
        windows = *shape, *window[:2], int(pooling.mean)
    rows = 0 if connection.max_delay is None else connection.max_delay + 1
    return rows, *windows, *((0,) * 13 if convolution is None else convolution.numbers)


def _mask(second: SecondState | None) -> int:
    """A bit mask of the constants of a second state that are present, the decay lowest; 0 without second state."""
    return 0 if second is None else sum((each is not None) << place for place, each in enumerate(second))


def _leaves(operands: Operands, switches: Switches) -> list[Array]:
    """The operands, with inputs in a dtype that the kernels read."""
    inputs = operands.inputs
    if isinstance(inputs, tuple):
        ids, values = inputs
        num_inputs = switches.layers[0].connection.num_inputs(operands.linears[0].weights.shape[1:])
        inputs = as_kernel_ids(ids, num_inputs), values.astype(operands.dtype)
    elif inputs.dtype not in (operands.dtype, jnp.uint8, jnp.bool_):
        inputs = inputs.astype(operands.dtype)
    linears = tuple(linear._replace(weights=_flat(linear.weights)) for linear in operands.linears)
    return jax.tree.leaves(operands._replace(inputs=inputs, linears=linears))


def _flat(weights: Any) -> Any:
    """Weights, including those of a convolution, as rows of outputs."""
    if isinstance(weights, Quantised):
        return weights
    groups, *taps, outputs = weights.shape
    return weights.reshape(groups, math.prod(taps), outputs)


def call(operands: Operands, switches: Switches, results: Any) -> list[Array]:
    """The forward pass."""
    attributes = {**_attributes(operands, switches), "records": switches.keeps_record}
    return _targets.call("snnjax_lif_network", _leaves(operands, switches), results, **attributes)


def _backward_leaves(arguments: BackwardArguments, switches: Switches, needs: Needs) -> list[Array]:
    """The operands of the backward pass that follow those of the forward pass."""
    operands, results, record, g = arguments
    leaves = [*jax.tree.leaves(record), *([] if operands.readout is None else [results.output]), g.output]
    for index, last in enumerate(g.last):
        if needs.counts:
            leaves.append(g.counts[index])
        if switches.layers[index].records_spikes:
            lists = results.spikes[index]
            leaves.extend([lists.ids] if isinstance(lists, SparseSpikes) else [])
            leaves.append(g.spikes[index])
        leaves.extend(jax.tree.leaves(last))
    return leaves if g.last_readout is None else [*leaves, g.last_readout]


def call_backward(
    arguments: BackwardArguments,
    static: tuple[Switches, Needs],
    results: Sequence[jax.ShapeDtypeStruct],
    overwrites: bool = False,
) -> list[Array]:
    """The backward pass: the cotangents that are needed, and zeros for the others.

    If it `overwrites`, the cotangents of the membranes are further results, in the memory of the recorded membranes.
    """
    switches, needs = static
    operands = arguments.operands
    needed = differentiable(needs.operands, operands)
    parameters = jax.tree.leaves(needed[:4])
    # Integer inputs are also marked as needing no cotangent; the states always have one.
    wanted = parameters if jax.tree.leaves(needed.inputs) else [False, *parameters]
    marks = [*parameters, *(True for _ in jax.tree.leaves(needed[4:]))]
    shapes = jax.tree.leaves(differentiable(_cotangents(operands, results[0].shape[0]), operands))
    leaves = [*_leaves(operands, switches), *_backward_leaves(arguments, switches, needs)]
    needed_shapes = [shape for shape, is_needed in zip(shapes, marks, strict=True) if is_needed]
    attributes = _attributes(operands, switches)
    spent: list[Array] = []
    if overwrites:
        spent = _overwritten(arguments, results[0].shape[0])
        marked = [any(own.v is v for v in spent) for own in arguments.record.layers]
        attributes["overwrites"] = np.array(marked, np.int64)
    places = {id(leaf): place for place, leaf in enumerate(leaves)}
    aliases = {places[id(v)]: len(needed_shapes) + number for number, v in enumerate(spent)}
    called = _targets.call(
        "snnjax_lif_network_backward",
        leaves,
        [*needed_shapes, *(jax.ShapeDtypeStruct(v.shape, v.dtype) for v in spent)],
        aliases,
        has_g_counts=needs.counts,
        needs=np.array(wanted, np.int64),
        **attributes,
    )
    yielded = iter(called[: len(needed_shapes)])
    return [
        _like(next(yielded), result) if is_needed else jnp.zeros(result.shape, result.dtype)
        for result, is_needed in zip(results, marks, strict=True)
    ]


def _overwritten(arguments: BackwardArguments, groups: int) -> list[Array]:
    """The recorded membranes that the kernel replaces by their cotangents.

    They are those of layers whose cotangents it keeps, in float32 as these are, in rows of whole vectors.
    """
    each = zip(arguments.record.layers, arguments.operands.constants, strict=True)
    kept = [own.v for index, (own, of) in enumerate(each) if index > 0 or of.recurrent is not None]
    return [
        v
        for v in kept
        if v is not None
        and v.dtype == jnp.float32
        and v.shape[0] == groups
        and v.shape[-1] % _WIDEST_VECTOR == 0
    ]


def _cotangents(operands: Operands, groups: int) -> Operands:
    """The shapes of the kernel's cotangents; those of constants are one float32 per neuron."""

    def own(tree: Any, dtype: Any = None) -> Any:
        return jax.tree.map(lambda a: jax.ShapeDtypeStruct((groups, *a.shape[1:]), dtype or a.dtype), tree)

    def flat(linear: Linear) -> Linear:
        return Linear(*own((jax.eval_shape(_flat, linear.weights), *linear[1:])))

    def per_neuron(tree: Any, like: Array) -> Any:
        return jax.tree.map(lambda _: jax.ShapeDtypeStruct((groups, like.shape[-1]), jnp.float32), tree)

    layers = zip(operands.constants, operands.first, strict=True)
    readout = operands.readout
    if readout is not None:
        readout = Readout(own(readout.linear), *per_neuron(readout[1:], operands.first_readout))
    return Operands(
        own(operands.inputs, operands.dtype),
        tuple(flat(linear) for linear in operands.linears),
        tuple(
            per_neuron(constants, first.v)._replace(recurrent=own(constants.recurrent))
            for constants, first in layers
        ),
        readout,
        *own(operands[4:]),
    )


def _like(g: Array, result: jax.ShapeDtypeStruct) -> Array:
    """A cotangent in the form of its operand: summed for a shared constant, reshaped, and rounded."""
    if g.size != math.prod(result.shape):
        g = jnp.sum(g, axis=-1, keepdims=True)
    return g.reshape(result.shape).astype(result.dtype)


KERNEL = Kernel(call, _obstacle)
BACKWARD_KERNEL = Kernel(
    functools.partial(call_backward, overwrites=True),
    lambda arguments, static: _obstacle(arguments.operands, static[0]),
)
