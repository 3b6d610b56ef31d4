"""What a network costs, in NeuroBench's terms and under its names (Yik et al. 2025, doi:10.1038/s41467-025-56739-4)."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Shaped

from snnjax._check import check, check_shape
from snnjax._types import wide
from snnjax.metrics.decode import check_lengths, check_outputs, class_sums
from snnjax.sparse_spikes import SparseSpikes


class SynapticOperations(NamedTuple):
    """Operations of one sequence, mean over the batch, float32."""

    effective_macs: Array  # [] multiply-accumulates: non-zero weight times non-zero, non-binary input
    effective_acs: Array  # [] accumulates: non-zero weight of a spike
    dense: Array  # [] all pairs of weight and input, zeros included


def input_counts(
    inputs: Shaped[Array, "time batch inputs"] | SparseSpikes, lengths: Int[Array, " batch"] | None = None
) -> Float[Array, "batch inputs"]:
    """How many steps each input is not zero in, which is its number of spikes if inputs are spikes.

    Args:
        inputs: dense ``[time, batch, inputs]`` of any dtype, or `SparseSpikes` without duplicates.
        lengths: steps of each sequence.

    Raises:
        ValueError: for inputs without three axes or without a step, lengths that do not fit.

    Example:
        >>> import jax.numpy as jnp
        >>> from snnjax.metrics import input_counts
        >>> input_counts(jnp.array([[[0.0, 2.0]], [[0.0, 0.5]]]))
        Array([[0., 2.]], dtype=float32)
    """
    if isinstance(inputs, SparseSpikes):
        check_outputs("input_counts", inputs, lengths)
        is_active = (inputs.values != 0).astype(jnp.float32)
        active = SparseSpikes(inputs.ids, is_active, inputs.num_spikes, inputs.num_listed, inputs.num_neurons)
        return class_sums(active, lengths)
    active = (jnp.asarray(inputs) != 0).astype(jnp.float32)
    check_outputs("input_counts", active, lengths)
    return class_sums(active, lengths)


def synaptic_operations(
    weights: Sequence[Float[Array, "_ _"]],
    counts: Float[Array, "batch inputs"],
    activity: Sequence[Float[Array, "batch _"]],
    lengths: Int[Array, " batch"],
    *,
    recurrent: Sequence[Float[Array, "_ _"] | None] | None = None,
    binary_inputs: bool = True,
) -> SynapticOperations:
    """Synaptic operations of a layered network: effective ones, on non-zero weights and inputs alone, and dense ones.

    ``effective = sum_l sum_i n[l, i] * nonzeros(weights[l][i, :])`` with ``n[0] = counts`` and
    ``n[l + 1, i] = lengths * activity[l][:, i]``; ``dense = lengths * sum_l inputs[l] * outputs[l]``. Operations on
    spikes are accumulates, those on inputs that are not binary are multiply-accumulates. Biases are not counted. The
    last step's spikes count for recurrent weights too: they are part of the state handed on.

    Args:
        weights: of every layer and of the read-out, in order.
        counts: non-zero inputs of each sequence, from `input_counts`.
        activity: mean rates of each hidden layer, and of a spiking read-out if it is one.
        lengths: steps of each sequence.
        recurrent: recurrent weights of each layer of `activity`, None where there are none.
        binary_inputs: whether the inputs are spikes.

    Raises:
        ValueError: if the arrays do not form a chain of layers.

    Example:
        >>> import jax.numpy as jnp
        >>> from snnjax.metrics import synaptic_operations
        >>> weights = [jnp.ones((3, 4)), jnp.ones((4, 2))]
        >>> counts = jnp.array([[5.0, 0.0, 1.0]])  # six input events
        >>> cost = synaptic_operations(weights, counts, [jnp.full((1, 4), 0.1)], lengths=jnp.array([10]))
        >>> cost.effective_acs, cost.dense  # 6 * 4 + 4 * 2, 10 * (12 + 8)
        (Array(32., dtype=float32), Array(200., dtype=float32))

    Reference:
        Yik et al. 2025, doi:10.1038/s41467-025-56739-4; code: SynapticOperations of neurobench.
    """
    recurrent = [None] * len(activity) if recurrent is None else list(recurrent)
    _check_chain(weights, counts, activity, recurrent)
    check_lengths("synaptic_operations", lengths, counts.shape[0])
    steps = lengths.astype(jnp.float32)
    spikes = [rates.astype(jnp.float32) * steps[:, None] for rates in activity]
    first = _effective(counts.astype(jnp.float32), weights[0])
    sources = list(zip(spikes, weights[1:], strict=False))  # a spiking read-out has no layer above it
    sources += [(n, matrix) for n, matrix in zip(spikes, recurrent, strict=True) if matrix is not None]
    others = sum((_effective(n, matrix) for n, matrix in sources), jnp.float32(0))
    size = weights[0].size + sum(matrix.size for _, matrix in sources)
    none = jnp.float32(0)
    return SynapticOperations(
        none if binary_inputs else first, others + first if binary_inputs else others, jnp.mean(steps) * size
    )


def connection_sparsity(params: Any) -> Float[Array, ""]:
    """The share of weights that are zero, over all matrices in `params`, float32.

    Vectors (biases, decays, thresholds) are not connections. Errors: no matrix in `params`.

    Example:
        >>> import jax.numpy as jnp
        >>> from snnjax.metrics import connection_sparsity
        >>> connection_sparsity({"weights": jnp.array([[0.0, 1.0]]), "bias": jnp.zeros(2)})
        Array(0.5, dtype=float32)

    Reference:
        Yik et al. 2025, doi:10.1038/s41467-025-56739-4.
    """
    matrices = [leaf for leaf in jax.tree.leaves(params) if jnp.ndim(leaf) == 2]
    way_out = "Pass the parameters that a network's init returned"
    check(len(matrices) > 0, "connection_sparsity", "params", "hold a weight matrix", "none", way_out)
    zeros = jnp.sum(jnp.stack([jnp.sum(matrix == 0) for matrix in matrices]))
    return zeros.astype(jnp.float32) / sum(matrix.size for matrix in matrices)


def footprint(*trees: Any) -> int:
    """Memory in bytes of all arrays in `trees`: the parameters, and the state as well if it is passed.

    Example:
        >>> import jax.numpy as jnp
        >>> from snnjax.metrics import footprint
        >>> footprint({"weights": jnp.zeros((3, 4))}, jnp.zeros(2, jnp.bfloat16))
        52

    Reference:
        Yik et al. 2025, doi:10.1038/s41467-025-56739-4.
    """
    return sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(trees))


def parameter_count(params: Any) -> int:
    """The number of parameters: the elements of all arrays in `params`.

    Example:
        >>> import jax.numpy as jnp
        >>> from snnjax.metrics import parameter_count
        >>> parameter_count({"weights": jnp.zeros((3, 4)), "bias": jnp.zeros(4)})
        16

    Reference:
        Yik et al. 2025, doi:10.1038/s41467-025-56739-4.
    """
    return sum(leaf.size for leaf in jax.tree.leaves(params))


def _effective(counts: Array, weights: Array) -> Array:
    """Mean over the batch of the non-zero weights that the counted spikes meet."""
    fan_out = jnp.sum(weights != 0, axis=1).astype(jnp.float32)
    return jnp.mean(jnp.sum(wide(counts) * fan_out[None, :], axis=1))


def _check_chain(
    weights: Sequence[Array], counts: Array, activity: Sequence[Array], recurrent: Sequence[Any]
) -> None:
    op, layers = "synaptic_operations", len(activity)
    way_out = "Pass the weights of every hidden layer and of the read-out"
    good = len(weights) - layers in (0, 1) and len(weights) > 0
    expected = f"hold {layers + 1} matrices ({layers} with a spiking read-out)"
    check(good, op, "weights", expected, len(weights), way_out)
    way_out = "Pass one entry for every layer, None where it is not recurrent"
    check(len(recurrent) == layers, op, "recurrent", f"hold {layers} entries", len(recurrent), way_out)
    batch, width = counts.shape
    for layer, matrix in enumerate(weights):
        way_out = "Order the weights from input to read-out"
        check_shape(op, f"weights[{layer}]", matrix, (width, None), "inputs, outputs", way_out)
        if layer < layers:
            width = matrix.shape[1]
            way_out = "Order the layers from input to read-out"
            check_shape(op, f"activity[{layer}]", activity[layer], (batch, width), "batch, neurons", way_out)
            if recurrent[layer] is not None:
                shape = (width, width)
                check_shape(op, f"recurrent[{layer}]", recurrent[layer], shape, "neurons, neurons", way_out)
