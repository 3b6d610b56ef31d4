"""Rules for constants and for operations that move elements."""

from snnjax.ipu.lowering import views
from snnjax.ipu.lowering.operation import Operation, array_of
from snnjax.ipu.lowering.rules import Rule, rule
from snnjax.ipu.lowering.rules.elementwise import convert
from snnjax.ipu.lowering.rules.products import transposed
from snnjax.ipu.lowering.types import WIDE, ArrayType


@rule("stablehlo.constant")
def _lower_constant(operation: Operation) -> list[int]:
    return [views.constant(operation.builder, array_of(operation.attributes["value"], operation.types[0]))]


@rule("stablehlo.iota")
def _lower_iota(operation: Operation) -> list[int]:
    builder, (type_,) = operation.builder, operation.types
    register = type_.dtype if type_.dtype in ("s32", "u32", *WIDE) else "s32"
    counted = views.iota(builder, ArrayType(register, type_.shape), operation.integer("iota_dimension"))
    return [convert(builder, counted, type_.dtype)]


@rule("stablehlo.broadcast_in_dim")
def _lower_broadcast(operation: Operation) -> list[int]:
    dimensions = operation.ints("broadcast_dimensions")
    return [views.broadcast(operation.builder, operation.inputs[0], operation.types[0].shape, dimensions)]


@rule("stablehlo.transpose")
def _lower_transpose(operation: Operation) -> list[int]:
    (x,), permutation = operation.inputs, operation.ints("permutation")
    swapped = transposed(operation.builder, x, permutation)
    return [views.transpose(operation.builder, x, permutation) if swapped is None else swapped]


@rule("stablehlo.slice")
def _lower_slice(operation: Operation) -> list[int]:
    bounds = map(operation.ints, ("start_indices", "limit_indices", "strides"))
    return [views.cut(operation.builder, operation.inputs[0], *bounds)]


@rule("stablehlo.pad")
def _lower_pad(operation: Operation) -> list[int]:
    """Negative padding is cut off first; interior padding stays between the remaining elements."""
    x, filler = operation.inputs
    edges = map(operation.ints, ("edge_padding_low", "edge_padding_high", "interior_padding"))
    return [views.pad(operation.builder, x, filler, *edges)]


_IN_A_LINE: dict[str, Rule] = {
    "func.call": lambda call: call.called(call.text("callee")),
    "sdy.sharding_group": lambda _: [],
    "stablehlo.after_all": lambda tokens: [views.empty(tokens.builder, each) for each in tokens.types],
    "stablehlo.concatenate": lambda x: [views.concatenate(x.builder, x.inputs, x.integer("dimension"))],
    "stablehlo.create_token": lambda token: [views.empty(token.builder, each) for each in token.types],
    "stablehlo.optimization_barrier": lambda barrier: barrier.inputs,
    "stablehlo.reshape": lambda x: [views.reshape(x.builder, x.inputs[0], x.types[0].shape)],
    "stablehlo.reverse": lambda x: [views.reverse(x.builder, x.inputs[0], x.ints("dimensions"))],
}
for _name, _rule in _IN_A_LINE.items():
    rule(_name)(_rule)
