"""Leaky integrators: membranes without spikes."""

import dataclasses
from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array

from snnjax._arguments import explained
from snnjax.neurons._constants import Constant
from snnjax.neurons._model import DECAY, Model, gain_of, glif_neuron
from snnjax.neurons._neuron import Neuron
from snnjax.ops._glif_step import GLIFConstants


class LeakyIntegratorParams(NamedTuple):
    """The parameters of `leaky_integrator`; None for a decay that is not learned."""

    raw_decay: Array | None = None  # [neurons]; decay = raw_to_decay(raw_decay)


class LeakyIntegratorState(NamedTuple):
    """The state of `leaky_integrator`."""

    v: Array  # [batch, neurons] membrane


def _constants(decay: Array, *, normalize: bool) -> GLIFConstants:
    """The membrane never reaches an infinite threshold."""
    return GLIFConstants(decay, jnp.full_like(decay, jnp.inf), gain_of(decay, normalize))


_MODEL = Model(
    "leaky_integrator",
    LeakyIntegratorParams,
    LeakyIntegratorState,
    (DECAY,),
    _constants,
    ("normalize",),
    resets=("none",),
)


@explained
def leaky_integrator(
    decay: Constant = 0.95, *, per: str = "channel", normalize: bool = True, learn_decay: bool = False
) -> Neuron:
    """Make leaky integrators, for readouts: ``v = decay v' + gain inputs``, without spikes or reset.

    `step` returns the membrane instead of spikes.

    Args:
        decay: fraction of the membrane kept per step; a number, or a range (low, high) from which it is drawn. With
            ``normalize=False`` a number may be 1: the membrane sums its inputs.
        per: as for `lif`.
        normalize: ``gain = 1 - decay``, else 1.
        learn_decay: whether the decay is learned.

    Raises:
        ValueError: if the decay is outside (0, 1).

    Example:
        >>> import jax
        >>> import jax, jax.numpy as jnp
        >>> from snnjax import neurons
        >>> neuron = neurons.leaky_integrator(decay=0.5)
        >>> params, state = neuron.init(jax.random.key(0), 1), LeakyIntegratorState(jnp.array([[1.0]]))
        >>> neuron.step(params, state, jnp.array([[2.0]]))[1]
        Array([[1.5]], dtype=float32)
    """
    return dataclasses.replace(glif_neuron(_MODEL, locals()), spikes=False)
