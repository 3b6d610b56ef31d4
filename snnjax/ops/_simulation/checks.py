"""Checks of the arguments of `simulate`."""

import math
from collections.abc import Iterator
from types import NoneType
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from snnjax._check import (
    check_float_array,
    check_integers,
    check_key,
    check_shape,
    check_within,
    concrete,
    fail,
    plural,
    short_repr,
    type_words,
)
from snnjax._delayed_synapses import DelayedSynapses
from snnjax._plasticity import ShortTermState, STDPTraces, check_short_term, check_stdp
from snnjax._quantised import Quantised
from snnjax._types import State, Unchecked
from snnjax.ops._simulation.records import PoissonInput, SimulationState, SynapticLIF

_OP = "simulate"
# The arguments of `cuba_lif`, `coba_lif` and `PoissonInput.of` from which constants are made.
_GIVEN_AS = {
    "neurons.leak": "neurons.tau",
    "neurons.gain": "neurons.tau",
    "neurons.synaptic_decay": "neurons.synaptic_taus",
    "neurons.effect": "neurons.reversals",
    "poisson.limits": "poisson.rate",
    "poisson.weights": "poisson.weight",
}
_MADE_WITH = "Call simulation_state with these neurons and synapses"
_SAME_STEP = 1e-6  # relative: a length of a step may have been rounded to float32


def check_neurons(op: str, neurons: Unchecked) -> None:
    if not isinstance(neurons, SynapticLIF):
        hint = "Make them with snnjax.neurons.cuba_lif or coba_lif"
        fail(f"{op}: `neurons` must be a SynapticLIF, got {type_words(neurons)}. {hint}.")


def check_synapses(op: str, neurons: SynapticLIF, synapses: Unchecked) -> None:
    if not isinstance(synapses, DelayedSynapses):
        hint = "Make them with DelayedSynapses.of"
        fail(f"{op}: `synapses` must be DelayedSynapses, got {short_repr(synapses)}. {hint}.")
    targets = neurons.num_receptors * synapses.num_neurons
    if synapses.num_targets != targets:
        fail(
            f"{op}: `synapses` must lead to {plural(neurons.num_receptors, 'receptor')} of "
            f"{synapses.num_neurons} neurons, {targets} targets, got {synapses.num_targets}. "
            "Synapses.from_blocks joins those of each receptor."
        )


def check_network(neurons: Unchecked, synapses: Unchecked) -> None:
    check_neurons(_OP, neurons)
    check_synapses(_OP, neurons, synapses)


def check_conductances(
    neurons: SynapticLIF, synapses: DelayedSynapses, poisson: Unchecked, stdp: Unchecked
) -> None:
    """Check that what spikes add is not negative, if it is a conductance."""
    for argument, added in _conductances(neurons, synapses, poisson, stdp):
        known = concrete(added)
        if known is not None and np.any(known < 0):
            hint = "The reversal potential makes a synapse inhibitory"
            least = float(np.min(known))
            fail(f"{_OP}: `{argument}` must be at least 0 with conductances, got {least:g}. {hint}.")


def _conductances(
    neurons: SynapticLIF, synapses: DelayedSynapses, poisson: Unchecked, stdp: Unchecked
) -> Iterator[tuple[str, Any]]:
    """All that must not be negative, by argument."""
    if not neurons.has_conductances:
        return
    stored = synapses.strengths
    if isinstance(stored, Quantised):
        yield "synapses.weights.values", stored.values
        yield "synapses.weights.scale", stored.scale
    else:
        yield "synapses.weights", synapses.weights()
    if poisson is not None:
        yield "poisson.weights", poisson.weights
    if stdp is not None:
        yield "stdp.bounds", stdp.bounds[0]


def traced_faults(
    neurons: SynapticLIF, synapses: DelayedSynapses, poisson: Unchecked, stdp: Unchecked
) -> list[Array]:
    """Whether traced arguments are out of range, which no error can say: a boolean for each."""
    added = (each for _, each in _conductances(neurons, synapses, poisson, stdp) if concrete(each) is None)
    return [jnp.any(each < 0) for each in added]


