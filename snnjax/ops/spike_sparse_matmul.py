"""`spike_sparse_matmul`: the product of spikes, as lists or dense rows, with weights of the synapses that exist."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Num, PyTree

from snnjax._arguments import explained
from snnjax._check import check_shape, fail, short_repr
from snnjax._quantised import Quantised, check_weights, scaled
from snnjax._sharding import vary_alike
from snnjax._sparse_spikes import SparseSpikes
from snnjax._synapses import Synapses, ends_and_targets, targets_or_beyond
from snnjax._types import Unchecked, Weights, accumulation_dtype, upcast
from snnjax.ops._product import Product, Sizes, at_slots, multiply, neurons_of, rows_of
from snnjax.ops._tables.products import Operands, SpikesBackwardOperands, WeightsBackwardOperands


@explained
def spike_sparse_matmul(
    spikes: SparseSpikes | Num[Array, "*axes neurons"],
    weights: Float[Array, " synapses"] | Quantised,
    synapses: Synapses,
    *,
    implementation: str | None = None,
) -> Float[Array, "*axes targets"]:
    """Send spikes through the synapses that exist; each spike adds the weights of its neuron to its targets.

    ``out[b, targets[s]] += spikes[b, i] * weights[s]`` for all synapses s of neuron i. It is `spike_matmul` with the
    matrix ``synapses.to_dense(weights)``, which is never made: the compiled kernels read the synapses of neurons that
    spike and no others.

    An entry with value 0 adds nothing whatever its weights; in lists, ids outside ``[0, neurons)`` contribute nothing
    and duplicates add up. The backward pass is exact: ``dweights[s] = sum_b spikes[b, i] * g[b, targets[s]]``, and a
    spike receives the sum of ``weights[s] * g[b, targets[s]]`` over its synapses; so does a listed entry of value 0,
    and no neuron that is not listed.

    Args:
        spikes: lists with any leading axes, or an array with the neurons on its last axis.
        weights: one for each synapse; their dtype is the dtype of the result, and sums are computed in float32
            (float64 for float64). Of `quantisation.Quantised` ones int8 is read, and sums scaled once by target; those
            of spikes are exact.
        synapses: which synapses exist. They have no gradient.
        implementation: None chooses automatically; "reference" forces the jnp reference, which costs as much as if all
            neurons spiked; "cpu" forces the compiled kernel or raises; "composed" is plain jnp with forward mode and
            second-order derivatives.

    Raises:
        ValueError: if the weights or spikes do not fit the synapses, or the weights are not floating, and for an
            implementation that is unknown or unavailable; for a gradient with quantised weights.

    Example:
        >>> import jax.numpy as jnp
        >>> from snnjax import Synapses, spike_sparse_matmul
        >>> synapses = Synapses.from_mask(jnp.array([[True, False, True], [False, False, True]]))
        >>> spike_sparse_matmul(jnp.array([[1, 1], [0, 1]]), jnp.array([0.5, 1.5, 2.5]), synapses)
        Array([[0.5, 0. , 4. ],
               [0. , 0. , 2.5]], dtype=float32)
    """
    _check_arguments(spikes, weights, synapses)
    sizes, structure = Sizes(synapses.num_neurons, synapses.num_targets), ends_and_targets(synapses)
    return multiply(_PRODUCT, spikes, weights, sizes, structure, implementation=implementation)


def _check_arguments(spikes: Unchecked, weights: Unchecked, synapses: Unchecked) -> None:
    op = "spike_sparse_matmul"
    num_neurons = neurons_of(op, spikes)
    if not isinstance(synapses, Synapses):
        hint = "Make them with Synapses.from_mask, for instance"
        fail(f"{op}: `synapses` must be Synapses, got {short_repr(synapses)}. {hint}.")
    check_weights(op, "weights", weights, synapses.num_targets)
    check_shape(op, "weights", weights, (synapses.num_synapses,), "synapses", "Pass one for each synapse")
    hint = f"Make synapses of {num_neurons} neurons"
    check_shape(op, "synapses.ends", synapses.ends, (num_neurons,), "neurons", hint)


def _structure(operands: PyTree, sizes: Sizes) -> tuple[Array, Array]:
    """The neuron before and behind each synapse, int32."""
    synapses = Synapses(operands.ends, operands.targets, sizes.num_outputs)
    return synapses.sources(), targets_or_beyond(synapses)


def _at(row: Array, neurons: Array) -> Array:
    """What a row holds of the neuron of each synapse, 0 where there is none."""
    return jnp.take(row, neurons, mode="fill", fill_value=0)


def _forward(operands: Operands, sizes: Sizes) -> Array:
    if isinstance(operands.weights, Quantised):
        numbers = operands.weights.values.astype(accumulation_dtype(operands.weights.dtype))
        return scaled(_forward(operands._replace(weights=numbers), sizes), upcast(operands.weights.scale))
    sources, targets = _structure(operands, sizes)
    weights = upcast(operands.weights)

    def one(row: Array) -> Array:
        """Row by row: all rows at once would take memory for each synapse of each."""
        sent = _at(row, sources)
        # An entry of 0 adds nothing whatever its weights, but has a derivative.
        sent = jnp.where((sent != 0) | jnp.isfinite(weights), sent * weights, 0)
        return jnp.zeros(sizes.num_outputs, weights.dtype).at[targets].add(sent, mode="drop")

    return jax.lax.map(one, upcast(rows_of(operands, sizes)))


def _spikes_backward(operands: SpikesBackwardOperands, sizes: Sizes) -> Array:
    """``dspikes[b, i]``: the sum of ``weights[s] * g[b, targets[s]]`` over the synapses of neuron i."""
    sources, targets = _structure(operands, sizes)
    weights = upcast(operands.weights)

    def one(g: Array) -> Array:
        products = weights * _at(g, targets)
        return jnp.zeros(sizes.num_inputs, weights.dtype).at[sources].add(products, mode="drop")

    return at_slots(jax.lax.map(one, upcast(operands.g)), operands)


def _weights_backward(operands: WeightsBackwardOperands, sizes: Sizes) -> Array:
    """``dweights[s]``: the sum of ``spikes[b, i] * g[b, targets[s]]`` over the rows."""
    sources, targets = _structure(operands, sizes)
    rows = upcast(rows_of(operands, sizes)), upcast(operands.g)

    def add(total: Array, row: tuple[Array, Array]) -> tuple[Array, None]:
        sent = _at(row[0], sources)
        return total + jnp.where(sent != 0, sent * _at(row[1], targets), 0), None

    start = vary_alike((jnp.zeros(targets.shape, rows[1].dtype), rows))[0]
    return jax.lax.scan(add, start, rows)[0]


def synaptic_product(rows: Array, weights: Weights, synapses: Synapses) -> Array:
    """The currents of dense rows of spikes in the accumulation dtype, in plain jnp."""
    wide, sizes = (
        weights.astype(accumulation_dtype(weights.dtype)),
        Sizes(rows.shape[-1], synapses.num_targets),
    )
    return _forward(Operands(None, None, rows, wide, synapses.ends, synapses.targets), sizes)


def synaptic_cotangents(rows: Array, weights: Array, synapses: Synapses, g: Array) -> tuple[Array, Array]:
    """The cotangents of the rows and the weights of `synaptic_product`."""
    structure, sizes = (synapses.ends, synapses.targets), Sizes(rows.shape[-1], synapses.num_targets)
    g_rows = _spikes_backward(SpikesBackwardOperands(None, weights, *structure, g), sizes)
    g_weights = _weights_backward(WeightsBackwardOperands(None, None, rows, *structure, g), sizes)
    return g_rows.astype(rows.dtype), g_weights.astype(weights.dtype)


_PRODUCT = Product("spike_sparse_matmul", _forward, _spikes_backward, _weights_backward)
