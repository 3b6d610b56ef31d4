"""Integrate-and-fire neurons: what goes in comes out."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from snnjax import dense, layer, network, neurons
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


def test_half_a_threshold_at_the_start_rounds_the_number_of_spikes() -> None:
    currents = np.random.default_rng(0).uniform(0, 1, 40).astype(np.float32)
    rounded, down = (neurons.integrate_and_fire(initial=share) for share in (0.5, 0.0))
    inputs = jnp.broadcast_to(jnp.asarray(currents), (10, 1, 40))
    counts = []
    for neuron in (rounded, down):
        params = neuron.init(KEY, 40)
        counts.append(unroll(neuron, params, neuron.initial_state(params, 1, 40), inputs)[1].sum(0)[0])
    # The membrane must pass the threshold, but no sum of ten currents is a whole number of them.
    np.testing.assert_array_equal(counts[0], np.floor(10 * currents + 0.5))
    np.testing.assert_array_equal(counts[1], np.floor(10 * currents))


def test_initial_membrane_is_a_share_of_each_threshold() -> None:
    neuron = neurons.integrate_and_fire(threshold=(0.5, 2.0), initial=0.25)
    params = neuron.merged(neuron.init(KEY, 3, jnp.bfloat16), neuron.initial_stats(KEY, 3))
    v = neuron.initial_state(params, 2, 3).v
    assert v.dtype == jnp.float32
    np.testing.assert_array_equal(v, 0.25 * np.asarray(params.threshold, np.float32)[None].repeat(2, axis=0))
    assert neuron == neurons.integrate_and_fire(threshold=(0.5, 2.0), initial=0.25)
    assert neuron != neurons.integrate_and_fire(threshold=(0.5, 2.0))


def test_initial_membrane_of_a_network_of_float32_beside_float64() -> None:
    """A threshold that is a number has no dtype of its own."""
    neuron = neurons.integrate_and_fire(initial=0.5)
    with jax.enable_x64(True):
        inputs = jnp.full((3, 1, 2), 0.6, jnp.float32)
        net = network(2, [layer(dense(2, bias=False), neuron)])
        output, state = net.apply(net.init(KEY), None, inputs)
        assert output.output.dtype == state["layer_0/neuron"].v.dtype == jnp.float32
        assert neuron.initial_state(neuron.init(KEY, 2), 1, 2, jnp.float64).v.dtype == jnp.float64


def test_initial_membrane_outside_its_range_is_refused() -> None:
    with pytest.raises(ValueError) as error:
        neurons.integrate_and_fire(initial=1.5)
    assert str(error.value) == (
        "integrate_and_fire: `initial` must be a number from 0 to 1, got 1.5. Try 0.5, half a threshold."
    )
