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


def online_gradients(
    network: Network,
    loss: Callable[..., Array],
    rule: str,
    penalty: Callable[[tuple[Array, ...]], Array] | None = None,
) -> Callable[[NetworkParams, Batch, Array], NetworkParams]:
    """Make ``(params, batch, lengths) -> gradients`` for the loss and penalty of each step, averaged over the steps.

    The loss of a step is `loss` for a sequence of only that step; samples that have ended have none. Its penalty is
    ``penalty(rates)`` of each neuron's mean rate so far, in which samples that have ended count as silent.
    """

    def loss_of_step(output: Array, targets: tuple[Array, Array]) -> Array:
        labels, inside = targets
        return loss(output[None], labels, lengths=inside)

    def gradients(params: NetworkParams, batch: Batch, lengths: Array) -> NetworkParams:
        num_steps, size = batch.inputs.shape[:2]
        has_labels_of_steps = batch.labels.ndim > 1
        on_rates = None if penalty is None else _within(penalty)
        learner = RULES[rule](network, loss_of_step, penalty=on_rates, rate_window=num_steps)

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


def _within(penalty: Callable[[tuple[Array, ...]], Array]) -> Callable[..., Array]:
    """The penalty as an online rule calls it, without samples that have ended."""

    def penalty_of_step(rates: tuple[Array, ...], targets: tuple[Array, Array]) -> Array:
        inside = targets[1][:, None]
        return penalty(tuple(each * inside.astype(each.dtype) for each in rates))

    return penalty_of_step
