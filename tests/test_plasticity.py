"""STDP against its equation, weight by weight, and which weights it touches."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from snnjax import SparseSpikes
from snnjax.plasticity import STDPTraces, stdp, stdp_traces

INPUTS, NEURONS, STEPS = 7, 5, 30
RATES, DECAYS = (0.1, 0.08), (0.8, 0.9)


def test_steps_equal_the_equation() -> None:
    """Dense loops in float64; weights start away from their bounds, and meet both."""
    rng = np.random.default_rng(0)
    s, z = rng.random((STEPS, INPUTS)) < 0.2, rng.random((STEPS, NEURONS)) < 0.3
    w = rng.uniform(0.2, 0.8, (INPUTS, NEURONS))
    weights, traces = jnp.asarray(w, jnp.float32), stdp_traces(jnp.asarray(w, jnp.float32))
    x, y = np.zeros(INPUTS), np.zeros(NEURONS)
    step = jax.jit(lambda *given: stdp(*given, decay=DECAYS, rates=RATES))
    for now, later in zip(s, z, strict=True):
        change = RATES[0] * np.outer(x, later) - RATES[1] * np.outer(now, y)
        w = np.where(now[:, None] | later[None, :], np.clip(w + change, 0, 1), w)
        x, y = DECAYS[0] * x + now, DECAYS[1] * y + later
        lists = (SparseSpikes.from_dense(jnp.asarray(each, jnp.float32), len(each)) for each in (now, later))
        weights, traces = step(weights, traces, *lists)
        np.testing.assert_allclose(weights, w, atol=1e-5)
    np.testing.assert_allclose(traces.before, x, atol=1e-5)
    np.testing.assert_allclose(traces.after, y, atol=1e-5)
    assert np.min(w) == 0
    assert np.max(w) == 1


def test_only_rows_and_columns_of_spikes_are_touched() -> None:
    """A weight that is NaN stays by itself; duplicates and values of 0 count once and not at all."""
    weights = jnp.full((3, 3), jnp.nan).at[1].set(0.5).at[:, 2].set(0.5)
    traces = STDPTraces(jnp.ones(3), jnp.ones(3))
    row = SparseSpikes.from_ids(jnp.array([1, 1, 3]), 3)
    column = SparseSpikes.from_ids(jnp.array([2, 0]), 3)
    column = dataclasses.replace(column, values=jnp.array([1.0, 0.0]))
    after, _ = stdp(weights, traces, row, column, rates=(0.25, 0.125))
    expected = np.full((3, 3), np.nan)
    expected[:, 2], expected[1] = 0.75, 0.375
    expected[1, 2] = 0.625
    np.testing.assert_array_equal(after, expected)


def test_lists_that_do_not_fit_are_refused() -> None:
    weights = jnp.ones((3, 2))
    list_of_two = SparseSpikes.from_ids(jnp.array([0]), 2)
    message = (
        "stdp: `before` must hold 3 neurons, like the weights, got 2. "
        "Pass one row of weights per input, and one column per neuron."
    )
    with pytest.raises(ValueError) as caught:
        stdp(weights, stdp_traces(weights), list_of_two, list_of_two)
    assert str(caught.value) == message
    with pytest.raises(ValueError) as caught:
        stdp(weights, stdp_traces(weights), jnp.ones(3), list_of_two)  # type: ignore[arg-type]
    assert str(caught.value) == (
        "stdp: `before` must be SparseSpikes, got an array. Build it with SparseSpikes.from_ids or from_dense."
    )
