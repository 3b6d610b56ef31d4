"""Errors of the NIR exchange, and checked numbers from graphs that others wrote."""

from typing import Any, NoReturn

import numpy as np

from snnjax import _check

# A file may declare any length: sizes beyond any machine are rejected before allocation.
MAX_NEURONS = _check.MAX_SIZE


def refuse(expected: str, actual: object, hint: str) -> NoReturn:
    """Raise the error that says what is wrong with a graph."""
    _check.fail("from_nir", "graph", expected, actual, hint)


def require(condition: Any, expected: str, actual: object, hint: str) -> None:
    """Raise the error unless `condition` holds."""
    if not condition:
        refuse(expected, actual, hint)


def numbers(name: str, node: Any, field: str) -> np.ndarray:
    """A field of a node as float64, checked to be finite."""
    value = getattr(node, field)
    try:
        array = np.asarray(value, np.float64)
    except (TypeError, ValueError):
        array = None
    if array is None:
        refuse(f"hold numbers in {name}.{field}", repr(value)[:80], "Write them as an array")
    good = bool(np.isfinite(array).all())
    count = f"{int((~np.isfinite(array)).sum())} that are not"
    require(good, f"hold finite numbers in {name}.{field}", count, "Train or export it again")
    return array


def integers(name: str, node: Any, field: str, count: int, least: int) -> tuple[int, ...]:
    """A field of integers, one per axis; a single number stands for all axes."""
    array = numbers(name, node, field)
    good = (
        array.size in (1, count) and (array == array.round()).all() and (np.abs(array) <= MAX_NEURONS).all()
    )
    good = good and (array >= least).all()
    expected = f"hold {count} integers of at least {least} in {name}.{field}"
    require(good, expected, array.tolist(), "Write one per spatial axis")
    each = np.broadcast_to(array.reshape(-1), (count,))
    return tuple(int(number) for number in each)
