"""`spike_matmul`: the product of spikes, as lists or dense rows, with dense weights."""

import functools
from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Num

from snnjax._arguments import explained
from snnjax._batching import any_group
from snnjax._check import check_shape
from snnjax._quantised import Quantised, check_weights, scaled
from snnjax._sparse_spikes import SparseSpikes, in_range
from snnjax._types import Weights, accumulation_dtype, upcast
from snnjax.ops._product import Product, Sizes, at_slots, multiply, neurons_of, rows_of
from snnjax.ops._tables.products import Operands, SpikesBackwardOperands, WeightsBackwardOperands

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
    num_neurons = neurons_of("spike_matmul", spikes)
    check_weights("spike_matmul", "weights", weights)
    hint = "Pass one row of weights for every neuron of the spikes"
    check_shape("spike_matmul", "weights", weights, (num_neurons, None), "neurons, outputs", hint)
    return multiply(_PRODUCT, spikes, weights, Sizes(*weights.shape), implementation=implementation)


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


def untested(multiply: Callable[[Array, Array], Array], dense: Array, weights: Array) -> Array:
    """The same of finite weights; of others an entry of 0 adds a NaN, as in any product of matrices."""
    return multiply(dense, weights)


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


# `without_zeros`, `of_tested_weights` or `untested`
Guard = Callable[[Callable[[Array, Array], Array], Array, Array], Array]


def dense_product(dense: Array, weights: Weights, guard: Guard = without_zeros) -> Array:
    """``dense @ weights`` as in `accumulated_product`, where an entry of 0 adds nothing whatever its weights."""
    if isinstance(weights, Quantised):
        return finite_product(dense, weights)
    return guard(accumulated_product, dense, weights)


def finite_product(dense: Array, weights: Weights) -> Array:
    """The same if all weights are finite."""
    if isinstance(weights, Quantised):
        # Whole numbers up to 128 are the same in every dtype, and so are their sums in float32.
        return scaled(accumulated_product(dense, weights.values.astype(weights.dtype)), upcast(weights.scale))
    return accumulated_product(dense, weights)


def _weight_rows(ids: Array, weights: Array) -> Array:
    """``[rows, capacity, outputs]``: the listed rows of the weights, row 0 where an id is out of range."""
    return upcast(weights)[jnp.where(in_range(ids, weights.shape[0]), ids.astype(jnp.int32), 0)]


def _forward(operands: Operands, sizes: Sizes) -> Array:
    ids, weights = operands.ids, operands.weights
    if ids is None or not prefers_lists(ids, sizes.num_inputs):
        return dense_product(rows_of(operands, sizes), weights)
    if isinstance(weights, Quantised):
        numbers = weights.values.astype(accumulation_dtype(weights.dtype))
        return scaled(_sum_of_rows(ids, operands.values, numbers), upcast(weights.scale))
    return _sum_of_rows(ids, operands.values, weights)


def _sum_of_rows(ids: Array, values: Array, weights: Array) -> Array:
    entries, rows = upcast(values)[:, :, None], _weight_rows(ids, weights)
    # A value of 0 adds nothing whatever its weights, but has a derivative.
    used = in_range(ids, weights.shape[0])[:, :, None] & ((entries != 0) | jnp.isfinite(rows))
    return jnp.sum(jnp.where(used, entries * rows, 0), axis=1)


def _spikes_backward(operands: SpikesBackwardOperands, sizes: Sizes) -> Array:
    """``dvalues[b, k] = <weights[ids[b, k]], g[b]>``; of rows a dense product, at which XLA is good."""
    ids, weights, g = operands.ids, operands.weights, operands.g
    if ids is None or not prefers_lists(ids, sizes.num_inputs):
        g_rows = jnp.matmul(g, weights.T, preferred_element_type=accumulation_dtype(g.dtype))
        return at_slots(g_rows, operands)
    products = jnp.sum(_weight_rows(ids, weights) * upcast(g)[:, None, :], axis=-1)
    return jnp.where(in_range(ids, sizes.num_inputs), products, 0)


def _weights_backward(operands: WeightsBackwardOperands, sizes: Sizes) -> Array:
    """``dweights[ids[b, k]] += values[b, k] * g[b]``, and the same for rows."""
    ids, values, g, num_neurons = operands.ids, operands.values, operands.g, sizes.num_inputs
    if ids is None or not prefers_lists(ids, num_neurons):
        return accumulated_product(rows_of(operands, sizes).T, g)
    rows = jnp.where(in_range(ids, num_neurons), ids.astype(jnp.int32), num_neurons)
    updates = upcast(values)[:, :, None] * upcast(g)[:, None, :]
    return jnp.zeros(sizes, updates.dtype).at[rows].add(updates, mode="drop")


def _backward_pays(shapes: SpikesBackwardOperands | WeightsBackwardOperands, _: Sizes) -> bool:
    return shapes.ids is None or shapes.ids.size * shapes.g.shape[-1] >= _MIN_BACKWARD_PRODUCTS


_PRODUCT = Product(
    "spike_matmul",
    _forward,
    _spikes_backward,
    _weights_backward,
    pays=_backward_pays,
    has_rows_kernel=False,
)
