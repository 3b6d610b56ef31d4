"""adLIF neurons: an adaptation current that follows the membrane and the spikes."""

import math
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
from snnjax.neurons._neuron import Bound, Neuron, assemble, at_zero, check_flags, learned
from snnjax.ops import SecondState
from snnjax.surrogates import Surrogate, as_surrogate

# The ranges of Bittar and Garner 2022: time constants of 5 to 25 and of 30 to 120 steps.
DECAY = (math.exp(-1 / 5), math.exp(-1 / 25))
ADAPTATION_DECAY = (math.exp(-1 / 30), math.exp(-1 / 120))
MEMBRANE_COUPLING = (-1.0, 1.0)
SPIKE_COUPLING = (0.0, 2.0)


class AdLIFConfig(NamedTuple):
    """The static switches of `adlif`."""

    surrogate: str | Surrogate = "superspike"
    reset: str = "subtract"
    detach_reset: bool = True
    normalize: bool = True  # gain = 1 - decay, else 1
    learn_decay: bool = True  # else its gradient is stopped
    learn_adaptation: bool = True  # its decay and both couplings
    learn_threshold: bool = False


class AdLIFParams(NamedTuple):
    """The parameters of `adlif`; a constant that is not learned has gradient 0."""

    raw_decay: Array  # [neurons], or [] for one per layer
    raw_adaptation_decay: Array  # same shape
    membrane_coupling: Array  # same shape, `a` in the paper
    spike_coupling: Array  # same shape, `b` in the paper
    threshold: Array  # [neurons]


class AdLIFState(NamedTuple):
    """The state of `adlif`; the spikes of the previous step are ``[v > threshold]``."""

    v: Array  # [batch, neurons] membrane
    adaptation: Array  # [batch, neurons] current subtracted from the inputs


def adlif_init(
    key: Array,
    num_neurons: int,
    dtype: Any = jnp.float32,
    *,
    decay: Constant = DECAY,
    adaptation_decay: Constant = ADAPTATION_DECAY,
    membrane_coupling: Constant = MEMBRANE_COUPLING,
    spike_coupling: Constant = SPIKE_COUPLING,
    threshold: Constant = 1.0,
    per_neuron: bool = True,
) -> AdLIFParams:
    """Make the parameters of adLIF neurons; a constant given as a range (low, high) is drawn from it.

    Raises:
        ValueError: if `num_neurons` is not an integer of at least 0.

    Example:
        >>> adlif_init(jax.random.key(0), 3).threshold.shape
        (3,)
    """
    check_integer("adlif_init", "num_neurons", num_neurons, 0)
    keys = jax.random.split(key, 5)
    owners = num_neurons if per_neuron else None
    return AdLIFParams(
        draw_raw_decay(keys[0], decay, owners, dtype),
        draw_raw_decay(keys[1], adaptation_decay, owners, dtype),
        draw(keys[2], membrane_coupling, owners, dtype),
        draw(keys[3], spike_coupling, owners, dtype),
        draw(keys[4], threshold, num_neurons, dtype),
    )


def adlif_state(params: AdLIFParams, batch: int) -> AdLIFState:
    """Make the initial state, all 0, in at least float32.

    Example:
        >>> adlif_state(adlif_init(jax.random.key(0), 3), batch=2).v.shape
        (2, 3)
    """
    return AdLIFState(at_zero(batch, params.threshold), at_zero(batch, params.threshold))


