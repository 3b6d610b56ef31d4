"""`conv1d` and `conv2d`: convolutions over the shape of the incoming neurons."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from jaxtyping import Array

from snnjax._check import check_integer, check_switches, fail
from snnjax._types import upcast
from snnjax.blocks.block import Shape, Signal, flat, shaped
from snnjax.blocks.linear import Linear, Product
from snnjax.ops import spike_conv
from snnjax.ops._connection import Connection
from snnjax.ops._convolution import Convolution, checked_padding


@dataclass(frozen=True)
class Convolve(Linear):
    """A convolution; made by `conv1d` and `conv2d`."""

    channels: int
    kernel: Shape
    strides: Shape
    padding: str | tuple[tuple[int, int], ...]
    groups: int

    @property
    def kind(self) -> str:  # type: ignore[override]
        """The function that makes it."""
        return f"conv{len(self.kernel)}d"

    def geometry(self, shape: Shape) -> Convolution:
        """The geometry for inputs of this shape."""
        axes = len(self.kernel)
        if len(shape) != axes + 1:
            names = "height, width" if axes == 2 else "length"
            fail(
                f"{self.kind}: `shape` must be ({names}, channels), got {shape}. "
                "Pass the shape of the inputs to network, and no flatten() before."
            )
        options = {"strides": self.strides, "padding": self.padding, "groups": self.groups}
        return Convolution.of(self.kind, shape, self.kernel, self.channels, **options)

    def out_shape(self, *shapes: Shape) -> Shape:
        """(height, width, channels) or (length, channels)."""
        return self.geometry(*shapes).out_shape

    def weights_shape(self, shape: Shape) -> Shape:
        """``[*kernel, channels / groups, channels]``."""
        return self.geometry(shape).weights_shape

    def product(self, weights: Any, x: Signal, shape: Shape, implementation: str | None) -> Array:
        """The convolution, as in `snnjax.spike_conv`."""
        form = self.geometry(shape)
        options: Any = {"strides": form.strides, "padding": form.padding, "groups": form.groups}
        out = spike_conv(flat(x), upcast(weights), shape=shape, **options, implementation=implementation)
        return shaped(out, form.out_shape)

    def op(self, shape: Shape) -> Product:
        """A product of the fused op."""
        return Product(Connection(None, self.geometry(shape)))


def conv1d(
    channels: int,
    kernel: int,
    *,
    strides: int = 1,
    padding: str | Sequence[tuple[int, int]] = "same",
    groups: int = 1,
    bias: bool = True,
    name: str | None = None,
    source: str | None = None,
) -> Convolve:
    """Make a convolution along one axis, like `conv2d`, for neurons of the shape (length, channels).

    Example:
        >>> from snnjax import conv1d
        >>> conv1d(8, 5, strides=2).out_shape((20, 3))
        (10, 8)
    """
    return _convolve("conv1d", channels, (kernel,), (strides,), padding, groups, bias, name, source)


def conv2d(
    channels: int,
    kernel: int | tuple[int, int],
    *,
    strides: int | tuple[int, int] = 1,
    padding: str | Sequence[tuple[int, int]] = "same",
    groups: int = 1,
    bias: bool = True,
    name: str | None = None,
    source: str | None = None,
) -> Convolve:
    """Make a convolution over images, for neurons of the shape (height, width, channels).

    ``current[y, x, o] = sum over (i, j, c) of spikes[y s + i - p, x s + j - p, c] weights[i, j, c, o] + bias[o]``, as
    in `snnjax.spike_conv`: a spike adds a patch, and weight gradients only touch the patches of spikes.

    Args:
        channels: number of channels of the current.
        kernel: height and width of the kernel, or one number for both.
        strides: strides along height and width, or one number for both.
        padding: "same", "valid", or (before, after) for each axis.
        groups: number of groups that the channels on both sides are split into; each group is connected to one.
        bias: add a learned bias to the current of every step, one for each channel.
        name: names the block in a network.
        source: the name of the block or input that it receives; None for the one before it.

    Raises:
        ValueError: if a length is below 1; in a network, if its inputs have no pixels.

    Example:
        >>> from snnjax import conv2d
        >>> conv2d(12, 5).out_shape((34, 34, 2))
        (34, 34, 12)
    """
    return _convolve("conv2d", channels, _pair(kernel), _pair(strides), padding, groups, bias, name, source)


def _convolve(
    op: str,
    channels: int,
    kernel: Shape,
    strides: Shape,
    padding: Any,
    groups: int,
    bias: bool,
    name: Any,
    source: Any,
) -> Convolve:
    check_integer(op, "channels", channels, 1)
    for argument, lengths in (("kernel", kernel), ("strides", strides)):
        for length in lengths:
            check_integer(op, argument, length, 1)
    check_integer(op, "groups", groups, 1)
    check_switches(op, bias=bias)
    options = {"bias": bool(bias), "name": name, "source": source}
    return Convolve(channels, kernel, strides, checked_padding(op, padding, len(kernel)), groups, **options)


def _pair(number: Any) -> Any:
    return number if isinstance(number, tuple) else (number, number)
