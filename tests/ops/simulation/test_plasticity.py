"""`simulate` with plastic synapses: beside the functions of `snnjax.plasticity`, and what it refuses."""

import dataclasses
from typing import Any

import chex
import jax.numpy as jnp
import numpy as np
import pytest

from snnjax import DelayedSynapses, SparseSpikes, Synapses, simulate, simulation_state
from snnjax._types import State
from snnjax.plasticity import (
    STDP,
    ShortTerm,
    STDPTraces,
    short_term,
    short_term_state,
    stdp,
    stdp_traces,
)
from tests.errors.refusals import refusals
from tests.ops.common import jit
from tests.ops.simulation.test_errors import CELLS, HINT, SYNAPSES, WEIGHTS, call
from tests.ops.simulation.test_simulate import PULSES, STEPS, each_implementation, plastic_network, run


@each_implementation
@pytest.mark.parametrize("seed, receptors", [(2, 2), (5, 1)])
def test_plasticity_is_that_of_its_steps(seed: int, receptors: int, implementation: str) -> None:
    """Beside the functions of `snnjax.plasticity` between calls of one step; rounding of so many steps."""
    given, options = plastic_network(seed, 33, receptors, shared=False, delays=1, blocks=1)
    cells, synapses, state, key = given
    own = {"key": key, "steps": 1, "capacity": 33, "implementation": implementation}
    rule, short_rule = options.pop("stdp"), options.pop("short_term")
    currents = jnp.full((STEPS, 33), 6.0) if options["currents"] is None else options["currents"]
    options["currents"] = currents
    sources = synapses.sources()
    ends = jnp.cumsum(jnp.bincount(sources, length=33), dtype=jnp.int32)
    same = Synapses(ends, synapses.targets(), 33 * receptors)

    def steps(weights, state: State):
        traces, short, released = state.traces, state.short_term, state.released[0]
        traces = STDPTraces(traces.before[0] / rule.decay[0], traces.after)
        arrived = jnp.flatnonzero(
            jnp.unpackbits(state.sent[0], count=33, bitorder="little"), size=33, fill_value=33
        )
        arrived = SparseSpikes.from_ids(arrived, 33)
        state = state._replace(traces=None, short_term=None, released=None)
        for t in range(STEPS):
            sent = synapses.with_weights(weights * released[sources])
            out, state = simulate(cells, sent, state, **(options | own | {"currents": currents[t : t + 1]}))
            spikes = out.spikes[0]
            weights, traces = stdp(weights, traces, arrived, spikes, rule, synapses=same)
            released = (short.used + short_rule.use * (1 - short.used)) * short.available
            short, _ = short_term(short, spikes, short_rule)
            arrived = spikes
        return weights, (rule.decay[0] * traces.before, traces.after), short

    expected = jit(steps)(synapses.weights(), state)
    rules = {"stdp": rule, "short_term": short_rule, "steps": STEPS}
    out, got = run(cells, synapses, state, **(options | own | rules))
    assert int(out.counts.sum()) > 20
    assert jnp.sum(out.weights != synapses.weights()) > 10
    after = out.weights, (got.traces.before[0], got.traces.after), got.short_term
    chex.assert_trees_all_close(after, expected, rtol=1e-5, atol=1e-5)


@each_implementation
def test_pairs_change_weights_as_in_the_textbook(implementation: str) -> None:
    """By rate times exp(-distance / tau) for each arrival and spike, in float64; rounding of 40 steps."""
    steps, size, dt, taus, rates = 40, 5, 1.0, (20.0, 30.0), (0.01, 0.012)
    rng = np.random.default_rng(0)
    spikes = rng.random((steps, size)) < 0.2
    fed = {"leak": jnp.zeros(1), "gain": jnp.ones(1), "effect": jnp.zeros((1, 1))}  # the currents alone
    cells, everyone = dataclasses.replace(PULSES, **fed), Synapses.from_mask(np.ones((size, size), bool))
    delays = rng.integers(1, 6, size**2)
    synapses = DelayedSynapses.of(everyone, jnp.zeros(size**2), delays, blocks=2)
    rule = STDP((float(np.exp(-dt / taus[0])), float(np.exp(-dt / taus[1]))), rates, (-9.0, 9.0))
    options: dict[str, Any] = {"steps": steps, "implementation": implementation, "stdp": rule}
    state = simulation_state(cells, synapses, stdp=True)
    out, _ = run(cells, synapses, state, currents=jnp.asarray(spikes, jnp.float32), **options)
    np.testing.assert_array_equal(out.counts, spikes.sum(axis=0))
    late = dt * (
        np.arange(steps)[None, :] - np.arange(steps)[:, None]
    )  # of the second event behind the first
    stronger, weaker = (
        np.where(late > 0, rate * np.exp(-late / tau), 0) for rate, tau in zip(rates, taus, strict=True)
    )
    ends = zip(synapses.sources(), synapses.targets(), synapses.delays(), strict=True)
    for got, (source, target, delay) in zip(out.weights, ends, strict=True):
        arrives = np.concatenate([np.zeros(delay), spikes[: steps - int(delay), source]])
        fires = spikes[:, target].astype(float)
        np.testing.assert_allclose(got, arrives @ stronger @ fires - fires @ weaker @ arrives, atol=1e-6)


PLASTIC = simulation_state(CELLS, SYNAPSES, stdp=True, short_term=True)


