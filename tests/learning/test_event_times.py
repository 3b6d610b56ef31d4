"""Spike times against a fine simulation, and their gradients against finite differences."""

import decimal
from decimal import Decimal
from typing import Any

import chex
import hypothesis
import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from snnjax.event_times import first_spike_times
from tests.numbers import assert_close
from tests.ops.common import jit

STEP = 1e-6  # of central differences in float64


def drawn() -> tuple[Any, Any]:
    """Times with one input that is silent, and weights of both signs that leave some neurons silent."""
    rng = np.random.default_rng(0)
    times = rng.uniform(0, 20, (3, 6))
    times[0, 2] = np.inf
    return times, rng.normal(1.0, 1.5, (6, 8))


def test_times_are_those_of_a_simulation() -> None:
    """By exponential steps of 0.001: the first step above the threshold is at most one step late."""
    times, weights = drawn()
    with jax.enable_x64(True):
        out = np.asarray(first_spike_times(jnp.asarray(times), jnp.asarray(weights)))
    step = 1e-3
    v, current, first = np.zeros((3, 8)), np.zeros((3, 8)), np.full((3, 8), np.inf)
    for now in np.arange(0, 60, step):
        v += step * (current - v) / 20.0
        current = current * np.exp(-step / 5.0) + ((times > now) & (times <= now + step)) @ weights
        first = np.where(np.isinf(first) & (v > 1), now + step, first)
    assert 0 < np.sum(np.isfinite(first)) < first.size
    chex.assert_trees_all_equal(np.isfinite(out), np.isfinite(first), strict=True)
    spikes = np.isfinite(first)
    # Explicit steps of a shallow rise: a few of them.
    chex.assert_trees_all_close(out[spikes], first[spikes], atol=20 * step, rtol=0, strict=True)


def test_gradient_equals_finite_differences_of_the_times() -> None:
    with jax.enable_x64(True):
        times, weights = (jnp.asarray(each) for each in drawn())
        shares = jnp.asarray(np.random.default_rng(1).normal(size=(3, 8)))

        @jax.jit
        def loss(times, weights):
            out = first_spike_times(times, weights)
            return jnp.sum(jnp.where(jnp.isfinite(out), shares * out, 0))

        by_times, by_weights = jax.grad(loss, (0, 1))(times, weights)
        for place in np.ndindex(weights.shape):
            up, down = (loss(times, weights.at[place].add(h)) for h in (STEP, -STEP))
            np.testing.assert_allclose(by_weights[place], (up - down) / (2 * STEP), atol=1e-6)
        for place in np.ndindex(times.shape):
            if np.isfinite(times[place]):
                up, down = (loss(times.at[place].add(h), weights) for h in (STEP, -STEP))
                np.testing.assert_allclose(by_times[place], (up - down) / (2 * STEP), atol=1e-6)
        assert float(by_times[0, 2]) == 0


def response(passed: Decimal, membrane: Decimal, synapse: Decimal) -> Decimal:
    """The membrane after one input with weight 1, as in a textbook: 60 digits survive the cancelling."""
    if membrane == synapse:
        return passed / membrane * (-passed / membrane).exp()
    decays = (-passed / membrane).exp() - (-passed / synapse).exp()
    return synapse / (membrane - synapse) * decays


def summed(out: float, times, weights, constants: tuple[float, float]) -> tuple[Any, Decimal]:
    """The responses to each input at `out`, and the membrane's slope there."""
    membrane, synapse = map(Decimal, constants)
    passed = [Decimal(out) - Decimal(float(each)) for each in times]
    each = [response(t, membrane, synapse) if t > 0 else Decimal(0) for t in passed]
    # By the equation of the membrane: tau dV/dt = I - V.
    currents = [(-t / synapse).exp() if t > 0 else Decimal(0) for t in passed]
    terms = zip(weights, currents, each, strict=True)
    return each, sum((Decimal(float(w)) * (i - v) for w, i, v in terms), Decimal(0)) / membrane


