"""Graded spikes: the published equations, counts and activity, lists with values, and what is refused."""

import re

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from snnjax import SparseSpikes, layer, leaky_readout, network, neurons, nir
from snnjax._types import Params
from snnjax.losses import cross_entropy_sum
from snnjax.metrics import dropped_share, gradient_share, input_counts, synaptic_operations
from tests.graph.helpers import initial
from tests.neurons.models import unroll
from tests.ops.common import jit

STEPS, BATCH, INPUTS = 6, 3, 5
LENGTHS = jnp.array([6, 4, 0], jnp.int32)
INPUT = jax.random.bernoulli(jax.random.key(2), 0.4, (STEPS, BATCH, INPUTS)).astype(jnp.float32)
NEURONS = {
    "integer": neurons.integer_lif(0.8, largest=3, normalize=False),
    "ternary": neurons.ternary_lif(0.8, (0.5, 1.0), normalize=False, reset="zero", learn_threshold=True),
}


def net_of(name: str, **options):
    return network(INPUTS, [layer(8, NEURONS[name], **options)], leaky_readout(2))


def params_of(net):
    """With currents for spikes of many values."""
    params = initial(net)
    own = params["layer_0/connection"]
    return params | {"layer_0/connection": own._replace(weights=3 * own.weights)}


def test_integer_spikes_are_rounded_membranes() -> None:
    neuron = NEURONS["integer"]
    params = neuron.init(jax.random.key(0), 50)
    inputs = 2 * jax.random.normal(jax.random.key(1), (9, 1, 50)) + 0.5
    found = jit(lambda x: unroll(neuron, params, neuron.initial_state(params, 1, 50), x)[1])(inputs)
    v, spikes = np.zeros((1, 50)), np.zeros((1, 50))
    for x, s in zip(np.asarray(inputs, np.float64), np.asarray(found), strict=True):
        v = 0.8 * (v - spikes) + x
        spikes = np.clip(np.round(v), 0, 3)
        np.testing.assert_array_equal(s, spikes)
    assert set(np.unique(found)) == {0, 1, 2, 3}


def test_the_derivative_of_integer_spikes_is_1_between_0_and_the_largest() -> None:
    neuron = NEURONS["integer"]
    params, at = neuron.init(jax.random.key(0), 5), jnp.array([[-0.3, 0.2, 1.4, 2.9, 3.3]])
    state = neuron.initial_state(params, 1, 5)
    slope = jax.grad(lambda x: neuron.step(params, state, x)[1].sum())(at)
    np.testing.assert_array_equal(slope, [[0, 1, 1, 1, 0]])


def test_ternary_spikes_reset_on_both_sides() -> None:
    neuron = neurons.ternary_lif(0.5, reset="zero", normalize=False)
    params = neuron.init(jax.random.key(0), 2)
    inputs = jnp.array([[[1.5, -1.5]], [[0.75, -0.75]], [[0.75, -0.75]]])
    state, spikes = unroll(neuron, params, neuron.initial_state(params, 1, 2), inputs)
    np.testing.assert_array_equal(spikes[:, 0], [[1, -1], [0, 0], [1, -1]])
    np.testing.assert_array_equal(state.v, [[1.125, -1.125]])