def plastic(**changed):
    return call(**({"state": PLASTIC, "stdp": STDP(), "short_term": ShortTerm(0.5, (0.5, 0.0))} | changed))


NOBODY = SparseSpikes.from_ids(jnp.array([1]), num_neurons=1)
ELIGIBLE = simulation_state(CELLS, SYNAPSES, stdp=True, eligibility=True, short_term=True)
REFUSED = {
    "simulate: `state.traces` must be given with `stdp`, got None. "
    "Call simulation_state with stdp=True.": lambda: call(stdp=STDP()),
    "simulate: `state.short_term` must be None without `short_term`, got a ShortTermState. "
    "Call simulation_state with short_term=False.": lambda: call(state=PLASTIC, stdp=STDP()),
    f"simulate: `state.traces.after` must have shape [neurons] = [3], got [2]. {HINT}": lambda: plastic(
        state=PLASTIC._replace(traces=STDPTraces(jnp.zeros((1, 3)), jnp.zeros(2)))
    ),
    "simulate: `synapses.weights` must be float32 or float64 with `stdp`, got bfloat16: small changes would be "
    "lost. Cast them.": lambda: plastic(synapses=SYNAPSES.with_weights(WEIGHTS.astype(jnp.bfloat16))),
    "simulate: `stdp` must be an STDP, got a float. Make it with snnjax.plasticity.STDP.": lambda: plastic(
        stdp=0.1
    ),
    "simulate: `stdp.decay` must be between 0 and 1, got 20.0. A decay is exp(-dt / tau).": lambda: plastic(
        stdp=STDP(decay=20.0)
    ),
    "simulate: `stdp.rates` must be a pair of numbers, got 0.1. Pass both.": lambda: plastic(
        stdp=STDP(rates=0.1)
    ),
    "simulate: `stdp.rates` must hold finite numbers, got inf. Pass floats.": lambda: plastic(
        stdp=STDP(rates=(0.1, np.inf))
    ),
    "simulate: `stdp.bounds` must ascend, got (1, 0). Pass the smallest weight first.": lambda: plastic(
        stdp=STDP(bounds=(1.0, 0.0))
    ),
    "simulate: `synapses.weights` must be within `stdp.bounds`, (0, 1), if they are plastic, got -9. Pass others, "
    "or stdp.plastic without these weights.": lambda: plastic(
        synapses=SYNAPSES.with_weights(WEIGHTS.at[4].set(-9.0)), stdp=STDP()
    ),
    "simulate: `stdp.plastic` must be an array of bool, got float32[9]. Compare something.": lambda: plastic(
        stdp=STDP(plastic=jnp.ones(9))
    ),
    "simulate: `stdp.plastic` must have shape [synapses] = [9], got [8]. "
    "Give it the shape of the weights.": lambda: plastic(stdp=STDP(plastic=jnp.ones(8, bool))),
    "simulate: `short_term` must be a ShortTerm, got a float. "
    "Make it with snnjax.plasticity.ShortTerm.": lambda: plastic(short_term=0.5),
    "simulate: `short_term.use` must be between 0 and 1, got 1.5. It is a share.": lambda: plastic(
        short_term=ShortTerm(1.5, (0.5, 0.5))
    ),
    "simulate: `short_term.decay` must be a scalar or have shape [neurons] = [3], got [2]. "
    "Pass one value, or one per neuron.": lambda: plastic(short_term=ShortTerm(0.5, (0.5, jnp.ones(2)))),
    "simulate: `short_term.decay` must be a pair of numbers, got 0.5. Pass both.": lambda: plastic(
        short_term=ShortTerm(0.5, 0.5)
    ),
    "simulate: `modulation` must be None without `stdp`, got 1.0. Pass the rule that it modulates.": lambda: (
        call(modulation=1.0)
    ),
    "simulate: `modulation` must be one number or one for each of 2 steps, got [3]. Pass either.": lambda: (
        plastic(modulation=jnp.ones(3))
    ),
    "simulate: `state.traces.eligibility` must be given with this `stdp`, got None. "
    "Call simulation_state with eligibility=True.": lambda: plastic(
        stdp=STDP(eligibility=0.5), modulation=1.0
    ),
    "simulate: `modulation` must be given with `stdp.eligibility`, got None. "
    "Weights would not change.": lambda: plastic(stdp=STDP(eligibility=0.5), state=ELIGIBLE),
    "simulate: `stdp.eligibility` must be between 0 and 1, got 50.0. A decay is exp(-dt / tau).": lambda: (
        plastic(stdp=STDP(eligibility=50.0))
    ),
    "stdp: `weights` must be float32 or float64, got bfloat16: small changes would be lost. Cast them.": lambda: (
        stdp(jnp.zeros((1, 1), "bfloat16"), stdp_traces(jnp.zeros((1, 1))), NOBODY, NOBODY, STDP())
    ),
    "short_term: `state.used` must be float32 or float64, got float16: small changes would be lost. Cast them.": (
        lambda: short_term(short_term_state(1, "float16"), NOBODY, ShortTerm(0.5, (0.9, 0.9)))
    ),
    "stdp: `rule.eligibility` must be None, got 0.5. Modulate weights with snnjax.simulate.": lambda: stdp(
        jnp.zeros((1, 1)), stdp_traces(jnp.zeros((1, 1))), NOBODY, NOBODY, STDP(eligibility=0.5)
    ),
}
test_wrong_rule_or_state_says_so = refusals(REFUSED)
