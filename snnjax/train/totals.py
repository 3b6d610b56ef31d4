"""Counts of a training or test pass: sums over samples, and the metrics computed from them."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from snnjax import metrics
from snnjax._network import Network
from snnjax._network.specs import NetworkOutput, NetworkParams


class Totals(NamedTuple):
    """Sums over the samples of a batch, float32; a sample of length 0 is padding and does not count."""

    samples: Array  # []
    loss: Array  # []
    correct: Array  # []
    answers: Array  # [] number of labels: one per sample, or one for each labelled step
    steps: Array  # [] time steps
    spikes: tuple[Array, ...]  # per layer [neurons]
    dropped: tuple[Array, ...]  # per layer []
    input_events: Array  # []
    effective_macs: Array  # []
    effective_acs: Array  # []
    dense: Array  # [] synaptic operations of dense hardware


def count(
    network: Network,
    params: NetworkParams,
    output: NetworkOutput,
    batch: Any,
    lengths: Array,
    loss: Array,
    answers: tuple[Array, Array],
) -> Totals:
    """The totals of a batch from its `loss`, its correct answers and its number of answers, ``[batch]`` each."""
    steps = lengths.astype(jnp.float32)
    real = (steps > 0).astype(jnp.float32)
    fitted = [spec.fitted for spec in network.layers]
    weights = [layer.weights for layer in params.layers]
    if network.readout is not None and params.readout is not None:
        fitted.append(network.readout.fitted)
        weights.append(params.readout.weights)
    counts = metrics.input_counts(batch.inputs, lengths)
    cost = metrics.synaptic_operations(
        [layer.masked(each) for layer, each in zip(fitted, weights, strict=True)],
        counts,
        output.activity,
        lengths,
        recurrent=[layer.recurrent for layer in params.layers],
        connections=[layer.connection for layer in fitted],
        binary_inputs=_are_events(batch.inputs),
    )
    right, asked = (jnp.sum(each.astype(jnp.float32) * real) for each in answers)
    return Totals(
        jnp.sum(real),
        jnp.sum(loss.astype(jnp.float32) * real),
        right,
        asked,
        jnp.sum(steps),
        tuple(jnp.sum(rates.astype(jnp.float32) * steps[:, None], axis=0) for rates in output.activity),
        tuple(jnp.sum(lost).astype(jnp.float32) for lost in output.dropped),
        jnp.sum(counts),
        *(each * steps.shape[0] for each in cost),
    )


def summarise(totals: Sequence[Totals], seconds: float) -> dict[str, Any]:
    """Compute the metrics of a pass over data that took `seconds`, as plain Python numbers for JSON.

    Keys: ``loss`` (mean over samples), ``accuracy`` (share of the labels that were predicted), ``activity`` (mean rate
    of each layer), ``dropped_share`` (of each layer's spikes), ``silent_share`` (of each layer's neurons), ``samples``,
    ``seconds``; per sample: ``input_events``, ``effective_macs``, ``effective_acs``, ``dense_operations``;
    ``events_per_second`` (inputs and spikes of all layers), ``synaptic_operations_per_second`` (effective operations of
    the forward pass).

    Example:
        >>> import numpy as np
        >>> from snnjax.train import Totals, summarise
        >>> batch = Totals(2, 1.4, 1, 2, 20, (np.array([2.0, 0.0]),), (1,), 30, 0, 64, 200)
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
        "effective_macs": total.effective_macs / samples,
        "effective_acs": total.effective_acs / samples,
        "dense_operations": total.dense / samples,
        "events_per_second": (total.input_events + sum(spikes)) / seconds,
        "synaptic_operations_per_second": (total.effective_macs + total.effective_acs) / seconds,
    }
    layers = zip(total.spikes, spikes, total.dropped, strict=True)
    shares = [
        (s / max(each.size * total.steps, 1), d / max(s, 1), np.mean(each == 0)) for each, s, d in layers
    ]
    activity, dropped, silent = (list(map(float, each)) for each in zip(*shares, strict=True))
    plain = {name: float(value) for name, value in numbers.items()}
    return plain | {"activity": activity, "dropped_share": dropped, "silent_share": silent}


def _are_events(inputs: Any) -> bool:
    """Whether inputs are event lists or boolean flags rather than real numbers."""
    return not isinstance(inputs, jax.Array) or not jnp.issubdtype(inputs.dtype, jnp.floating)
