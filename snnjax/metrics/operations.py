"""The cost of a network, in NeuroBench's metrics and names (Yik et al. 2025, doi:10.1038/s41467-025-56739-4)."""

import dataclasses
import functools
import math
from collections.abc import Container, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Integer, PyTree, Shaped

from snnjax._check import check_shape, fail
from snnjax._quantised import unscaled
from snnjax._sparse_spikes import SparseSpikes, in_range, values_of
from snnjax.blocks._sparse import Sparse
from snnjax.blocks._synaptic import Synaptic
from snnjax.blocks.block import Block, Context, Shape
from snnjax.blocks.delay import Delayed
from snnjax.blocks.join import Join
from snnjax.blocks.late import Late
from snnjax.blocks.linear import Linear, Product
from snnjax.blocks.pool import Flattened, Pooled
from snnjax.blocks.rate_pool import RatePool
from snnjax.blocks.upsample import Upsample
from snnjax.graph.check import are_weights, check_params
from snnjax.graph.network import Network, Params, Stats
from snnjax.metrics.decode import check_lengths, check_outputs, class_sums


class SynapticOperations(NamedTuple):
    """Operations per sequence, mean over the batch, float32."""

    effective_macs: Array  # [] multiply-accumulates: non-zero weight times non-zero, non-binary input
    effective_acs: Array  # [] accumulates: non-zero weight of a spike
    dense: Array  # [] all pairs of weight and input, including zeros


def input_counts(
    inputs: Shaped[Array, "time batch *shape"] | SparseSpikes, lengths: Integer[Array, " batch"] | None = None
) -> Float[Array, "batch inputs"]:
    """Count the steps in which each input is not zero, which is its number of spikes if inputs are spikes.

    Args:
        inputs: dense ``[time, batch, inputs]`` or ``[time, batch, *shape]`` of any dtype, or `SparseSpikes` without
            duplicates.
        lengths: number of steps of each sequence.

    Raises:
        ValueError: if inputs do not have three axes or more and at least one step, or lengths do not match.

    Example:
        >>> import jax.numpy as jnp
        >>> from snnjax.metrics import input_counts
        >>> input_counts(jnp.array([[[0.0, 2.0]], [[0.0, 0.5]]]))
        Array([[0., 2.]], dtype=float32)
    """
    if isinstance(inputs, SparseSpikes):
        check_outputs("input_counts", inputs, lengths)
        is_active = (values_of(inputs) != 0).astype(jnp.float32)
        return class_sums(dataclasses.replace(inputs, values=is_active), lengths)
    active = (jnp.asarray(inputs) != 0).astype(jnp.float32)
    active = active.reshape(*active.shape[:2], -1) if active.ndim > 3 else active
    check_outputs("input_counts", active, lengths)
    return class_sums(active, lengths)


