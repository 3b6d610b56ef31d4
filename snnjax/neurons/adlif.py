"""adLIF neurons: an adaptation current that follows the membrane and the spikes."""

import math
from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array

from snnjax._arguments import explained
from snnjax._neuron_table import GLIFConstants, SecondState
from snnjax._types import upcast
from snnjax.neurons._constants import Constant, within
from snnjax.neurons._model import DECAY, THRESHOLD, Model, Parameter, gain_of, glif_neuron
from snnjax.neurons._neuron import Neuron
from snnjax.surrogates import Surrogate

# The ranges of Bittar and Garner 2022: time constants of 5 to 25 and of 30 to 120 steps.
DECAY_RANGE = (math.exp(-1 / 5), math.exp(-1 / 25))
ADAPTATION_DECAY_RANGE = (math.exp(-1 / 30), math.exp(-1 / 120))
MEMBRANE_COUPLING, SPIKE_COUPLING = (-1.0, 1.0), (0.0, 2.0)
# Of the bounds of stability; at the bounds themselves an oscillation neither grows nor fades.
STABLE_SHARE = 0.99
# Decays that round to 1 make bounds no larger than this allows.
LEAST = 2.0**-24
# The parameters of adLIF neurons in any discretisation.
PARAMETERS = (
    DECAY,
    Parameter("adaptation_decay", "learn_adaptation", is_decay=True),
    Parameter("membrane_coupling", "learn_adaptation"),
    Parameter("spike_coupling", "learn_adaptation"),
    THRESHOLD,
)


class AdLIFParams(NamedTuple):
    """The parameters of `adlif`; None for a constant that is not learned."""

    raw_decay: Array | None = None  # [neurons], or [] for one per layer
    raw_adaptation_decay: Array | None = None  # likewise
    membrane_coupling: Array | None = None  # likewise, `a` in the paper
    spike_coupling: Array | None = None  # likewise, `b` in the paper
    threshold: Array | None = None  # [neurons]


class AdLIFState(NamedTuple):
    """The state of `adlif`; the spikes of the previous step are ``[v > threshold]``."""

    v: Array  # [batch, neurons] membrane
    adaptation: Array  # [batch, neurons] current subtracted from the inputs


def stable_bounds(decay: Array, w_decay: Array, gain: Array) -> tuple[Array, Array]:
    """Between which what the membrane adds to the adaptation in a step keeps both stable.

    Their transition has the determinant ``decay w_decay`` and the trace ``decay + w_decay - gain a``. Its eigenvalues
    are inside the unit circle if and only if the trace is nearer to 0 than ``1 + determinant`` (Jury 1964).
    """
    scale = STABLE_SHARE / jnp.maximum(gain, LEAST)
    return -scale * (1 - decay) * (1 - w_decay), scale * (1 + decay) * (1 + w_decay)


def _constants(
    decay: Array,
    w_decay: Array,
    membrane: Array,
    spike: Array,
    threshold: Array,
    *,
    normalize: bool,
    membrane_coupling: Constant,
) -> GLIFConstants:
    """The adaptation is the second state, subtracted from the inputs."""
    gain = gain_of(decay, normalize)
    given = membrane_coupling if isinstance(membrane_coupling, tuple) else (membrane_coupling,) * 2
    low, high = stable_bounds(decay, w_decay, gain)
    membrane = within(upcast(membrane), jnp.minimum(low, given[0]), jnp.maximum(high, given[1]))
    second = SecondState(w_decay, w_membrane=membrane, w_jump=spike, v_coupling=-gain)
    return GLIFConstants(decay, threshold, gain, second_state=second)


_MODEL = Model("adlif", AdLIFParams, AdLIFState, PARAMETERS, _constants, ("normalize", "membrane_coupling"))


@explained
def adlif(
    decay: Constant = DECAY_RANGE,
    threshold: Constant = 1.0,
    *,
    adaptation_decay: Constant = ADAPTATION_DECAY_RANGE,
    membrane_coupling: Constant = MEMBRANE_COUPLING,
    spike_coupling: Constant = SPIKE_COUPLING,
    per: str = "channel",
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

    A negative membrane coupling excites, a positive one makes the membrane resonate. Under the threshold this is stable
    if and only if :math:`-(1 - \alpha)(1 - \rho) < g a < (1 + \alpha)(1 + \rho)`. A learned coupling stays within 99 %
    of these bounds, whatever becomes of the decays, or within the range that was given where that is wider. So is the
    default, the range of the paper: with it, some membranes grow, to infinity within some hundred steps. For long
    sequences choose a range such as ``(0.0, 1.0)``.

    Args:
        decay: decay of the membrane per step; a number, or a range (low, high) from which it is drawn.
        threshold: a number or a range.
        adaptation_decay: decay of the adaptation current, a number or a range.
        membrane_coupling: coupling from the membrane to this current (`a`), a number or a range.
        spike_coupling: increase of this current by a spike (`b`), a number or a range.
        learn_adaptation: whether these three are learned.
        per: this and the remaining switches are as for `lif`. The gradient through `w` is never detached.

    Raises:
        ValueError: if a decay is outside (0, 1), or a switch is unknown.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> from snnjax import neurons
        >>> half = {"decay": 0.5, "adaptation_decay": 0.5, "membrane_coupling": 0.5, "spike_coupling": 1.0}
        >>> neuron = neurons.adlif(**half)
        >>> state = AdLIFState(v=jnp.array([[2.0]]), adaptation=jnp.array([[0.0]]))
        >>> neuron.step(neuron.init(jax.random.key(0), 1), state, jnp.array([[4.0]]))[0]
        AdLIFState(v=Array([[1.5]], dtype=float32), adaptation=Array([[2.]], dtype=float32))

    Reference:
        Bittar and Garner 2022, doi:10.3389/fnins.2022.865897.
    """
    return glif_neuron(_MODEL, locals())