def check_state(neurons: SynapticLIF, synapses: DelayedSynapses, state: State) -> None:
    if not isinstance(state, SimulationState):
        fail(f"{_OP}: `state` must be a SimulationState, got {short_repr(state)}. Call simulation_state.")
    num_neurons, arrivals = synapses.num_neurons, synapses.max_delay
    each = (neurons.num_receptors, num_neurons)
    hint = _MADE_WITH
    check_shape(_OP, "state.v", state.v, (num_neurons,), "neurons", hint)
    check_shape(_OP, "state.received", state.received, each, "receptors, neurons", hint)
    check_shape(_OP, "state.remaining", state.remaining, (num_neurons,), "neurons", hint)
    check_shape(_OP, "state.sent", state.sent, (arrivals, (num_neurons + 7) // 8), "max_delay, bytes", hint)
    check_shape(_OP, "state.step", state.step, (), "", hint)
    for name in ("v", "received"):
        check_float_array(_OP, f"state.{name}", getattr(state, name))
    for name in ("remaining", "step"):
        check_integers(_OP, f"state.{name}", getattr(state, name))
    if state.sent.dtype != jnp.uint8:
        fail(f"{_OP}: `state.sent` must hold bits, uint8, got {short_repr(state.sent)}. {hint}.")


def check_input(
    neurons: SynapticLIF,
    num_neurons: int,
    steps: int,
    currents: Unchecked,
    poisson: Unchecked,
    key: Unchecked,
) -> None:
    if currents is not None:
        check_float_array(_OP, "currents", currents)
        width = 1 if currents.ndim == 2 and currents.shape[1] == 1 else num_neurons
        hint = "Pass a row for each step"
        check_shape(_OP, "currents", currents, (steps, width), "steps, neurons", hint)
    if poisson is None:
        return
    if not isinstance(poisson, PoissonInput):
        fail(f"{_OP}: `poisson` must be a PoissonInput, got {short_repr(poisson)}. Call PoissonInput.of.")
    if poisson.receptor >= neurons.num_receptors:
        fail(
            f"{_OP}: `poisson.receptor` must be below {neurons.num_receptors}, the number of receptors, "
            f"got {poisson.receptor}. Choose one of them."
        )
    if not math.isclose(poisson.dt, neurons.dt, rel_tol=_SAME_STEP):
        hint = "Make both with one dt"
        fail(f"{_OP}: `poisson.dt` must be that of the neurons, {neurons.dt:g}, got {poisson.dt:g}. {hint}.")
    check_key(_OP, key)


def check_record(neurons: int, record: Unchecked) -> None:
    """Check ids of neurons; the potential of a traced one that is none is not a number."""
    if record is None:
        return
    if getattr(record, "dtype", None) == np.bool_:
        given = short_repr(record)
        fail(f"{_OP}: `record` must be ids, got {given}. Pass those of a mask with jnp.flatnonzero.")
    check_integers(_OP, "record", record)
    check_shape(_OP, "record", record, (None,), "recorded", "Pass ids of neurons")
    check_within(_OP, "record", record, neurons - 1, "Pass ids of neurons")


def _check_held(name: str, rule: Unchecked, field: str, held: Unchecked, kind: type) -> bool:
    """Check that a state has what a rule carries, and nothing without one; whether it has."""
    if not isinstance(held, NoneType if rule is None else kind):
        expected = f"be None without `{name}`" if rule is None else f"be given with `{name}`"
        hint = f"Call simulation_state with {name}={rule is not None}"
        fail(f"{_OP}: `state.{field}` must {expected}, got {type_words(held)}. {hint}.")
    return held is not None


def _check_history(called: str, array: Unchecked, shape: tuple[int, ...]) -> None:
    axes = "neurons" if len(shape) == 1 else "max_delay, neurons"
    check_shape(_OP, called, array, shape, axes, _MADE_WITH)
    check_float_array(_OP, called, array)


def check_plasticity(
    synapses: DelayedSynapses, state: SimulationState, stdp: Unchecked, short_term: Unchecked
) -> None:
    """Check the rules of plasticity, and that the state has what they carry."""
    each = (synapses.num_neurons,)
    earlier = (synapses.max_delay, *each)
    if _check_held("stdp", stdp, "traces", state.traces, STDPTraces):
        for part, shape in zip(STDPTraces._fields, (earlier, each), strict=True):
            _check_history(f"state.traces.{part}", getattr(state.traces, part), shape)
    if _check_held("short_term", short_term, "short_term", state.short_term, ShortTermState):
        for part in ShortTermState._fields:
            _check_history(f"state.short_term.{part}", getattr(state.short_term, part), each)
    if _check_held("short_term", short_term, "released", state.released, jax.Array):
        _check_history("state.released", state.released, earlier)
    if short_term is not None:
        check_short_term(_OP, "short_term", short_term, synapses.num_neurons)
    if stdp is None:
        return
    weights = synapses.strengths
    if weights is None or isinstance(weights, Quantised):
        given = "bfloat16" if weights is None else "int8"
        fail(
            f"{_OP}: `synapses.weights` must be float32 or float64 with `stdp`, got {given}: small changes would be "
            "lost. Cast them."
        )
    check_stdp(_OP, "stdp", stdp, weights, "synapses.weights")


def constant(op: str, name: str, value: Array, num_neurons: int) -> Array:
    """A constant of neurons ``[..., neurons or 1]``, checked."""
    if value.shape[-1] not in (1, num_neurons):
        argument = _GIVEN_AS.get(name, name)
        fail(
            f"{op}: `{argument}` must have one number, or one for each of {num_neurons} neurons, "
            f"got {value.shape[-1]}. Make them for as many neurons."
        )
    return value
