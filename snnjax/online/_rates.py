"""Rates of the neurons, estimated while they fire, and what a penalty on them asks of each neuron."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Int, PyTree

from snnjax._types import upcast
from snnjax.online.learner import RatePenalty


class Rates(NamedTuple):
    """The running estimates of rates: means over all steps so far, and later over about the last `rate_window`."""

    means: dict[str, Array]  # [batch, neurons] of each layer, in spikes per step, in the accumulation dtype
    steps: Int[Array, ""]  # int32, the steps that the means count, at most `rate_window`


def no_rates(neurons: dict[str, Any]) -> Rates:
    """The estimates before the first step, for the layers' neuron states."""
    return Rates({name: jnp.zeros_like(state.v) for name, state in neurons.items()}, jnp.int32(0))


def update_rates(
    penalty: RatePenalty | None, rates: Rates | None, spikes: dict[str, Array], window: int, targets: PyTree
) -> tuple[Rates | None, dict[str, Array]]:
    """The estimates with one more step, and the derivative of the penalty with respect to each, ``[batch, neurons]``.

    ``r += (s - r) / n`` with ``n = min(steps + 1, window)``. Without a penalty there is nothing to keep.
    """
    if penalty is None or rates is None:
        return rates, {}
    steps = jnp.minimum(rates.steps + 1, window)
    means = jax.tree.map(
        lambda mean, now: mean + (now - mean) / steps.astype(mean.dtype), rates.means, spikes
    )
    return Rates(means, steps), jax.tree.map(upcast, jax.grad(penalty)(means, targets))
