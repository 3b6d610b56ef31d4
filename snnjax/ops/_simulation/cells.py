"""Neurons of several models in one simulation, including users' own, whose steps are in `jax.numpy`."""

import functools
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
from jax.typing import DTypeLike
from jaxtyping import Array

from snnjax._check import fail, short_repr
from snnjax._types import Params, State
from snnjax.ops._glif_step import align
from snnjax.ops._simulation.records import SynapticLIF, constant
from snnjax.ops._simulation.reference import LIFState, leaky_step


@runtime_checkable
class Model(Protocol):
    """What simulations ask of `snnjax.neurons.Neuron`."""

    name: str

    def initial_state(self, params: Params, batch: int, num_neurons: int, dtype: DTypeLike) -> State:
        """The state before the first step."""
        ...

    def advance(self, params: Params, state: State, inputs: Array) -> tuple[Array, Array, Any]:
        """Membrane, threshold, and the state, which `finish` completes with the spikes."""
        ...

    def finish(self, state: State, spikes: Array) -> State:
        """The state after the step."""
        ...


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Cells:
    """Neurons of several models, in the order of their numbers; made by `snnjax.circuits.Populations.cells`."""

    params: tuple[Params, ...]  # of each part; leaky neurons are constants alone
    models: tuple[Model | None, ...] = field(metadata={"static": True})  # None for leaky neurons
    sizes: tuple[int, ...] = field(metadata={"static": True})
    num_receptors: int = field(metadata={"static": True})
    dt: float = field(metadata={"static": True})  # ms, the length of a step
    has_conductances = False  # of all: what arrives may be negative

    def initial(self, dtype: DTypeLike) -> tuple[State, ...]:
        """The states of all parts before the first step."""
        return tuple(
            lif_state(params, size, self.num_receptors, dtype)
            if model is None
            else model.initial_state(params, 1, size, dtype)
            for model, params, size in zip(self.models, self.params, self.sizes, strict=True)
        )

    def step(
        self, states: tuple[State, ...], arrived: Array, current: Array | None, given: Array | None
    ) -> tuple[tuple[State, ...], Array]:
        """A step of all, and which neurons spike."""
        zero = jnp.zeros(arrived.shape[-1], arrived.dtype)
        current = zero if current is None else zero + current
        after, spikes = [], []
        for model, params, state, own in self._parts(states):
            forced = None if given is None else given[own]
            step = (
                functools.partial(_lif, params) if model is None else functools.partial(_step, model, params)
            )
            state, fires = step(state, arrived[:, own], current[own], forced)
            after.append(state)
            spikes.append(fires)
        return tuple(after), jnp.concatenate([jnp.zeros(0, bool), *spikes])

    def v(self, states: tuple[State, ...]) -> Array:
        """The potentials ``[neurons]``, of states that hold them under this name."""
        found = []
        for model, params, state, own in self._parts(states):
            if model is None:
                found.append(state.v + constants_of(params, own.stop - own.start, state.v.dtype).rest)
                continue
            if not hasattr(state, "v"):
                hint = "Call the membrane v in its state"
                fail(f"simulate: `record` must be of states with a field v, got {short_repr(state)}. {hint}.")
            found.append(state.v[0])
        return jnp.concatenate(found)

    def _parts(self, states: tuple[State, ...]) -> Iterator[tuple[Model | None, Params, State, slice]]:
        """The model, params, state and numbers of each part."""
        first = 0
        for model, params, state, size in zip(self.models, self.params, states, self.sizes, strict=True):
            yield model, params, state, slice(first, first + size)
            first += size


def _step(
    model: Model, params: Params, state: State, arrived: Array, current: Array, given: Array | None
) -> tuple[State, Array]:
    """A step of a user's own model, whose inputs are ``[1, neurons]``, or ``[receptors, 1, neurons]`` with several."""
    inputs = arrived.at[0].add(current)[:, None]
    membrane, threshold, after = model.advance(params, state, inputs[0] if inputs.shape[0] == 1 else inputs)
    spikes = (membrane > align(threshold, membrane))[0]
    spikes = spikes if given is None else spikes | given
    return model.finish(after, spikes[None].astype(membrane.dtype)), spikes


class LIFConstants(NamedTuple):
    """The constants of leaky neurons by the names of the kernel, potentials relative to rest."""

    leak: Array
    threshold: Array
    reset: Array
    refractory: Array
    synaptic_decay: Array
    effect: Array
    gain: Array
    rest: Array


def constants_of(neurons: SynapticLIF, count: int, dtype: DTypeLike) -> LIFConstants:
    """The constants of so many neurons.

    Relative to rest, the steps of a membrane are small compared with its distance to rest, however short a time step
    is, and at rest it does not move.
    """

    def of(name: str) -> Array:
        return constant("simulate", f"neurons.{name}", getattr(neurons, name), count).astype(dtype)

    rest, effect = of("rest"), of("effect")
    return LIFConstants(
        of("leak"),
        of("threshold") - rest,
        of("reset") - rest,
        constant("simulate", "neurons.refractory", neurons.refractory, count).astype(jnp.int32),
        of("synaptic_decay"),
        effect - rest[None] if neurons.has_conductances else effect,
        of("gain"),
        rest,
    )


def lif_state(neurons: SynapticLIF, count: int, receptors: int, dtype: DTypeLike) -> LIFState:
    """Leaky neurons at rest."""
    v = jnp.zeros(count, dtype)
    return LIFState(v, jnp.zeros((receptors, count), dtype), jnp.zeros(count, jnp.int32))


def _lif(
    neurons: SynapticLIF, state: LIFState, arrived: Array, current: Array, given: Array | None
) -> tuple[LIFState, Array]:
    """A step of leaky neurons."""
    own = constants_of(neurons, state.v.shape[0], state.v.dtype)
    return leaky_step(own, neurons.has_conductances, state, arrived, own.gain * current, given)
