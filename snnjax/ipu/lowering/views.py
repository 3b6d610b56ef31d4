"""Views of arrays: each function takes the cheapest way to the result, or folds it to a constant."""

from collections.abc import Sequence

import numpy as np

from snnjax.ipu.lowering.builder import MAX_CONSTANT, Builder, is_small
from snnjax.ipu.lowering.plan import is_splat
from snnjax.ipu.lowering.types import ArrayType, name_of, numpy_dtype


def _foldable(builder: Builder, value: int, size: int) -> np.ndarray | None:
    """The elements of a constant if a view of it may be folded to a constant, else None."""
    array = builder.constants.get(value)
    if array is None:
        return None
    free = size <= array.size or is_splat(array)
    return array if free or is_small(size, builder.types[value].dtype) else None


def _is_one_number(builder: Builder, values: Sequence[int]) -> bool:
    """Whether these are constants, all elements of all of which have the same bits."""
    numbers = [builder.number(value) for value in values]
    return all(each is not None and each.tobytes() == numbers[0].tobytes() for each in numbers)


def empty(builder: Builder, type_: ArrayType) -> int:
    """The empty array of a type."""
    return builder.constant(np.empty(type_.shape, numpy_dtype(type_.dtype)))


def reshape(builder: Builder, x: int, shape: Sequence[int]) -> int:
    """The same elements in the same order."""
    type_ = ArrayType(builder.types[x].dtype, tuple(shape))
    if type_ == builder.types[x]:
        return x
    array = builder.constants.get(x)
    if array is not None:
        splat = is_splat(array)
        return builder.constant(
            np.broadcast_to(array[(0,) * array.ndim], type_.shape) if splat else array.reshape(type_.shape)
        )
    repeated, definition = builder.repeated(x), builder.definitions.get(x)
    if repeated is not None:
        return splat_like(builder, repeated, shape)
    if definition is not None and definition.op == "reshape":
        return reshape(builder, definition.inputs[0], shape)
    return builder.one("reshape", (x,), type_)


def broadcast(builder: Builder, x: int, shape: Sequence[int], dimensions: Sequence[int]) -> int:
    """`x` repeated along dimensions that it lacks or that have size 1."""
    old = builder.types[x]
    type_ = ArrayType(old.dtype, tuple(shape))
    array = _foldable(builder, x, type_.size)
    if array is not None:
        places = [1] * len(shape)
        for length, dimension in zip(old.shape, dimensions, strict=True):
            places[dimension] = length
        splat = is_splat(array)
        view = (
            array[(0,) * array.ndim] if splat else np.transpose(array, np.argsort(dimensions)).reshape(places)
        )
        return builder.constant(np.broadcast_to(view, shape))
    if old.size == type_.size and tuple(sorted(dimensions)) == tuple(dimensions):
        return reshape(builder, x, shape)
    if old.size == 1:
        return builder.one("broadcast_in_dim", (reshape(builder, x, ()),), type_, ((),))
    definition = builder.definitions.get(x)
    if definition is not None and definition.op == "broadcast_in_dim":
        inner = definition.inputs[0]
        return broadcast(builder, inner, shape, [dimensions[d] for d in definition.ints[0]])
    if definition is not None and definition.op == "reshape":
        inner = definition.inputs[0]
        longer = [d for d, n in enumerate(old.shape) if n > 1]
        if builder.types[inner].shape == tuple(
            old.shape[d] for d in longer
        ):  # only dimensions of size 1 were inserted
            return broadcast(builder, inner, shape, [dimensions[d] for d in longer])
    return builder.one("broadcast_in_dim", (x,), type_, (dimensions,))


def splat_like(builder: Builder, scalar: int, shape: Sequence[int]) -> int:
    """A single element repeated over `shape`."""
    return broadcast(builder, reshape(builder, scalar, ()), shape, ())


def transpose(builder: Builder, x: int, permutation: Sequence[int]) -> int:
    """Dimension d of the result is dimension ``permutation[d]`` of `x`."""
    old = builder.types[x]
    shape = tuple(old.shape[d] for d in permutation)
    array = _foldable(builder, x, old.size)
    if array is not None:
        return builder.constant(np.transpose(array, permutation))
    definition = builder.definitions.get(x)
    if definition is not None and definition.op == "transpose":
        return transpose(builder, definition.inputs[0], [definition.ints[0][d] for d in permutation])
    if definition is not None and definition.op == "broadcast_in_dim":
        places = [list(permutation).index(d) for d in definition.ints[0]]
        if places == sorted(places):
            return broadcast(builder, definition.inputs[0], shape, places)
    longer = [d for d in permutation if old.shape[d] > 1]
    if longer == sorted(longer):
        return reshape(builder, x, shape)
    return builder.one("transpose", (x,), ArrayType(old.dtype, shape), (permutation,))


