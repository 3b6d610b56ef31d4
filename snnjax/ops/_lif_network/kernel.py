"""How `lif_network` calls its compiled kernels: their arrays and static values by the names of the table of records.

Every array has a leading groups axis here.
"""

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax.typing import DTypeLike
from jaxtyping import Array

from snnjax._dispatch import Kernel
from snnjax._neuron_table import RESETS
from snnjax._quantised import Quantised
from snnjax._sparse_spikes import SparseSpikes, values_of
from snnjax.ops._connection import Connection
from snnjax.ops._convolution import Convolution
from snnjax.ops._kernel_operands import (
    call_kernel,
    dtype_obstacle,
    named,
    surrogate_numbers,
)
from snnjax.ops._lif_network.records import (
    WIDEST_VECTOR,
    BackwardArguments,
    BackwardResults,
    ConnectionNumbers,
    LayerConstants,
    LayerNumbers,
    LayerState,
    Operands,
    ReadoutOperands,
)
from snnjax.ops._lif_network.shapes import result_shapes
from snnjax.ops._lif_network.switches import LayerSwitches, Needs, Switches, differentiable
from snnjax.ops.pool_spikes import Pooling


def _obstacle(operands: Operands, switches: Switches) -> str | None:
    """Why the kernels do not support these operands, or None."""
    connections = (*(layer.connection for layer in switches.layers), switches.readout)
    parts = (part for connection in connections for part in connection.parts)
    if unknown := next((part for part in parts if not isinstance(part, Pooling | Convolution)), None):
        return unknown.words
    obstacles = [
        *(
            layer.connection.obstacle_to(recurrent=constants.recurrent is not None, spikes=True)
            for layer, constants in zip(switches.layers, operands.constants, strict=True)
        ),
        switches.readout.obstacle_to(recurrent=False, spikes=False),
        dtype_obstacle("weights", operands),
        *(layer.surrogate.obstacle for layer in switches.layers),
    ]
    return next((obstacle for obstacle in obstacles if obstacle is not None), None)


def _numbers_of_layer(layer: LayerSwitches) -> LayerNumbers:
    return LayerNumbers(
        reset=RESETS.index(layer.reset),
        detach_reset=layer.detach_reset,
        **surrogate_numbers(layer.surrogate),
        capacity=-1 if layer.capacity is None else layer.capacity,
        needs_w=layer.needs_w,
        rounds_cotangents=layer.connection.rounds_cotangents,
        exact_within=layer.connection.exact_within,
        recurrent_delay_rows=0 if layer.recurrent_delay is None else layer.recurrent_delay + 1,
    )


def _numbers_of_connection(connection: Connection) -> ConnectionNumbers:
    """One dimension is an image of height 1."""
    pooling, convolution = connection.pooling, connection.convolution
    numbers = ConnectionNumbers()
    if convolution is not None:
        numbers = numbers._replace(**convolution.numbers)
    if connection.max_delay is not None:
        numbers = numbers._replace(delay_rows=connection.max_delay + 1)
    if pooling is None:
        return numbers
    ones = (1,) * (3 - len(pooling.shape))
    (height, width, channels), window = (*ones, *pooling.shape), (*ones, *pooling.window)
    return numbers._replace(
        pooling_height=height,
        pooling_width=width,
        pooling_channels=channels,
        window_height=window[0],
        window_width=window[1],
        is_mean=pooling.how == "mean",
    )


def _static(switches: Switches) -> tuple[list[LayerNumbers], list[ConnectionNumbers]]:
    """The static values."""
    connections = [*(layer.connection for layer in switches.layers), switches.readout]
    return list(map(_numbers_of_layer, switches.layers)), list(map(_numbers_of_connection, connections))


