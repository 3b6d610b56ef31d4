"""Integrate-and-fire neurons, without leak."""

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp
from jax.typing import DTypeLike
from jaxtyping import Array

from snnjax._arguments import explained
from snnjax._check import fail, short_repr
from snnjax._types import Params
from snnjax.neurons._constants import Constant
from snnjax.neurons._model import THRESHOLD, Model, glif_neuron
from snnjax.neurons._neuron import Neuron
from snnjax.neurons._step import Bound, at_zero
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


@explained
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
    initial: float = 0.0,
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
        initial: the membrane before the first step, as a share of the threshold. With half of it, the number of spikes
            for a constant input is rounded to the nearest one, else down.

    Raises:
        ValueError: if a switch is unknown, or `initial` is not a number from 0 to 1.

    Example:
        >>> import jax
        >>> from snnjax import neurons
        >>> neuron = neurons.integrate_and_fire()
        >>> params, state = neuron.init(jax.random.key(0), 1), IntegrateAndFireState(jnp.array([[1.25]]))
        >>> neuron.step(params, state, jnp.array([[0.5]]))[0].v
        Array([[0.75]], dtype=float32)

    Reference:
        Lapicque 1907; Brunel and van Rossum 2007, doi:10.1007/s00422-007-0190-0. Bu et al. 2022, arXiv:2202.01440
        (half a threshold at the start).
    """
    given = locals()
    if not isinstance(initial, int | float) or isinstance(initial, bool) or not 0 <= initial <= 1:
        fail(
            f"integrate_and_fire: `initial` must be a number from 0 to 1, got {short_repr(initial)}. "
            "Try 0.5, half a threshold."
        )
    neuron = glif_neuron(_MODEL, {name: value for name, value in given.items() if name != "initial"})
    if initial == 0:
        return neuron
    charged = Bound(_charged, share=float(initial), threshold=neuron.threshold)
    arguments = (*neuron.arguments, ("initial", float(initial)))
    return dataclasses.replace(neuron, initial_state=charged, arguments=arguments)


def _charged(
    params: Params,
    batch: int,
    num_neurons: int,
    dtype: DTypeLike = jnp.float32,
    *,
    share: float,
    threshold: Callable[[Any], Array],
) -> IntegrateAndFireState:
    """A state whose membranes are at a share of their thresholds."""
    zeros = at_zero(batch, num_neurons, dtype)
    own = threshold(params).astype(zeros.dtype)
    return IntegrateAndFireState(zeros + share * jnp.broadcast_to(own, zeros.shape))
