"""The rule for `convolution`: one product of the kernel with the windows of the left operand, which are a view.

Windows are formed in one spatial dimension after another. Each dimension becomes two: the position of the window
(``y0``) and the position within it (``k0``), so the convolution is a product over the positions within and the
channels.
"""

from collections.abc import Sequence
from typing import NamedTuple

from snnjax._jax_compat import stablehlo
from snnjax.ipu.lowering import views
from snnjax.ipu.lowering.builder import Builder
from snnjax.ipu.lowering.operation import Operation
from snnjax.ipu.lowering.rules import elementwise, products, rule
from snnjax.ipu.lowering.types import ArrayType, is_floating

# The names of the dimensions that are not spatial, with the words for them in StableHLO; then that of spatial ones.
_SIDES = {
    "input": (("b", "batch"), ("c", "feature"), "x"),
    "kernel": (("c", "input_feature"), ("o", "output_feature"), "k"),
    "output": (("b", "batch"), ("o", "feature"), "y"),
}


class _Named(NamedTuple):
    """A value with named dimensions: b(atch), c(hannel), o(utput channel), g(roup); x0, y0, k0 ... are spatial."""

    value: int
    names: tuple[str, ...]

    def places(self, names: Sequence[str]) -> tuple[int, ...]:
        """The positions of these dimensions."""
        return tuple(map(self.names.index, names))


class _Window(NamedTuple):
    """The windows along one dimension."""

    number: int
    length: int
    stride: int  # between windows
    hole: int  # between positions within a window


@rule("stablehlo.convolution")
def _lower_convolution(operation: Operation) -> list[int]:
    """StableHLO's cross-correlation, groups as a batch of products."""
    builder, (lhs, rhs), (type_,) = operation.builder, operation.inputs, operation.types
    if 0 in (type_.size, *(each.size for each in operation.input_types())):
        return [builder.splat(0, type_)]
    dimensions = stablehlo.ConvDimensionNumbers(operation.attributes["dimension_numbers"])
    lhs, rhs = _as_multiplied(builder, lhs, rhs)
    x = _Named(_padded(operation, lhs, dimensions), _names_of(dimensions, "input"))
    kernel = _Named(_turned(operation, rhs, dimensions), _names_of(dimensions, "kernel"))
    for grouped, count in (("c", "feature_group_count"), ("b", "batch_group_count")):
        if operation.integer(count, 1) > 1:
            x = _split(builder, x, grouped, operation.integer(count))
            kernel = _split(builder, kernel, "o", operation.integer(count))
    x = _windows(operation, x, kernel, dimensions)
    return [_product(operation, x, kernel, _names_of(dimensions, "output"))]


def _names_of(dimensions: stablehlo.ConvDimensionNumbers, side: str) -> tuple[str, ...]:
    """The names of the dimensions of the input, the kernel or the output, in order."""
    first, second, letter = _SIDES[side]
    space = getattr(dimensions, f"{side}_spatial_dimensions")
    places = {letter + str(d): place for d, place in enumerate(space)}
    places |= {
        attribute[0]: getattr(dimensions, f"{side}_{attribute[1]}_dimension") for attribute in (first, second)
    }
    return tuple(sorted(places, key=places.__getitem__))


def _as_multiplied(builder: Builder, lhs: int, rhs: int) -> tuple[int, int]:
    """The operands converted to the type of their product, before windows repeat elements."""
    dtypes = {builder.types[lhs].dtype, builder.types[rhs].dtype}
    if dtypes == {"f16"} or not all(map(is_floating, dtypes)):
        return lhs, rhs
    return elementwise.convert(builder, lhs, "f32"), elementwise.convert(builder, rhs, "f32")


