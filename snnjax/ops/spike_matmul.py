"""`spike_matmul`: the product of spikes, as lists or dense rows, with dense weights."""

import functools
import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.typing import DTypeLike
from jaxtyping import Array, Float, Num

from snnjax._arguments import explained
from snnjax._batching import SHARED, any_group
from snnjax._check import check_real_array, check_shape, fail
from snnjax._dispatch import Kernel, Target, evaluate
from snnjax._quantised import Quantised, check_weights, refuse_gradient, scaled
from snnjax._sharding import gathered, vary_alike
from snnjax._sparse_spikes import SparseSpikes, check_spikes, gather, in_range, scatter, values_of
from snnjax._types import accumulation_dtype, uint16_or_int32, upcast
from snnjax.ops._kernel_operands import call_by_records, dtype_obstacle
from snnjax.ops._tables.spike_matmul import (
    Operands,
    Results,
    RowOperands,
    RowsBackwardOperands,
    ValuesBackwardOperands,
    ValuesBackwardResults,
    WeightsBackwardOperands,
    WeightsBackwardResults,
)

# Up to this many rows, and this share of neurons listed, gathering weight rows is faster in jnp than a dense product:
# measured on two CPU cores by the section "forms" of tests/benchmarks.
_MAX_LIST_ROWS = 2
_MAX_LIST_SHARE = 0.05
# With fewer multiplications than this, a backward pass that XLA fuses with its surroundings costs less than a kernel
# call (0.5 us); the forward kernel is faster at any size (measured in the same way, in steps of a scan).
_MIN_BACKWARD_PRODUCTS = 4096


@explained
def spike_matmul(
    spikes: SparseSpikes | Num[Array, "*axes neurons"],
    weights: Float[Array, "neurons outputs"] | Quantised,
    *,
    implementation: str | None = None,
) -> Float[Array, "*axes outputs"]:
    """Multiply spikes by a weight matrix; each spike adds a row of weights.

    ``out[b] = sum_k values[b, k] * weights[ids[b, k]]`` for lists, and ``out[b] = spikes[b] @ weights`` for an array.

    An entry with value 0 adds nothing whatever its weights, including NaN and infinities; in lists, ids outside ``[0,
    neurons)`` contribute nothing and duplicates add up. The backward pass is exact. For lists it is ``dvalues[b, k] =
    <weights[ids[b, k]], g[b]>`` and ``dweights[ids[b, k]] += values[b, k] * g[b]``, so an entry with value 0 still
    receives its gradient. For an array it consists of the transposed products, of which only that for the weights
    benefits from sparse spikes.

    Args:
        spikes: lists with any leading axes, or an array with the neurons on its last axis.
        weights: row-major; their dtype is the dtype of the result, and sums are computed in float32 (float64 for
            float64). Of `quantisation.Quantised` ones rows of int8 are read, and sums scaled once; those of spikes are
            exact.
        implementation: None chooses automatically; "reference" forces the jnp reference; "cpu" forces the compiled
            kernel or raises; "composed" is plain jnp with forward mode and second-order derivatives.

    Raises:
        ValueError: if the weights do not fit the neurons of the spikes, or are not floating, and for an implementation
            that is unknown or unavailable; for a gradient with quantised weights.

    Example:
        >>> import jax.numpy as jnp
        >>> from snnjax import SparseSpikes, spike_matmul
        >>> weights = jnp.array([[1.0, 10.0], [2.0, 20.0], [3.0, 30.0]])
        >>> spike_matmul(SparseSpikes.from_ids(jnp.array([[0, 2, 3]]), num_neurons=3), weights)
        Array([[ 4., 40.]], dtype=float32)
        >>> spike_matmul(jnp.array([[1, 0, 1]]), weights)
        Array([[ 4., 40.]], dtype=float32)

    Reference:
        Finkbeiner et al. 2024, arXiv:2311.04386.
    """
    _check_arguments(spikes, weights)
    spikes, weights = gathered((spikes, weights))
    are_lists = isinstance(spikes, SparseSpikes)
    record: Any = Operands if are_lists else RowOperands
    operands = vary_alike(record(*as_rows(spikes, weights.dtype), weights))
    out: Any
    if implementation == "composed":
        out = (_composed if are_lists else _rows_composed)(operands, ())[0]
    else:
        out = (_multiply_lists if are_lists else _multiply_rows)(operands, implementation)
    return out.reshape(*spikes.shape[:-1], weights.shape[1])


def neurons_of(op: str, spikes: Any) -> int:
    """Check lists or rows, and return their number of neurons."""
    if isinstance(spikes, SparseSpikes):
        check_spikes(op, "spikes", spikes)
        return spikes.num_neurons
    check_real_array(op, "spikes", spikes)
    if spikes.ndim == 0:
        fail(f"{op}: `spikes` must have a neuron axis, got a number. Add it, for instance spikes[None].")
    return spikes.shape[-1]