@hypothesis.given(
    synapse=st.floats(1.0, 40.0),
    apart=st.sampled_from([0.0, 1.0]) | st.integers(1, 16).map(lambda digits: 10.0**-digits),
    sign=st.sampled_from([-0.5, 1.0]),
    dtype=st.sampled_from(["float32", "float64"]),
)
@hypothesis.example(synapse=20.0, apart=1e-7, sign=1.0, dtype="float32")
@hypothesis.example(synapse=20.0, apart=0.0, sign=1.0, dtype="float64")
@hypothesis.example(synapse=20.0, apart=3e-6, sign=-0.5, dtype="float64")
def test_times_and_gradients_are_exact_for_any_time_constants(
    synapse: float, apart: float, sign: float, dtype: str
) -> None:
    """Equal, nearly equal and far apart; against 60 digits.

    A time is off by the rounding of the membrane, a few times 10 terms of size 1, divided by its slope; and so is a
    gradient, relatively, since a slope changes by parts of itself within a time constant.
    """
    membrane = synapse * (1 + sign * apart)
    # So early and strong that every neuron spikes: the response to one input is at least 1/4 at its peak.
    times = np.array([0.0, 0.02, 0.1]) * synapse
    weights = np.array([[8.0, 4.0, 2.4], [-1.0, 4.0, 1.6], [2.0, -1.0, 5.0]])
    with jax.enable_x64(dtype == "float64"):
        given = jnp.asarray(times, dtype)[None], jnp.asarray(weights, dtype)
        times = np.asarray(given[0][0], np.float64)  # as rounded
        weights = np.asarray(given[1], np.float64)

        def run(times, weights):
            out = first_spike_times(times, weights, membrane_time=membrane, synapse_time=synapse)
            return jnp.sum(out), out

        found = jit(jax.grad(run, (0, 1), has_aux=True))(*given)
        (by_times, by_weights), out = jax.tree.map(np.asarray, found)
    eps = float(jnp.finfo(dtype).eps)
    with decimal.localcontext(prec=60):
        for neuron in range(3):
            each, slope = summed(float(out[0, neuron]), times, weights[:, neuron], (membrane, synapse))
            v = sum(
                (Decimal(float(w)) * r for w, r in zip(weights[:, neuron], each, strict=True)), Decimal(0)
            )
            allowed = 50 * eps * (1 + float(out[0, neuron]) * float(slope))
            assert slope > 0
            assert abs(float(v - 1)) < allowed
            expected = np.array([float(-r / slope) for r in each])
            assert_close(by_weights[:, neuron], expected, of_largest=1000 * eps)
        shift = np.sum(by_times[0]) / 3  # all times later by 1: so is each spike
        np.testing.assert_allclose(shift, 1.0, rtol=1000 * eps)


def test_equal_time_constants_are_the_alpha_function() -> None:
    """One input at 0: ``w t / tau exp(-t / tau) = threshold``, at t = tau for the weight e."""
    out = first_spike_times(jnp.zeros((1, 1)), jnp.full((1, 1), 2.7183), membrane_time=7.0, synapse_time=7.0)
    chex.assert_trees_all_close(out, np.array([[7.0]], np.float32), rtol=0.01, strict=True)
    assert (
        float(first_spike_times(jnp.zeros((1, 1)), jnp.full((1, 1), 2.7182), synapse_time=20.0)[0, 0])
        == np.inf
    )


def test_arguments_that_do_not_fit_are_refused() -> None:
    times, weights = jnp.ones((1, 2)), jnp.ones((2, 3))
    with pytest.raises(ValueError, match="`threshold` must be positive and finite, got 0"):
        first_spike_times(times, weights, threshold=0)
    with pytest.raises(ValueError, match="`synapse_time` must be positive and finite, got inf"):
        first_spike_times(times, weights, synapse_time=np.inf)
    with pytest.raises(ValueError, match=r"`times` must hold numbers, got NaN\. Pass infinity for an input"):
        first_spike_times(times.at[0, 1].set(jnp.nan), weights)
    with pytest.raises(
        ValueError, match=r"`times` must hold numbers, got -infinity\. Pass infinity for an input"
    ):
        first_spike_times(times.at[0, 1].set(-jnp.inf), weights)
    with pytest.raises(ValueError, match=r"`weights` must have shape \[inputs, neurons\] = \[2, any\]"):
        first_spike_times(times, weights.T)


def test_what_is_no_number_is_no_silence() -> None:
    """NaN in a weight gives its neuron the time NaN, unless its input is silent or comes after the spike."""
    times, weights = jnp.array([[0.0, 1.0, 90.0, jnp.inf]]), jnp.full((4, 4), 6.0)
    weights = weights.at[(0, 2, 3), (0, 2, 3)].set(jnp.nan)
    loss = jax.jit(jax.value_and_grad(lambda times, weights: jnp.sum(first_spike_times(times, weights)), 1))
    slope, expected = loss(times, weights)[1], loss(times, jnp.full((4, 4), 6.0))[1]
    usual = first_spike_times(times, jnp.full((4, 1), 6.0))[0, 0]
    np.testing.assert_array_equal(first_spike_times(times, weights)[0], [np.nan, usual, usual, usual])
    assert np.isnan(slope[:, 0]).all()
    np.testing.assert_array_equal(slope[:, 1:], expected[:, 1:])
    for wrong in (jnp.nan, -jnp.inf):  # where it cannot be refused
        value, slope = loss(times.at[0, 1].set(wrong), weights)
        assert np.isnan(value)
        assert np.isnan(slope).all()


def test_neurons_without_inputs_are_silent() -> None:
    assert np.all(first_spike_times(jnp.zeros((2, 0)), jnp.zeros((0, 3))) == np.inf)
