"""Adaptive leaky integrate-and-fire neurons: spikes raise the threshold."""

from typing import NamedTuple

from jaxtyping import Array

from snnjax._arguments import explained
from snnjax._neuron_table import GLIFConstants, SecondState
from snnjax.neurons._constants import Constant
from snnjax.neurons._model import DECAY, THRESHOLD, Model, Parameter, gain_of, glif_neuron
from snnjax.neurons._neuron import Neuron
from snnjax.surrogates import Surrogate


class AdaptiveLIFParams(NamedTuple):
    """The parameters of `adaptive_lif`; None for a constant that is not learned."""

    raw_decay: Array | None = None  # [neurons], or [] for one per layer
    raw_adaptation_decay: Array | None = None  # likewise
    adaptation_strength: Array | None = None  # likewise
    threshold: Array | None = None  # [neurons], threshold at rest


class AdaptiveLIFState(NamedTuple):
    """The state of `adaptive_lif`."""

    v: Array  # [batch, neurons] membrane
    adaptation: Array  # [batch, neurons] filtered spikes, without those of the last step


def _constants(
    decay: Array, adaptation_decay: Array, strength: Array, threshold: Array, *, normalize: bool
) -> GLIFConstants:
    """The adaptation is the second state, which raises the threshold."""
    second = SecondState(adaptation_decay, w_jump=1 - adaptation_decay, threshold_coupling=strength)
    return GLIFConstants(decay, threshold, gain_of(decay, normalize), second_state=second)


_MODEL = Model(
    "adaptive_lif",
    AdaptiveLIFParams,
    AdaptiveLIFState,
    (
        DECAY,
        Parameter("adaptation_decay", "learn_adaptation", is_decay=True),
        Parameter("adaptation_strength", "learn_adaptation"),
        THRESHOLD,
    ),
    _constants,
    ("normalize",),
    # "immediate" would equal "before_decay": the threshold only changes in the next step.
    reset_times=("before_decay", "after_decay"),
)


@explained
def adaptive_lif(
    decay: Constant = 0.9,
    threshold: Constant = 1.0,
    *,
    adaptation_decay: Constant = 0.98,
    adaptation_strength: Constant = 1.8,
    per: str = "channel",
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
        decay: decay of the membrane per step; a number, or a range (low, high) from which it is drawn.
        threshold: threshold at rest, a number or a range.
        adaptation_decay: decay of the raised threshold, a number or a range; usually slower than the membrane's.
        adaptation_strength: by how much spiking in every step raises the threshold in the end, a number or a range.
        learn_adaptation: whether both of these are learned.
        reset_time: "after_decay" subtracts the reset from the new membrane, as in the paper: ``v = decay v' + gain
            inputs - (threshold + strength a') s'``.
        per: this and the remaining switches are as for `lif`. The gradient through `a` is never detached.

    Raises:
        ValueError: if a decay is outside (0, 1), or a switch is unknown.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> from snnjax import neurons
        >>> neuron = neurons.adaptive_lif(decay=0.5, adaptation_decay=0.5, adaptation_strength=2.0)
        >>> params, three = neuron.init(jax.random.key(0), 1), jnp.array([[3.0]])
        >>> state = neuron.initial_state(params, 1, 1)
        >>> for _ in range(2):
        ...     state, spikes = neuron.step(params, state, three)
        >>> float(state.v[0, 0]), float(state.adaptation[0, 0]), int(spikes[0, 0])
        (1.75, 0.5, 0)

    Reference:
        Bellec et al. 2018, arXiv:1803.09574, equations 1 to 4.
    """
    return glif_neuron(_MODEL, locals())
