"""`upsample`: each pixel as a square of equal ones."""

import dataclasses
from dataclasses import dataclass

import jax
import jax.numpy as jnp

from snnjax._arguments import explained
from snnjax._check import check_integer
from snnjax._sparse_spikes import SparseSpikes, in_range, values_of
from snnjax._types import Params, Signal, State, Stats, id_dtype
from snnjax.blocks.block import BlockResult, Context, Shape, Stepwise
from snnjax.ops.pool_spikes import check_image


@dataclass(frozen=True)
class Upsample(Stepwise):
    """Each pixel several times along each axis; made by `upsample`."""

    kind, is_counted = "upsample", True
    factor: int

    def out_shape(self, *shapes: Shape) -> Shape:
        """So many times as high and wide."""
        (shape,) = shapes
        check_image("upsample", shape)
        return (*(length * self.factor for length in shape[:-1]), shape[-1])

    def apply(
        self,
        params: Params,
        state: State,
        stats: Stats,
        *signals: Signal,
        shapes: tuple[Shape, ...],
        context: Context,
    ) -> BlockResult:
        """Repeat the pixels of arrays, or list each id once for each of its pixels."""
        del params, state, stats, context
        (x,), (shape,) = signals, shapes
        if isinstance(x, SparseSpikes):
            return BlockResult(self._listed(x, shape))
        for axis in range(2, 2 + len(shape) - 1):
            x = jnp.repeat(x, self.factor, axis)
        return BlockResult(x)

    def _listed(self, spikes: SparseSpikes, shape: Shape) -> SparseSpikes:
        total, each = spikes.num_neurons * self.factor ** (len(shape) - 1), self.factor
        there = in_range(spikes.ids, spikes.num_neurons)[..., None]
        rest, stride = spikes.ids.astype(jnp.int32)[..., None], shape[-1]
        place, rest = rest % shape[-1], rest // shape[-1]
        for length in reversed(shape[:-1]):
            index, rest = rest % length, rest // length
            copies = jax.lax.broadcasted_iota(jnp.int32, (*spikes.ids.shape, 1, each), spikes.ids.ndim + 1)
            own = (index * each * stride)[..., None] + copies * stride + place[..., None]
            place = own.reshape(*spikes.ids.shape, -1)
            index, rest = (jnp.repeat(x, each, -1) for x in (index, rest))
            stride *= length * each
        ids = jnp.where(there, place, total).astype(id_dtype(total))
        values = jnp.broadcast_to(values_of(spikes)[..., None], ids.shape)
        ids, values = (x.reshape(*spikes.ids.shape[:-1], -1) for x in (ids, values))
        times = total // max(spikes.num_neurons, 1)
        counts = {name: getattr(spikes, name) * times for name in ("num_spikes", "num_listed", "num_dropped")}
        return dataclasses.replace(spikes, ids=ids, values=values, num_neurons=total, **counts)


@explained
def upsample(factor: int) -> Upsample:
    """Repeat each pixel `factor` times along each axis of the image: nearest-neighbour upsampling.

    ``out[y, x, c] = in[y // factor, x // factor, c]``. Lists stay lists, with as many slots as each entry has pixels.

    Args:
        factor: at least 1.

    Raises:
        ValueError: if the factor is no such integer; in a network, if its inputs have no pixels.

    Example:
        >>> from snnjax import blocks
        >>> blocks.upsample(2).out_shape((8, 6, 4))
        (16, 12, 4)
    """
    return Upsample(check_integer("upsample", "factor", factor, 1))
