"""Reductions and scatters that combine elements with a function, which is applied to whole arrays.

The function is elementwise, with branches and loops (`control_of_elements`): each of its operations is lowered once, on
arrays. Reductions combine neighbours, which keeps their order, in as many steps as the length has bits.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from snnjax.ipu.lowering import pairs, views
from snnjax.ipu.lowering.builder import Builder
from snnjax.ipu.lowering.operation import Operation, Walk
from snnjax.ipu.lowering.rules import elementwise
from snnjax.ipu.lowering.rules.batching import Indices
from snnjax.ipu.lowering.types import ArrayType

Combine = Callable[[Sequence[int], Sequence[int]], list[int]]


def function_of(operation: Operation) -> Combine:
    """The function of scalars in an operation's region, for all elements of two tuples of arrays of one shape."""
    walk, block = operation.walk, operation.regions[0].blocks[0]

    def combine(x: Sequence[int], y: Sequence[int]) -> list[int]:
        outer, walk.shape = walk.shape, walk.builder.types[x[0]].shape
        try:
            return [for_all(walk, value) for value in walk.block(block, [*x, *y])]
        finally:
            walk.shape = outer

    return combine


def for_all(walk: Walk, value: int) -> int:
    """A value for all elements of the arrays to which a block of scalars is applied."""
    if walk.shape is None or walk.builder.types[value].shape == walk.shape:
        return value
    return pairs.splat_like(walk.builder, value, walk.shape)


def selected(builder: Builder, condition: int, x: int, y: int) -> int:
    """Elements of `x` where the condition holds, else of `y`; real or complex."""
    return pairs.map_parts(builder, lambda *part: elementwise.select(builder, condition, *part), x, y)


def _arranged(builder: Builder, x: int, order: Sequence[int], shape: Sequence[int]) -> int:
    """The dimensions transposed, then reshaped to `shape`."""
    return pairs.map_parts(
        builder, lambda part: views.reshape(builder, views.transpose(builder, part, order), shape), x
    )


def reduce(operation: Operation) -> list[int]:
    """Reduce any number of arrays along the same dimensions."""
    builder, count = operation.builder, len(operation.types)
    arrays, starts = operation.inputs[:count], operation.inputs[count:]
    dimensions, old = operation.ints("dimensions"), builder.types[arrays[0]].shape
    if not dimensions:
        return arrays
    kept = [d for d in range(len(old)) if d not in dimensions]
    shape = tuple(old[d] for d in kept)
    length = math.prod(old[d] for d in dimensions)
    if length == 0:
        return [pairs.splat_like(builder, start, shape) for start in starts]
    rows = [_arranged(builder, x, (*dimensions, *kept), (length, *shape)) for x in arrays]
    combine = function_of(operation)
    starts = [pairs.splat_like(builder, start, (1, *shape)) for start in starts]
    reduced = combine(starts, _rows_combined(builder, combine, rows))
    return [pairs.map_parts(builder, lambda part: views.reshape(builder, part, shape), x) for x in reduced]


def _rows_combined(builder: Builder, combine: Combine, rows: Sequence[int]) -> Sequence[int]:
    """All rows combined into one, pairs of neighbours first."""
    length = builder.types[rows[0]].shape[0]
    if length == 1:
        return rows
    even = length - length % 2
    halves = [[pairs.cut_along(builder, x, 0, first, even, 2) for x in rows] for first in (0, 1)]
    combined = _rows_combined(builder, combine, combine(*halves))
    if even == length:
        return combined
    return combine(combined, [pairs.cut_along(builder, x, 0, even, length) for x in rows])


class Scatter(NamedTuple):
    """The operands and dimension numbers of a scatter."""

    at: Indices
    window: tuple[int, ...]  # dimensions of the updates that are not dimensions of the indices
    updates: Sequence[int]


def scatter(operation: Operation, arrays: Sequence[int], scattered: Scatter, at: Indices) -> list[int]:
    """Gather the elements, combine them, and write them: at once if no index repeats, else one by one.

    `at` holds the indices in the form that is fastest for doing all at once.
    """
    combine = function_of(operation)
    if operation.flag("unique_indices") or _are_apart(operation.builder, scattered):
        return _combined_at(operation.builder, arrays, scattered._replace(at=at), combine)
    return _one_by_one(operation.builder, arrays, scattered, combine)


