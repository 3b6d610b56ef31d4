"""What the small functions inside of operations do: a reduction's kind, a comparator's order.

Where there are many ways to write one, it is asked: lowered with constants for its arguments, it folds to its answers.
"""

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from snnjax.ipu.lowering.errors import Unsupported
from snnjax.ipu.lowering.types import ArrayType, is_floating, numpy_dtype

KINDS = frozenset({"add", "multiply", "maximum", "minimum", "and", "or", "xor"})
_OF_BOOLS = {"add": "or", "maximum": "or", "multiply": "and", "minimum": "and"}


def _body(region: Any) -> tuple[list[Any], list[Any], list[Any]]:
    """The arguments of a region, its operations, and what it returns."""
    block = region.blocks[0]
    operations = [view.operation for view in block.operations]
    return list(block.arguments), operations[:-1], list(operations[-1].operands)


def kind_of(region: Any, dtype: str) -> str | None:
    """The kind of a reduction whose region combines two elements by one operation, or None."""
    arguments, operations, returned = _body(region)
    if len(operations) != 1 or len(arguments) != 2 or returned != list(operations[0].results):
        return None
    kind = operations[0].name.removeprefix("stablehlo.")
    if kind not in KINDS or set(operations[0].operands) != set(arguments):
        return None
    return _OF_BOOLS.get(kind, kind) if dtype == "bool" else kind


def is_overwriting(region: Any) -> bool:
    """Whether a region of two elements returns the second."""
    arguments, operations, returned = _body(region)
    return not operations and len(arguments) == 2 and returned == arguments[1:]


def ask(walk: Any, region: Any, arguments: Sequence[np.ndarray]) -> list[np.ndarray] | None:
    """What a region on scalars yields for each of the arguments' elements, or None if it does not fold."""
    builder = walk.builder
    answers: list[int] = []

    def body(_: list[int]) -> list[int]:
        answers.extend(walk.block(region.blocks[0], [builder.constant(array) for array in arguments]))
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
    """A few numbers in order."""
    numpy = numpy_dtype(dtype)
    if dtype == "bool":
        return [False, True]
    if is_floating(dtype):
        return [-np.inf, -2.0, 0.0, 1.5, np.inf]
    limits = np.iinfo(numpy)
    return [limits.min, 1, 2, limits.max]


def extreme_of(walk: Any, region: Any, types: Sequence[ArrayType]) -> str | None:
    """``maximum`` or ``minimum`` where a region keeps the extreme of two (element, place) pairs, or None.

    A NaN comes before all, and the lower place among equals; of two NaNs any will do.
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
