"""Weights that are functions of weights: products, gradients, initial scale, folding, counts and messages."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from snnjax import blocks, conv2d, dense, layer, leaky_readout, metrics, network
from snnjax._types import Params
from tests.graph.helpers import BATCH, INPUTS, initial, random_spikes

KEY = jax.random.key(0)
SIGNS = jnp.array([1.0] * 8 + [-1.0] * 2)  # eight of ten inputs are excitatory
SHARE = np.random.default_rng(0).random((INPUTS, 16)) < 0.3


def dale(weights: jax.Array) -> jax.Array:
    return jnp.abs(weights) * SIGNS[:, None]


def masked(weights: jax.Array) -> jax.Array:
    return jnp.where(jnp.asarray(SHARE), weights, jnp.zeros_like(weights))


FUNCTIONS = {"standardized": blocks.standardized, "dale": dale, "masked": masked}


def root_mean_square(array) -> float:
    return float(jnp.sqrt(jnp.mean(array**2)))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_network_computes_with_what_the_function_makes_and_learns_through_it(name: str) -> None:
    function, plain = FUNCTIONS[name], dense(16)
    net, other = (
        network(INPUTS, [layer(own)], leaky_readout(3))
        for own in (blocks.reparametrized(plain, function), plain)
    )
    params, inputs = initial(net), random_spikes(0.5)

    def loss(params: Params, net, is_made: bool) -> jax.Array:
        own = params["layer_0/connection"]
        if is_made:
            params = params | {"layer_0/connection": own._replace(weights=function(own.weights))}
        return jnp.sum(net.apply(params, None, inputs)[0].output ** 2)

    run = jax.jit(jax.value_and_grad(loss), static_argnums=(1, 2))
    value, gradients = run(params, net, False)
    expected, wanted = run(params, other, True)
    assert "alone" not in net.paths
    np.testing.assert_allclose(value, expected, rtol=1e-6)
    for found, known in zip(jax.tree.leaves(gradients), jax.tree.leaves(wanted), strict=True):
        largest = max(float(jnp.max(jnp.abs(known))), 1e-30)
        np.testing.assert_allclose(found / largest, known / largest, atol=1e-5)  # sums in another order


@pytest.mark.parametrize("name", FUNCTIONS)
def test_initial_weights_have_the_scale_that_neurons_need_behind_the_function(name: str) -> None:
    plain = dense(16)
    own = blocks.reparametrized(plain, FUNCTIONS[name])
    nets = [network(INPUTS, [layer(connection)]) for connection in (own, plain)]
    found, known = (initial(net)["layer_0/connection"].weights for net in nets)
    np.testing.assert_allclose(root_mean_square(own.used(found)), root_mean_square(known), rtol=1e-5)
    inputs = random_spikes(0.5)
    output, _ = nets[0].apply(initial(nets[0], inputs, target_activity=0.2), None, inputs)
    assert abs(float(jnp.mean(output.activity["layer_0/neuron"])) - 0.2) < 0.02


def test_standardized_weights_have_mean_0_and_one_variance_for_each_output() -> None:
    weights = jax.random.normal(KEY, (3, 3, 4, 6)) * jnp.arange(1, 7.0).reshape(1, 1, 1, 6) + 0.5
    made = blocks.standardized(weights)
    np.testing.assert_allclose(jnp.mean(made, (0, 1, 2)), 0, atol=1e-6)
    np.testing.assert_allclose(jnp.std(made, (0, 1, 2)), root_mean_square(weights), rtol=1e-3)  # epsilon
    shifted = blocks.standardized(weights + 3 * jnp.arange(6.0).reshape(1, 1, 1, 6))
    ratio = shifted / made
    np.testing.assert_allclose(ratio, jnp.full_like(ratio, jnp.mean(ratio)), rtol=1e-3)


def test_mask_holds_behind_the_function() -> None:
    connection = blocks.reparametrized(dense(16, mask=SHARE), blocks.standardized)
    params = connection.init(KEY, (INPUTS,), dtype=jnp.float32)
    assert not np.any(connection.used(params.weights)[~SHARE])
    assert np.all(connection.used(params.weights)[SHARE] != 0)


def test_recurrent_weights_are_functions_too() -> None:
    def silent(weights: jax.Array) -> jax.Array:
        return jnp.zeros_like(weights) * weights

    inputs = random_spikes(0.5)
    outputs = []
    for recurrent in (blocks.reparametrized(dense(8, bias=False), silent), False):
        net = network(INPUTS, [layer(dense(8), recurrent=recurrent)])
        outputs.append(net.apply(initial(net), None, inputs)[0].output)
    np.testing.assert_array_equal(*outputs)


def test_folded_norms_and_counts_see_the_weights_that_the_function_makes() -> None:
    convolution = blocks.reparametrized(conv2d(3, 3, bias=False), blocks.standardized)
    net = network((4, 4, 2), [layer(convolution, norm=blocks.batch_norm())], leaky_readout(3))
    params, stats = initial(net), net.initial_stats(KEY)
    stats["layer_0/norm"] = blocks.NormStats(jnp.array([0.1, -0.2, 0.0]), jnp.array([0.5, 1.0, 2.0]))
    folded, own, left = net.fold(params, stats)
    inputs = (jax.random.uniform(KEY, (6, BATCH, 4, 4, 2)) < 0.5).astype(jnp.float32)
    expected, found = net.apply(params, None, inputs, stats=stats), folded.apply(own, None, inputs)
    assert left == {}
    np.testing.assert_allclose(found[0].output, expected[0].output, rtol=1e-4, atol=1e-6)
    sparse = network(INPUTS, [blocks.reparametrized(dense(16, bias=False), masked)])
    counts, lengths = jnp.ones((1, INPUTS)), jnp.array([2])
    cost = metrics.synaptic_operations(sparse, initial(sparse), counts, {}, lengths)
    assert float(cost.effective_acs) == SHARE.sum()


def halved(weights: jax.Array) -> jax.Array:
    return weights[::2]


def exponential(weights: jax.Array) -> jax.Array:
    return jnp.exp(weights)


FAILURES = {
    "layer": (
        lambda: blocks.reparametrized(layer(8), dale),
        "reparametrized: `connection` must have weights, as dense(8) has, got ",
    ),
    "number": (
        lambda: blocks.reparametrized(dense(8), 2),  # type: ignore[arg-type]
        "reparametrized: `function` must be a function of the weights, got 2. Pass blocks.standardized, for instance.",
    ),
    "shape": (
        lambda: network(4, [blocks.reparametrized(dense(8), halved)]),
        "reparametrized: `function` must have shape [as the weights] = [4, 8], got [2, 8]. "
        "It is called with all weights of the connection.",
    ),
    "scale": (
        lambda: network(4, [blocks.reparametrized(dense(8), exponential)]),
        "reparametrized: `function` must give twice the result for twice the weights, got another one. "
        "Multiply it by the root mean square of the weights, jnp.sqrt(jnp.mean(weights**2)).",
    ),
}


@pytest.mark.parametrize("case", FAILURES)
def test_wrong_functions_are_named(case: str) -> None:
    call, text = FAILURES[case]
    with pytest.raises(ValueError) as error:
        call()
    assert str(error.value).startswith(text)


def test_equal_functions_make_equal_networks() -> None:
    first, second = (network(INPUTS, [blocks.reparametrized(dense(16), dale)]) for _ in range(2))
    assert first == second
    assert hash(first) == hash(second)
    assert first != network(INPUTS, [dense(16)])
