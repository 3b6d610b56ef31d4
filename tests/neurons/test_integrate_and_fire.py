"""Integrate-and-fire neurons: what goes in comes out."""

import jax
import jax.numpy as jnp
import numpy as np

from snnjax import neurons
from tests.neurons.models import unroll

KEY = jax.random.key(0)


def spike_train(neuron: neurons.Neuron, current: float, steps: int) -> list[int]:
    params = neuron.init(KEY, 1)
    inputs = jnp.full((steps, 1, 1), current)
    return unroll(neuron, params, neuron.initial_state(params, 1, 1), inputs)[1][:, 0, 0].astype(int).tolist()


def test_spikes_each_time_the_sum_passes_the_threshold() -> None:
    # Sums 0.75, 1.5 (spike, 0.5 stays), 1.25 (spike, 0.25 stays), 1.0 (not above), 1.75 (spike), ...
    assert spike_train(neurons.integrate_and_fire(), 0.75, 5) == [0, 1, 1, 0, 1]


def test_reset_to_zero_forgets_what_was_above() -> None:
    assert spike_train(neurons.integrate_and_fire(reset="zero"), 0.75, 6) == [0, 1, 0, 1, 0, 1]


def test_charge_is_conserved_by_subtraction() -> None:
    neuron = neurons.integrate_and_fire(threshold=2.0)
    params = neuron.init(KEY, 4)
    inputs = jnp.abs(jax.random.normal(KEY, (30, 2, 4)))
    last, spikes = unroll(neuron, params, neuron.initial_state(params, 2, 4), inputs)
    # The last step's spikes are not yet subtracted; 30 sums in float32.
    taken = 2.0 * jnp.sum(spikes[:-1], axis=0)
    np.testing.assert_allclose(last.v + taken, jnp.sum(inputs, axis=0), rtol=1e-5)