def as_kernel_reads(operands: Operands, switches: Switches) -> Operands:
    """The operands, with inputs in a dtype that the kernels read, and weights as rows of outputs."""
    inputs = operands.inputs
    if isinstance(inputs, SparseSpikes):
        inputs = dataclasses.replace(inputs, values=values_of(inputs, operands.dtype))
    elif inputs.dtype not in (operands.dtype, jnp.uint8, jnp.bool_):
        inputs = inputs.astype(operands.dtype)
    linears = tuple(linear._replace(weights=_flat(linear.weights)) for linear in operands.linears)
    constants = tuple(map(_in_rows, operands.constants))
    return operands._replace(inputs=inputs, linears=linears, constants=constants)


def _in_rows(constants: LayerConstants) -> LayerConstants:
    """The constants with the weights and the delays of recurrent synapses as one row."""
    weights, delays = constants.recurrent, constants.synaptic_delays
    if constants.recurrent_ends is None:
        return constants
    if isinstance(weights, Quantised):
        return constants._replace(recurrent=weights._replace(values=weights.values[:, None]))
    in_row = None if delays is None else delays[:, None]
    return constants._replace(recurrent=weights[:, None], synaptic_delays=in_row)


def _flat(weights: Any) -> Any:
    """Weights, including those of a convolution, as rows of outputs."""
    if weights is None or isinstance(weights, Quantised):
        return weights
    groups, *taps, outputs = weights.shape
    return weights.reshape(groups, math.prod(taps), outputs)


def call(operands: Operands, switches: Switches, results: Sequence[jax.ShapeDtypeStruct]) -> list[Array]:
    """The forward pass."""
    of_one_group = jax.tree.map(lambda a: jax.ShapeDtypeStruct(a.shape[1:], a.dtype), operands)
    shapes = dict(zip(named(result_shapes(of_one_group, switches)), results, strict=True))
    return list(call_forward(operands, switches, shapes).values())


def call_forward(operands: Operands, switches: Switches, shapes: Mapping[str, Any]) -> dict[str, Array]:
    """The results of these shapes by name."""
    return call_kernel("snnjax_lif_network", as_kernel_reads(operands, switches), shapes, *_static(switches))


def call_backward(
    arguments: BackwardArguments, static: tuple[Switches, Needs], results: Sequence[jax.ShapeDtypeStruct]
) -> list[Array]:
    """The backward pass: the cotangents that are needed, and zeros for the others.

    The cotangents of some membranes are further results, in the memory of the recorded membranes.
    """
    switches, needs = static
    needed = differentiable(needs.operands, arguments.operands)
    # The kernel computes the cotangents of these in any case.
    first = tuple(_with_carried(state) for state in needed.first)
    first_readout = jax.tree.map(lambda _: True, needed.first_readout)
    groups = results[0].shape[0]
    spent = [_is_overwritten(arguments, layer, groups) for layer in range(len(switches.layers))]
    g_v = tuple(
        jax.ShapeDtypeStruct(layer.v.shape, layer.v.dtype) if is_spent else None
        for layer, is_spent in zip(arguments.record.layers, spent, strict=True)
    )
    return call_for_cotangents(
        arguments.operands,
        _backward_operands(arguments, switches, needs),
        needed._replace(first=first, first_readout=first_readout),
        switches,
        results,
        g_v,
        {f"record.layers.v[{layer}]": f"g_v[{layer}]" for layer, own in enumerate(g_v) if own is not None},
    )


def _with_carried(state: LayerState) -> LayerState:
    """The flags of a state, true but for those of the neurons' own."""
    return jax.tree.map(lambda _: True, state)._replace(v=state.v, w=state.w)


