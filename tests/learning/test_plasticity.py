"""STDP and short-term plasticity against their equations, and which weights they touch."""

import dataclasses
from collections.abc import Callable
from typing import Any

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from snnjax import SparseSpikes, Synapses
from snnjax.plasticity import STDP, ShortTerm, STDPTraces, short_term, short_term_state, stdp, stdp_traces
from tests.numbers import array

INPUTS, NEURONS, STEPS = 7, 5, 30
RATES, DECAYS = (0.1, 0.08), (0.8, 0.9)
RULE = STDP(DECAYS, RATES)


def test_steps_equal_the_equation() -> None:
    """Dense loops in float64; weights start away from their bounds, and meet both."""
    rng = np.random.default_rng(0)
    s, z = rng.random((STEPS, INPUTS)) < 0.2, rng.random((STEPS, NEURONS)) < 0.3
    w = rng.uniform(0.2, 0.8, (INPUTS, NEURONS))
    weights, traces = jnp.asarray(w, jnp.float32), stdp_traces(jnp.asarray(w, jnp.float32))
    x, y = np.zeros(INPUTS), np.zeros(NEURONS)
    step = jax.jit(lambda *given: stdp(*given, rule=RULE))
    for now, later in zip(s, z, strict=True):
        x, y = DECAYS[0] * x, DECAYS[1] * y
        change = RATES[0] * np.outer(x, later) - RATES[1] * np.outer(now, y)
        w = np.where(now[:, None] | later[None, :], np.clip(w + change, 0, 1), w)
        x, y = x + now, y + later
        lists = (SparseSpikes.from_dense(array(each, jnp.float32), len(each)) for each in (now, later))
        weights, traces = step(weights, traces, *lists)
        np.testing.assert_allclose(weights, w, atol=1e-5)
    np.testing.assert_allclose(traces.before, x, atol=1e-5)
    np.testing.assert_allclose(traces.after, y, atol=1e-5)
    assert np.min(w) == 0
    assert np.max(w) == 1


def test_sparse_steps_equal_dense_ones() -> None:
    """Of two receptors: targets n and NEURONS + n are those of neuron n. Sums of three numbers, in float32."""
    rng = np.random.default_rng(1)
    mask = rng.random((INPUTS, 2 * NEURONS)) < 0.5
    synapses = Synapses.from_mask(mask)
    dense = array(rng.uniform(0.2, 0.8, mask.shape), jnp.float32)
    weights, traces = dense[mask], stdp_traces(dense[mask], synapses, receptors=2)
    assert (traces.before.shape, traces.after.shape) == ((INPUTS,), (NEURONS,))
    halves = [dense[:, :NEURONS], dense[:, NEURONS:]]
    others = [stdp_traces(half) for half in halves]
    step = jax.jit(lambda *given, **options: stdp(*given, rule=RULE, **options))
    for _ in range(STEPS):
        before, after = (
            SparseSpikes.from_dense(array(rng.random(size) < 0.3, jnp.float32), size)
            for size in (INPUTS, NEURONS)
        )
        weights, traces = step(weights, traces, before, after, synapses=synapses)
        each = [step(*own, before, after) for own in zip(halves, others, strict=True)]
        halves, others = [half for half, _ in each], [own for _, own in each]
    np.testing.assert_allclose(weights, jnp.concatenate(halves, axis=1)[mask], atol=1e-6)
    np.testing.assert_allclose(traces.after, others[0].after, atol=1e-6)


def test_short_term_plasticity_is_that_of_its_equation() -> None:
    """Between spikes x -> 1 and u -> 0 exponentially; at a spike u grows by U (1 - u), and u x is used."""
    use, taus, rng = 0.3, (200.0, 50.0), np.random.default_rng(0)
    spikes = rng.random((60, 3)) < np.array([0.0, 0.2, 1.0])
    u, x = np.zeros(3), np.ones(3)
    decay = float(np.exp(-1 / taus[0])), float(np.exp(-1 / taus[1]))
    state, release = short_term_state(3), jnp.zeros(3)
    step = jax.jit(lambda state, own: short_term(state, own, ShortTerm(use, decay)))
    for now in spikes:
        raised = u + use * (1 - u)
        x, u = np.where(now, x - raised * x, x), np.where(now, raised, u)
        x, u = 1 - decay[0] * (1 - x), decay[1] * u
        state, release = step(state, SparseSpikes.from_dense(array(now, jnp.float32), 3))
        np.testing.assert_allclose(release, (u + use * (1 - u)) * x, atol=1e-5)
    np.testing.assert_allclose(release[0], use, atol=1e-6)  # who never spikes has all
    assert release[2] < release[1] < use


