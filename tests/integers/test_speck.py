"""Speck, bit for bit with sinabs: its integers of random layers, and their spikes and membranes.

``python -m tests.integers.test_speck FILE`` compares any file of `tests/golden/make_speck.py`.
"""

import itertools
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import snnjax
from snnjax import blocks, fixed_point, neurons
from snnjax.fixed_point import SPECK
from snnjax.fixed_point._route import Route, drive_of
from snnjax.ops._convolution import Convolution
from tests.integers.test_xylo import networks

STORED = Path(__file__).parents[1] / "golden" / "speck.npz"
NEURON = neurons.integrate_and_fire()
SHAPE = (8, 8, 2)


def make_net(pool=snnjax.sum_pool):
    """The network of `make_speck.py`."""
    layers = [
        snnjax.layer(snnjax.conv2d(4, 3, padding=1), NEURON),
        snnjax.layer([pool(2), snnjax.conv2d(5, 3, strides=2, padding=1)], NEURON),
        snnjax.layer([snnjax.flatten(), snnjax.dense(6)], NEURON),
    ]
    return snnjax.network(SHAPE, layers)


def converted(own, kind):
    """The network of a file, its params, and its integers."""
    net = make_net(snnjax.mean_pool if kind == 2 else snnjax.sum_pool)
    params = jax.eval_shape(net.init, jax.random.key(0))
    for place, name in enumerate(params):
        shape = params[name].weights.shape
        weights, bias = (jnp.asarray(own[f"{place}/{part}"]) for part in ("w", "b"))
        params[name] = params[name]._replace(weights=weights.reshape(shape), bias=bias)
    return net, params, fixed_point.convert(net, params, SPECK)[0]


