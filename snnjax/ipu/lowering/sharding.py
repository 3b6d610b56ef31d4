"""How an array is sharded over IPUs."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from snnjax.ipu.lowering.types import ArrayType


class Sharding(NamedTuple):
    """The mesh axes that each dimension is sharded over, and those that a sum is still pending over."""

    mesh: tuple[tuple[str, int], ...]  # names and sizes of the axes
    axes: tuple[tuple[str, ...], ...]  # of each dimension, major to minor
    unreduced: frozenset[str] = frozenset()

    def count(self, axes: Sequence[str]) -> int:
        """The number of IPUs along these axes."""
        sizes = dict(self.mesh)
        return math.prod(sizes[axis] for axis in axes)

    def parts(self) -> tuple[int, ...]:
        """The number of parts of each dimension."""
        return tuple(map(self.count, self.axes))

    def is_replicated(self) -> bool:
        """Whether every IPU holds the whole array."""
        return not self.unreduced and all(part == 1 for part in self.parts())

    def local(self, type_: ArrayType) -> ArrayType:
        """The type of one IPU's shard."""
        shape = tuple(n // part for n, part in zip(type_.shape, self.parts(), strict=True))
        return ArrayType(type_.dtype, shape)


Groups = tuple[tuple[int, ...], tuple[int, int]]


def groups_along(mesh: Sequence[tuple[str, int]], chosen: Sequence[str]) -> Groups:
    """The groups of partitions that only differ along the chosen axes: flat, with their number and size."""
    sizes = dict(mesh)
    numbers = np.arange(math.prod(sizes.values())).reshape(tuple(sizes.values()))
    others = [place for place, name in enumerate(sizes) if name not in chosen]
    order = [*others, *(list(sizes).index(name) for name in chosen)]
    groups = numbers.transpose(order).reshape(-1, math.prod(sizes[name] for name in chosen))
    return tuple(map(int, groups.ravel())), (groups.shape[0], groups.shape[1])