def test_only_rows_and_columns_of_spikes_are_touched() -> None:
    """A weight that is NaN stays by itself; duplicates and values of 0 count once and not at all."""
    weights = jnp.full((3, 3), jnp.nan).at[1].set(0.5).at[:, 2].set(0.5)
    traces = STDPTraces(jnp.ones(3), jnp.ones(3))
    row = SparseSpikes.from_ids(jnp.array([1, 1, 3]), 3)
    column = SparseSpikes.from_ids(jnp.array([2, 0]), 3)
    column = dataclasses.replace(column, values=jnp.array([1.0, 0.0]))
    after, _ = stdp(weights, traces, row, column, STDP(1.0, rates=(0.25, 0.125)))
    expected = np.full((3, 3), np.nan)
    expected[:, 2], expected[1] = 0.75, 0.375
    expected[1, 2] = 0.625
    np.testing.assert_array_equal(after, expected)


@pytest.mark.parametrize("synapses", [None, Synapses.from_mask(np.ones((3, 2), bool))])
def test_weights_that_are_not_plastic_stay(synapses: Synapses | None) -> None:
    """Of a step in which all would change; those that stay may be beyond the bounds."""
    weights = jnp.array([[0.5, 1.5], [0.25, 0.5], [-1.0, 0.5]])
    weights = weights if synapses is None else weights.reshape(-1)
    traces = STDPTraces(jnp.array([1.0, 2.0, 3.0]), jnp.zeros(2))
    silent, fires = SparseSpikes.from_ids(jnp.array([3]), 3), SparseSpikes.from_ids(jnp.array([0, 1]), 2)
    chosen = jnp.array([[True, False], [False, True], [False, True]]).reshape(weights.shape)
    rule = STDP(rates=(0.125, 0.0), bounds=(-1.0, 2.0))
    given = (weights, traces, silent, fires)
    after, _ = stdp(*given, rule=rule._replace(plastic=chosen), synapses=synapses)
    everything, _ = stdp(*given, rule=rule, synapses=synapses)
    assert jnp.all(everything != weights)
    chex.assert_trees_all_equal(after, jnp.where(chosen, everything, weights))
    outside = jnp.where(chosen, weights, 9.0)
    kept, _ = stdp(outside, *given[1:], rule=rule._replace(plastic=chosen), synapses=synapses)
    chex.assert_trees_all_equal(kept, jnp.where(chosen, everything, 9.0))


def test_lists_that_do_not_fit_are_refused() -> None:
    weights = jnp.ones((3, 2))
    list_of_two = SparseSpikes.from_ids(jnp.array([0]), 2)
    message = (
        "stdp: `before` must hold 3 neurons, like the weights, got 2. "
        "Pass one row of weights per input, and one column per neuron."
    )
    with pytest.raises(ValueError) as caught:
        stdp(weights, stdp_traces(weights), list_of_two, list_of_two, RULE)
    assert str(caught.value) == message
    with pytest.raises(ValueError) as caught:
        stdp(weights, stdp_traces(weights), jnp.ones(3), list_of_two, RULE)  # type: ignore[arg-type]
    assert str(caught.value) == (
        "stdp: `before` must be SparseSpikes, got an array. Build it with SparseSpikes.from_ids or from_dense."
    )


SYNAPSES = Synapses.from_mask(np.ones((3, 2), bool))


