"""Whole programs on the device: training steps, random numbers, branches and loops, and several IPUs at once."""

from typing import Any

import chex
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from jax.sharding import NamedSharding, PartitionSpec

import snnjax
from snnjax import losses
from tests.ipu.device import on_device
from tests.ipu.lowering.test_training import OPTIMISERS, own_step, plain_step
from tests.graph.helpers import initial, random_spikes

STEPS = 3
# Sums in another order, and the quotients of Adam; a spike that differs would show far above.
CLOSE = {"rtol": 1e-4, "atol": 1e-5}


@pytest.fixture(autouse=True)
def promotion():
    """optax mixes integers with floats."""
    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        yield


def trained(device: jax.Device, step: Any, arguments: Any) -> Any:
    """Parameters, state and loss after some steps that donate both."""
    params, state, *rest = jax.tree.map(lambda leaf: jax.device_put(jnp.copy(leaf), device), arguments)
    run = jax.jit(step, donate_argnums=(0, 1))
    for _ in range(STEPS):
        params, state, *results = run(params, state, *rest)
    return params, state, results


def assert_equal_training(ipu: jax.Device, step: Any, arguments: Any, **tolerance: float) -> None:
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
    items = [snnjax.conv2d(4, 3), snnjax.sum_pool(2), snnjax.layer(16, delays=snnjax.axonal(4))]
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


RANDOM = {
    "bits": lambda key: jax.random.bits(key, (5,)),
    "uniform": lambda key: jax.random.uniform(key, (7,)),
    "randint": lambda key: jax.random.randint(key, (9,), -3, 11),
    "bernoulli": lambda key: jax.random.bernoulli(key, 0.3, (20,)),
    "permutation": lambda key: jax.random.permutation(key, 13),
    "split and fold": lambda key: jax.random.key_data(jax.random.fold_in(jax.random.split(key)[1], 7)),
    "choice": lambda key: jax.random.choice(key, 10, (4,), replace=False),
    "categorical": lambda key: jax.random.categorical(key, jnp.array([0.1, 2.0, -1.0]), shape=(6,)),
}


@pytest.mark.parametrize("name", RANDOM)
def test_random_numbers_are_those_of_the_cpu(ipus, name):
    on_device.check(ipus[0], RANDOM[name], jax.random.key(3), rtol=0, atol=0)


@pytest.mark.parametrize(
    "draw", [jax.random.normal, jax.random.exponential, jax.random.gumbel, jax.random.truncated_normal]
)
def test_random_distributions_are_those_of_the_cpu(ipus, draw):
    limits = (-2.0, 2.0) if draw is jax.random.truncated_normal else ()
    on_device.check(ipus[0], lambda key: draw(key, *limits, shape=(50,)), jax.random.key(4))


def collatz(n):
    """Steps to 1, of a loop that ends by its data."""
    return jax.lax.while_loop(
        lambda c: c[0] != 1,
        lambda c: (jax.lax.cond(c[0] % 2 == 0, lambda m: m // 2, lambda m: 3 * m + 1, c[0]), c[1] + 1),
        (n, 0),
    )[1]


CONTROL = {
    "while": (collatz, jnp.int32(27)),
    "while of each": (jax.vmap(collatz), jnp.arange(1, 9)),
    "fori": (lambda x: jax.lax.fori_loop(0, 5, lambda i, c: c * 0.5 + i, x), jnp.arange(3.0)),
    "fori to a number at hand": (lambda n: jax.lax.fori_loop(0, n, lambda i, c: c + i, 0), jnp.int32(6)),
    "switch": (
        lambda i: jax.lax.switch(i, [lambda x: x, jnp.sin, lambda x: x @ x.T], jnp.eye(3) * 2),
        jnp.int32(2),
    ),
    "switch beyond": (lambda i: jax.lax.switch(i, [lambda: 1.0, lambda: 2.0]), jnp.int32(9)),
    "nested scans": (
        lambda x: jax.lax.scan(lambda c, r: jax.lax.scan(lambda d, e: (d * 0.5 + e, d), c, r), 1.0, x),
        jnp.arange(12.0).reshape(3, 4),
    ),
    "gradient of a scan": (
        jax.grad(lambda x: jax.lax.scan(lambda c, e: (jnp.sin(c) + e, c * e), 0.5, x)[1].sum()),
        jnp.arange(6.0),
    ),
    "checkpoint": (jax.grad(jax.checkpoint(lambda x: jnp.sum(jnp.tanh(jnp.tanh(x)) ** 2))), jnp.arange(5.0)),
}


@pytest.mark.parametrize("name", CONTROL)
def test_control_flow_is_that_of_the_cpu(ipus, name):
    function, argument = CONTROL[name]
    on_device.check(ipus[0], function, argument)


UNARY = (
    jnp.sin,
    jnp.cos,
    jnp.tanh,
    jnp.exp,
    jnp.expm1,
    jnp.log,
    jnp.log1p,
    jnp.sqrt,
    jax.lax.rsqrt,
    jnp.cbrt,
)
UNARY += (
    jnp.abs,
    jnp.sign,
    jnp.floor,
    jnp.ceil,
    jnp.round,
    jnp.trunc,
    jnp.isfinite,
    jnp.isnan,
    jax.nn.sigmoid,
)
BINARY = (jnp.add, jnp.subtract, jnp.multiply, jnp.divide, jnp.maximum, jnp.minimum, jnp.power, jnp.arctan2)
BINARY += (jnp.fmod, jnp.greater, jnp.equal, jnp.not_equal, jnp.less_equal, jnp.nextafter, jnp.hypot)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_elementwise_functions_at_their_edges(ipus, dtype):
    """One program of all functions, over values that hold NaN, infinities, zeros of both signs."""
    x, y = (on_device.numbers((40,), dtype, seed, edges=True) for seed in (0, 1))
    functions = BINARY if dtype == "float32" else tuple(f for f in BINARY if f is not jnp.nextafter)
    on_device.check(
        ipus[0],
        lambda x, y: ([f(x) for f in UNARY], [f(x, y) for f in functions]),
        x,
        y,
        **({"rtol": 1e-5, "atol": 1e-6} if dtype == "float32" else on_device.tolerance(dtype)),
    )


@pytest.mark.parametrize("dtype", ["int32", "uint32", "int8", "uint16"])
def test_integer_functions(ipus, dtype):
    info = jnp.iinfo(dtype)
    x = jnp.array([0, 1, 2, 3, 7, info.max, info.min, info.max // 3], dtype)
    y = jnp.array([1, 2, 3, 5, 7, 2, 3, 1], dtype)
    functions = (
        jnp.add,
        jnp.subtract,
        jnp.multiply,
        jnp.floor_divide,
        jnp.remainder,
        jnp.maximum,
        jnp.minimum,
    )
    functions += (jnp.bitwise_and, jnp.bitwise_or, jnp.bitwise_xor, jnp.left_shift, jnp.right_shift, jnp.less)
    on_device.check(
        ipus[0],
        lambda x, y: (
            [f(x, y) for f in functions],
            [~x, jax.lax.population_count(x), jax.lax.clz(x), x.astype(jnp.float32)],
        ),
        x,
        y,
    )


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
