"""How `lif_network` calls its compiled kernels: which arrays and attributes they take, and what they yield.

Every array has a leading groups axis here. The kernels read the leaves of `Operands` in their order; what is static
goes into attributes (see xla_ext/cpu/lif_network.hpp).
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from snnjax import _dispatch, _targets
from snnjax._types import RESETS, SURROGATES
from snnjax.ops._lif_layer import SecondState
from snnjax.ops._lif_network_reference import (
    BackwardArguments,
    Lists,
    Needs,
    Operands,
    Switches,
)
from snnjax.sparse_spikes import in_range


def obstacle(operands: Operands, switches: Switches) -> str | None:
    """What the kernels cannot take."""
    dtype = operands.linears[0].weights.dtype
    if dtype not in (jnp.float32, jnp.bfloat16):
        return f"{dtype.name} weights"
    return next((layer.surrogate.obstacle for layer in switches.layers if layer.surrogate.obstacle), None)


def _attributes(operands: Operands, switches: Switches) -> dict[str, Any]:
    """What is static, as the kernels read it."""
    layers = [
        (
            linear.bias is not None,
            constants.recurrent is not None,
            RESETS.index(layer.reset),
            layer.detach_reset,
            SURROGATES.index(layer.surrogate.name),
            -1 if layer.capacity is None else layer.capacity,
            _mask(constants.second_state),
            layer.records_w,
            layer.records_current,
            layer.records_spikes,
        )
        for linear, constants, layer in zip(
            operands.linears, operands.constants, switches.layers, strict=True
        )
    ]
    readout = operands.readout
    return {
        "layers": np.array(layers, np.int64).reshape(-1),
        "slopes": np.array([layer.surrogate.slope for layer in switches.layers], np.float32),
        "has_lists": isinstance(operands.inputs, tuple),
        "has_readout": readout is not None,
        "readout_has_bias": readout is not None and readout.linear.bias is not None,
        "has_lengths": operands.lengths is not None,
    }


def _mask(second: SecondState | None) -> int:
    """Which constants of a second state are there, a bit each, the decay's lowest; 0 is no second state."""
    return 0 if second is None else sum((each is not None) << place for place, each in enumerate(second))


def _leaves(operands: Operands) -> list[Array]:
    """The operands with inputs of a dtype that the kernels read."""
    dtype, inputs = operands.linears[0].weights.dtype, operands.inputs
    if isinstance(inputs, tuple):
        ids, values = inputs
        if ids.dtype not in (jnp.uint16, jnp.int32):  # an id that does not fit must not become another one
            ids = jnp.where(in_range(ids, operands.linears[0].weights.shape[1]), ids, -1).astype(jnp.int32)
        inputs = (ids, values.astype(dtype))
    elif inputs.dtype not in (dtype, jnp.uint8, jnp.bool_):
        inputs = inputs.astype(dtype)
    return jax.tree.leaves(operands._replace(inputs=inputs))


def _call(operands: Operands, switches: Switches, results: Any) -> list[Array]:
    """The forward pass."""
    attributes = {**_attributes(operands, switches), "records": switches.keeps_record}
    return _targets.call("snnjax_lif_network", _leaves(operands), results, **attributes)


def _backward_leaves(arguments: BackwardArguments, switches: Switches, needs: Needs) -> list[Array]:
    """The operands of the backward pass behind those of the forward pass."""
    operands, results, record, g = arguments
    leaves = [*jax.tree.leaves(record), *([] if operands.readout is None else [results.output]), g.output]
    for index, last in enumerate(g.last):
        if needs.counts:
            leaves.append(g.counts[index])
        if switches.layers[index].records_spikes:
            lists = results.spikes[index]
            leaves.extend([lists.ids] if isinstance(lists, Lists) else [])
            leaves.append(g.spikes[index])
        leaves.extend(jax.tree.leaves(last))
    return leaves if g.last_readout is None else [*leaves, g.last_readout]


