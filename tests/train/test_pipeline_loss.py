"""Pipelines that compute the loss: gradients of one device, from few pieces at a time."""

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

STEPS, WIDTH, CLASSES = 3, 4, 2
SHARES, STAGES, ALL = PartitionSpec(None, "stage"), PartitionSpec("stage"), PartitionSpec()
# Pieces of the batch are added up one after the other, and their products are of other shapes.
ROUNDING = {"rtol": 1e-5, "of_largest": 1e-6}


def mesh_of(devices):
    return jax.make_mesh((devices,), ("stage",), (AxisType.Auto,), devices=jax.devices()[:devices])


def pipelined(stage, loss, devices, pieces, of_targets=SHARES):
    """The loss of a list of stages over devices, with targets as `of_targets` shares them."""

    def through(params, loss_params, inputs, targets):
        return train.pipeline_loss(stage, loss, params, loss_params, inputs, targets, pieces=pieces)

    specs = (STAGES, ALL, SHARES, of_targets)
    run = jax.shard_map(through, mesh=mesh_of(devices), in_specs=specs, out_specs=ALL)
    return lambda stages, *others: run(train.stack_stages(stages, devices), *others)


def one_device(stage, loss):
    def through(stages, loss_params, inputs, targets):
        for params in stages:
            inputs = stage(params, inputs)
        return loss(loss_params, inputs, targets)

    return through


def value_and_gradients(run, *arguments):
    """With respect to all but the targets."""
    return jax.jit(jax.value_and_grad(run, argnums=(0, 1, 2)))(*arguments)


def multiply(params, x):
    """A stage whose values are integers, so that all sums are exact."""
    return x @ params["weights"] + jnp.broadcast_to(params["bias"], x.shape)


@strategies.composite
def settings(draw):
    devices, pieces = draw(strategies.integers(1, 4)), draw(strategies.integers(1, 9))
    return (
        devices,
        pieces,
        devices * pieces * draw(strategies.integers(1, 2)),
        draw(strategies.integers(1, 3)),
    )


@hypothesis.given(settings(), strategies.integers(0, 2**32 - 1))
@hypothesis.settings(max_examples=8)
def test_loss_and_gradients_are_those_of_one_device_to_the_bit(setting, seed) -> None:
    devices, pieces, batch, steps = setting
    rng = np.random.default_rng(seed)

    def whole(*shape):
        return jnp.asarray(rng.integers(-1, 2, shape), jnp.float32)

    def ours(weights, y, targets):
        return jnp.sum(y @ weights * targets) * pieces  # so that the mean over pieces is whole

    def theirs(weights, y, targets):
        return jnp.sum(y @ weights * targets)

    stages = [{"weights": whole(WIDTH, WIDTH), "bias": whole(WIDTH)} for _ in range(devices)]
    data = whole(WIDTH, CLASSES), whole(steps, batch, WIDTH), whole(steps, batch, CLASSES)
    run = pipelined(multiply, ours, devices, pieces)
    found = value_and_gradients(run, stages, *data)
    expected = value_and_gradients(one_device(multiply, theirs), stages, *data)
    assert_same_bits(*(jax.tree.map(lambda leaf: leaf + 0.0, each) for each in (found, expected)))
    assert_same_bits(jax.jit(run)(stages, *data), found[0])  # without gradients


NET = snnjax.network(16, [snnjax.layer(16, capacity=6)], snnjax.leaky_readout(3))


def listed(params, spikes):
    """A layer that passes its lists on, with ids and counts, which are integers."""
    return NET.apply(params, None, spikes, record="spikes")[0].recorded["layer_0/neuron"]


def readout_loss(params, spikes, labels):
    return losses.cross_entropy_max(NET.apply(params, None, spikes)[0].output, labels)


def spikes_and_layers(layers, batch=8):
    spikes = jax.random.bernoulli(jax.random.key(0), 0.4, (5, batch, 16)).astype(jnp.float32)
    keys = jax.random.split(jax.random.key(1), layers)
    return spikes, [NET.init(key, spikes, target_activity=0.4) for key in keys], jnp.arange(batch) % 3


def test_lists_go_through_and_every_layer_learns_what_it_learns_on_one_device() -> None:
    """A first layer before the pipeline, and a readout within the loss."""
    spikes, layers, labels = spikes_and_layers(4)
    first, *stages, last = layers

    def with_first(run, first):
        return lambda first, stages, last: run(stages, last, listed(first, spikes), labels)

    def in_shares(first, stages, last, spikes, labels):
        lists = listed(first, spikes)
        return train.pipeline_loss(listed, readout_loss, stages, last, lists, labels, pieces=4)

    specs = (ALL, STAGES, ALL, SHARES, STAGES)
    mapped = jax.shard_map(in_shares, mesh=mesh_of(2), in_specs=specs, out_specs=ALL)

    def ours(first, stages, last):
        return mapped(first, train.stack_stages(stages, 2), last, spikes, labels)

    def theirs(first, stages, last):
        return one_device(listed, readout_loss)(stages, last, listed(first, spikes), labels)

    value, gradients = value_and_gradients(ours, first, stages, last)
    expected, others = value_and_gradients(theirs, first, stages, last)
    for each in (others[0], others[1][0], others[2]):
        assert np.any(each["layer_0/connection"].weights)
    assert_close(value, expected, **ROUNDING)
    assert_close(gradients, others, **ROUNDING)


