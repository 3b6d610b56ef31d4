"""`sum_pool`, `mean_pool` and `flatten`: blocks without weights, which map the ids of lists."""

import math
from dataclasses import dataclass
from typing import Any

from snnjax._check import check_integer
from snnjax.blocks.block import Block, BlockResult, Context, Op, Shape, Signal, flat, shaped
from snnjax.ops.pool_spikes import Pooling, as_pooling, pooled


@dataclass(frozen=True)
class Pooled(Op):
    """A pool before the weights of a layer."""

    pooling: Pooling


@dataclass(frozen=True)
class Flattened(Op):
    """Nothing: the op's neurons are flat."""


@dataclass(frozen=True)
class Pool(Block):
    """Sum or mean over windows; made by `sum_pool` and `mean_pool`."""

    window: int | Shape
    mean: bool

    @property
    def kind(self) -> str:  # type: ignore[override]
        """The function that makes it."""
        return "mean_pool" if self.mean else "sum_pool"

    def pooling(self, shape: Shape) -> Pooling:
        """The windows over inputs of this shape."""
        return as_pooling(self.kind, shape, self.window, self.mean)

    def out_shape(self, *shapes: Shape) -> Shape:
        """The windows, and the channels."""
        return self.pooling(*shapes).out_shape

    def apply(
        self,
        params: Any,
        state: Any,
        stats: Any,
        *signals: Signal,
        shapes: tuple[Shape, ...],
        context: Context,
    ) -> BlockResult:
        """Pool arrays, or map the ids of lists."""
        del params, state, stats, context
        (x,), (shape,) = signals, shapes
        pooling = self.pooling(shape)
        return BlockResult(shaped(pooled(pooling, flat(x)), pooling.out_shape))

    def op(self, shape: Shape) -> Pooled:
        """A pool of the fused op."""
        return Pooled(self.pooling(shape))


@dataclass(frozen=True)
class Flatten(Block):
    """The neurons of an image on one axis; made by `flatten`."""

    kind = "flatten"

    def out_shape(self, *shapes: Shape) -> Shape:
        """One axis."""
        return (math.prod(shapes[0]),)

    def apply(
        self,
        params: Any,
        state: Any,
        stats: Any,
        *signals: Signal,
        shapes: tuple[Shape, ...],
        context: Context,
    ) -> BlockResult:
        """The same neurons, flat."""
        del params, state, stats, shapes, context
        return BlockResult(flat(signals[0]))

    def op(self, shape: Shape) -> Flattened:
        """Nothing to do in the fused op."""
        del shape
        return Flattened()


def sum_pool(window: int | tuple[int, int], *, name: str | None = None, source: str | None = None) -> Pool:
    """Sum the spikes in each window; windows do not overlap, and no product is needed.

    See `snnjax.pool_spikes`. Pixels left over at the far edges are dropped.

    Example:
        >>> from snnjax import sum_pool
        >>> sum_pool(2).out_shape((5, 4, 3))
        (2, 2, 3)
    """
    return _pool("sum_pool", window, mean=False, name=name, source=source)


def mean_pool(window: int | tuple[int, int], *, name: str | None = None, source: str | None = None) -> Pool:
    """Average the spikes in each window, like `sum_pool`.

    Example:
        >>> from snnjax import mean_pool
        >>> mean_pool(2).mean
        True
    """
    return _pool("mean_pool", window, mean=True, name=name, source=source)


def flatten(*, name: str | None = None, source: str | None = None) -> Flatten:
    """Flatten the neurons of an image to one axis: later blocks see no pixels. Dense weights need no `flatten`.

    Example:
        >>> from snnjax import flatten
        >>> flatten().out_shape((4, 4, 2))
        (32,)
    """
    return Flatten(name=name, source=source)


def _pool(op: str, window: int | tuple[int, int], mean: bool, name: Any, source: Any) -> Pool:
    for size in window if isinstance(window, tuple) else (window,):
        check_integer(op, "window", size, 1)
    return Pool(window, mean, name=name, source=source)
