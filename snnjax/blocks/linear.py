"""What blocks with weights share: their params, how they are drawn, and their currents."""

import dataclasses
import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import DTypeLike
from jaxtyping import Array, Float

from snnjax._check import check_shape, fail, short_repr
from snnjax._quantised import Quantised, dequantise, scaled
from snnjax._types import Params, State, Stats, Weights, upcast
from snnjax.blocks.block import (
    Block,
    BlockResult,
    Context,
    Op,
    Shape,
    Signal,
    Stepwise,
    given,
    one_per_neuron,
    times,
)
from snnjax.neurons._drive import EXPECTED_RATE
from snnjax.ops._connection import Connection

# A process has 2^48 addresses, and XLA ends one that describes an array of 2^60 entries.
_LOG2_WEIGHTS = 48


class LinearParams(NamedTuple):
    """The params of a connection."""

    # ``[inputs, neurons]`` or ``[*kernel, channels / groups, channels]``; `Quantised` in a network that only runs.
    weights: Float[Array, "..."] | Any
    bias: Float[Array, " neurons"] | None = None  # or one per channel


@dataclass(frozen=True)
class Product(Op):
    """The weights of a layer."""

    connection: Connection


@dataclass(frozen=True, kw_only=True)
class Linear(Stepwise):
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

    is_counted = True
    bias: bool = True
    reparametrize: Callable[[Array], Array] | None = None  # see `reparametrized`

    def weights_shape(self, shape: Shape) -> Shape:
        """The shape of the weights for inputs of this shape."""
        raise NotImplementedError

    def fitted(self, *shapes: Shape) -> "Linear":
        """The connection, if its weights are not too many, and their function is one for `init`."""
        count = math.prod(self.weights_shape(*shapes))
        if count > 2**_LOG2_WEIGHTS:
            fail(
                f"{self.kind}: `weights` must be at most 2**{_LOG2_WEIGHTS}, got {count}. Use fewer neurons."
            )
        if self.reparametrize is not None:
            check_function(self.reparametrize, self.weights_shape(*shapes))
        return self

    def plain(self, params: LinearParams) -> tuple["Linear", LinearParams]:
        """The connection and its params with the weights as they are multiplied, which no function makes."""
        if self.reparametrize is None:
            return self, params
        own = params._replace(weights=self.used(params.weights))
        return dataclasses.replace(self, reparametrize=None), own

    def ahead(self) -> tuple[int, Block] | None:
        """No step."""
        return None if self.bias else (0, self)

    def fan_in(self, shape: Shape) -> float:
        """The number of inputs that a neuron sums."""
        return math.prod(self.weights_shape(shape)[:-1])

    def held(self, weights: Weights) -> Weights:
        """The weights that exist, from those of the params: those of 8 bits are dequantised."""
        return dequantise(weights) if isinstance(weights, Quantised) else weights

    def used(self, weights: Weights) -> Weights:
        """The weights as they are multiplied: those that exist, as the function of `reparametrized` makes them."""
        held = self.held(weights)
        if self.reparametrize is None:
            return held
        held = dequantise(held) if isinstance(held, Quantised) else held
        return self.held(self.reparametrize(upcast(held)).astype(held.dtype))

    def product(self, weights: Weights, x: Signal, shape: Shape, implementation: str | None) -> Array:
        """``weights spikes``, ``[time, batch, *out_shape]`` in the accumulation dtype, which `x` has."""
        raise NotImplementedError

    def init(self, key: Array, *shapes: Shape, dtype: DTypeLike) -> LinearParams:
        """Draw normal weights for currents of variance 1 from random spikes at `EXPECTED_RATE`."""
        (shape,) = shapes
        scale = jax.lax.rsqrt(jnp.float32(max(self.fan_in(shape), 1) * EXPECTED_RATE))
        weights = self.held(scale * normal(key, self.weights_shape(shape)))
        if self.reparametrize is not None:  # the weights that are multiplied have this scale
            made = jnp.sum(self.used(weights) ** 2)
            weights *= jnp.where(made == 0, 1, jnp.sqrt(jnp.sum(weights**2) / made))
        weights = weights.astype(dtype)
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
        params: Params,
        state: State,
        stats: Stats,
        *signals: Signal,
        shapes: tuple[Shape, ...],
        context: Context,
    ) -> BlockResult:
        """The currents of all steps at once."""
        del state, stats
        (x,), (shape,) = signals, shapes
        params = given(self.kind, "params", params)
        return BlockResult(self.currents(params, x, shape, implementation=context.implementation))

    def scaled(self, params: LinearParams, factor: Array) -> LinearParams:
        """The params with all weights, and biases, times `factor`."""
        return times(params, factor)

    def operands(self, params: LinearParams, stats: Stats, shape: Shape) -> LinearParams:
        """The weights as they are multiplied, and one bias per neuron."""
        del stats
        bias = None if params.bias is None else one_per_neuron(params.bias, self.out_shape(shape))
        return LinearParams(self.used(params.weights), bias)


