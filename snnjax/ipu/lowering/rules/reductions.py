"""Rules for reductions: over dimensions, with the position of an extreme, and over windows."""

from collections.abc import Sequence

import numpy as np

from snnjax.ipu.lowering import views
from snnjax.ipu.lowering.builder import Builder
from snnjax.ipu.lowering.operation import Operation
from snnjax.ipu.lowering.rules import by_function, elementwise, rule, windows
from snnjax.ipu.lowering.rules.counting import counts_along
from snnjax.ipu.lowering.rules.regions import extreme_of, kind_of
from snnjax.ipu.lowering.types import ArrayType, is_floating, numpy_dtype


def native(dtype: str, *, halves: bool = True) -> str:
    """The dtype in which reductions, sorts and similar operations are computed."""
    if dtype in ("f32", "s32", "u32", "bool") or (dtype == "f16" and halves):
        return dtype
    if is_floating(dtype):
        return "f32"
    return "s32" if dtype.startswith("s") else "u32"


def zero_of(kind: str, dtype: str) -> float:
    """The identity element of `kind`."""
    if kind in ("add", "or", "xor"):
        return 0
    if kind == "multiply":
        return 1
    if kind == "and":
        return True if dtype == "bool" else -1
    low = kind == "maximum"
    if is_floating(dtype):
        return -np.inf if low else np.inf
    limits = np.iinfo(numpy_dtype(dtype))
    return limits.min if low else limits.max


def is_zero(builder: Builder, value: int, kind: str, dtype: str) -> bool:
    """Whether a single element is the identity element of `kind`."""
    number = builder.number(value)
    return number is not None and bool(number == np.asarray(zero_of(kind, dtype)).astype(numpy_dtype(dtype)))


def reduce(builder: Builder, x: int, dimensions: Sequence[int], kind: str) -> int:
    """The reduction along `dimensions`, from the identity element."""
    old = builder.types[x]
    shape = tuple(n for d, n in enumerate(old.shape) if d not in dimensions)
    type_ = ArrayType(old.dtype, shape)
    if old.size == 0:
        return builder.splat(np.asarray(zero_of(kind, old.dtype)).astype(numpy_dtype(old.dtype)), type_)
    if old.size == type_.size:
        return views.reshape(builder, x, shape)
    longer = tuple(d for d in sorted(dimensions) if old.shape[d] > 1)
    converted = elementwise.convert(builder, x, native(old.dtype))
    kept = tuple(n for d, n in enumerate(old.shape) if d not in longer)
    reduced = builder.one("reduce", (converted,), ArrayType(native(old.dtype), kept), (longer,), (kind,))
    return elementwise.convert(builder, views.reshape(builder, reduced, shape), old.dtype)


def with_start(builder: Builder, reduced: int, start: int, kind: str) -> int:
    """A reduction that starts from `start`."""
    type_ = builder.types[reduced]
    if is_zero(builder, start, kind, type_.dtype):
        return reduced
    return elementwise.binary(builder, kind, reduced, views.splat_like(builder, start, type_.shape))


@rule("stablehlo.reduce")
def _lower_reduce(operation: Operation) -> Sequence[int]:
    if len(operation.types) == 2:
        places = _arg_reduce(operation, operation.ints("dimensions"))
        if places is not None:
            return places
    kind = kind_of(operation.regions[0], operation.types[0].dtype) if len(operation.types) == 1 else None
    if kind is None:
        return by_function.reduce(operation)
    x, start = operation.inputs
    reduced = reduce(operation.builder, x, operation.ints("dimensions"), kind)
    return [with_start(operation.builder, reduced, start, kind)]


def _arg_reduce(operation: Operation, dimensions: Sequence[int]) -> Sequence[int] | None:
    """The extreme along one dimension, and its position."""
    builder = operation.builder
    x, places = operation.inputs[:2]
    kind = extreme_of(operation.walk, operation.regions[0], operation.types)
    if kind is None or len(dimensions) != 1 or not counts_along(builder, places, dimensions[0]):
        return None
    old, index = builder.types[x], builder.types[places]
    shape = operation.types[0].shape
    if old.size == 0:
        return [views.splat_like(builder, start, shape) for start in operation.inputs[2:]]
    dtype = "u32" if old.dtype == "bool" else native(old.dtype)
    converted = elementwise.convert(builder, x, dtype)
    types = (ArrayType(dtype, shape), ArrayType("s32", shape))
    value, place = builder.add("arg_reduce", (converted,), types, (dimensions,), (kind,))
    return [elementwise.convert(builder, value, old.dtype), elementwise.convert(builder, place, index.dtype)]


