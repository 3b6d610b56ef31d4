"""What blocks with weights share: their params, how they are drawn, and their currents."""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from snnjax._check import fail
from snnjax._quantised import Quantised, dequantise, scaled
from snnjax._types import upcast
from snnjax.blocks.block import Block, BlockResult, Context, Op, Shape, Signal, one_per_neuron, times
from snnjax.neurons._drive import EXPECTED_RATE
from snnjax.ops._connection import Connection

# A process has 2^48 addresses, and XLA ends one that describes an array of 2^60 entries.
_LOG2_WEIGHTS = 48


class LinearParams(NamedTuple):
    """The params of a connection."""

    # [inputs, neurons] or [*kernel, channels / groups, channels]; `Quantised` in a network that only runs.
    weights: Float[Array, "..."] | Any
    bias: Float[Array, " neurons"] | None = None  # or one per channel


@dataclass(frozen=True)
class Product(Op):
    """The weights of a layer."""

    connection: Connection


@dataclass(frozen=True, kw_only=True)
class Linear(Block):
    """A connection with weights: ``currents = weights spikes + bias``; one's own is a frozen dataclass derived from it.

    It states the shape of its weights and its product. Metrics then count what it costs, `Network.init` scales it, and
    weights of 8 bits are dequantised for it.

    Example:
        >>> import dataclasses, jax
        >>> import snnjax
        >>> from snnjax import blocks
        >>> @dataclasses.dataclass(frozen=True)
        ... class Scale(blocks.Linear):
        ...     kind = "scale"
        ...
        ...     def weights_shape(self, shape):
        ...         return (1, shape[-1])
        ...
        ...     def product(self, weights, x, shape, implementation):
        ...         return blocks.dense_signal(x, shape) * weights[0]
        >>> params = snnjax.network(4, [snnjax.layer(Scale())]).init(jax.random.key(0))
        >>> params["layer_0/connection"].weights.shape
        (1, 4)
    """

    bias: bool = True

    def weights_shape(self, shape: Shape) -> Shape:
        """The shape of the weights for inputs of this shape."""
        raise NotImplementedError

    def fitted(self, *shapes: Shape) -> "Linear":
        """The connection, if its weights are not too many."""
        count = math.prod(self.weights_shape(*shapes))
        if count > 2**_LOG2_WEIGHTS:
            fail(
                f"{self.kind}: `weights` must be at most 2**{_LOG2_WEIGHTS}, got {count}. Use fewer neurons."
            )
        return self

    def fan_in(self, shape: Shape) -> float:
        """The number of inputs that a neuron sums."""
        return math.prod(self.weights_shape(shape)[:-1])

    def used(self, weights: Any) -> Any:
        """The weights as they are multiplied: those of 8 bits are dequantised."""
        return dequantise(weights) if isinstance(weights, Quantised) else weights

    def product(self, weights: Any, x: Signal, shape: Shape, implementation: str | None) -> Array:
        """``weights spikes``, ``[time, batch, *out_shape]`` in the accumulation dtype, which `x` has."""
        raise NotImplementedError

    def init(self, key: Array, *shapes: Shape, dtype: Any) -> LinearParams:
        """Draw normal weights for currents of variance 1 from random spikes at `EXPECTED_RATE`."""
        (shape,) = shapes
        scale = jax.lax.rsqrt(jnp.float32(max(self.fan_in(shape), 1) * EXPECTED_RATE))
        weights = self.used(scale * normal(key, self.weights_shape(shape))).astype(dtype)
        return LinearParams(weights, jnp.zeros(self.out_shape(shape)[-1], dtype) if self.bias else None)

    def currents(
        self,
        params: LinearParams,
        x: Signal,
        shape: Shape | None = None,
        *,
        implementation: str | None = None,
    ) -> Float[Array, "time batch ..."]:
        """The currents of spikes ``[time, batch, *shape]``, in at least float32; lists need the `shape`."""
        shape = tuple(x.shape[2:]) if shape is None else shape
        currents = self.product(self.used(params.weights), x, shape, implementation)
        return (
            currents
            if params.bias is None
            else currents + upcast(params.bias).reshape((1,) * (currents.ndim - 1) + (-1,))
        )

    def apply(
        self,
        params: Any,
        state: Any,
        stats: Any,
        *signals: Signal,
        shapes: tuple[Shape, ...],
        context: Context,
    ) -> BlockResult:
        """The currents of all steps at once."""
        del state, stats
        (x,), (shape,) = signals, shapes
        return BlockResult(self.currents(params, x, shape, implementation=context.implementation))

    def scaled(self, params: LinearParams, factor: Array) -> LinearParams:
        """The params with all weights, and biases, times `factor`."""
        return times(params, factor)

    def operands(self, params: LinearParams, stats: Any, shape: Shape) -> LinearParams:
        """The weights as they are multiplied, and one bias per neuron."""
        del stats
        bias = None if params.bias is None else one_per_neuron(params.bias, self.out_shape(shape))
        return LinearParams(self.used(params.weights), bias)


def rescaled(weights: Any, factor: Array) -> Any:
    """Weights whose currents are larger by a factor for each output."""
    if isinstance(weights, Quantised):
        return weights._replace(scale=(upcast(weights.scale) * factor).astype(weights.dtype))
    return scaled(upcast(weights), factor).astype(weights.dtype)


def normal(key: Array, shape: Shape) -> Array:
    """Normal numbers, drawn on one axis: the same ones, but XLA compiles them up to three times faster."""
    return jax.random.normal(key, (math.prod(shape),), jnp.float32).reshape(shape)
