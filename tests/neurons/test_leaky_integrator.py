"""Leaky integrators: a membrane and no spikes."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.typing import DTypeLike

from snnjax import dense, leaky_readout, network, neurons

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


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.bfloat16])
def test_decay_of_1_sums_up_inputs_in_a_step_and_in_a_network(dtype: DTypeLike) -> None:
    neuron = neurons.leaky_integrator(decay=1, normalize=False)
    params = neuron.init(KEY, 3, dtype)
    inputs = jax.random.randint(KEY, (50, 2, 3), -3, 4).astype(dtype)  # whole numbers, whose sums are exact
    state = neuron.initial_state(params, 2, 3)
    for x in inputs:
        state, _ = neuron.step(params, state, x)
    np.testing.assert_array_equal(state.v, jnp.sum(inputs.astype(jnp.float32), axis=0))
    net = network(3, [], leaky_readout(dense(3, bias=False), decay=1, normalize=False))
    held = net.init(KEY, dtype=dtype)
    held["readout/connection"] = held["readout/connection"]._replace(weights=jnp.eye(3, dtype=dtype))
    _, last = net.apply(held, None, inputs)
    np.testing.assert_array_equal(last["readout/neuron"].v, state.v)


def test_decay_of_1_that_is_learned_or_normalizes_is_refused() -> None:
    learned = (
        "leaky_integrator: `decay` must be strictly between 0 and 1, got 1.0. "
        "From a time constant it is exp(-dt / time_constant)."
    )
    normalized = (
        "leaky_integrator: `decay` must be below 1 for a gain of 1 - decay, got 1. Pass normalize=False."
    )
    for text, options in ((normalized, {}), (learned, {"normalize": False, "learn_decay": True})):
        with pytest.raises(ValueError, match=f"^{re.escape(text)}$"):
            neurons.leaky_integrator(decay=1.0, **options)


def test_no_membrane_reaches_the_threshold() -> None:
    neuron = neurons.leaky_integrator()
    params = neuron.init(KEY, 2)
    membrane, threshold, _ = neuron.advance(
        params, neuron.initial_state(params, 1, 2), jnp.full((1, 2), 1e30)
    )
    assert np.all(np.isinf(threshold))
    assert not np.any(membrane > threshold)
