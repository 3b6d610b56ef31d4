"""Pipelines: stages on several devices compute, and learn, what one device does."""

import re

import chex
import hypothesis
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import strategies
from jax.sharding import AxisType, PartitionSpec

import snnjax
from snnjax import losses, train
from tests.numbers import assert_close, assert_same_bits

STEPS, WIDTH = 3, 4
SHARES = PartitionSpec(None, "stage")
# Pieces of the batch are added up one after the other, and their products are of other shapes.
ROUNDING = {"rtol": 1e-5, "of_largest": 1e-6}


def mesh_of(devices, name="stage"):
    return jax.make_mesh((devices,), (name,), (AxisType.Auto,), devices=jax.devices()[:devices])


def pipelined(stage, devices, pieces):
    """The stages, a list of parameters, over devices."""

    def through(params, inputs):
        return train.pipeline(stage, params, inputs, pieces=pieces)

    specs = (PartitionSpec("stage"), SHARES)
    run = jax.shard_map(through, mesh=mesh_of(devices), in_specs=specs, out_specs=SHARES)
    return lambda stages, inputs: run(train.stack_stages(stages, devices), inputs)


def one_device(stage):
    def through(stages, inputs):
        for params in stages:
            inputs = stage(params, inputs)
        return inputs

    return through


def value_and_gradients(run, stages, inputs, weights):
    """A weighted sum of the results, and its gradients."""

    def total(stages, inputs):
        return jnp.sum(run(stages, inputs) * weights)

    return jax.jit(jax.value_and_grad(total, argnums=(0, 1)))(stages, inputs)


def multiply(params, x):
    """A stage whose values are integers, so that all sums are exact."""
    return x @ params["weights"] + jnp.broadcast_to(params["bias"], x.shape)


@strategies.composite
def settings(draw):
    devices, rounds = draw(strategies.sampled_from([(1, 1), (2, 1), (2, 3), (3, 2), (4, 1), (4, 2)]))
    pieces = draw(strategies.integers(devices if rounds > 1 else 1, devices + 3))
    # A batch that devices and pieces divide.
    return devices, rounds, pieces, int(np.lcm(devices, pieces)) * draw(strategies.integers(1, 2))


@hypothesis.given(settings(), strategies.integers(0, 2**32 - 1))
@hypothesis.settings(max_examples=6)
def test_results_and_gradients_are_those_of_one_device_to_the_bit(setting, seed) -> None:
    devices, rounds, pieces, batch = setting
    rng = np.random.default_rng(seed)

    def whole(*shape):
        return jnp.asarray(rng.integers(-1, 2, shape), jnp.float32)

    stages = [{"weights": whole(WIDTH, WIDTH), "bias": whole(WIDTH)} for _ in range(devices * rounds)]
    data = whole(STEPS, batch, WIDTH), whole(STEPS, batch, WIDTH)
    ours = value_and_gradients(pipelined(multiply, devices, pieces), stages, *data)
    theirs = value_and_gradients(one_device(multiply), stages, *data)
    assert_same_bits(
        jax.tree.map(lambda leaf: leaf + 0.0, ours), jax.tree.map(lambda leaf: leaf + 0.0, theirs)
    )


SPIKING = snnjax.network(16, [], snnjax.spiking_readout(16))
LISTED = snnjax.network(16, [snnjax.layer(16, capacity=6)], snnjax.leaky_readout(3))


def spiking(params, spikes):
    return SPIKING.apply(params, None, spikes)[0].output


def listed(params, spikes):
    """A layer that passes its lists on."""
    return LISTED.apply(params, None, spikes, record="spikes")[0].recorded["layer_0/neuron"]


def spikes_and_layers(network, layers):
    spikes = jax.random.bernoulli(jax.random.key(0), 0.4, (5, 8, 16)).astype(jnp.float32)
    keys = jax.random.split(jax.random.key(1), layers)
    return spikes, [network.init(key, spikes, target_activity=0.4) for key in keys]


