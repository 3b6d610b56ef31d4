"""`sum_pool`, `mean_pool`, `max_pool` and `flatten`: blocks without weights, which map the ids of lists."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from snnjax._arguments import explained
from snnjax._check import check_integer
from snnjax._types import Params, Signal, State, Stats, Unchecked
from snnjax.blocks.block import BlockResult, Context, Op, Shape, Stepwise, flat, shaped
from snnjax.ops.pool_spikes import Pooling, as_pooling, pooled

Padding = int | Sequence[int | tuple[int, int]]


@dataclass(frozen=True)
class Pooled(Op):
    """A pool before the weights of a layer."""

    pooling: Pooling


@dataclass(frozen=True)
class Flattened(Op):
    """Nothing: the op's neurons are flat."""


@dataclass(frozen=True)
class Pool(Stepwise):
    """Sum, mean or maximum over windows; made by `sum_pool`, `mean_pool` and `max_pool`."""

    window: int | Shape | None
    strides: int | Shape | None
    how: str
    padding: Padding | None = None

    @property
    def kind(self) -> str:  # type: ignore[override]
        """The function that makes it."""
        return f"{self.how}_pool"

    def pooling(self, shape: Shape) -> Pooling:
        """The windows over inputs of this shape."""
        return as_pooling(self.kind, shape, self.window, self.strides, self.how, self.padding or 0)

    def out_shape(self, *shapes: Shape) -> Shape:
        """The windows, and the channels."""
        return self.pooling(*shapes).out_shape

    def apply(
        self,
        params: Params,
        state: State,
        stats: Stats,
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
class Flatten(Stepwise):
    """The neurons of an image on one axis; made by `flatten`."""

    kind = "flatten"

    def out_shape(self, *shapes: Shape) -> Shape:
        """One axis."""
        return (math.prod(shapes[0]),)

    def apply(
        self,
        params: Params,
        state: State,
        stats: Stats,
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


@explained
def sum_pool(
    window: int | tuple[int, int] | None = None,
    *,
    strides: int | tuple[int, int] | None = None,
    padding: Padding = 0,
) -> Pool:
    """Sum the spikes in each window, without a product; see `snnjax.pool_spikes`.

    Args:
        window: height and width of a window, one number for both, or its length; None for all pixels.
        strides: how far it is from one window to the next, likewise; None for windows side by side.
        padding: pixels around the image that have no spikes: on every side, for each axis, or (before, after) for each.
            A mean counts them, a maximum does not.

    Raises:
        ValueError: if a length is below 1; in a network, if a window does not fit into the image.

    Example:
        >>> from snnjax import sum_pool
        >>> sum_pool(2).out_shape((5, 4, 3))
        (2, 2, 3)
        >>> sum_pool(3, strides=1).out_shape((5, 4, 3))
        (3, 2, 3)
    """
    return _pool("sum", window, strides, padding)


@explained
def mean_pool(
    window: int | tuple[int, int] | None = None,
    *,
    strides: int | tuple[int, int] | None = None,
    padding: Padding = 0,
) -> Pool:
    """Average the spikes in each window, like `sum_pool`.

    Example:
        >>> from snnjax import mean_pool
        >>> mean_pool(2).out_shape((5, 4, 3))
        (2, 2, 3)
    """
    return _pool("mean", window, strides, padding)


@explained
def max_pool(
    window: int | tuple[int, int] | None = None,
    *,
    strides: int | tuple[int, int] | None = None,
    padding: Padding = 0,
) -> Pool:
    """Take the maximum of each window, like `sum_pool`: of spikes, whether there is any.

    Its gradient reaches the first of the largest entries of a window.

    Example:
        >>> from snnjax import max_pool
        >>> max_pool(3, strides=2).out_shape((7, 7, 4))
        (3, 3, 4)
    """
    return _pool("max", window, strides, padding)


@explained
def flatten() -> Flatten:
    """Flatten the neurons of an image to one axis: later blocks see no pixels. Dense weights need no `flatten`.

    Example:
        >>> from snnjax import flatten
        >>> flatten().out_shape((4, 4, 2))
        (32,)
    """
    return Flatten()


def _pool(how: str, window: Unchecked, strides: Unchecked, padding: Unchecked) -> Pool:
    for argument, sizes in (("window", window), ("strides", strides)):
        for size in sizes if isinstance(sizes, tuple) else () if sizes is None else (sizes,):
            check_integer(f"{how}_pool", argument, size, 1)
    around = tuple(map(_hashable, padding)) if isinstance(padding, list | tuple) else padding
    return Pool(window, strides, how, around or None)


def _hashable(pair: Unchecked) -> Unchecked:
    return tuple(pair) if isinstance(pair, list) else pair
