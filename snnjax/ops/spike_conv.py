"""`spike_conv`: the convolution of spikes, as lists or dense rows, with a kernel of weights."""

from typing import Any

import jax
from jaxtyping import Array, Float, Num

from snnjax._arguments import explained
from snnjax._check import check_float_array, fail, plural
from snnjax._sparse_spikes import SparseSpikes
from snnjax._types import Unchecked, Weights
from snnjax.ops._convolution import Convolution
from snnjax.ops._product import Product, at_slots, multiply, neurons_of, rows_of
from snnjax.ops._tables.products import Geometry, Operands, SpikesBackwardOperands, WeightsBackwardOperands
from snnjax.ops.spike_matmul import without_zeros


@explained
def spike_conv(
    spikes: SparseSpikes | Num[Array, "*axes neurons"],
    weights: Float[Array, "..."],
    *,
    shape: tuple[int, ...],
    strides: int | tuple[int, ...] = 1,
    padding: str | tuple[tuple[int, int], ...] = "same",
    groups: int = 1,
    dilation: int | tuple[int, ...] = 1,
    input_dilation: int | tuple[int, ...] = 1,
    implementation: str | None = None,
) -> Float[Array, "*axes outputs"]:
    """Convolve spikes with a kernel of weights; each spike adds a patch of outputs.

    ``out[b, y, x, o] = sum of spikes[b, s y + i - p, s x + j - q, c] * weights[i, j, c, o]`` over ``i, j, c``, with
    strides ``s`` and leading zeros ``p, q``: `jax.lax.conv_general_dilated` of images ``[height, width, channels]`` and
    weights ``[*kernel, channels / groups, outputs]``. In one dimension there is no axis y.

    An entry with value 0 adds nothing whatever its weights, including NaN and infinities; in lists, ids outside ``[0,
    neurons)`` contribute nothing and duplicates add up. The backward pass is exact: every list slot with an id in range
    receives its gradient, even with value 0, and so does every entry of an array; the gradient of the weights is a sum
    over the patches of spikes only.

    Args:
        spikes: lists with any leading axes, or an array with the neurons on its last axis; neurons are flat, row-major
            over `shape`.
        weights: ``[*kernel, channels / groups, outputs]``; their dtype is the dtype of the result, and sums are
            computed in float32 (float64 for float64).
        shape: (height, width, channels) of an image, or (length, channels) in one dimension.
        strides: one for all spatial axes, or one for each.
        padding: "same" (``ceil(inputs / stride)`` outputs), "valid" (no zeros), or for each spatial axis a pair of
            numbers of zeros before and after.
        groups: number of channel groups, each convolved separately.
        dilation: how far the places of the kernel are apart, one for all spatial axes, or one for each: `i` above
            becomes ``dilation i``.
        input_dilation: how far the inputs are apart, likewise, with zeros between them: a transposed convolution,
            whose strides these are. The padding stands around them.
        implementation: None chooses automatically; "reference" forces the jnp reference; "cpu" forces the compiled
            kernel or raises; "composed" is plain jnp with forward mode and second-order derivatives.

    Returns:
        The outputs, flat and row-major over the (height, width, channels) or (length, channels) of the result.

    Raises:
        ValueError: if the arguments do not match, the weights are not floating-point, or the implementation is unknown
            or unavailable.

    Example:
        >>> import jax.numpy as jnp
        >>> from snnjax import SparseSpikes, spike_conv
        >>> # A kernel of length 3, one channel in and out.
        >>> weights = jnp.array([1.0, 2.0, 3.0]).reshape(3, 1, 1)
        >>> spikes = SparseSpikes.from_ids(jnp.array([[2]]), num_neurons=5)
        >>> spike_conv(spikes, weights, shape=(5, 1))
        Array([[0., 3., 2., 1., 0.]], dtype=float32)
        >>> spike_conv(jnp.array([[0, 0, 1, 0, 0]]), weights, shape=(5, 1), strides=2)
        Array([[0., 2., 0.]], dtype=float32)
    """
    options = {"strides": strides, "padding": padding, "groups": groups}
    options |= {"dilation": dilation, "input_dilation": input_dilation}
    geometry = _geometry(spikes, weights, shape, options)
    return multiply(_PRODUCT, spikes, weights, geometry, implementation=implementation)


def _geometry(spikes: Unchecked, weights: Array, shape: Unchecked, options: dict[str, Any]) -> Convolution:
    """Check the arguments, and return the geometry of the call."""
    num_neurons = neurons_of("spike_conv", spikes)
    check_float_array("spike_conv", "weights", weights)
    is_shape = isinstance(shape, tuple | list) and len(shape) in (2, 3)
    axes = len(shape) + 1 if is_shape else weights.ndim
    form = (
        "[length, channels / groups, outputs]" if axes == 3 else "[height, width, channels / groups, outputs]"
    )
    if weights.ndim != axes or 0 in weights.shape:
        hint = "Match their axes to `shape`" if weights.ndim != axes else "Leave no axis empty"
        fail(f"spike_conv: `weights` must have shape {form}, got {list(weights.shape)}. {hint}.")
    *kernel, _, channels_out = weights.shape
    geometry = Convolution.of("spike_conv", shape, kernel, channels_out, **options)
    if weights.shape != geometry.weights_shape:
        expected, hint = (
            f"{form} = {list(geometry.weights_shape)}",
            "Divide the channels of `shape` by `groups`",
        )
        fail(f"spike_conv: `weights` must have shape {expected}, got {list(weights.shape)}. {hint}.")
    if num_neurons != geometry.num_inputs:
        neurons = plural(num_neurons, "neuron")
        actual = f"{list(geometry.shape)}, which has {geometry.num_inputs}"
        hint = "Pass (height, width, channels) or (length, channels)"
        fail(f"spike_conv: `shape` must have {neurons}, like `spikes`, got {actual}. {hint}.")
    return geometry


def _forward(operands: Operands, geometry: Convolution) -> Array:
    return without_zeros(geometry.convolve, rows_of(operands, geometry), operands.weights)


def _spikes_backward(operands: SpikesBackwardOperands, geometry: Convolution) -> Array:
    """The transposed convolution of `g`."""
    return at_slots(geometry.transpose_inputs(operands.weights, operands.g), operands)


def _weights_backward(operands: WeightsBackwardOperands, geometry: Convolution) -> Array:
    """A sum over rows and positions."""
    return geometry.transpose_weights(rows_of(operands, geometry), operands.g)


def _of_two_axes(weights: Weights, geometry: Convolution) -> Weights:
    """Weights, or their shape, with two spatial axes behind that of the groups."""
    shape = (weights.shape[0], *(1,) * (2 - len(geometry.kernel)), *weights.shape[1:])
    is_shape = isinstance(weights, jax.ShapeDtypeStruct)
    return jax.ShapeDtypeStruct(shape, weights.dtype) if is_shape else weights.reshape(shape)


def _numbers(geometry: Convolution) -> tuple[Geometry]:
    return (Geometry(**geometry.numbers),)


_PRODUCT = Product(
    "spike_conv", _forward, _spikes_backward, _weights_backward, numbers=_numbers, as_read=_of_two_axes
)
