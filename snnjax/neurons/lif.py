"""Leaky integrate-and-fire neurons."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from snnjax._check import check_integer
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
from snnjax.neurons._membrane import (
    Constants,
    LIFConfig,
    check_config,
    fire_membrane,
    integrate_membrane,
)
from snnjax.neurons._neuron import Bound, Neuron, assemble, at_zero, check_flags, configured, learned
from snnjax.surrogates import Surrogate, as_surrogate


class LIFParams(NamedTuple):
    """The parameters of `lif`; a constant that is not learned has gradient 0."""

    raw_decay: Array  # [neurons], or [] for one per layer; decay = raw_to_decay(raw_decay)
    threshold: Array  # [neurons]


class LIFState(NamedTuple):
    """The state of `lif`; the spikes of the previous step are ``[v > threshold]``."""

    v: Array  # [batch, neurons] membrane


def lif_init(
    key: Array,
    num_neurons: int,
    dtype: Any = jnp.float32,
    *,
    decay: Constant = 0.9,
    threshold: Constant = 1.0,
    per_neuron: bool = True,
) -> LIFParams:
    """Make the parameters of LIF neurons; constants given as a range (low, high) are drawn per neuron.

    Raises:
        ValueError: if `num_neurons` is not an integer of at least 0.

    Example:
        >>> lif_init(jax.random.key(0), 3, decay=0.5).raw_decay
        Array([0., 0., 0.], dtype=float32)
    """
    check_integer("lif_init", "num_neurons", num_neurons, 0)
    keys = jax.random.split(key, 2)
    raw_decay = draw_raw_decay(keys[0], decay, num_neurons if per_neuron else None, dtype)
    return LIFParams(raw_decay, draw(keys[1], threshold, num_neurons, dtype))


def lif_state(params: LIFParams, batch: int) -> LIFState:
    """Make the initial state, a membrane of 0, in at least float32.

    Example:
        >>> lif_state(lif_init(jax.random.key(0), 3), batch=2).v.shape
        (2, 3)
    """
    return LIFState(at_zero(batch, params.threshold))


def lif_constants(params: LIFParams, config: LIFConfig) -> Constants:
    """Compute the physical ``(decay, threshold, gain)`` for the ops, with the shapes in `params`.

    ``decay = sigmoid(raw_decay)``; ``gain = 1 - decay`` if `config.normalize`, else 1, both in at least float32. The
    gradients of constants that `config` does not learn are stopped.

    Example:
        >>> decay, threshold, gain = lif_constants(lif_init(jax.random.key(0), 1, decay=0.5), LIFConfig())
        >>> float(gain[0])
        0.5
    """
    decay = learned(raw_to_decay(wide(params.raw_decay)), config.learn_decay)
    gain = 1 - decay if config.normalize else jnp.ones_like(decay)
    return Constants(decay, learned(params.threshold, config.learn_threshold), gain)


def lif_integrate(
    params: LIFParams, state: LIFState, inputs: Float[Array, "*batch neurons"], *, config: LIFConfig
) -> tuple[Float[Array, "*batch neurons"], Float[Array, " neurons"]]:
    """The membrane whose spikes are ``[membrane > threshold]``, and that threshold."""
    return integrate_membrane("lif.step", state.v, inputs, lif_constants(params, config), config)


def lif_fire(
    params: LIFParams,
    state: LIFState,
    inputs: Float[Array, "*batch neurons"],
    membrane: Float[Array, "*batch neurons"],
    spikes: Float[Array, "*batch neurons"],
    *,
    config: LIFConfig,
) -> LIFState:
    """The state after the step; `spikes` is unused, because the true spikes follow from the membrane."""
    del spikes
    return LIFState(
        fire_membrane("lif.step", state.v, inputs, membrane, lif_constants(params, config), config)
    )


def lif(
    decay: Constant = 0.9,
    threshold: Constant = 1.0,
    *,
    per_neuron: bool = True,
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
            `init` draws.
        threshold: a number or a range, in the unit of the membrane.
        per_neuron: whether each neuron has its own decay, or the layer has one.
        surrogate: replaces the derivative of the spikes.
        reset: "subtract", "zero" or "none".
        detach_reset: no gradient through the spikes in the reset.
        normalize: scale inputs by ``1 - decay``, so that the membrane converges to a constant input.
        learn_decay: whether the decay is learned; `learn_threshold` is for the threshold. An optimiser's weight decay
            would change them even if not learned: mask it, as for biases.
        reset_time: this, `spike_from` and `inclusive` are conventions of other libraries; see `snnjax.lif_step`.

    Raises:
        ValueError: if a decay is outside (0, 1), or a switch is unknown.

    Example:
        >>> from snnjax import neurons
        >>> neuron = neurons.lif(decay=(0.8, 0.95), learn_decay=True)
        >>> neuron.init(jax.random.key(0), 100).raw_decay.shape
        (100,)
        >>> neuron = neurons.lif(decay=0.5)
        >>> params, state = neuron.init(jax.random.key(0), 1), LIFState(jnp.array([[1.5]]))
        >>> neuron.step(params, state, jnp.array([[2.0]]))
        (LIFState(v=Array([[1.25]], dtype=float32)), Array([[1.]], dtype=float32))

    Reference:
        Neftci, Mostafa and Zenke 2019, doi:10.1109/MSP.2019.2931595.
    """
    check_decays("lif", decay=decay)
    check_constants("lif", threshold=threshold)
    learn = (learn_decay, learn_threshold)
    switches = (reset, detach_reset, normalize, *learn, reset_time, spike_from, inclusive)
    config = LIFConfig(as_surrogate("lif", surrogate), *switches)
    check_config("lif", config)
    check_flags("lif", config, per_neuron=per_neuron)
    init = Bound(lif_init, decay=decay, threshold=threshold, per_neuron=per_neuron)
    constants, shape = Bound(_glif_constants, config=config), as_surrogate("lif", surrogate)
    form = GLIF("lif.step", constants, shape, reset, detach_reset)
    pieces = glif_pieces(form) if config.is_plain else configured(config, lif_integrate, lif_fire)
    return assemble("lif", config.surrogate, init, (lif_state, *pieces), takes_spikes=config.takes_spikes)


def _glif_constants(params: LIFParams, config: LIFConfig) -> GLIFConstants:
    return GLIFConstants(*lif_constants(params, config))
