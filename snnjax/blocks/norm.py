"""`batch_norm`, `layer_norm` and `group_norm`: normalised currents."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.typing import DTypeLike
from jaxtyping import Array, Float

from snnjax._arguments import explained
from snnjax._check import check_integer, check_switches, fail, short_repr
from snnjax._types import Params, State, Stats, Unchecked, upcast
from snnjax.blocks.block import (
    Block,
    BlockResult,
    Context,
    Op,
    Shape,
    Signal,
    Stepwise,
    aligned_mask,
    dense_signal,
    given,
    times,
)
from snnjax.ops._moments import moments


class NormParams(NamedTuple):
    """The params of a norm."""

    scale: Float[Array, " channels"]
    bias: Float[Array, " channels"]


class NormStats(NamedTuple):
    """The running statistics of `batch_norm`, in at least float32."""

    mean: Float[Array, " channels"]
    variance: Float[Array, " channels"]


@dataclass(frozen=True)
class Affine(Op):
    """A factor and a term for each channel, which are those of the product before."""


@dataclass(frozen=True)
class BatchNorm(Block):
    """A norm over steps, batch and pixels; made by `batch_norm`."""

    kind, is_counted = "batch_norm", True
    initial_scale: float
    momentum: float
    epsilon: float
    frozen: bool
    axis_name: str | tuple[str, ...] | None

    def needs_all_steps(self, train: bool) -> bool:
        """In training: its statistics are those of all steps."""
        return train and not self.frozen

    def init(self, key: Array, *shapes: Shape, dtype: DTypeLike) -> NormParams:
        """One scale and one bias for each channel."""
        del key
        channels = shapes[0][-1]
        return NormParams(jnp.full(channels, self.initial_scale, dtype), jnp.zeros(channels, dtype))

    def scaled(self, params: NormParams, factor: Array) -> NormParams:
        """The params with scale and bias times `factor`."""
        return times(params, factor)

    def initial_stats(self, key: Array, *shapes: Shape) -> NormStats:
        """Mean 0 and variance 1."""
        del key
        channels = shapes[0][-1]
        return NormStats(jnp.zeros(channels, jnp.float32), jnp.ones(channels, jnp.float32))

    def affine(self, params: NormParams, stats: NormStats) -> tuple[Array, Array]:
        """The factor and the term of each channel, ``factor * x + term``."""
        scale = upcast(params.scale)
        mean, variance = (each.astype(scale.dtype) for each in stats)
        factor = scale * jax.lax.rsqrt(variance + self.epsilon)
        return factor, upcast(params.bias) - mean * factor

    def apply(
        self,
        params: Params,
        state: State,
        stats: Stats,
        *signals: Signal,
        shapes: tuple[Shape, ...],
        context: Context,
    ) -> BlockResult:
        """Normalise by the statistics of this call in training, else by the running ones."""
        del state
        params, stats = given(self.kind, "params", params), given(self.kind, "stats", stats)
        x = upcast(dense_signal(signals[0], shapes[0]))
        x, factor, term, after = self.normaliser(params, stats, x, context)
        return BlockResult(_times(x, factor, term), stats=after)

    def normaliser(
        self, params: NormParams, stats: NormStats, x: Array, context: Context
    ) -> tuple[Array, Array, Array, NormStats | None]:
        """`x`, the factor and the term of each channel, and the stats after it, None if they stay as they are."""
        if not self.needs_all_steps(context.train):
            return x, *self.affine(params, stats), None
        self._check_axis(stats, x)
        (x, now), is_empty = self.statistics(x, context), self._count(x, context) == 0
        kept = jnp.where(is_empty, 1, jnp.float32(self.momentum))
        after = jax.tree.map(
            lambda old, new: kept * old + (1 - kept) * jax.lax.stop_gradient(new).astype(old.dtype),
            stats,
            now,
        )
        return x, *self.affine(params, now), after

    def _check_axis(self, stats: NormStats, x: Array) -> None:
        """Running statistics cannot be the same on all devices if each has those of its own share."""
        if self.axis_name is not None:
            return
        over = jax.typeof(x).manual_axis_type.varying - jax.typeof(stats.mean).manual_axis_type.varying
        if over:
            axes = ", ".join(map(repr, sorted(over)))
            expected = f"name the axis of shard_map over which the batch is divided, {axes}"
            fail(f"batch_norm: `axis_name` must {expected}, got None. Write batch_norm(axis_name={axes}).")

    def statistics(self, x: Array, context: Context) -> tuple[Array, NormStats]:
        """`x` for what follows, and mean and variance of each channel over its steps, the batch, pixels and the axis.

        Steps behind the end of a sequence do not count.
        """
        axes, valid = tuple(range(x.ndim - 1)), context.valid(x.shape[0])
        mask = None if valid is None else aligned_mask(valid, x.ndim)
        if self.axis_name is None and context.implementation != "composed":
            inside = None if mask is None else jnp.broadcast_to(mask[..., 0], x.shape[:-1])
            x, *own = moments(x, inside, implementation=_forced(context.implementation))
            return x, NormStats(*own)

        def total(array: Array) -> Array:  # sums and counts over shards, never means of means
            array = array if mask is None else jnp.where(mask, array, 0)
            return self._over_shards(jnp.sum(array, axes))

        count = jnp.maximum(self._count(x, context), 1)
        mean = total(x) / count
        return x, NormStats(mean, total((x - _of_channels(mean, x)) ** 2) / count)

    def _count(self, x: Array, context: Context) -> Array:
        """How many numbers of a channel the statistics are of."""
        valid = context.valid(x.shape[0])
        rows = (
            jnp.asarray(math.prod(x.shape[:2]), x.dtype) if valid is None else jnp.sum(valid, dtype=x.dtype)
        )
        return self._over_shards(rows) * math.prod(x.shape[2:-1])

    def _over_shards(self, array: Array) -> Array:
        return array if self.axis_name is None else jax.lax.psum(array, self.axis_name)

    def op(self, shape: Shape) -> Affine:
        """A factor and a term, where it uses its running statistics."""
        del shape
        return Affine()

    def operands(self, params: NormParams, stats: NormStats, shape: Shape) -> tuple[Array, Array]:
        """The factor and the term of each channel."""
        del shape
        return self.affine(params, stats)


@dataclass(frozen=True)
class LayerNorm(Stepwise):
    """A norm over the neurons of each sample and step, or of groups of channels; made by `layer_norm`, `group_norm`."""

    is_counted = True
    initial_scale: float
    epsilon: float
    groups: int | None = None  # one of all channels

    @property
    def kind(self) -> str:  # type: ignore[override]
        """The function that makes it."""
        return "layer_norm" if self.groups is None else "group_norm"

    def out_shape(self, *shapes: Shape) -> Shape:
        """The same neurons."""
        (shape,) = shapes
        if self.groups is not None and shape[-1] % self.groups:
            hint = "Choose a divisor"
            fail(f"group_norm: `groups` must divide the channels, {shape[-1]}, got {self.groups}. {hint}.")
        return shape

    def init(self, key: Array, *shapes: Shape, dtype: DTypeLike) -> NormParams:
        """One scale and one bias for each channel."""
        del key
        channels = shapes[0][-1]
        return NormParams(jnp.full(channels, self.initial_scale, dtype), jnp.zeros(channels, dtype))

    def scaled(self, params: NormParams, factor: Array) -> NormParams:
        """The params with scale and bias times `factor`."""
        return times(params, factor)

    def apply(
        self,
        params: Params,
        state: State,
        stats: Stats,
        *signals: Signal,
        shapes: tuple[Shape, ...],
        context: Context,
    ) -> BlockResult:
        """Normalise each step of each sample over the neurons of each group."""
        del state, stats, context
        params = given(self.kind, "params", params)
        x = upcast(dense_signal(signals[0], shapes[0]))
        groups = x.reshape(*x.shape[:-1], self.groups or 1, -1)
        axes = (*range(2, x.ndim - 1), x.ndim)
        centred = groups - jnp.mean(groups, axes, keepdims=True)
        variance = jnp.mean(centred**2, axes, keepdims=True)
        normal = (centred * jax.lax.rsqrt(variance + self.epsilon)).reshape(x.shape)
        return BlockResult(_times(normal, upcast(params.scale), upcast(params.bias)))


@explained
def batch_norm(
    *,
    scale: float = 1.0,
    momentum: float = 0.9,
    epsilon: float = 1e-5,
    frozen: bool = False,
    axis_name: str | tuple[str, ...] | None = None,
) -> BatchNorm:
    """Normalise currents per channel over all steps, the batch and pixels: threshold-dependent batch normalisation.

    ``y = scale (x - mean) / sqrt(variance + epsilon) + bias``, with a learned `scale` and `bias` per channel. In
    training, mean and variance are those of the call, over the steps within `lengths`; otherwise they are the running
    ones of the network's stats, and the fused op computes the norm as part of the weights. A call without any steps
    leaves the running ones as they are.

    Args:
        scale: the deviation of the normalised currents at the start. `Network.init` scales it to the drive of the
            neurons after the norm: 1 is the current at which they spike at 5 % of the steps.
        momentum: the share of the running statistics that a call keeps.
        epsilon: is added to the variance.
        frozen: use the running statistics in training too.
        axis_name: the axis of `jax.shard_map` or `jax.vmap` over which a batch is divided; in training `shard_map`
            needs it, unless the running statistics are each device's own too.

    Raises:
        ValueError: if a number is out of range; in training, if `shard_map` divides the batch over an axis not named.

    Example:
        >>> from snnjax import blocks
        >>> blocks.batch_norm().out_shape((17, 17, 32))
        (17, 17, 32)

    Reference:
        Ioffe and Szegedy 2015, arXiv:1502.03167; Zheng et al. 2021, arXiv:2011.05280 (over time, scaled to the
        threshold).
    """
    _check_numbers("batch_norm", scale, epsilon)
    if not _is_number(momentum) or not 0 <= momentum < 1:
        fail(
            f"batch_norm: `momentum` must be at least 0 and below 1, got {short_repr(momentum)}. "
            "It is the share that is kept; try 0.9."
        )
    check_switches("batch_norm", frozen=frozen)
    return BatchNorm(float(scale), float(momentum), float(epsilon), bool(frozen), axis_name)


@explained
def layer_norm(*, scale: float = 1.0, epsilon: float = 1e-5) -> LayerNorm:
    """Normalise the currents of each sample and step over its neurons, with a learned scale and bias per channel.

    ``y = scale (x - mean) / sqrt(variance + epsilon) + bias``; it is the same in training and evaluation.

    Raises:
        ValueError: if a number is out of range.

    Example:
        >>> from snnjax import blocks
        >>> blocks.layer_norm().out_shape((128,))
        (128,)

    Reference:
        Ba, Kiros and Hinton 2016, arXiv:1607.06450.
    """
    _check_numbers("layer_norm", scale, epsilon)
    return LayerNorm(float(scale), float(epsilon))


@explained
def group_norm(groups: int, *, scale: float = 1.0, epsilon: float = 1e-5) -> LayerNorm:
    """Normalise the currents of each sample and step over groups of channels and all pixels, like `layer_norm`.

    Args:
        groups: the number of groups of neighbouring channels, a divisor of their number.
        scale: the deviation of the normalised currents at the start.
        epsilon: is added to the variance.

    Raises:
        ValueError: if a number is out of range; in a network, if the groups do not divide the channels.

    Example:
        >>> from snnjax import blocks
        >>> blocks.group_norm(4).out_shape((17, 17, 32))
        (17, 17, 32)

    Reference:
        Wu and He 2018, arXiv:1803.08494.
    """
    _check_numbers("group_norm", scale, epsilon)
    return LayerNorm(float(scale), float(epsilon), check_integer("group_norm", "groups", groups, 1))


def _forced(implementation: str | None) -> str | None:
    """That of the statistics: a GPU has no kernel of its own for them."""
    return None if implementation == "gpu" else implementation


def _times(x: Array, factor: Array, term: Array) -> Array:
    return x * _of_channels(factor, x) + _of_channels(term, x)


def _of_channels(array: Array, x: Array) -> Array:
    """What channels have, along the axes of `x`."""
    return array.reshape((1,) * (x.ndim - 1) + (-1,))


def _is_number(value: Unchecked) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _check_numbers(op: str, scale: Unchecked, epsilon: Unchecked) -> None:
    for argument, value in (("scale", scale), ("epsilon", epsilon)):
        if not _is_number(value) or not 0 < value < math.inf:
            fail(f"{op}: `{argument}` must be a number above 0, got {short_repr(value)}. Try its default.")
