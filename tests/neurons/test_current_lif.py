"""Current-based LIF neurons: numbers to check by head."""

import jax
import jax.numpy as jnp
import numpy as np

from snnjax import neurons
from tests.neurons.models import unroll

KEY = jax.random.key(0)


def traces(**config: bool) -> tuple[list[float], list[float]]:
    """Current and membrane after one unit of input, both decays 0.5, never spiking."""
    neuron = neurons.current_lif(decay=0.5, synapse_decay=0.5, threshold=9.0, **config)
    params = neuron.init(KEY, 1)
    state, currents, membranes = neuron.initial_state(params, 1, 1), [], []
    for x in (1.0, 0.0, 0.0):
        state, _ = neuron.step(params, state, jnp.array([[x]]))
        currents.append(float(state.current[0, 0]))
        membranes.append(float(state.v[0, 0]))
    return currents, membranes


def test_impulse_response_without_gains() -> None:
    # v = 0.5 v' + current: 1, 0.5 + 0.5, 0.5 + 0.25
    assert traces(normalize=False, normalize_synapse=False) == ([1.0, 0.5, 0.25], [1.0, 1.0, 0.75])


def test_impulse_response_with_gains_is_a_quarter() -> None:
    assert traces() == ([0.5, 0.25, 0.125], [0.25, 0.25, 0.1875])


def test_constant_input_is_also_the_membrane_it_leads_to() -> None:
    neuron = neurons.current_lif(decay=0.75, synapse_decay=0.5, threshold=9.0)
    params = neuron.init(KEY, 1)
    last, _ = unroll(neuron, params, neuron.initial_state(params, 1, 1), jnp.full((60, 1, 1), 2.0))
    np.testing.assert_allclose(last.v, [[2.0]], rtol=1e-5)  # 0.75^60 = 3e-8 is missing


def test_spikes_reset_the_membrane_and_spare_the_current() -> None:
    neuron = neurons.current_lif(
        0.5, synapse_decay=0.5, reset="zero", normalize=False, normalize_synapse=False
    )
    params = neuron.init(KEY, 1)
    state, spikes = neuron.step(params, neuron.initial_state(params, 1, 1), jnp.array([[4.0]]))
    assert (float(state.v[0, 0]), float(spikes[0, 0])) == (4.0, 1.0)
    state, spikes = neuron.step(params, state, jnp.array([[0.0]]))
    assert (float(state.current[0, 0]), float(state.v[0, 0])) == (2.0, 2.0)
