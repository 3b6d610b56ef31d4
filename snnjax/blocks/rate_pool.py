"""`max_rate_pool`: of the neurons in each window, the rate of the fastest."""

from dataclasses import dataclass

import jax.numpy as jnp

from snnjax._arguments import explained
from snnjax._types import Params, Signal, State, Stats, accumulation_dtype
from snnjax.blocks.block import BlockResult, Context, Shape, Stepwise, dense_signal
from snnjax.blocks.pool import Pool, max_pool


@dataclass(frozen=True)
class RatePool(Stepwise):
    """Maxima of counts over windows; made by `max_rate_pool`."""

    kind, is_counted = "max_rate_pool", True
    pool: Pool

    def out_shape(self, *shapes: Shape) -> Shape:
        """The windows, and the channels."""
        return self.pool.out_shape(*shapes)

    def initial_state(self, params: Params, stats: Stats, batch: int, *shapes: Shape) -> State:
        """The sum of each input so far, ``[batch, *shape]``."""
        del params, stats
        return jnp.zeros((batch, *shapes[0]), jnp.float32)

    def apply(
        self,
        params: Params,
        state: State,
        stats: Stats,
        *signals: Signal,
        shapes: tuple[Shape, ...],
        context: Context,
    ) -> BlockResult:
        """How much the largest sum of each window has grown in each step."""
        (x,), (shape,) = signals, shapes
        x = dense_signal(x, shape)
        # A block that is run alone begins in float32.
        dtype = x.dtype if x.dtype == jnp.float64 else accumulation_dtype(state.dtype)
        sums = jnp.cumsum(jnp.concatenate([state[None].astype(dtype), x.astype(dtype)]), axis=0)
        largest = self.pool.apply(params, None, stats, sums, shapes=shapes, context=context).signal
        return BlockResult(largest[1:] - largest[:-1], sums[-1])


@explained
def max_rate_pool(
    window: int | tuple[int, int],
    *,
    strides: int | tuple[int, int] | None = None,
) -> RatePool:
    """Pass on the rate of the fastest neuron of each window, in place of a `max_pool` of activations.

    ``y[t] = max_i n_i[t] - max_i n_i[t - 1]`` over the neurons `i` of a window, with the number ``n_i[t]`` of spikes of
    each so far: a spike passes if it makes its neuron the one with the most. A `max_pool` of the spikes themselves
    passes on those of all neurons that do not spike together, which is more than the maximum of their rates.

    Args:
        window: this and `strides` are as for `max_pool`.
        strides: how far it is from one window to the next; None for windows side by side.

    Raises:
        ValueError: if a length is below 1; in a network, if a window does not fit into the image.

    Example:
        >>> import jax.numpy as jnp
        >>> import snnjax
        >>> from snnjax import blocks
        >>> net = snnjax.network((2, 1), [blocks.max_rate_pool(2)])
        >>> spikes = jnp.array([[1, 0], [0, 1], [0, 1], [1, 0]], jnp.float32)
        >>> net.apply({}, None, spikes[:, None])[0].output[:, 0, 0, 0]  # counts 1, 1, 2, 2
        Array([1., 0., 1., 0.], dtype=float32)

    Reference:
        Rueckauer et al. 2017, doi:10.3389/fnins.2017.00682.
    """
    return RatePool(max_pool(window, strides=strides))
