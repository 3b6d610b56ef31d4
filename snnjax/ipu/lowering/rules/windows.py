"""Windows of arrays: small ones are combined element by element, large ones axis by axis.

Along an axis, neighbours are combined until each place holds a power of two of them; a window is made of those that its
size is the sum of. That takes twice as many steps as the size has bits, and keeps the order.
"""

import functools
import itertools
import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from snnjax.ipu.lowering import pairs, views
from snnjax.ipu.lowering.builder import Builder
from snnjax.ipu.lowering.rules import elementwise
from snnjax.ipu.lowering.rules.by_function import Combine, selected

# The most elements of windows that are combined one by one. Of sums over float32[8, 64, 64, 16], on 1472 modelled tiles
# without the host, windows of 3 by 3 take 5.9 thousand cycles so and 9.2 axis by axis, of 2 by 2 side by side 1.3 and
# 6.8, of 5 by 5 12 and 13. Maxima, which take nine times the instructions, 17 and 15, 2.5 and 6.8, 46 and 22.
SMALL_WINDOW = 9


class Windows(NamedTuple):
    """The geometry of windows, one number per dimension."""

    sizes: Sequence[int]
    strides: Sequence[int]
    base: Sequence[int]  # dilation of the array
    holes: Sequence[int]  # dilation of the window
    padding: Sequence[int]  # before, after

    @property
    def is_large(self) -> bool:
        """Whether the windows are combined axis by axis."""
        return math.prod(self.sizes) > SMALL_WINDOW

    @property
    def has_gaps(self) -> bool:
        """Whether windows hold places without an element, around the array or between its elements."""
        return any(n > 0 for n in self.padding) or any(n > 1 for n in self.base)


def pool(
    builder: Builder, arrays: Sequence[int], windows: Windows, shape: Sequence[int], combine: Combine
) -> Sequence[int]:
    """The combined windows of padded arrays, of which there are `shape`."""
    if windows.is_large:
        for dimension in reversed(range(len(shape))):
            arrays = _along(builder, arrays, dimension, windows, shape[dimension], combine)
        return arrays

    def at(place: Sequence[int], x: int) -> int:
        starts = [position * hole for position, hole in zip(place, windows.holes, strict=True)]
        ends = zip(starts, shape, windows.strides, strict=True)
        limits = [start + (n - 1) * stride + 1 for start, n, stride in ends]
        return pairs.map_parts(
            builder, lambda part: views.cut(builder, part, starts, limits, windows.strides), x
        )

    places = itertools.product(*map(range, windows.sizes))
    slices = ([at(place, x) for x in arrays] for place in places)
    return functools.reduce(combine, slices)


def pool_from(
    builder: Builder,
    arrays: Sequence[int],
    starts: Sequence[int],
    windows: Windows,
    shape: Sequence[int],
    combine: Combine,
) -> Sequence[int]:
    """The elements of each window, combined with the starts.

    As in XLA's compilers, a place without an element does not count, even where a start changes what it is combined
    with; so each place carries whether there is an element.
    """
    beside = [padded(builder, x, start, windows) for x, start in zip(arrays, starts, strict=True)]
    starts = [pairs.splat_like(builder, start, shape) for start in starts]
    if not windows.has_gaps:
        return combine(starts, pool(builder, beside, windows, shape, combine))

    def combine_elements(x: Sequence[int], y: Sequence[int]) -> list[int]:
        (*x, is_x), (*y, is_y) = x, y
        both = combine(x, y)
        one = [selected(builder, is_x, *each) for each in zip(x, y, strict=True)]
        is_both = elementwise.binary(builder, "and", is_x, is_y)
        chosen = [selected(builder, is_both, *each) for each in zip(both, one, strict=True)]
        return [*chosen, elementwise.binary(builder, "or", is_x, is_y)]

    yes, no = (builder.constant(np.array(each)) for each in (True, False))
    there = padded(builder, views.splat_like(builder, yes, builder.types[arrays[0]].shape), no, windows)
    pooled = pool(builder, [*beside, there], windows, shape, combine_elements)
    return combine_elements([*starts, views.splat_like(builder, yes, shape)], pooled)[:-1]


def _along(
    builder: Builder, arrays: Sequence[int], dimension: int, windows: Windows, count: int, combine: Combine
) -> Sequence[int]:
    """So many windows along one dimension."""
    size, stride, hole = (each[dimension] for each in (windows.sizes, windows.strides, windows.holes))

    def cut(xs: Sequence[int], start: int, limit: int, stride: int = 1) -> list[int]:
        return [pairs.cut_along(builder, x, dimension, start, limit, stride) for x in xs]

    combined: Sequence[int] = []
    # Each place of `powers` holds `power` elements, each of `whole` the first `done`.
    powers, power, done = arrays, 1, 0
    while True:
        if size & power:
            start = done * hole
            pieces = cut(powers, start, start + (count - 1) * stride + 1, stride)
            combined, done = combine(combined, pieces) if combined else pieces, done + power
        if 2 * power > size:
            return combined
        length, step = builder.types[powers[0]].shape[dimension], power * hole
        powers, power = combine(cut(powers, 0, length - step), cut(powers, step, length)), 2 * power


def padded(builder: Builder, x: int, filler: int, windows: Windows) -> int:
    """An array with a single element around and between its elements."""
    gaps = [dilation - 1 for dilation in windows.base]
    low, high = windows.padding[::2], windows.padding[1::2]
    return pairs.map_parts(
        builder, lambda part, fill: views.pad(builder, part, fill, low, high, gaps), x, filler
    )