@rule("stablehlo.reduce_window")
def _lower_reduce_window(operation: Operation) -> Sequence[int]:
    """A window reduction with a single operation, or with a function of any number of arrays."""
    (type_,), builder = operation.types[:1], operation.builder
    kind = kind_of(operation.regions[0], type_.dtype) if len(operation.types) == 1 else None
    ones = (1,) * len(type_.shape)
    geometry = windows.Windows(
        operation.ints("window_dimensions"),
        operation.ints("window_strides", ones),
        operation.ints("base_dilations", ones),
        operation.ints("window_dilations", ones),
        operation.ints("padding", (0,) * (2 * len(ones))),
    )
    if kind is not None:
        return [_of_kind(operation, geometry, kind)]
    count, combine = len(operation.types), by_function.function_of(operation)
    arrays, starts = operation.inputs[:count], operation.inputs[count:]
    return windows.pool_from(builder, arrays, starts, geometry, type_.shape, combine)


def _of_kind(operation: Operation, geometry: windows.Windows, kind: str) -> int:
    """Windows whose elements a single operation combines. Sums of large ones are rounded once."""
    builder, (x, start), (type_,) = operation.builder, operation.inputs, operation.types
    if all(n == 1 for n in (*geometry.strides, *geometry.base, *geometry.holes)):
        scanned = _cumulative(builder, x, geometry.sizes, geometry.padding, kind)
        if scanned is not None:
            return with_start(builder, scanned, start, kind)
    if geometry.is_large:
        dtype = native(type_.dtype, halves=False)
        x, start = (elementwise.convert(builder, value, dtype) for value in (x, start))
    filler = builder.splat(zero_of(kind, builder.types[x].dtype), builder.types[start])
    padded = windows.padded(builder, x, filler, geometry)
    if geometry.is_large:
        padded, geometry = _reduced(builder, padded, geometry, type_.shape, kind)

    def combined(x: Sequence[int], y: Sequence[int]) -> list[int]:
        return [elementwise.binary(builder, kind, x[0], y[0])]

    (pooled,) = windows.pool(builder, [padded], geometry, type_.shape, combined)
    return elementwise.convert(builder, with_start(builder, pooled, start, kind), type_.dtype)


def _reduced(
    builder: Builder, x: int, geometry: windows.Windows, counts: Sequence[int], kind: str
) -> tuple[int, windows.Windows]:
    """What is left where windows that lie side by side, or of which there is one, have been reduced."""
    sizes, strides, old = list(geometry.sizes), list(geometry.strides), builder.types[x].shape
    limits, shape, inner = list(old), [], []
    for d, count in enumerate(counts):
        shape.append(old[d])
        if sizes[d] > 1 and geometry.holes[d] == 1 and (strides[d] == sizes[d] or count == 1):
            limits[d] = count * sizes[d]
            shape[-1:] = [count, sizes[d]]
            inner.append(len(shape) - 1)
            sizes[d] = strides[d] = 1
    covered = views.cut(builder, x, (0,) * len(old), limits, (1,) * len(old))
    reduced = reduce(builder, views.reshape(builder, covered, shape), inner, kind) if inner else x
    return reduced, geometry._replace(sizes=sizes, strides=strides)


def _cumulative(
    builder: Builder, x: int, window: Sequence[int], padding: Sequence[int], kind: str
) -> int | None:
    """The cumulative reduction, if that is what the windows describe."""
    type_ = builder.types[x]
    along = [d for d, n in enumerate(window) if n > 1]
    if len(along) != 1 or window[along[0]] != type_.shape[along[0]]:
        return None
    dimension = along[0]
    before = type_.shape[dimension] - 1
    edges = {2 * dimension: before, 2 * dimension + 1: before}
    ends = [edge for edge, n in enumerate(padding) if n]
    if len(ends) != 1 or padding[ends[0]] != edges.get(ends[0]):
        return None
    reverse = ends[0] % 2
    converted = elementwise.convert(builder, x, native(type_.dtype))
    computed = ArrayType(native(type_.dtype), type_.shape)
    scanned = builder.one("cumulative", (converted,), computed, ((dimension, reverse),), (kind,))
    return elementwise.convert(builder, scanned, type_.dtype)
