"""Integrate-and-fire neurons, without leak."""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array

from snnjax.neurons._constants import Constant
from snnjax.neurons._model import THRESHOLD, Model, glif_neuron
from snnjax.neurons._neuron import Neuron
from snnjax.ops._glif_step import GLIFConstants
from snnjax.surrogates import Surrogate


class IntegrateAndFireParams(NamedTuple):
    """The parameters of `integrate_and_fire`; None for a constant that is not learned."""

    threshold: Array | None = None  # [neurons]


class IntegrateAndFireState(NamedTuple):
    """The state of `integrate_and_fire`."""

    v: Array  # [batch, neurons] membrane


def _constants(threshold: Array) -> GLIFConstants:
    one = jnp.ones((), threshold.dtype)
    return GLIFConstants(one, threshold, one)


_MODEL = Model("integrate_and_fire", IntegrateAndFireParams, IntegrateAndFireState, (THRESHOLD,), _constants)


def integrate_and_fire(
    threshold: Constant = 1.0,
    *,
    per: str = "channel",
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
        threshold: a number, or a range (low, high) from which it is drawn.
        per: this and the other switches are as for `lif`.

    Raises:
        ValueError: if a switch is unknown.

    Example:
        >>> import jax
        >>> from snnjax import neurons
        >>> neuron = neurons.integrate_and_fire()
        >>> params, state = neuron.init(jax.random.key(0), 1), IntegrateAndFireState(jnp.array([[1.25]]))
        >>> neuron.step(params, state, jnp.array([[0.5]]))[0].v
        Array([[0.75]], dtype=float32)

    Reference:
        Lapicque 1907; Brunel and van Rossum 2007, doi:10.1007/s00422-007-0190-0.
    """
    return glif_neuron(_MODEL, locals())
