"""Rounded weights, their straight-through gradient, and states in fixed point."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from snnjax import layer, leaky_readout, network
from snnjax.quantisation import dequantise, quantise, straight_through, to_fixed_point
from tests.network.helpers import INPUTS, initial, random_spikes
from tests.numbers import assert_close
from tests.ops.common import jit


@pytest.mark.parametrize("bits, most", [(8, 127), (4, 7)])
def test_error_is_half_a_step_of_each_channel(bits: int, most: int) -> None:
    weights = jax.random.normal(jax.random.key(0), (3, 5, 4)) * jnp.array([[[1.0, 10.0, 0.0, 1e-6]]])
    stored = quantise(weights, bits)
    assert stored.values.dtype == jnp.int8
    largest = np.max(np.abs(weights), axis=(0, 1))
    np.testing.assert_array_equal(np.max(np.abs(stored.values), axis=(0, 1)), [most, most, 0, most])
    error = np.max(np.abs(dequantise(stored) - weights), axis=(0, 1))
    assert np.all(error <= 0.5001 * largest / most)
    again = quantise(dequantise(stored), bits)
    np.testing.assert_array_equal(again.values, stored.values)


def test_gradient_passes_straight_through() -> None:
    """It is that by the rounded weights, with which the network computes."""
    net = network(INPUTS, [layer(8, recurrent=True)], leaky_readout(3))
    params, inputs = initial(net), random_spikes(0.3)
    apply = functools.partial(net.apply, implementation="composed")
    loss = lambda params: jnp.sum(apply(params, None, inputs)[0].output ** 2)  # noqa: E731
    through = jit(jax.value_and_grad(lambda params: loss(straight_through(params, 4))))(params)
    at_rounded = jit(jax.value_and_grad(loss))(straight_through(params, 4))
    assert_close(through, at_rounded, rtol=1e-5, atol=1e-6)
    assert float(through[0]) != float(loss(params))


def test_states_in_fixed_point_saturate() -> None:
    tree = {"v": jnp.array([1.0, -300.0, jnp.nan]), "steps": jnp.array([3], jnp.int32)}
    stored = to_fixed_point(tree, fraction_bits=4, bits=8)
    np.testing.assert_array_equal(stored["v"], np.array([16, -128, 0], np.int8))
    assert stored["v"].dtype == np.int8
    assert stored["steps"] is tree["steps"]


def test_other_numbers_of_bits_are_refused() -> None:
    with pytest.raises(ValueError) as caught:
        quantise(jnp.ones((2, 2)), 3)
    assert str(caught.value) == "quantise: `bits` must be one of 8, 4, got 3. Choose one of these."
    with pytest.raises(ValueError) as caught:
        to_fixed_point(jnp.ones(2), 16)
    message = "to_fixed_point: `fraction_bits` must be less than 16, got 16. Leave one bit for the sign."
    assert str(caught.value) == message