def reverse(builder: Builder, x: int, dimensions: Sequence[int]) -> int:
    """`x` reversed along these dimensions."""
    type_ = builder.types[x]
    longer = tuple(d for d in dimensions if type_.shape[d] > 1)
    if not longer or builder.number(x) is not None:
        return x
    return builder.one("reverse", (x,), type_, (longer,))


def cut(
    builder: Builder, x: int, starts: Sequence[int], limits: Sequence[int], strides: Sequence[int]
) -> int:
    """The elements from `starts` up to, but excluding, `limits`, in steps of `strides`."""
    old = builder.types[x]
    places = tuple(slice(*each) for each in zip(starts, limits, strides, strict=True))
    shape = tuple(len(range(*each)) for each in zip(starts, limits, strides, strict=True))
    type_ = ArrayType(old.dtype, shape)
    if type_ == old:
        return x
    array = _foldable(builder, x, type_.size)
    if array is not None:
        return builder.constant(array[places])
    repeated = builder.repeated(x)
    if repeated is not None:
        return splat_like(builder, repeated, shape)
    return builder.one("slice", (x,), type_, (starts, limits, strides))


def cut_along(builder: Builder, x: int, dimension: int, start: int, limit: int, stride: int = 1) -> int:
    """The elements from `start` up to `limit` along one dimension, in steps of `stride`."""
    shape = builder.types[x].shape
    bounds = [(start, limit, stride) if d == dimension else (0, n, 1) for d, n in enumerate(shape)]
    return cut(builder, x, *zip(*bounds, strict=True))


def concatenate(builder: Builder, arrays: Sequence[int], dimension: int) -> int:
    """The arrays concatenated along `dimension`."""
    arrays = [x for x in arrays if builder.types[x].shape[dimension] > 0] or list(arrays[:1])
    if len(arrays) == 1:
        return arrays[0]
    first = builder.types[arrays[0]]
    length = sum(builder.types[x].shape[dimension] for x in arrays)
    shape = (*first.shape[:dimension], length, *first.shape[dimension + 1 :])
    type_ = ArrayType(first.dtype, shape)
    constants = [builder.constants[x] for x in arrays if x in builder.constants]
    if len(constants) == len(arrays) and is_small(type_.size, type_.dtype):
        return builder.constant(np.concatenate(constants, dimension))
    if _is_one_number(builder, arrays):
        return builder.constant(np.broadcast_to(builder.number(arrays[0]), shape))
    return builder.one("concatenate", arrays, type_, ((dimension,),))


def iota(builder: Builder, type_: ArrayType, dimension: int) -> int:
    """The position along `dimension`, as an int32 or uint32."""
    if is_small(type_.size, type_.dtype):
        row = np.arange(type_.shape[dimension], dtype=numpy_dtype(type_.dtype))
        places = [1] * len(type_.shape)
        places[dimension] = -1
        return builder.constant(np.broadcast_to(row.reshape(places), type_.shape))
    return builder.one("iota", (), type_, ((dimension,),))


def constant(builder: Builder, array: np.ndarray) -> int:
    """A value with these elements; a large array of 0, 1, 2 ... in row-major order is generated by the device."""
    dtype = name_of(array.dtype)
    if dtype not in ("s32", "u32") or array.size <= MAX_CONSTANT or is_splat(array):
        return builder.constant(array)
    flat = array.reshape(-1)
    if flat[0] != 0 or not np.array_equal(flat, np.arange(flat.size, dtype=flat.dtype)):
        return builder.constant(array)
    return reshape(builder, iota(builder, ArrayType(dtype, (flat.size,)), 0), array.shape)


def pad(
    builder: Builder, x: int, filler: int, low: Sequence[int], high: Sequence[int], interior: Sequence[int]
) -> int:
    """`x` with the single element `filler` around and between its elements; negative padding cuts elements off."""
    old = builder.types[x]
    if not any((*low, *high, *interior)):
        return x
    dilated = [n + max(n - 1, 0) * gap for n, gap in zip(old.shape, interior, strict=True)]
    extended = [
        n + max(before, 0) + max(after, 0) for n, before, after in zip(dilated, low, high, strict=True)
    ]
    shape = tuple(n + before + after for n, before, after in zip(dilated, low, high, strict=True))
    if old.size == 0 or _is_one_number(builder, (x, filler)):
        return splat_like(builder, filler, shape)
    edges = ([max(n, 0) for n in low], [max(n, 0) for n in high], interior)
    padded = x
    if any(any(numbers) for numbers in edges):
        padded = builder.one(
            "pad", (x, reshape(builder, filler, ())), ArrayType(old.dtype, tuple(extended)), edges
        )
    starts = [max(-n, 0) for n in low]
    limits = [start + n for start, n in zip(starts, shape, strict=True)]
    return cut(builder, padded, starts, limits, [1] * len(shape))
