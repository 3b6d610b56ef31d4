"""`sparse`: weights of the few synapses that exist."""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.typing import DTypeLike
from jaxtyping import Array, Float

from snnjax._arguments import explained
from snnjax._check import check_integer, check_switches, fail
from snnjax._synapses import Synapses
from snnjax._types import Params, Signal, State, Stats, upcast
from snnjax.blocks.block import Block, BlockResult, Context, Shape, Stepwise, flat, given, times
from snnjax.blocks.linear import normal
from snnjax.neurons._drive import EXPECTED_RATE
from snnjax.ops.spike_sparse_matmul import spike_sparse_matmul


class SparseParams(NamedTuple):
    """The params of `sparse`."""

    weights: Float[Array, " synapses"] | Any  # `Quantised` in a network that only runs
    bias: Float[Array, " neurons"] | None = None


@dataclass(frozen=True)
class Sparse(Stepwise):
    """Sparse weights; made by `sparse`. Which synapses exist are its stats, `Synapses`."""

    kind = "sparse"
    is_counted = True
    num_neurons: int
    fan_out: int | None
    fan_in: int | None
    bias: bool = True

    def fitted(self, *shapes: Shape) -> "Sparse":
        """The connection, if there are as many neurons as each is connected with."""
        (shape,) = shapes
        name, each, most = (
            ("fan_in", self.fan_in, math.prod(shape))
            if self.fan_out is None
            else ("fan_out", self.fan_out, self.num_neurons)
        )
        if each is not None and each > most:
            fail(
                f"sparse: `{name}` must be at most {most}, the neurons to choose from, got {each}. Choose fewer."
            )
        return self

    def out_shape(self, *shapes: Shape) -> Shape:
        """The neurons, on one axis."""
        del shapes
        return (self.num_neurons,)

    def num_synapses(self, shape: Shape) -> int:
        """The number of synapses for inputs of this shape."""
        if self.fan_out is not None:
            return self.fan_out * math.prod(shape)
        return (self.fan_in or 0) * self.num_neurons

    def init(self, key: Array, *shapes: Shape, dtype: DTypeLike) -> SparseParams:
        """Draw normal weights for currents of variance 1 from random spikes at `EXPECTED_RATE`."""
        synapses = self.num_synapses(shapes[0])
        scale = jax.lax.rsqrt(jnp.float32(max(synapses / self.num_neurons, 1) * EXPECTED_RATE))
        weights = (scale * normal(key, (synapses,))).astype(dtype)
        return SparseParams(weights, jnp.zeros(self.num_neurons, dtype) if self.bias else None)

    def initial_stats(self, key: Array, *shapes: Shape) -> Synapses:
        """Draw which synapses exist."""
        sizes = math.prod(shapes[0]), self.num_neurons
        if self.fan_out is not None:
            return Synapses.fixed_fan_out(key, *sizes, self.fan_out)
        return Synapses.fixed_fan_in(key, *sizes, self.fan_in or 0)

    def currents(
        self, params: SparseParams, synapses: Synapses, x: Signal, *, implementation: str | None = None
    ) -> Float[Array, "time batch neurons"]:
        """The currents of spikes ``[time, batch, *shape]``, in at least float32."""
        currents = spike_sparse_matmul(
            flat(x), upcast(params.weights), synapses, implementation=implementation
        )
        return currents if params.bias is None else currents + upcast(params.bias)[None, None]

    def apply(
        self,
        params: Params,
        state: State,
        stats: Stats,
        *signals: Signal,
        shapes: tuple[Shape, ...],
        context: Context,
    ) -> BlockResult:
        """The currents of all steps at once."""
        del state, shapes
        (x,), params = signals, given(self.kind, "params", params)
        return BlockResult(
            self.currents(params, given(self.kind, "stats", stats), x, implementation=context.implementation)
        )

    def operands(self, params: SparseParams, stats: Stats, shape: Shape) -> SparseParams:
        """Those of a recurrent connection, beside its synapses."""
        del stats, shape
        return params

    def ahead(self) -> tuple[int, Block] | None:
        """No step."""
        return None if self.bias else (0, self)

    def scaled(self, params: SparseParams, factor: Array) -> SparseParams:
        """The params with all weights, and biases, times `factor`."""
        return times(params, factor)


@explained
def sparse(
    num_neurons: int,
    *,
    fan_out: int | None = None,
    fan_in: int | None = None,
    bias: bool = True,
) -> Sparse:
    """Make a connection with few synapses, of which only weights that exist are stored, multiplied and learned.

    ``current[j] = bias[j] + sum of weights[s] * spikes[i]`` over the synapses s from neuron i to neuron j
    (`snnjax.spike_sparse_matmul`). Which exist is drawn by ``initial_stats`` and does not change; to use one's own, put
    `Synapses` with as many synapses into the stats.

    Args:
        num_neurons: number of neurons that receive the current.
        fan_out: the number of different neurons that each input is connected with, drawn uniformly.
        fan_in: the number of different inputs that each neuron is connected with, in place of `fan_out`.
        bias: add a learned bias to the current of every step.

    Raises:
        ValueError: if not exactly one of `fan_out` and `fan_in` is given, or more than there are neurons.

    Example:
        >>> import jax, snnjax
        >>> net = snnjax.network(
        ...     700, [snnjax.layer(snnjax.sparse(1000, fan_in=20))], snnjax.leaky_readout(10)
        ... )
        >>> params, stats = net.init(jax.random.key(0)), net.initial_stats(jax.random.key(1))
        >>> params["layer_0/connection"].weights.shape, stats["layer_0/connection"].num_synapses
        ((20000,), 20000)
    """
    num_neurons = check_integer("sparse", "num_neurons", num_neurons, 1)
    check_switches("sparse", bias=bias)
    if (fan_out is None) == (fan_in is None):
        given = "neither" if fan_out is None else "both"
        fail(f"sparse: `fan_out` must be given, or `fan_in` in its place, got {given}. Pass one of them.")
    for argument, value in (("fan_out", fan_out), ("fan_in", fan_in)):
        if value is not None:
            check_integer("sparse", argument, value, 0)
    fan_out, fan_in = (None if value is None else int(value) for value in (fan_out, fan_in))
    return Sparse(int(num_neurons), fan_out, fan_in, bool(bias))
