"""Code shared by the neurons based on the op `snnjax.lif_step`: its switches, and the parts of its step."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array

from snnjax import ops
from snnjax._check import check_choice
from snnjax._types import RESET_TIMES, RESETS, SPIKE_SOURCES, wide
from snnjax.neurons._neuron import Bound, Neuron, check_inputs
from snnjax.surrogates import Surrogate


class LIFConfig(NamedTuple):
    """The static switches of `lif`; those of the op `snnjax.lif_step` have the same meaning."""

    surrogate: str | Surrogate = "superspike"
    reset: str = "subtract"
    detach_reset: bool = True
    normalize: bool = True  # gain = 1 - decay, else 1
    learn_decay: bool = False  # else its gradient is stopped
    learn_threshold: bool = False
    reset_time: str = "before_decay"
    spike_from: str = "new"
    inclusive: bool = False

    @property
    def conventions(self) -> dict[str, Any]:
        """The switches set to conventions of other libraries, which the fused op `lif_network` does not support."""
        names = ("reset_time", "spike_from", "inclusive")
        return {n: getattr(self, n) for n in names if getattr(self, n) != self._field_defaults[n]}

    @property
    def is_plain(self) -> bool:
        """Whether the fused op `lif_network` computes this neuron."""
        return not self.conventions

    @property
    def takes_spikes(self) -> bool:
        """Whether the reset is differentiated through the spikes that it computes from the membrane."""
        return not self.detach_reset and self.reset != "none"


class Constants(NamedTuple):
    """The physical constants of the op, each ``[]`` or ``[neurons]``."""

    decay: Array  # in the accumulation dtype: bfloat16 would round 0.999 to 1
    threshold: Array
    gain: Array  # in the same dtype as the decay, from which it is computed


def conventions_of(neuron: Neuron) -> dict[str, Any]:
    """`LIFConfig.conventions` of a neuron that is scanned because of them, empty for any other neuron."""
    piece = neuron.integrate
    config = piece.keywords.get("config") if isinstance(piece, Bound) else None
    membrane = getattr(config, "membrane", config)
    return membrane.conventions if isinstance(membrane, LIFConfig) else {}


def check_config(op: str, config: LIFConfig) -> None:
    """Check that the named switches are known."""
    check_choice(op, "reset", config.reset, RESETS)
    check_choice(op, "reset_time", config.reset_time, RESET_TIMES)
    check_choice(op, "spike_from", config.spike_from, SPIKE_SOURCES)


def step_membrane(
    op: str, v: Array, inputs: Array, constants: Constants, config: LIFConfig
) -> tuple[Array, Array]:
    """The op `snnjax.lif_step`: the new membrane and the spikes.

    It uses plain JAX, which is as fast as our own kernel was and supports derivatives in any mode.
    """
    check_inputs(op, constants.threshold, v, inputs)
    return ops.lif_step(
        v,
        inputs,
        *constants,
        surrogate=config.surrogate,
        reset=config.reset,
        detach_reset=config.detach_reset,
        reset_time=config.reset_time,
        spike_from=config.spike_from,
        inclusive=config.inclusive,
        implementation="composed",
    )


def integrate_membrane(
    op: str, v: Array, inputs: Array, constants: Constants, config: LIFConfig
) -> tuple[Array, Array]:
    """The membrane and the threshold of the op: its spikes are ``[membrane > threshold]``."""
    threshold = _just_below(wide(constants.threshold)) if config.inclusive else constants.threshold
    if config.spike_from == "old":
        return v, threshold
    if config.reset_time == "immediate":
        config = config._replace(reset="none")
    return step_membrane(op, v, inputs, constants, config)[0], threshold


def fire_membrane(
    op: str, v: Array, inputs: Array, membrane: Array, constants: Constants, config: LIFConfig
) -> Array:
    """The op's new membrane, given what `integrate_membrane` returned.

    Resets use the true spikes, which follow from the membrane, so the listed spikes are not needed.
    """
    if config.spike_from == "old" or config.reset_time == "immediate":
        return step_membrane(op, v, inputs, constants, config)[0]
    return membrane


def _just_below(threshold: Array) -> Array:
    """The next smaller float, with the gradient of `threshold`: above it means at or above `threshold`."""
    fixed = jax.lax.stop_gradient(threshold)
    return threshold + (jnp.nextafter(fixed, jnp.full_like(fixed, -jnp.inf)) - fixed)