def _are_apart(builder: Builder, scattered: Scatter) -> bool:
    """Whether the indices are constants without repetition, and each window is one element."""
    at, known = scattered.at, builder.constants.get(scattered.at.value)
    shape = builder.types[at.value].shape
    if math.prod(n for d, n in enumerate(shape) if d != at.vector) == 1:
        return True
    if known is None or at.operand_batching or not set(at.index_map) <= set(at.single):
        return False
    rows = np.moveaxis(known, at.vector, -1) if at.vector < known.ndim else known[..., None]
    rows = rows.reshape(-1, rows.shape[-1])
    return len(np.unique(rows, axis=0)) == len(rows)


def _combined_at(builder: Builder, arrays: Sequence[int], scattered: Scatter, combine: Combine) -> list[int]:
    at, window, updates = scattered
    shape = builder.types[updates[0]].shape
    taken = iter(shape[d] for d in window)
    single = (*at.single, *at.operand_batching)
    sizes = [1 if d in single else next(taken) for d in range(len(builder.types[arrays[0]].shape))]
    old = [pairs.map_parts(builder, lambda x: at.gather(builder, x, shape, window, sizes), x) for x in arrays]
    return [
        pairs.map_parts(builder, lambda x, y: at.scatter(builder, x, y, window, "set"), *each)
        for each in zip(arrays, combine(old, updates), strict=True)
    ]


def _one_by_one(builder: Builder, arrays: Sequence[int], scattered: Scatter, combine: Combine) -> list[int]:
    """A loop over the updates, in their order."""
    rows = _in_rows(builder, scattered)
    types_of_arrays = [builder.types[x] for x in arrays]
    count, counter = builder.types[rows.at.value].shape[0], ArrayType("s32", ())

    def body(parameters: Sequence[int]) -> list[int]:
        number, zero = parameters[0], builder.splat(0, counter)

        def row(x: int) -> int:
            type_ = builder.types[x]
            sizes = (1, *type_.shape[1:])
            starts = (number, *(zero for _ in type_.shape[1:]))
            return builder.one("dynamic_slice", (x, *starts), ArrayType(type_.dtype, sizes), (sizes,))

        one = rows._replace(
            at=rows.at._replace(value=row(rows.at.value)),
            updates=[pairs.map_parts(builder, row, x) for x in rows.updates],
        )
        new = _combined_at(builder, pairs.join(builder, types_of_arrays, parameters[1:]), one, combine)
        following = elementwise.binary(builder, "add", number, builder.splat(1, counter))
        return [following, *pairs.split(builder, new)]

    types = [counter, *pairs.real_types(types_of_arrays)]
    block = builder.block(types, body, is_loop=True)
    initial = [builder.splat(0, counter), *pairs.split(builder, arrays)]
    results = builder.add("repeat", initial, types, ((count,),), blocks=[block])
    return pairs.join(builder, types_of_arrays, results[1:])


def _in_rows(builder: Builder, scattered: Scatter) -> Scatter:
    """Indices ``[updates, dimensions]`` without batching dimensions, updates ``[updates, *window]``."""
    at = scattered.at
    shape = builder.types[at.value].shape
    outer = [d for d in range(len(shape)) if d != at.vector]
    sizes = [shape[d] for d in outer]
    count, depth = math.prod(sizes), len(at.index_map)
    order = [*outer, at.vector] if at.vector < len(shape) else outer
    value = elementwise.convert(builder, _arranged(builder, at.value, order, (count, depth)), "s32")
    columns = [
        views.reshape(
            builder, views.iota(builder, ArrayType("s32", tuple(sizes)), outer.index(d)), (count, 1)
        )
        for d in at.indices_batching
    ]
    in_rows = Indices(
        views.concatenate(builder, [value, *columns], 1),
        1,
        (*at.index_map, *at.operand_batching),
        tuple(sorted((*at.single, *at.operand_batching))),
        (),
        (),
        (0,) * (depth + len(columns)),
    )
    return Scatter(in_rows, *_updates_in_rows(builder, scattered, count))


def _updates_in_rows(builder: Builder, scattered: Scatter, count: int) -> tuple[tuple[int, ...], Any]:
    window = scattered.window
    shape = builder.types[scattered.updates[0]].shape
    order = [*(d for d in range(len(shape)) if d not in window), *window]
    new = (count, *(shape[d] for d in window))
    rows = [_arranged(builder, x, order, new) for x in scattered.updates]
    return tuple(range(1, len(new))), rows
