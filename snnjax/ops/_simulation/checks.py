"""Checks of the arguments of `simulate`."""

import math
from collections.abc import Iterator, Sequence
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
    check_number,
    check_per_neuron,
    check_shape,
    check_within,
    concrete,
    fail,
    plural,
    short_repr,
    type_words,
)
from snnjax._delayed_synapses import DelayedSynapses
from snnjax._plasticity import STDP, ShortTermState, STDPTraces, check_short_term, check_stdp
from snnjax._quantised import Quantised
from snnjax._types import State, Unchecked
from snnjax.ops._simulation.cells import Cells
from snnjax.ops._simulation.input import PoissonInput, SpikeTrains
from snnjax.ops._simulation.records import Record, SimulationState, SynapticLIF

_OP = "simulate"
_MADE_WITH = "Call simulation_state with these neurons and synapses"
_SAME_STEP = 1e-6  # relative: a length of a step may have been rounded to float32


def check_neurons(op: str, neurons: Unchecked) -> None:
    if not isinstance(neurons, SynapticLIF | Cells):
        hint = "Make them with neurons.cuba_lif, neurons.coba_lif or circuits.Populations.cells"
        fail(f"{op}: `neurons` must be a SynapticLIF or Cells, got {type_words(neurons)}. {hint}.")


def check_cells(op: str, neurons: Cells, v: Unchecked) -> None:
    if v is not None:
        hint = "Change SimulationState.cells with _replace"
        fail(f"{op}: `v` must be None for cells of several models, got {short_repr(v)}. {hint}.")


def check_synapses(op: str, neurons: SynapticLIF | Cells, synapses: Unchecked) -> None:
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
    if isinstance(neurons, Cells) and sum(neurons.sizes) != synapses.num_neurons:
        actual, hint = sum(neurons.sizes), "Make both with one circuits.Populations"
        fail(f"{op}: `neurons` must be {synapses.num_neurons}, those of the synapses, got {actual}. {hint}.")


def check_network(neurons: Unchecked, synapses: Unchecked) -> None:
    check_neurons(_OP, neurons)
    check_synapses(_OP, neurons, synapses)


def check_conductances(
    neurons: SynapticLIF | Cells,
    synapses: DelayedSynapses,
    poisson: Sequence[PoissonInput],
    stdp: Unchecked,
) -> None:
    """Check that what spikes add is not negative, if it is a conductance."""
    for argument, added in _conductances(neurons, synapses, poisson, stdp):
        known = concrete(added)
        if known is not None and np.any(known < 0):
            hint = "The reversal potential makes a synapse inhibitory"
            least = float(np.min(known))
            fail(f"{_OP}: `{argument}` must be at least 0 with conductances, got {least:g}. {hint}.")


