"""Rules for gathers, scatters and dynamic slices."""

from collections.abc import Sequence

import numpy as np

from snnjax._jax_compat import stablehlo
from snnjax.ipu.lowering import views
from snnjax.ipu.lowering.builder import Builder
from snnjax.ipu.lowering.operation import Operation
from snnjax.ipu.lowering.rules import by_function, elementwise, reductions, rule
from snnjax.ipu.lowering.rules.batching import Indices, simplest
from snnjax.ipu.lowering.rules.regions import is_overwriting, kind_of


def _index(builder: Builder, value: int) -> int:
    """An index as int32 or uint32."""
    dtype = builder.types[value].dtype
    return value if dtype in ("s32", "u32") else elementwise.convert(builder, value, "s32")


@rule("stablehlo.gather")
def _lower_gather(operation: Operation) -> list[int]:
    numbers = stablehlo.GatherDimensionNumbers(operation.attributes["dimension_numbers"])
    builder, (x, indices), (type_,) = operation.builder, operation.inputs, operation.types
    if builder.number(x) is not None:
        return [builder.splat(builder.number(x), type_)]
    at = Indices(
        _index(builder, indices),
        numbers.index_vector_dim,
        tuple(numbers.start_index_map),
        tuple(numbers.collapsed_slice_dims),
        tuple(numbers.operand_batching_dims),
        tuple(numbers.start_indices_batching_dims),
    )
    at = simplest(builder, builder.types[x].shape, at)
    return [at.gather(builder, x, type_.shape, tuple(numbers.offset_dims), operation.ints("slice_sizes"))]


@rule("stablehlo.scatter")
def _lower_scatter(operation: Operation) -> Sequence[int]:
    """Arrays that are combined with their updates by one operation or by a function, or overwritten."""
    builder, count = operation.builder, len(operation.types)
    arrays, (indices, *updates) = operation.inputs[:count], operation.inputs[count:]
    if builder.types[updates[0]].size == 0:
        return arrays
    type_, region = operation.types[0], operation.regions[0]
    kind = "set" if is_overwriting(region) else kind_of(region, type_.dtype)
    numbers = stablehlo.ScatterDimensionNumbers(operation.attributes["scatter_dimension_numbers"])
    window = tuple(numbers.update_window_dims)
    plain = Indices(
        _index(builder, indices),
        numbers.index_vector_dim,
        tuple(numbers.scattered_dims_to_operand_dims),
        tuple(numbers.inserted_window_dims),
        tuple(numbers.input_batching_dims),
        tuple(numbers.scatter_indices_batching_dims),
    )
    at = simplest(builder, type_.shape, plain)
    if kind is None:
        return by_function.scatter(operation, arrays, by_function.Scatter(plain, window, updates), at)
    computed = type_.dtype if kind == "set" else reductions.native(type_.dtype)
    x, update = (elementwise.convert(builder, value, computed) for value in (arrays[0], updates[0]))
    scattered = at.scatter(builder, x, update, window, kind)
    return [elementwise.convert(builder, scattered, type_.dtype)]


def _known_starts(operation: Operation, starts: Sequence[int], sizes: Sequence[int]) -> list[int] | None:
    """The clamped starts, if all are constants or the slice is the whole array."""
    clamped = []
    for start, length, size in zip(starts, operation.input_types()[0].shape, sizes, strict=True):
        number = np.int64(0) if size == length else operation.builder.number(start)
        if number is None:
            return None
        clamped.append(min(max(int(number), 0), length - size))
    return clamped


@rule("stablehlo.dynamic_slice")
def _lower_dynamic_slice(operation: Operation) -> list[int]:
    builder, (x, *starts), (type_,) = operation.builder, operation.inputs, operation.types
    if type_.size == 0:
        return [views.empty(builder, type_)]
    sizes = operation.ints("slice_sizes")
    known = _known_starts(operation, starts, sizes)
    if known is not None:
        limits = [start + size for start, size in zip(known, sizes, strict=True)]
        return [views.cut(builder, x, known, limits, [1] * len(sizes))]
    if builder.number(x) is not None:
        return [builder.splat(builder.number(x), type_)]
    return [builder.one("dynamic_slice", (x, *(_index(builder, s) for s in starts)), type_, (sizes,))]


@rule("stablehlo.dynamic_update_slice")
def _lower_dynamic_update_slice(operation: Operation) -> list[int]:
    builder, (x, update, *starts), (type_,) = operation.builder, operation.inputs, operation.types
    if builder.types[update] == type_:
        return [update]
    if builder.types[update].size == 0:
        return [x]
    return [builder.one("dynamic_update_slice", (x, update, *(_index(builder, s) for s in starts)), type_)]
