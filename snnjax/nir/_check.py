"""Errors of the NIR exchange, and checked numbers from graphs that others wrote."""

from typing import Any

import numpy as np

from snnjax._check import MAX_SIZE, fail, plural, short_repr
from snnjax.nir._layout import Layout

# A file may declare any length: sizes beyond any machine are rejected before allocation.
MAX_NEURONS = MAX_SIZE

# A node or a graph of the package nir, which is imported when a graph is read or written.
NIRNode = Any


def numbers(name: str, node: NIRNode, field: str) -> np.ndarray:
    """A field of a node as float64, checked to be finite."""
    value = getattr(node, field)
    if np.ma.is_masked(value):
        hint = "Fill what it hides"
        fail(f"from_nir: `graph` must hold no masked entries in {name}.{field}, got a MaskedArray. {hint}.")
    try:
        array = np.asarray(value, np.float64)
    except (TypeError, ValueError):
        array = None
    if array is None:
        actual = short_repr(value)
        fail(f"from_nir: `graph` must hold numbers in {name}.{field}, got {actual}. Write them as an array.")
    if not np.isfinite(array).all():
        actual, hint = array[~np.isfinite(array)][0], "Train or export it again"
        fail(f"from_nir: `graph` must hold finite numbers in {name}.{field}, got {actual}. {hint}.")
    return array


def per_neuron(name: str, node: NIRNode, field: str, layout: Layout) -> np.ndarray:
    """A field of a node as one value per neuron, in our order."""
    given = numbers(name, node, field)
    values = layout.ours(given)
    if values is None:
        expected = f"have values of shape {list(layout.theirs)} in {name}.{field}"
        hint = "Write one value per neuron, or one for all"
        fail(f"from_nir: `graph` must {expected}, got {list(given.shape)}. {hint}.")
    return values


def integers(name: str, node: NIRNode, field: str, count: int, least: int) -> tuple[int, ...]:
    """A field of integers, one per axis; a single number stands for all axes."""
    array = numbers(name, node, field)
    good = (
        array.size in (1, count) and (array == array.round()).all() and (np.abs(array) <= MAX_NEURONS).all()
    )
    good = good and (array >= least).all()
    if not good:
        expected = f"hold {plural(count, 'integer')} of at least {least} in {name}.{field}"
        actual = short_repr(array.tolist())
        hint = "Write one per spatial axis" if count > 1 else "Write an integer"
        fail(f"from_nir: `graph` must {expected}, got {actual}. {hint}.")
    each = np.broadcast_to(array.reshape(-1), (count,))
    return tuple(int(number) for number in each)
