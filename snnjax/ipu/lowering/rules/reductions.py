"""Rules for reductions: over dimensions, with the position of an extreme, and over windows."""

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from snnjax.ipu.lowering import views
from snnjax.ipu.lowering.builder import Builder
from snnjax.ipu.lowering.operation import Operation
from snnjax.ipu.lowering.rules import elementwise, rule
from snnjax.ipu.lowering.rules.counting import counts_along
from snnjax.ipu.lowering.rules.regions import extreme_of, kind_of
from snnjax.ipu.lowering.types import ArrayType, is_floating, numpy_dtype

# Pooling over larger windows is refused: each element of a window is a separate slice.
MAX_WINDOW = 64
_ONE_KIND = "Use sum, prod, max, min, any, all, argmax or argmin"


def native(dtype: str, *, halves: bool = True) -> str:
    """The dtype in which reductions, sorts and similar operations are computed."""
    if dtype in ("f32", "s32", "u32", "bool") or (dtype == "f16" and halves):
        return dtype
    if is_floating(dtype):
        return "f32"
    return "s32" if dtype.startswith("s") else "u32"


def zero_of(kind: str, dtype: str) -> Any:
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


def _is_zero(builder: Builder, value: int, kind: str, dtype: str) -> bool:
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
    wide = elementwise.convert(builder, x, native(old.dtype))
    kept = tuple(n for d, n in enumerate(old.shape) if d not in longer)
    reduced = builder.one("reduce", (wide,), ArrayType(native(old.dtype), kept), (longer,), (kind,))
    return elementwise.convert(builder, views.reshape(builder, reduced, shape), old.dtype)


def with_start(builder: Builder, reduced: int, start: int, kind: str) -> int:
    """A reduction that starts from `start`."""
    type_ = builder.types[reduced]
    if _is_zero(builder, start, kind, type_.dtype):
        return reduced
    return elementwise.binary(builder, kind, reduced, views.splat_like(builder, start, type_.shape))


@rule("stablehlo.reduce")
def _lower_reduce(operation: Operation) -> Sequence[int]:
    dimensions = operation.ints("dimensions")
    if len(operation.types) == 2:
        return _arg_reduce(operation, dimensions)
    kind = kind_of(operation.regions[0], operation.types[0].dtype) if len(operation.types) == 1 else None
    if kind is None:
        raise operation.refuse("the IPU combines elements with a single operation, not a function", _ONE_KIND)
    x, start = operation.inputs
    return [with_start(operation.builder, reduce(operation.builder, x, dimensions, kind), start, kind)]


def _arg_reduce(operation: Operation, dimensions: Sequence[int]) -> Sequence[int]:
    """The extreme along one dimension, and its position."""
    builder = operation.builder
    x, places = operation.inputs[:2]
    kind = extreme_of(operation.walk, operation.regions[0], operation.types)
    if kind is None or len(dimensions) != 1 or not counts_along(builder, places, dimensions[0]):
        raise operation.refuse(
            "the IPU combines pairs only if they are extremes and their positions", _ONE_KIND
        )
    old, index = builder.types[x], builder.types[places]
    shape = operation.types[0].shape
    if old.size == 0:
        return [views.splat_like(builder, start, shape) for start in operation.inputs[2:]]
    dtype = "u32" if old.dtype == "bool" else native(old.dtype)
    wide = elementwise.convert(builder, x, dtype)
    types = (ArrayType(dtype, shape), ArrayType("s32", shape))
    value, place = builder.add("arg_reduce", (wide,), types, (dimensions,), (kind,))
    return [elementwise.convert(builder, value, old.dtype), elementwise.convert(builder, place, index.dtype)]


@rule("stablehlo.reduce_window")
def _lower_reduce_window(operation: Operation) -> Sequence[int]:
    (type_,) = operation.types[:1]
    kind = kind_of(operation.regions[0], type_.dtype) if len(operation.types) == 1 else None
    if kind is None:
        raise operation.refuse("the IPU combines elements with a single operation, not a function", _ONE_KIND)
    (old, _), (x, start) = operation.input_types(), operation.inputs
    ones = (1,) * len(old.shape)
    window = operation.ints("window_dimensions")
    strides, base, holes = (
        operation.ints(name, ones) for name in ("window_strides", "base_dilations", "window_dilations")
    )
    padding = operation.ints("padding", (0,) * (2 * len(ones)))
    if strides == base == holes == ones:
        scanned = _cumulative(operation.builder, x, window, padding, kind)
        if scanned is not None:
            return [with_start(operation.builder, scanned, start, kind)]
    if np.prod(window) > MAX_WINDOW:
        raise operation.refuse(
            f"a window of {np.prod(window)} elements exceeds the limit of {MAX_WINDOW}", "Pool in two steps"
        )
    gaps = [dilation - 1 for dilation in base]
    padded = views.pad(operation.builder, x, start, padding[::2], padding[1::2], gaps)
    pooled = _pool(operation.builder, padded, type_, (window, strides, holes), kind)
    return [with_start(operation.builder, pooled, start, kind)]


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
    wide = elementwise.convert(builder, x, native(type_.dtype))
    computed = ArrayType(native(type_.dtype), type_.shape)
    scanned = builder.one("cumulative", (wide,), computed, ((dimension, reverse),), (kind,))
    return elementwise.convert(builder, scanned, type_.dtype)


def _pool(
    builder: Builder, padded: int, type_: ArrayType, shape: tuple[Sequence[int], ...], kind: str
) -> int:
    """Combine slices, one for each position within the window."""
    window, strides, holes = shape
    pooled = None
    for place in itertools.product(*map(range, window)):
        starts = [position * hole for position, hole in zip(place, holes, strict=True)]
        limits = [
            start + (n - 1) * stride + 1
            for start, n, stride in zip(starts, type_.shape, strides, strict=True)
        ]
        piece = views.cut(builder, padded, starts, limits, strides)
        pooled = piece if pooled is None else elementwise.binary(builder, kind, pooled, piece)
    return builder.splat(zero_of(kind, type_.dtype), type_) if pooled is None else pooled
