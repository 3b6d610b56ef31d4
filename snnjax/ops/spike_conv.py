"""`spike_conv`: the convolution of spikes, as lists or dense rows, with a kernel of weights."""

import functools
from collections.abc import Callable
from typing import Any

import jax
from jaxtyping import Array, Float, Num

from snnjax._arguments import explained
from snnjax._batching import SHARED
from snnjax._check import check_float_array, fail, plural
from snnjax._dispatch import Kernel, Target, evaluate
from snnjax._sharding import gathered, vary_alike
from snnjax._sparse_spikes import SparseSpikes, gather, scatter
from snnjax._types import upcast
from snnjax.ops._convolution import Convolution
from snnjax.ops._kernel_operands import call_by_records, dtype_obstacle
from snnjax.ops._tables.spike_conv import (
    Geometry,
    InputsBackwardOperands,
    InputsBackwardResults,
    Operands,
    Results,
    RowOperands,
    RowsBackwardOperands,
    ValuesBackwardOperands,
    ValuesBackwardResults,
    WeightsBackwardOperands,
    WeightsBackwardResults,
)
from snnjax.ops.spike_matmul import as_rows, neurons_of, without_zeros


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
    spikes, weights = gathered((spikes, weights))
    are_lists = isinstance(spikes, SparseSpikes)
    record: Any = Operands if are_lists else RowOperands
    operands = vary_alike(record(*as_rows(spikes, weights.dtype), weights))
    out: Any
    if implementation == "composed":
        out = (_composed if are_lists else _rows_composed)(operands, geometry)[0]
    else:
        out = (_convolve_lists if are_lists else _convolve_rows)(operands, geometry, implementation)
    return out.reshape(*spikes.shape[:-1], geometry.num_outputs)


def _geometry(spikes: Any, weights: Array, shape: Any, options: dict[str, Any]) -> Convolution:
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


def _inputs_backward(operands: InputsBackwardOperands, geometry: Convolution) -> tuple[Array]:
    """The cotangent of every input: the transposed convolution of `g`."""
    return (geometry.transpose_inputs(operands.weights, operands.g).astype(operands.g.dtype),)


def _rows_reference(operands: RowOperands, geometry: Convolution) -> tuple[Array]:
    out = without_zeros(geometry.convolve, operands.spikes, operands.weights)
    return (out.astype(operands.weights.dtype),)


def _rows_backward(operands: RowsBackwardOperands, geometry: Convolution) -> tuple[Array]:
    """The gradient of the weights, a sum over rows and positions."""
    return (geometry.transpose_weights(operands.spikes, operands.g).astype(operands.g.dtype),)


def _reference(operands: Operands, geometry: Convolution) -> tuple[Array]:
    rows = scatter(operands.ids, upcast(operands.values), geometry.num_inputs)
    return _rows_reference(RowOperands(rows, operands.weights), geometry)


# Compiled once, not in each call outside jit.
_composed, _rows_composed = (jax.jit(each, static_argnums=1) for each in (_reference, _rows_reference))


def _values_backward(operands: ValuesBackwardOperands, geometry: Convolution) -> tuple[Array]:
    (g_rows,) = _inputs_backward(InputsBackwardOperands(operands.weights, operands.g), geometry)
    return (gather(g_rows, operands.ids),)


def _weights_backward(operands: WeightsBackwardOperands, geometry: Convolution) -> tuple[Array]:
    rows = scatter(operands.ids, upcast(operands.values), geometry.num_inputs)
    return _rows_backward(RowsBackwardOperands(rows, operands.g), geometry)


def _as_kernel_reads(record: Any, geometry: Convolution) -> Any:
    """A record of arrays, or of shapes, with weights of two spatial axes after the groups axis."""
    missing = (1,) * (2 - len(geometry.kernel))

    def of_two_axes(array: Any) -> Any:
        shape = (array.shape[0], *missing, *array.shape[1:])
        is_shape = isinstance(array, jax.ShapeDtypeStruct)
        return jax.ShapeDtypeStruct(shape, array.dtype) if is_shape else array.reshape(shape)

    forms: dict[str, Callable[[Any], Any]] = {
        "weights": of_two_axes,
        "g_weights": of_two_axes,
    }
    own = {name: form for name, form in forms.items() if name in record._fields}
    return record._replace(**{name: form(getattr(record, name)) for name, form in own.items()})


