"""Adaptive leaky integrate-and-fire neurons: spikes raise the threshold."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array

from snnjax._check import check_choice, check_integer
from snnjax._types import RESETS, wide
from snnjax.neurons._constants import (
    Constant,
    check_constants,
    check_decays,
    draw,
    draw_raw_decay,
    raw_to_decay,
)
from snnjax.neurons._glif import GLIF, GLIFConstants, glif_pieces
from snnjax.neurons._neuron import (
    Bound,
    Neuron,
    aligned,
    assemble,
    at_zero,
    check_flags,
    computed_wide,
    configured,
    learned,
    reset_membrane,
)
from snnjax.ops import SecondState
from snnjax.ops.spike import spike
from snnjax.surrogates import Surrogate, as_surrogate

# "immediate" would equal "before_decay": the threshold only changes in the next step.
RESET_TIMES = ("before_decay", "after_decay")


class AdaptiveLIFConfig(NamedTuple):
    """The static switches of `adaptive_lif`."""

    surrogate: str | Surrogate = "superspike"
    reset: str = "subtract"
    detach_reset: bool = True
    normalize: bool = True  # gain = 1 - decay, else 1
    learn_decay: bool = False  # else its gradient is stopped
    learn_adaptation: bool = False  # its decay and strength
    learn_threshold: bool = False
    reset_time: str = "before_decay"


class AdaptiveLIFParams(NamedTuple):
    """The parameters of `adaptive_lif`; a constant that is not learned has gradient 0."""

    raw_decay: Array  # [neurons], or [] for one per layer
    raw_adaptation_decay: Array  # same shape
    adaptation_strength: Array  # same shape
    threshold: Array  # [neurons], threshold at rest


class AdaptiveLIFState(NamedTuple):
    """The state of `adaptive_lif`."""

    v: Array  # [batch, neurons] membrane
    adaptation: Array  # [batch, neurons] filtered spikes, without those of the last step


def adaptive_lif_init(
    key: Array,
    num_neurons: int,
    dtype: Any = jnp.float32,
    *,
    decay: Constant = 0.9,
    adaptation_decay: Constant = 0.98,
    adaptation_strength: Constant = 1.8,
    threshold: Constant = 1.0,
    per_neuron: bool = True,
) -> AdaptiveLIFParams:
    """Make the parameters of adaptive LIF neurons; a constant given as a range (low, high) is drawn from it.

    Raises:
        ValueError: if `num_neurons` is not an integer of at least 0.

    Example:
        >>> adaptive_lif_init(jax.random.key(0), 3).threshold.shape
        (3,)
    """
    check_integer("adaptive_lif_init", "num_neurons", num_neurons, 0)
    keys = jax.random.split(key, 4)
    owners = num_neurons if per_neuron else None
    return AdaptiveLIFParams(
        draw_raw_decay(keys[0], decay, owners, dtype),
        draw_raw_decay(keys[1], adaptation_decay, owners, dtype),
        draw(keys[2], adaptation_strength, owners, dtype),
        draw(keys[3], threshold, num_neurons, dtype),
    )


def adaptive_lif_state(params: AdaptiveLIFParams, batch: int) -> AdaptiveLIFState:
    """Make the initial state, all 0, in at least float32.

    Example:
        >>> adaptive_lif_state(adaptive_lif_init(jax.random.key(0), 3), batch=2).v.shape
        (2, 3)
    """
    return AdaptiveLIFState(at_zero(batch, params.threshold), at_zero(batch, params.threshold))


def adaptive_lif(
    decay: Constant = 0.9,
    threshold: Constant = 1.0,
    *,
    adaptation_decay: Constant = 0.98,
    adaptation_strength: Constant = 1.8,
    per_neuron: bool = True,
    surrogate: str | Surrogate = "superspike",
    reset: str = "subtract",
    detach_reset: bool = True,
    normalize: bool = True,
    learn_decay: bool = False,
    learn_adaptation: bool = False,
    learn_threshold: bool = False,
    reset_time: str = "before_decay",
) -> Neuron:
    r"""Make adaptive leaky integrate-and-fire neurons: every spike raises the threshold for a while.

    With the membrane ``v'``, the adaptation ``a'`` and the spikes ``s'`` of the previous step, the inputs :math:`x`,
    `decay` :math:`\alpha`, `adaptation_decay` :math:`\rho`, `adaptation_strength` :math:`\beta` and `threshold`
    :math:`\theta`:

    .. math::

        u &= v' - (\theta + \beta a') s' \text{ ("subtract")}, \quad v' (1 - s') \text{ ("zero")} \quad \text{or} \quad
            v' \text{ ("none")} \\
        v &= \alpha u + g x, \qquad g = 1 - \alpha \text{ if normalize, else } 1 \\
        a &= \rho a' + (1 - \rho) s' \\
        s &= [v > \theta + \beta a]

    Args:
        decay: decay of the membrane per step; a number, or a range (low, high) from which `init` draws.
        threshold: threshold at rest, a number or a range.
        adaptation_decay: decay of the raised threshold, a number or a range; usually slower than the membrane's.
        adaptation_strength: by how much spiking in every step raises the threshold in the end, a number or a range.
        learn_adaptation: whether both of these are learned.
        reset_time: "after_decay" subtracts the reset from the new membrane, as in the paper: ``v = decay v' + gain
            inputs - (threshold + strength a') s'``.
        per_neuron: this and the remaining switches are as for `lif`. The gradient through `a` is never detached.

    Raises:
        ValueError: if a decay is outside (0, 1), or a switch is unknown.

    Example:
        >>> from snnjax import neurons
        >>> neuron = neurons.adaptive_lif(decay=0.5, adaptation_decay=0.5, adaptation_strength=2.0)
        >>> params, three = neuron.init(jax.random.key(0), 1), jnp.array([[3.0]])
        >>> state = neuron.initial_state(params, 1)
        >>> for _ in range(2):
        ...     state, spikes = neuron.step(params, state, three)
        >>> float(state.v[0, 0]), float(state.adaptation[0, 0]), int(spikes[0, 0])
        (1.75, 0.5, 0)

    Reference:
        Bellec et al. 2018, arXiv:1803.09574, equations 1 to 4.
    """
    op = "adaptive_lif"
    check_decays(op, decay=decay, adaptation_decay=adaptation_decay)
    check_constants(op, threshold=threshold, adaptation_strength=adaptation_strength)
    check_choice(op, "reset", reset, RESETS)
    check_choice(op, "reset_time", reset_time, RESET_TIMES)
    learn = (learn_decay, learn_adaptation, learn_threshold)
    config = AdaptiveLIFConfig(
        as_surrogate(op, surrogate), reset, detach_reset, normalize, *learn, reset_time
    )
    check_flags(op, config, per_neuron=per_neuron)
    init = Bound(
        adaptive_lif_init,
        decay=decay,
        adaptation_decay=adaptation_decay,
        adaptation_strength=adaptation_strength,
        threshold=threshold,
        per_neuron=per_neuron,
    )
    pieces = (adaptive_lif_state, *_pieces(config))
    return assemble(op, config.surrogate, init, pieces, takes_spikes=True)


def _pieces(config: AdaptiveLIFConfig) -> tuple[Callable[..., Any], ...]:
    if config.reset_time == "after_decay":
        return configured(config, _integrate_after_decay, _fire_after_decay)
    constants = Bound(adaptive_lif_constants, config=config)
    surrogate = as_surrogate("adaptive_lif", config.surrogate)
    return glif_pieces(GLIF("adaptive_lif.step", constants, surrogate, config.reset, config.detach_reset))


def adaptive_lif_constants(params: AdaptiveLIFParams, config: AdaptiveLIFConfig) -> GLIFConstants:
    """The constants of the generalised LIF equation: the adaptation is its second state.

    Example:
        >>> params = adaptive_lif_init(jax.random.key(0), 1, adaptation_decay=0.5)
        >>> adaptive_lif_constants(params, AdaptiveLIFConfig()).second_state.w_jump
        Array([0.5], dtype=float32)
    """
    decay = learned(raw_to_decay(wide(params.raw_decay)), config.learn_decay)
    gain = 1 - decay if config.normalize else jnp.ones_like(decay)
    w_decay = learned(raw_to_decay(wide(params.raw_adaptation_decay)), config.learn_adaptation)
    strength = learned(params.adaptation_strength, config.learn_adaptation)
    second = SecondState(w_decay, w_jump=1 - w_decay, threshold_coupling=strength)
    return GLIFConstants(decay, learned(params.threshold, config.learn_threshold), gain, second)


@computed_wide("adaptive_lif.step")
def _integrate_after_decay(
    params: AdaptiveLIFParams, state: AdaptiveLIFState, inputs: Array, *, config: AdaptiveLIFConfig
) -> tuple[Array, Array]:
    """The membrane, from which the reset is subtracted last, and its threshold."""
    constants = aligned(adaptive_lif_constants(params, config), inputs)
    threshold, before = _before(constants, state, config)
    charged = constants.decay * state.v + constants.gain * inputs
    v = reset_membrane(charged, before, threshold, config.reset, config.detach_reset)
    coupling = constants.second_state.threshold_coupling
    return v, constants.threshold + coupling * _adapted(constants, state, before)


@computed_wide("adaptive_lif.step")
def _fire_after_decay(
    params: AdaptiveLIFParams,
    state: AdaptiveLIFState,
    inputs: Array,
    membrane: Array,
    spikes: Array,
    *,
    config: AdaptiveLIFConfig,
) -> AdaptiveLIFState:
    """The state after the step; `spikes` is unused, because the true spikes follow from the state."""
    del spikes
    constants = aligned(adaptive_lif_constants(params, config), inputs)
    return AdaptiveLIFState(membrane, _adapted(constants, state, _before(constants, state, config)[1]))


def _before(constants: Any, state: AdaptiveLIFState, config: AdaptiveLIFConfig) -> tuple[Array, Array]:
    """The threshold and the spikes of the previous step."""
    threshold = constants.threshold + constants.second_state.threshold_coupling * state.adaptation
    return threshold, spike(state.v - threshold, config.surrogate)


def _adapted(constants: Any, state: AdaptiveLIFState, before: Array) -> Array:
    second = constants.second_state
    return second.w_decay * state.adaptation + second.w_jump * before
