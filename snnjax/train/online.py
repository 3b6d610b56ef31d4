"""Gradients of a batch by an online rule, step by step, in constant memory."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array

from snnjax import online
from snnjax._network import Network
from snnjax._network.specs import NetworkParams
from snnjax.data import Batch
from snnjax.sparse_spikes import SparseSpikes

# By the names of `TrainConfig.rule`; "bptt" is back-propagation through time.
RULES = {"eprop": online.eprop, "ostl": online.ostl, "ottt": online.ottt}


def online_gradients(network: Network, loss: Callable[..., Array], rule: str) -> Callable[..., NetworkParams]:
    """Make ``(params, batch, lengths, pulls=None) -> gradients`` for the loss of each step, averaged over the steps.

    The loss of a step is `loss` for a sequence of only that step; samples that have ended have none. `pulls` are the
    derivatives of a penalty on activity with respect to the activity, ``[batch, neurons]`` per layer; the gradients
    then include that of the penalty. The activity is known here: the forward pass that measures the loss has it.
    """

    def loss_of_step(output: Array, targets: tuple[Array, Array]) -> Array:
        labels, inside = targets
        return loss(output[None], labels, lengths=inside)

    def gradients(
        params: NetworkParams, batch: Batch, lengths: Array, pulls: tuple[Array, ...] | None = None
    ) -> NetworkParams:
        num_steps, size = batch.inputs.shape[:2]
        has_labels_of_steps = batch.labels.ndim > 1
        penalty = None if pulls is None else _linear(pulls, lengths, num_steps)
        learner = RULES[rule](network, loss_of_step, penalty=penalty)

        def step(carry: Any, xs: tuple[Any, Array, Array]) -> tuple[Any, None]:
            state, total = carry
            x, labels, number = xs
            x = x.to_dense() if isinstance(x, SparseSpikes) else x
            labels = labels[None] if has_labels_of_steps else batch.labels
            inside = (number < lengths).astype(jnp.int32)
            state, own, _ = learner.step(params, state, x, (labels, inside))
            return (state, jax.tree.map(jnp.add, total, own)), None

        each = batch.labels if has_labels_of_steps else jnp.zeros((num_steps, 0), jnp.int32)
        start = learner.init(params, size), jax.tree.map(jnp.zeros_like, params)
        xs = batch.inputs, each, jnp.arange(num_steps, dtype=jnp.int32)
        (_, total), _ = jax.lax.scan(step, start, xs)
        return jax.tree.map(lambda own: own / num_steps, total)

    return gradients


def _linear(pulls: tuple[Array, ...], lengths: Array, num_steps: int) -> Callable[..., Array]:
    """A penalty on rates with these derivatives, whatever the rates, until a sample ends.

    The gradients are averaged over all steps, but the activity over those before the end.
    """

    def penalty(rates: tuple[Array, ...], targets: tuple[Array, Array]) -> Array:
        share = targets[1] * num_steps / jnp.maximum(lengths, 1)
        each = zip(pulls, rates, strict=True)
        terms = [jnp.sum(pull * share[:, None].astype(rate.dtype) * rate) for pull, rate in each]
        return jnp.sum(jnp.stack(terms))

    return penalty