def as_rows(spikes: Any, dtype: DTypeLike) -> tuple[Array, ...]:
    """The ids and values of lists, or dense rows, with one axis for all leading ones, and numbers of `dtype`."""
    are_lists, rows = isinstance(spikes, SparseSpikes), math.prod(spikes.shape[:-1])
    arrays = (uint16_or_int32(spikes.ids), values_of(spikes, dtype)) if are_lists else (spikes.astype(dtype),)
    return tuple(array.reshape(rows, array.shape[-1]) for array in arrays)


def _check_arguments(spikes: Any, weights: Any) -> None:
    num_neurons = neurons_of("spike_matmul", spikes)
    check_weights("spike_matmul", "weights", weights)
    hint = "Pass one row of weights for every neuron of the spikes"
    check_shape("spike_matmul", "weights", weights, (num_neurons, None), "neurons, outputs", hint)


def prefers_lists(ids: Array, num_neurons: int) -> bool:
    """Whether the reference gathers rows instead of multiplying densely, decided by the shapes only."""
    rows, capacity = ids.shape
    return rows <= _MAX_LIST_ROWS and capacity <= _MAX_LIST_SHARE * num_neurons


def accumulated_product(entries: Array, matrix: Array) -> Array:
    """``entries @ matrix`` in the accumulation dtype, which entries that are sums may have already.

    Few sums have more digits than the matrix. If none has, they are multiplied in its dtype: faster on most platforms,
    and the matrix need not be converted.
    """
    multiply = functools.partial(jnp.matmul, preferred_element_type=accumulation_dtype(matrix.dtype))
    if entries.dtype == matrix.dtype:
        return multiply(entries, matrix)
    narrow = entries.astype(matrix.dtype)
    is_longer = any_group(narrow.astype(entries.dtype) != entries)
    return jax.lax.cond(
        is_longer, lambda: multiply(entries, upcast(matrix)), lambda: multiply(narrow, matrix)
    )


def without_zeros(multiply: Callable[[Array, Array], Array], dense: Array, weights: Array) -> Array:
    """A sum of products of entries and weights, where an entry of 0 adds nothing whatever its weights."""
    out = multiply(dense, weights)
    # A product with 0 is wrong only for weights that are not finite, and then the result shows it.
    suspect = any_group(~jnp.isfinite(out))
    by_parts = functools.partial(_without_zeros_not_finite, multiply)
    return jax.lax.cond(suspect, by_parts, lambda *_: out, dense, weights)


def of_tested_weights(multiply: Callable[[Array, Array], Array], dense: Array, weights: Array) -> Array:
    """The same, decided by the weights: a GPU then need not wait for the products, nor copy them."""
    by_parts = functools.partial(_without_zeros_not_finite, multiply)
    return jax.lax.cond(any_group(~jnp.isfinite(weights)), by_parts, multiply, dense, weights)


def _without_zeros_not_finite(
    multiply: Callable[[Array, Array], Array], dense: Array, weights: Array
) -> Array:
    """The same for weights with infinities and NaNs: the finite part, and counts of +inf, -inf and NaN."""
    dtype = accumulation_dtype(weights.dtype)

    def count(entries: Array, kind: Array) -> Array:
        return multiply(entries.astype(dtype), kind.astype(dtype))

    out = multiply(dense, jnp.where(jnp.isfinite(weights), weights, 0))
    up, down = weights == jnp.inf, weights == -jnp.inf
    ups = count(dense > 0, up) + count(dense < 0, down)
    downs = count(dense > 0, down) + count(dense < 0, up)
    out = jnp.where(ups > 0, out + jnp.inf, out)
    out = jnp.where(downs > 0, out - jnp.inf, out)
    return jnp.where(count(dense != 0, jnp.isnan(weights)) > 0, jnp.nan, out)


# `without_zeros` or `of_tested_weights`
Guard = Callable[[Callable[[Array, Array], Array], Array, Array], Array]


def dense_product(dense: Array, weights: Any, guard: Guard = without_zeros) -> Array:
    """``dense @ weights`` as in `accumulated_product`, where an entry of 0 adds nothing whatever its weights."""
    if isinstance(weights, Quantised):
        return finite_product(dense, weights)
    return guard(accumulated_product, dense, weights)


def finite_product(dense: Array, weights: Any) -> Array:
    """The same if all weights are finite."""
    if isinstance(weights, Quantised):
        # Whole numbers up to 128 are the same in every dtype, and so are their sums in float32.
        return scaled(accumulated_product(dense, weights.values.astype(weights.dtype)), upcast(weights.scale))
    return accumulated_product(dense, weights)


