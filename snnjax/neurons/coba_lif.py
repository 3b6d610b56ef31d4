"""Leaky integrate-and-fire neurons with exponential synaptic conductances, for simulations and layers."""

from typing import Any

import numpy as np
from jax.typing import ArrayLike

from snnjax._arguments import explained
from snnjax._check import fail
from snnjax.neurons._synaptic import decays, in_millivolts, in_steps, sequence, stacked, voltages
from snnjax.ops._simulation.records import SynapticLIF, constants, known, positive, step_length
from snnjax.surrogates import Surrogate


@explained
def coba_lif(
    *,
    tau: ArrayLike,
    synaptic_taus: tuple[Any, ...],
    reversals: tuple[Any, ...],
    rest: ArrayLike,
    threshold: ArrayLike,
    reset: ArrayLike,
    refractory: ArrayLike,
    dt: float,
    surrogate: str | Surrogate = "superspike",
    width: float = 10.0,
) -> SynapticLIF:
    r"""Make leaky neurons with synaptic conductances (COBA), which `snnjax.simulate` integrates by exponential Euler.

    .. math::

        \tau \frac{dv}{dt} = E - v + I + \sum_r g_r (E_r - v), \qquad \tau_r \frac{dg_r}{dt} = -g_r

    The conductances :math:`g_r` are in units of the leak conductance, and each spike adds its weight to one of them, so
    inhibitory weights are positive, too. The current :math:`I` is in mV: a current times the leak's resistance.

    In a layer, the connection leads to ``[receptors * neurons]`` targets, receptor by receptor. Resets have no
    gradient, and recorded membranes are relative to rest. Training must keep the weights from becoming negative.

    Args:
        tau: membrane time constant in ms without synaptic input; like all of these, one number, or one for each neuron.
        synaptic_taus: time constant of each receptor in ms.
        reversals: reversal potential :math:`E_r` of each receptor in mV.
        rest: resting potential in mV, to which a constant input current may be added.
        threshold: a neuron spikes above it, in mV.
        reset: potential after a spike in mV, at most the threshold.
        refractory: time in ms for which the potential stays there, rounded to steps; 0 for none.
        dt: length of a step in ms.
        surrogate: of the spikes in a layer, a function of the distance to the threshold.
        width: the distance in mV that counts as 1 in the surrogate. The distance from reset to threshold gives
            gradients like those of other neurons, whose thresholds are 1; with a far smaller width they explode.

    Raises:
        ValueError: if `tau`, `dt` or a synaptic time constant is not above 0, `refractory` is negative or rounds to no
            step, there are not as many reversal potentials as time constants, a number is not finite, a reset is above
            its threshold, or the surrogate is unknown.

    Example:
        >>> from snnjax import neurons
        >>> cells = neurons.coba_lif(
        ...     tau=20.0,
        ...     synaptic_taus=(5.0, 10.0),
        ...     reversals=(0.0, -80.0),
        ...     rest=-60.0,
        ...     threshold=-50.0,
        ...     reset=-60.0,
        ...     refractory=5.0,
        ...     dt=0.1,
        ... )
        >>> cells.effect.tolist()
        [[0.0], [-80.0]]

    Reference:
        Brette et al. 2007, doi:10.1007/s10827-007-0038-6.
    """
    op = "coba_lif"
    step, own = step_length(op, dt), positive(op, "tau", tau)
    taus = [positive(op, "synaptic_taus", each) for each in sequence(op, "synaptic_taus", synaptic_taus)]
    pulls = [known(op, "reversals", each) for each in sequence(op, "reversals", reversals)]
    if len(pulls) != len(taus):
        hint = "Pass one for each time constant"
        fail(
            f"{op}: `reversals` must have as many entries as `synaptic_taus`, {len(taus)}, got {len(pulls)}. {hint}."
        )
    return SynapticLIF(
        leak=constants(-step / own),
        gain=constants(np.ones(1)),
        **voltages(op, rest=rest, threshold=threshold, reset=reset),
        refractory=in_steps(op, refractory, step),
        synaptic_decay=stacked(op, "synaptic_taus", decays(step, taus)),
        effect=stacked(op, "reversals", pulls),
        has_conductances=True,
        dt=step,
        surrogate=in_millivolts(op, surrogate, width),
    )
