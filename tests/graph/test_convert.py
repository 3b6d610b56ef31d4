"""Rectifier networks as spiking ones: what they compute, how they are given, and messages."""

import functools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from snnjax import (
    Network,
    blocks,
    conv1d,
    conv2d,
    convert,
    data,
    dense,
    flatten,
    layer,
    max_pool,
    mean_pool,
    neurons,
    nir,
    sum_pool,
)
from snnjax._types import Params
from tests.errors.refusals import refusals
from tests.golden import make_rectifiers
from tests.ops.common import jit

RELU = jax.nn.relu
NORM = blocks.batch_norm(epsilon=make_rectifiers.EPSILON)
DIGITS = [
    *(conv2d(8, 5, strides=2, padding="valid", bias=False), NORM, RELU, mean_pool(2)),
    *(conv2d(16, 3, padding="valid", bias=False), NORM, RELU, flatten()),
    *(dense(64), RELU, blocks.dropout(0.5), dense(10)),
]


def drawn(layers: Sequence[Any], shape: tuple[int, ...]) -> list[np.ndarray]:
    """Arrays for layers, in their order."""
    rng, found = np.random.default_rng(0), []
    for item in layers:
        if isinstance(item, blocks.Block):
            init = functools.partial(item.init, dtype=jnp.float32)
            wanted = jax.eval_shape(lambda key, init=init, shape=shape: init(key, shape), jax.random.key(0))
            found += [rng.normal(0, 1, leaf.shape).astype(np.float32) for leaf in jax.tree.leaves(wanted)]
            if item.kind == "batch_norm":
                found += [rng.normal(0, 1, shape[-1:]), rng.uniform(0.5, 2, shape[-1:])]
            shape = item.out_shape(shape)
    return found


def applied(network: Network, params: Params, x: jax.Array, steps: int, **options):
    """What the network yields for the same input in every step, by one program."""
    run = jit(lambda x: network.apply(params, None, jnp.broadcast_to(x, (steps, *x.shape)), **options))
    return run(x)


def test_digits_are_recognised_in_32_steps_as_by_the_source() -> None:
    with np.load(Path(make_rectifiers.__file__).with_name("rectifiers.npz")) as arrays:
        weights = [arrays[name].astype(np.float32) for name in sorted(arrays)]
    train, test = data.load_mnist_10k("train"), data.load_mnist_10k("test")
    samples, images = ((own / 255).astype(np.float32)[..., None] for own in (train.images[:200], test.images))
    groups = [weights[:3], weights[5:8], weights[10:12], weights[12:]]
    stats = [weights[3:5], weights[8:10]]
    with jax.numpy_rank_promotion("allow"):
        logits, _ = jit(functools.partial(make_rectifiers.network, train=False))(groups, stats, images)
    network, params = convert(DIGITS, weights, samples)
    run = jax.jit(lambda x: network.apply(params, None, jnp.broadcast_to(x, (32, *x.shape)))[0].output[-1])
    spiking = np.concatenate([run(images[first : first + 500]) for first in range(0, len(images), 500)])
    source, found = (np.mean(np.asarray(own).argmax(axis=1) == test.labels) for own in (logits, spiking))
    assert source > 0.975  # the weights are those of a trained network
    assert found > source - 0.005
    assert "alone" not in network.paths


ONE_LAYER = {
    "dense": ((5,), [dense(7), RELU, dense(3)]),
    "norm, without biases": ((5,), [dense(7, bias=False), NORM, RELU, dense(3, bias=False)]),
    "convolution, pools": ((6, 6, 2), [conv2d(3, 3), RELU, mean_pool(2), sum_pool(3), dense(4)]),
    "pool before the rectifier": ((6, 6, 2), [conv2d(3, 3), NORM, mean_pool(3), RELU, flatten(), dense(4)]),
    "maximum of inputs": ((6, 2), [max_pool(2), conv1d(3, 3, padding="valid"), RELU, dense(4)]),
    "two connections in a row": ((5,), [dense(4), dense(7), RELU, dense(6), dense(3)]),
    "pool at the end": ((4, 4, 2), [conv2d(3, 3), RELU, conv2d(5, 1), mean_pool(4)]),
}


