"""SE-adLIF neurons: numbers to check by head, and the equations of the paper."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from snnjax import neurons
from snnjax.neurons import SEAdLIFState
from tests.neurons.models import unroll

KEY = jax.random.key(0)


def test_step_of_known_numbers() -> None:
    """Behind the reset the membrane is 2 - 1: w = 0.5 * 4 + 0.5 (0.5 * 1 + 1 * 1), v = 0.5 * 1 + 6 - w."""
    half = {"decay": 0.5, "adaptation_decay": 0.5, "membrane_coupling": 0.5, "spike_coupling": 1.0}
    neuron = neurons.se_adlif(**half, normalize=False)
    state = SEAdLIFState(v=jnp.array([[2.0]]), adaptation=jnp.array([[4.0]]))
    state, spikes = neuron.step(neuron.init(KEY, 1), state, jnp.array([[6.0]]))
    assert float(state.adaptation[0, 0]) == 2.75
    assert float(state.v[0, 0]) == 3.75
    assert float(spikes[0, 0]) == 1.0


@pytest.mark.parametrize("reset", ["subtract", "none"])
def test_unrolled_it_is_the_symplectic_euler_method(reset: str) -> None:
    """The adaptation of the paper is updated last, from the new membrane behind its reset; sums in float64."""
    neuron = neurons.se_adlif(reset=reset, learn_threshold=True)
    params = neuron.init(KEY, 5)
    inputs = 2 + 2 * jax.random.normal(KEY, (40, 2, 5))
    _, spikes = unroll(neuron, params, neuron.initial_state(params, 2, 5), inputs)
    alpha, beta = (np.asarray(neurons.raw_to_decay(raw), float) for raw in params[:2])
    a, b, threshold = (np.asarray(each, float) for each in params[2:])
    u, w, wanted = np.zeros((2, 5)), np.zeros((2, 5)), []
    for x in np.asarray(inputs, float):
        u = alpha * u + (1 - alpha) * (x - w)
        s = (u > threshold).astype(float)
        u = u - threshold * s if reset == "subtract" else u
        w = beta * w + (1 - beta) * (a * u + b * s)
        wanted.append(s)
    assert 5 < np.sum(wanted) < 350
    np.testing.assert_array_equal(spikes, wanted)


def test_reset_to_zero_is_refused() -> None:
    with pytest.raises(ValueError) as error:
        neurons.se_adlif(reset="zero")
    message = "se_adlif: `reset` must be 'subtract' or 'none', got 'zero'. Choose one of these."
    assert str(error.value) == message
