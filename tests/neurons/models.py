"""A table of the neuron models, and one with their variants, for the properties that all of them share."""

import dataclasses
import inspect
from typing import Any

import jax
import jax.numpy as jnp
from jax.typing import DTypeLike

from snnjax import neurons
from snnjax._types import Params, State
from snnjax.surrogates import Surrogate, sigmoid

LEARN = {"learn_decay": True, "learn_threshold": True}
FIX_ADAPTATION = {"learn_adaptation": False}
DECAYS = {"decay": (0.6, 0.9)}


@dataclasses.dataclass(frozen=True)
class Model:
    """How to build a neuron, and inputs that make it spike now and then: ``mean + spread * normal``.

    `learn` lets gradient reach constants that it does not reach by default, and `fix` stops it where it does.
    """

    factory: Any
    config: dict[str, Any] = dataclasses.field(default_factory=dict)
    learn: dict[str, bool] = dataclasses.field(default_factory=dict)
    mean: float = 1.0
    spread: float = 1.0
    fix: dict[str, bool] = dataclasses.field(default_factory=dict)
    spikes: bool = True

    def build(self, **config) -> neurons.Neuron:
        return self.factory(**(self.config | config))

    def inputs(self, *shape: int, dtype: DTypeLike = jnp.float32, seed: int = 1) -> jax.Array:
        draws = jax.random.normal(jax.random.key(seed), shape, jnp.float32)
        return (self.mean + self.spread * draws).astype(dtype)


def refractory_lif(**config) -> neurons.Neuron:
    return neurons.refractory(neurons.lif(**config), steps=2)


MODELS = {
    "integrate_and_fire": Model(neurons.integrate_and_fire, learn={"learn_threshold": True}, mean=0.4),
    "lif": Model(neurons.lif, DECAYS, LEARN, spread=2.0),
    "current_lif": Model(
        neurons.current_lif,
        DECAYS | {"synapse_decay": 0.5},
        LEARN | {"learn_synapse_decay": True},
        spread=3.0,
    ),
    "adaptive_lif": Model(neurons.adaptive_lif, DECAYS, LEARN | {"learn_adaptation": True}, spread=2.0),
    "adlif": Model(neurons.adlif, DECAYS, LEARN, mean=2.0, spread=2.0, fix=FIX_ADAPTATION),
    "se_adlif": Model(
        neurons.se_adlif,
        DECAYS | {"membrane_coupling": 0.5},
        LEARN,
        mean=3.0,
        spread=2.0,
        fix=FIX_ADAPTATION,
    ),
    "resonate_and_fire": Model(
        neurons.resonate_and_fire,
        {"decay": 0.8},
        {"learn_threshold": True},
        fix={"learn_decay": False, "learn_frequency": False},
    ),
    "izhikevich": Model(neurons.izhikevich, learn={"learn": True}, mean=15.0, spread=10.0),
    "refractory lif": Model(refractory_lif, DECAYS, LEARN, mean=2.0),
    "leaky_integrator": Model(neurons.leaky_integrator, DECAYS, {"learn_decay": True}, spikes=False),
}
VARIANTS = MODELS | {
    "lif zero": Model(neurons.lif, DECAYS | {"reset": "zero"}, LEARN, spread=2.0),
    "lif none": Model(neurons.lif, DECAYS | {"reset": "none"}, LEARN, spread=2.0),
    "lif after decay": Model(neurons.lif, DECAYS | {"reset_time": "after_decay"}, LEARN, spread=2.0),
    "lif immediate": Model(neurons.lif, DECAYS | {"reset_time": "immediate"}, LEARN, spread=2.0),
    "lif old": Model(neurons.lif, DECAYS | {"spike_from": "old"}, LEARN, spread=2.0),
    "lif inclusive": Model(neurons.lif, DECAYS | {"inclusive": True}, LEARN, spread=2.0),
    "lif of one decay": Model(neurons.lif, DECAYS | {"per": "layer"}, LEARN, spread=2.0),
    "adaptive_lif after decay": Model(
        neurons.adaptive_lif,
        DECAYS | {"reset_time": "after_decay", "per": "layer"},
        LEARN | {"learn_adaptation": True},
        spread=2.0,
    ),
}
SPIKING = tuple(name for name in VARIANTS if VARIANTS[name].spikes)
# Those that a function of their own name makes, with the arguments of that function.
FACTORIES = {
    name: tuple(inspect.signature(model.factory).parameters)
    for name, model in MODELS.items()
    if getattr(neurons, name, None) is model.factory
}


def smooth(name: str) -> dict[str, Any]:
    """Switches under which the gradient of a model is exact: relaxed spikes, reset attached, everything learned."""
    model, slope = VARIANTS[name], 0.1 if name == "izhikevich" else 4.0
    relaxed: Surrogate = dataclasses.replace(sigmoid(slope), smooth=True)
    exact = {"surrogate": relaxed, "detach_reset": False} if name in SPIKING else {}
    return exact | model.learn


def unroll(neuron: neurons.Neuron, params: Params, state: State, inputs: jax.Array) -> tuple[Any, jax.Array]:
    """All steps of `inputs` [time, batch, neurons]: the last state and the spikes of each."""
    return jax.lax.scan(lambda carry, x: neuron.step(params, carry, x), state, inputs)
