"""`spiking_attention`: products of queries, keys and values that are spikes, without a softmax."""

from dataclasses import dataclass

import jax.numpy as jnp
from jaxtyping import Array

from snnjax._arguments import explained
from snnjax._check import check_integer, fail, short_repr
from snnjax._types import Params, Signal, State, Stats, Unchecked, upcast
from snnjax.blocks.block import BlockResult, Context, Shape, Stepwise, dense_signal


@dataclass(frozen=True)
class SpikingAttention(Stepwise):
    """Attention between tokens; made by `spiking_attention`."""

    kind, num_signals, is_counted = "spiking_attention", 3, True
    heads: int
    scale: float

    def out_shape(self, *shapes: Shape) -> Shape:
        """That of the values: ``(tokens, channels)``, or an image whose pixels are tokens."""
        query, key, value = shapes
        if len(query) < 2 or key != query or value[:-1] != query[:-1]:
            hint = "Make them of one signal, such as by parallel(q=..., k=..., v=...)"
            fail(
                "spiking_attention: `signals` must be queries, keys and values of the same tokens, got "
                f"{query}, {key} and {value}. {hint}."
            )
        for channels in (query[-1], value[-1]):
            if channels % self.heads:
                fail(
                    f"spiking_attention: `heads` must divide the channels, {channels}, got {self.heads}. "
                    "Choose a divisor."
                )
        return value

    def apply(
        self,
        params: Params,
        state: State,
        stats: Stats,
        *signals: Signal,
        shapes: tuple[Shape, ...],
        context: Context,
    ) -> BlockResult:
        """Heads apart, and one behind the other in the result."""
        del params, state, stats, context
        arrays = zip(signals, shapes, strict=True)
        query, key, value = (self._by_head(upcast(dense_signal(x, shape))) for x, shape in arrays)
        tokens, channels = query.shape[2], query.shape[4]
        # Products without a softmax between them may be taken in any order: the one with fewer operations.
        if tokens > channels:
            mixed = jnp.einsum("tbqhc,tbhcd->tbqhd", query, jnp.einsum("tbkhc,tbkhd->tbhcd", key, value))
        else:
            mixed = jnp.einsum("tbhqk,tbkhd->tbqhd", jnp.einsum("tbqhc,tbkhc->tbhqk", query, key), value)
        return BlockResult(self.scale * mixed.reshape(*mixed.shape[:2], *shapes[2]))

    def _by_head(self, x: Array) -> Array:
        """``[time, batch, tokens, heads, channels of a head]``."""
        return x.reshape(*x.shape[:2], -1, self.heads, x.shape[-1] // self.heads)


@explained
def spiking_attention(heads: int = 1, *, scale: float = 1.0) -> SpikingAttention:
    """Join queries, keys and values of tokens by attention without a softmax: ``scale * (q k^T) v`` for each head.

    Each of the `heads` takes a share of the channels, and their results lie one behind the other. Where all signals are
    spikes, the products are counts of spikes that coincide; the result is a current.

    Args:
        heads: their number, a divisor of the channels.
        scale: of the result.

    Raises:
        ValueError: if the number or the scale is not above 0; in a network, if the shapes do not fit.

    Example:
        >>> import snnjax
        >>> from snnjax import blocks
        >>> def token():
        ...     return snnjax.layer(snnjax.conv1d(8, 1))
        >>> mixing = snnjax.parallel(
        ...     q=token(), k=token(), v=token(), join=blocks.spiking_attention(2, scale=0.125)
        ... )
        >>> snnjax.network((16, 8), [mixing, snnjax.neurons.lif()]).out_shape
        (16, 8)

    Reference:
        Zhou et al. 2023, arXiv:2209.15425.
    """
    heads = check_integer("spiking_attention", "heads", heads, 1)
    return SpikingAttention(heads, _positive(scale))


def _positive(scale: Unchecked) -> float:
    if not isinstance(scale, int | float) or isinstance(scale, bool) or not 0 < scale < float("inf"):
        fail(f"spiking_attention: `scale` must be a number above 0, got {short_repr(scale)}. Try 0.125.")
    return float(scale)
