"""Analysis of the small functions inside operations: a reduction's kind, a comparator's order.

A function that can be written in many ways is evaluated: lowered with constant arguments, it folds to its results.
"""

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from snnjax._jax_compat import Value, ir
from snnjax.ipu.lowering import pairs
from snnjax.ipu.lowering.errors import Unsupported
from snnjax.ipu.lowering.operation import Walk
from snnjax.ipu.lowering.types import COMPLEX, ArrayType, is_floating, numpy_dtype

KINDS = frozenset({"add", "multiply", "maximum", "minimum", "and", "or", "xor"})
_OF_BOOLS = {"add": "or", "maximum": "or", "multiply": "and", "minimum": "and"}


def _body(region: ir.Region) -> tuple[list[Value], list[ir.Operation], list[Value]]:
    """The arguments of a region, its operations, and its results; constraints of their sharding say nothing here."""
    block = region.blocks[0]
    operations = [view.operation for view in block.operations]
    computed = [each for each in operations[:-1] if each.name != "sdy.sharding_constraint"]
    inner = {each.results[0]: each.operands[0] for each in operations[:-1] if each not in computed}
    return list(block.arguments), computed, [inner.get(value, value) for value in operations[-1].operands]


def kind_of(region: ir.Region, dtype: str) -> str | None:
    """The kind of a reduction whose region combines two elements with a single operation, or None.

    For complex numbers it is the sum or nothing, because only the sum is that of the parts.
    """
    arguments, operations, returned = _body(region)
    if len(operations) != 1 or len(arguments) != 2 or returned != list(operations[0].results):
        return None
    kind = operations[0].name.removeprefix("stablehlo.")
    if kind not in (("add",) if dtype == COMPLEX else KINDS) or set(operations[0].operands) != set(arguments):
        return None
    return _OF_BOOLS.get(kind, kind) if dtype == "bool" else kind


def is_overwriting(region: ir.Region) -> bool:
    """Whether a region of two elements returns the second."""
    arguments, operations, returned = _body(region)
    return not operations and len(arguments) == 2 and returned == arguments[1:]


def ask(walk: Walk, region: ir.Region, arguments: Sequence[np.ndarray]) -> list[np.ndarray] | None:
    """The results of a scalar region for each element of the arguments, or None if it does not fold.

    Of a complex argument these are its real and its imaginary part.
    """
    builder, block = walk.builder, region.blocks[0]
    types = [walk.array_type(argument.type) for argument in block.arguments]
    answers: list[int] = []

    def body(_: list[int]) -> list[int]:
        values = [builder.constant(array) for array in arguments]
        answers.extend(walk.block(block, pairs.join(builder, types, values)))
        return answers

    try:
        builder.block((), body)
    except Unsupported:
        return None
    arrays = [builder.constants.get(answer) for answer in answers]
    if any(array is None for array in arrays):
        return None
    return [np.broadcast_to(array, arguments[0].shape) for array in arrays if array is not None]


def samples(dtype: str) -> list[Any]:
    """A few numbers in ascending order."""
    numpy = numpy_dtype(dtype)
    if dtype == "bool":
        return [False, True]
    if is_floating(dtype):
        return [-np.inf, -2.0, 0.0, 1.5, np.inf]
    limits = np.iinfo(numpy)
    return [limits.min, 1, 2, limits.max]


def extreme_of(walk: Walk, region: ir.Region, types: Sequence[ArrayType]) -> str | None:
    """``maximum`` or ``minimum`` if a region keeps the extreme of two (element, position) pairs, or None.

    A NaN wins over numbers, and the lower position among equal elements; of two NaNs either may win.
    """
    value, place = (type_.dtype for type_ in types)
    numbers = samples(value) + ([np.nan] if is_floating(value) else [])
    grid = [
        each
        for each in itertools.product(numbers, (0, 1), numbers, (0, 1))
        if each[0] == each[0] or each[2] == each[2]
    ]
    columns = zip(zip(*grid, strict=True), (value, place) * 2, strict=True)
    x, i, y, j = (np.array(column, numpy_dtype(dtype)) for column, dtype in columns)
    answers = ask(walk, region, (x, i, y, j))
    if answers is None:
        return None
    for kind, before in (("maximum", np.greater), ("minimum", np.less)):
        with np.errstate(invalid="ignore"):
            first = np.where(x == y, i <= j, (before(x, y) & (y == y)) | (x != x))
        places = np.array_equal(answers[1], np.where(first, i, j))
        if places and np.array_equal(answers[0], np.where(first, x, y), equal_nan=is_floating(value)):
            return kind
    return None