def _weight_rows(ids: Array, weights: Array) -> Array:
    """``[rows, capacity, outputs]``: the listed rows of the weights, row 0 where an id is out of range."""
    return upcast(weights)[jnp.where(in_range(ids, weights.shape[0]), ids.astype(jnp.int32), 0)]


def _reference(operands: Operands, _: tuple[()]) -> tuple[Array]:
    ids, values, weights = operands.ids, operands.values, operands.weights
    if isinstance(weights, Quantised):
        numbers = weights.values.astype(accumulation_dtype(weights.dtype))
        (sums,) = _reference(operands._replace(values=upcast(values), weights=numbers), ())
        return (scaled(sums, upcast(weights.scale)).astype(weights.dtype),)
    if not prefers_lists(ids, weights.shape[0]):
        dense = scatter(ids, upcast(values), weights.shape[0])
        return (dense_product(dense, weights).astype(weights.dtype),)
    entries, rows = upcast(values)[:, :, None], _weight_rows(ids, weights)
    # A value of 0 adds nothing whatever its weights, but has a derivative.
    used = in_range(ids, weights.shape[0])[:, :, None] & ((entries != 0) | jnp.isfinite(rows))
    return (jnp.sum(jnp.where(used, entries * rows, 0), axis=1).astype(weights.dtype),)


# Compiled once, not in each call outside jit.
_composed = jax.jit(_reference, static_argnums=1)


def _values_backward(operands: ValuesBackwardOperands, _: tuple[()]) -> tuple[Array]:
    """``dvalues[b, k] = <weights[ids[b, k]], g[b]>``."""
    ids, weights, g = operands.ids, operands.weights, operands.g
    if prefers_lists(ids, weights.shape[0]):
        products = jnp.sum(_weight_rows(ids, weights) * upcast(g)[:, None, :], axis=-1)
        products = jnp.where(in_range(ids, weights.shape[0]), products, 0)
    else:
        products = gather(jnp.matmul(g, weights.T, preferred_element_type=accumulation_dtype(g.dtype)), ids)
    return (products.astype(g.dtype),)


def _weights_backward(operands: WeightsBackwardOperands, num_neurons: int) -> tuple[Array]:
    """``dweights[ids[b, k]] += values[b, k] * g[b]``."""
    ids, values, g = operands.ids, operands.values, operands.g
    if prefers_lists(ids, num_neurons):
        rows = jnp.where(in_range(ids, num_neurons), ids.astype(jnp.int32), num_neurons)
        updates = upcast(values)[:, :, None] * upcast(g)[:, None, :]
        d_weights = jnp.zeros((num_neurons, g.shape[-1]), updates.dtype).at[rows].add(updates, mode="drop")
    else:
        d_weights = accumulated_product(scatter(ids, upcast(values), num_neurons).T, g)
    return (d_weights.astype(g.dtype),)


def _call(operands: Operands, _: tuple[()], results: Any) -> list[Array]:
    return call_by_records("snnjax_spike_matmul", operands, Results(*results))


def _call_values_backward(operands: ValuesBackwardOperands, _: tuple[()], results: Any) -> list[Array]:
    return call_by_records("snnjax_spike_matmul_values_backward", operands, ValuesBackwardResults(*results))


def _call_weights_backward(operands: WeightsBackwardOperands, num_neurons: int, results: Any) -> list[Array]:
    return call_by_records("snnjax_spike_matmul_weights_backward", operands, WeightsBackwardResults(*results))


def _obstacle(shapes: Operands | RowOperands | ValuesBackwardOperands, _: Any) -> str | None:
    return dtype_obstacle("weights", shapes.weights)


def _gradient_obstacle(shapes: WeightsBackwardOperands | RowsBackwardOperands, _: Any) -> str | None:
    return dtype_obstacle("weights", shapes.g)  # which has their dtype


def _backward_pays(shapes: ValuesBackwardOperands | WeightsBackwardOperands, _: Any) -> bool:
    return shapes.ids.size * shapes.g.shape[-1] >= _MIN_BACKWARD_PRODUCTS


FORWARD = Target("snnjax_spike_matmul", "spike_matmul", _reference, {"cpu": Kernel(_call, _obstacle)})
VALUES_BACKWARD = Target(
    "snnjax_spike_matmul_values_backward",
    "spike_matmul",
    _values_backward,
    {"cpu": Kernel(_call_values_backward, _obstacle, _backward_pays)},
)
WEIGHTS_BACKWARD = Target(
    "snnjax_spike_matmul_weights_backward",
    "spike_matmul",
    _weights_backward,
    {"cpu": Kernel(_call_weights_backward, _gradient_obstacle, _backward_pays)},
)


