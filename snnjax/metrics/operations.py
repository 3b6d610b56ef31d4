"""The cost of a network, in NeuroBench's metrics and names (Yik et al. 2025, doi:10.1038/s41467-025-56739-4)."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Shaped

from snnjax._check import check_shape, fail, plural
from snnjax._types import upcast
from snnjax.metrics.decode import check_lengths, check_outputs, class_sums
from snnjax.ops._connection import DENSE, Connection
from snnjax.sparse_spikes import SparseSpikes


class SynapticOperations(NamedTuple):
    """Operations per sequence, mean over the batch, float32."""

    effective_macs: Array  # [] multiply-accumulates: non-zero weight times non-zero, non-binary input
    effective_acs: Array  # [] accumulates: non-zero weight of a spike
    dense: Array  # [] all pairs of weight and input, including zeros


def input_counts(
    inputs: Shaped[Array, "time batch inputs"] | SparseSpikes, lengths: Int[Array, " batch"] | None = None
) -> Float[Array, "batch inputs"]:
    """Count the steps in which each input is not zero, which is its number of spikes if inputs are spikes.

    Args:
        inputs: dense ``[time, batch, inputs]`` of any dtype, or `SparseSpikes` without duplicates.
        lengths: number of steps of each sequence.

    Raises:
        ValueError: if inputs do not have three axes and at least one step, or lengths do not match.

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
    weights: Sequence[Float[Array, "..."]],
    counts: Float[Array, "batch inputs"],
    activity: Sequence[Float[Array, "batch _"]],
    lengths: Int[Array, " batch"],
    *,
    recurrent: Sequence[Float[Array, "_ _"] | None] | None = None,
    connections: Sequence[Connection] | None = None,
    binary_inputs: bool = True,
) -> SynapticOperations:
    """Count the synaptic operations of a layered network: effective (non-zero weights and inputs only) and dense ones.

    ``effective = sum_l sum_i n[l, i] * fan_out[l, i]`` with ``n[0] = counts`` and
    ``n[l + 1, i] = lengths * activity[l][:, i]``; `fan_out` is the number of nonzero weights that a spike is multiplied
    by: those of its row or, for a convolution, of the patch that it adds to, cut off at the edges of the image.
    ``dense`` is the count for a spike of every input in every step and nonzero weights. Operations on spikes are
    accumulates; operations on non-binary inputs are multiply-accumulates. Biases and pooling are not counted: spikes
    pass through pools one by one, and cost nothing outside all windows. The last step's spikes count for recurrent
    weights too, as part of the returned state. A delayed spike counts once.

    Args:
        weights: weights of every layer and of the read-out, in order, with masked weights set to 0.
        counts: non-zero inputs of each sequence, from `input_counts`.
        activity: mean rates of each hidden layer, and of the read-out if it spikes.
        lengths: number of steps of each sequence.
        recurrent: recurrent weights of each layer in `activity`, None for a layer without.
        connections: the connections, ``spec.fitted.connection`` for each of ``network.layers`` and for
            ``network.readout``; None means dense weights only.
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
    connections = [DENSE] * len(weights) if connections is None else list(connections)
    _check_chain(weights, counts, activity, recurrent, connections)
    check_lengths("synaptic_operations", lengths, None, counts.shape[0])
    steps = lengths.astype(jnp.float32)
    spikes = [rates.astype(jnp.float32) * steps[:, None] for rates in activity]
    ways = list(zip(connections, weights, strict=True))
    first = _effective(*ways[0], counts.astype(jnp.float32))
    sources = list(zip(ways[1:], spikes, strict=False))  # a spiking read-out has no layer above it
    loops = zip(recurrent, spikes, strict=True)
    sources += [((DENSE, matrix), n) for matrix, n in loops if matrix is not None]
    others = sum((_effective(*way, n) for way, n in sources), jnp.float32(0))
    size = sum(each.num_pairs(matrix.shape) for each, matrix in (ways[0], *(way for way, _ in sources)))
    none = jnp.float32(0)
    return SynapticOperations(
        none if binary_inputs else first, others + first if binary_inputs else others, jnp.mean(steps) * size
    )


def connection_sparsity(params: Any) -> Float[Array, ""]:
    """Compute the fraction of weights that are zero, over all arrays in `params` with two or more axes, float32.

    A convolution weight counts once. Vectors (biases, decays, delays) are not connections. Masked weights count because
    their value is 0: `init` sets it, and training keeps it.

    Errors: there is no matrix in `params`.

    Example:
        >>> import jax.numpy as jnp
        >>> from snnjax.metrics import connection_sparsity
        >>> connection_sparsity({"weights": jnp.array([[0.0, 1.0]]), "bias": jnp.zeros(2)})
        Array(0.5, dtype=float32)

    Reference:
        Yik et al. 2025, doi:10.1038/s41467-025-56739-4.
    """
    matrices = [leaf for leaf in jax.tree.leaves(params) if jnp.ndim(leaf) >= 2]
    if len(matrices) == 0:
        fail(
            "connection_sparsity: `params` must hold a weight matrix, got none. Pass the parameters that a "
            "network's init returned."
        )
    zeros = jnp.sum(jnp.stack([jnp.sum(matrix == 0) for matrix in matrices]))
    return zeros.astype(jnp.float32) / sum(matrix.size for matrix in matrices)


def footprint(*trees: Any) -> int:
    """Compute the memory in bytes of all arrays in `trees`: parameters, and the state if it is passed too.

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
    """Count the parameters: the elements of all arrays in `params`.

    Example:
        >>> import jax.numpy as jnp
        >>> from snnjax.metrics import parameter_count
        >>> parameter_count({"weights": jnp.zeros((3, 4)), "bias": jnp.zeros(4)})
        16

    Reference:
        Yik et al. 2025, doi:10.1038/s41467-025-56739-4.
    """
    return sum(leaf.size for leaf in jax.tree.leaves(params))


