"""Leaky integrate-and-fire neurons with exponential synaptic currents, for simulations and layers."""

from typing import Any

import numpy as np
from jax.typing import ArrayLike

from snnjax._arguments import explained
from snnjax.neurons._synaptic import (
    decays,
    effect_on_membrane,
    in_millivolts,
    in_steps,
    sequence,
    stacked,
    voltages,
)
from snnjax.ops._simulation.records import SynapticLIF, constants, positive, step_length
from snnjax.surrogates import Surrogate


@explained
def cuba_lif(
    *,
    tau: ArrayLike,
    synaptic_taus: tuple[Any, ...],
    rest: ArrayLike,
    threshold: ArrayLike,
    reset: ArrayLike,
    refractory: ArrayLike,
    dt: float,
    surrogate: str | Surrogate = "superspike",
    width: float = 10.0,
) -> SynapticLIF:
    r"""Make leaky neurons with synaptic currents (CUBA), which `snnjax.simulate` integrates exactly.

    .. math::

        \tau \frac{dv}{dt} = E - v + I + \sum_r g_r, \qquad \tau_r \frac{dg_r}{dt} = -g_r

    The currents :math:`g_r` and :math:`I` are in mV: a current in pA times the membrane's resistance. Each spike adds
    its weight to one of them. A receptor with a time constant of 0 receives pulses, by which the membrane jumps by the
    weight.

    In a layer, the connection leads to ``[receptors * neurons]`` targets, receptor by receptor. Resets have no
    gradient, and recorded membranes are relative to rest.

    Args:
        tau: membrane time constant in ms; like all of these, one number, or one for each neuron.
        synaptic_taus: time constant of each receptor in ms.
        rest: resting potential in mV, to which a constant input current may be added.
        threshold: a neuron spikes above it, in mV.
        reset: potential after a spike in mV, at most the threshold.
        refractory: time in ms for which the potential stays there, rounded to steps; 0 for none.
        dt: length of a step in ms.
        surrogate: of the spikes in a layer, a function of the distance to the threshold.
        width: the distance in mV that counts as 1 in the surrogate. The distance from reset to threshold gives
            gradients like those of other neurons, whose thresholds are 1; with a far smaller width they explode.

    Raises:
        ValueError: if `tau` or `dt` is not above 0, another time is negative, a refractory time rounds to no step, a
            number is not finite, a reset is above its threshold, or the surrogate is unknown.

    Example:
        >>> from snnjax import neurons
        >>> cells = neurons.cuba_lif(
        ...     tau=20.0,
        ...     synaptic_taus=(5.0, 10.0),
        ...     rest=-49.0,
        ...     threshold=-50.0,
        ...     reset=-60.0,
        ...     refractory=5.0,
        ...     dt=0.1,
        ... )
        >>> cells.num_receptors, cells.refractory.tolist()
        (2, [50])

    Reference:
        Vogels and Abbott 2005, doi:10.1523/JNEUROSCI.3508-05.2005; Rotter and Diesmann 1999, doi:10.1007/s004220050570.
    """
    op = "cuba_lif"
    step, own = step_length(op, dt), positive(op, "tau", tau)
    taus = [
        positive(op, "synaptic_taus", each, or_zero=True)
        for each in sequence(op, "synaptic_taus", synaptic_taus)
    ]
    effects = [effect_on_membrane(step, own, each) for each in taus]
    return SynapticLIF(
        leak=constants(np.exp(-step / own)),
        gain=constants(-np.expm1(-step / own)),
        **voltages(op, rest=rest, threshold=threshold, reset=reset),
        refractory=in_steps(op, refractory, step),
        synaptic_decay=stacked(op, "synaptic_taus", decays(step, taus)),
        effect=stacked(op, "synaptic_taus", effects),
        has_conductances=False,
        dt=step,
        surrogate=in_millivolts(op, surrogate, width),
    )
