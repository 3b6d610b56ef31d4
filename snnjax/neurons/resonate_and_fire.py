"""Resonate-and-fire neurons: a damped oscillation that inputs at its frequency drive above the threshold."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array

from snnjax._check import check_choice, check_integer
from snnjax._types import wide
from snnjax.neurons._constants import (
    Constant,
    check_constants,
    check_decays,
    draw,
    draw_raw_decay,
    raw_to_decay,
)
from snnjax.neurons._glif import GLIF, GLIFConstants, glif_pieces
from snnjax.neurons._neuron import Bound, Neuron, assemble, at_zero, check_flags, learned
from snnjax.ops import SecondState
from snnjax.surrogates import Surrogate, as_surrogate

# Periods from 12 to 120 steps, damped over some 50 steps.
DECAY, FREQUENCY = 0.98, (0.05, 0.5)
RESETS = ("subtract", "none")


class ResonateAndFireConfig(NamedTuple):
    """The static switches of `resonate_and_fire`."""

    surrogate: str | Surrogate = "superspike"
    reset: str = "subtract"
    detach_reset: bool = True
    learn_decay: bool = True  # else its gradient is stopped
    learn_frequency: bool = True
    learn_threshold: bool = False


class ResonateAndFireParams(NamedTuple):
    """The parameters of `resonate_and_fire`; a constant that is not learned has gradient 0."""

    raw_decay: Array  # [neurons], or [] for one per layer; decay = raw_to_decay(raw_decay)
    frequency: Array  # same shape, radians per step
    threshold: Array  # [neurons]


class ResonateAndFireState(NamedTuple):
    """The state of `resonate_and_fire`, from the oscillation z."""

    v: Array  # [batch, neurons] Im z, the membrane
    w: Array  # [batch, neurons] sin(frequency) Re z + (1 - cos(frequency)) Im z


def resonate_and_fire_init(
    key: Array,
    num_neurons: int,
    dtype: Any = jnp.float32,
    *,
    decay: Constant = DECAY,
    frequency: Constant = FREQUENCY,
    threshold: Constant = 1.0,
    per_neuron: bool = True,
) -> ResonateAndFireParams:
    """Make the parameters of resonate-and-fire neurons; a constant given as a range (low, high) is drawn from it.

    Raises:
        ValueError: if `num_neurons` is not an integer of at least 0.

    Example:
        >>> resonate_and_fire_init(jax.random.key(0), 3).frequency.shape
        (3,)
    """
    check_integer("resonate_and_fire_init", "num_neurons", num_neurons, 0)
    keys, owners = jax.random.split(key, 3), num_neurons if per_neuron else None
    return ResonateAndFireParams(
        draw_raw_decay(keys[0], decay, owners, dtype),
        draw(keys[1], frequency, owners, dtype),
        draw(keys[2], threshold, num_neurons, dtype),
    )


def resonate_and_fire_state(params: ResonateAndFireParams, batch: int) -> ResonateAndFireState:
    """Make the initial state, all 0, in at least float32.

    Example:
        >>> resonate_and_fire_state(resonate_and_fire_init(jax.random.key(0), 3), batch=2).v.shape
        (2, 3)
    """
    return ResonateAndFireState(at_zero(batch, params.threshold), at_zero(batch, params.threshold))


def resonate_and_fire_constants(
    params: ResonateAndFireParams, config: ResonateAndFireConfig
) -> GLIFConstants:
    """The constants of the generalised LIF equation, well-defined for every angle.

    The state ``w = sin(f) Re z + (1 - cos(f)) Im z`` follows ``w = decay w' - 2 decay (1 - cos(f)) Im z' + sin(f)
    inputs``, and ``Im z = decay Im z' + w - sin(f) inputs``; a reset moves ``Im z'`` in both.

    Example:
        >>> params = resonate_and_fire_init(jax.random.key(0), 1, decay=0.5, frequency=jnp.pi / 2)
        >>> resonate_and_fire_constants(params, ResonateAndFireConfig()).gain
        Array([-1.], dtype=float32)
    """
    decay = learned(raw_to_decay(wide(params.raw_decay)), config.learn_decay)
    frequency = learned(wide(params.frequency), config.learn_frequency)
    threshold = learned(params.threshold, config.learn_threshold)
    sine, bend = jnp.sin(frequency), decay * (1 - jnp.cos(frequency))
    second = SecondState(
        decay,
        w_membrane=-2 * bend,
        w_gain=sine,
        w_jump=wide(threshold) * bend if config.reset == "subtract" else None,
        v_coupling=jnp.ones_like(decay),
    )
    return GLIFConstants(decay, threshold, -sine, second)


def resonate_and_fire(
    decay: Constant = DECAY,
    frequency: Constant = FREQUENCY,
    threshold: Constant = 1.0,
    *,
    per_neuron: bool = True,
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
            which `init` draws.
        frequency: radians per step, a number or a range; a period has ``2 pi / frequency`` steps.
        threshold: a number or a range.
        reset: "subtract" or "none".
        learn_frequency: whether the frequency is learned; `learn_decay` and `learn_threshold` are for decay and
            threshold.
        per_neuron: this and the remaining switches are as for `lif`.

    Raises:
        ValueError: if a decay is outside (0, 1), or a switch is unknown.

    Example:
        >>> from snnjax import neurons
        >>> neuron = neurons.resonate_and_fire(decay=0.5, frequency=jnp.pi / 2)
        >>> params = neuron.init(jax.random.key(0), 1)
        >>> state = ResonateAndFireState(jnp.array([[0.5]]), jnp.array([[0.5]]))  # Re z = 0, Im z = 0.5
        >>> neuron.step(params, state, jnp.array([[0.0]]))[0].v
        Array([[0.]], dtype=float32)

    Reference:
        Izhikevich 2001, doi:10.1016/S0893-6080(01)00078-8.
    """
    op = "resonate_and_fire"
    check_decays(op, decay=decay)
    check_constants(op, frequency=frequency, threshold=threshold)
    check_choice(op, "reset", reset, RESETS)
    learn = (learn_decay, learn_frequency, learn_threshold)
    config = ResonateAndFireConfig(as_surrogate(op, surrogate), reset, detach_reset, *learn)
    check_flags(op, config, per_neuron=per_neuron)
    initial = {"decay": decay, "frequency": frequency, "threshold": threshold}
    init = Bound(resonate_and_fire_init, **initial, per_neuron=per_neuron)
    pieces, takes_spikes = (resonate_and_fire_state, *glif_pieces(_form(config))), reset == "subtract"
    return assemble(op, config.surrogate, init, pieces, takes_spikes=takes_spikes)


def _form(config: ResonateAndFireConfig) -> GLIF:
    constants = Bound(resonate_and_fire_constants, config=config)
    surrogate = as_surrogate("resonate_and_fire", config.surrogate)
    return GLIF("resonate_and_fire.step", constants, surrogate, config.reset, config.detach_reset)
