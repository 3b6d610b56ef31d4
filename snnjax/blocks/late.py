"""`late`: the signal of a block some steps later, which may stand behind it: the edge that closes a loop."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from snnjax._arguments import explained
from snnjax._check import check_integer, fail, short_repr
from snnjax._types import Params, Signal, State, Stats
from snnjax.blocks.block import BlockResult, Context, Shape, Stepwise, dense_signal, flat, shaped


class LateState(NamedTuple):
    """The state of `late`: what was sent and has not arrived, in the accumulation dtype."""

    sent: Float[Array, "steps batch neurons"]  # oldest first


@dataclass(frozen=True)
class Late(Stepwise):
    """A signal some steps later; made by `late`."""

    kind = "late"
    is_counted = True
    shape: Shape
    steps: int = 1

    def out_shape(self, *shapes: Shape) -> Shape:
        """That of its source, which it is told, as the source may stand behind it."""
        del shapes
        return self.shape

    def initial_state(self, params: Params, stats: Stats, batch: int, *shapes: Shape) -> LateState:
        """Nothing was sent."""
        del params, stats, shapes
        return LateState(jnp.zeros((self.steps, batch, math.prod(self.shape)), jnp.float32))

    def arriving(self, state: LateState, x: Signal) -> Array:
        """What arrives in each step, ``[time, batch, *shape]``, of what was sent before and the signal `x`."""
        x = flat(dense_signal(x, self.shape))
        return shaped(jnp.concatenate([state.sent.astype(x.dtype), x])[: x.shape[0]], self.shape)

    def after(self, state: LateState, x: Signal, lengths: Array | None) -> LateState:
        """The state after the signal `x`: the last steps of each sequence."""
        x = flat(dense_signal(x, self.shape)).astype(state.sent.dtype)
        steps, batch = x.shape[:2]
        if lengths is None:
            rows = x if isinstance(steps, int) and steps > self.steps else jnp.concatenate([state.sent, x])
            return LateState(rows[rows.shape[0] - self.steps :])
        own = jnp.arange(self.steps, dtype=jnp.int32)[:, None] + lengths[None]
        rows, columns = jnp.concatenate([state.sent, x]), jnp.arange(batch, dtype=jnp.int32)[None]
        return LateState(rows[own, columns])

    def apply(
        self,
        params: Params,
        state: State,
        stats: Stats,
        *signals: Signal,
        shapes: tuple[Shape, ...],
        context: Context,
    ) -> BlockResult:
        """In no loop it is a delay of all steps at once."""
        (x,) = signals
        return BlockResult(self.arriving(state, x), self.after(state, x, context.lengths))


@explained
def late(source: str, shape: int | tuple[int, ...], *, steps: int = 1) -> Late:
    """The signal of another block some steps later, 0 in the first ones: ``late[t] = source[t - steps]``.

    The block may stand behind it, so this is how signals return: from a higher layer, between two layers that inhibit
    each other, or by several ways with other delays. ``layer(..., recurrent=...)`` writes the usual loop, of the spikes
    of the layer itself. A loop runs step by step, or for as many steps at once as its shortest `late` has.

    Args:
        source: the name of a block, a container or an input, before or behind it; looked up in the container in which
            it stands, and in those around it.
        shape: the shape of its signal, or the number of its neurons.
        steps: how many steps later it arrives, at least 1.

    Raises:
        ValueError: if the number of steps is below 1, or the source or shape is no such; in `network`, if there is no
            such block.

    Example:
        >>> import snnjax
        >>> from snnjax.blocks import late
        >>> low = snnjax.layer(8, recurrent=[late("top", 4), snnjax.dense(8, bias=False)]).named("low")
        >>> top = snnjax.layer(4, recurrent=True).named("top")
        >>> net = snnjax.network(3, [low, top], snnjax.leaky_readout(2))
        >>> [node.name for node in net.nodes][1:5]
        ['low/late', 'low/recurrent', 'low/join', 'low/neuron']
    """
    steps = check_integer("late", "steps", steps, 1)
    if not isinstance(source, str) or not source:
        fail(
            f"late: `source` must be the name of a block, got {short_repr(source)}. Pass the name of a layer."
        )
    axes = (shape,) if isinstance(shape, int | np.integer) else tuple(shape)
    return Late(tuple(check_integer("late", "shape", length, 1) for length in axes), steps, source=(source,))
