"""Spike times against a fine simulation, and their gradients against finite differences."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from snnjax.event_times import first_spike_times
from tests.numbers import assert_close

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
    assert_close(np.isfinite(out), np.isfinite(first))
    spikes = np.isfinite(first)
    # Explicit steps of a shallow rise: a few of them.
    assert_close(out[spikes], first[spikes], atol=20 * step)


def test_gradient_equals_finite_differences_of_the_times() -> None:
    with jax.enable_x64(True):
        times, weights = (jnp.asarray(each) for each in drawn())
        shares = jnp.asarray(np.random.default_rng(1).normal(size=(3, 8)))

        @jax.jit
        def loss(times: Any, weights: Any) -> Any:
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


def test_arguments_that_do_not_fit_are_refused() -> None:
    times, weights = jnp.ones((1, 2)), jnp.ones((2, 3))
    message = (
        "first_spike_times: `synapse_time` must differ from membrane_time, got 20.0. "
        "Change one of them by a percent."
    )
    with pytest.raises(ValueError) as caught:
        first_spike_times(times, weights, synapse_time=20.0)
    assert str(caught.value) == message
    with pytest.raises(ValueError, match="`threshold` must be positive, got 0"):
        first_spike_times(times, weights, threshold=0)
    with pytest.raises(ValueError, match=r"`weights` must have shape \[inputs, neurons\] = \[2, any\]"):
        first_spike_times(times, weights.T)
