"""SE-adLIF neurons: adLIF discretised with the symplectic Euler method."""

import math
from typing import Any, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array

from snnjax._check import check_choice
from snnjax._types import wide
from snnjax.neurons._constants import Constant, check_constants, check_decays, raw_to_decay
from snnjax.neurons._glif import GLIF, GLIFConstants, glif_pieces
from snnjax.neurons._neuron import Bound, Neuron, assemble, at_zero, learned
from snnjax.neurons.adlif import AdLIFConfig, adlif_init
from snnjax.ops import SecondState
from snnjax.surrogates import Surrogate, as_surrogate

# Time constants of 5 to 25 and of 60 to 300 steps, and couplings for oscillations with periods of some 30 steps or
# more.
DECAY = (math.exp(-1 / 5), math.exp(-1 / 25))
ADAPTATION_DECAY = (math.exp(-1 / 60), math.exp(-1 / 300))
COUPLING = (0.0, 30.0)
# The adaptation depends on the membrane after the reset, in which a reset to zero would not be linear.
RESETS = ("subtract", "none")


class SEAdLIFParams(NamedTuple):
    """The parameters of `se_adlif`; a constant that is not learned has gradient 0."""

    raw_decay: Array  # [neurons], or [] for one per layer
    raw_adaptation_decay: Array  # same shape
    membrane_coupling: Array  # same shape, `a` in the paper
    spike_coupling: Array  # same shape, `b` in the paper
    threshold: Array  # [neurons]


class SEAdLIFState(NamedTuple):
    """The state of `se_adlif`; the spikes of the previous step are ``[v > threshold]``."""

    v: Array  # [batch, neurons] membrane
    adaptation: Array  # [batch, neurons] current subtracted from the inputs


def se_adlif_init(
    key: Array,
    num_neurons: int,
    dtype: Any = jnp.float32,
    *,
    decay: Constant = DECAY,
    adaptation_decay: Constant = ADAPTATION_DECAY,
    membrane_coupling: Constant = COUPLING,
    spike_coupling: Constant = COUPLING,
    threshold: Constant = 1.0,
    per_neuron: bool = True,
) -> SEAdLIFParams:
    """Make the parameters of SE-adLIF neurons; a constant given as a range (low, high) is drawn from it.

    Raises:
        ValueError: if `num_neurons` is not an integer of at least 0.

    Example:
        >>> import jax
        >>> se_adlif_init(jax.random.key(0), 3).threshold.shape
        (3,)
    """
    couplings = {"membrane_coupling": membrane_coupling, "spike_coupling": spike_coupling}
    constants = {"decay": decay, "adaptation_decay": adaptation_decay, "threshold": threshold, **couplings}
    return SEAdLIFParams(*adlif_init(key, num_neurons, dtype, **constants, per_neuron=per_neuron))


def se_adlif_state(params: SEAdLIFParams, batch: int) -> SEAdLIFState:
    """Make the initial state, all 0, in at least float32.

    Example:
        >>> import jax
        >>> se_adlif_state(se_adlif_init(jax.random.key(0), 3), batch=2).v.shape
        (2, 3)
    """
    return SEAdLIFState(at_zero(batch, params.threshold), at_zero(batch, params.threshold))


def se_adlif_constants(params: SEAdLIFParams, config: AdLIFConfig) -> GLIFConstants:
    """The constants of the generalised LIF equation: the adaptation is its second state.

    It couples to the membrane after the reset, ``v' - threshold s'``, whose second term is added to the jump of a
    spike.

    Example:
        >>> import jax
        >>> params = se_adlif_init(
        ...     jax.random.key(0), 1, decay=0.5, adaptation_decay=0.5, membrane_coupling=4.0
        ... )
        >>> se_adlif_constants(params, AdLIFConfig()).second_state.w_membrane
        Array([2.], dtype=float32)
    """
    decay = learned(raw_to_decay(wide(params.raw_decay)), config.learn_decay)
    gain = 1 - decay if config.normalize else jnp.ones_like(decay)
    threshold = learned(params.threshold, config.learn_threshold)
    couplings = (
        raw_to_decay(wide(params.raw_adaptation_decay)),
        params.membrane_coupling,
        params.spike_coupling,
    )
    w_decay, a, b = (wide(learned(each, config.learn_adaptation)) for each in couplings)
    removed = a * wide(threshold) if config.reset == "subtract" else jnp.zeros_like(a)
    second = SecondState(
        w_decay, w_membrane=(1 - w_decay) * a, w_jump=(1 - w_decay) * (b - removed), v_coupling=-gain
    )
    return GLIFConstants(decay, threshold, gain, second)