def _effective(connection: Connection, weights: Array, counts: Array) -> Array:
    """The mean over the batch of the number of nonzero weights that the counted spikes are multiplied by."""
    fan_out = connection.fan_out(weights)
    return jnp.mean(jnp.sum(upcast(counts) * fan_out[None, :], axis=1))


def _check_chain(
    weights: Sequence[Array],
    counts: Array,
    activity: Sequence[Array],
    recurrent: Sequence[Any],
    connections: Sequence[Connection],
) -> None:
    op, layers = "synaptic_operations", len(activity)
    if len(weights) not in (layers, layers + 1) or len(weights) == 0:
        arrays = f"{plural(layers + 1, 'array')} ({layers} with a spiking read-out)"
        hint = "Pass the weights of every hidden layer and of the read-out"
        fail(f"{op}: `weights` must hold {arrays}, got {len(weights)}. {hint}.")
    for argument, values, noun, count, hint in (
        ("recurrent", recurrent, "array", layers, "Pass one per layer, None if it is not recurrent"),
        ("connections", connections, "connection", len(weights), "Pass one for each of the weights, or None"),
    ):
        if len(values) != count:
            fail(f"{op}: `{argument}` must hold {plural(count, noun)}, got {len(values)}. {hint}.")
    batch, width = counts.shape
    for layer, (matrix, connection) in enumerate(zip(weights, connections, strict=True)):
        hint, shape = "Order the weights from input to read-out", connection.weights_shape(width)
        axes = "inputs, outputs" if connection.convolution is None else "*kernel, channels / groups, channels"
        check_shape(op, f"weights[{layer}]", matrix, shape, axes, hint)
        hint = "Order the layers from input to read-out"
        inputs = connection.num_inputs(matrix.shape)
        if inputs != width:
            fail(f"{op}: `connections[{layer}]` must have {plural(width, 'input')}, got {inputs}. {hint}.")
        if layer < layers:
            width = connection.num_outputs(matrix.shape)
            check_shape(op, f"activity[{layer}]", activity[layer], (batch, width), "batch, neurons", hint)
            if recurrent[layer] is not None:
                shape = (width, width)
                check_shape(op, f"recurrent[{layer}]", recurrent[layer], shape, "neurons, neurons", hint)
