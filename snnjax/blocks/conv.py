"""`conv1d`, `conv2d` and their transposes: convolutions over the shape of the incoming neurons."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from jaxtyping import Array

from snnjax._arguments import explained
from snnjax._check import check_integer, check_switches, fail
from snnjax._types import Signal, Unchecked, Weights, upcast
from snnjax.blocks.block import Shape, flat, shaped
from snnjax.blocks.linear import Linear, Product
from snnjax.ops._connection import Connection
from snnjax.ops._convolution import Convolution, checked_padding
from snnjax.ops.spike_conv import spike_conv

Padding = str | int | Sequence[int | tuple[int, int]]


@dataclass(frozen=True)
class Convolve(Linear):
    """A convolution; made by `conv1d`, `conv2d`, `conv1d_transpose` and `conv2d_transpose`."""

    channels: int
    kernel: Shape
    strides: Shape
    padding: str | tuple[tuple[int, int], ...]
    groups: int
    dilation: Shape
    is_transposed: bool

    @property
    def kind(self) -> str:  # type: ignore[override]
        """The function that makes it."""
        return f"conv{len(self.kernel)}d{'_transpose' if self.is_transposed else ''}"

    def geometry(self, shape: Shape) -> Convolution:
        """The geometry for inputs of this shape."""
        axes = len(self.kernel)
        if len(shape) != axes + 1:
            names = "height, width" if axes == 2 else "length"
            fail(
                f"{self.kind}: `shape` must be ({names}, channels), got {shape}. "
                "Pass the shape of the inputs to network, and no flatten() before."
            )
        options: dict[str, Any] = {
            "strides": self.strides,
            "padding": self.padding,
            "dilation": self.dilation,
        }
        if self.is_transposed:
            return Convolution.transposed(self.kind, shape, self.kernel, self.channels, **options)
        return Convolution.of(self.kind, shape, self.kernel, self.channels, groups=self.groups, **options)

    def out_shape(self, *shapes: Shape) -> Shape:
        """(height, width, channels) or (length, channels)."""
        return self.geometry(*shapes).out_shape

    def weights_shape(self, shape: Shape) -> Shape:
        """``[*kernel, channels / groups, channels]``."""
        return self.geometry(shape).weights_shape

    def fan_in(self, shape: Shape) -> float:
        """The number of inputs that a neuron sums."""
        return self.geometry(shape).fan_in

    def product(self, weights: Weights, x: Signal, shape: Shape, implementation: str | None) -> Array:
        """The convolution, as in `snnjax.spike_conv`."""
        form = self.geometry(shape)
        out = spike_conv(flat(x), upcast(weights), **form.options, implementation=implementation)
        return shaped(out, form.out_shape)

    def op(self, shape: Shape) -> Product:
        """A product of the fused op."""
        return Product(Connection(None, self.geometry(shape)))


@explained
def conv1d(
    channels: int,
    kernel: int,
    *,
    strides: int = 1,
    padding: Padding = "same",
    groups: int = 1,
    dilation: int = 1,
    bias: bool = True,
) -> Convolve:
    """Make a convolution along one axis, like `conv2d`, for neurons of the shape (length, channels).

    Example:
        >>> from snnjax import conv1d
        >>> conv1d(8, 5, strides=2).out_shape((20, 3))
        (10, 8)
    """
    form = _Form((kernel,), (strides,), padding, groups, (dilation,))
    return _convolve("conv1d", channels, form, bias)


@explained
def conv2d(
    channels: int,
    kernel: int | tuple[int, int],
    *,
    strides: int | tuple[int, int] = 1,
    padding: Padding = "same",
    groups: int = 1,
    dilation: int | tuple[int, int] = 1,
    bias: bool = True,
) -> Convolve:
    """Make a convolution over images, for neurons of the shape (height, width, channels).

    ``current[y, x, o] = sum over (i, j, c) of spikes[y s + i d - p, x s + j d - p, c] weights[i, j, c, o] + bias[o]``
    with stride ``s``, dilation ``d`` and leading zeros ``p``, as in `snnjax.spike_conv`: a spike adds a patch, and
    weight gradients only touch the patches of spikes.

    Args:
        channels: number of channels of the current.
        kernel: height and width of the kernel, or one number for both.
        strides: strides along height and width, or one number for both.
        padding: "same", "valid", the zeros on every side, or (before, after) for each axis. With strides
            of 2, "same" pads images of an even length less before than after them; 1 pads both sides.
        groups: number of groups that the channels on both sides are split into; each group is connected to one.
        dilation: how far the places of the kernel are apart, along height and width, or one number for both.
        bias: add a learned bias to the current of every step, one for each channel.

    Raises:
        ValueError: if a length is below 1; in a network, if its inputs have no pixels.

    Example:
        >>> from snnjax import conv2d
        >>> conv2d(12, 5).out_shape((34, 34, 2))
        (34, 34, 12)
        >>> conv2d(12, 5, padding="valid", dilation=2).out_shape((34, 34, 2))
        (26, 26, 12)
    """
    form = _Form(_pair(kernel), _pair(strides), padding, groups, _pair(dilation))
    return _convolve("conv2d", channels, form, bias)


@explained
def conv1d_transpose(
    channels: int,
    kernel: int,
    *,
    strides: int = 1,
    padding: Padding = "same",
    dilation: int = 1,
    bias: bool = True,
) -> Convolve:
    """Make a transposed convolution along one axis, like `conv2d_transpose`.

    Example:
        >>> from snnjax import blocks
        >>> blocks.conv1d_transpose(8, 4, strides=2).out_shape((10, 3))
        (20, 8)
    """
    form = _Form((kernel,), (strides,), padding, 1, (dilation,))
    return _convolve("conv1d_transpose", channels, form, bias)


@explained
def conv2d_transpose(
    channels: int,
    kernel: int | tuple[int, int],
    *,
    strides: int | tuple[int, int] = 1,
    padding: Padding = "same",
    dilation: int | tuple[int, int] = 1,
    bias: bool = True,
) -> Convolve:
    """Make a transposed convolution over images, which makes them larger: `jax.lax.conv_transpose`.

    Inputs stand `strides` pixels apart, with zeros between them, and a convolution without strides follows: a spike
    adds a whole patch. Weights have the shape of those of `conv2d`, and the kernel is not turned round.

    Args:
        channels: number of channels of the current.
        kernel: height and width of the kernel, or one number for both.
        strides: how many pixels of the current there are for one of the inputs, along height and width, or one number
            for both.
        padding: "same" (``inputs strides`` pixels), "valid" (all pixels that an input reaches), or the zeros around the
            inputs with those between them, as for `conv2d`.
        dilation: how far the places of the kernel are apart, along height and width, or one number for both.
        bias: add a learned bias to the current of every step, one for each channel.

    Raises:
        ValueError: if a length is below 1; in a network, if its inputs have no pixels.

    Example:
        >>> from snnjax import blocks
        >>> blocks.conv2d_transpose(12, 2, strides=2).out_shape((8, 8, 4))
        (16, 16, 12)
    """
    form = _Form(_pair(kernel), _pair(strides), padding, 1, _pair(dilation))
    return _convolve("conv2d_transpose", channels, form, bias)


class _Form(NamedTuple):
    """The geometry of a convolution as given."""

    kernel: Unchecked
    strides: Unchecked
    padding: Unchecked
    groups: Unchecked
    dilation: Unchecked


def _convolve(op: str, channels: int, form: _Form, bias: bool) -> Convolve:
    channels = check_integer(op, "channels", channels, 1)
    for argument in ("kernel", "strides", "dilation"):
        for length in getattr(form, argument):
            check_integer(op, argument, length, 1)
    check_integer(op, "groups", form.groups, 1)
    check_switches(op, bias=bias)
    own = form._replace(padding=checked_padding(op, form.padding, len(form.kernel)))
    return Convolve(channels, *own, op.endswith("transpose"), bias=bool(bias))


def _pair(number: Unchecked) -> Any:
    return number if isinstance(number, tuple) else (number, number)
