"""`sparse`: weights of the few synapses that exist."""

import math
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import DTypeLike
from jaxtyping import Array, Float

from snnjax._arguments import explained
from snnjax._check import check_integer, check_switches, concrete, fail, plural, short_repr
from snnjax._synapses import Synapses, check_probability
from snnjax._types import Params, Signal, State, Stats, id_dtype, upcast
from snnjax.blocks.block import Block, BlockResult, Context, Shape, Stepwise, flat, given, times
from snnjax.blocks.linear import normal
from snnjax.neurons._drive import EXPECTED_RATE
from snnjax.ops.spike_sparse_matmul import spike_sparse_matmul


class SparseParams(NamedTuple):
    """The params of `sparse`."""

    weights: Float[Array, " synapses"] | Any  # `Quantised` in a network that only runs
    bias: Float[Array, " neurons"] | None = None


@dataclass(frozen=True)
class Given:
    """Given synapses, by their numbers: those with the same are equal."""

    num_neurons: int
    num_targets: int
    ends: bytes = field(repr=False)  # int32
    targets: bytes = field(repr=False)  # int32

    @classmethod
    def of(cls, synapses: Any, num_targets: int) -> "Given":
        """Synapses of known values that lead to so many neurons."""
        if not isinstance(synapses, Synapses):
            hint = "Make them with Synapses.from_mask, for instance"
            fail(f"sparse: `synapses` must be Synapses, got {short_repr(synapses)}. {hint}.")
        if synapses.num_targets != num_targets:
            actual, hint = synapses.num_targets, "Make them for the neurons of this block"
            fail(f"sparse: `synapses` must lead to {plural(num_targets, 'neuron')}, got {actual}. {hint}.")
        ends, targets = concrete(synapses.ends), concrete(synapses.targets)
        if ends is None or targets is None:
            hint = "Make the network outside of jit"
            fail(f"sparse: `synapses` must be of known values, got a tracer. {hint}.")
        numbers = (array.astype(np.int32).tobytes() for array in (ends, targets))
        return cls(synapses.num_neurons, num_targets, *numbers)

    @property
    def synapses(self) -> Synapses:
        """The synapses."""
        ends, targets = (np.frombuffer(numbers, np.int32) for numbers in (self.ends, self.targets))
        return Synapses(jnp.asarray(ends), jnp.asarray(targets, id_dtype(self.num_targets)), self.num_targets)


@dataclass(frozen=True)
class Sparse(Stepwise):
    """Sparse weights; made by `sparse`. Which synapses exist are its stats, `Synapses`."""

    kind = "sparse"
    is_counted = True
    num_neurons: int
    rule: str  # an argument of `sparse`, which says which synapses exist
    value: int | float | Given  # of this argument
    bias: bool = True

    def fitted(self, *shapes: Shape) -> "Sparse":
        """The connection, if its rule fits the number of inputs."""
        inputs = math.prod(shapes[0])
        if isinstance(self.value, Given):
            if self.value.num_neurons != inputs:
                expected, actual = plural(inputs, "neuron"), self.value.num_neurons
                hint = "Make them for the block before"
                fail(f"sparse: `synapses` must be of {expected}, like the inputs, got {actual}. {hint}.")
            return self
        most = {"fan_in": inputs, "fan_out": self.num_neurons}.get(self.rule)
        if most is not None and self.value > most:
            fail(
                f"sparse: `{self.rule}` must be at most {most}, the neurons to choose from, got {self.value}. "
                "Choose fewer."
            )
        return self

    def out_shape(self, *shapes: Shape) -> Shape:
        """The neurons, on one axis."""
        del shapes
        return (self.num_neurons,)

    def num_synapses(self, shape: Shape) -> int:
        """The number of synapses for inputs of this shape."""
        if isinstance(self.value, Given):
            return len(self.value.targets) // np.dtype(np.int32).itemsize
        inputs = math.prod(shape)
        pairs = {"fan_in": self.num_neurons, "fan_out": inputs, "probability": inputs * self.num_neurons}
        return round(self.value * pairs[self.rule])

    def init(self, key: Array, *shapes: Shape, dtype: DTypeLike) -> SparseParams:
        """Draw normal weights for currents of variance 1 from random spikes at `EXPECTED_RATE`."""
        synapses = self.num_synapses(shapes[0])
        scale = jax.lax.rsqrt(jnp.float32(max(synapses / self.num_neurons, 1) * EXPECTED_RATE))
        weights = (scale * normal(key, (synapses,))).astype(dtype)
        return SparseParams(weights, jnp.zeros(self.num_neurons, dtype) if self.bias else None)

    def initial_stats(self, key: Array, *shapes: Shape) -> Synapses:
        """The given synapses, or those drawn."""
        if isinstance(self.value, Given):
            return self.value.synapses
        sizes = math.prod(shapes[0]), self.num_neurons
        if self.rule == "probability":
            return Synapses.fixed_number(key, *sizes, self.num_synapses(shapes[0]))
        draw = Synapses.fixed_fan_out if self.rule == "fan_out" else Synapses.fixed_fan_in
        return draw(key, *sizes, int(self.value))

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
    probability: float | None = None,
    synapses: Synapses | None = None,
    bias: bool = True,
) -> Sparse:
    """Make a connection with few synapses, of which only weights that exist are stored, multiplied and learned.

    ``current[j] = bias[j] + sum of weights[s] * spikes[i]`` over the synapses s from neuron i to neuron j
    (`snnjax.spike_sparse_matmul`). Which exist is given, or drawn by ``initial_stats``, as one of four arguments says.
    They are stats, which training does not change; others, as many, may take their place there.

    Args:
        num_neurons: number of neurons that receive the current.
        fan_out: the number of different neurons that each input is connected with, drawn uniformly.
        fan_in: the number of different inputs that each neuron is connected with.
        probability: the share of all pairs that are connected: so many, rounded, drawn uniformly.
        synapses: the synapses, of known values.
        bias: add a learned bias to the current of every step.

    Raises:
        ValueError: if not exactly one of `fan_out`, `fan_in`, `probability` and `synapses` is given, or it does not fit
            the neurons.

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
    rules = {"fan_out": fan_out, "fan_in": fan_in, "probability": probability, "synapses": synapses}
    rules = {rule: value for rule, value in rules.items() if value is not None}
    if len(rules) != 1:
        expected = "given, or `fan_in`, `probability` or `synapses` in its place"
        fail(f"sparse: `fan_out` must be {expected}, got {' and '.join(rules) or 'none'}. Pass one of them.")
    ((rule, value),) = rules.items()
    if rule == "synapses":
        value = Given.of(value, int(num_neurons))
    elif rule == "probability":
        value = check_probability("sparse", value)
    else:
        value = int(check_integer("sparse", rule, value, 0))
    return Sparse(int(num_neurons), rule, value, bool(bias))