def differing(own, kind):
    """How many values of a network differ from those of sinabs, and how many there are."""
    _, _, whole = converted(own, kind)
    x = own["x"][:, None].astype(np.int32)
    found, _ = fixed_point.run(whole, x, record=("spikes", "membranes"))
    wrong = total = 0
    for place, layer in enumerate(whole.layers):
        names = ("wi", "bi", "threshold", "s", "v")
        wi, bi, threshold, s, v = (own[f"{place}/{name}"] for name in names)
        biases = np.tile(bi, layer.num_neurons // len(bi))
        held = layer.neurons
        pairs = [(layer.weights, wi), (held.bias, biases), (held.threshold, np.full(len(biases), threshold))]
        pairs += [(found.spikes[layer.name], s), (found.membranes[layer.name], v)]
        wrong += sum(int(np.sum(np.ravel(ours) != theirs.ravel())) for ours, theirs in pairs)
        total += sum(theirs.size for _, theirs in pairs)
    return wrong, total


def test_all_values_are_those_of_sinabs():
    stored = list(enumerate(networks(STORED)))
    assert len(stored) == 4
    assert sum(differing(own, number % 4)[0] for number, own in stored) == 0
    loud = stored[3][1]
    assert any(loud[f"{place}/v"].min() == SPECK.bounds[0] for place in range(3))
    assert any(loud[f"{place}/s"].max() == SPECK.max_spikes for place in range(3))


def test_run_is_apply_to_the_bit_and_trains():
    own = list(networks(STORED))[1]
    net, params, whole = converted(own, 1)
    spikes = own["x"][:, None].astype(np.int32)
    ran, state = fixed_point.run(whole, spikes, record=("spikes", "membranes"))

    def ours(params):
        found, after = fixed_point.apply(net, params, SPECK, spikes, record=("spikes", "membranes"))
        return found.output.sum(), (found, after)

    gradients, (found, after) = jax.jit(jax.grad(ours, has_aux=True))(params)
    assert all(np.array_equal(found.membranes[name], held) for name, held in ran.membranes.items())
    assert all(np.array_equal(held, ran.spikes[name]) for name, held in found.recorded.items())
    assert np.array_equal(found.output, ran.output)
    jax.tree.map(np.testing.assert_array_equal, state, after)
    assert all((np.asarray(leaf) != 0).any() for leaf in jax.tree.leaves(gradients))
    assert fixed_point.headroom(whole, spikes)["layer_2/neuron"].current == 0


def net_of(*layers, shape=SHAPE):
    return snnjax.network(shape, list(layers))


def conv(*before, neuron=NEURON, **options):
    return snnjax.layer([*before, snnjax.conv2d(4, **({"kernel": 3, "padding": 1} | options))], neuron)


SQUARE = "have square kernels, padded alike on both sides, without groups or dilation on Speck, got"
POOLS = "have sums and means of square windows side by side on Speck, got"
# A network, and what the message says of it.
REFUSED = {
    "kernels": (
        net_of(conv(kernel=(3, 1))),
        f"{SQUARE} a kernel of (3, 1) in `layer_0/connection/conv2d_0`.",
    ),
    "groups": (net_of(conv(groups=2)), f"{SQUARE} 2 groups"),
    "dilation": (net_of(conv(dilation=2)), f"{SQUARE} dilation (2, 2)"),
    "padding": (
        net_of(conv(strides=2, padding="same")),
        f"{SQUARE} padding ((0, 1), (0, 1)) in `layer_0/connection/conv2d_0`. "
        "Use conv2d(8, 3, padding=1), for instance.",
    ),
    "transposed": (
        net_of(snnjax.layer(blocks.conv2d_transpose(4, 2), NEURON)),
        "have blocks of Speck, got conv2d_transpose in `layer_0/connection`. Use dense or conv2d connections",
    ),
    "maxima": (
        net_of(conv(snnjax.max_pool(2))),
        f"{POOLS} max_pool of window 2, strides None and padding None in `layer_0/connection/max_pool_0`. "
        "Use sum_pool(2), for instance.",
    ),
    "overlaps": (net_of(conv(snnjax.sum_pool(3, strides=2))), f"{POOLS} sum_pool of window"),
    "leak": (
        net_of(conv(neuron=neurons.lif())),
        "have neurons of Speck, got lif in `layer_0/neuron`. Use integrate_and_fire.",
    ),
    "recurrence": (
        net_of(snnjax.layer(8, NEURON, recurrent=True), shape=(8,)),
        "have layers without recurrence on Speck, got recurrent in",
    ),
    "thresholds": (
        net_of(conv(neuron=neurons.integrate_and_fire(learn_threshold=True))),
        "have one threshold for a layer on Speck, got one for each channel in `layer_0/neuron`. "
        "Pass per='layer', or one threshold that is not learned.",
    ),
    "three layers for two cores": (
        net_of(*[snnjax.layer(256, NEURON)] * 3, shape=(256,)),
        "fit into the 9 cores of Speck, got no core left for 65536 weights and 256 neurons of `layer_2/neuron`",
    ),
    "cores": (
        net_of(snnjax.layer(512, NEURON), snnjax.layer(512, NEURON), shape=(128,)),
        "fit into the 9 cores of Speck, got no core left for 262144 weights and 512 neurons of `layer_1/neuron`. "
        "Use fewer channels, or pool more.",
    ),
}


def test_largest_sums_of_a_convolution_are_exact():
    """At the most spikes that a convolution may sum, in the form for active images, which sums quarters on the way."""
    channels, size = 176, 4
    route = Route(convolution=Convolution.of("conv2d", (size, size, channels), (3, 3), 32, padding=1))
    rng = np.random.default_rng(0)
    ends = rng.choice([-128, 127], (9 * channels, 32)), rng.choice([-128, -127], (9 * channels, 32))
    counts = rng.choice([0, 15], (2, size, size, channels)), rng.choice([14, 15], (2, size, size, channels))
    for weights, spikes in itertools.product(ends, counts):
        padded = np.pad(spikes, ((0, 0), (1, 1), (1, 1), (0, 0)))
        seen = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(1, 2))  # [.., channels, 3, 3]
        expected = np.moveaxis(seen, 3, 5).reshape(2, size, size, -1) @ weights
        own, flat = jnp.asarray(weights[None], jnp.int8), jnp.asarray(spikes.reshape(2, -1), jnp.float32)
        found = drive_of(own.reshape(1, 3, 3, channels, 32), 0, flat, route)
        np.testing.assert_array_equal(found, expected.reshape(1, 2, -1))


@pytest.mark.parametrize("name", REFUSED)
def test_what_speck_cannot_do_is_refused_by_name(name):
    net, words = REFUSED[name]
    params = jax.tree.map(
        lambda own: np.zeros(own.shape, own.dtype), jax.eval_shape(net.init, jax.random.key(0))
    )
    with pytest.raises(ValueError) as error:
        fixed_point.convert(net, params, SPECK)
    assert str(error.value).startswith(f"fixed_point.convert: `network` must {words}")


if __name__ == "__main__":
    counts = [differing(own, number % 4) for number, own in enumerate(networks(sys.argv[1]))]
    wrong, total = (sum(each) for each in zip(*counts, strict=True))
    print(f"{len(counts)} networks: {wrong} of {total} values differ")