def _call_backward(arguments: BackwardArguments, static: tuple[Switches, Needs], results: Any) -> list[Array]:
    """The backward pass: the cotangents that are needed, and zeros in the place of the others."""
    switches, needs = static
    operands, groups = arguments.operands, results[0].shape[0]
    needed = jax.tree.unflatten(jax.tree.structure(operands), needs.operands)
    wanted: list[bool] = []
    shapes: list[jax.ShapeDtypeStruct] = []

    def want(like: Any, is_needed: bool, width: int | None = None) -> int | None:
        """The place of a result among those of the kernel, None if it is not needed; `width`: one float32 a neuron."""
        wanted.append(is_needed)
        return _place(like, is_needed, width)

    def _place(like: Any, is_needed: bool, width: int | None = None) -> int | None:
        if not is_needed:
            return None
        own = (like.shape[1:], like.dtype) if width is None else ((width,), jnp.float32)
        shapes.append(jax.ShapeDtypeStruct((groups, *own[0]), own[1]))
        return len(shapes) - 1

    places = _places(operands, needed, want, _place)
    leaves = [*_leaves(operands), *_backward_leaves(arguments, switches, needs)]
    attributes = {
        **_attributes(operands, switches),
        "has_g_counts": needs.counts,
        "needs": np.array(wanted, np.int64),
    }
    yielded = _targets.call("snnjax_lif_network_backward", leaves, shapes, **attributes)
    return jax.tree.leaves(_as_operands(operands, places, yielded, groups))


def _places(operands: Operands, needed: Operands, want: Any, place: Any) -> list[int | None]:
    """Asks for every cotangent, in the order of the leaves; states always have one."""
    inputs = jax.tree.leaves(operands.inputs)[-1]
    floating = jnp.issubdtype(inputs.dtype, jnp.floating)
    as_weights = jax.ShapeDtypeStruct(inputs.shape, operands.linears[0].weights.dtype)
    places = [want(as_weights, floating and jax.tree.leaves(needed.inputs)[-1])]
    for linear, need in zip(operands.linears, needed.linears, strict=True):
        places += [want(*pair) for pair in zip(jax.tree.leaves(linear), jax.tree.leaves(need), strict=True)]
    for constants, need, linear in zip(operands.constants, needed.constants, operands.linears, strict=True):
        if constants.recurrent is not None:
            places.append(want(constants.recurrent, need.recurrent))
        width = linear.weights.shape[-1]
        places += [want(*pair, width) for pair in zip(constants[1:4], need[1:4], strict=True)]
        second = (jax.tree.leaves(each.second_state) for each in (constants, need))
        places += [want(*pair, width) for pair in zip(*second, strict=True)]
    if operands.readout is not None and needed.readout is not None:
        linear, need = operands.readout.linear, needed.readout.linear
        places += [want(*pair) for pair in zip(jax.tree.leaves(linear), jax.tree.leaves(need), strict=True)]
        width = linear.weights.shape[-1]
        places += [want(*pair, width) for pair in zip(operands.readout[1:], needed.readout[1:], strict=True)]
    states = jax.tree.leaves((operands.first, operands.first_readout))
    return places + [place(state, True) for state in states]


def _as_operands(operands: Operands, places: list[int | None], results: list[Array], groups: int) -> Operands:
    """The cotangents in the tree of the operands, each shaped like its operand."""
    remaining = iter(places)

    def next_one(like: Array) -> Array:
        place = next(remaining)
        if place is None:
            return jnp.zeros((groups, *like.shape[1:]), like.dtype)
        g = results[place]
        if g.shape[1:] != like.shape[1:]:  # one constant for all neurons
            g = jnp.sum(g, axis=-1, keepdims=True)
        return g.astype(like.dtype)

    inputs: Any = operands.inputs
    if isinstance(inputs, tuple):
        inputs = (None, next_one(inputs[1]))
    else:
        is_floating = jnp.issubdtype(inputs.dtype, jnp.floating)
        inputs = next_one(inputs) if is_floating else next(remaining)
    linears = tuple(jax.tree.map(next_one, linear) for linear in operands.linears)
    constants = tuple(jax.tree.map(next_one, c._replace(second_threshold=None)) for c in operands.constants)
    readout = jax.tree.map(next_one, operands.readout)
    first = jax.tree.map(next_one, operands.first)
    return Operands(
        inputs, linears, constants, readout, first, jax.tree.map(next_one, operands.first_readout), None
    )


KERNEL = _dispatch.Kernel(_call, obstacle)
BACKWARD_KERNEL = _dispatch.Kernel(
    _call_backward, lambda arguments, static: obstacle(arguments.operands, static[0])
)
