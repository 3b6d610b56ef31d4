"""Errors of the exchange by NIR, and numbers of a graph that others wrote."""

from typing import Any, NoReturn

import numpy as np

from snnjax import _check

# A file may declare any length: what no machine holds is refused before it is asked for.
MAX_NEURONS = 2**31 - 1


def refuse(expected: str, actual: object, way_out: str) -> NoReturn:
    """Say what is wrong with a graph that is read."""
    _check.fail("from_nir", "graph", expected, actual, way_out)


def require(condition: Any, expected: str, actual: object, way_out: str) -> None:
    """Refuse unless `condition` holds."""
    if not condition:
        refuse(expected, actual, way_out)


def numbers(name: str, node: Any, field: str) -> np.ndarray:
    """A field of a node as float64, all of them finite."""
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


def whole(name: str, node: Any, field: str, count: int, least: int) -> tuple[int, ...]:
    """A field of integers, one an axis; a number alone stands for all axes."""
    array = numbers(name, node, field)
    good = (
        array.size in (1, count) and (array == array.round()).all() and (np.abs(array) <= MAX_NEURONS).all()
    )
    good = good and (array >= least).all()
    expected = f"hold {count} integers of at least {least} in {name}.{field}"
    require(good, expected, array.tolist(), "Write one an axis of space")
    each = np.broadcast_to(array.reshape(-1), (count,))
    return tuple(int(number) for number in each)
