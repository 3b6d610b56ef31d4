"""The two orders of an image's neurons: NIR's [channels, height, width], and (height, width, channels) here."""

import math
from typing import NamedTuple

import numpy as np
from jaxtyping import Num

from snnjax._types import Unchecked

Shape = tuple[int, ...]  # (neurons,), (length, channels) or (height, width, channels)


def channels_first(shape: Shape) -> Shape:
    """The shape in NIR's order."""
    return (shape[-1], *shape[:-1])


def channels_last(shape: Shape) -> Shape:
    """The shape in our order."""
    return (*shape[1:], shape[0])


class Layout(NamedTuple):
    """The neurons of a signal, here and in NIR."""

    shape: Shape  # here
    image: Shape  # in whose order the neurons are: that of the image of which `shape` is the flattened one
    is_flat: bool = False  # whether NIR flattened them, each library in its own order

    @classmethod
    def of(cls, shape: Shape) -> "Layout":
        """That of neurons which are not flattened."""
        return cls(shape, shape)

    @property
    def theirs(self) -> Shape:
        """The shape in NIR."""
        return (math.prod(self.shape),) if self.is_flat else channels_first(self.image)

    @property
    def order(self) -> np.ndarray:
        """Our number of each neuron in NIR's order."""
        return np.moveaxis(np.arange(math.prod(self.image)).reshape(self.image), -1, 0).reshape(-1)

    def fits(self, other: "Layout") -> bool:
        """Whether two signals have the same neurons in the same order, here and in NIR."""
        is_one = self.shape == other.shape and self.theirs == other.theirs
        return is_one and (self.image == other.image or np.array_equal(self.order, other.order))

    def ours(self, values: Unchecked) -> Num[np.ndarray, " neurons"] | None:
        """One value per neuron in our order, from values in NIR's: with its shape, flat, or broadcastable to it.

        None if they do not fit.
        """
        values, there = np.asarray(values), channels_first(self.image)
        if values.size == math.prod(self.image) and values.ndim == 1:
            values = values.reshape(there)
        try:
            full = np.broadcast_to(values, there)
        except ValueError:
            return None
        return np.moveaxis(full, 0, -1).reshape(-1)

    def written(self, values: Unchecked) -> np.ndarray:
        """One value per neuron in NIR's order and shape, from one value per neuron, channel or layer in ours."""
        values = np.asarray(values)
        if values.ndim == 1 and values.size == math.prod(self.image):
            values = values.reshape(self.image)
        full = np.moveaxis(np.broadcast_to(values, self.image), -1, 0)
        return np.ascontiguousarray(full).reshape(self.theirs)


def per_channel(values: np.ndarray, shape: Shape) -> np.ndarray | None:
    """The value of each channel, None if neurons of a channel differ."""
    rows = values.reshape(-1, shape[-1])
    return rows[0] if (rows == rows[0]).all() else None
