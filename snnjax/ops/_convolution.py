"""`Convolution`: the static geometry of a convolution over flat neurons."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from jaxtyping import Array

from snnjax._check import MAX_SIZE, check_integer, fail
from snnjax._types import upcast


@jax.tree_util.register_static
@dataclass(frozen=True)
class Convolution:
    """The geometry of a convolution (cross-correlation, as in deep learning) in one or two dimensions.

    Flat ids are row-major over the shapes. `Convolution.of` makes and checks it.
    """

    shape: tuple[int, ...]  # (height, width, channels) or (length, channels)
    kernel: tuple[int, ...]  # one length per spatial axis, as for strides and padding
    strides: tuple[int, ...]
    padding: tuple[tuple[int, int], ...]  # zeros before and after
    groups: int  # of channels, each convolved separately
    channels_out: int

    @property
    def words(self) -> str:
        """A short description, for `snnjax info` and errors."""
        return f"a convolution of {'x'.join(map(str, self.kernel))}"

    @classmethod
    def of(
        cls,
        op: str,
        shape: Any,
        kernel: Any,
        channels_out: Any,
        *,
        strides: Any = 1,
        padding: Any = "same",
        groups: Any = 1,
    ) -> "Convolution":
        """Make the geometry from user arguments; errors are raised in the name of `op`."""
        shape = _lengths(op, "shape", shape, (2, 3), "(height, width, channels) or (length, channels)")
        space = len(shape) - 1
        kernel = _lengths(op, "kernel", kernel, (space,), tuple_words(space))
        strides = (strides,) * space if isinstance(strides, int | np.integer) else strides
        strides = _lengths(op, "strides", strides, (space,), f"an integer or {tuple_words(space)}")
        check_integer(op, "groups", groups, 1)
        for name, channels in (("channels of `shape`", shape[-1]), ("output channels", channels_out)):
            if channels % groups != 0:
                hint = "Choose a divisor of both numbers of channels"
                fail(f"{op}: `groups` must divide the number of {name}, {channels}, got {groups}. {hint}.")
        pairs = _pairs(op, padding, shape[:-1], kernel, strides)
        out = cls(shape, kernel, strides, pairs, int(groups), int(channels_out))
        out._check_sizes(op)
        return out

    def _check_sizes(self, op: str) -> None:
        padded = [length + sum(pair) for length, pair in zip(self.shape[:-1], self.padding, strict=True)]
        if any(length > room for length, room in zip(self.kernel, padded, strict=True)):
            actual, hint = list(self.kernel), "Pad more, or choose a smaller kernel"
            fail(f"{op}: `kernel` must fit into the padded image, {padded}, got {actual}. {hint}.")
        for name, count in (("shape", self.num_inputs), ("padding", self.num_outputs)):
            if count > MAX_SIZE:
                fail(f"{op}: `{name}` must make at most {MAX_SIZE} neurons, got {count}. Split the image.")

    @property
    def out_shape(self) -> tuple[int, ...]:
        """The output shape, (height, width, channels) or (length, channels)."""
        axes = zip(self.shape[:-1], self.kernel, self.strides, self.padding, strict=True)
        space = ((length + sum(pair) - k) // stride + 1 for length, k, stride, pair in axes)
        return (*space, self.channels_out)

    @property
    def num_inputs(self) -> int:
        """The number of input neurons."""
        return math.prod(self.shape)

    @property
    def num_outputs(self) -> int:
        """The number of output neurons."""
        return math.prod(self.out_shape)

    @property
    def weights_shape(self) -> tuple[int, ...]:
        """``[*kernel, channels / groups, channels_out]``."""
        return (*self.kernel, self.shape[-1] // self.groups, self.channels_out)

    @property
    def fan_in(self) -> int:
        """The number of inputs that each output sums."""
        return math.prod(self.weights_shape[:-1])

    @property
    def num_pairs(self) -> int:
        """The number of pairs of an input and a weight it is multiplied by, without taps in the padding."""
        pairs = math.prod(self.weights_shape[-2:])
        axes = zip(self.shape, self.out_shape[:-1], self.kernel, self.strides, self.padding, strict=False)
        for length, windows, taps, stride, (before, _) in axes:
            place = np.arange(windows)[:, None] * stride + np.arange(taps) - before
            pairs *= int(np.count_nonzero((place >= 0) & (place < length)))
        return pairs

    @property
    def numbers(self) -> dict[str, int]:
        """The form for the kernels, as in `ConvolutionShape`: one spatial axis is an image of height 1."""
        missing = 2 - len(self.kernel)
        ones, pairs = (1,) * missing, ((0, 0),) * missing + self.padding
        names = ("height", "width", "channels", "kernel_height", "kernel_width", "stride_y", "stride_x")
        space = zip(names, (*ones, *self.shape, *ones, *self.kernel, *ones, *self.strides), strict=True)
        (top, bottom), (left, right) = pairs
        around = {"top": top, "bottom": bottom, "left": left, "right": right}
        return {**dict(space), **around, "groups": self.groups, "channels_out": self.channels_out}

    def convolve(self, rows: Array, weights: Array) -> Array:
        """Convolve ``[rows, num_inputs]`` to ``[rows, num_outputs]`` in plain JAX, in the accumulation dtype."""
        space = "HW"[-len(self.kernel) :]
        out = jax.lax.conv_general_dilated(
            upcast(rows).reshape(-1, *self.shape),
            upcast(weights),
            self.strides,
            self.padding,
            dimension_numbers=(f"N{space}C", f"{space}IO", f"N{space}C"),
            feature_group_count=self.groups,
        )
        return out.reshape(-1, self.num_outputs)

    def transpose_inputs(self, weights: Array, g: Array) -> Array:
        """The cotangent of every input from ``g[rows, num_outputs]``, in the accumulation dtype."""
        rows = jax.ShapeDtypeStruct((g.shape[0], self.num_inputs), upcast(g).dtype)
        return jax.linear_transpose(lambda x: self.convolve(x, weights), rows)(upcast(g))[0]

    def transpose_weights(self, rows: Array, g: Array) -> Array:
        """The gradient of the weights, a sum over rows and positions, in the accumulation dtype."""
        weights = jax.ShapeDtypeStruct(self.weights_shape, upcast(g).dtype)
        return jax.linear_transpose(lambda w: self.convolve(rows, w), weights)(upcast(g))[0]


def tuple_words(space: int) -> str:
    """What holds an integer for each of so many axes of an image, in errors."""
    return "a tuple of one length" if space == 1 else "a tuple of a height and a width"


def _lengths(op: str, argument: str, value: Any, counts: tuple[int, ...], form: str) -> tuple[int, ...]:
    """Check for a tuple of positive integers."""
    if not isinstance(value, Sequence) or isinstance(value, str) or len(value) not in counts:
        fail(f"{op}: `{argument}` must be {form}, got {value!r}. Pass one integer per axis.")
    for number in value:
        check_integer(op, argument, number, 1)
    return tuple(int(number) for number in value)


def _pairs(
    op: str, padding: Any, lengths: Sequence[int], kernel: Sequence[int], strides: Sequence[int]
) -> tuple[tuple[int, int], ...]:
    """Zeros before and after each axis; "same" gives ``ceil(length / stride)`` outputs, as in XLA."""
    padding = checked_padding(op, padding, len(lengths))
    if padding == "valid":
        return ((0, 0),) * len(lengths)
    if padding == "same":
        axes = zip(lengths, kernel, strides, strict=True)
        totals = [max((-(-length // stride) - 1) * stride + k - length, 0) for length, k, stride in axes]
        return tuple((total // 2, total - total // 2) for total in totals)
    return padding


def checked_padding(op: str, padding: Any, space: int) -> Any:
    """The padding of so many axes, "same", "valid" or a tuple of pairs, after checking it."""
    if isinstance(padding, str) and padding in ("same", "valid"):
        return padding
    good = isinstance(padding, Sequence) and not isinstance(padding, str) and len(padding) == space
    good = good and all(isinstance(pair, Sequence) and len(pair) == 2 for pair in padding)
    if not good:
        pairs = "a tuple of one pair" if space == 1 else "a tuple of two pairs"
        hint = f"Pass the zeros before and after each axis, such as {((1, 1),) * space}"
        fail(f"{op}: `padding` must be 'same', 'valid' or {pairs} of integers, got {padding!r}. {hint}.")
    for pair in padding:
        for number in pair:
            check_integer(op, "padding", number, 0)
    return tuple((int(low), int(high)) for low, high in padding)