def _padded(operation: Operation, lhs: int, dimensions: stablehlo.ConvDimensionNumbers) -> int:
    """Zeros between and around the elements."""
    builder, space = operation.builder, dimensions.input_spatial_dimensions
    type_ = builder.types[lhs]
    low, high, between = ([0] * len(type_.shape) for _ in range(3))
    padding = operation.ints("padding", (0,) * (2 * len(space)))
    for i, (d, dilation) in enumerate(
        zip(space, operation.ints("lhs_dilation", (1,) * len(space)), strict=True)
    ):
        low[d], high[d], between[d] = padding[2 * i], padding[2 * i + 1], dilation - 1
    zero = builder.splat(0, ArrayType(type_.dtype, ()))
    return views.pad(builder, lhs, zero, low, high, between)


def _turned(operation: Operation, rhs: int, dimensions: stablehlo.ConvDimensionNumbers) -> int:
    """The kernel, reversed where `window_reversal` is set."""
    space = dimensions.kernel_spatial_dimensions
    turned = operation.flags("window_reversal", (False,) * len(space))
    return views.reverse(
        operation.builder, rhs, [d for d, is_turned in zip(space, turned, strict=True) if is_turned]
    )


def _split(builder: Builder, array: _Named, name: str, count: int) -> _Named:
    """A dimension split into groups, with the group dimension before it."""
    (d,) = array.places((name,))
    shape = builder.types[array.value].shape
    value = views.reshape(builder, array.value, (*shape[:d], count, shape[d] // count, *shape[d + 1 :]))
    return _Named(value, (*array.names[:d], "g", *array.names[d:]))


def _windows(
    operation: Operation, x: _Named, kernel: _Named, dimensions: stablehlo.ConvDimensionNumbers
) -> _Named:
    """The windows in all spatial dimensions."""
    output, lengths = operation.types[0].shape, operation.builder.types[kernel.value].shape
    space = len(dimensions.input_spatial_dimensions)
    strides, holes = (operation.ints(name, (1,) * space) for name in ("window_strides", "rhs_dilation"))
    for i, (stride, hole) in enumerate(zip(strides, holes, strict=True)):
        count = output[dimensions.output_spatial_dimensions[i]]
        (place,) = kernel.places((f"k{i}",))
        x = _along(operation.builder, x, i, _Window(count, lengths[place], stride, hole))
    return x


def _along(builder: Builder, x: _Named, axis: int, window: _Window) -> _Named:
    """The windows along one dimension, cut by position within the window or by window, whichever are fewer."""
    (d,) = x.places((f"x{axis}",))
    shape = builder.types[x.value].shape
    slices, length, step, stride = window.length, window.number, window.hole, window.stride
    names = (f"k{axis}", f"y{axis}")
    if window.number < window.length:
        slices, length, step, stride = window.number, window.length, window.stride, window.hole
        names = (f"y{axis}", f"k{axis}")
    extent = (length - 1) * stride + 1
    starts = (i * step for i in range(slices))
    pieces = [views.cut_along(builder, x.value, d, start, start + extent, stride) for start in starts]
    joined = views.concatenate(builder, pieces, d)
    value = views.reshape(builder, joined, (*shape[:d], slices, length, *shape[d + 1 :]))
    return _Named(value, (*x.names[:d], *names, *x.names[d + 1 :]))


def _product(operation: Operation, x: _Named, kernel: _Named, order: tuple[str, ...]) -> int:
    """The product over channels and positions within windows, with dimensions in this order."""
    builder, (type_,) = operation.builder, operation.types
    groups = ("g",) if "g" in x.names else ()
    summed = tuple(name for name in x.names if name[0] in "ck")
    names = (*groups, *(name for name in x.names if name not in (*groups, *summed)), "o")
    lengths = {
        name: length
        for each in (x, kernel)
        for name, length in zip(each.names, builder.types[each.value].shape, strict=True)
    }
    numbers = (x.places(groups), kernel.places(groups), x.places(summed), kernel.places(summed))
    computed = ArrayType(type_.dtype, tuple(lengths[name] for name in names))
    product = products.dot(builder, operation, x.value, kernel.value, numbers, computed)
    places = [names.index(part) for name in order for part in ((*groups, name) if name == "o" else (name,))]
    return views.reshape(builder, views.transpose(builder, product, places), type_.shape)
