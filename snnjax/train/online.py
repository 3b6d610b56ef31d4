"""Gradients of a batch by an online rule, step by step, in constant memory."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array

from snnjax import online
from snnjax._sparse_spikes import SparseSpikes
from snnjax._types import State, steps_within, upcast
from snnjax.blocks.block import within
from snnjax.data import Batch
from snnjax.graph.network import Network, Params, Stats
from snnjax.metrics.decode import has_label

# By the names of `TrainConfig.rule`; "bptt" is back-propagation through time.
RULES = {"eprop": online.eprop, "ostl": online.ostl, "ottt": online.ottt}


def online_gradients(network: Network, loss: Callable[..., Array], rule: str) -> Callable[..., Params]:
    """Make ``(params, batch, lengths, penalty_gradients=None, stats=None) -> gradients`` of the mean loss of all steps.

    The loss of a step is `loss` for a sequence of only that step. The average is over each sample's own steps, those
    before its end, or for labels of steps those that have a label: padding changes nothing. `penalty_gradients` are the
    derivatives of a penalty on activity with respect to the activity, ``[batch, neurons]`` of each layer; the gradients
    then include that of the penalty. The activity is known here: the forward pass that measures the loss has it.
    """

    def loss_of_step(output: Array, targets: tuple[Array, ...]) -> Array:
        labels, inside, share, _ = targets
        return loss(_weighted(output, share)[None], labels, lengths=inside)

    def gradients(
        params: Params,
        batch: Batch,
        lengths: Array,
        penalty_gradients: dict[str, Array] | None = None,
        stats: Stats | None = None,
    ) -> Params:
        num_steps, size = batch.inputs.shape[:2]
        has_labels_of_steps = batch.labels.ndim > 1
        learner = RULES[rule](
            network, loss_of_step, penalty=None if penalty_gradients is None else _linear(penalty_gradients)
        )
        valid = steps_within(num_steps, lengths)
        asked = has_label(batch.inputs, batch.labels, lengths) if has_labels_of_steps else valid
        weights = tuple(1 / jnp.maximum(jnp.sum(each, axis=0), 1) for each in (asked, valid))

        def step(carry: State, xs: tuple[Any, Array, Array]) -> tuple[Any, None]:
            state, total = carry
            x, labels, inside = xs
            x = x.to_dense() if isinstance(x, SparseSpikes) else x
            labels = labels[None] if has_labels_of_steps else batch.labels
            targets = labels, inside.astype(jnp.int32), *(jnp.where(inside, weight, 0) for weight in weights)
            state, own, _ = learner.step(params, state, x, targets)
            return (state, jax.tree.map(lambda before, new: before + upcast(new), total, own)), None

        each = batch.labels if has_labels_of_steps else jnp.zeros((num_steps, 0), jnp.int32)
        start = (
            learner.init(params, size, stats),
            jax.tree.map(lambda leaf: jnp.zeros_like(upcast(leaf)), params),
        )
        (_, total), _ = jax.lax.scan(step, start, (within(batch.inputs, valid), each, valid))
        return jax.tree.map(lambda own, like: own.astype(like.dtype), total, params)

    return gradients


def _weighted(output: Array, weights: Array) -> Array:
    """The output in the accumulation dtype, whose cotangent is multiplied by a weight for each sample."""
    output = upcast(output)
    fixed = jax.lax.stop_gradient(output)
    return fixed + weights[:, None].astype(output.dtype) * (output - fixed)


def _linear(penalty_gradients: dict[str, Array]) -> Callable[..., Array]:
    """A penalty on rates with these derivatives, whatever the rates, averaged over the steps of each sample."""

    def penalty(rates: dict[str, Array], targets: tuple[Array, ...]) -> Array:
        weights = targets[-1][:, None]
        terms = [
            jnp.sum(penalty_gradients[name] * weights.astype(rate.dtype) * rate)
            for name, rate in rates.items()
        ]
        return jnp.sum(jnp.stack(terms))

    return penalty
