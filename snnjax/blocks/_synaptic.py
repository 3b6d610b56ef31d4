"""`synaptic`: a connection with a delay for each synapse; currents under way are the state."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.typing import DTypeLike
from jaxtyping import Array, Float

from snnjax._arguments import explained
from snnjax._check import fail, short_repr
from snnjax._synapses import Synapses
from snnjax._types import Params, Signal, State, Stats, Unchecked, accumulation_dtype, upcast
from snnjax.blocks._dense import Dense
from snnjax.blocks._sparse import Sparse
from snnjax.blocks.block import BlockResult, Context, Shape, Stepwise, flat, given, times
from snnjax.blocks.delay import HasDelays, checked_delays, delays_of, drawn_delays
from snnjax.ops.delayed_spike_matmul import delayed_spike_matmul


class SynapticParams(NamedTuple):
    """The params of `synaptic`.

    ``delay = min_delay + (max_delay - min_delay) * sigmoid(raw_delay)`` steps, of the shape of the weights.
    """

    weights: Float[Array, "..."]
    bias: Float[Array, " neurons"] | None = None
    raw_delay: Float[Array, "..."] | None = None  # if delays are learned


class SynapticStats(NamedTuple):
    """The stats of `synaptic`."""

    synapses: Synapses | None = None  # of a sparse connection
    raw_delay: Float[Array, "..."] | None = None  # if delays are drawn and not learned


class SynapticState(NamedTuple):
    """The state of `synaptic`: the currents of the next `max_delay` steps, in the accumulation dtype."""

    pending: Float[Array, "max_delay batch neurons"]


@dataclass(frozen=True)
class Synaptic(HasDelays, Stepwise):
    """A connection with delays; made by `synaptic`."""

    kind = "synaptic"
    is_counted = True
    connection: Dense | Sparse
    max_delay: int
    initial: tuple[float, float]
    learn: bool
    min_delay: int = 0

    def fitted(self, *shapes: Shape) -> "Synaptic":
        """The block, if the connection fits its inputs."""
        self.connection.fitted(*shapes)
        return self

    def out_shape(self, *shapes: Shape) -> Shape:
        """The neurons, on one axis."""
        return self.connection.out_shape(*shapes)

    def init(self, key: Array, *shapes: Shape, dtype: DTypeLike) -> SynapticParams:
        """Draw the weights of the connection, and learned delays in the accumulation dtype."""
        weights_key, delays_key = jax.random.split(key)
        weights, bias = self.connection.init(weights_key, *shapes, dtype=dtype)
        raw = self._raw(delays_key, shapes[0]).astype(accumulation_dtype(dtype)) if self.learn else None
        return SynapticParams(weights, bias, raw)

    def initial_stats(self, key: Array, *shapes: Shape) -> SynapticStats | None:
        """Draw which synapses exist, and delays that are not learned."""
        synapses_key, delays_key = jax.random.split(key)
        synapses = self.connection.initial_stats(synapses_key, *shapes)
        raw = self._raw(delays_key, shapes[0]) if self.is_drawn else None
        return None if synapses is None and raw is None else SynapticStats(synapses, raw)

    def _raw(self, key: Array, shape: Shape) -> Array:
        own = self.connection
        count = (own.num_synapses(shape),) if isinstance(own, Sparse) else own.weights_shape(shape)
        return drawn_delays(key, count, self.initial, self.min_delay, self.max_delay)

    def delays(self, params: SynapticParams, stats: SynapticStats | None) -> Float[Array, "..."]:
        """The delay of each synapse in steps, in the accumulation dtype; integers if they are not learned."""
        if not self.learn and not self.is_drawn:
            return jnp.full(params.weights.shape, round(self.initial[0]), jnp.float32)
        what, held = ("params", params) if self.learn else ("stats", stats)
        raw = given(self.kind, what, None if held is None else held.raw_delay)
        return delays_of(raw, self.min_delay, self.max_delay, self.learn)

    @property
    def bias(self) -> bool:
        """Whether the connection adds one."""
        return self.connection.bias

    def operands(self, params: Params, stats: Stats, shape: Shape) -> tuple[Array, Synapses | None, Array]:
        """Those of a recurrent connection of the fused op: weights, the synapses if not all exist, and delays."""
        del shape
        params = given(self.kind, "params", params)
        return self._weights(params), None if stats is None else stats.synapses, self.delays(params, stats)

    def _weights(self, params: SynapticParams) -> Array:
        own = self.connection
        return own.used(params.weights) if isinstance(own, Dense) else params.weights

    def ahead(self) -> tuple[int, "Synaptic"] | None:
        """As many steps as all delays have."""
        return None if self.bias else (self.min_delay, self.earlier())

    def initial_state(self, params: Params, stats: Stats, batch: int, *shapes: Shape) -> SynapticState:
        """Nothing under way."""
        del stats
        neurons = math.prod(self.out_shape(*shapes))
        return SynapticState(
            jnp.zeros((self.max_delay, batch, neurons), accumulation_dtype(params.weights.dtype))
        )

    def apply(
        self,
        params: Params,
        state: State,
        stats: Stats,
        *signals: Signal,
        shapes: tuple[Shape, ...],
        context: Context,
    ) -> BlockResult:
        """The currents that arrive in each step."""
        (x,), params = signals, given(self.kind, "params", params)
        currents, pending = delayed_spike_matmul(
            flat(x),
            upcast(self._weights(params)),
            self.delays(params, stats),
            None if stats is None else stats.synapses,
            state.pending,
            max_delay=self.max_delay,
            bias=params.bias,
            lengths=context.lengths,
            implementation=context.implementation,
        )
        return BlockResult(currents, SynapticState(pending))

    def scaled(self, params: SynapticParams, factor: Array) -> SynapticParams:
        """The params with all weights, and biases, times `factor`."""
        return times(params._replace(raw_delay=None), factor)._replace(raw_delay=params.raw_delay)


@explained
def synaptic(
    connection: Unchecked,
    max_delay: int,
    *,
    min_delay: int = 0,
    initial: float | tuple[float, float] | None = None,
    learn: bool = True,
) -> Synaptic:
    """Give each synapse of a connection a delay: a spike of neuron i at t arrives at neuron j at ``t + delay[i, j]``.

    ``delay = min_delay + (max_delay - min_delay) * sigmoid(raw_delay)`` for each weight. A delay that is not an integer
    splits a spike between two steps (`snnjax.delayed_spike_matmul`), and its gradient is that of the split. A recurrent
    connection delays in addition to the one step that recurrent spikes always take; without a bias, and without
    `axonal` delays before it, such a layer is part of the fused op. One of neurons that are scanned multiplies its
    spikes for ``min_delay + 1`` steps at once, if no block of the connection has a bias: these steps are then those of
    its `late`, and the delays of the block what is beyond them.

    Args:
        connection: ``dense(...)`` or ``sparse(...)``, which draws the weights, and the synapses that exist.
        max_delay: the longest delay, in steps; at most 4,194,304.
        min_delay: the shortest delay, in steps.
        initial: initial delays: a number, or a range (low, high) from which each is drawn; None is the range
            ``(min_delay, max_delay)``. Learned delays start at least ``min((max_delay - min_delay) / 1000, 1 / 4)``
            steps from both ends.
        learn: whether the delays are learned. Otherwise they are rounded to integers: one number, or, if they are drawn
            from a range, stats of the network.

    Raises:
        ValueError: if the connection is another one, a delay is outside ``[min_delay, max_delay]``, or `max_delay` is
            too long.

    Example:
        >>> import jax, snnjax
        >>> first = snnjax.layer(snnjax.synaptic(snnjax.dense(8), max_delay=10))
        >>> net = snnjax.network(4, [first], snnjax.leaky_readout(2))
        >>> params = net.init(jax.random.key(0))
        >>> params["layer_0/connection"].raw_delay.shape
        (4, 8)

    Reference:
        Hammouamri, Khalfaoui-Hassani and Masquelier 2024, arXiv:2306.17670.
    """
    if not isinstance(connection, Dense | Sparse):
        fail(
            f"synaptic: `connection` must be dense or sparse, got {short_repr(connection)}. "
            "Write synaptic(dense(...), max_delay), or delay spikes before it with axonal(max_delay)."
        )
    initial = checked_delays("synaptic", min_delay, max_delay, initial, learn)
    return Synaptic(connection, int(max_delay), initial, bool(learn), int(min_delay))
