"""Current-based leaky integrate-and-fire neurons: a synaptic filter before the membrane."""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array

from snnjax._arguments import explained
from snnjax._check import check_choice
from snnjax._neuron_table import GLIFConstants, SecondState
from snnjax.neurons._constants import Constant
from snnjax.neurons._model import DECAY, THRESHOLD, Model, Parameter, gain_of, glif_neuron
from snnjax.neurons._neuron import Neuron
from snnjax.neurons._spike_times import (
    GRADIENTS,
    MIN_RISE,
    SPIKE_TIMES,
    check_no_spike_times,
    check_spike_times,
    with_spike_times,
)
from snnjax.surrogates import Surrogate


class CurrentLIFParams(NamedTuple):
    """The parameters of `current_lif`; None for a constant that is not learned."""

    raw_decay: Array | None = None  # [neurons], or [] for one per layer
    raw_synapse_decay: Array | None = None  # likewise
    threshold: Array | None = None  # [neurons]


class CurrentLIFState(NamedTuple):
    """The state of `current_lif`; the spikes of the previous step are ``[v > threshold]``."""

    v: Array  # [batch, neurons] membrane
    current: Array  # [batch, neurons] synaptic current


def _constants(
    decay: Array, synapse_decay: Array, threshold: Array, *, normalize: bool, normalize_synapse: bool
) -> GLIFConstants:
    """The synaptic current is the second state, the only one that the inputs reach."""
    w_gain = gain_of(synapse_decay, normalize_synapse)
    second = SecondState(synapse_decay, w_gain=w_gain, v_coupling=gain_of(decay, normalize))
    return GLIFConstants(decay, threshold, jnp.zeros_like(decay), second_state=second)


_MODEL = Model(
    "current_lif",
    CurrentLIFParams,
    CurrentLIFState,
    (DECAY, Parameter("synapse_decay", "learn_synapse_decay", is_decay=True), THRESHOLD),
    _constants,
    ("normalize", "normalize_synapse"),
)


@explained
def current_lif(
    decay: Constant = 0.9,
    threshold: Constant = 1.0,
    synapse_decay: Constant = 0.8,
    *,
    per: str = "channel",
    surrogate: str | Surrogate = "superspike",
    reset: str = "subtract",
    detach_reset: bool = True,
    normalize: bool = True,
    normalize_synapse: bool = True,
    learn_decay: bool = False,
    learn_synapse_decay: bool = False,
    learn_threshold: bool = False,
    reset_time: str = "before_decay",
    spike_from: str = "new",
    inclusive: bool = False,
    gradient: str = "surrogate",
    min_rise: float = MIN_RISE,
) -> Neuron:
    r"""Make current-based leaky integrate-and-fire neurons: inputs pass through an exponential synapse.

    With the spikes of the previous step, ``s' = [v' > threshold]``, the inputs :math:`x`, `decay` :math:`\alpha`,
    `synapse_decay` :math:`\beta` and `threshold` :math:`\theta`:

    .. math::

        I &= \beta I' + g_I x, \qquad g_I = 1 - \beta \text{ if the synapse is normalized, else } 1 \\
        v &= \alpha\, \mathrm{reset}(v', s') + g I, \qquad g = 1 - \alpha \text{ if normalize, else } 1 \\
        s &= [v > \theta]

    Args:
        decay: decay of the membrane per step; a number, or a range (low, high) from which it is drawn.
        synapse_decay: decay of the current per step, a number or a range.
        threshold: a number or a range, in the unit of the membrane.
        normalize_synapse: scale inputs by ``1 - synapse_decay``.
        per: this and the switches up to `inclusive` are as for `lif`.
        gradient: "surrogate", or "spike_times" for the derivative of the times of spikes (EventProp on a grid of
            steps) in place of one of their number. The spikes are the same, and the gradients converge to those of
            continuous time as steps get shorter; `activity` keeps the surrogate. It needs ``detach_reset=False`` and a
            layer without capacity, and such layers are scanned.
        min_rise: the rise of a membrane in a step, in its unit, below which the derivative of a spike time counts it
            as this much: times of membranes that just reach the threshold depend on the inputs without bound.

    Raises:
        ValueError: if a decay is outside (0, 1), a switch is unknown, or one of them has no derivative of spike times.

    Example:
        >>> import jax
        >>> from snnjax import neurons
        >>> neuron = neurons.current_lif(decay=0.5, synapse_decay=0.5)
        >>> params = neuron.init(jax.random.key(0), 1)
        >>> state = CurrentLIFState(jnp.array([[0.0]]), jnp.array([[4.0]]))
        >>> neuron.step(params, state, jnp.array([[4.0]]))[0]
        CurrentLIFState(v=Array([[2.]], dtype=float32), current=Array([[4.]], dtype=float32))

    Reference:
        Cramer et al. 2022, doi:10.1109/TNNLS.2020.3044364; spike times: Wunderlich and Pehle 2021,
        doi:10.1038/s41598-021-91786-z.
    """
    given = locals()
    check_choice("current_lif", "gradient", gradient, GRADIENTS)
    if gradient == "surrogate":  # checkpoints know these neurons without the other two
        check_no_spike_times("current_lif", min_rise)
        return glif_neuron(_MODEL, {name: own for name, own in given.items() if name not in SPIKE_TIMES})
    check_spike_times("current_lif", given)
    return with_spike_times(glif_neuron(_MODEL, given), float(min_rise))
