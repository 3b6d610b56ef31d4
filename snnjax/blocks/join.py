"""`add`, `concatenate`, `multiply`, `either` and `iand`: several signals as one."""

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import jax.numpy as jnp
from jaxtyping import Array

from snnjax._arguments import explained
from snnjax._check import check_choice, fail
from snnjax._sparse_spikes import SparseSpikes, in_range, values_of
from snnjax._types import Params, Signal, State, Stats, as_int32, id_dtype
from snnjax.blocks.block import BlockResult, Context, Shape, Stepwise, dense_signal

_DENSE: dict[str, Callable[[Array, Array], Array]] = {
    "add": lambda a, b: a + b,
    "multiply": lambda a, b: a * b,
    "either": lambda a, b: a + b - a * b,
    "iand": lambda a, b: b - a * b,
}
JOINS = (*_DENSE, "concatenate")


@dataclass(frozen=True)
class Join(Stepwise):
    """Several signals as one; made by `join`."""

    num_signals, is_counted = None, True
    how: str

    @property
    def kind(self) -> str:  # type: ignore[override]
        """What it does."""
        return self.how

    def out_shape(self, *shapes: Shape) -> Shape:
        """The common shape, or the one of all channels; flat neurons of the same number fit any shape of the first."""
        first, *others = shapes
        if self.how == "iand" and len(shapes) != 2:
            fail(f"join: `iand` must receive two signals, got {len(shapes)}. Join the others before.")
        common = (first[:-1],) if self.how == "concatenate" else (first, (math.prod(first),))
        for other in others:
            if (other[:-1] if self.how == "concatenate" else other) not in common:
                what = "one image size" if self.how == "concatenate" else "one shape"
                fail(
                    f"join: `{self.how}` must receive signals of {what}, got {' and '.join(map(str, shapes))}. "
                    "Give the shortcut a convolution of the same strides and channels."
                )
        return (*first[:-1], sum(shape[-1] for shape in shapes)) if self.how == "concatenate" else first

    def apply(
        self,
        params: Params,
        state: State,
        stats: Stats,
        *signals: Signal,
        shapes: tuple[Shape, ...],
        context: Context,
    ) -> BlockResult:
        """Lists joined to lists where they can be, else arrays."""
        del params, state, stats, context
        if self.how in ("add", "concatenate") and all(isinstance(x, SparseSpikes) for x in signals):
            return BlockResult(_joined(signals, shapes, self.how, self.out_shape(*shapes)))
        if self.how == "concatenate":
            arrays = [dense_signal(x, shape) for x, shape in zip(signals, shapes, strict=True)]
            return BlockResult(jnp.concatenate(arrays, -1))
        arrays = [dense_signal(x, self.out_shape(*shapes)) for x in signals]
        return BlockResult(functools.reduce(_DENSE[self.how], arrays))


def _joined(lists: Sequence[SparseSpikes], shapes: Sequence[Shape], how: str, shape: Shape) -> SparseSpikes:
    """Lists behind one another; their ids are shifted to their channels."""
    total, first, ids = math.prod(shape), 0, []
    for spikes, own in zip(lists, shapes, strict=True):
        there, own_ids = in_range(spikes.ids, spikes.num_neurons), spikes.ids.astype(jnp.int32)
        if how == "concatenate":
            own_ids = own_ids // own[-1] * shape[-1] + own_ids % own[-1] + first
            first += own[-1]
        ids.append(jnp.where(there, own_ids, total).astype(id_dtype(total)))
    values = jnp.concatenate([values_of(x) for x in lists], -1)
    counts = zip(*(map(as_int32, (x.num_spikes, x.num_listed, x.num_dropped)) for x in lists), strict=True)
    spikes, listed, dropped = (functools.reduce(jnp.add, each) for each in counts)
    return SparseSpikes(jnp.concatenate(ids, -1), values, spikes, listed, dropped, total)


@explained
def join(how: str = "add") -> Join:
    """Join several signals: "add", "concatenate" (along the channels), "multiply", "either" or "iand".

    "either" is ``a + b - a b``, which is 1 where any of the signals is, and "iand" ``(1 - a) b``, the spikes of the
    second of two signals where the first has none, if all of them are spikes of 0 and 1; graded spikes, and sums of
    spikes, are no such signals.

    Lists that are added or concatenated stay lists: capacities add up, and an id that stands in two lists counts
    twice. Other joins, and those of lists with arrays, are dense.

    Args:
        how: what is done with the signals.

    Raises:
        ValueError: if `how` is unknown.

    Example:
        >>> from snnjax import blocks
        >>> blocks.join("concatenate").out_shape((8, 8, 3), (8, 8, 5))
        (8, 8, 8)
    """
    check_choice("join", "how", how, JOINS)
    return Join(how)