def call_for_cotangents(
    operands: Operands,
    arguments: Any,
    asked: Operands,
    switches: Switches,
    results: Sequence[jax.ShapeDtypeStruct],
    g_v: tuple[Any, ...] = (),
    aliases: Mapping[str, str] | None = None,
) -> list[Array]:
    """The cotangents of the operands that are true in `asked`, and zeros for the others.

    `arguments` are those of the kernel.
    """
    flags = named(asked)
    shapes = BackwardResults(differentiable(_cotangents(operands, results[0].shape[0]), operands), g_v)
    kept = {f"operands.{name}": is_asked for name, is_asked in flags.items()}
    called = call_kernel(
        "snnjax_lif_network_backward",
        arguments,
        {name: shape for name, shape in named(shapes).items() if kept.get(name, True)},
        *_static(switches),
        aliases=aliases,
    )
    return [
        _like(called[f"operands.{name}"], result) if is_asked else jnp.zeros(result.shape, result.dtype)
        for (name, is_asked), result in zip(flags.items(), results, strict=True)
    ]


def _backward_operands(arguments: BackwardArguments, switches: Switches, needs: Needs) -> BackwardArguments:
    """The arguments with only what the kernel reads of the results."""
    spikes = tuple(
        dataclasses.replace(lists, values=None, num_spikes=None, num_listed=None)
        if isinstance(lists, SparseSpikes)
        else None
        for lists in arguments.results.spikes
    )
    output = None if arguments.operands.readout is None else arguments.results.output
    return arguments._replace(
        operands=as_kernel_reads(arguments.operands, switches),
        results=arguments.results._replace(output=output, spikes=spikes),
        g=arguments.g if needs.counts else arguments.g._replace(counts=()),
    )


def _is_overwritten(arguments: BackwardArguments, layer: int, groups: int) -> bool:
    """Whether the kernel replaces the recorded membranes of a layer by their cotangents.

    They are those of layers whose cotangents it keeps, in float32 as these are, in rows of whole vectors.
    """
    v = arguments.record.layers[layer].v
    is_kept = layer > 0 or arguments.operands.constants[layer].recurrent is not None
    if v is None or not is_kept:
        return False
    return v.dtype == jnp.float32 and v.shape[0] == groups and v.shape[-1] % WIDEST_VECTOR == 0


def _cotangents(operands: Operands, groups: int) -> Operands:
    """The shapes of the kernel's cotangents; those of constants are one float32 per neuron."""

    def shapes_of(tree: Any, dtype: DTypeLike | None = None) -> Any:
        return jax.tree.map(lambda a: jax.ShapeDtypeStruct((groups, *a.shape[1:]), dtype or a.dtype), tree)

    def per_neuron(tree: Any, like: Array) -> Any:
        return jax.tree.map(lambda _: jax.ShapeDtypeStruct((groups, like.shape[-1]), jnp.float32), tree)

    rows = (jax.eval_shape(_in_rows, constants) for constants in operands.constants)
    layers = zip(operands.constants, operands.first, rows, strict=True)
    readout = operands.readout
    if readout is not None:
        decay, gain = per_neuron((readout.decay, readout.gain), operands.first_readout)
        readout = ReadoutOperands(shapes_of(readout.linear), decay, gain)
    return operands._replace(
        inputs=shapes_of(operands.inputs, operands.dtype),
        linears=tuple(
            shapes_of(linear._replace(weights=jax.eval_shape(_flat, linear.weights)))
            for linear in operands.linears
        ),
        constants=tuple(
            per_neuron(constants, first.v)._replace(
                recurrent=shapes_of(in_rows.recurrent), synaptic_delays=shapes_of(in_rows.synaptic_delays)
            )
            for constants, first, in_rows in layers
        ),
        readout=readout,
        first=shapes_of(operands.first),
        first_readout=shapes_of(operands.first_readout),
        lengths=None,
    )


def _like(g: Array, result: jax.ShapeDtypeStruct) -> Array:
    """A cotangent in the form of its operand: summed for a shared constant, reshaped, and rounded."""
    if g.size != math.prod(result.shape):
        g = jnp.sum(g, axis=-1, keepdims=True)
    return g.reshape(result.shape).astype(result.dtype)


KERNEL = Kernel(call, _obstacle)
BACKWARD_KERNEL = Kernel(call_backward, lambda arguments, static: _obstacle(arguments.operands, static[0]))