def adlif(
    decay: Constant = DECAY,
    threshold: Constant = 1.0,
    *,
    adaptation_decay: Constant = ADAPTATION_DECAY,
    membrane_coupling: Constant = MEMBRANE_COUPLING,
    spike_coupling: Constant = SPIKE_COUPLING,
    per_neuron: bool = True,
    surrogate: str | Surrogate = "superspike",
    reset: str = "subtract",
    detach_reset: bool = True,
    normalize: bool = True,
    learn_decay: bool = True,
    learn_adaptation: bool = True,
    learn_threshold: bool = False,
) -> Neuron:
    r"""Make adLIF neurons: an adaptation current, driven by membrane and spikes, counteracts the inputs.

    With the membrane ``v'``, the adaptation ``w'`` and the spikes ``s' = [v' > threshold]`` of the previous step, the
    inputs :math:`x`, `decay` :math:`\alpha`, `adaptation_decay` :math:`\rho`, `membrane_coupling` :math:`a`,
    `spike_coupling` :math:`b` and `threshold` :math:`\theta`:

    .. math::

        w &= \rho w' + a v' + b s' \\
        v &= \alpha\, \mathrm{reset}(v', s') + g (x - w), \qquad g = 1 - \alpha \text{ if normalize, else } 1 \\
        s &= [v > \theta]

    A negative membrane coupling excites, a positive one makes the membrane resonate. The defaults are those of the
    paper, and are learned as there, but may leave the ranges from which they are drawn.

    Below ``membrane_coupling = -(1 - decay) (1 - adaptation_decay) / gain`` a membrane under the threshold grows
    without bound, to infinity within some hundred steps. For long sequences choose a range above this, such as ``(0.0,
    1.0)``.

    Args:
        decay: decay of the membrane per step; a number, or a range (low, high) from which `init` draws.
        threshold: a number or a range.
        adaptation_decay: decay of the adaptation current, a number or a range.
        membrane_coupling: coupling from the membrane to this current (`a`), a number or a range.
        spike_coupling: increase of this current by a spike (`b`), a number or a range.
        learn_adaptation: whether these three are learned.
        per_neuron: this and the remaining switches are as for `lif`. The gradient through `w` is never detached.

    Raises:
        ValueError: if a decay is outside (0, 1), or a switch is unknown.

    Example:
        >>> from snnjax import neurons
        >>> half = {"decay": 0.5, "adaptation_decay": 0.5, "membrane_coupling": 0.5, "spike_coupling": 1.0}
        >>> neuron = neurons.adlif(**half)
        >>> state = AdLIFState(v=jnp.array([[2.0]]), adaptation=jnp.array([[0.0]]))
        >>> neuron.step(neuron.init(jax.random.key(0), 1), state, jnp.array([[4.0]]))[0]
        AdLIFState(v=Array([[1.5]], dtype=float32), adaptation=Array([[2.]], dtype=float32))

    Reference:
        Bittar and Garner 2022, doi:10.3389/fnins.2022.865897.
    """
    check_decays("adlif", decay=decay, adaptation_decay=adaptation_decay)
    initial = {
        "membrane_coupling": membrane_coupling,
        "spike_coupling": spike_coupling,
        "threshold": threshold,
    }
    check_constants("adlif", **initial)
    initial |= {"decay": decay, "adaptation_decay": adaptation_decay}
    check_choice("adlif", "reset", reset, RESETS)
    learn = (learn_decay, learn_adaptation, learn_threshold)
    config = AdLIFConfig(as_surrogate("adlif", surrogate), reset, detach_reset, normalize, *learn)
    check_flags("adlif", config, per_neuron=per_neuron)
    init = Bound(adlif_init, **initial, per_neuron=per_neuron)
    pieces = (adlif_state, *glif_pieces(_form(config)))
    return assemble("adlif", config.surrogate, init, pieces, takes_spikes=True)


def _form(config: AdLIFConfig) -> GLIF:
    constants = Bound(adlif_constants, config=config)
    surrogate = as_surrogate("adlif", config.surrogate)
    return GLIF("adlif.step", constants, surrogate, config.reset, config.detach_reset)


def adlif_constants(params: AdLIFParams, config: AdLIFConfig) -> GLIFConstants:
    """The constants of the generalised LIF equation: the adaptation is its second state.

    Example:
        >>> params = adlif_init(jax.random.key(0), 1, decay=0.5)
        >>> adlif_constants(params, AdLIFConfig()).second_state.v_coupling
        Array([-0.5], dtype=float32)
    """
    decay = learned(raw_to_decay(wide(params.raw_decay)), config.learn_decay)
    gain = 1 - decay if config.normalize else jnp.ones_like(decay)
    adaptation = (
        raw_to_decay(wide(params.raw_adaptation_decay)),
        params.membrane_coupling,
        params.spike_coupling,
    )
    w_decay, w_membrane, w_jump = (learned(each, config.learn_adaptation) for each in adaptation)
    second = SecondState(w_decay, w_membrane=w_membrane, w_jump=w_jump, v_coupling=-gain)
    return GLIFConstants(decay, learned(params.threshold, config.learn_threshold), gain, second)
