"""Resonate-and-fire neurons: numbers to check by head, and the oscillation as a complex number."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from snnjax import neurons
from snnjax.neurons import ResonateAndFireState
from tests.neurons.models import unroll

KEY = jax.random.key(0)


def test_quarter_turn_of_known_numbers() -> None:
    """z = 1 + 2 i turns by a quarter and halves: -1 + i / 2; with a reset by 1 beforehand, -1/2 + i / 2."""
    for reset, imaginary, real in (("none", 0.5, -1.0), ("subtract", 0.5, -0.5)):
        neuron = neurons.resonate_and_fire(0.5, frequency=np.pi / 2, reset=reset)
        params = neuron.init(KEY, 1)
        state = ResonateAndFireState(v=jnp.array([[2.0]]), w=jnp.array([[1.0 + 2.0]]))
        state, spikes = neuron.step(params, state, jnp.array([[0.0]]))
        np.testing.assert_allclose(state.v, [[imaginary]], atol=1e-6)
        np.testing.assert_allclose(state.w - state.v, [[real]], atol=1e-6)
        assert float(spikes[0, 0]) == 0.0


@pytest.mark.parametrize("reset", ["subtract", "none"])
@pytest.mark.parametrize("frequency", [(0.05, 0.5), (1.4, 1.7), (2.9, 3.3)])
def test_unrolled_it_is_a_complex_oscillation(reset: str, frequency: tuple[float, float]) -> None:
    """At any frequency, a quarter and half a turn a step among them; the reference in complex128."""
    neuron = neurons.resonate_and_fire(0.9, frequency=frequency, reset=reset)
    params = neuron.init(KEY, 5)
    inputs = jax.random.normal(KEY, (40, 2, 5))
    last, spikes = unroll(neuron, params, neuron.initial_state(params, 2, 5), inputs)
    angle = np.asarray(params.frequency, float)
    turn = np.asarray(neurons.raw_to_decay(params.raw_decay), float) * np.exp(1j * angle)
    z, s, wanted = np.zeros((2, 5), complex), np.zeros((2, 5)), []
    for x in np.asarray(inputs, float):
        z = turn * (z - 1j * s * (reset == "subtract")) + x
        s = (z.imag > 1).astype(float)
        wanted.append(s)
    assert 5 < np.sum(wanted) < 350
    np.testing.assert_array_equal(spikes, wanted)
    # Forty steps of float32 on oscillations of order 1 to 5.
    np.testing.assert_allclose(last.v, z.imag, atol=2e-5)
    np.testing.assert_allclose(last.w, np.sin(angle) * z.real + (1 - np.cos(angle)) * z.imag, atol=2e-5)


def test_inputs_in_its_rhythm_make_it_fire_and_others_do_not() -> None:
    neuron = neurons.resonate_and_fire(0.95, frequency=2 * np.pi / 10, threshold=2.0, reset="none")
    params = neuron.init(KEY, 1)
    fired = []
    for period in (10, 7):
        inputs = (jnp.arange(60) % period == 0).astype(jnp.float32)[:, None, None]
        fired.append(np.sum(unroll(neuron, params, neuron.initial_state(params, 1, 1), inputs)[1]))
    assert fired[0] > 0
    assert fired[1] == 0


def test_reset_to_zero_is_refused() -> None:
    with pytest.raises(ValueError) as error:
        neurons.resonate_and_fire(reset="zero")
    message = "resonate_and_fire: `reset` must be 'subtract' or 'none', got 'zero'. Choose one of these."
    assert str(error.value) == message