@functools.partial(jax.custom_vjp, nondiff_argnums=(1,))
def _multiply_lists(operands: Operands, implementation: str | None) -> Array:
    axes = Operands(ids=0, values=0, weights=shared(operands.weights))
    results = _products(operands.ids, operands.weights)
    return evaluate(FORWARD, operands, axes, (0,), results=results, implementation=implementation)[0]


def _products(rows: Array, weights: Any) -> tuple[jax.ShapeDtypeStruct]:
    """The products of so many rows with the weights."""
    return (jax.ShapeDtypeStruct((rows.shape[0], weights.shape[1]), weights.dtype),)


def shared(weights: Any) -> Any:
    """That no array of the weights has a batch axis."""
    return jax.tree.map(lambda _: SHARED, weights)


def _fwd(operands: Operands, implementation: str | None) -> tuple[Array, Operands]:
    refuse_gradient("spike_matmul", operands.weights)
    out: Any = _multiply_lists(operands, implementation)
    return out, operands


def _bwd(implementation: str | None, operands: Operands, g: Array) -> tuple[Operands]:
    ids, values, weights = operands.ids, operands.values, operands.weights
    (g_values,) = evaluate(
        VALUES_BACKWARD,
        ValuesBackwardOperands(ids, weights, g),
        ValuesBackwardOperands(ids=0, weights=SHARED, g=0),
        (0,),
        implementation=implementation,
    )
    (g_weights,) = evaluate(
        WEIGHTS_BACKWARD,
        WeightsBackwardOperands(ids, values, g),
        WeightsBackwardOperands(ids=0, values=0, g=0),
        (SHARED,),
        weights.shape[0],
        implementation=implementation,
    )
    return (Operands(None, g_values, g_weights),)


_multiply_lists.defvjp(_fwd, _bwd)


def _rows_reference(operands: RowOperands, _: tuple[()]) -> tuple[Array]:
    return (dense_product(operands.spikes, operands.weights).astype(operands.weights.dtype),)


_rows_composed = jax.jit(_rows_reference, static_argnums=1)


def _rows_backward(operands: RowsBackwardOperands, _: tuple[()]) -> tuple[Array]:
    """``dweights[i] += spikes[b, i] * g[b]``."""
    g = operands.g
    g_weights = jnp.matmul(operands.spikes.T, g, preferred_element_type=accumulation_dtype(g.dtype))
    return (g_weights.astype(g.dtype),)


def _call_rows(operands: RowOperands, _: tuple[()], results: Any) -> list[Array]:
    return call_by_records("snnjax_spike_matmul_rows", operands, Results(*results))


def _call_rows_backward(operands: RowsBackwardOperands, _: tuple[()], results: Any) -> list[Array]:
    return call_by_records("snnjax_spike_matmul_rows_backward", operands, WeightsBackwardResults(*results))


_ROWS = Target(
    "snnjax_spike_matmul_rows", "spike_matmul", _rows_reference, {"cpu": Kernel(_call_rows, _obstacle)}
)
_ROWS_BACKWARD = Target(
    "snnjax_spike_matmul_rows_backward",
    "spike_matmul",
    _rows_backward,
    {"cpu": Kernel(_call_rows_backward, _gradient_obstacle)},
)


@functools.partial(jax.custom_vjp, nondiff_argnums=(1,))
def _multiply_rows(operands: RowOperands, implementation: str | None) -> Array:
    axes = RowOperands(spikes=0, weights=shared(operands.weights))
    results = _products(operands.spikes, operands.weights)
    return evaluate(_ROWS, operands, axes, (0,), results=results, implementation=implementation)[0]


def _rows_fwd(operands: RowOperands, implementation: str | None) -> tuple[Array, RowOperands]:
    refuse_gradient("spike_matmul", operands.weights)
    out: Any = _multiply_rows(operands, implementation)
    return out, operands


def _rows_bwd(implementation: str | None, operands: RowOperands, g: Array) -> tuple[RowOperands]:
    given, axes = RowsBackwardOperands(operands.spikes, g), RowsBackwardOperands(spikes=0, g=0)
    (g_weights,) = evaluate(_ROWS_BACKWARD, given, axes, (SHARED,), implementation=implementation)
    # Every entry of the spikes has a cotangent, spike or not: a dense product, at which XLA is good.
    g_spikes = jnp.matmul(g, operands.weights.T, preferred_element_type=accumulation_dtype(g.dtype))
    return (RowOperands(g_spikes.astype(g.dtype), g_weights),)


_multiply_rows.defvjp(_rows_fwd, _rows_bwd)