@pytest.mark.parametrize(("rounds", "stage"), [(1, spiking), (2, jax.checkpoint(spiking))])
def test_spiking_layers_learn_what_they_learn_on_one_device(rounds, stage) -> None:
    spikes, layers = spikes_and_layers(SPIKING, 4 * rounds)
    weights = jax.random.normal(jax.random.key(2), spikes.shape)
    value, gradients = value_and_gradients(pipelined(stage, 4, 8), layers, spikes, weights)
    expected, others = value_and_gradients(one_device(stage), layers, spikes, weights)
    assert np.any(others[0][0]["readout/connection"].weights)  # the first layer learns
    assert_close(value, expected, **ROUNDING)
    assert_close(gradients, others, **ROUNDING)


def test_lists_go_through_and_the_layers_around_work_on_shares() -> None:
    """First layer, pipeline, readout and loss in one data-parallel program."""
    spikes, layers = spikes_and_layers(LISTED, 4)
    labels = jnp.arange(8) % 3

    def forward(through, first, stages, last, spikes):
        y = through(stages, listed(first, spikes))
        return LISTED.apply(last, None, y)[0].output

    def in_shares(first, stages, last, spikes):
        def through(stages, spikes):
            return train.pipeline(listed, stages, spikes, pieces=4)

        return forward(through, first, stages, last, spikes)

    here, shared = PartitionSpec("stage"), PartitionSpec()
    mapped = jax.shard_map(
        in_shares, mesh=mesh_of(2), in_specs=(shared, here, shared, SHARES), out_specs=SHARES
    )

    def ours(first, stages, last):
        return losses.cross_entropy_max(mapped(first, train.stack_stages(stages, 2), last, spikes), labels)

    def theirs(first, stages, last):
        return losses.cross_entropy_max(forward(one_device(listed), first, stages, last, spikes), labels)

    first, *stages, last = layers
    arguments = (first, stages, last)
    value, gradients = jax.jit(jax.value_and_grad(ours, argnums=(0, 1, 2)))(*arguments)
    expected, others = jax.jit(jax.value_and_grad(theirs, argnums=(0, 1, 2)))(*arguments)
    assert np.any(others[0]["layer_0/connection"].weights)
    assert_close(value, expected, **ROUNDING)
    assert_close(gradients, others, **ROUNDING)


def test_pipelines_stand_beside_each_other() -> None:
    """Two pipelines of two devices, each with half of the batch."""
    mesh = jax.make_mesh((2, 2), ("data", "stage"), (AxisType.Auto,) * 2)
    stages = [{"weights": jnp.eye(WIDTH) * k, "bias": jnp.ones(WIDTH)} for k in (2.0, 3.0)]
    x = jnp.arange(STEPS * 8 * WIDTH, dtype=jnp.float32).reshape(STEPS, 8, WIDTH)

    def through(params, inputs):
        return train.pipeline(multiply, params, inputs, pieces=2)

    both = PartitionSpec(None, ("data", "stage"))
    run = jax.shard_map(through, mesh=mesh, in_specs=(PartitionSpec("stage"), both), out_specs=both)
    chex.assert_trees_all_equal(
        jax.jit(run)(train.stack_stages(stages, 2), x), (x * 2 + 1) * 3 + 1, strict=True
    )


@pytest.mark.parametrize("rounds", [1, 2])
def test_bubble_is_a_turn_less_than_devices(rounds) -> None:
    stages = [{"weights": jnp.eye(WIDTH), "bias": jnp.zeros(WIDTH)}] * (4 * rounds)
    program = str(jax.make_jaxpr(pipelined(multiply, 4, 8))(stages, jnp.ones((STEPS, 8, WIDTH))))
    assert re.findall(r"length=(\d+)", program) == [str(8 * rounds + 3)]


