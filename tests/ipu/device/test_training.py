"""Whole programs on the device: training steps, and several IPUs at once."""

import chex
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from jax.sharding import NamedSharding, PartitionSpec

import snnjax
from snnjax import losses
from tests.graph.helpers import initial, random_spikes
from tests.ipu.device import on_device
from tests.ipu.lowering.test_training import OPTIMISERS, own_step, plain_step

STEPS = 3
# Sums in another order, and the quotients of Adam; a spike that differs would show far above.
CLOSE = {"rtol": 1e-4, "atol": 1e-5}


@pytest.fixture(autouse=True)
def promotion():
    """optax mixes integers with floats."""
    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        yield


def trained(device: jax.Device, step, arguments):
    """Parameters, state and loss after some steps that donate both."""
    params, state, *rest = jax.tree.map(lambda leaf: jax.device_put(jnp.copy(leaf), device), arguments)
    run = jax.jit(step, donate_argnums=(0, 1))
    for _ in range(STEPS):
        params, state, *results = run(params, state, *rest)
    return params, state, results


def assert_equal_training(ipu: jax.Device, step, arguments, **tolerance: float) -> None:
    actual, expected = (trained(device, step, arguments) for device in (ipu, jax.devices("cpu")[0]))
    chex.assert_trees_all_close(actual, expected, **(CLOSE | tolerance), strict=True)


@pytest.mark.parametrize("name", OPTIMISERS)
def test_plain_training_equals_the_cpu(ipus, name):
    assert_equal_training(ipus[0], *plain_step(OPTIMISERS[name]()))


@pytest.mark.parametrize("capacity", [None, 4])
def test_own_training_equals_the_cpu(ipus, capacity):
    assert_equal_training(ipus[0], *own_step(capacity))


@pytest.mark.parametrize("tiles", ["1", "2"])
def test_training_where_the_weights_of_the_network_lie_equals_the_cpu(ipus, tiles):
    """On few tiles the update is as even there as anywhere: no call copies weights, which a loop carries."""
    network = snnjax.network(6, [snnjax.layer(8, capacity=4, recurrent=True)], snnjax.leaky_readout(4))
    params = network.init(jax.random.key(0))
    x = (jax.random.uniform(jax.random.key(1), (5, 4, 6)) < 0.4).astype(jnp.float32)

    def loss(params):
        return losses.cross_entropy_max(network.apply(params, None, x)[0].output, jnp.arange(4))

    def train(params):
        def step(params, _):
            value, gradient = jax.value_and_grad(loss)(params)
            return jax.tree.map(lambda p, g: p - 0.1 * g, params, gradient), value

        return jax.lax.scan(step, params, length=STEPS)

    expected = jax.jit(train)(params)
    there = jax.device_put(params, ipus[0])
    actual = jax.jit(train, compiler_options={"ipu_tiles": tiles})(there)
    chex.assert_trees_all_close(actual, expected, **CLOSE, strict=True)


def test_a_network_of_convolutions_pools_and_delays_equals_the_cpu(ipus):
    """Its layers run on their references there, convolutions as products."""
    last = snnjax.layer([snnjax.axonal(4), snnjax.dense(16)])
    items = [snnjax.layer(snnjax.conv2d(4, 3)), snnjax.sum_pool(2), last]
    network = snnjax.network((8, 8, 2), items, snnjax.leaky_readout(3))
    params, x = initial(network), random_spikes(0.4, steps=6, batch=4, inputs=128)

    def loss(params):
        results, _ = network.apply(params, None, x)
        return losses.cross_entropy_max(results.output, jnp.arange(4) % 3), results.activity

    gradient = jax.value_and_grad(loss, has_aux=True)
    actual, expected = (on_device.on(device, gradient, params) for device in (ipus[0], jax.devices("cpu")[0]))
    for own, other in zip(actual, expected, strict=True):
        np.testing.assert_allclose(own, other, **CLOSE)
    _, first, second, *gradients = expected
    assert min(np.mean(first), np.mean(second)) > 0.05  # no layer is silent
    assert all(np.any(each) for each in gradients if each.ndim > 1)  # weights, those of the convolution first


def test_training_in_float16_learns_what_the_cpu_learns(ipus):
    weights = jax.random.normal(jax.random.key(0), (8, 4), jnp.float16)
    x = jax.random.normal(jax.random.key(1), (16, 8), jnp.float16)

    def step(weights, rate, x):
        value, gradient = jax.value_and_grad(lambda w: jnp.mean(jnp.tanh(x @ w) ** 2))(weights)
        return weights - rate * gradient, rate, value

    # A unit in the last place of float16 at 1.
    assert_equal_training(ipus[0], step, (weights, jnp.float16(0.5), x), rtol=2e-3, atol=2e-3)


def test_data_parallel_training_equals_one_device(ipus):
    """Gradients meet over the links; each IPU has a quarter of the batch."""
    mesh = jax.make_mesh((4,), ("data",), (jax.sharding.AxisType.Auto,), devices=ipus)
    network = snnjax.network(6, [snnjax.layer(12, capacity=4)], snnjax.leaky_readout(3))
    optimiser = optax.adam(1e-2)
    params = network.init(jax.random.key(0))
    x = (jax.random.uniform(jax.random.key(1), (5, 8, 6)) < 0.5).astype(jnp.float32)
    labels = jnp.arange(8) % 3

    def loss(params, x, labels):
        return losses.cross_entropy_max(network.apply(params, None, x)[0].output, labels)

    def step(params, state, x, labels, mean=lambda tree: tree):
        value, gradients = mean(jax.value_and_grad(loss)(params, x, labels))
        updates, state = optimiser.update(gradients, state)
        return optax.apply_updates(params, updates), state, value

    def parallel(*arguments):
        return step(*arguments, mean=lambda tree: jax.lax.pmean(tree, "data"))

    shared, parts = PartitionSpec(), (PartitionSpec(None, "data"), PartitionSpec("data"))
    mapped = jax.jit(
        jax.shard_map(
            parallel, mesh=mesh, in_specs=(shared, shared, *parts), out_specs=shared, check_vma=False
        )
    )
    arguments = (params, optimiser.init(params), x, labels)
    placed = [
        jax.device_put(argument, NamedSharding(mesh, part))
        for argument, part in zip(arguments, (shared, shared, *parts), strict=True)
    ]
    expected = arguments
    for _ in range(STEPS):
        *placed[:2], value = mapped(*placed)
        *state, expected_value = jax.jit(step)(*expected)
        expected = (*state, x, labels)
    np.testing.assert_allclose(value, expected_value, **CLOSE)
    chex.assert_trees_all_close(tuple(placed[:2]), tuple(expected[:2]), **CLOSE, strict=True)
