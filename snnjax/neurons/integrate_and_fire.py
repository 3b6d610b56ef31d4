"""Integrate-and-fire neurons, without leak."""

from typing import Any, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float

from snnjax._check import check_integer
from snnjax.neurons._constants import Constant, check_constants, draw
from snnjax.neurons._glif import GLIF, GLIFConstants, glif_pieces
from snnjax.neurons._membrane import (
    Constants,
    LIFConfig,
    check_config,
    fire_membrane,
    integrate_membrane,
)
from snnjax.neurons._neuron import Bound, Neuron, assemble, at_zero, check_flags, configured, learned
from snnjax.surrogates import Surrogate, as_surrogate


class IntegrateAndFireParams(NamedTuple):
    """The parameters of `integrate_and_fire`."""

    threshold: Array  # [neurons]


class IntegrateAndFireState(NamedTuple):
    """The state of `integrate_and_fire`."""

    v: Array  # [batch, neurons] membrane


def integrate_and_fire_init(
    key: Array, num_neurons: int, dtype: Any = jnp.float32, *, threshold: Constant = 1.0
) -> IntegrateAndFireParams:
    """Make the parameters of integrate-and-fire neurons; a threshold given as a range (low, high) is drawn from it.

    Raises:
        ValueError: if `num_neurons` is not an integer of at least 0.

    Example:
        >>> import jax
        >>> integrate_and_fire_init(jax.random.key(0), 3).threshold.shape
        (3,)
    """
    check_integer("integrate_and_fire_init", "num_neurons", num_neurons, 0)
    return IntegrateAndFireParams(draw(key, threshold, num_neurons, dtype))


def integrate_and_fire_state(params: IntegrateAndFireParams, batch: int) -> IntegrateAndFireState:
    """Make the initial state, a membrane of 0, in at least float32.

    Example:
        >>> import jax
        >>> integrate_and_fire_state(integrate_and_fire_init(jax.random.key(0), 3), batch=2).v.shape
        (2, 3)
    """
    return IntegrateAndFireState(at_zero(batch, params.threshold))


def integrate_and_fire_integrate(
    params: IntegrateAndFireParams,
    state: IntegrateAndFireState,
    inputs: Float[Array, "*batch neurons"],
    *,
    config: LIFConfig,
) -> tuple[Float[Array, "*batch neurons"], Float[Array, " neurons"]]:
    """The membrane whose spikes are ``[membrane > threshold]``, and that threshold."""
    constants = _constants(params, config)
    return integrate_membrane("integrate_and_fire.step", state.v, inputs, constants, config)


def integrate_and_fire_fire(
    params: IntegrateAndFireParams,
    state: IntegrateAndFireState,
    inputs: Float[Array, "*batch neurons"],
    membrane: Float[Array, "*batch neurons"],
    spikes: Float[Array, "*batch neurons"],
    *,
    config: LIFConfig,
) -> IntegrateAndFireState:
    """The state after the step; `spikes` is unused, because the true spikes follow from the membrane."""
    del spikes
    constants = _constants(params, config)
    v = fire_membrane("integrate_and_fire.step", state.v, inputs, membrane, constants, config)
    return IntegrateAndFireState(v)


def integrate_and_fire(
    threshold: Constant = 1.0,
    *,
    surrogate: str | Surrogate = "superspike",
    reset: str = "subtract",
    detach_reset: bool = True,
    learn_threshold: bool = False,
    reset_time: str = "before_decay",
    spike_from: str = "new",
    inclusive: bool = False,
) -> Neuron:
    r"""Make integrate-and-fire neurons: LIF without leak.

    With the spikes of the previous step, ``s' = [v' > threshold]``, the inputs :math:`x` and `threshold`
    :math:`\theta`:

    .. math::

        v &= \mathrm{reset}(v', s') + x \\
        s &= [v > \theta]

    Args:
        threshold: a number, or a range (low, high) from which `init` draws one for each neuron.
        surrogate: this and the other switches are as for `lif`.

    Raises:
        ValueError: if a switch is unknown.

    Example:
        >>> from snnjax import neurons
        >>> params, state = (
        ...     IntegrateAndFireParams(jnp.array([1.0])),
        ...     IntegrateAndFireState(jnp.array([[1.25]])),
        ... )
        >>> neurons.integrate_and_fire().step(params, state, jnp.array([[0.5]]))[0].v
        Array([[0.75]], dtype=float32)

    Reference:
        Lapicque 1907; Brunel and van Rossum 2007, doi:10.1007/s00422-007-0190-0.
    """
    check_constants("integrate_and_fire", threshold=threshold)
    learn = (False, learn_threshold)
    switches = (reset, detach_reset, False, *learn, reset_time, spike_from, inclusive)
    config = LIFConfig(as_surrogate("integrate_and_fire", surrogate), *switches)
    check_config("integrate_and_fire", config)
    check_flags("integrate_and_fire", config)
    init = Bound(integrate_and_fire_init, threshold=threshold)
    op, constants = "integrate_and_fire.step", Bound(_glif_constants, config=config)
    if config.is_plain:
        shape = as_surrogate("integrate_and_fire", surrogate)
        pieces = glif_pieces(GLIF(op, constants, shape, reset, detach_reset))
    else:
        pieces = configured(config, integrate_and_fire_integrate, integrate_and_fire_fire)
    pieces, takes_spikes = (integrate_and_fire_state, *pieces), config.takes_spikes
    return assemble("integrate_and_fire", config.surrogate, init, pieces, takes_spikes=takes_spikes)


def _glif_constants(params: IntegrateAndFireParams, config: LIFConfig) -> GLIFConstants:
    return GLIFConstants(*_constants(params, config))


def _constants(params: IntegrateAndFireParams, config: LIFConfig) -> Constants:
    one = jnp.ones((), params.threshold.dtype)
    return Constants(one, learned(params.threshold, config.learn_threshold), one)