def synaptic_operations(
    network: Network,
    params: Params,
    counts: Any,
    activity: Mapping[str, Float[Array, "batch _"]],
    lengths: Integer[Array, " batch"],
    *,
    stats: Stats | None = None,
    binary_inputs: bool = True,
) -> SynapticOperations:
    """Count the synaptic operations of a network: effective (non-zero weights and inputs only) and dense ones.

    ``effective = sum over connections, sum_i n[i] * fan_out[i]`` with the numbers `n` of values other than 0 that
    arrive: `counts` of inputs, ``lengths * activity[:, i]`` of neurons. `fan_out` is the number of nonzero weights that
    a spike is multiplied by: those of its row or, for a convolution, of the patch that it adds to, cut off at the edges
    of the image. ``dense`` is the count for a spike of every input and neuron in every step and nonzero weights.
    Operations on spikes are accumulates; operations on other values, such as the normalised currents that reach a
    second connection, are multiply-accumulates. Biases, norms and pools are not counted: spikes pass through pools one
    by one, and cost nothing outside all windows. Nor are products of signals with each other, as those of
    `blocks.spiking_attention`. The last step's spikes count for recurrent weights too, as part of the returned state. A
    delayed spike counts once, a graded one as many times as its magnitude, an upsampled one for each of its pixels; of
    joined spikes each one counts, and of multiplied ones those of the side with fewer, unless `counts` has the number
    that a join or a pool passed on.

    A block of one's own is counted if it is a `blocks.Linear`. Of others nobody knows what they multiply, so they are
    refused, unless `counts` has an entry for the signal that they pass on: then what they do inside is not counted.

    Args:
        network: the network.
        params: its parameters.
        counts: non-zero inputs of each sequence, from `input_counts`; a dict of them if there are several inputs. The
            dict may also have those of blocks by name, of the signals that ``apply(..., record=name)`` returns.
        activity: the activity that the network returned.
        lengths: number of steps of each sequence.
        stats: its statistics, which hold the synapses of connections that are `sparse`.
        binary_inputs: whether the inputs are spikes.

    Raises:
        ValueError: if parameters, counts or activity are not those of the network, or if it has a block of one's own
            that is no `blocks.Linear` and not in `counts`.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> import snnjax
        >>> net = snnjax.network(3, [snnjax.layer(4)], snnjax.leaky_readout(2))
        >>> params = net.init(jax.random.key(0))
        >>> counts = jnp.array([[5.0, 0.0, 1.0]])  # six input events
        >>> rates = {"layer_0/neuron": jnp.full((1, 4), 0.1)}
        >>> cost = snnjax.metrics.synaptic_operations(net, params, counts, rates, jnp.array([10]))
        >>> cost.effective_acs, cost.dense  # 6 * 4 + 4 * 2, 10 * (12 + 8)
        (Array(32., dtype=float32), Array(200., dtype=float32))

    Reference:
        Yik et al. 2025, doi:10.1038/s41467-025-56739-4; code: SynapticOperations of neurobench.
    """
    op = "synaptic_operations"
    check_params(op, params, network.nodes, network.in_shapes)
    given = counts if isinstance(counts, Mapping) else {network.inputs[0][0]: counts}
    arriving = {name: _counted(given, name, shape, binary_inputs) for name, shape in network.inputs}
    _check_blocks(network, params, given)
    check_lengths(op, lengths, None, next(iter(arriving.values())).counts.shape[0])
    steps, found = lengths.astype(jnp.float32), []
    neurons = [node.name for node in network.nodes if node.block.is_spiking and node.name not in given]
    spikes = {name: _of_neurons(activity, name, network.shapes[name], steps) for name in neurons}
    for node, shapes in zip(network.nodes, network.in_shapes, strict=True):
        block, own, shape = node.block, params.get(node.name), network.shapes[node.name]
        received = [
            arriving[own] if own in arriving else _returning(own, network, given, spikes)
            for own in node.sources
        ]
        found += _operations(block, own, (stats or {}).get(node.name), received, shapes)
        if block.is_spiking and node.name not in given:
            arriving[node.name] = spikes[node.name]
            continue
        signal = _passed(block, received, shapes, steps)
        if node.name in given:
            signal = _counted(given, node.name, shape, block.is_spiking or signal.is_binary)
        arriving[node.name] = signal
    accumulates, others = (
        jnp.sum(jnp.stack([jnp.zeros(()), *(each.effective for each in found if each.is_binary is kind)]))
        for kind in (True, False)
    )
    return SynapticOperations(others, accumulates, jnp.mean(steps) * sum(each.dense for each in found))


class _Arriving(NamedTuple):
    """The values other than 0 of a signal."""

    counts: Array  # [batch, neurons], of a whole sequence
    most: float  # per neuron and step, if every neuron spikes
    is_binary: bool


class _Operations(NamedTuple):
    """The operations of a connection, mean over the batch."""

    effective: Array  # [], of a whole sequence
    dense: Any  # per step
    is_binary: bool


def _counted(given: Mapping[str, Array], name: str, shape: Shape, binary: bool) -> _Arriving:
    """A signal whose values other than 0 were counted."""
    hint = "Make it with metrics.input_counts"
    own = given.get(name, jnp.zeros(()))
    check_shape("synaptic_operations", "counts", own, (None, math.prod(shape)), "batch, inputs", hint)
    return _Arriving(own.astype(jnp.float32), 1.0, binary)


