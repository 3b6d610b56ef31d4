"""Izhikevich neurons: one step by hand, and the firing patterns of the paper."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from snnjax import neurons
from snnjax.neurons import IzhikevichState
from tests.neurons.models import unroll

KEY = jax.random.key(0)


def spike_times(preset: str, current: float, steps: int = 300) -> np.ndarray:
    neuron = neurons.izhikevich(preset)
    params = neuron.init(KEY, 1)
    state = neuron.initial_state(params, 1, 1)
    _, spikes = jax.jit(lambda x: unroll(neuron, params, state, x))(jnp.full((steps, 1, 1), current))
    return np.flatnonzero(spikes[:, 0, 0])


def test_step_of_known_numbers() -> None:
    neuron = neurons.izhikevich("regular_spiking")
    params = neuron.init(KEY, 1)
    state = IzhikevichState(*(jnp.full((1, 1), value) for value in (-60.0, -10.0, 0.0)))
    state, spikes = neuron.step(params, state, jnp.full((1, 1), 4.0))
    # dv = 0.5 (0.04 * 3600 - 300 + 140 + 10 + 4) = -1, then 0.5 (0.04 * 3721 - 305 + 154) = -1.08
    np.testing.assert_allclose(state.v, [[-62.08]], rtol=1e-5)
    # The recovery moves by 0.02 times 0.2 * -62.08 + 10 = -2.416.
    np.testing.assert_allclose(state.recovery, [[-10.04832]], rtol=1e-5)
    assert float(spikes[0, 0]) == 0.0


def test_spike_resets_membrane_and_recovery() -> None:
    neuron = neurons.izhikevich("chattering")
    params = neuron.init(KEY, 1)
    shared = {"recovery": jnp.full((1, 1), -10.0), "spikes": jnp.ones((1, 1))}
    after = neuron.step(params, IzhikevichState(v=jnp.full((1, 1), 40.0), **shared), jnp.zeros((1, 1)))[0]
    # The same as going on from (c, u + d) without a spike.
    rested = IzhikevichState(*(jnp.full((1, 1), value) for value in (-50.0, -8.0, 0.0)))
    wanted = neuron.step(params, rested, jnp.zeros((1, 1)))[0]
    np.testing.assert_allclose(after.v, wanted.v, rtol=1e-6)
    np.testing.assert_allclose(after.recovery, wanted.recovery, rtol=1e-6)


def test_rest_is_silent() -> None:
    assert spike_times("regular_spiking", 0.0).size == 0


def test_regular_spiking_adapts() -> None:
    intervals = np.diff(spike_times("regular_spiking", 10.0))
    assert intervals[0] < intervals[-1]


def test_fast_spiking_fires_fast_and_without_adaptation() -> None:
    fast, regular = spike_times("fast_spiking", 10.0), spike_times("regular_spiking", 10.0)
    assert fast.size > 2 * regular.size
    # Steps of 1 ms overshoot the peak by chance, so that single intervals vary: compare the halves.
    early, late = np.array_split(np.diff(fast), 2)
    assert np.mean(late) < 1.1 * np.mean(early)


def test_chattering_comes_in_bursts() -> None:
    intervals = np.diff(spike_times("chattering", 10.0))
    assert np.min(intervals) <= 5
    assert np.max(intervals) >= 20


def test_own_constants_replace_those_of_the_preset() -> None:
    params = neurons.izhikevich("fast_spiking", reset_recovery=3.0, learn=True).init(KEY, 1)
    np.testing.assert_allclose([float(leaf[0]) for leaf in params], [0.1, 0.2, -65.0, 3.0], rtol=1e-6)


def test_unknown_preset_is_refused() -> None:
    with pytest.raises(ValueError) as error:
        neurons.izhikevich("spiky")
    assert str(error.value) == (
        "izhikevich: `preset` must be 'regular_spiking', 'intrinsically_bursting', 'chattering', "
        "'fast_spiking', 'low_threshold_spiking', 'thalamo_cortical' or 'resonator', got 'spiky'. Choose "
        "one of these."
    )
