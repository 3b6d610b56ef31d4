"""The connections of layers: dense weights or a convolution, optionally after pooling.

A user specifies a connection; `network` fits it to the shape of its inputs (`Fitted`).
"""

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool

from snnjax._check import check_integer, check_rounding, fail, plural, short_repr
from snnjax._quantised import Quantised
from snnjax.ops._connection import Connection
from snnjax.ops._convolution import Convolution, checked_padding
from snnjax.ops.pool_spikes import Pooling, as_pooling

Shape = tuple[int, ...]  # (neurons,), (length, channels) or (height, width, channels), row-major
_IMAGES = "Pass the shape of the inputs to network, and no flatten() before"


@dataclass(frozen=True, eq=False)
class Mask:
    """Which dense weights exist; masks with the same entries are equal."""

    entries: Bool[np.ndarray, "inputs neurons"]

    @functools.cached_property
    def _key(self) -> tuple[Shape, bytes]:
        return self.entries.shape, np.packbits(self.entries).tobytes()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Mask) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)


@dataclass(frozen=True)
class Dense:
    """Dense weights from all inputs to all neurons; made by `dense`."""

    num_neurons: int
    mask: Mask | None
    rounds_cotangents: bool = False
    exact_within: float = 0.0


@dataclass(frozen=True)
class Convolve:
    """A convolution; made by `conv1d` and `conv2d`."""

    channels: int
    kernel: Shape
    strides: Shape
    padding: str | tuple[tuple[int, int], ...]
    groups: int


@dataclass(frozen=True)
class Pool:
    """Sum or mean over windows; made by `sum_pool` and `mean_pool`."""

    window: int | Shape
    mean: bool


@dataclass(frozen=True)
class Flatten:
    """The neurons of an image flattened to one axis; made by `flatten`."""


Weighted = Dense | Convolve  # the connections of a layer
Between = Pool | Flatten  # what may stand between layers, without weights


@dataclass(frozen=True)
class Fitted:
    """A connection fitted to the shape of its inputs."""

    connection: Connection
    in_shape: Shape
    out_shape: Shape
    weights_shape: Shape
    fan_in: float  # inputs of a neuron, each weighted by its squared scale
    mask: Mask | None = None

    @property
    def num_neurons(self) -> int:
        """The number of neurons after the connection."""
        return math.prod(self.out_shape)

    def masked(self, weights: Any) -> Any:
        """The weights with masked entries set to 0, which also makes their gradients 0."""
        if self.mask is None:
            return weights
        if isinstance(weights, Quantised):
            return weights._replace(values=self.masked(weights.values))
        return jnp.where(jnp.asarray(self.mask.entries), weights, jnp.zeros_like(weights))

    def expand(self, array: Any) -> Any:
        """One value per neuron from one per channel; other arrays are unchanged."""
        positions = math.prod(self.out_shape[:-1])
        is_per_channel = jnp.ndim(array) == 1 and array.shape[0] == self.out_shape[-1]
        return jnp.tile(array, positions) if is_per_channel and positions > 1 else array


def dense(
    num_neurons: int, *, mask: Any = None, cotangent_dtype: Any = None, exact_within: float | None = None
) -> Dense:
    """Make a connection with dense weights, for `layer`: ``current = spikes @ weights``.

    Args:
        num_neurons: number of neurons of the layer.
        mask: bool ``[inputs, neurons]``; weights stay 0 where it is False.
        cotangent_dtype: ``jnp.bfloat16`` allows the backward product ``g_spikes = g_current @ weights.T`` to round both
            factors to bfloat16 where that is faster; sums stay float32. Each factor then has a relative error of at
            most 2^-8. None rounds nothing.
        exact_within: with `cotangent_dtype`, neurons of the layer below whose membrane is nearer than this to their
            threshold, ``|v - threshold| < exact_within``, get their ``g_spikes`` from factors that are not rounded.
            There a surrogate is steep, so that these few carry most of the gradient. Where rounding is not faster, and
            on the references, nothing is rounded then. None rounds all.

    Raises:
        ValueError: if the width, the mask, the dtype or the distance is invalid.

    Example:
        >>> import numpy as np
        >>> from snnjax import dense, layer
        >>> layer(dense(4, mask=np.eye(4, dtype=bool))).connection.num_neurons
        4
    """
    check_integer("dense", "num_neurons", num_neurons, 1)
    rounds = check_rounding("dense", "cotangent_dtype", cotangent_dtype)
    distance = _checked_distance(exact_within, rounds)
    if mask is None:
        return Dense(num_neurons, None, rounds, distance)
    entries = np.array(mask)
    if not (entries.ndim == 2 and entries.shape[1] == num_neurons and entries.dtype == bool):
        fail(
            f"dense: `mask` must be bool [inputs, neurons] = [any, {num_neurons}], got {short_repr(entries)}. "
            "Compare the weights with 0, or cast it."
        )
    entries.setflags(write=False)
    return Dense(num_neurons, Mask(entries), rounds, distance)


