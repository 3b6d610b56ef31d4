"""Leaky integrate-and-fire neurons."""

from typing import NamedTuple

from jaxtyping import Array

from snnjax._arguments import explained
from snnjax.neurons._constants import Constant
from snnjax.neurons._model import DECAY, THRESHOLD, Model, gain_of, glif_neuron
from snnjax.neurons._neuron import Neuron
from snnjax.ops._glif_step import GLIFConstants
from snnjax.surrogates import Surrogate


class LIFParams(NamedTuple):
    """The parameters of `lif`; None for a constant that is not learned."""

    raw_decay: Array | None = None  # [neurons], or [] for one per layer; decay = raw_to_decay(raw_decay)
    threshold: Array | None = None  # [neurons]


class LIFState(NamedTuple):
    """The state of `lif`; the spikes of the previous step are ``[v > threshold]``."""

    v: Array  # [batch, neurons] membrane


def _constants(decay: Array, threshold: Array, *, normalize: bool) -> GLIFConstants:
    return GLIFConstants(decay, threshold, gain_of(decay, normalize))


_MODEL = Model("lif", LIFParams, LIFState, (DECAY, THRESHOLD), _constants, ("normalize",))


@explained
def lif(
    decay: Constant = 0.9,
    threshold: Constant = 1.0,
    *,
    per: str = "channel",
    surrogate: str | Surrogate = "superspike",
    reset: str = "subtract",
    detach_reset: bool = True,
    normalize: bool = True,
    learn_decay: bool = False,
    learn_threshold: bool = False,
    reset_time: str = "before_decay",
    spike_from: str = "new",
    inclusive: bool = False,
) -> Neuron:
    r"""Make leaky integrate-and-fire neurons.

    With the spikes of the previous step, ``s' = [v' > threshold]``, the inputs :math:`x`, `decay` :math:`\alpha` and
    `threshold` :math:`\theta`:

    .. math::

        u &= v' - \theta s' \text{ ("subtract")}, \quad v' (1 - s') \text{ ("zero")} \quad \text{or} \quad
            v' \text{ ("none")} \\
        v &= \alpha u + g x, \qquad g = 1 - \alpha \text{ if normalize, else } 1 \\
        s &= [v > \theta]

    Args:
        decay: fraction of the membrane kept per step, between 0 and 1: a number, or a range (low, high) from which
            `init` draws it if it is learned, else `initial_stats`.
        threshold: a number or a range, in the unit of the membrane.
        per: whether constants that are learned or drawn belong to a "channel" (the last axis: of an image; of flat
            neurons each is one), a "neuron", or the "layer". Other constants are numbers.
        surrogate: replaces the derivative of the spikes.
        reset: "subtract", "zero" or "none".
        detach_reset: no gradient through the spikes in the reset.
        normalize: scale inputs by ``1 - decay``, so that the membrane converges to a constant input.
        learn_decay: whether the decay is learned, and thereby one of the params; `learn_threshold` is for the
            threshold.
        reset_time: this, `spike_from` and `inclusive` are conventions of other libraries; see `snnjax.lif_step`.

    Raises:
        ValueError: if a decay is outside (0, 1), or a switch is unknown.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> from snnjax import neurons
        >>> neuron = neurons.lif(decay=(0.8, 0.95), learn_decay=True)
        >>> neuron.init(jax.random.key(0), 100).raw_decay.shape  # the threshold is no parameter
        (100,)
        >>> neuron = neurons.lif(decay=0.5)
        >>> params, state = neuron.init(jax.random.key(0), 1), LIFState(jnp.array([[1.5]]))
        >>> neuron.step(params, state, jnp.array([[2.0]]))
        (LIFState(v=Array([[1.25]], dtype=float32)), Array([[1.]], dtype=float32))

    Reference:
        Neftci, Mostafa and Zenke 2019, doi:10.1109/MSP.2019.2931595.
    """
    return glif_neuron(_MODEL, locals())
