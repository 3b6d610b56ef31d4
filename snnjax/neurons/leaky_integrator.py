"""Leaky integrators: membranes without spikes."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from snnjax._check import check_integer
from snnjax.neurons._constants import Constant, check_decays, draw_raw_decay, raw_to_decay
from snnjax.neurons._neuron import (
    Bound,
    Neuron,
    align,
    assemble,
    at_zero,
    check_flags,
    computed_wide,
    config_of,
    configured,
    learned,
)


class LeakyIntegratorConfig(NamedTuple):
    """The static switches of `leaky_integrator`."""

    normalize: bool = True  # gain = 1 - decay, else 1
    learn_decay: bool = False  # else its gradient is stopped


class LeakyIntegratorParams(NamedTuple):
    """The parameters of `leaky_integrator`."""

    raw_decay: Array  # [neurons]; decay = raw_to_decay(raw_decay)


class LeakyIntegratorState(NamedTuple):
    """The state of `leaky_integrator`."""

    v: Array  # [batch, neurons] membrane


def leaky_integrator_init(
    key: Array, num_neurons: int, dtype: Any = jnp.float32, *, decay: Constant = 0.95
) -> LeakyIntegratorParams:
    """Make the parameters of leaky integrators; a decay given as a range (low, high) is drawn per neuron.

    Raises:
        ValueError: if `num_neurons` is not an integer of at least 0.

    Example:
        >>> leaky_integrator_init(jax.random.key(0), 3).raw_decay.shape
        (3,)
    """
    check_integer("leaky_integrator_init", "num_neurons", num_neurons, 0)
    return LeakyIntegratorParams(draw_raw_decay(key, decay, num_neurons, dtype))


def leaky_integrator_state(params: LeakyIntegratorParams, batch: int) -> LeakyIntegratorState:
    """Make the initial state, a membrane of 0, in at least float32.

    Example:
        >>> leaky_integrator_state(leaky_integrator_init(jax.random.key(0), 3), batch=2).v.shape
        (2, 3)
    """
    return LeakyIntegratorState(at_zero(batch, params.raw_decay))


@computed_wide("leaky_integrator.step")
def leaky_integrator_integrate(
    params: LeakyIntegratorParams,
    state: LeakyIntegratorState,
    inputs: Float[Array, "*batch neurons"],
    *,
    config: LeakyIntegratorConfig,
) -> tuple[Float[Array, "*batch neurons"], Float[Array, " neurons"]]:
    """The membrane, and an infinite threshold."""
    decay = align(learned(raw_to_decay(params.raw_decay), config.learn_decay), inputs)
    driven = (1 - decay) * inputs if config.normalize else inputs
    return decay * state.v + driven, leaky_integrator_threshold(params)


def leaky_integrator_fire(
    params: LeakyIntegratorParams,
    state: LeakyIntegratorState,
    inputs: Float[Array, "*batch neurons"],
    membrane: Float[Array, "*batch neurons"],
    spikes: Float[Array, "*batch neurons"],
    *,
    config: LeakyIntegratorConfig,
) -> LeakyIntegratorState:
    """The state after the step: the membrane."""
    del params, state, inputs, spikes, config
    return LeakyIntegratorState(membrane)


def leaky_integrator_threshold(params: LeakyIntegratorParams) -> Float[Array, " neurons"]:
    """Return an infinite threshold: the membrane never spikes."""
    return jnp.full_like(jax.lax.stop_gradient(params.raw_decay), jnp.inf)


def leaky_integrator(decay: Constant = 0.95, *, normalize: bool = True, learn_decay: bool = False) -> Neuron:
    """Make leaky integrators, for read-outs: ``v = decay v' + gain inputs``, without spikes or reset.

    `step` returns the membrane instead of spikes.

    Args:
        decay: fraction of the membrane kept per step; a number, or a range (low, high) from which `init` draws.
        normalize: ``gain = 1 - decay``, else 1.
        learn_decay: whether the decay is learned.

    Raises:
        ValueError: if the decay is outside (0, 1).

    Example:
        >>> from snnjax import neurons
        >>> neuron = neurons.leaky_integrator(decay=0.5)
        >>> params, state = neuron.init(jax.random.key(0), 1), LeakyIntegratorState(jnp.array([[1.0]]))
        >>> neuron.step(params, state, jnp.array([[2.0]]))[1]
        Array([[1.5]], dtype=float32)
    """
    check_decays("leaky_integrator", decay=decay)
    config = LeakyIntegratorConfig(normalize, learn_decay)
    check_flags("leaky_integrator", config)
    init = Bound(leaky_integrator_init, decay=decay)
    own = configured(config, leaky_integrator_integrate, leaky_integrator_fire)
    pieces = (leaky_integrator_state, *own)
    threshold = leaky_integrator_threshold
    neuron = assemble("leaky_integrator", "superspike", init, pieces, threshold=threshold)
    return neuron._replace(spikes=False)


def plain_integrator(neuron: Neuron) -> LeakyIntegratorConfig | None:
    """Return the switches of a neuron that the read-out of `snnjax.lif_network` supports, None for any other.

    Example:
        >>> from snnjax import neurons
        >>> neurons.plain_integrator(neurons.leaky_integrator(normalize=False)).normalize
        False
    """
    return config_of(neuron, leaky_integrator_integrate, leaky_integrator_fire)
