"""Complex numbers as pairs of float32: one value while lowering, whose real and imaginary parts are values of the plan.

No instruction handles them: in host memory, where the two parts of an element are adjacent, they are f32[..., 2].
"""

from collections.abc import Callable, Sequence

from snnjax.ipu.lowering import views
from snnjax.ipu.lowering.builder import Builder
from snnjax.ipu.lowering.types import COMPLEX, ArrayType


def part_type(type_: ArrayType) -> ArrayType:
    """The type of either part."""
    return type_._replace(dtype="f32")


def pair(builder: Builder, real: int, imaginary: int) -> int:
    """A new complex value with these parts."""
    value = builder.value(builder.types[real]._replace(dtype=COMPLEX))
    builder.parts[value] = (real, imaginary)
    return value


def empty(builder: Builder, type_: ArrayType) -> int:
    """The empty array of a type."""
    if type_.dtype != COMPLEX:
        return views.empty(builder, type_)
    part = views.empty(builder, part_type(type_))
    return pair(builder, part, part)


def map_parts(builder: Builder, function: Callable[..., int], *values: int) -> int:
    """Apply `function` to values, or to their real and to their imaginary parts."""
    if values[0] not in builder.parts:
        return function(*values)
    return pair(builder, *map(function, *(builder.parts[value] for value in values)))


def cut_along(builder: Builder, value: int, dimension: int, start: int, limit: int, stride: int = 1) -> int:
    """The elements from `start` up to `limit` along one dimension, in steps of `stride`."""
    return map_parts(builder, lambda x: views.cut_along(builder, x, dimension, start, limit, stride), value)


def splat_like(builder: Builder, scalar: int, shape: Sequence[int]) -> int:
    """A single element repeated over `shape`."""
    return map_parts(builder, lambda x: views.splat_like(builder, x, shape), scalar)


def real_types(types: Sequence[ArrayType]) -> list[ArrayType]:
    """The types of all parts, one after the other."""
    return [
        part for type_ in types for part in ([part_type(type_)] * 2 if type_.dtype == COMPLEX else [type_])
    ]


def split(builder: Builder, values: Sequence[int]) -> list[int]:
    """All parts, one after the other."""
    return [part for value in values for part in builder.parts.get(value, (value,))]


def join(builder: Builder, types: Sequence[ArrayType], parts: Sequence[int]) -> list[int]:
    """The values of these types whose parts `split` yielded."""
    rest = iter(parts)
    return [
        pair(builder, next(rest), next(rest)) if type_.dtype == COMPLEX else next(rest) for type_ in types
    ]


def complex_places(types: Sequence[ArrayType]) -> list[int]:
    """The positions of complex types."""
    return [place for place, type_ in enumerate(types) if type_.dtype == COMPLEX]


def host_types(types: Sequence[ArrayType]) -> list[ArrayType]:
    """The types of the arrays in host memory."""
    return [ArrayType("f32", (*type_.shape, 2)) if type_.dtype == COMPLEX else type_ for type_ in types]


def from_host(builder: Builder, types: Sequence[ArrayType], values: Sequence[int]) -> list[int]:
    """Convert parameters to values of the lowering."""

    def part(value: int, place: int) -> int:
        shape = builder.types[value].shape
        if builder.types[value].size == 0:
            return views.empty(builder, ArrayType("f32", shape[:-1]))
        cut = views.cut_along(builder, value, len(shape) - 1, place, place + 1)
        return views.reshape(builder, cut, shape[:-1])

    return [
        pair(builder, part(value, 0), part(value, 1)) if type_.dtype == COMPLEX else value
        for type_, value in zip(types, values, strict=True)
    ]


def to_host(builder: Builder, values: Sequence[int]) -> list[int]:
    """Convert values of the lowering to results."""

    def side_by_side(value: int) -> int:
        shape = builder.types[value].shape
        if builder.types[value].size == 0:
            return views.empty(builder, ArrayType("f32", (*shape, 2)))
        parts = [views.reshape(builder, part, (*shape, 1)) for part in builder.parts[value]]
        return views.concatenate(builder, parts, len(shape))

    return [side_by_side(value) if value in builder.parts else value for value in values]