def test_pipelines_stand_beside_each_other() -> None:
    """Two pipelines of two devices, each with half of the batch: gradients of shared parameters are added up."""
    mesh = jax.make_mesh((2, 2), ("data", "stage"), (AxisType.Auto,) * 2)
    spikes, (*stages, last), labels = spikes_and_layers(3)

    def in_shares(stages, last, lists, labels):
        total = train.pipeline_loss(listed, readout_loss, stages, last, lists, labels, pieces=2)
        return jax.lax.pmean(total, "data")

    both = PartitionSpec(None, ("data", "stage"))
    specs = (STAGES, ALL, both, PartitionSpec(("data", "stage")))
    mapped = jax.shard_map(in_shares, mesh=mesh, in_specs=specs, out_specs=ALL)
    lists = snnjax.SparseSpikes.from_dense(spikes, capacity=6)

    def ours(stages, last):
        return mapped(train.stack_stages(stages, 2), last, lists, labels)

    def theirs(stages, last):
        return one_device(listed, readout_loss)(stages, last, lists, labels)

    value, gradients = jax.jit(jax.value_and_grad(ours, argnums=(0, 1)))(stages, last)
    expected, others = jax.jit(jax.value_and_grad(theirs, argnums=(0, 1)))(stages, last)
    assert_close(value, expected, **ROUNDING)
    assert_close(gradients, others, **ROUNDING)


def squares(_, y, targets):
    return jnp.mean((y - targets) ** 2)


def data_of(devices, pieces, width=WIDTH):
    stages = [{"weights": jnp.eye(width), "bias": jnp.zeros(width)}] * devices
    return stages, (), jnp.ones((STEPS, devices * pieces, width)), jnp.ones((STEPS, devices * pieces, width))


def test_bubble_is_a_turn_less_than_devices_in_either_direction() -> None:
    run, arguments = pipelined(multiply, squares, 4, 8), data_of(4, 8)
    program = str(jax.make_jaxpr(jax.grad(run))(*arguments))
    assert re.findall(r"length=(\d+)", program) == [str(8 + 2 * 3)]


def test_memory_does_not_grow_with_the_pieces() -> None:
    """But for their parts of the batch, which devices hold in another order."""
    width, few, many = 64, 8, 40
    piece = STEPS * 4 * width * 4  # bytes

    def temporaries(run, pieces):
        stages, *others = data_of(4, pieces, width)
        compiled = jax.jit(jax.grad(run(pieces))).lower(stages, *others).compile()
        return compiled.memory_analysis().temp_size_in_bytes

    def gpipe(pieces):
        def through(params, _, inputs, targets):
            y = train.pipeline(jax.checkpoint(multiply), params, inputs, pieces=pieces)
            return jax.lax.pmean(squares((), y, targets), "stage")

        run = jax.shard_map(through, mesh=mesh_of(4), in_specs=(STAGES, ALL, SHARES, SHARES), out_specs=ALL)
        return lambda stages, *others: run(train.stack_stages(stages, 4), *others)

    grown = [
        (temporaries(run, many) - temporaries(run, few)) / (piece * (many - few))
        for run in (lambda pieces: pipelined(multiply, squares, 4, pieces), gpipe)
    ]
    # In pieces for each piece: a quarter of the inputs and of the targets.
    assert grown[0] <= 2 / 4 + 0.01
    assert grown[1] > 2


def test_nothing_is_computed_in_the_bubble() -> None:
    """A stage whose gradient at zeros, which GPipe's bubble consists of, is infinite."""

    def root(params, x):
        return params * jnp.sqrt(x)

    ones = jnp.ones((STEPS, 8, WIDTH))
    stages = [jnp.float32(2.0), jnp.float32(3.0), jnp.float32(1.0), jnp.float32(4.0)]

    def loss(_, y, targets):
        return jnp.mean(y * targets)

    found = value_and_gradients(pipelined(root, loss, 4, 2), stages, (), ones, ones)
    expected = value_and_gradients(one_device(root, loss), stages, (), ones, ones)
    assert np.isfinite(expected[0])
    assert_close(found, expected, **ROUNDING)


