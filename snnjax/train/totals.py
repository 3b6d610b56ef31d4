"""Counts of a training or test pass: sums over samples, and the metrics computed from them."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PyTree

from snnjax import metrics
from snnjax._sparse_spikes import SparseSpikes
from snnjax._types import Signal
from snnjax.graph.network import Network, NetworkOutput, Params, Stats
from snnjax.metrics.operations import unknown_block


class Totals(NamedTuple):
    """Sums over the samples of a batch, float32; a sample of length 0 is padding and does not count."""

    samples: Array  # []
    loss: Array  # [] of a training step: the loss of the batch, a mean that knows no padding, for each sample
    correct: Array  # []
    answers: Array  # [] number of labels: one per sample, or one for each labelled step
    steps: Array  # [] time steps
    spikes: tuple[Array, ...]  # [neurons] of each of `spiking_nodes`
    dropped: tuple[Array, ...]  # [] of each of them
    input_events: Array  # []
    operations: metrics.SynapticOperations | None = None  # [] each; a training step does not count them


def spiking_nodes(network: Network) -> list[str]:
    """The names of the nodes whose neurons spike, in order."""
    return [node.name for node in network.nodes if node.block.is_spiking]


def count(
    network: Network,
    output: NetworkOutput,
    batch: PyTree,
    lengths: Array,
    loss: Array,
    answers: tuple[Array, Array],
) -> Totals:
    """The totals of a batch from its `loss`, its correct answers and its number of answers, ``[batch]`` each."""
    steps = lengths.astype(jnp.float32)
    real = (steps > 0).astype(jnp.float32)
    names = spiking_nodes(network)
    counts = jax.tree.leaves(_input_counts(batch, lengths))
    right, asked = (jnp.sum(each.astype(jnp.float32) * real) for each in answers)
    return Totals(
        jnp.sum(real),
        jnp.sum(loss.astype(jnp.float32) * real),
        right,
        asked,
        jnp.sum(steps),
        tuple(jnp.sum(output.activity[name].astype(jnp.float32) * steps[:, None], axis=0) for name in names),
        tuple(jnp.sum(output.dropped[name]).astype(jnp.float32) for name in names),
        jnp.sum(jnp.stack([jnp.sum(each) for each in counts])),
    )


def count_operations(
    network: Network,
    params: Params,
    stats: Stats | None,
    output: NetworkOutput,
    batch: PyTree,
    lengths: Array,
) -> metrics.SynapticOperations:
    """The synaptic operations of a batch, NaN if those of a block are not known. They read every weight."""
    if unknown_block(network, params) is not None:
        return metrics.SynapticOperations(*(jnp.float32(jnp.nan),) * 3)
    given = (network, params, _input_counts(batch, lengths), output.activity, lengths)
    means = metrics.synaptic_operations(*given, stats=stats, binary_inputs=_are_events(batch.inputs))
    return metrics.SynapticOperations(*(each * lengths.shape[0] for each in means))


def _input_counts(batch: PyTree, lengths: Array) -> PyTree:
    """The number of events of each input and sample."""
    return jax.tree.map(
        lambda x: metrics.input_counts(x, lengths),
        batch.inputs,
        is_leaf=lambda x: isinstance(x, SparseSpikes),
    )


def summarise(totals: Sequence[Totals], seconds: float) -> dict[str, Any]:
    """Compute the metrics of a pass over data that took `seconds`, as plain Python numbers for JSON.

    Keys: ``loss`` (mean over samples), ``accuracy`` (share of the labels that were predicted), ``activity`` (mean rate
    of each layer), ``dropped_share`` (of each layer's spikes), ``silent_share`` (of each layer's neurons), ``samples``,
    ``seconds``, ``input_events`` (per sample), ``events_per_second`` (inputs and spikes of all layers). Where they were
    counted, per sample: ``effective_macs``, ``effective_acs``, ``dense_operations``, which are NaN if
    `metrics.synaptic_operations` does not know those of a block.

    Example:
        >>> import numpy as np
        >>> from snnjax.train.totals import Totals, summarise
        >>> batch = Totals(2, 1.4, 1, 2, 20, (np.array([2.0, 0.0]),), (1,), 30)
        >>> numbers = summarise([batch, batch], seconds=2.0)
        >>> numbers["accuracy"], numbers["activity"], numbers["silent_share"], numbers["events_per_second"]
        (0.5, [0.05], [0.5], 32.0)
    """
    # Sums over many batches exceed the integers that float32 holds exactly.
    batches = [jax.tree.map(lambda leaf: np.asarray(leaf, np.float64), each) for each in totals]
    total = jax.tree.map(lambda *leaves: np.sum(np.stack(leaves), axis=0), *batches)
    samples = max(float(total.samples), 1.0)
    spikes = [float(layer.sum()) for layer in total.spikes]
    numbers = {
        "loss": total.loss / samples,
        "accuracy": total.correct / max(float(total.answers), 1.0),
        "samples": total.samples,
        "seconds": seconds,
        "input_events": total.input_events / samples,
        "events_per_second": (total.input_events + sum(spikes)) / seconds,
    }
    if total.operations is not None:
        names = ("effective_macs", "effective_acs", "dense_operations")
        numbers |= {name: each / samples for name, each in zip(names, total.operations, strict=True)}
    layers = zip(total.spikes, spikes, total.dropped, strict=True)
    shares = [
        (s / max(each.size * total.steps, 1), d / max(s, 1), np.mean(each == 0)) for each, s, d in layers
    ]
    activity, dropped, silent = ([float(share[place]) for share in shares] for place in range(3))
    plain = {name: float(value) for name, value in numbers.items()}
    return plain | {"activity": activity, "dropped_share": dropped, "silent_share": silent}


def _are_events(inputs: Signal) -> bool:
    """Whether inputs are event lists or integers and flags rather than real numbers."""
    leaves = jax.tree.leaves(inputs, is_leaf=lambda x: isinstance(x, SparseSpikes))
    return not any(
        isinstance(leaf, jax.Array) and jnp.issubdtype(leaf.dtype, jnp.floating) for leaf in leaves
    )