def se_adlif(
    decay: Constant = DECAY,
    threshold: Constant = 1.0,
    *,
    adaptation_decay: Constant = ADAPTATION_DECAY,
    membrane_coupling: Constant = COUPLING,
    spike_coupling: Constant = COUPLING,
    per_neuron: bool = True,
    surrogate: str | Surrogate = "superspike",
    reset: str = "subtract",
    detach_reset: bool = True,
    normalize: bool = True,
    learn_decay: bool = True,
    learn_adaptation: bool = True,
    learn_threshold: bool = False,
) -> Neuron:
    r"""Make SE-adLIF neurons, whose symplectic coupling keeps oscillations stable at any step size.

    With the membrane ``v'``, the adaptation ``w'`` and the spikes ``s' = [v' > threshold]`` of the previous step, the
    inputs :math:`x`, `decay` :math:`\alpha`, `adaptation_decay` :math:`\rho`, `membrane_coupling` :math:`a`,
    `spike_coupling` :math:`b` and `threshold` :math:`\theta`:

    .. math::

        u &= \mathrm{reset}(v', s') \\
        w &= \rho w' + (1 - \rho) (a u + b s') \\
        v &= \alpha u + g (x - w), \qquad g = 1 - \alpha \text{ if normalize, else } 1 \\
        s &= [v > \theta]

    In this form, ``w`` is the paper's adaptation of the previous step. The paper resets to zero; these neurons reset by
    subtraction, which keeps the equation linear between spikes and across them.

    Args:
        decay: decay of the membrane per step; a number, or a range (low, high) from which `init` draws.
        threshold: a number or a range.
        adaptation_decay: decay of the adaptation current, a number or a range.
        membrane_coupling: coupling from the membrane to this current (`a`), a number or a range.
        spike_coupling: increase of this current by a spike (`b`), a number or a range.
        reset: "subtract" or "none".
        learn_adaptation: whether these three are learned.
        per_neuron: this and the remaining switches are as for `lif`. The gradient through `w` is never detached.

    Raises:
        ValueError: if a decay is outside (0, 1), or a switch is unknown.

    Example:
        >>> import jax
        >>> from snnjax import neurons
        >>> half = {"decay": 0.5, "adaptation_decay": 0.5, "membrane_coupling": 0.5, "spike_coupling": 1.0}
        >>> neuron = neurons.se_adlif(**half)
        >>> state = SEAdLIFState(v=jnp.array([[2.0]]), adaptation=jnp.array([[0.0]]))
        >>> neuron.step(neuron.init(jax.random.key(0), 1), state, jnp.array([[4.0]]))[0]
        SEAdLIFState(v=Array([[2.125]], dtype=float32), adaptation=Array([[0.75]], dtype=float32))

    Reference:
        Baronig et al. 2025, arXiv:2408.07517.
    """
    op = "se_adlif"
    check_decays(op, decay=decay, adaptation_decay=adaptation_decay)
    couplings = {"membrane_coupling": membrane_coupling, "spike_coupling": spike_coupling}
    check_constants(op, **couplings, threshold=threshold)
    check_choice(op, "reset", reset, RESETS)
    learn = (learn_decay, learn_adaptation, learn_threshold)
    config = AdLIFConfig(as_surrogate(op, surrogate), reset, detach_reset, normalize, *learn)
    initial = {"decay": decay, "adaptation_decay": adaptation_decay, "threshold": threshold, **couplings}
    init = Bound(se_adlif_init, **initial, per_neuron=per_neuron)
    pieces = (se_adlif_state, *glif_pieces(_form(config)))
    return assemble(op, config.surrogate, init, pieces, takes_spikes=True)


def _form(config: AdLIFConfig) -> GLIF:
    constants = Bound(se_adlif_constants, config=config)
    surrogate = as_surrogate("se_adlif", config.surrogate)
    return GLIF("se_adlif.step", constants, surrogate, config.reset, config.detach_reset)
