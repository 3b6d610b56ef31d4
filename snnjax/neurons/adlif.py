"""adLIF neurons: an adaptation current that follows the membrane and the spikes."""

import functools
import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from snnjax._check import check_choice, check_integer
from snnjax.neurons._constants import (
    Constant,
    check_constants,
    check_decays,
    draw,
    draw_raw_decay,
    raw_to_decay,
)
from snnjax.neurons._neuron import (
    Neuron,
    advance,
    aligned,
    assemble,
    at_zero,
    computed_wide,
    learned,
    reset_membrane,
)
from snnjax.ops.lif_step import RESETS
from snnjax.ops.spike import spike
from snnjax.surrogates import Surrogate, as_surrogate

# The ranges from which Bittar and Garner 2022 draw: time constants of 5 to 25 and of 30 to 120 steps.
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


DEFAULT = AdLIFConfig()


class AdLIFParams(NamedTuple):
    """What `adlif` holds; a constant that is not learned has gradient 0."""

    raw_decay: Array  # [neurons], or [] for one of the layer
    raw_adaptation_decay: Array  # likewise
    membrane_coupling: Array  # likewise, `a` of the paper
    spike_coupling: Array  # likewise, `b` of the paper
    threshold: Array  # [neurons]


class AdLIFState(NamedTuple):
    """What `adlif` carries; the spikes of the step before are ``[v > threshold]``."""

    v: Array  # [batch, neurons] membrane
    adaptation: Array  # [batch, neurons] current that the membrane loses


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
    """Parameters of adLIF neurons; a constant given as a range (low, high) is drawn from it.

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
    """Membrane and adaptation at 0, in float32 at least.

    Example:
        >>> adlif_state(adlif_init(jax.random.key(0), 3), batch=2).v.shape
        (2, 3)
    """
    zeros = at_zero(batch, params.threshold)
    return AdLIFState(zeros, zeros)


def adlif_step(
    params: AdLIFParams,
    state: AdLIFState,
    inputs: Float[Array, "*batch neurons"],
    *,
    config: AdLIFConfig = DEFAULT,
) -> tuple[AdLIFState, Float[Array, "*batch neurons"]]:
    """Advance adLIF neurons by one step; the equations stand at `adlif`.

    Raises:
        ValueError: if the inputs do not fit the state.

    Example:
        >>> half = {"decay": 0.5, "adaptation_decay": 0.5, "membrane_coupling": 0.5, "spike_coupling": 1.0}
        >>> params = adlif_init(jax.random.key(0), 1, **half)
        >>> state = AdLIFState(v=jnp.array([[2.0]]), adaptation=jnp.array([[0.0]]))
        >>> adlif_step(params, state, jnp.array([[4.0]]))[0]
        AdLIFState(v=Array([[1.5]], dtype=float32), adaptation=Array([[2.]], dtype=float32))
    """
    integrate = functools.partial(adlif_integrate, config=config)
    fire = functools.partial(adlif_fire, config=config)
    return advance(integrate, fire, config.surrogate, params, state, inputs)


@computed_wide("adlif_step")
def adlif_integrate(
    params: AdLIFParams,
    state: AdLIFState,
    inputs: Float[Array, "*batch neurons"],
    *,
    config: AdLIFConfig,
) -> tuple[Float[Array, "*batch neurons"], Float[Array, " neurons"]]:
    """The membrane and its threshold: spikes are ``[membrane > threshold]``."""
    resting, params = params.threshold, aligned(params, inputs)
    threshold = learned(params.threshold, config.learn_threshold)
    decay = learned(raw_to_decay(params.raw_decay), config.learn_decay)
    before = spike(state.v - threshold, config.surrogate)
    u = reset_membrane(state.v, before, threshold, config.reset, config.detach_reset)
    driven = inputs - _adapt(params, state, before, config)
    v = decay * u + ((1 - decay) * driven if config.normalize else driven)
    return v, learned(resting, config.learn_threshold)


@computed_wide("adlif_step")
def adlif_fire(
    params: AdLIFParams,
    state: AdLIFState,
    inputs: Float[Array, "*batch neurons"],
    membrane: Float[Array, "*batch neurons"],
    spikes: Float[Array, "*batch neurons"],
    *,
    config: AdLIFConfig,
) -> AdLIFState:
    """The state after the step; `spikes` is unused, as the true spikes follow from the membrane."""
    del spikes
    params = aligned(params, inputs)
    before = spike(state.v - learned(params.threshold, config.learn_threshold), config.surrogate)
    return AdLIFState(membrane, _adapt(params, state, before, config))


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
    """AdLIF neurons: an adaptation current, driven by membrane and spikes, works against the inputs.

    With the membrane ``v'``, the adaptation ``w'`` and the spikes ``s' = [v' > threshold]`` of the step before::

        w = adaptation_decay w' + membrane_coupling v' + spike_coupling s'
        v = decay reset(v', s') + gain (inputs - w),    gain = 1 - decay if normalize else 1
        spikes = [v > threshold]

    A negative membrane coupling excites, a positive one makes the membrane resonate. The defaults are the paper's, and
    learned as there, but free to leave the ranges from which they are drawn.

    Args:
        decay: of the membrane; a number, or a range (low, high) from which `init` draws.
        threshold: likewise.
        adaptation_decay: of the adaptation current, likewise.
        membrane_coupling: what the current gains from the membrane (`a`), likewise.
        spike_coupling: what the current gains from a spike (`b`), likewise.
        learn_adaptation: let gradient reach these three.
        per_neuron: with the remaining switches, as for `lif`. Gradient through `w` is never detached.

    Raises:
        ValueError: for a decay outside (0, 1), or an unknown switch.

    Example:
        >>> from snnjax import neurons
        >>> neurons.adlif().init(jax.random.key(0), 16).spike_coupling.shape
        (16,)

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
    init = functools.partial(adlif_init, **initial, per_neuron=per_neuron)
    pieces = (adlif_state, adlif_integrate, adlif_fire)
    return assemble("adlif", config, config.surrogate, init, pieces, takes_spikes=True)


def _adapt(params: AdLIFParams, state: AdLIFState, before: Array, config: AdLIFConfig) -> Array:
    """The adaptation current of this step; `params` are aligned."""
    decay = learned(raw_to_decay(params.raw_adaptation_decay), config.learn_adaptation)
    membrane = learned(params.membrane_coupling, config.learn_adaptation) * state.v
    spikes = learned(params.spike_coupling, config.learn_adaptation) * before
    return decay * state.adaptation + membrane + spikes