def _checked_distance(exact_within: float | None, rounds: bool) -> float:
    """The distance from the threshold, 0 for None, which must be above 0 and comes with rounding."""
    if exact_within is None:
        return 0.0
    if not rounds:
        fail(
            f"dense: `exact_within` must come with a `cotangent_dtype`, got {short_repr(exact_within)}. "
            "Pass cotangent_dtype=jnp.bfloat16 as well."
        )
    is_number = isinstance(exact_within, int | float) and not isinstance(exact_within, bool)
    limits = np.finfo(np.float32)
    if not (is_number and float(limits.tiny) <= exact_within <= float(limits.max)):
        fail(
            f"dense: `exact_within` must be a finite float32 above 0, got {short_repr(exact_within)}. "
            "Omit it to round all cotangents."
        )
    return float(exact_within)


def conv1d(
    channels: int,
    kernel: int,
    *,
    strides: int = 1,
    padding: str | Sequence[tuple[int, int]] = "same",
    groups: int = 1,
) -> Convolve:
    """Make a convolution along one axis, for `layer`; by itself in a list of layers it makes a LIF layer.

    It is like `conv2d`, for neurons of the shape (length, channels).

    Example:
        >>> from snnjax import conv1d, leaky_readout, network
        >>> network((20, 3), [conv1d(8, 5, strides=2)], leaky_readout(2)).layers[0].connection.out_shape
        (10, 8)
    """
    return _convolve("conv1d", channels, (kernel,), (strides,), padding, groups)


def conv2d(
    channels: int,
    kernel: int | tuple[int, int],
    *,
    strides: int | tuple[int, int] = 1,
    padding: str | Sequence[tuple[int, int]] = "same",
    groups: int = 1,
) -> Convolve:
    """Make a convolution over images, for `layer`; by itself in a list of layers it makes a LIF layer.

    ``current[y, x, o] = sum over (i, j, c) of spikes[y s + i - p, x s + j - p, c] weights[i, j, c, o]``, as in
    `snnjax.spike_conv`: a spike adds a patch, and weight gradients only touch the patches of spikes.

    Args:
        channels: number of channels of the layer.
        kernel: height and width of the kernel, or one number for both.
        strides: strides along height and width, or one number for both.
        padding: "same", "valid", or (before, after) for each axis.
        groups: number of groups that the channels on both sides are split into; each group is connected to one.

    Raises:
        ValueError: if a length is below 1. `network` checks whatever depends on the shape of the inputs.

    Example:
        >>> from snnjax import conv2d, leaky_readout, network, sum_pool
        >>> net = network((34, 34, 2), [conv2d(12, 5), sum_pool(2), conv2d(32, 5)], leaky_readout(10))
        >>> [spec.connection.out_shape for spec in net.layers]
        [(34, 34, 12), (17, 17, 32)]
    """
    return _convolve("conv2d", channels, _pair(kernel), _pair(strides), padding, groups)


def sum_pool(window: int | tuple[int, int]) -> Pool:
    """Sum the spikes in each window before the next layer; windows do not overlap, and no product is needed.

    See `snnjax.pool_spikes`. Pixels left over at the far edges are dropped.

    Example:
        >>> from snnjax import dense, leaky_readout, network, sum_pool
        >>> net = network((4, 4, 1), [sum_pool(2), dense(8)], leaky_readout(2))
        >>> net.layers[0].connection.weights_shape
        (4, 8)
    """
    return _pool("sum_pool", window, mean=False)