def reparametrized(connection: Any, function: Callable[[Array], Array]) -> Any:
    """Multiply by a function of the weights in place of the weights: for weight standardisation, Dale's law, masks.

    Gradients reach the weights of the params through the function. Everything else sees the weights that it makes:
    kernels, `Network.fold`, NIR, metrics. `Network.init` gives these the scale that the neurons need; for this the
    function must be one for which twice the weights are twice the result.

    Args:
        connection: such as ``dense(8)`` or ``conv2d(8, 3)``, or one's own `Linear`; a connection of `recurrent`, too.
        function: from weights to weights of the same shape, in at least float32. Networks are equal, and are not
            compiled again, if it is the same function: one of a module, not a lambda within a loop.

    Raises:
        ValueError: if it is no connection with weights; in a network, if the function does not scale with the weights.

    Example:
        >>> import jax.numpy as jnp
        >>> import snnjax
        >>> from snnjax import blocks
        >>> def dale(weights):  # of four inputs, the first three are excitatory
        ...     return jnp.abs(weights) * jnp.array([1.0, 1.0, 1.0, -1.0])[:, None]
        >>> net = snnjax.network(4, [snnjax.layer(blocks.reparametrized(snnjax.dense(8), dale))])
        >>> net.nodes[0].block.used(-jnp.ones((4, 8)))[:, 0]
        Array([ 1.,  1.,  1., -1.], dtype=float32)
    """
    if not isinstance(connection, Linear):
        fail(
            f"reparametrized: `connection` must have weights, as dense(8) has, got {short_repr(connection)}. "
            "Put it around the connection, not around a layer."
        )
    if not callable(function):
        fail(
            f"reparametrized: `function` must be a function of the weights, got {short_repr(function)}. "
            "Pass blocks.standardized, for instance."
        )
    return dataclasses.replace(connection, reparametrize=function)


def standardized(weights: Float[Array, "..."]) -> Float[Array, "..."]:
    """Weights whose mean is 0 and whose variance is the same for each output, for `reparametrized`.

    ``scale (weights - mean) / sqrt(variance + epsilon)`` with the mean and the variance of the weights of each output.
    `scale` is the root mean square of all weights, so the result is as large as these; `epsilon` is 1e-5 of its square.

    Example:
        >>> import jax.numpy as jnp
        >>> from snnjax import blocks
        >>> blocks.standardized(jnp.array([[1.0, 3.0], [0.0, 1.0]])).sum(axis=0)
        Array([0., 0.], dtype=float32)

    Reference:
        Qiao et al. 2019, arXiv:1903.10520.
    """
    axes = tuple(range(weights.ndim - 1))
    centred = weights - jnp.mean(weights, axes, keepdims=True)
    square = jnp.mean(weights**2)
    variance = jnp.mean(centred**2, axes, keepdims=True) + 1e-5 * square
    return centred * jnp.sqrt(square / variance)


@functools.lru_cache(maxsize=256)
def check_function(function: Callable[[Array], Array], shape: Shape) -> None:
    """Check that a function of weights keeps their shape, and scales with them as `Linear.init` relies on."""
    with jax.ensure_compile_time_eval():
        weights = normal(jax.random.key(0), shape)
        once, twice = function(weights), function(2 * weights)
    hint = "It is called with all weights of the connection"
    check_shape("reparametrized", "function", once, shape, "as the weights", hint)
    if not np.allclose(twice, 2 * np.asarray(once), rtol=1e-3, atol=1e-6):
        fail(
            "reparametrized: `function` must give twice the result for twice the weights, got another one. "
            "Multiply it by the root mean square of the weights, jnp.sqrt(jnp.mean(weights**2))."
        )


def rescaled(weights: Weights, factor: Array) -> Weights:
    """Weights whose currents are larger by a factor for each output."""
    if isinstance(weights, Quantised):
        return weights._replace(scale=(upcast(weights.scale) * factor).astype(weights.scale.dtype))
    return scaled(upcast(weights), factor).astype(weights.dtype)


def normal(key: Array, shape: Shape) -> Array:
    """Normal numbers, drawn on one axis: the same ones, but XLA compiles them up to three times faster."""
    return jax.random.normal(key, (math.prod(shape),), jnp.float32).reshape(shape)
