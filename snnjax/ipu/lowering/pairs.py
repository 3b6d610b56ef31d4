"""Complex numbers as pairs of float32: one value of the walk whose real and imaginary parts are values of the plan.

No instruction knows them: the host's memory, where the parts of an element lie side by side, is an array f32[..., 2].
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
    """The array without elements."""
    if type_.dtype != COMPLEX:
        return views.empty(builder, type_)
    part = views.empty(builder, part_type(type_))
    return pair(builder, part, part)


def map_parts(builder: Builder, function: Callable[[int], int], value: int) -> int:
    """`function` of a value, or of both of its parts."""
    if value not in builder.parts:
        return function(value)
    return pair(builder, *map(function, builder.parts[value]))


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
    """Where complex numbers stand."""
    return [place for place, type_ in enumerate(types) if type_.dtype == COMPLEX]


def host_types(types: Sequence[ArrayType]) -> list[ArrayType]:
    """How arrays lie in the host's memory."""
    return [ArrayType("f32", (*type_.shape, 2)) if type_.dtype == COMPLEX else type_ for type_ in types]


def from_host(builder: Builder, types: Sequence[ArrayType], values: Sequence[int]) -> list[int]:
    """Parameters as values of the walk."""

    def part(value: int, place: int) -> int:
        shape = builder.types[value].shape
        if builder.types[value].size == 0:
            return views.empty(builder, ArrayType("f32", shape[:-1]))
        starts, limits = (0,) * len(shape), (*shape[:-1], place + 1)
        cut = views.cut(builder, value, (*starts[:-1], place), limits, (1,) * len(shape))
        return views.reshape(builder, cut, shape[:-1])

    return [
        pair(builder, part(value, 0), part(value, 1)) if type_.dtype == COMPLEX else value
        for type_, value in zip(types, values, strict=True)
    ]


def to_host(builder: Builder, values: Sequence[int]) -> list[int]:
    """Values of the walk as results."""

    def side_by_side(value: int) -> int:
        shape = builder.types[value].shape
        if builder.types[value].size == 0:
            return views.empty(builder, ArrayType("f32", (*shape, 2)))
        parts = [views.reshape(builder, part, (*shape, 1)) for part in builder.parts[value]]
        return views.concatenate(builder, parts, len(shape))

    return [side_by_side(value) if value in builder.parts else value for value in values]