def _target(name: str, reference: Any, results_of: Any) -> Target:
    """A target, whose results are such a record."""

    def call(operands: Any, geometry: Convolution, results: Any) -> list[Array]:
        read, shapes = (_as_kernel_reads(each, geometry) for each in (operands, results_of(*results)))
        out = call_by_records(name, read, shapes, [Geometry(**geometry.numbers)])
        return [each.reshape(result.shape) for each, result in zip(out, results, strict=True)]

    def obstacle(shapes: Any, _: Convolution) -> str | None:
        # Cotangents have the dtype of the weights.
        return dtype_obstacle("weights", shapes.weights if "weights" in shapes._fields else shapes.g)

    return Target(name, "spike_conv", reference, {"cpu": Kernel(call, obstacle)})


_LISTS = _target("snnjax_spike_conv", _reference, Results)
_VALUES_BACKWARD = _target("snnjax_spike_conv_values_backward", _values_backward, ValuesBackwardResults)
_WEIGHTS_BACKWARD = _target("snnjax_spike_conv_weights_backward", _weights_backward, WeightsBackwardResults)
_ROWS = _target("snnjax_spike_conv_rows", _rows_reference, Results)
_ROWS_BACKWARD = _target("snnjax_spike_conv_rows_backward", _rows_backward, WeightsBackwardResults)
_INPUTS_BACKWARD = _target("snnjax_spike_conv_inputs_backward", _inputs_backward, InputsBackwardResults)


@functools.partial(jax.custom_vjp, nondiff_argnums=(1, 2))
def _convolve_lists(operands: Operands, geometry: Convolution, implementation: str | None) -> Array:
    axes = Operands(ids=0, values=0, weights=SHARED)
    return evaluate(_LISTS, operands, axes, (0,), geometry, implementation=implementation)[0]


def _fwd(operands: Operands, geometry: Convolution, implementation: str | None) -> tuple[Array, Operands]:
    out: Any = _convolve_lists(operands, geometry, implementation)
    return out, operands


def _bwd(geometry: Convolution, implementation: str | None, operands: Operands, g: Array) -> tuple[Operands]:
    ids, values, weights = operands.ids, operands.values, operands.weights
    (g_values,) = evaluate(
        _VALUES_BACKWARD,
        ValuesBackwardOperands(ids, weights, g),
        ValuesBackwardOperands(ids=0, weights=SHARED, g=0),
        (0,),
        geometry,
        implementation=implementation,
    )
    (g_weights,) = evaluate(
        _WEIGHTS_BACKWARD,
        WeightsBackwardOperands(ids, values, g),
        WeightsBackwardOperands(ids=0, values=0, g=0),
        (SHARED,),
        geometry,
        implementation=implementation,
    )
    return (Operands(None, g_values, g_weights),)


_convolve_lists.defvjp(_fwd, _bwd)


@functools.partial(jax.custom_vjp, nondiff_argnums=(1, 2))
def _convolve_rows(operands: RowOperands, geometry: Convolution, implementation: str | None) -> Array:
    axes = RowOperands(spikes=0, weights=SHARED)
    return evaluate(_ROWS, operands, axes, (0,), geometry, implementation=implementation)[0]


def _rows_fwd(
    operands: RowOperands, geometry: Convolution, implementation: str | None
) -> tuple[Array, RowOperands]:
    out: Any = _convolve_rows(operands, geometry, implementation)
    return out, operands


def _rows_bwd(
    geometry: Convolution, implementation: str | None, operands: RowOperands, g: Array
) -> tuple[RowOperands]:
    (g_spikes,) = evaluate(
        _INPUTS_BACKWARD,
        InputsBackwardOperands(operands.weights, g),
        InputsBackwardOperands(weights=SHARED, g=0),
        (0,),
        geometry,
        implementation=implementation,
    )
    (g_weights,) = evaluate(
        _ROWS_BACKWARD,
        RowsBackwardOperands(operands.spikes, g),
        RowsBackwardOperands(spikes=0, g=0),
        (SHARED,),
        geometry,
        implementation=implementation,
    )
    return (RowOperands(g_spikes, g_weights),)


_convolve_rows.defvjp(_rows_fwd, _rows_bwd)