@pytest.mark.parametrize("name", ONE_LAYER)
def test_mean_output_is_that_of_the_source_with_rounded_rates(name: str) -> None:
    """Half a threshold at the start rounds the number of spikes: each rate is off by at most half a spike."""
    shape, layers = ONE_LAYER[name]
    rng, weights, steps = np.random.default_rng(1), drawn(layers, shape), 40
    x = jnp.asarray(rng.uniform(0, 1, (6, *shape)), jnp.float32)
    network, params = convert(layers, weights, x, percentile=100)
    output, _ = applied(network, params, x, steps, record="spikes")
    activations, rest = source(layers, weights, x)
    rates = jnp.mean(next(iter(output.recorded.values())), axis=0)
    most = jnp.max(activations)
    np.testing.assert_allclose(rates, activations / most, atol=0.5 / steps + 1e-5, rtol=0)
    # The rest of the source, which is linear, of what the spiking network passed on; sums of 40 steps in float32.
    np.testing.assert_allclose(output.output[-1] / steps, rest(rates * most), rtol=1e-4, atol=1e-4)


def source(layers: Sequence[Any], weights: list[np.ndarray], x: jax.Array) -> tuple[jax.Array, Any]:
    """The activations after the only rectifier, and the function from them to the logits."""
    given = iter([jnp.asarray(array, jnp.float32) for array in weights])
    steps = [step(item, given) for item in layers]
    place = layers.index(RELU) + 1

    def run(steps: Sequence[Any], x: jax.Array) -> jax.Array:
        with jax.numpy_rank_promotion("allow"):
            for own in steps:
                x = own(x)
        return x

    return jit(functools.partial(run, steps[:place]))(x), jit(functools.partial(run, steps[place:]))


def step(item, given):
    """A layer as a function, in plain JAX as far as it has arrays."""
    if item is RELU:
        return RELU
    if item.kind == "batch_norm":
        scale, bias, mean, variance = (next(given) for _ in range(4))
        return lambda x: (x - mean) / jnp.sqrt(variance + item.epsilon) * scale + bias
    if item.kind == "dense":
        weights, bias = next(given), next(given) if item.bias else jnp.zeros(())
        return lambda x: x.reshape(len(x), -1) @ weights + bias
    if item.kind.startswith("conv"):
        weights, bias = next(given), next(given)
        axes = ("NHWC", "HWIO", "NHWC") if item.kind == "conv2d" else ("NHC", "HIO", "NHC")
        options = {"padding": item.padding.upper(), "dimension_numbers": axes}
        return lambda x: jax.lax.conv_general_dilated(x, weights, item.strides, **options) + bias
    return lambda x: item.apply(
        None, None, None, x[None], shapes=(x.shape[1:],), context=blocks.Context()
    ).signal[0]


def test_maximum_of_activations_becomes_the_largest_rate() -> None:
    """On either side of the rectifier: a window's counts follow its fastest neuron."""
    shape, rng = (6, 6, 1), np.random.default_rng(0)
    x = jnp.asarray(rng.uniform(0, 1, (3, *shape)), jnp.float32)
    around = [conv2d(4, 3)], [dense(3)]
    weights = drawn([*around[0], max_pool(2), *around[1]], shape)
    networks = [
        convert([*around[0], *middle, *around[1]], weights, x, percentile=100)
        for middle in ([RELU, max_pool(2)], [max_pool(2), RELU])
    ]
    assert networks[0][0] == networks[1][0]
    network, params = networks[0]
    output, _ = applied(network, params, x, 50, record=("spikes", "max_rate_pool_0"))
    rates, pooled = (jnp.mean(own, axis=0) for own in output.recorded.values())
    windows = rates.reshape(3, 3, 2, 3, 2, 4)
    np.testing.assert_allclose(pooled, windows.max((2, 4)), atol=1e-6)
    assert jnp.mean(pooled) > 1.5 * jnp.mean(rates)


def test_rates_of_maxima_are_the_same_in_pieces() -> None:
    spikes = (np.random.default_rng(0).uniform(size=(9, 2, 4, 3)) < 0.3).astype(np.float32)
    block, shapes = blocks.max_rate_pool(2, strides=1), ((4, 3),)
    start = block.initial_state(None, None, 2, *shapes)
    whole = block.apply(None, start, None, jnp.asarray(spikes), shapes=shapes, context=blocks.Context())
    state, pieces = start, []
    for part in (spikes[:4], spikes[4:]):
        result = block.apply(None, state, None, jnp.asarray(part), shapes=shapes, context=blocks.Context())
        pieces.append(result.signal)
        state = result.state
    np.testing.assert_array_equal(whole.signal, jnp.concatenate(pieces))
    np.testing.assert_array_equal(whole.state, spikes.sum(0))


