"""Norms as part of the weights before them: equal up to rounding, for float and for quantised weights."""

import dataclasses
from typing import Any

import chex
import jax
import jax.numpy as jnp
import pytest
from jax.typing import DTypeLike

from snnjax import Network, blocks, conv2d, dense, layer, leaky_readout, network, residual
from snnjax._types import Params, State, Stats
from snnjax.blocks.norm import Affine, NormStats
from snnjax.quantisation import quantise_network
from tests.graph.helpers import initial, random_spikes

NORM = blocks.batch_norm()
NETWORKS = {
    "dense": [layer(dense(9, bias=False), norm=NORM), residual(layer(9, norm=NORM))],
    "convolution": [layer(conv2d(3, 3), norm=NORM), blocks.batch_norm().named("left"), layer(6)],
}


def case(name: str) -> tuple[Network, Any, Any, Any]:
    """A network, its parameters and statistics, and inputs."""
    net = network((4, 4, 2), NETWORKS[name], leaky_readout(3))
    inputs = random_spikes(0.3, inputs=32)
    params, keys = initial(net, inputs, target_activity=0.2), iter(jax.random.split(jax.random.key(1), 99))
    stats = {
        name: NormStats(*(0.5 + jax.random.uniform(next(keys), leaf.shape) for leaf in norm))
        for name, norm in net.initial_stats(jax.random.key(0)).items()
    }
    return net, params, stats, inputs


@pytest.mark.parametrize("name", NETWORKS)
def test_folded_network_is_the_same_without_the_norms_behind_connections(name: str) -> None:
    net, params, stats, inputs = case(name)
    folded, fewer, left = net.fold(params, stats)
    assert [node.name for node in folded.nodes if "norm" in node.name] == []
    assert left.keys() == ({"left"} if name == "convolution" else set())
    want = net.apply(params, None, inputs, stats=stats)[0]
    got = folded.apply(fewer, None, inputs, stats=left)[0]
    chex.assert_trees_all_equal(got.activity, want.activity, strict=True)
    chex.assert_trees_all_close(got.output, want.output, rtol=1e-5, atol=1e-5, strict=True)


@pytest.mark.parametrize("name", NETWORKS)
def test_quantised_weights_are_folded_by_their_scale(name: str) -> None:
    net, params, stats, inputs = case(name)
    small = quantise_network(params)
    folded, fewer, left = net.fold(small, stats)
    kept = fewer["layer_0/connection"].weights.values
    assert kept.dtype == jnp.int8
    chex.assert_trees_all_equal(kept, small["layer_0/connection"].weights.values)
    want = net.apply(small, None, inputs, stats=stats)[0]
    got = folded.apply(fewer, None, inputs, stats=left)[0]
    chex.assert_trees_all_close(got.output, want.output, rtol=1e-5, atol=1e-5, strict=True)


@dataclasses.dataclass(frozen=True)
class Gain(blocks.Block):
    """A user's own factor for each channel, without stats."""

    kind = "gain"

    def init(self, key, *shapes, dtype: DTypeLike):
        return jnp.linspace(1, 2, shapes[0][-1], dtype=dtype)

    def apply(self, params: Params, state: State, stats: Stats, *signals, shapes, context):
        return blocks.BlockResult(signals[0] * params.reshape((1,) * (signals[0].ndim - 1) + (-1,)))

    def op(self, shape):
        return Affine()

    def operands(self, params: Params, stats: Stats, shape):
        return params, jnp.zeros_like(params)


def test_own_factor_is_part_of_the_fused_op_and_folded() -> None:
    inputs = random_spikes(0.3, inputs=32)
    net = network((4, 4, 2), [layer(conv2d(3, 3), norm=Gain()), layer(6)], leaky_readout(3))
    params = initial(net, inputs, target_activity=0.2)
    assert net.paths.startswith("fused: layer_0/connection > layer_0/norm > layer_0/neuron > ")
    want = net.apply(params, None, inputs, implementation="composed")[0]
    folded, fewer, left = net.fold(params, {})
    assert left == {}
    assert "layer_0/norm" not in fewer
    for got in (net.apply(params, None, inputs)[0], folded.apply(fewer, None, inputs)[0]):
        chex.assert_trees_all_equal(got.activity, want.activity, strict=True)
        chex.assert_trees_all_close(got.output, want.output, rtol=1e-5, atol=1e-5, strict=True)