def _conductances(
    neurons: SynapticLIF | Cells,
    synapses: DelayedSynapses,
    poisson: Sequence[PoissonInput],
    stdp: Unchecked,
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
    for source in poisson:
        yield "poisson.weights", source.weights
    if stdp is not None:
        yield "stdp.bounds", stdp.bounds[0]


def traced_faults(
    neurons: SynapticLIF | Cells,
    synapses: DelayedSynapses,
    poisson: Sequence[PoissonInput],
    stdp: Unchecked,
) -> list[Array]:
    """Whether traced arguments are out of range, about which no error can be raised: a boolean for each."""
    added = (each for _, each in _conductances(neurons, synapses, poisson, stdp) if concrete(each) is None)
    return [jnp.any(each < 0) for each in added]


def check_state(neurons: SynapticLIF | Cells, synapses: DelayedSynapses, state: State) -> None:
    if not isinstance(state, SimulationState):
        fail(f"{_OP}: `state` must be a SimulationState, got {short_repr(state)}. Call simulation_state.")
    num_neurons, arrivals = synapses.num_neurons, synapses.max_delay
    each = (neurons.num_receptors, num_neurons)
    hint = _MADE_WITH
    if isinstance(neurons, Cells) != (state.cells is not None):
        given = "one of leaky neurons" if state.cells is None else "one of several models"
        fail(f"{_OP}: `state` must be of these neurons, got {given}. {hint}.")
    check_shape(_OP, "state.sent", state.sent, (arrivals, (num_neurons + 7) // 8), "max_delay, bytes", hint)
    check_shape(_OP, "state.step", state.step, (), "", hint)
    check_integers(_OP, "state.step", state.step)
    if state.sent.dtype != jnp.uint8:
        fail(f"{_OP}: `state.sent` must hold bits, uint8, got {short_repr(state.sent)}. {hint}.")
    if isinstance(neurons, Cells):
        return
    check_shape(_OP, "state.v", state.v, (num_neurons,), "neurons", hint)
    check_shape(_OP, "state.received", state.received, each, "receptors, neurons", hint)
    check_shape(_OP, "state.remaining", state.remaining, (num_neurons,), "neurons", hint)
    for name in ("v", "received"):
        check_float_array(_OP, f"state.{name}", getattr(state, name))
    check_integers(_OP, "state.remaining", state.remaining)


def check_input(
    neurons: SynapticLIF | Cells, num_neurons: int, steps: int, given: Unchecked, key: Unchecked
) -> None:
    """Check what neurons are given: currents, noise, Poisson sources, spikes."""
    currents, noise, poisson, spikes = given
    if isinstance(currents, tuple):
        _check_courses(currents, num_neurons, steps)
    elif currents is not None:
        check_float_array(_OP, "currents", currents)
        width = 1 if currents.ndim == 2 and currents.shape[1] == 1 else num_neurons
        hint = "Pass a row for each step"
        check_shape(_OP, "currents", currents, (steps, width), "steps, neurons", hint)
    if noise is not None:
        check_per_neuron(_OP, "noise", noise, num_neurons)
        check_float_array(_OP, "noise", noise)
    for k, source in enumerate(poisson):
        _check_source("poisson" if len(poisson) == 1 else f"poisson[{k}]", neurons, source, steps)
    if spikes is not None:
        _check_spikes(spikes, num_neurons, neurons.dt)
    if poisson or noise is not None:
        check_key(_OP, key)


def _check_courses(currents: tuple[Any, ...], num_neurons: int, steps: int) -> None:
    if len(currents) != 2:
        hint = "Pass time courses and their shares"
        fail(f"{_OP}: `currents` must be an array or a pair, got {plural(len(currents), 'array')}. {hint}.")
    courses, shares = currents
    check_float_array(_OP, "currents[0]", courses)
    check_float_array(_OP, "currents[1]", shares)
    check_shape(_OP, "currents[0]", courses, (steps, None), "steps, courses", "Pass a row for each step")
    width = 1 if shares.shape[-1:] == (1,) else num_neurons
    hint = "Pass what each neuron receives of each course"
    check_shape(_OP, "currents[1]", shares, (courses.shape[1], width), "courses, neurons", hint)


def _check_source(name: str, neurons: SynapticLIF | Cells, source: Unchecked, steps: int) -> None:
    if not isinstance(source, PoissonInput):
        fail(f"{_OP}: `{name}` must be a PoissonInput, got {short_repr(source)}. Call PoissonInput.of.")
    if source.receptor >= neurons.num_receptors:
        fail(
            f"{_OP}: `{name}.receptor` must be below {neurons.num_receptors}, the number of receptors, "
            f"got {source.receptor}. Choose one of them."
        )
    if not math.isclose(source.dt, neurons.dt, rel_tol=_SAME_STEP):
        hint = "Make both with one dt"
        fail(f"{_OP}: `{name}.dt` must be that of the neurons, {neurons.dt:g}, got {source.dt:g}. {hint}.")
    rows = source.limits.shape[0]
    if rows not in (1, steps):
        hint = "Pass a rate for each step of the call"
        fail(f"{_OP}: `{name}.rate` must be of one step or all {steps}, got {rows}. {hint}.")


def _check_spikes(spikes: Unchecked, num_neurons: int, dt: float) -> None:
    if not isinstance(spikes, SpikeTrains):
        fail(f"{_OP}: `spikes` must be SpikeTrains, got {short_repr(spikes)}. Call circuits.SpikeTrains.of.")
    if not math.isclose(spikes.dt, dt, rel_tol=_SAME_STEP):
        fail(
            f"{_OP}: `spikes.dt` must be that of the neurons, {dt:g}, got {spikes.dt:g}. Make both with one dt."
        )
    check_within(_OP, "spikes.ids", spikes.ids, num_neurons - 1, "Pass ids of neurons")


def check_record(
    neurons: SynapticLIF | Cells, synapses: DelayedSynapses, record: Unchecked, stdp: Unchecked
) -> None:
    """Check ids of neurons and synapses; for a traced id out of range, NaN is recorded."""
    if record is None:
        return
    if not isinstance(record, Record):
        fail(f"{_OP}: `record` must be a Record, got {short_repr(record)}. Call circuits.Record.of.")
    check_within(_OP, "record.neurons", record.ids, synapses.num_neurons - 1, "Pass ids of neurons")
    if record.received and isinstance(neurons, Cells):
        hint = "Let the model hold them"
        fail(f"{_OP}: `record.received` must be False with cells of several models, got True. {hint}.")
    if record.synapses is not None:
        if stdp is None:
            fail(f"{_OP}: `record.synapses` must be None without `stdp`, got some. Others do not change.")
        most, hint = synapses.num_synapses - 1, "Pass numbers of synapses"
        check_within(_OP, "record.synapses", record.synapses, most, hint)


def _check_held(name: str, rule: Unchecked, field: str, held: Unchecked, kind: type) -> bool:
    """Check that a state has what a rule carries, and nothing without a rule; return whether there is a rule."""
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
    synapses: DelayedSynapses,
    state: SimulationState,
    stdp: Unchecked,
    short_term: Unchecked,
    modulation: Unchecked,
    steps: int,
) -> None:
    """Check the rules of plasticity, and that the state has what they carry."""
    each = (synapses.num_neurons,)
    earlier = (synapses.max_delay, *each)
    if _check_held("stdp", stdp, "traces", state.traces, STDPTraces):
        for part, shape in (("before", earlier), ("after", each)):
            _check_history(f"state.traces.{part}", getattr(state.traces, part), shape)
    if _check_held("short_term", short_term, "short_term", state.short_term, ShortTermState):
        for part in ShortTermState._fields:
            _check_history(f"state.short_term.{part}", getattr(state.short_term, part), each)
    if _check_held("short_term", short_term, "released", state.released, jax.Array):
        _check_history("state.released", state.released, earlier)
    if short_term is not None:
        check_short_term(_OP, "short_term", short_term, synapses.num_neurons)
    if stdp is None:
        if modulation is not None:
            given = short_repr(modulation)
            fail(
                f"{_OP}: `modulation` must be None without `stdp`, got {given}. Pass the rule that it modulates."
            )
        return
    weights = synapses.strengths
    if weights is None or isinstance(weights, Quantised):
        given = "bfloat16" if weights is None else "int8"
        fail(
            f"{_OP}: `synapses.weights` must be float32 or float64 with `stdp`, got {given}: small changes would be "
            "lost. Cast them."
        )
    check_stdp(_OP, "stdp", stdp, weights, "synapses.weights")
    _check_third_factor(synapses, state, stdp, modulation, steps)


def _check_third_factor(
    synapses: DelayedSynapses, state: SimulationState, stdp: STDP, modulation: Unchecked, steps: int
) -> None:
    if modulation is not None:
        check_number(_OP, "modulation", modulation)
        if np.shape(modulation) not in ((), (1,), (steps,)):
            given = list(np.shape(modulation))
            fail(
                f"{_OP}: `modulation` must be one number or one for each of {steps} steps, got {given}. Pass either."
            )
    eligibility = state.traces and state.traces.eligibility
    if (stdp.eligibility is None) != (eligibility is None):
        expected = "None" if stdp.eligibility is None else "given"
        hint = f"Call simulation_state with eligibility={stdp.eligibility is not None}"
        fail(
            f"{_OP}: `state.traces.eligibility` must be {expected} with this `stdp`, got {type_words(eligibility)}. "
            f"{hint}."
        )
    if stdp.eligibility is None:
        return
    if modulation is None:
        fail(
            f"{_OP}: `modulation` must be given with `stdp.eligibility`, got None. Weights would not change."
        )
    hint = _MADE_WITH
    check_shape(_OP, "state.traces.eligibility", eligibility, (synapses.num_synapses,), "synapses", hint)
    check_float_array(_OP, "state.traces.eligibility", eligibility)
