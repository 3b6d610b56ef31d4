"""Current-based leaky integrate-and-fire neurons: a synaptic filter before the membrane."""

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
    LIFConfig,
    check_config,
    fire_membrane,
    integrate_membrane,
)
from snnjax.neurons._neuron import (
    Bound,
    Neuron,
    align,
    assemble,
    at_zero,
    check_flags,
    check_inputs,
    configured,
    learned,
)
from snnjax.neurons.lif import LIFParams, lif_constants
from snnjax.ops import SecondState
from snnjax.surrogates import Surrogate, as_surrogate


class CurrentLIFConfig(NamedTuple):
    """The static switches of `current_lif`."""

    membrane: LIFConfig = LIFConfig()
    normalize_synapse: bool = True  # synapse_gain = 1 - synapse_decay, else 1
    learn_synapse_decay: bool = False


class CurrentLIFParams(NamedTuple):
    """The parameters of `current_lif`; a constant that is not learned has gradient 0."""

    raw_decay: Array  # [neurons], or [] for one per layer
    raw_synapse_decay: Array  # same shape
    threshold: Array  # [neurons]


class CurrentLIFState(NamedTuple):
    """The state of `current_lif`; the spikes of the previous step are ``[v > threshold]``."""

    v: Array  # [batch, neurons] membrane
    current: Array  # [batch, neurons] synaptic current


def current_lif_init(
    key: Array,
    num_neurons: int,
    dtype: Any = jnp.float32,
    *,
    decay: Constant = 0.9,
    synapse_decay: Constant = 0.8,
    threshold: Constant = 1.0,
    per_neuron: bool = True,
) -> CurrentLIFParams:
    """Make the parameters of current-based LIF neurons; a constant given as a range (low, high) is drawn from it.

    Raises:
        ValueError: if `num_neurons` is not an integer of at least 0.

    Example:
        >>> current_lif_init(jax.random.key(0), 3).threshold.shape
        (3,)
    """
    check_integer("current_lif_init", "num_neurons", num_neurons, 0)
    keys = jax.random.split(key, 3)
    owners = num_neurons if per_neuron else None
    return CurrentLIFParams(
        draw_raw_decay(keys[0], decay, owners, dtype),
        draw_raw_decay(keys[1], synapse_decay, owners, dtype),
        draw(keys[2], threshold, num_neurons, dtype),
    )


def current_lif_state(params: CurrentLIFParams, batch: int) -> CurrentLIFState:
    """Make the initial state, all 0, in at least float32.

    Example:
        >>> current_lif_state(current_lif_init(jax.random.key(0), 3), batch=2).v.shape
        (2, 3)
    """
    return CurrentLIFState(at_zero(batch, params.threshold), at_zero(batch, params.threshold))


def current_lif_integrate(
    params: CurrentLIFParams,
    state: CurrentLIFState,
    inputs: Float[Array, "*batch neurons"],
    *,
    config: CurrentLIFConfig,
) -> tuple[Float[Array, "*batch neurons"], Float[Array, " neurons"]]:
    """The membrane whose spikes are ``[membrane > threshold]``, and that threshold."""
    current = _filter(params, state, inputs, config)
    constants = _constants(params, config)
    return integrate_membrane("current_lif.step", state.v, current, constants, config.membrane)


def current_lif_fire(
    params: CurrentLIFParams,
    state: CurrentLIFState,
    inputs: Float[Array, "*batch neurons"],
    membrane: Float[Array, "*batch neurons"],
    spikes: Float[Array, "*batch neurons"],
    *,
    config: CurrentLIFConfig,
) -> CurrentLIFState:
    """The state after the step; `spikes` is unused, because the true spikes follow from the membrane."""
    del spikes
    current = _filter(params, state, inputs, config)
    constants = _constants(params, config)
    v = fire_membrane("current_lif.step", state.v, current, membrane, constants, config.membrane)
    return CurrentLIFState(v, current)