def test_rates_of_float64_are_compared_in_float64() -> None:
    """Also in a block that is run alone, whose first state is float32: the sums differ by 2^-40."""
    block, shapes = blocks.max_rate_pool(2), ((2, 1),)
    with jax.enable_x64(True):
        x = jnp.array([[[[1.0], [1.0 + 2.0**-40]]]], jnp.float64)
        start = block.initial_state(None, None, 1, *shapes)
        result = block.apply(None, start, None, x, shapes=shapes, context=blocks.Context())
        assert float(result.signal[0, 0, 0, 0]) == 1.0 + 2.0**-40
        assert result.state.dtype == jnp.float64


def test_dict_of_flax_and_list_of_arrays_are_the_same() -> None:
    layers = [conv2d(3, 3), NORM, RELU, dense(5, bias=False).named("hidden"), RELU, dense(2)]
    weights = drawn(layers, (4, 4, 2))
    names = [("params", "Conv_0", "kernel"), ("params", "Conv_0", "bias")]
    names += [("params", "BatchNorm_0", "scale"), ("params", "BatchNorm_0", "bias")]
    names += [("batch_stats", "BatchNorm_0", "mean"), ("batch_stats", "BatchNorm_0", "var")]
    names += [("params", "hidden", "kernel"), ("params", "Dense_0", "kernel"), ("params", "Dense_0", "bias")]
    tree: dict[str, Any] = {"params": {}, "batch_stats": {}}
    for (collection, module, name), array in zip(names, weights, strict=True):
        tree[collection].setdefault(module, {})[name] = array
    x = jax.random.uniform(jax.random.key(0), (4, 4, 4, 2))
    (network, params), (same, others) = (convert(layers, own, x) for own in (weights, tree))
    assert network == same
    assert [node.name for node in network.nodes if node.name.startswith("hidden/")]
    jax.tree.map(np.testing.assert_array_equal, params, others)


def test_converted_network_survives_its_way_through_nir() -> None:
    layers = [conv2d(3, 3), RELU, mean_pool(2), dense(3)]
    x = jax.random.uniform(jax.random.key(0), (2, 4, 4, 2))
    network, params = convert(layers, drawn(layers, (4, 4, 2)), x)
    same, others, _ = nir.from_nir(nir.to_nir(network, params, dt=1.0))
    jax.tree.map(np.testing.assert_array_equal, params, others)
    found = [{node.name: node.block for node in net.nodes} for net in (network, same)]
    for name in ("layer_0/neuron", "readout/neuron"):  # half a threshold at the start, a decay of 1
        assert found[0][name] == found[1][name]


def test_smaller_percentile_makes_neurons_spike_more_often() -> None:
    layers = [dense(20), RELU, dense(3)]
    weights, x = drawn(layers, (5,)), jax.random.uniform(jax.random.key(0), (30, 5))
    rates = []
    for percentile in (100, 99.9, 80):
        network, params = convert(layers, weights, x, percentile=percentile)
        output, _ = applied(network, params, x, 20)
        rates.append(float(jnp.mean(output.activity["layer_0/neuron"])))
    assert rates[0] < rates[1] < rates[2]


