"""NIR: the published example, round trips, other libraries both ways, every pitfall, every refusal."""

import json
import re
from pathlib import Path
from typing import Any

import h5py
import jax
import jax.numpy as jnp
import nir
import numpy as np
import pytest

import snnjax
from snnjax import neurons, surrogates
from snnjax.nir import from_nir, to_nir
from tests.numbers import assert_close, assert_same_bits

GOLDEN = Path(__file__).parent / "golden" / "nir"
DT = 1e-3

# The input of NIR's published example (neuromorphs/NIR, paper/01_lif): steps of 0.1 ms with a spike.
PUBLISHED_INPUT = [
    *(60, 220, 270, 310, 320, 350, 370, 400, 410, 430, 440, 450, 460, 470, 480, 490, 500),
    *(510, 520, 530, 670, 680, 690, 700, 710, 720, 730, 740, 750, 760, 770, 780, 840, 850),
]


def run(network: snnjax.Network, params: Any, inputs: Any) -> np.ndarray:
    return np.asarray(network.apply(params, None, jnp.asarray(inputs))[0].output)


def params_of(network: snnjax.Network, dtype: Any = jnp.float32) -> Any:
    """Random parameters without the compilations of `init`; thresholds in reach."""
    rng = np.random.default_rng(5)
    shapes = jax.eval_shape(lambda key: network.init(key, dtype=dtype), jax.random.key(0))
    filled = jax.tree.map(lambda like: jnp.asarray(rng.normal(0.3, 0.6, like.shape), dtype), shapes)
    own = [
        layer._replace(
            weights=spec.fitted.masked(layer.weights),
            neuron=layer.neuron._replace(threshold=jnp.abs(layer.neuron.threshold) + 0.1),
        )
        for spec, layer in zip(network.layers, filled.layers, strict=True)
    ]
    return filled._replace(layers=tuple(own))


def spikes_of(shape: tuple[int, ...], seed: int = 0, rate: float = 0.4) -> jax.Array:
    return (jax.random.uniform(jax.random.key(seed), shape) < rate).astype(jnp.float32)


def lif(size: int = 1, **changed: Any) -> nir.LIF:
    ones = np.ones(size, np.float32)
    fields = {
        "tau": 4e-3 * ones,
        "r": ones,
        "v_leak": 0 * ones,
        "v_threshold": 0.5 * ones,
        "v_reset": 0 * ones,
    }
    return nir.LIF(**{**fields, **changed})


def graph_of(*nodes: Any, shape: Any = (1,), loops: Any = ()) -> nir.NIRGraph:
    """A chain; loops are (name, node, name of the neuron)."""
    named = {f"n{i}": node for i, node in enumerate(nodes)}
    edges = list(zip(("input", *named), (*named, "output"), strict=True))
    for name, node, neuron in loops:
        named[name] = node
        edges += [(neuron, name), (name, neuron)]
    ends = {"input": nir.Input(np.array(shape)), "output": nir.Output(np.array([1]))}
    return nir.NIRGraph({**ends, **named}, edges, type_check=False)


def identity(size: int = 1) -> nir.Linear:
    return nir.Linear(np.eye(size, dtype=np.float32))


def test_published_example_spikes_where_it_should() -> None:
    network, params = from_nir(GOLDEN / "published_lif.nir", dt=1e-4)
    inputs = np.zeros((1000, 1, 1), np.float32)
    inputs[PUBLISHED_INPUT] = 1
    assert np.flatnonzero(run(network, params, inputs)).tolist() == [460, 510, 710, 760]


NETWORKS = {
    "lif": lambda: snnjax.network(5, [snnjax.layer(6)], snnjax.leaky_readout(3)),
    "recurrent": lambda: snnjax.network(
        5,
        [snnjax.layer(6, neurons.current_lif((0.8, 0.9), normalize=False), recurrent=True, capacity=4)],
        snnjax.leaky_readout(2, normalize=False, bias=False),
    ),
    "image": lambda: snnjax.network(
        (6, 8, 2),
        [
            snnjax.conv2d(4, 3),
            snnjax.sum_pool(2),
            snnjax.layer(
                snnjax.conv2d(3, 3, strides=2, padding=[(1, 1), (1, 1)]),
                neurons.lif((0.5, 0.9), reset="zero", normalize=False, learn_decay=True),
                bias=False,
                per_channel=False,
            ),
            snnjax.mean_pool((1, 2)),
            snnjax.layer(5, neurons.integrate_and_fire((0.5, 1.0)), delays=snnjax.axonal(4), recurrent=True),
        ],
        snnjax.spiking_readout(3, neurons.lif(surrogate=surrogates.sigmoid(4))),
    ),
    "line": lambda: snnjax.network(
        (9, 2),
        [
            snnjax.conv1d(4, 4, groups=2),
            snnjax.layer(
                snnjax.dense(5, mask=np.arange(180).reshape(36, 5) % 3 == 0),
                neurons.lif(reset="none", per_neuron=False),
                delays=snnjax.axonal(4, learn=False, per="channel"),
            ),
        ],
        snnjax.spiking_readout(3, neurons.lif(reset_time="immediate", inclusive=True)),
    ),
}


@pytest.mark.parametrize(
    "name, method, dtype",
    [
        ("lif", "euler", jnp.bfloat16),
        ("recurrent", "exact", jnp.float32),
        ("image", "euler", jnp.float32),
        ("line", "euler", jnp.float32),
    ],
)
def test_round_trip_by_a_file_is_exact(name: str, method: str, dtype: Any, tmp_path: Path) -> None:
    network = NETWORKS[name]()
    params = params_of(network, dtype)
    written = to_nir(network, params, dt=DT, method=method)
    nir.write(tmp_path / "network.nir", written)
    again, same = from_nir(tmp_path / "network.nir")
    assert_same_bits(same, params)
    for ours, theirs in zip(again.layers, network.layers, strict=True):
        for field in (
            "recurrent",
            "bias",
            "capacity",
            "second_threshold",
            "delays",
            "per_channel",
            "connection",
        ):
            assert getattr(ours, field) == getattr(theirs, field)
        assert (ours.neuron.name, ours.neuron.surrogate) == (theirs.neuron.name, theirs.neuron.surrogate)
    # What nir.read 1.0.8 infers of grouped convolutions is wrong.
    assert_same_bits(from_nir(nir.read(tmp_path / "network.nir", type_check=name != "line"))[1], params)
    inputs = spikes_of((8, 1, network.num_inputs)).astype(dtype)
    outputs = run(network, params, inputs)
    assert np.any(outputs)
    assert_same_bits(run(again, same, inputs), outputs)
