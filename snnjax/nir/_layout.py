"""The two orders of an image's neurons: NIR's [channels, height, width], and (height, width, channels) here."""

import math
from typing import Any

import numpy as np
from jaxtyping import Num

Shape = tuple[int, ...]  # (neurons,), (length, channels) or (height, width, channels)


def channels_first(shape: Shape) -> Shape:
    """The shape in NIR's order."""
    return (shape[-1], *shape[:-1])


def channels_last(shape: Shape) -> Shape:
    """The shape in our order."""
    return (*shape[1:], shape[0])


def from_channels_first(values: Any, shape: Shape) -> Num[np.ndarray, " neurons"] | None:
    """One value per neuron in our order, from values in NIR's order: with its shape, flat, or broadcastable to it.

    None if they do not fit.
    """
    values, there = np.asarray(values), channels_first(shape)
    if values.size == math.prod(shape) and values.ndim == 1:
        values = values.reshape(there)
    try:
        full = np.broadcast_to(values, there)
    except ValueError:
        return None
    return np.moveaxis(full, 0, -1).reshape(-1)


def to_channels_first(values: Any, shape: Shape) -> np.ndarray:
    """One value per neuron in NIR's order and shape, from one value per neuron, channel or layer in ours."""
    full = np.broadcast_to(_in_shape(np.asarray(values), shape), shape)
    return np.ascontiguousarray(np.moveaxis(full, -1, 0))


def _in_shape(values: np.ndarray, shape: Shape) -> np.ndarray:
    is_per_neuron = values.ndim == 1 and values.size == math.prod(shape)
    return values.reshape(shape) if is_per_neuron else values


def rows_from_channels_first(weights: np.ndarray, shape: Shape) -> np.ndarray:
    """Rows ``[inputs, ...]`` in our order, from rows in the order of NIR's flattened image."""
    rows = weights.reshape(*channels_first(shape), -1)
    return np.moveaxis(rows, 0, len(shape) - 1).reshape(weights.shape)


def rows_to_channels_first(weights: np.ndarray, shape: Shape) -> np.ndarray:
    """The inverse of `rows_from_channels_first`."""
    rows = weights.reshape(*shape, -1)
    return np.moveaxis(rows, len(shape) - 1, 0).reshape(weights.shape)


def per_channel(values: np.ndarray, shape: Shape) -> np.ndarray | None:
    """The value of each channel, None if neurons of a channel differ."""
    rows = values.reshape(-1, shape[-1])
    return rows[0] if (rows == rows[0]).all() else None
