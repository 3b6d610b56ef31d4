"""Pipelines over modelled IPUs: they learn what one CPU device learns, and the profile shows the bubble."""

import chex
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
    spikes = jax.random.bernoulli(jax.random.key(0), 0.4, (STEPS, PIECES * 4, WIDTH)).astype(jnp.float32)
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


def gpipe(stage):
    def total(params, spikes, weights):
        return jax.lax.psum(jnp.sum(train.pipeline(stage, params, spikes, pieces=PIECES) * weights), "stage")

    return total


def flush(stage):
    def loss(_, y, weights):
        return jnp.sum(y * weights) * PIECES  # of which the mean is taken

    def total(params, spikes, weights):
        return train.pipeline_loss(stage, loss, params, (), spikes, weights, pieces=PIECES)

    return total


def compiled_on(ipus, total, layers, spikes, weights):
    """The compiled step, and its arguments on the IPUs."""
    mesh = jax.make_mesh((len(ipus),), ("stage",), (AxisType.Auto,), devices=ipus)
    specs = (STAGES, SHARES, SHARES)
    run = jax.shard_map(
        jax.value_and_grad(total), mesh=mesh, in_specs=specs, out_specs=(PartitionSpec(), STAGES)
    )
    stacked = train.stack_stages(layers, len(ipus))
    arguments = [
        jax.device_put(tree, NamedSharding(mesh, spec))
        for tree, spec in zip((stacked, spikes, weights), specs, strict=True)
    ]
    return jax.jit(run).lower(*arguments).compile(), arguments


@pytest.mark.parametrize(
    ("devices", "rounds", "total", "turns"),
    [
        (2, 2, gpipe(jax.checkpoint(stage)), PIECES * 2 + 1),
        (4, 1, gpipe(fused), PIECES + 3),
        (2, 1, flush(stage), PIECES + 2),
        (4, 1, flush(fused), PIECES + 6),
    ],
    ids=["GPipe, 2", "GPipe, 4", "PipeDream-flush, 2", "PipeDream-flush, 4"],
)
def test_ipus_learn_what_one_device_learns(ipus, devices, rounds, total, turns) -> None:
    layers, spikes, weights = data(devices * rounds)
    compiled, arguments = compiled_on(ipus[:devices], total, layers, spikes, weights)
    value, stacked = compiled(*arguments)
    expected, others = on_one(layers, spikes, weights)
    gradients = train.unstack_stages(jax.tree.map(np.asarray, stacked), devices)
    assert np.any(others[0]["readout/connection"].weights)
    # Pieces are added up one after the other, and the codelets' sums have another order.
    chex.assert_trees_all_close(value, expected, rtol=1e-5, strict=True)
    chex.assert_trees_all_close(gradients, others, rtol=1e-4, atol=1e-6, strict=True)
    # The profile counts the turns, those of the bubble among them.
    permutes = [each for each in read_profile(compiled).operations if each.name == "collective_permute"]
    assert {each.executions for each in permutes} == {turns}


def test_profile_shows_the_bubble(ipus) -> None:
    """In it an IPU has nothing to do, so it waits; with GPipe it computes on zeros."""
    layers, spikes, weights = data(4)
    shares = {}
    for schedule in (gpipe, flush):
        compiled, arguments = compiled_on(ipus, schedule(stage), layers, spikes, weights)
        jax.block_until_ready(compiled(*arguments))
        profile = read_profile(compiled)
        shares[schedule] = profile.waiting / (profile.cycles - profile.phases.host)
    bubble = 3 / (PIECES + 3)
    # Beside passes there are exchanges, in which all take part; and the last IPU's loss, for which the others wait.
    assert np.all(shares[flush] > bubble / 2) and np.all(shares[flush] < bubble * 1.1)
    assert np.all(shares[gpipe] < bubble / 4)
