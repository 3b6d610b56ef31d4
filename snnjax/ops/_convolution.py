"""`Convolution`: the static geometry of a convolution over flat neurons."""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from jaxtyping import Array

from snnjax._check import MAX_SIZE, check_integer, fail
from snnjax._types import Unchecked, upcast


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
    dilation: tuple[int, ...]  # how far the places of the kernel are apart
    input_dilation: tuple[int, ...]  # and those of the image: zeros between them transpose a convolution

    @property
    def words(self) -> str:
        """A short description, for `snnjax info` and errors."""
        kind = "a convolution" if set(self.input_dilation) == {1} else "a transposed convolution"
        return f"{kind} of {'x'.join(map(str, self.kernel))}"

    @classmethod
    def of(
        cls,
        op: str,
        shape: Sequence[int],
        kernel: Unchecked,
        channels_out: Unchecked,
        *,
        strides: Unchecked = 1,
        padding: Unchecked = "same",
        groups: Unchecked = 1,
        dilation: Unchecked = 1,
        input_dilation: Unchecked = 1,
    ) -> "Convolution":
        """Make the geometry from user arguments; errors are raised in the name of `op`."""
        shape = _lengths(op, "shape", shape, (2, 3), "(height, width, channels) or (length, channels)")
        space = len(shape) - 1
        kernel = _lengths(op, "kernel", kernel, (space,), tuple_words(space))
        strides = _steps(op, "strides", strides, space)
        dilation = _between(_steps(op, "dilation", dilation, space), kernel)
        input_dilation = _between(_steps(op, "input_dilation", input_dilation, space), shape)
        groups = check_integer(op, "groups", groups, 1)
        for name, channels in (("channels of `shape`", shape[-1]), ("output channels", channels_out)):
            if channels % groups != 0:
                hint = "Choose a divisor of both numbers of channels"
                fail(f"{op}: `groups` must divide the number of {name}, {channels}, got {groups}. {hint}.")
        image, spans = dilated(shape[:-1], input_dilation), dilated(kernel, dilation)
        pairs = _pairs(op, padding, image, spans, strides)
        out = cls(shape, kernel, strides, pairs, int(groups), int(channels_out), dilation, input_dilation)
        out._check_sizes(op)
        return out

    @classmethod
    def transposed(
        cls,
        op: str,
        shape: Sequence[int],
        kernel: Unchecked,
        channels_out: Unchecked,
        *,
        strides: Unchecked = 1,
        padding: Unchecked = "same",
        dilation: Unchecked = 1,
    ) -> "Convolution":
        """Make the geometry of `jax.lax.conv_transpose`: strides are steps of the outputs between two inputs.

        "same" gives ``length stride`` outputs, "valid" all that an input reaches, ``max(kernel - stride, 0)`` more.
        """
        space = len(kernel)
        steps, apart = _steps(op, "strides", strides, space), _steps(op, "dilation", dilation, space)
        padding = checked_padding(op, padding, space)
        if padding in ("same", "valid"):
            pairs = zip(dilated(kernel, apart), steps, strict=True)
            padding = tuple(_transposed_pair(padding, *each) for each in pairs)
        options = {"padding": padding, "dilation": apart, "input_dilation": steps}
        return cls.of(op, shape, kernel, channels_out, **options)

    @property
    def spans(self) -> tuple[int, ...]:
        """The lengths of the kernel with its gaps."""
        return dilated(self.kernel, self.dilation)

    @property
    def _room(self) -> tuple[int, ...]:
        """The lengths of the image with its gaps and padding."""
        image = dilated(self.shape[:-1], self.input_dilation)
        return tuple(length + sum(pair) for length, pair in zip(image, self.padding, strict=True))

    def _check_sizes(self, op: str) -> None:
        padded = list(self._room)
        if any(length > room for length, room in zip(self.spans, padded, strict=True)):
            actual, hint = list(self.spans), "Pad more, or choose a smaller kernel"
            fail(f"{op}: `kernel` must fit into the padded image, {padded}, got {actual}. {hint}.")
        for name, count in (("shape", self.num_inputs), ("padding", max(*padded, self.num_outputs))):
            if count > MAX_SIZE:
                fail(f"{op}: `{name}` must make at most {MAX_SIZE} neurons, got {count}. Split the image.")

    @property
    def out_shape(self) -> tuple[int, ...]:
        """The output shape, (height, width, channels) or (length, channels)."""
        axes = zip(self._room, self.spans, self.strides, strict=True)
        space = ((room - span) // stride + 1 for room, span, stride in axes)
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
    def fan_in(self) -> float:
        """The number of inputs that each output sums, on average if there are gaps between them."""
        return math.prod(self.weights_shape[:-1]) / math.prod(self.input_dilation)

    @property
    def num_pairs(self) -> int:
        """The number of pairs of an input and a weight it is multiplied by, without taps in the padding."""
        pairs = math.prod(self.weights_shape[-2:])
        axes = zip(self.shape, self.out_shape[:-1], self.kernel, self.strides, self.padding, strict=False)
        gaps = zip(self.dilation, self.input_dilation, strict=True)
        for (length, windows, taps, stride, (before, _)), (apart, own) in zip(axes, gaps, strict=True):
            place = np.arange(windows)[:, None] * stride + np.arange(taps) * apart - before
            pairs *= int(np.count_nonzero((place >= 0) & (place < length * own) & (place % own == 0)))
        return pairs

    @property
    def options(self) -> dict[str, Any]:
        """The arguments of `spike_conv`."""
        names = ("shape", "strides", "padding", "groups", "dilation", "input_dilation")
        return {name: getattr(self, name) for name in names}

    @property
    def numbers(self) -> dict[str, int]:
        """The form for the kernels, as in `ConvolutionShape`, where one spatial axis is an image of height 1."""
        missing = 2 - len(self.kernel)
        ones, pairs = (1,) * missing, ((0, 0),) * missing + self.padding
        (top, bottom), (left, right) = pairs
        (height, width, channels), (kernel_height, kernel_width) = (*ones, *self.shape), (*ones, *self.kernel)
        numbers = {
            "height": height,
            "width": width,
            "channels": channels,
            "kernel_height": kernel_height,
            "kernel_width": kernel_width,
            "top": top,
            "bottom": bottom,
            "left": left,
            "right": right,
            "groups": self.groups,
            "channels_out": self.channels_out,
        }
        steps = {"stride": self.strides, "dilation": self.dilation, "input_dilation": self.input_dilation}
        for name, lengths in steps.items():
            numbers[f"{name}_y"], numbers[f"{name}_x"] = (*ones, *lengths)
        return numbers

    def convolve(self, rows: Array, weights: Array) -> Array:
        """Convolve ``[rows, num_inputs]`` to ``[rows, num_outputs]`` in plain JAX, in the accumulation dtype."""
        space = "HW"[-len(self.kernel) :]
        out = jax.lax.conv_general_dilated(
            upcast(rows).reshape(-1, *self.shape),
            upcast(weights),
            self.strides,
            self.padding,
            self.input_dilation,
            self.dilation,
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


def dilated(lengths: Sequence[int], dilation: Sequence[int]) -> tuple[int, ...]:
    """Lengths with gaps: their places are `dilation` from each other."""
    return tuple((length - 1) * apart + 1 for length, apart in zip(lengths, dilation, strict=True))


def _between(dilation: tuple[int, ...], lengths: Sequence[int]) -> tuple[int, ...]:
    """The dilation, 1 along axes of one place, where it has no effect."""
    return tuple(1 if length == 1 else apart for apart, length in zip(dilation, lengths, strict=False))


def _transposed_pair(padding: str, span: int, stride: int) -> tuple[int, int]:
    """The zeros before and after one axis of a transposed convolution, as in `jax.lax.conv_transpose`."""
    if padding == "valid":
        return span - 1, stride - 1 + max(span - stride, 0)
    total = span + stride - 2
    before = span - 1 if stride > span - 1 else -(-total // 2)
    return before, total - before


def _steps(op: str, argument: str, value: Unchecked, space: int) -> tuple[int, ...]:
    """One positive integer for each spatial axis, from one for all or a tuple."""
    value = (value,) * space if isinstance(value, int | np.integer) else value
    return _lengths(op, argument, value, (space,), f"an integer or {tuple_words(space)}")


def _lengths(op: str, argument: str, value: Unchecked, counts: tuple[int, ...], form: str) -> tuple[int, ...]:
    """Check for a tuple of positive integers."""
    if not isinstance(value, Sequence) or isinstance(value, str) or len(value) not in counts:
        fail(f"{op}: `{argument}` must be {form}, got {value!r}. Pass one integer per axis.")
    for number in value:
        check_integer(op, argument, number, 1)
    return tuple(int(number) for number in value)


def _pairs(
    op: str, padding: Unchecked, lengths: Sequence[int], kernel: Sequence[int], strides: Sequence[int]
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


def checked_padding(op: str, padding: Unchecked, space: int) -> str | tuple[tuple[int, int], ...]:
    """The padding of so many axes, "same", "valid" or a tuple of pairs, after checking it."""
    if isinstance(padding, str) and padding.lower() in ("same", "valid"):  # "SAME" is JAX's spelling
        return padding.lower()
    pairs = padding_pairs(padding, space)
    if pairs is None:
        each = "an integer" if space == 1 else "two integers"
        hint = (
            f"Pass the zeros on both sides of each axis, such as 1, or before and after, {((1, 1),) * space}"
        )
        fail(
            f"{op}: `padding` must be 'same', 'valid', {each} or pairs of integers, got {padding!r}. {hint}."
        )
    for number in itertools.chain(*pairs):
        check_integer(op, "padding", number, 0)
    return tuple((int(low), int(high)) for low, high in pairs)


def padding_pairs(padding: Unchecked, space: int) -> list[Any] | None:
    """One number for all sides, one for each axis, or a pair for each axis, as pairs; None if it is none of these."""
    sides = (
        list(padding) if isinstance(padding, Sequence) and not isinstance(padding, str) else [padding] * space
    )
    pairs = [list(side) if isinstance(side, Sequence) else [side, side] for side in sides]
    good = len(pairs) == space and all(len(pair) == 2 for pair in pairs)
    return pairs if good and not isinstance(padding, str) else None