def mean_pool(window: int | tuple[int, int]) -> Pool:
    """Average the spikes in each window before the next layer, like `sum_pool`.

    Example:
        >>> from snnjax import mean_pool
        >>> mean_pool(2).mean
        True
    """
    return _pool("mean_pool", window, mean=True)


def flatten() -> Flatten:
    """Flatten the neurons of an image to one axis: later layers see no pixels. Dense weights need no `flatten`.

    Example:
        >>> from snnjax import dense, flatten, leaky_readout, network
        >>> network((4, 4, 2), [flatten(), dense(8)], leaky_readout(2)).num_inputs
        32
    """
    return Flatten()


def _convolve(op: str, channels: int, kernel: Shape, strides: Shape, padding: Any, groups: int) -> Convolve:
    check_integer(op, "channels", channels, 1)
    for name, lengths in (("kernel", kernel), ("strides", strides)):
        for length in lengths:
            check_integer(op, name, length, 1)
    check_integer(op, "groups", groups, 1)
    return Convolve(channels, kernel, strides, checked_padding(op, padding, len(kernel)), groups)


def _pool(op: str, window: int | tuple[int, int], mean: bool) -> Pool:
    for size in window if isinstance(window, tuple) else (window,):
        check_integer(op, "window", size, 1)
    return Pool(window, mean)


def _pair(number: Any) -> Any:
    return number if isinstance(number, tuple) else (number, number)


def fit(what: Weighted | Fitted, shape: Shape, pools: Sequence[Pool], is_flat: bool) -> Fitted:
    """Fit a connection after pools to inputs of `shape`; `is_flat`: whether a `flatten` follows the pools."""
    assert not isinstance(what, Fitted)
    pooling, pooled = None, shape
    for pool in pools:
        pooling = _pooling_behind(pooling, pooled, pool)
        pooled = pooling.out_shape
    if isinstance(what, Dense):
        inputs = math.prod(pooled)
        weights = (inputs, what.num_neurons)
        if what.mask is not None and len(what.mask.entries) != inputs:
            rows = plural(inputs, "row")
            fail(
                f"network: `mask` must have {rows}, one per input of its layer, got {len(what.mask.entries)}. "
                "Make it for the layer before."
            )
        fan_in = inputs * _share(pooling)
        return Fitted(
            Connection(pooling, None, what.rounds_cotangents, what.exact_within),
            shape,
            (what.num_neurons,),
            weights,
            fan_in,
            what.mask,
        )
    lengths = len(what.kernel)
    pooled = (math.prod(pooled),) if is_flat else pooled
    axes = "height, width" if lengths == 2 else "length"
    if len(pooled) != lengths + 1:
        fail(
            f"network: `layers` must have the shape ({axes}, channels) before a convolution, got {pooled}. "
            f"{_IMAGES}."
        )
    options = {"strides": what.strides, "padding": what.padding, "groups": what.groups}
    own = Convolution.of("network", pooled, what.kernel, what.channels, **options)
    fan_in = own.fan_in * _share(pooling)
    return Fitted(Connection(pooling, own), shape, own.out_shape, own.weights_shape, fan_in)


def _share(pooling: Pooling | None) -> float:
    """The variance of a window's output, relative to that of one spike."""
    return 1.0 if pooling is None else math.prod(pooling.window) * pooling.scale**2


def _pooling_behind(before: Pooling | None, shape: Shape, pool: Pool) -> Pooling:
    """This pool before a connection, merged with the pooling before it."""
    if len(shape) == 1:
        fail(f"network: `layers` must have pixels and channels before a pool, got {shape}. {_IMAGES}.")
    own = as_pooling("network", shape, pool.window, pool.mean)
    if before is None:
        return own
    both = before.then(own.window, own.mean)
    if both is None:
        fail(
            "network: `layers` must use one kind of pooling before a layer, got a sum and a mean. "
            "Put a layer between them."
        )
    return both
