"""Rules for constants and for operations that move elements."""

from snnjax.ipu.lowering import views
from snnjax.ipu.lowering.operation import Operation, array_of
from snnjax.ipu.lowering.rules import rule
from snnjax.ipu.lowering.rules.elementwise import convert
from snnjax.ipu.lowering.rules.products import transposed
from snnjax.ipu.lowering.types import WIDE, ArrayType


@rule("stablehlo.constant")
def _lower_constant(operation: Operation) -> list[int]:
    array = array_of(operation.attributes["value"], operation.types[0])
    counted = views.counts(operation.builder, array)
    return [operation.builder.constant(array) if counted is None else counted]


@rule("stablehlo.iota")
def _lower_iota(operation: Operation) -> list[int]:
    (type_,) = operation.types
    register = type_.dtype if type_.dtype in ("s32", "u32", *WIDE) else "s32"
    counted = views.iota(
        operation.builder, ArrayType(register, type_.shape), operation.integer("iota_dimension")
    )
    return [convert(operation.builder, counted, type_.dtype)]


@rule("stablehlo.broadcast_in_dim")
def _lower_broadcast(operation: Operation) -> list[int]:
    dimensions = operation.ints("broadcast_dimensions")
    return [views.broadcast(operation.builder, operation.inputs[0], operation.types[0].shape, dimensions)]


@rule("stablehlo.reshape")
def _lower_reshape(operation: Operation) -> list[int]:
    return [views.reshape(operation.builder, operation.inputs[0], operation.types[0].shape)]


@rule("stablehlo.transpose")
def _lower_transpose(operation: Operation) -> list[int]:
    (x,), permutation = operation.inputs, operation.ints("permutation")
    swapped = transposed(operation.builder, x, permutation)
    return [views.transpose(operation.builder, x, permutation) if swapped is None else swapped]


@rule("stablehlo.slice")
def _lower_slice(operation: Operation) -> list[int]:
    bounds = map(operation.ints, ("start_indices", "limit_indices", "strides"))
    return [views.cut(operation.builder, operation.inputs[0], *bounds)]


@rule("stablehlo.reverse")
def _lower_reverse(operation: Operation) -> list[int]:
    return [views.reverse(operation.builder, operation.inputs[0], operation.ints("dimensions"))]


@rule("stablehlo.concatenate")
def _lower_concatenate(operation: Operation) -> list[int]:
    return [views.concatenate(operation.builder, operation.inputs, operation.integer("dimension"))]


@rule("stablehlo.pad")
def _lower_pad(operation: Operation) -> list[int]:
    """Negative padding is cut off first; interior padding stays between the remaining elements."""
    x, filler = operation.inputs
    low, high, interior = map(operation.ints, ("edge_padding_low", "edge_padding_high", "interior_padding"))
    return [views.pad(operation.builder, x, filler, low, high, interior)]


@rule("stablehlo.create_token", "stablehlo.after_all")
def _lower_token(operation: Operation) -> list[int]:
    return [views.empty(operation.builder, type_) for type_ in operation.types]


@rule("stablehlo.optimization_barrier")
def _lower_identity(operation: Operation) -> list[int]:
    return operation.inputs


@rule("sdy.sharding_group")
def _lower_nothing(operation: Operation) -> list[int]:
    del operation
    return []


@rule("func.call")
def _lower_call(operation: Operation) -> list[int]:
    return operation.walk.call(operation.text("callee"), operation.inputs)