@pytest.mark.parametrize(
    "call, message",
    [
        (
            lambda one, two: stdp(
                jnp.ones(5), stdp_traces(jnp.ones((3, 2))), one, two, RULE, synapses=SYNAPSES
            ),
            "stdp: `weights` must have shape [synapses] = [6], got [5]. Pass one for each synapse.",
        ),
        (
            lambda one, two: stdp(jnp.ones(6), stdp_traces(jnp.ones((3, 2))), one, two, RULE),
            "stdp: `weights` must have shape [inputs, neurons], got [6]. Or pass their synapses.",
        ),
        (
            lambda one, two: stdp(
                jnp.ones(6), stdp_traces(jnp.ones((2, 2))), one, two, RULE, synapses=SYNAPSES
            ),
            "stdp: `traces.before` must have shape [neurons] = [3], got [2]. Make them with stdp_traces of these "
            "synapses.",
        ),
        (
            lambda one, two: stdp(
                jnp.ones(6), stdp_traces(jnp.ones((3, 4))), one, two, RULE, synapses=SYNAPSES
            ),
            "stdp: `traces.after` must be of neurons with all 2 targets as their receptors, got 4. Make them with "
            "stdp_traces of these synapses.",
        ),
        (
            lambda one, two: short_term(short_term_state(2), one, ShortTerm(0.5, (0.5, 0.0))),
            "short_term: `spikes` must hold 2 neurons, like the state, got 3. Pass those of the neurons that send.",
        ),
        (
            lambda one, two: short_term(short_term_state(3), one, ShortTerm(0.5, (0.5, 1.5))),
            "short_term: `rule.decay` must be between 0 and 1, got 1.5. A decay is exp(-dt / tau).",
        ),
        (
            lambda one, two: short_term(short_term_state(3), one, ShortTerm(-1.0, (0.5, 0.5))),
            "short_term: `rule.use` must be between 0 and 1, got -1.0. It is a share.",
        ),
        (
            lambda one, two: stdp(jnp.ones((3, 2), int), stdp_traces(jnp.ones((3, 2))), one, two, RULE),
            "stdp: `weights` must have a floating-point dtype, got int32. Cast it with weights.astype(jnp.float32).",
        ),
        (
            lambda one, two: stdp(
                jnp.ones((3, 2)), STDPTraces(jnp.zeros(3, int), jnp.zeros(2, int)), one, two, RULE
            ),
            "stdp: `traces.before` must have a floating-point dtype, got int32. Cast it with "
            "traces.before.astype(jnp.float32).",
        ),
        (
            lambda one, two: short_term(short_term_state(3, jnp.int32), one, ShortTerm(0.5, (0.5, 0.5))),
            "short_term: `state.used` must have a floating-point dtype, got int32. Cast it with "
            "state.used.astype(jnp.float32).",
        ),
        (
            lambda one, two: stdp(jnp.ones((3, 2)), stdp_traces(jnp.ones((1, 2))), one, two, RULE),
            "stdp: `traces.before` must have shape [neurons] = [3], got [1]. Make them with stdp_traces of these "
            "weights.",
        ),
        (
            lambda one, two: stdp(
                jnp.ones((3, 2)), stdp_traces(jnp.ones((3, 2))), one, two, STDP(bounds=(1.0, 0.0))
            ),
            "stdp: `rule.bounds` must ascend, got (1, 0). Pass the smallest weight first.",
        ),
        (
            lambda one, two: stdp(-9 * jnp.ones((3, 2)), stdp_traces(jnp.ones((3, 2))), one, two, STDP()),
            "stdp: `weights` must be within `rule.bounds`, (0, 1), if they are plastic, got -9. Pass others, or "
            "rule.plastic without these weights.",
        ),
        (
            lambda one, two: stdp(
                jnp.ones((3, 2)), stdp_traces(jnp.ones((3, 2))), one, two, STDP(decay=np.nan)
            ),
            "stdp: `rule.decay` must hold finite numbers, got nan. Pass floats.",
        ),
        (
            lambda one, two: stdp_traces(jnp.ones((3, 4)), receptors=2),
            "stdp_traces: `receptors` must be 1 for dense weights, got 2. Pass their synapses.",
        ),
        (
            lambda one, two: stdp_traces(jnp.ones(6), SYNAPSES, receptors=3),
            "stdp_traces: `receptors` must divide the number of targets, 2, got 3. Pass how many each neuron has.",
        ),
    ],
)
def test_synapses_that_do_not_fit_are_refused(call: Callable[..., Any], message: str) -> None:
    with pytest.raises(ValueError) as caught:
        call(SparseSpikes.from_ids(jnp.array([0]), 3), SparseSpikes.from_ids(jnp.array([0]), 2))
    assert str(caught.value) == message
