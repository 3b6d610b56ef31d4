"""Pipelines over modelled IPUs: they learn what one CPU device learns, and the profile shows the bubble."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType, NamedSharding, PartitionSpec

import snnjax
from snnjax import train
from snnjax.ipu import read_profile

PIECES, STEPS, WIDTH = 4, 3, 8
SHARES, STAGES = PartitionSpec(None, "stage"), PartitionSpec("stage")
NET = snnjax.network(WIDTH, [], snnjax.spiking_readout(WIDTH))


def stage(params, spikes):
    return NET.apply(params, None, spikes, implementation="composed")[0].output


def fused(params, spikes):
    """One op on the tiles, whose record of the forward pass is kept for each turn."""
    return NET.apply(params, None, spikes)[0].output


def data(layers):
    spikes = jax.random.bernoulli(jax.random.key(0), 0.4, (STEPS, PIECES * 2, WIDTH)).astype(jnp.float32)
    keys = jax.random.split(jax.random.key(1), layers)
    weights = jax.random.normal(jax.random.key(2), spikes.shape)
    return [NET.init(key, spikes, target_activity=0.4) for key in keys], spikes, weights


def on_one(layers, spikes, weights):
    def total(layers):
        y = spikes
        for params in layers:
            y = stage(params, y)
        return jnp.sum(y * weights)

    return jax.jit(jax.value_and_grad(total))(layers)


def compiled_on(ipus, stage, layers, spikes, weights):
    """The compiled step, and its arguments on the IPUs."""
    mesh = jax.make_mesh((len(ipus),), ("stage",), (AxisType.Auto,), devices=ipus)

    def step(params, spikes, weights):
        def total(params):
            return jnp.sum(train.pipeline(stage, params, spikes, pieces=PIECES) * weights)

        value, gradients = jax.value_and_grad(total)(params)
        return jax.lax.psum(value, "stage"), gradients

    specs = (STAGES, SHARES, SHARES)
    run = jax.shard_map(step, mesh=mesh, in_specs=specs, out_specs=(PartitionSpec(), STAGES))
    stacked = train.stack_stages(layers, len(ipus))
    arguments = [
        jax.device_put(tree, NamedSharding(mesh, spec))
        for tree, spec in zip((stacked, spikes, weights), specs, strict=True)
    ]
    return jax.jit(run).lower(*arguments).compile(), arguments


@pytest.mark.parametrize(
    ("devices", "rounds", "stage"), [(2, 2, jax.checkpoint(stage)), (4, 1, fused)], ids=["2", "4"]
)
def test_ipus_learn_what_one_device_learns(ipus, devices, rounds, stage) -> None:
    layers, spikes, weights = data(devices * rounds)
    compiled, arguments = compiled_on(ipus[:devices], stage, layers, spikes, weights)
    value, stacked = compiled(*arguments)
    expected, others = on_one(layers, spikes, weights)
    gradients = train.unstack_stages(jax.tree.map(np.asarray, stacked), devices)
    assert np.any(others[0].layers[0].weights)
    # Pieces are added up one after the other, and the codelets' sums have another order.
    np.testing.assert_allclose(np.asarray(value), expected, rtol=1e-5)
    for ours, theirs in zip(jax.tree.leaves(gradients), jax.tree.leaves(others), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-6)
    # The profile counts the turns, those of the bubble among them.
    (permute,) = [each for each in read_profile(compiled).operations if each.name == "collective_permute"]
    assert permute.executions == PIECES * rounds + devices - 1