def test_stages_are_unstacked_in_their_order() -> None:
    stages = [{"k": jnp.float32(k)} for k in range(6)]
    stacked = train.stack_stages(stages, devices=3)
    np.testing.assert_array_equal(stacked["k"], [0, 3, 1, 4, 2, 5])
    assert_same_bits(train.unstack_stages(stacked, devices=3), stages)


ONES = jnp.ones((STEPS, 4, WIDTH))


def double(params, x):
    return x * params


@pytest.mark.parametrize(
    ("stage", "stages", "inputs", "pieces", "message"),
    [
        (double, [2.0] * 2, ONES, 0, "pipeline: `pieces` must be an integer of at least 1, got 0."),
        (
            double,
            [2.0] * 2,
            ONES,
            3,
            "pipeline: `pieces` must divide the 4 samples of a batch, got 3. Choose a divisor of them.",
        ),
        (
            double,
            [2.0] * 4,
            ONES,
            1,
            "pipeline: `pieces` must be at least 2, the number of devices, if a device has several stages, got 1. "
            "Cut the batch into more pieces.",
        ),
        (
            double,
            [2.0] * 2,
            [ONES, jnp.ones((STEPS, 2))],
            2,
            "pipeline: `inputs` must have leaves [time, batch, ...] of one batch, got [[3, 2, 4], [3, 1]]. Time comes "
            "first, then the batch.",
        ),
        (
            double,
            [2.0] * 2,
            jnp.ones(2),
            2,
            "pipeline: `inputs` must have leaves [time, batch, ...] of one batch, got [[1]]. Time comes first, then "
            "the batch.",
        ),
        (
            lambda params, x: x[..., :2] * params,
            [2.0] * 2,
            ONES,
            2,
            "pipeline: `stage` must return arrays like its input, float32[3, 2, 4], got float32[3, 2, 2]. Put a layer "
            "of another width before or after the pipeline.",
        ),
        (
            lambda params, x: (x * params, x),
            [2.0] * 2,
            ONES,
            2,
            "pipeline: `stage` must return a tree like its input, PyTreeDef(*), got PyTreeDef((*, *)). Put a layer of "
            "another width before or after the pipeline.",
        ),
    ],
)
def test_arguments_that_do_not_fit(stage, stages, inputs, pieces, message) -> None:
    stages = [jnp.float32(each) for each in stages]
    spec = PartitionSpec("stage") if jax.tree.leaves(inputs)[0].ndim == 1 else SHARES

    def through(params, inputs):
        return train.pipeline(stage, params, inputs, pieces=pieces)

    run = jax.shard_map(through, mesh=mesh_of(2), in_specs=(PartitionSpec("stage"), spec), out_specs=spec)
    with pytest.raises(ValueError, match=re.escape(message)):
        run(train.stack_stages(stages, 2), inputs)


def test_parameters_that_do_not_fit() -> None:
    with pytest.raises(
        ValueError,
        match=re.escape(
            "stack_stages: `stages` must hold a multiple of 2, the number of devices, got 3. "
            "Merge stages, or split them."
        ),
    ):
        train.stack_stages([1.0] * 3, devices=2)
    with pytest.raises(
        ValueError,
        match=re.escape(
            "unstack_stages: `params` must have leaves whose leading axis is a multiple of 2, the number of devices, "
            "got 3. Make them with stack_stages."
        ),
    ):
        train.unstack_stages(jnp.ones(3), devices=2)

    def through(inputs):
        return train.pipeline(double, jnp.float32(1), inputs, pieces=2)

    run = jax.shard_map(through, mesh=mesh_of(2), in_specs=SHARES, out_specs=SHARES)
    with pytest.raises(
        ValueError,
        match=re.escape(
            "pipeline: `params` must have leaves with one leading axis of rounds, got 0. Make them with stack_stages, "
            "and shard them over the mesh axis."
        ),
    ):
        run(ONES)
