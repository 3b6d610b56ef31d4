"""`dropout`: random neurons silenced in training."""

import dataclasses
import math
from dataclasses import dataclass

import jax
import jax.numpy as jnp

from snnjax._arguments import explained
from snnjax._check import check_choice, fail, short_repr
from snnjax._sparse_spikes import SparseSpikes, gather, values_of
from snnjax._types import Params, Signal, State, Stats
from snnjax.blocks.block import BlockResult, Context, Shape, Stepwise, shaped


@dataclass(frozen=True)
class Dropout(Stepwise):
    """Random neurons silenced; made by `dropout`."""

    kind = "dropout"
    rate: float
    per_channel: bool | None = None  # None: per neuron

    def is_skipped(self, train: bool) -> bool:
        """Outside of training, and where it drops nothing."""
        return not train or self.rate == 0

    def apply(
        self,
        params: Params,
        state: State,
        stats: Stats,
        *signals: Signal,
        shapes: tuple[Shape, ...],
        context: Context,
    ) -> BlockResult:
        """The signal of the neurons that are left, larger by the share of those that are not."""
        del params, state, stats
        (x,), (shape,) = signals, shapes
        if self.is_skipped(context.train):
            return BlockResult(x)
        if context.key is None:
            fail(
                "dropout: `key` must be a PRNG key in training, got None. Pass key=jax.random.key(0) to apply."
            )
        batch, neurons = x.shape[1], math.prod(shape)
        owners = shape[-1] if self.per_channel else neurons
        left = jax.random.bernoulli(context.key, jnp.float32(1 - self.rate), (batch, owners))
        left = jnp.tile(left, (1, neurons // owners))
        if not isinstance(x, SparseSpikes):
            factor = left.astype(x.dtype) / (1 - self.rate)
            return BlockResult(x * shaped(factor[None], shape))
        rows = jnp.broadcast_to(left.astype(x.dtype), (x.shape[0], batch, neurons)).reshape(-1, neurons)
        factor = gather(rows, x.ids.reshape(-1, x.capacity)).reshape(x.ids.shape) / (1 - self.rate)
        return BlockResult(dataclasses.replace(x, values=values_of(x) * factor))


@explained
def dropout(rate: float, *, per: str = "neuron") -> Dropout:
    """Silence random neurons in training, the same ones for all steps of a sequence; others count 1 / (1 - rate).

    Lists stay lists. Each sequence has a mask of its own, drawn from the `key` of `Network.apply`; under
    `jax.shard_map` fold the index of the shard into it.

    Args:
        rate: the share of neurons that are silenced, at least 0 and below 1.
        per: what is silenced as a whole, each "neuron" or each "channel" of an image.

    Raises:
        ValueError: if the rate is out of range, or `per` is unknown.

    Example:
        >>> from snnjax import blocks
        >>> blocks.dropout(0.2).rate
        0.2

    Reference:
        Srivastava et al. 2014 (Journal of Machine Learning Research 15); one mask per sequence: Lee et al. 2020,
        doi:10.3389/fnins.2020.00119.
    """
    if not isinstance(rate, int | float) or isinstance(rate, bool) or not 0 <= rate < 1:
        fail(f"dropout: `rate` must be at least 0 and below 1, got {short_repr(rate)}. Try 0.2.")
    check_choice("dropout", "per", per, ("neuron", "channel"))
    return Dropout(float(rate), True if per == "channel" else None)
