"""Resonate-and-fire neurons: a damped oscillation that inputs at its frequency drive above the threshold."""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array

from snnjax._arguments import explained
from snnjax._neuron_table import GLIFConstants, SecondState
from snnjax._types import upcast
from snnjax.neurons._constants import Constant
from snnjax.neurons._model import DECAY, THRESHOLD, Model, Parameter, glif_neuron
from snnjax.neurons._neuron import Neuron
from snnjax.surrogates import Surrogate

# Periods from 12 to 120 steps, damped over some 50 steps.
FREQUENCY_RANGE = (0.05, 0.5)


class ResonateAndFireParams(NamedTuple):
    """The parameters of `resonate_and_fire`; None for a constant that is not learned."""

    raw_decay: Array | None = None  # [neurons], or [] for one per layer; decay = raw_to_decay(raw_decay)
    frequency: Array | None = None  # likewise, radians per step
    threshold: Array | None = None  # [neurons]


class ResonateAndFireState(NamedTuple):
    """The state of `resonate_and_fire`, from the oscillation z."""

    v: Array  # [batch, neurons] Im z, the membrane
    w: Array  # [batch, neurons] sin(frequency) Re z + (1 - cos(frequency)) Im z


def _constants(decay: Array, frequency: Array, threshold: Array, *, reset: str) -> GLIFConstants:
    """Well-defined for every angle.

    The state ``w = sin(f) Re z + (1 - cos(f)) Im z`` follows ``w = decay w' - 2 decay (1 - cos(f)) Im z' + sin(f)
    inputs``, and ``Im z = decay Im z' + w - sin(f) inputs``; a reset moves ``Im z'`` in both.
    """
    frequency = upcast(frequency)
    sine, bend = jnp.sin(frequency), decay * (1 - jnp.cos(frequency))
    second = SecondState(
        decay,
        w_membrane=-2 * bend,
        w_gain=sine,
        w_jump=upcast(threshold) * bend if reset == "subtract" else None,
        v_coupling=jnp.ones_like(decay),
    )
    return GLIFConstants(decay, threshold, -sine, second_state=second)


_MODEL = Model(
    "resonate_and_fire",
    ResonateAndFireParams,
    ResonateAndFireState,
    (DECAY, Parameter("frequency", "learn_frequency"), THRESHOLD),
    _constants,
    ("reset",),
    resets=("subtract", "none"),
)


@explained
def resonate_and_fire(
    decay: Constant = 0.98,
    threshold: Constant = 1.0,
    frequency: Constant = FREQUENCY_RANGE,
    *,
    per: str = "channel",
    surrogate: str | Surrogate = "superspike",
    reset: str = "subtract",
    detach_reset: bool = True,
    learn_decay: bool = True,
    learn_frequency: bool = True,
    learn_threshold: bool = False,
) -> Neuron:
    r"""Make resonate-and-fire neurons: the exact solution of ``dz/dt = (log(decay) + i frequency) z`` at each step.

    With the oscillation ``z'`` and the spikes ``s' = [Im z' > threshold]`` of the previous step, the inputs :math:`x`,
    `decay` :math:`\alpha`, `frequency` :math:`\omega` and `threshold` :math:`\theta` (the reset "none" leaves out
    :math:`i \theta s'`):

    .. math::

        z &= \alpha e^{i \omega} (z' - i \theta s') + x \\
        s &= [\mathrm{Im}\, z > \theta]

    Inputs change ``Re z``, so the membrane ``Im z`` responds from the next step on.

    Args:
        decay: factor by which the oscillation shrinks per step, between 0 and 1: a number, or a range (low, high) from
            which it is drawn.
        frequency: radians per step, a number or a range; a period has ``2 pi / frequency`` steps.
        threshold: a number or a range.
        reset: "subtract" or "none".
        learn_frequency: whether the frequency is learned; `learn_decay` and `learn_threshold` are for decay and
            threshold.
        per: this and the remaining switches are as for `lif`.

    Raises:
        ValueError: if a decay is outside (0, 1), or a switch is unknown.

    Example:
        >>> import jax
        >>> from snnjax import neurons
        >>> neuron = neurons.resonate_and_fire(decay=0.5, frequency=jnp.pi / 2)
        >>> params = neuron.init(jax.random.key(0), 1)
        >>> state = ResonateAndFireState(jnp.array([[0.5]]), jnp.array([[0.5]]))  # Re z = 0, Im z = 0.5
        >>> neuron.step(params, state, jnp.array([[0.0]]))[0].v
        Array([[0.]], dtype=float32)

    Reference:
        Izhikevich 2001, doi:10.1016/S0893-6080(01)00078-8.
    """
    return glif_neuron(_MODEL, locals())
