"""The neurons that NIR has, in both directions: which node they are, and which of its fields hold their constants."""

from collections.abc import Callable
from typing import NamedTuple

from snnjax import neurons
from snnjax._types import Params
from snnjax.neurons import Neuron


class Decay(NamedTuple):
    """A state that decays, and its input's gain."""

    name: str  # of the argument
    tau: str  # fields of the node: its time constant
    gain: str  # the gain of its input, divided by 1 - decay
    normalize: str  # the argument that says whether that is 1


class Model(NamedTuple):
    """Neurons of ours; without reset they are the integrator with a Threshold behind it."""

    make: Callable[..., Neuron]
    params: Callable[..., Params]
    spiking: str | None  # the node with threshold and reset
    integrator: str
    decays: tuple[Decay, ...] = ()  # none: the gain r is 1 / dt


_LEAK = Decay("decay", "tau", "r", "normalize")
MODELS = {
    "lif": Model(neurons.lif, neurons.LIFParams, "LIF", "LI", (_LEAK,)),
    "current_lif": Model(
        neurons.current_lif,
        neurons.CurrentLIFParams,
        "CubaLIF",
        "CubaLI",
        (_LEAK._replace(tau="tau_mem"), Decay("synapse_decay", "tau_syn", "w_in", "normalize_synapse")),
    ),
    "integrate_and_fire": Model(neurons.integrate_and_fire, neurons.IntegrateAndFireParams, "IF", "I"),
    "leaky_integrator": Model(neurons.leaky_integrator, neurons.LeakyIntegratorParams, None, "LI", (_LEAK,)),
}
SPIKING = {model.spiking: model for model in MODELS.values() if model.spiking is not None}
INTEGRATORS = {model.integrator: model for model in SPIKING.values()}
# Two nodes have two meanings: a leak of everything is a Threshold, and one of nothing is I.
THRESHOLD, WITHOUT_LEAK = "Threshold", "I"
