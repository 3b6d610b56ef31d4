"""Graphs and networks that the tests of NIR share."""

import jax
import jax.numpy as jnp
import nir
import numpy as np
from jax.typing import DTypeLike

import snnjax
from snnjax import neurons, surrogates
from snnjax._types import Params, Signal, Stats
from snnjax.blocks.linear import LinearParams

DT = 1e-3
# Neurons that the random weights of `params_of` make spike.
EAGER = neurons.lif(0.8, 0.2)

NETWORKS = {
    "lif": lambda: snnjax.network(5, [snnjax.layer(6)], snnjax.leaky_readout(3)),
    "recurrent": lambda: snnjax.network(
        5,
        [snnjax.layer(6, neurons.current_lif((0.8, 0.9), normalize=False), recurrent=True, capacity=4)],
        snnjax.leaky_readout(snnjax.dense(2, bias=False), normalize=False),
    ),
    "image": lambda: snnjax.network(
        (6, 8, 2),
        [
            snnjax.layer(snnjax.conv2d(4, 3), recurrent=snnjax.conv2d(4, 3, bias=False)),
            snnjax.sum_pool((2, 2), strides=(1, 2)),
            snnjax.layer(
                snnjax.conv2d(3, 3, strides=2, padding=[(1, 1), (1, 1)], bias=False),
                neurons.lif((0.5, 0.9), per="neuron", reset="zero", normalize=False, learn_decay=True),
            ),
            snnjax.axonal(4),
            snnjax.mean_pool((1, 2)),
            snnjax.layer(
                5,
                neurons.integrate_and_fire((0.5, 1.0)),
                recurrent=[snnjax.axonal(3), snnjax.dense(5)],
            ),
        ],
        snnjax.spiking_readout(3, neurons.lif(surrogate=surrogates.sigmoid(4))),
    ),
    "line": lambda: snnjax.network(
        (9, 2),
        [
            snnjax.layer(snnjax.conv1d(4, 4, groups=2, dilation=2)),
            snnjax.flatten(),
            snnjax.axonal(4, learn=False, per="layer"),
            snnjax.layer(
                snnjax.dense(5, mask=np.arange(180).reshape(36, 5) % 3 == 0),
                neurons.lif(reset="none", per="layer", learn_decay=True),
            ),
        ],
        snnjax.spiking_readout(3, neurons.lif(reset_time="immediate", inclusive=True)),
    ),
    "branches": lambda: snnjax.network(
        {"left": (4, 4, 2), "right": 6},
        [
            snnjax.layer(snnjax.conv2d(2, 3), EAGER).named("first"),
            snnjax.residual(snnjax.layer(snnjax.conv2d(2, 3), EAGER)),
            snnjax.residual(snnjax.layer(snnjax.conv2d(2, 3), EAGER), snnjax.conv2d(2, 1)),
            snnjax.dense(7).named("images"),
            snnjax.dense(7).named("others").receiving("right"),
            snnjax.blocks.join("add").named("both").receiving("images", "others"),
            snnjax.layer(None, EAGER, recurrent=True).named("hidden"),
        ],
        {
            "classes": snnjax.leaky_readout(3),
            "early": snnjax.leaky_readout(snnjax.conv2d(1, 2)).receiving("first"),
        },
    ),
    "flat recurrence": lambda: snnjax.network(
        (2, 3, 2),
        [
            snnjax.layer([snnjax.conv2d(2, 2), snnjax.flatten()], EAGER, recurrent=snnjax.dense(12)),
            snnjax.layer(4, EAGER),
        ],
    ),
}


def inputs_of(network: snnjax.Network, steps: int = 8):
    """Random spikes, by name if there are several inputs."""
    given = {name: spikes_of((steps, 1, *shape), seed) for seed, (name, shape) in enumerate(network.inputs)}
    return given if len(given) > 1 else next(iter(given.values()))


def run(network: snnjax.Network, params: Params, stats: Stats, inputs: Signal):
    """The output of a network."""
    output = jax.jit(network.apply)(params, None, jax.tree.map(jnp.asarray, inputs), stats=stats)[0].output
    return jax.tree.map(np.asarray, output)


def params_of(network: snnjax.Network, dtype: DTypeLike = jnp.float32):
    """Random parameters without the compilations of `init`; thresholds in reach."""
    rng = np.random.default_rng(5)
    shapes = jax.eval_shape(lambda key: network.init(key, dtype=dtype), jax.random.key(0))
    found = jax.tree.map(lambda like: jnp.asarray(rng.normal(0.3, 0.6, like.shape), like.dtype), shapes)
    for node in network.nodes:
        own = found.get(node.name)
        if isinstance(own, LinearParams):
            found[node.name] = own._replace(weights=node.block.used(own.weights))
        elif getattr(own, "threshold", None) is not None:
            found[node.name] = own._replace(threshold=jnp.abs(own.threshold) + 0.1)
    return found


def stats_of(network: snnjax.Network):
    """Constants that are drawn and not learned."""
    return network.initial_stats(jax.random.key(5))


def spikes_of(shape: tuple[int, ...], seed: int = 0, rate: float = 0.4) -> jax.Array:
    return (jax.random.uniform(jax.random.key(seed), shape) < rate).astype(jnp.float32)


def lif(size: int = 1, **changed) -> nir.LIF:
    ones = np.ones(size, np.float32)
    fields = {
        "tau": 4e-3 * ones,
        "r": ones,
        "v_leak": 0 * ones,
        "v_threshold": 0.5 * ones,
        "v_reset": 0 * ones,
    }
    return nir.LIF(**{**fields, **changed})


def graph_of(*nodes, shape=(1,), loops=()) -> nir.NIRGraph:
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