def current_lif(
    decay: Constant = 0.9,
    synapse_decay: Constant = 0.8,
    threshold: Constant = 1.0,
    *,
    per_neuron: bool = True,
    surrogate: str | Surrogate = "superspike",
    reset: str = "subtract",
    detach_reset: bool = True,
    normalize: bool = True,
    normalize_synapse: bool = True,
    learn_decay: bool = False,
    learn_synapse_decay: bool = False,
    learn_threshold: bool = False,
    reset_time: str = "before_decay",
    spike_from: str = "new",
    inclusive: bool = False,
) -> Neuron:
    r"""Make current-based leaky integrate-and-fire neurons: inputs pass through an exponential synapse.

    With the spikes of the previous step, ``s' = [v' > threshold]``, the inputs :math:`x`, `decay` :math:`\alpha`,
    `synapse_decay` :math:`\beta` and `threshold` :math:`\theta`:

    .. math::

        I &= \beta I' + g_I x, \qquad g_I = 1 - \beta \text{ if the synapse is normalized, else } 1 \\
        v &= \alpha\, \mathrm{reset}(v', s') + g I, \qquad g = 1 - \alpha \text{ if normalize, else } 1 \\
        s &= [v > \theta]

    Args:
        decay: decay of the membrane per step; a number, or a range (low, high) from which `init` draws.
        synapse_decay: decay of the current per step, a number or a range.
        threshold: a number or a range, in the unit of the membrane.
        normalize_synapse: scale inputs by ``1 - synapse_decay``.
        per_neuron: this and the remaining switches are as for `lif`.

    Raises:
        ValueError: if a decay is outside (0, 1), or a switch is unknown.

    Example:
        >>> from snnjax import neurons
        >>> neuron = neurons.current_lif(decay=0.5, synapse_decay=0.5)
        >>> params = neuron.init(jax.random.key(0), 1)
        >>> state = CurrentLIFState(jnp.array([[0.0]]), jnp.array([[4.0]]))
        >>> neuron.step(params, state, jnp.array([[4.0]]))[0]
        CurrentLIFState(v=Array([[2.]], dtype=float32), current=Array([[4.]], dtype=float32))

    Reference:
        Cramer et al. 2022, doi:10.1109/TNNLS.2020.3044364.
    """
    check_decays("current_lif", decay=decay, synapse_decay=synapse_decay)
    check_constants("current_lif", threshold=threshold)
    learn = (learn_decay, learn_threshold)
    switches = (reset, detach_reset, normalize, *learn, reset_time, spike_from, inclusive)
    membrane = LIFConfig(as_surrogate("current_lif", surrogate), *switches)
    check_config("current_lif", membrane)
    config = CurrentLIFConfig(membrane, normalize_synapse, learn_synapse_decay)
    check_flags("current_lif", membrane, per_neuron=per_neuron)
    check_flags("current_lif", config)
    initial = {"decay": decay, "synapse_decay": synapse_decay, "threshold": threshold}
    init = Bound(current_lif_init, **initial, per_neuron=per_neuron)
    if membrane.is_plain:
        constants = Bound(current_lif_constants, config=config)
        form = GLIF(
            "current_lif.step", constants, as_surrogate("current_lif", surrogate), reset, detach_reset
        )
        pieces = glif_pieces(form)
    else:
        pieces = configured(config, current_lif_integrate, current_lif_fire)
    pieces, takes_spikes = (current_lif_state, *pieces), membrane.takes_spikes
    return assemble("current_lif", membrane.surrogate, init, pieces, takes_spikes=takes_spikes)


def current_lif_constants(params: CurrentLIFParams, config: CurrentLIFConfig) -> GLIFConstants:
    """The constants of the generalised LIF equation: the synaptic current is its second state.

    Example:
        >>> params = current_lif_init(jax.random.key(0), 1, decay=0.5)
        >>> current_lif_constants(params, CurrentLIFConfig()).second_state.v_coupling
        Array([0.5], dtype=float32)
    """
    decay, threshold, gain = _constants(params, config)
    synapse_decay = learned(raw_to_decay(wide(params.raw_synapse_decay)), config.learn_synapse_decay)
    w_gain = 1 - synapse_decay if config.normalize_synapse else jnp.ones_like(synapse_decay)
    second = SecondState(synapse_decay, w_gain=w_gain, v_coupling=gain)
    return GLIFConstants(decay, threshold, jnp.zeros_like(gain), second)


def _constants(params: CurrentLIFParams, config: CurrentLIFConfig) -> Any:
    return lif_constants(LIFParams(params.raw_decay, params.threshold), config.membrane)


def _filter(
    params: CurrentLIFParams, state: CurrentLIFState, inputs: Array, config: CurrentLIFConfig
) -> Array:
    """The synaptic current of this step."""
    check_inputs("current_lif.step", params, state.v, inputs)
    decay = align(raw_to_decay(wide(params.raw_synapse_decay)), inputs)
    decay = learned(decay, config.learn_synapse_decay)
    driven = (1 - decay) * wide(inputs) if config.normalize_synapse else wide(inputs)
    return decay * state.current + driven
