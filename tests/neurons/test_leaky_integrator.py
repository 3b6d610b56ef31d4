"""Leaky integrators: a membrane and no spikes."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from snnjax import neurons

KEY = jax.random.key(0)


@pytest.mark.parametrize("normalize, wanted", [(True, [1.0, 0.5, 1.25]), (False, [2.0, 1.0, 2.5])])
def test_output_is_the_membrane(normalize: bool, wanted: list[float]) -> None:
    neuron = neurons.leaky_integrator(decay=0.5, normalize=normalize)
    params = neuron.init(KEY, 1)
    state, outputs = neuron.initial_state(params, 1, 1), []
    for x in (2.0, 0.0, 2.0):
        state, output = neuron.step(params, state, jnp.array([[x]]))
        assert output[0, 0] == state.v[0, 0]
        outputs.append(float(output[0, 0]))
    assert outputs == wanted


def test_no_membrane_reaches_the_threshold() -> None:
    neuron = neurons.leaky_integrator()
    params = neuron.init(KEY, 2)
    membrane, threshold, _ = neuron.advance(
        params, neuron.initial_state(params, 1, 2), jnp.full((1, 2), 1e30)
    )
    assert np.all(np.isinf(threshold))
    assert not np.any(membrane > threshold)