def _check_blocks(network: Network, params: Params, given: Mapping[str, Array]) -> None:
    wrong = [name for name in given if name not in network.shapes]
    if wrong:
        fail(
            f"synaptic_operations: `counts` must be of inputs and blocks, got one of {wrong[0]!r}. "
            "Print [node.name for node in network.nodes]."
        )
    unknown = unknown_block(network, params, given)
    if unknown is not None:
        name, block = unknown
        fail(
            f"synaptic_operations: `network` must hold blocks whose operations are known, got {block.kind} in "
            f"{name!r}. Derive it from blocks.Linear; or pass the counts of its signal, and count its own apart."
        )


def unknown_block(network: Network, params: Params, counted: Container[str] = ()) -> tuple[str, Block] | None:
    """The first block that may multiply what it likes, and the name of its node; none whose signal is `counted`."""
    for node, shapes in zip(network.nodes, network.in_shapes, strict=True):
        has_no_weights = node.block.is_spiking and params.get(node.name) is None
        if not (_is_known(node.block, shapes) or has_no_weights or node.name in counted):
            return node.name, node.block
    return None


def _is_known(block: Block, shapes: tuple[Shape, ...]) -> bool:
    """Whether it is a connection, or known to multiply nothing by weights."""
    is_known = block.is_counted or block.is_skipped(train=False)
    return is_known or isinstance(_op(block, shapes), Product | Pooled | Delayed | Flattened)


def _of_neurons(activity: Mapping[str, Array], name: str, shape: Shape, steps: Array) -> _Arriving:
    rates, sizes = activity.get(name, jnp.zeros(())), (steps.shape[0], math.prod(shape))
    hint = "Pass the activity that the network returned"
    check_shape("synaptic_operations", f"activity[{name!r}]", rates, sizes, "batch, neurons", hint)
    return _Arriving(rates.astype(jnp.float32) * steps[:, None], 1.0, True)


def _operations(
    block: Block, params: Any, stats: Any, received: list[_Arriving], shapes: tuple[Shape, ...]
) -> list[_Operations]:
    """The operations of a connection; none of other blocks."""
    if isinstance(block, Synaptic):
        block, stats = block.connection, None if stats is None else stats.synapses
    if isinstance(block, Sparse):
        if stats is None:
            fail(
                "synaptic_operations: `stats` must hold the synapses of connections that are sparse, got none. "
                "Pass stats= those of the network."
            )
        exist = (unscaled(params.weights) != 0) & in_range(stats.targets, stats.num_targets)
        none = jnp.zeros(stats.num_neurons, jnp.float32)
        fan_out = none.at[stats.sources()].add(exist.astype(jnp.float32), mode="drop")
        effective = jnp.mean(jnp.sum(received[0].counts * fan_out[None, :], axis=1))
        return [_Operations(effective, received[0].most * stats.num_synapses, received[0].is_binary)]
    if not isinstance(block, Linear):
        return []
    (signal,), (shape,), weights = received, shapes, block.used(params.weights)
    op = block.op(shape)
    if isinstance(op, Product):
        fan_out, pairs = op.connection.fan_out(weights), op.connection.num_pairs(weights.shape)
    else:
        fan_out, every = (
            _fan_out(block, weights != 0, shape),
            _fan_out(block, jnp.ones(weights.shape, bool), shape),
        )
        pairs = jnp.sum(every)
    effective = jnp.mean(jnp.sum(signal.counts * fan_out[None, :], axis=1))
    return [_Operations(effective, signal.most * pairs, signal.is_binary)]


def _fan_out(block: Linear, exist: Array, shape: Shape) -> Array:
    """How many of the weights that exist each input of a connection of one's own is multiplied by.

    With weights of 1 its current is the sum of its inputs as often as they count, whatever form the connection has.
    """

    def total(x: Array) -> Array:
        return jnp.sum(block.product(exist.astype(jnp.float32), x[None, None], shape, None))

    return jax.grad(total)(jnp.zeros(shape, jnp.float32)).reshape(-1)


