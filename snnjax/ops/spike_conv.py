"""`spike_conv`: the convolution of spikes, as lists or dense rows, with a kernel of weights."""

import functools
from typing import Any

import jax
import numpy as np
from jaxtyping import Array, Float, Num

from snnjax import _targets
from snnjax._batching import SHARED
from snnjax._check import check_float_array, fail, plural
from snnjax._dispatch import Kernel, Target, evaluate
from snnjax._sharding import gathered, vary_alike
from snnjax._types import upcast
from snnjax.ops._convolution import Convolution
from snnjax.ops._kernel_operands import as_kernel_ids, dtype_obstacle
from snnjax.ops.spike_matmul import as_rows, neurons_of, without_zeros
from snnjax.sparse_spikes import SparseSpikes, gather, scatter


def spike_conv(
    spikes: SparseSpikes | Num[Array, "*axes neurons"],
    weights: Float[Array, "..."],
    *,
    shape: tuple[int, ...],
    strides: int | tuple[int, ...] = 1,
    padding: str | tuple[tuple[int, int], ...] = "same",
    groups: int = 1,
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
    geometry = _geometry(spikes, weights, shape, strides, padding, groups)
    spikes, weights = gathered((spikes, weights))
    are_lists = isinstance(spikes, SparseSpikes)
    operands = vary_alike((*as_rows(spikes, weights.dtype), weights))
    out: Any
    if implementation == "composed":
        out = (_composed if are_lists else _rows_composed)(operands, geometry)[0]
    else:
        out = (_convolve_lists if are_lists else _convolve_rows)(*operands, geometry, implementation)
    return out.reshape(*spikes.shape[:-1], geometry.num_outputs)


def _geometry(
    spikes: Any, weights: Array, shape: Any, strides: Any, padding: Any, groups: Any
) -> Convolution:
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
    geometry = Convolution.of(
        "spike_conv", shape, kernel, channels_out, strides=strides, padding=padding, groups=groups
    )
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


def _inputs_backward(operands: tuple[Array, Array], geometry: Convolution) -> tuple[Array]:
    """The cotangent of every input: the transposed convolution of `g`."""
    weights, g = operands
    return (geometry.transpose_inputs(weights, g).astype(g.dtype),)


def _rows_reference(operands: tuple[Array, Array], geometry: Convolution) -> tuple[Array]:
    rows, weights = operands
    return (without_zeros(geometry.convolve, rows, weights).astype(weights.dtype),)


def _rows_backward(operands: tuple[Array, Array], geometry: Convolution) -> tuple[Array]:
    """The gradient of the weights, a sum over rows and positions."""
    rows, g = operands
    return (geometry.transpose_weights(rows, g).astype(g.dtype),)


def _reference(operands: tuple[Array, Array, Array], geometry: Convolution) -> tuple[Array]:
    ids, values, weights = operands
    return _rows_reference((scatter(ids, upcast(values), geometry.num_inputs), weights), geometry)


# Compiled once, not in each call outside jit.
_composed, _rows_composed = (jax.jit(each, static_argnums=1) for each in (_reference, _rows_reference))


def _values_backward(operands: tuple[Array, Array, Array], geometry: Convolution) -> tuple[Array]:
    ids, weights, g = operands
    (d_rows,) = _inputs_backward((weights, g), geometry)
    return (gather(d_rows, ids),)


def _weights_backward(operands: tuple[Array, Array, Array], geometry: Convolution) -> tuple[Array]:
    ids, values, g = operands
    return _rows_backward((scatter(ids, upcast(values), geometry.num_inputs), g), geometry)


def _geometry_attribute(geometry: Convolution) -> dict[str, Any]:
    return {"geometry": np.array(list(geometry.numbers.values()), np.int64)}


def _as_kernel_weights(array: Any, geometry: Convolution) -> Any:
    """Weights, or the shape of their gradient, with both spatial axes after the groups axis."""
    missing = (1,) * (2 - len(geometry.kernel))
    shape = (array.shape[0], *missing, *array.shape[1:])
    return (
        jax.ShapeDtypeStruct(shape, array.dtype)
        if isinstance(array, jax.ShapeDtypeStruct)
        else array.reshape(shape)
    )


def _target(name: str, reference: Any, *forms: str) -> Target:
    """A target; `forms` says which of its operands are ids or weights."""

    def call(operands: tuple[Array, ...], geometry: Convolution, results: Any) -> list[Array]:
        leaves = []
        for form, operand in zip(forms, operands, strict=True):
            if form == "ids":
                operand = as_kernel_ids(operand, geometry.num_inputs)
            leaves.append(_as_kernel_weights(operand, geometry) if form == "weights" else operand)
        own_results = (
            [_as_kernel_weights(each, geometry) for each in results] if "weights" not in forms else results
        )
        out = _targets.call(name, leaves, own_results, **_geometry_attribute(geometry))
        return [each.reshape(result.shape) for each, result in zip(out, results, strict=True)]

    def obstacle(shapes: tuple[Any, ...], _: Convolution) -> str | None:
        return dtype_obstacle("weights", shapes[-1])  # or their cotangents, which have the same dtype

    return Target(name, "spike_conv", reference, {"cpu": Kernel(call, obstacle)})


_LISTS = _target("snnjax_spike_conv", _reference, "ids", "values", "weights")
_VALUES_BACKWARD = _target("snnjax_spike_conv_values_backward", _values_backward, "ids", "weights", "g")
_WEIGHTS_BACKWARD = _target("snnjax_spike_conv_weights_backward", _weights_backward, "ids", "values", "g")
_ROWS = _target("snnjax_spike_conv_rows", _rows_reference, "rows", "weights")
_ROWS_BACKWARD = _target("snnjax_spike_conv_rows_backward", _rows_backward, "rows", "g")
_INPUTS_BACKWARD = _target("snnjax_spike_conv_inputs_backward", _inputs_backward, "weights", "g")


@functools.partial(jax.custom_vjp, nondiff_argnums=(3, 4))
def _convolve_lists(
    ids: Array, values: Array, weights: Array, geometry: Convolution, implementation: str | None
) -> Array:
    axes, choice = (0, 0, SHARED), {"implementation": implementation}
    return evaluate(_LISTS, (ids, values, weights), axes, (0,), geometry, **choice)[0]


def _fwd(
    ids: Array, values: Array, weights: Array, geometry: Convolution, implementation: str | None
) -> tuple[Array, tuple[Array, Array, Array]]:
    out: Any = _convolve_lists(ids, values, weights, geometry, implementation)
    return out, (ids, values, weights)


def _bwd(
    geometry: Convolution, implementation: str | None, residuals: tuple[Array, Array, Array], g: Array
) -> tuple[None, Array, Array]:
    ids, values, weights = residuals
    choice = {"implementation": implementation}
    (d_values,) = evaluate(_VALUES_BACKWARD, (ids, weights, g), (0, SHARED, 0), (0,), geometry, **choice)
    (d_weights,) = evaluate(_WEIGHTS_BACKWARD, (ids, values, g), (0, 0, 0), (SHARED,), geometry, **choice)
    return None, d_values, d_weights


_convolve_lists.defvjp(_fwd, _bwd)


@functools.partial(jax.custom_vjp, nondiff_argnums=(2, 3))
def _convolve_rows(rows: Array, weights: Array, geometry: Convolution, implementation: str | None) -> Array:
    choice = {"implementation": implementation}
    return evaluate(_ROWS, (rows, weights), (0, SHARED), (0,), geometry, **choice)[0]


def _rows_fwd(
    rows: Array, weights: Array, geometry: Convolution, implementation: str | None
) -> tuple[Array, tuple[Array, Array]]:
    out: Any = _convolve_rows(rows, weights, geometry, implementation)
    return out, (rows, weights)


def _rows_bwd(
    geometry: Convolution, implementation: str | None, residuals: tuple[Array, Array], g: Array
) -> tuple[Array, Array]:
    rows, weights = residuals
    choice = {"implementation": implementation}
    (d_rows,) = evaluate(_INPUTS_BACKWARD, (weights, g), (SHARED, 0), (0,), geometry, **choice)
    (d_weights,) = evaluate(_ROWS_BACKWARD, (rows, g), (0, 0), (SHARED,), geometry, **choice)
    return d_rows, d_weights


_convolve_rows.defvjp(_rows_fwd, _rows_bwd)