def test_gradients_of_many_pieces_are_added_in_float32() -> None:
    pieces = 300  # as bfloat16, 256 + 1 is 256
    x = jnp.ones((1, 2 * pieces, 1), jnp.bfloat16)
    stages, last = [jnp.ones((), jnp.bfloat16)] * 2, jnp.ones((), jnp.bfloat16)
    run = pipelined(lambda params, x: params * x, lambda last, y, _: jnp.mean(last * y), 2, pieces)
    value, gradients = value_and_gradients(run, stages, last, x, x)
    assert value.dtype == jnp.float32 and value == 1.0
    chex.assert_trees_all_equal(gradients[:2], ([jnp.ones((), jnp.bfloat16)] * 2, last), strict=True)
    assert gradients[2].dtype == jnp.bfloat16


def test_labels_and_spikes_over_time_are_targets() -> None:
    x = jax.random.normal(jax.random.key(0), (STEPS, 8, WIDTH))
    targets = {"labels": jnp.arange(8) % WIDTH, "spikes": jnp.flip(x, 1)}
    specs = {"labels": STAGES, "spikes": SHARES}

    def loss(_, y, targets):
        return losses.cross_entropy_sum(y, targets["labels"]) + jnp.mean(y * targets["spikes"])

    def double(params, x):
        return params * x

    run = pipelined(double, loss, 2, 4, specs)
    stages = [jnp.float32(2.0), jnp.float32(0.5)]
    found = value_and_gradients(run, stages, (), x, targets)
    assert_close(found, value_and_gradients(one_device(double, loss), stages, (), x, targets), **ROUNDING)


def test_traced_values_may_be_closed_over() -> None:
    """Such as a threshold that changes from step to step."""
    x = jax.random.normal(jax.random.key(0), (STEPS, 4, WIDTH))

    def gradients(build, factor):
        def scaled(params, x):
            return params * factor * x

        def loss(_, y, targets):
            return jnp.mean(factor * y * targets)

        stages = [jnp.float32(2.0), jnp.float32(0.5)]
        return jax.value_and_grad(build(scaled, loss))(stages, (), x, x)

    found = jax.jit(lambda factor: gradients(lambda *parts: pipelined(*parts, 2, 2), factor))(3.0)
    assert_close(found, gradients(one_device, 3.0), **ROUNDING)


ONES = jnp.ones((STEPS, 4, WIDTH))
SCALED = [2.0] * 2


def mean(_, y, targets):
    return jnp.mean(y) + jnp.mean(targets)


@pytest.mark.parametrize(
    ("stage", "loss", "stages", "targets", "pieces", "message"),
    [
        (multiply, mean, SCALED, ONES, 0, "`pieces` must be an integer of at least 1, got 0."),
        (
            *(multiply, mean, SCALED, ONES, 4),
            "`pieces` must divide the 2 samples of a device, got 4. Choose a divisor of them.",
        ),
        (
            *(multiply, mean, SCALED * 2, ONES, 2),
            "`params` must have leaves with a leading axis of one stage, got 2. Make one stage of a device's layers, "
            "stack the stages and shard them over the mesh axis.",
        ),
        (
            *(multiply, mean, SCALED, jnp.ones((4, 6)), 2),
            "`targets` must have leaves [2] or [time, 2, ...] like the inputs, got [[2, 6]]. Pass each device its "
            "share.",
        ),
        (
            *(lambda params, x: x[..., :2], mean, SCALED, ONES, 2),
            "`stage` must return arrays like its input, float32[3, 2, 4], got float32[3, 2, 2]. Put a layer of another "
            "width before or after the pipeline.",
        ),
        (
            *(lambda params, x: x, lambda _, y, targets: y[0, 0], SCALED, ONES, 2),
            "`loss` must return a floating-point scalar, got float32[4]. Take the mean over the samples of a piece.",
        ),
        (
            *(lambda params, x: x, lambda _, y, targets: (y[0, 0, 0], y.size), SCALED, ONES, 2),
            "`loss` must return a floating-point scalar, got float32[], int32[]. Take the mean over the samples of "
            "a piece.",
        ),
    ],
)
def test_arguments_that_do_not_fit(stage, loss, stages, targets, pieces, message) -> None:
    stages = [jnp.float32(each) for each in stages]

    def through(params, inputs, targets):
        return train.pipeline_loss(stage, loss, params, (), inputs, targets, pieces=pieces)

    of_targets = SHARES if targets.ndim > 2 else STAGES
    run = jax.shard_map(through, mesh=mesh_of(2), in_specs=(STAGES, SHARES, of_targets), out_specs=ALL)
    with pytest.raises(ValueError, match=re.escape(f"pipeline_loss: {message}")):
        run(train.stack_stages(stages, 2), ONES, targets)
