"""Speck, bit for bit with sinabs: its integers of random layers, and their spikes and membranes.

``python -m tests.integers.test_speck FILE`` compares any file of `tests/golden/make_speck.py`.
"""

import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

import snnjax
from snnjax import fixed_point, neurons
from snnjax.fixed_point import SPECK
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


if __name__ == "__main__":
    counts = [differing(own, number % 4) for number, own in enumerate(networks(sys.argv[1]))]
    wrong, total = (sum(each) for each in zip(*counts, strict=True))
    print(f"{len(counts)} networks: {wrong} of {total} values differ")