def _returning(
    name: str, network: Network, given: Mapping[str, Array], spikes: Mapping[str, _Arriving]
) -> _Arriving:
    """A signal that a late block receives before its own node has run: counted spikes are known."""
    if name in spikes:
        return spikes[name]
    if name not in given:
        fail(
            f"synaptic_operations: `network` must return spikes to earlier blocks, got the signal of {name!r}. "
            "Pass the counts of its signal."
        )
    block = next(node.block for node in network.nodes if node.name == name)
    return _counted(given, name, network.shapes[name], block.is_spiking)


def _passed(block: Block, received: list[_Arriving], shapes: tuple[Shape, ...], steps: Array) -> _Arriving:
    """What a block passes on of the values that it receives; if it makes others of them, those are seldom 0."""
    if isinstance(block, Join):
        return _joined(block.how, received, shapes)
    first, op = received[0], _op(block, shapes)
    if isinstance(block, RatePool):  # the count of its fastest neuron is that of the window
        return _Arriving(block.pool.pooling(shapes[0]).pool(first.counts), 1.0, first.is_binary)
    if isinstance(op, Pooled):
        counts = dataclasses.replace(op.pooling, how="sum").pool(first.counts)
        if op.pooling.how == "max":  # at most one in a step
            return _Arriving(jnp.minimum(counts, steps[:, None]), 1.0, first.is_binary)
        return _Arriving(counts, first.most * math.prod(op.pooling.window), first.is_binary)
    if isinstance(block, Upsample):  # a spike for each of its pixels
        pixels = first.counts.reshape(1, -1, *shapes[0])
        copies = block.apply(None, None, None, pixels, shapes=shapes, context=Context()).signal
        return first._replace(counts=copies.reshape(first.counts.shape[0], -1))
    if isinstance(op, Delayed | Flattened) or isinstance(block, Late) or block.is_skipped(False):
        return first
    sizes = first.counts.shape[0], math.prod(block.out_shape(*shapes))
    return _Arriving(jnp.broadcast_to(steps[:, None], sizes), 1.0, False)


def _op(block: Block, shapes: tuple[Shape, ...]) -> Any:
    return block.op(*shapes) if len(shapes) == 1 else None


def _joined(how: str, received: list[_Arriving], shapes: tuple[Shape, ...]) -> _Arriving:
    batch, is_binary = received[0].counts.shape[0], all(own.is_binary for own in received)
    shapes = shapes if how == "concatenate" else shapes[:1] * len(shapes)
    counts = [own.counts.reshape(batch, *shape) for own, shape in zip(received, shapes, strict=True)]
    if how == "concatenate":
        joined = jnp.concatenate(counts, axis=-1)
        channels = [shape[-1] for shape in shapes]
        pairs = zip(received, channels, strict=True)
        most = sum(own.most * share for own, share in pairs) / sum(channels)
    elif how == "multiply":
        joined, most = functools.reduce(jnp.minimum, counts), min(own.most for own in received)
    elif how == "iand":
        joined, most = counts[1], received[1].most
    else:
        joined, most = functools.reduce(jnp.add, counts), sum(own.most for own in received)
    return _Arriving(joined.reshape(batch, -1), most, is_binary)


def connection_sparsity(params: PyTree) -> Float[Array, ""]:
    """Compute the fraction of weights that are zero, float32: those of connections, and others with two or more axes.

    A convolution weight counts once. Biases, decays and delays are not weights. Masked weights count because
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
    each = zip(jax.tree.leaves(params), jax.tree.leaves(are_weights(params)), strict=True)
    matrices = [leaf for leaf, is_weight in each if is_weight]
    if len(matrices) == 0:
        fail(
            "connection_sparsity: `params` must hold a weight matrix, got none. Pass the parameters that a "
            "network's init returned."
        )
    zeros = jnp.sum(jnp.stack([jnp.sum(matrix == 0) for matrix in matrices]))
    return zeros.astype(jnp.float32) / sum(matrix.size for matrix in matrices)


def footprint(*trees: PyTree) -> int:
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


def parameter_count(params: PyTree) -> int:
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
