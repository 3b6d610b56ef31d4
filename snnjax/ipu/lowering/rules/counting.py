"""Recognise arrays that are an iota along a dimension, and indices whose negative values count from the end."""

import numpy as np

from snnjax.ipu.lowering import views
from snnjax.ipu.lowering.builder import Builder
from snnjax.ipu.lowering.plan import Instruction


def counts_along(builder: Builder, value: int, dimension: int) -> bool:
    """Whether a value is an iota along `dimension`."""
    shape = builder.types[value].shape
    array = builder.constants.get(value)
    if array is not None:
        places = [1] * len(shape)
        places[dimension] = -1
        return bool(np.all(array == np.arange(shape[dimension]).reshape(places)))
    definition = builder.definitions.get(value)
    if definition is None:
        return False
    match definition.op:
        case "iota":
            return definition.ints == ((dimension,),)
        case "broadcast_in_dim":
            (dimensions,) = definition.ints
            (inner,) = definition.inputs
            if dimension not in dimensions:
                return False
            place = dimensions.index(dimension)
            same = builder.types[inner].shape[place] == shape[dimension]
            return same and counts_along(builder, inner, place)
        case "reshape":
            return _of_reshaped(builder, definition.inputs[0], shape, dimension)
        case "elementwise":
            kept = _what_is_kept(builder, definition)
            return kept is not None and counts_along(builder, kept, dimension)
    return False


def _of_reshaped(builder: Builder, inner: int, shape: tuple[int, ...], dimension: int) -> bool:
    """The same through a reshape that only adds or removes dimensions of size 1."""
    longer = [d for d, n in enumerate(shape) if n > 1]
    of_inner = [d for d, n in enumerate(builder.types[inner].shape) if n > 1]
    lengths = [shape[d] for d in longer], [builder.types[inner].shape[d] for d in of_inner]
    if lengths[0] != lengths[1] or dimension not in longer:
        return False
    return counts_along(builder, inner, of_inner[longer.index(dimension)])


def _what_is_kept(builder: Builder, definition: Instruction) -> int | None:
    """The operand that a program keeps if it is not negative: conversions, or ``where(i < 0, i + n, i)``."""
    operations = {step.operation.partition(".")[0] for step in definition.steps}
    if operations <= {"load", "wrap"}:
        return definition.inputs[0]
    return _where_below_zero(builder, definition)


def _where_below_zero(builder: Builder, definition: Instruction) -> int | None:
    """`i` of ``where(i < 0, ..., i)``."""
    operations = [step.operation.partition(".")[0] for step in definition.steps]
    if operations != ["load", "load", "load", "select"] or len(definition.inputs) != 3:
        return None
    condition, _, otherwise = definition.inputs
    compared = builder.definitions.get(condition)
    if compared is None or compared.inputs != (otherwise,):
        return None
    below_zero = [("load.s32", (0,)), ("constant.s32", (0,)), ("lt.s32", (0, 1))]
    return otherwise if list(compared.steps) == below_zero else None


def counted_from_end(builder: Builder, value: int, size: int) -> tuple[int, int]:
    """`i` and `size` for a view of ``where(i < 0, i + size, i)``, JAX's form of indices; else the value and 0."""
    definition = builder.definitions.get(value)
    if definition is None:
        return value, 0
    start, added = None, 0
    if definition.op in ("reshape", "broadcast_in_dim"):
        start, added = counted_from_end(builder, definition.inputs[0], size)
    elif definition.op == "elementwise":
        start = _where_below_zero(builder, definition)
        added = size if start is not None and _adds(builder, definition.inputs[1], start, size) else 0
    if start is None or not added:
        return value, 0
    shape = builder.types[value].shape
    if definition.op == "reshape":
        return views.reshape(builder, start, shape), added
    if definition.op == "broadcast_in_dim":
        return views.broadcast(builder, start, shape, definition.ints[0]), added
    return start, added


def _adds(builder: Builder, value: int, to: int, size: int) -> bool:
    """Whether a value is ``to + size`` in int32."""
    definition = builder.definitions.get(value)
    if definition is None or definition.op != "elementwise" or definition.inputs != (to,):
        return False
    more = [("load.s32", (0,)), ("constant.s32", (size,)), ("add.s32", (0, 1))]
    return list(definition.steps) == more
