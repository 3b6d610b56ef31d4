"""The rule for `dot_general`: float16 or float32 products, others by conversion, without transposing operands."""

from collections.abc import Sequence

import numpy as np

from snnjax._jax_compat import stablehlo
from snnjax.ipu.lowering import views
from snnjax.ipu.lowering.builder import Builder
from snnjax.ipu.lowering.operation import Operation
from snnjax.ipu.lowering.rules import elementwise, reductions, rule
from snnjax.ipu.lowering.types import ArrayType, bits_of, is_floating

# Sums of products below 2^24 are exact in float32.
EXACT_BITS = 24
# Integer products that are not exact: one elementwise product each.
MAX_PRODUCTS = 2**20

Dimensions = tuple[Sequence[int], Sequence[int], Sequence[int], Sequence[int]]


@rule("stablehlo.dot_general")
def _lower_dot_general(operation: Operation) -> list[int]:
    dimensions = stablehlo.DotDimensionNumbers(operation.attributes["dot_dimension_numbers"])
    numbers = (
        dimensions.lhs_batching_dimensions,
        dimensions.rhs_batching_dimensions,
        dimensions.lhs_contracting_dimensions,
        dimensions.rhs_contracting_dimensions,
    )
    builder, (a, b), (type_,) = operation.builder, operation.inputs, operation.types
    return [dot(builder, operation, a, b, numbers, type_)]


def dot(builder: Builder, operation: Operation, a: int, b: int, numbers: Dimensions, type_: ArrayType) -> int:
    """The product, rounded or wrapped to its type."""
    old = builder.types[a]
    contracted = int(np.prod([old.shape[d] for d in numbers[2]], dtype=np.int64))
    if old.size == 0 or builder.types[b].size == 0:
        return builder.splat(0, type_)
    if not is_floating(type_.dtype) and not _is_exact(builder, a, b, contracted):
        return _of_integers(builder, operation, a, b, numbers, type_)
    narrow = old.dtype == builder.types[b].dtype == "f16" and type_.dtype in ("f16", "f32")
    dtype = "f16" if narrow else "f32"
    a, b = (elementwise.convert(builder, x, dtype) for x in (a, b))
    computed = type_ if narrow else type_._replace(dtype="f32")
    a, lhs = _untransposed(builder, a, (numbers[0], numbers[2]))
    b, rhs = _untransposed(builder, b, (numbers[1], numbers[3]))
    product = builder.one("dot", (a, b), computed, (lhs[0], rhs[0], lhs[1], rhs[1]))
    if type_.dtype == "bool":
        return elementwise.compare(builder, "NE", product, builder.splat(0, computed))
    if not is_floating(type_.dtype):  # sums are taken modulo 2^n
        product = elementwise.convert(builder, product, "s32")
    return elementwise.convert(builder, product, type_.dtype)


def _is_exact(builder: Builder, a: int, b: int, contracted: int) -> bool:
    """Whether float32 represents every sum of products of these integers exactly."""
    dtypes = [builder.types[x].dtype for x in (a, b)]
    each = [1 if dtype == "bool" else bits_of(dtype) for dtype in dtypes]
    return sum(each) + int(contracted).bit_length() <= EXACT_BITS


def _untransposed(
    builder: Builder, x: int, places: tuple[Sequence[int], Sequence[int]]
) -> tuple[int, tuple[tuple[int, ...], tuple[int, ...]]]:
    """An operand before the transpose that produced it, if its free dimensions keep their order."""
    batching, contracting = (tuple(each) for each in places)
    definition = builder.definitions.get(x)
    if definition is None or definition.op != "transpose":
        return x, (batching, contracting)
    (permutation,) = definition.ints
    free = [permutation[d] for d in range(len(permutation)) if d not in (*batching, *contracting)]
    if free != sorted(free):
        return x, (batching, contracting)
    return definition.inputs[0], (
        tuple(permutation[d] for d in batching),
        tuple(permutation[d] for d in contracting),
    )


def transposed(builder: Builder, x: int, permutation: Sequence[int]) -> int | None:
    """The transpose of a product as the product with swapped operands, if possible, else None."""
    definition = builder.definitions.get(x)
    if definition is None or definition.op != "dot":
        return None
    a, b = definition.inputs
    lhs_batching, rhs_batching, lhs_contracting, rhs_contracting = definition.ints
    batch = len(lhs_batching)
    of_a = len(builder.types[a].shape) - batch - len(lhs_contracting)
    rank = len(permutation)
    swap = (*range(batch), *range(batch + of_a, rank), *range(batch, batch + of_a))
    if tuple(permutation) != swap:
        return None
    old = builder.types[x]
    type_ = ArrayType(old.dtype, tuple(old.shape[d] for d in permutation))
    ints = (rhs_batching, lhs_batching, rhs_contracting, lhs_contracting)
    return builder.one("dot", (b, a), type_, ints)


def _of_integers(
    builder: Builder, operation: Operation, a: int, b: int, numbers: Dimensions, type_: ArrayType
) -> int:
    """All products as integers, and their sums."""
    shape = (*type_.shape, *(builder.types[a].shape[d] for d in numbers[2]))
    if np.prod(shape) > MAX_PRODUCTS:
        what = f"its {np.prod(shape)} integer products exceed the limit of {MAX_PRODUCTS}"
        raise operation.refuse(what, "Convert the operands to float32")
    batch, summed = tuple(range(len(numbers[0]))), tuple(range(len(type_.shape), len(shape)))
    factors, first = [], len(batch)
    for x, batching, contracting in ((a, numbers[0], numbers[2]), (b, numbers[1], numbers[3])):
        free = [d for d in range(len(builder.types[x].shape)) if d not in (*batching, *contracting)]
        x = elementwise.convert(builder, x, reductions.native(type_.dtype))
        x = views.transpose(builder, x, (*batching, *free, *contracting))
        places = (*batch, *range(first, first + len(free)), *summed)
        factors.append(views.broadcast(builder, x, shape, places))
        first += len(free)
    total = reductions.reduce(builder, elementwise.binary(builder, "multiply", *factors), summed, "add")
    return elementwise.convert(builder, total, type_.dtype)
