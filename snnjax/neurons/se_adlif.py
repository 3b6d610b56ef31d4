"""SE-adLIF neurons: adLIF discretised with the symplectic Euler method."""

import math

import jax.numpy as jnp
from jaxtyping import Array

from snnjax._arguments import explained
from snnjax._check import fail
from snnjax._neuron_table import GLIFConstants, SecondState
from snnjax._types import upcast
from snnjax.neurons._constants import Constant, within
from snnjax.neurons._model import Model, gain_of, glif_neuron
from snnjax.neurons._neuron import Neuron
from snnjax.neurons.adlif import LEAST, PARAMETERS, STABLE_SHARE, AdLIFParams, AdLIFState, stable_bounds
from snnjax.surrogates import Surrogate

# Time constants of 5 to 25 and of 60 to 300 steps, and couplings for oscillations with periods of some 30 steps or
# more.
DECAY_RANGE = (math.exp(-1 / 5), math.exp(-1 / 25))
ADAPTATION_DECAY_RANGE = (math.exp(-1 / 60), math.exp(-1 / 300))
COUPLING = (0.0, 30.0)


class SEAdLIFParams(AdLIFParams):
    """The parameters of `se_adlif`, those of `adlif`."""

    __slots__ = ()


class SEAdLIFState(AdLIFState):
    """The state of `se_adlif`, that of `adlif`."""

    __slots__ = ()


def _constants(
    decay: Array, w_decay: Array, a: Array, b: Array, threshold: Array, *, normalize: bool, reset: str
) -> GLIFConstants:
    """The adaptation is the second state.

    It couples to the membrane after the reset, ``v' - threshold s'``, whose second term is added to the jump of a
    spike.
    """
    gain, b = gain_of(decay, normalize), upcast(b)
    share = jnp.maximum(1 - w_decay, LEAST)
    low, high = stable_bounds(decay, w_decay, gain)
    a = within(upcast(a), low / share, high / share)
    removed = a * upcast(threshold) if reset == "subtract" else jnp.zeros_like(a)
    second = SecondState(
        w_decay, w_membrane=(1 - w_decay) * a, w_jump=(1 - w_decay) * (b - removed), v_coupling=-gain
    )
    return GLIFConstants(decay, threshold, gain, second_state=second)


_MODEL = Model(
    "se_adlif",
    SEAdLIFParams,
    SEAdLIFState,
    PARAMETERS,
    _constants,
    ("normalize", "reset"),
    # The adaptation depends on the membrane after the reset, in which a reset to zero would not be linear.
    resets=("subtract", "none"),
)


@explained
def se_adlif(
    decay: Constant = DECAY_RANGE,
    threshold: Constant = 1.0,
    *,
    adaptation_decay: Constant = ADAPTATION_DECAY_RANGE,
    membrane_coupling: Constant = COUPLING,
    spike_coupling: Constant = COUPLING,
    per: str = "channel",
    surrogate: str | Surrogate = "superspike",
    reset: str = "subtract",
    detach_reset: bool = True,
    normalize: bool = True,
    learn_decay: bool = True,
    learn_adaptation: bool = True,
    learn_threshold: bool = False,
) -> Neuron:
    r"""Make SE-adLIF neurons, whose symplectic coupling keeps more oscillations stable than `adlif`.

    With the membrane ``v'``, the adaptation ``w'`` and the spikes ``s' = [v' > threshold]`` of the previous step, the
    inputs :math:`x`, `decay` :math:`\alpha`, `adaptation_decay` :math:`\rho`, `membrane_coupling` :math:`a`,
    `spike_coupling` :math:`b` and `threshold` :math:`\theta`:

    .. math::

        u &= \mathrm{reset}(v', s') \\
        w &= \rho w' + (1 - \rho) (a u + b s') \\
        v &= \alpha u + g (x - w), \qquad g = 1 - \alpha \text{ if normalize, else } 1 \\
        s &= [v > \theta]

    Between spikes this is stable if and only if :math:`-(1 - \alpha) < g a < (1 + \alpha)(1 + \rho) / (1 - \rho)`.
    A membrane coupling beyond 99 % of these bounds, drawn or learned, acts as if it were there: no step of training
    makes a neuron diverge. A number beyond the bounds of decays that are numbers too is refused.

    In this form, ``w`` is the paper's adaptation of the previous step. The paper resets to zero; these neurons reset by
    subtraction, which keeps the equation linear between spikes and across them.

    Args:
        decay: decay of the membrane per step; a number, or a range (low, high) from which it is drawn.
        threshold: a number or a range.
        adaptation_decay: decay of the adaptation current, a number or a range.
        membrane_coupling: coupling from the membrane to this current (`a`), a number or a range.
        spike_coupling: increase of this current by a spike (`b`), a number or a range.
        reset: "subtract" or "none".
        learn_adaptation: whether these three are learned.
        per: this and the remaining switches are as for `lif`. The gradient through `w` is never detached.

    Raises:
        ValueError: if a decay is outside (0, 1), a coupling is unstable, or a switch is unknown.

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
    neuron = glif_neuron(_MODEL, locals())
    _check_stable(decay, adaptation_decay, membrane_coupling, normalize)
    return neuron


def _check_stable(decay: Constant, w_decay: Constant, coupling: Constant, normalize: bool) -> None:
    """Refuse a number that would be replaced by a bound."""
    if isinstance(decay, tuple) or isinstance(w_decay, tuple) or isinstance(coupling, tuple):
        return
    gain = 1 - decay if normalize else 1.0
    low, high = -(1 - decay) / gain, (1 + decay) * (1 + w_decay) / (1 - w_decay) / gain
    if not STABLE_SHARE * low <= coupling <= STABLE_SHARE * high:
        fail(
            f"se_adlif: `membrane_coupling` must be within {STABLE_SHARE:.0%} of the bounds of stability, "
            f"{low:.4g} and {high:.4g}, got {coupling}. Choose one nearer to 0, or other decays."
        )