@pytest.mark.parametrize("name", NEURONS)
def test_full_lists_equal_arrays_in_values_gradients_and_activity(name: str) -> None:
    dense_net, lists = net_of(name), net_of(name, capacity=8, second_threshold=-1e9)
    params = params_of(dense_net)

    def loss(params: Params, net):
        output, _ = net.apply(params, None, INPUT, lengths=LENGTHS, record="spikes")
        activity = output.activity["layer_0/neuron"]
        return jnp.sum(output.output**2) + jnp.sum(activity**2), output

    (first, second) = (
        jit(jax.value_and_grad(lambda own, net=net: loss(own, net), has_aux=True))(params)
        for net in (dense_net, lists)
    )
    spikes, listed = (found[0][1].recorded["layer_0/neuron"] for found in (first, second))
    assert isinstance(listed, SparseSpikes)
    np.testing.assert_array_equal(listed.to_dense(), spikes)
    np.testing.assert_array_equal(listed.num_spikes, np.abs(spikes).sum(-1))
    assert len(np.unique(spikes)) == (4 if name == "integer" else 3)
    rates = np.abs(spikes).sum(0) / np.maximum(LENGTHS, 1)[:, None]
    for (_, output), gradients in (first, second):
        chex.assert_trees_all_close(output.activity["layer_0/neuron"], rates, rtol=1e-6)
        chex.assert_trees_all_close(output.output, first[0][1].output, rtol=1e-5, atol=1e-6)
        chex.assert_trees_all_close(gradients, first[1], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", NEURONS)
def test_dropped_spikes_and_operations_count_magnitudes(name: str) -> None:
    net = net_of(name, capacity=2)
    params = params_of(net)
    output, _ = jit(lambda own: net.apply(own, None, INPUT, lengths=LENGTHS, record="spikes"))(params)
    listed, rates = output.recorded["layer_0/neuron"], np.asarray(output.activity["layer_0/neuron"])
    total = np.sum(rates * np.asarray(LENGTHS)[:, None], axis=1)
    kept = np.abs(np.asarray(listed.values)).sum((0, 2))
    dropped = np.asarray(output.dropped["layer_0/neuron"])
    np.testing.assert_allclose(dropped, total - kept, rtol=1e-5)
    assert dropped.sum() > 0
    share = dropped_share(output.dropped, output.activity, LENGTHS)
    np.testing.assert_allclose(share[0], dropped.sum() / total.sum(), rtol=1e-5)
    counts = input_counts(INPUT, LENGTHS)
    cost = synaptic_operations(net, params, counts, output.activity, LENGTHS)
    expected = np.mean(np.sum(np.asarray(counts), axis=1) * 8 + total * 2)
    np.testing.assert_allclose(cost.effective_acs, expected, rtol=1e-5)


def test_their_lists_reach_a_fused_chain_and_recurrent_weights_with_their_values() -> None:
    recurrent = layer(8, NEURONS["integer"], capacity=8, second_threshold=-1e9, recurrent=True)
    nets = [
        network(INPUTS, [own, layer(6)], leaky_readout(2))
        for own in (recurrent, layer(8, NEURONS["integer"], recurrent=True))
    ]
    params = params_of(nets[0])
    first, second = (net.apply(params, None, INPUT)[0].output for net in nets)
    chex.assert_trees_all_close(first, second, rtol=1e-5, atol=1e-6)
    assert "layer_0/join > layer_0/neuron (the spikes of integer_lif are graded)" in nets[0].paths
    assert "fused: layer_1/connection > layer_1/neuron > readout" in nets[0].paths


def test_a_refractory_ternary_neuron_is_silent_after_both_signs() -> None:
    neuron = neurons.refractory(neurons.ternary_lif(0.5, normalize=False), 1)
    params = neuron.init(jax.random.key(0), 2)
    inputs = jnp.broadcast_to(jnp.array([[[4.0, -4.0]]]), (4, 1, 2))
    _, spikes = unroll(neuron, params, neuron.initial_state(params, 1, 2), inputs)
    np.testing.assert_array_equal(spikes[:, 0], [[1, -1], [0, 0], [1, -1], [0, 0]])


def test_what_cannot_be_is_refused() -> None:
    net = net_of("integer")
    params = initial(net)
    refused = "to_nir: `network` must hold only neurons that NIR has: "
    with pytest.raises(ValueError, match=re.escape(refused)):
        nir.to_nir(net, params, dt=1e-3)
    message = (
        "gradient_share: `layer_0/neuron` must have one threshold, got graded spikes of integer_lif. "
        "Choose the second threshold by the activity."
    )
    with pytest.raises(ValueError, match=re.escape(message)):
        gradient_share(net, params, INPUT, jnp.zeros(BATCH, jnp.int32), loss=cross_entropy_sum)
    with pytest.raises(
        ValueError, match=re.escape("integer_lif: `largest` must be an integer of at least 1, got 0.")
    ):
        neurons.integer_lif(largest=0)
    with pytest.raises(
        ValueError, match=re.escape("ternary_lif: `threshold` must be positive, got (0.0, 1.0).")
    ):
        neurons.ternary_lif(threshold=(0.0, 1.0))