X, HIDDEN = jnp.ones((2, 3)), [np.ones((3, 4)), np.ones(4)]
LAST = [np.ones((4, 2)), np.ones(2)]
GOOD = [dense(4), RELU, dense(2)]
FLAX = {f"Dense_{k}": dict(zip(("kernel", "bias"), own, strict=True)) for k, own in enumerate((HIDDEN, LAST))}
REFUSED = {
    "convert: `percentile` must be a number above 0 and at most 100, got 0. Try 99.9.": lambda: convert(
        GOOD, [*HIDDEN, *LAST], X, percentile=0
    ),
    "convert: `samples` must have shape [samples, *shape], got [3]. Pass a batch of inputs.": lambda: convert(
        GOOD, [*HIDDEN, *LAST], jnp.ones(3)
    ),
    "convert: `samples` must have a floating-point dtype, got uint8. Cast it "
    "with samples.astype(jnp.float32).": lambda: convert(GOOD, [*HIDDEN, *LAST], jnp.ones((2, 3), jnp.uint8)),
    "convert: `samples` must activate every rectifier, got only zeros in layers[1]. "
    "Pass inputs on the scale of the training.": lambda: convert(GOOD, [*HIDDEN, *LAST], -X - 1),
    "convert: `samples` must activate every rectifier, got numbers that are not finite in layers[1]. "
    "Pass inputs on the scale of the training.": lambda: convert(GOOD, [*HIDDEN, *LAST], X / 0),
    "convert: `layers` must be a list of layers, got a Dense. Write [dense(10)].": lambda: convert(
        dense(2), LAST, X
    ),
    "convert: `weights` must be a list of arrays or a dict of flax, got an array. "
    "Pass model.get_weights(), or {'params': ...}.": lambda: convert(GOOD, np.ones(3), X),
    "convert: `layers` must be a chain of connections, batch_norm, pools, flatten and jax.nn.relu, got lif in "
    "layers[1]. "
    "Replace it, or leave it out.": lambda: convert([dense(4), neurons.lif(), dense(2)], [*HIDDEN, *LAST], X),
    "convert: `layers` must be a chain of connections, batch_norm, pools, flatten and jax.nn.relu, got layer "
    "in layers[0]. Replace it, or leave it out.": lambda: convert([layer(4), dense(2)], [*HIDDEN, *LAST], X),
    "convert: `layers` must be a chain of connections, batch_norm, pools, flatten and jax.nn.relu, got "
    "softmax in "
    "layers[3]. Replace it, or leave it out.": lambda: convert([*GOOD, jax.nn.softmax], [*HIDDEN, *LAST], X),
    "convert: `layers` must be a chain of connections, batch_norm, pools, flatten and jax.nn.relu, got dense "
    "with a source in layers[2]. Replace it, or leave it out.": lambda: convert(
        [dense(4), RELU, dense(2).receiving("input")], [*HIDDEN, *LAST], X
    ),
    "convert: `layers` must end with a connection, got no connection after the last rectifier. "
    "Leave out what follows the logits.": lambda: convert([*GOOD, RELU], [*HIDDEN, *LAST], X),
    "convert: `layers` must end with a connection, got none. Leave out what follows the logits.": lambda: (
        convert([], [], X)
    ),
    "convert: `layers` must have a connection before each rectifier, got none before layers[2]. "
    "Remove it.": lambda: convert([dense(4), RELU, RELU, dense(2)], [*HIDDEN, *LAST], X),
    "convert: `layers` must have batch_norm directly after a connection, got it in layers[2]. Train the "
    "network with the norm there.": lambda: convert([dense(4), RELU, NORM, dense(2)], [*HIDDEN, *LAST], X),
    "convert: `layers` must have max_pool beside a rectifier, got it in layers[1]. "
    "Put them together.": lambda: convert(
        [conv1d(4, 1), max_pool(1), dense(2)], drawn([conv1d(4, 1), dense(2)], (3, 1)), X[..., None]
    ),
    "convert: `weights` must hold arrays of shape [4, 2] and [2] for layers[2], dense, got [2, 4] and [2]. "
    "A connection without a bias has bias=False.": lambda: convert(GOOD, [*HIDDEN, LAST[0].T, LAST[1]], X),
    "convert: `weights` must hold arrays of shape [4, 2] and [2] for layers[2], dense, got none. "
    "A connection without a bias has bias=False.": lambda: convert(GOOD, HIDDEN, X),
    "convert: `weights` must be those of the layers, got 2 arrays more. "
    "Add the layers that they belong to.": lambda: convert(GOOD, [*HIDDEN, *LAST, *LAST], X),
    "convert: `weights` must hold ['params']['Dense_0']['kernel'], got 'fc1', 'fc2' in place of 'Dense_0'. "
    "Name the layers as in "
    "flax, as in dense(10).named('Dense_0').": lambda: convert(GOOD, {"params": {"fc1": {}, "fc2": {}}}, X),
    "convert: `weights` must be those of the layers, got ['params']['Dense_0']['bias'] more. "
    "A connection with a bias has bias=True.": lambda: convert(
        [dense(4, bias=False), RELU, dense(2)], {"params": FLAX}, X
    ),
    "max_pool: `window` must be an integer of at least 1, got 0. Pass 1 or more.": lambda: (
        blocks.max_rate_pool(0)
    ),
}
test_wrong_arguments_are_named = refusals(REFUSED)
