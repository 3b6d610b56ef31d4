"""Norms and dropout: against plain JAX, folded, in chunks, over devices; and blocks of residual networks with norms."""

import functools
from collections.abc import Callable
from typing import Any

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType, PartitionSpec

from snnjax import (
    Network,
    SparseSpikes,
    blocks,
    conv2d,
    dense,
    layer,
    leaky_readout,
    network,
    neurons,
    residual,
)
from snnjax._types import Params, Signal
from snnjax.blocks.block import Context
from snnjax.blocks.norm import BatchNorm, NormParams, NormStats
from snnjax.graph import segments
from snnjax.ops._moments import moments
from tests.errors.refusals import refusals
from tests.graph.helpers import initial, random_spikes
from tests.numbers import assert_close
from tests.ops.common import jit, weighted_sum

STEPS, BATCH, IMAGE = 6, 4, (4, 4, 2)
LENGTHS = jnp.array([6, 4, 1, 0], jnp.int32)
KEY = jax.random.key(0)
# Sums of some hundred float32 numbers, in another order.
ROUNDING = 1e-5


def inputs_of(shape: tuple[int, ...]) -> jax.Array:
    return random_spikes(0.4, STEPS, BATCH, int(np.prod(shape))).reshape(STEPS, BATCH, *shape)


def normalised(x: jax.Array, scale, bias, inside=None) -> tuple[Any, Any, Any]:
    """The norm of each channel, and its mean and variance: over what is `inside`, in plain JAX."""
    inside = jnp.ones(x.shape[:2], bool) if inside is None else inside
    weights = jnp.broadcast_to(inside.reshape(*inside.shape, *(1,) * (x.ndim - 2)), x.shape)
    axes = tuple(range(x.ndim - 1))
    mean = jnp.mean(x, axes, where=weights)
    variance = jnp.mean((x - mean) ** 2, axes, where=weights)
    return scale * (x - mean) / jnp.sqrt(variance + 1e-5) + bias, mean, variance


@pytest.mark.parametrize("lengths", [None, LENGTHS], ids=["whole", "lengths"])
@pytest.mark.parametrize("shape", [(5,), (3, 2, 5)])
def test_batch_norm_is_that_of_plain_jax(shape: tuple[int, ...], lengths) -> None:
    """In training: values, running statistics and gradients, over the steps within the sequences."""
    block = blocks.batch_norm(momentum=0.75)
    x = 3 + 2 * jax.random.normal(KEY, (STEPS, BATCH, *shape))
    params = NormParams(jnp.linspace(0.5, 2, 5), jnp.linspace(-1, 1, 5))
    stats = NormStats(jnp.arange(5.0), 1 + jnp.arange(5.0))
    context = Context(lengths, train=True)
    inside = jnp.ones((STEPS, BATCH), bool) if lengths is None else jnp.arange(STEPS)[:, None] < lengths[None]

    def weighed(y: jax.Array) -> jax.Array:
        return weighted_sum(jnp.where(inside.reshape(*inside.shape, *(1,) * len(shape)), y, 0))

    def ours(params: Params, x):
        result = block.apply(params, None, stats, x, shapes=(shape,), context=context)
        return weighed(result.signal), result.stats

    def theirs(params: Params, x):
        with jax.numpy_rank_promotion("allow"):
            y, mean, variance = normalised(x, *params, inside)
        kept = NormStats(0.75 * stats.mean + 0.25 * mean, 0.75 * stats.variance + 0.25 * variance)
        return weighed(y), kept

    found, expected = (
        jit(jax.value_and_grad(run, (0, 1), has_aux=True))(params, x) for run in (ours, theirs)
    )
    assert_close(found, expected, of_largest=ROUNDING)


@pytest.mark.parametrize("frozen", [False, True])
def test_batch_norm_keeps_its_statistics_where_there_are_no_steps(frozen: bool) -> None:
    """A call of no steps, no sequences, or of empty ones has no statistics: nothing is known about the currents."""
    block, params = blocks.batch_norm(frozen=frozen), NormParams(jnp.ones(2), jnp.zeros(2))
    stats = NormStats(jnp.array([1.0, 2.0]), jnp.array([3.0, 4.0]))
    calls = [(0, 3, None), (4, 0, None), (4, 2, jnp.zeros(2, jnp.int32))]
    for steps, batch, lengths in calls:
        x, context = jnp.full((steps, batch, 3, 2), 5.0), Context(lengths, train=True)
        after = block.apply(params, None, stats, x, shapes=((3, 2),), context=context).stats
        chex.assert_trees_all_equal(after or stats, stats)


@pytest.mark.parametrize("groups", [1, 2, 6])
def test_layer_and_group_norms_are_those_of_each_sample_and_step(groups: int) -> None:
    block = blocks.layer_norm() if groups == 1 else blocks.group_norm(groups)
    x = np.random.default_rng(0).normal(size=(STEPS, BATCH, 3, 2, 6))
    scale, bias = np.linspace(0.5, 2, 6), np.linspace(-1, 1, 6)
    apart = [each - np.mean(each, (2, 3, 4), keepdims=True) for each in np.split(x, groups, -1)]
    normal = [each / np.sqrt(np.var(each, (2, 3, 4), keepdims=True) + 1e-5) for each in apart]
    expected = scale * np.concatenate(normal, -1) + bias
    params, x = (
        NormParams(jnp.asarray(scale, jnp.float32), jnp.asarray(bias, jnp.float32)),
        jnp.asarray(x, jnp.float32),
    )
    for train in (False, True):
        context = Context(train=train)
        found = block.apply(params, None, None, x, shapes=((3, 2, 6),), context=context).signal
        np.testing.assert_allclose(found, expected, atol=1e-4)
    assert not block.needs_all_steps(True)


@pytest.mark.parametrize("is_training", [True, False], ids=["training", "evaluation"])
def test_a_norm_in_front_of_neurons_is_part_of_their_chain(
    monkeypatch: pytest.MonkeyPatch, is_training: bool
) -> None:
    """Behind a join, and in training behind its connection too; with lists and without, for sequences that end."""
    monkeypatch.setattr(segments, "FEWEST_GIVEN", 0)
    segments.segments_of.cache_clear()
    net = normed()
    items = [*net.nodes]
    fused = [own for own in net.segments(is_training) if isinstance(own, segments.Fused)]
    begun = [items[own.nodes[0]].block.kind for own in fused]
    assert begun.count("batch_norm") == (3 if is_training else 0)
    params, stats, inputs = initial(net), net.initial_stats(KEY), inputs_of(IMAGE)

    def run(implementation: str | None, params: Params):
        options = {"stats": stats, "train": is_training, "implementation": implementation}
        out, state = net.apply(params, None, inputs, lengths=LENGTHS, **options)
        return weighted_sum((out.output, out.activity)), (out.output, out.stats, out.activity, state)

    ours, theirs = (
        jit(jax.value_and_grad(functools.partial(run, by), has_aux=True))(params) for by in (None, "composed")
    )
    segments.segments_of.cache_clear()
    assert_close(ours, theirs, of_largest=ROUNDING)


def test_variances_beside_large_means_are_exact() -> None:
    """The sum of squares would round all of them away."""
    x = 1000 + jax.random.normal(KEY, (STEPS, BATCH, 5))
    context = Context(train=True)
    _, found = jit(lambda x: blocks.batch_norm().statistics(x, context))(x)
    expected = np.var(np.asarray(x, np.float64), (0, 1))
    np.testing.assert_allclose(found.variance, expected, rtol=1e-4)


@pytest.mark.parametrize("implementation", ["reference", "cpu"])
def test_rows_that_do_not_count_have_no_influence_on_moments(implementation: str) -> None:
    """The first one neither: sequences may be empty, and what stands behind their end may be any number."""
    inside = jnp.arange(STEPS)[:, None] < LENGTHS[None, ::-1]
    x = jax.random.normal(KEY, (STEPS, BATCH, 5))

    def run(padding: float):
        padded = jnp.where(inside[..., None], x, padding)
        found, back = jax.vjp(lambda x: moments(x, inside, implementation=implementation)[1:], padded)
        return found, back((jnp.arange(5.0), jnp.ones(5)))

    expected = run(0.0)
    for padding in (1e30, jnp.inf, jnp.nan):
        chex.assert_trees_all_equal(run(padding), expected)


def normed(**options) -> Network:
    """Norms behind convolutions and dense weights, before neurons of lists, and between them and a join."""
    norm = functools.partial(blocks.batch_norm, **options)
    items = [
        layer(conv2d(3, 3, bias=False), norm=norm(), capacity=30),
        residual([conv2d(3, 3), norm(), neurons.lif()]),
        norm(),
        layer(dense(8), neurons.adlif(), norm=norm()),
    ]
    return network(IMAGE, items, leaky_readout(3))


@functools.cache
def trained() -> tuple[Network, Any, Any, jax.Array]:
    """A network, with statistics of its own."""
    net, inputs = normed(), inputs_of(IMAGE)
    params, stats = initial(net, inputs, target_activity=0.2), net.initial_stats(KEY)
    for _ in range(3):
        stats = jit(functools.partial(net.apply, train=True))(params, None, inputs, stats=stats)[0].stats
    params = jax.tree.map(lambda leaf: leaf * 1.1 + 0.01, params)
    return net, params, stats, inputs


def test_folded_networks_equal_evaluation() -> None:
    """So do both ways through the network; running statistics stay what they are."""
    net, params, stats, inputs = trained()
    options = {"stats": stats, "lengths": LENGTHS}
    fused, composed = (
        jit(functools.partial(net.apply, implementation=each))(params, None, inputs, **options)[0]
        for each in (None, "composed")
    )
    assert "connection > layer_0/norm > layer_0/neuron > " in net.paths
    chex.assert_trees_all_equal(fused.stats, stats)
    bare, own, left = net.fold(params, stats)
    assert left.keys() == {"batch_norm_0"}  # after a join
    assert [node.name for node in bare.nodes if isinstance(node.block, BatchNorm)] == [*left]
    folded = jit(bare.apply)(own, None, inputs, stats=left, lengths=LENGTHS)[0]
    for found in (composed, folded):
        assert_close(found.output, fused.output, of_largest=ROUNDING)
        assert_close(found.activity, fused.activity, of_largest=ROUNDING)


def test_a_norm_whose_connection_others_read_stays() -> None:
    net = network(4, [dense(3).named("a"), blocks.batch_norm(), blocks.join().receiving("a", "batch_norm_0")])
    params, stats = initial(net), net.initial_stats(KEY)
    bare, own, left = net.fold(params, stats)
    assert bare == net
    chex.assert_trees_all_equal((own, left), (params, stats))


def test_chunks_of_a_training_network_are_whole_for_its_norms() -> None:
    net, params, stats, inputs = trained()

    def loss(params: Params, chunk: int | None):
        out, state = net.apply(
            params, None, inputs, stats=stats, lengths=LENGTHS, train=True, chunk=chunk, record="spikes"
        )
        lists = {name: own for name, own in out.recorded.items() if not isinstance(own, SparseSpikes)}
        return weighted_sum((out.output, state)), (out.output, lists, out.activity, out.stats, state)

    run = jit(jax.grad(loss, has_aux=True), static_argnums=1)
    assert_close(run(params, 4), run(params, None), of_largest=ROUNDING)


def through_norms(net: Network, params: Params, inputs: Signal, lengths):
    """A loss in training, the output and the statistics."""
    out, _ = net.apply(params, None, inputs, stats=trained()[2], lengths=lengths, train=True)
    return jnp.sum(jnp.sin(3 * out.output)), (out.output, out.stats)


SHARES = jnp.array([6, 5, 1, 0], jnp.int32)  # the lengths of two pairs of sequences


@functools.cache
def of_the_whole_batch():
    _, params, _, inputs = trained()
    run = functools.partial(through_norms, normed())
    return jit(jax.grad(run, has_aux=True))(params, inputs, SHARES)


@pytest.mark.parametrize("how", ["vmap", "shard_map"])
def test_norms_over_an_axis_are_those_of_the_whole_batch(how: str) -> None:
    """Of shares with other numbers of steps: outputs, statistics and gradients."""
    _, params, _, inputs = trained()
    net, lengths = normed(axis_name="shares"), SHARES

    def total(params: Params, inputs: Signal, lengths):
        value, (output, stats) = through_norms(net, params, inputs, lengths)
        return jax.lax.psum(value, "shares"), (output, stats)

    if how == "vmap":
        pairs = (jnp.stack(jnp.split(each, 2, axis)) for each, axis in ((inputs, 1), (lengths, 0)))
        mapped = jax.vmap(total, (None, 0, 0), axis_name="shares")

        def run(params: Params):
            value, (outputs, stats) = mapped(params, *pairs)
            first = jax.tree.map(lambda own: own[0], stats)
            return value[0], (jnp.concatenate([*outputs], 1), first)

        found = jit(jax.grad(run, has_aux=True))(params)
    else:
        mesh = jax.make_mesh((2,), ("shares",), (AxisType.Auto,), devices=jax.devices()[:2])
        rows, columns, whole = PartitionSpec("shares"), PartitionSpec(None, "shares"), PartitionSpec()
        specs = (whole, columns, rows), (whole, (columns, whole))
        run = jax.shard_map(total, mesh=mesh, in_specs=specs[0], out_specs=specs[1])
        found = jit(jax.grad(run, has_aux=True))(params, inputs, lengths)
    assert_close(found, of_the_whole_batch(), of_largest=ROUNDING)


def test_frozen_norms_use_their_statistics_in_training() -> None:
    _, params, stats, inputs = trained()
    runs = [
        jit(functools.partial(net.apply, train=train))(params, None, inputs, stats=stats)[0]
        for net, train in ((normed(frozen=True), True), (normed(), False))
    ]
    assert_close(runs[0].output, runs[1].output, of_largest=ROUNDING)
    chex.assert_trees_all_equal(runs[0].stats, stats, strict=True)


def test_statistics_have_the_dtype_of_the_scale_in_evaluation() -> None:
    """Running statistics are float32, also beside parameters in float64."""
    norm, stats = blocks.batch_norm(), NormStats(jnp.ones(3), jnp.full(3, 4.0))
    with jax.enable_x64(True):
        params = norm.init(KEY, (3,), dtype=jnp.float64)
        assert [each.dtype for each in norm.affine(params, stats)] == [jnp.float64] * 2


def test_neurons_behind_a_norm_spike_from_the_start() -> None:
    """A norm has the drive of the neurons after it: about 5 % of them spike in a step; or as many as asked for."""
    net = network(40, [layer(60, norm=blocks.batch_norm()), layer(60, norm=blocks.layer_norm())])
    inputs = random_spikes(0.1, 40, 8, 40)
    for options, low, high in (({}, 0.02, 0.1), ({"target_activity": 0.2}, 0.17, 0.23)):
        params = initial(net, *([inputs] if options else []), **options)
        out, _ = jit(functools.partial(net.apply, train=True))(
            params, None, inputs, stats=net.initial_stats(KEY)
        )
        for rates in out.activity.values():
            assert low < jnp.mean(rates) < high


def dropped(x, rate: float = 0.5, key=KEY, **options):
    context = Context(key=key, train=True)
    apply = functools.partial(blocks.dropout(rate).apply, None, None, None, shapes=((50,),), context=context)
    return jit(lambda x: apply(x, **options).signal)(x)


def test_dropout_has_one_mask_for_a_sequence() -> None:
    masks = np.asarray(dropped(jnp.ones((STEPS, BATCH, 50)), 0.2))
    assert set(np.unique(masks)) == {0, np.float32(1.25)}
    assert (masks == masks[:1]).all()
    assert len(np.unique(masks[0], axis=0)) == BATCH
    assert 0.6 < np.mean(masks[0] > 0) < 0.95
    assert np.any(masks != dropped(jnp.ones((STEPS, BATCH, 50)), 0.2, jax.random.key(1)))


def test_dropout_of_lists_is_that_of_arrays_and_lists_stay_lists() -> None:
    x = random_spikes(0.3, STEPS, BATCH, 50)
    found = dropped(SparseSpikes.from_dense(x, 40))
    assert isinstance(found, SparseSpikes) and found.capacity == 40
    chex.assert_trees_all_equal(found.to_dense(), dropped(x), strict=True)


def test_dropout_in_a_network() -> None:
    """Each block has its own mask, which chunks share; outside of training nothing drops, and nothing is split."""
    layers = [layer(50, capacity=25, dropout=blocks.dropout(0.5)) for _ in range(2)]
    net, plain = (network(20, each, leaky_readout(3)) for each in (layers, [layer(50, capacity=25)] * 2))
    inputs = random_spikes(0.4, STEPS, BATCH, 20)
    params = initial(net, inputs, target_activity=0.5)
    names = "layer_0/dropout", "layer_1/dropout"
    run = jit(
        lambda chunk: net.apply(params, None, inputs, train=True, key=KEY, record=names, chunk=chunk)[0],
        static_argnums=0,
    )
    whole = run(None)
    assert_close(run(4).output, whole.output, of_largest=ROUNDING)
    silent = [np.any(np.asarray(whole.recorded[name].to_dense()), axis=0) for name in names]
    assert all(0.2 < np.mean(each) < 0.6 for each in silent) and np.any(silent[0] != silent[1])
    evaluated, without = (jit(each.apply)(params, None, inputs)[0] for each in (net, plain))
    chex.assert_trees_all_equal(evaluated.output, without.output, strict=True)
    assert len(net.paths.splitlines()) == 1


SLOPE = neurons.lif().surrogate.slope


@jax.custom_vjp
def heaviside(x: jax.Array) -> jax.Array:
    """``[x > 0]`` with the derivative of the superspike surrogate."""
    return (x > 0).astype(x.dtype)


heaviside.defvjp(lambda x: (heaviside(x), x), lambda x, g: (g / (1 + SLOPE * jnp.abs(x)) ** 2,))


def lif(params: Params, currents: jax.Array) -> jax.Array:
    """LIF neurons in plain JAX."""
    decay, threshold = neurons.raw_to_decay(params.raw_decay), params.threshold

    def step(carry, current: jax.Array):
        v, s = carry
        v = decay * (v - threshold * jax.lax.stop_gradient(s)) + (1 - decay) * current
        s = heaviside(v - threshold)
        return (v, s), s

    zeros = jnp.zeros_like(currents[0])
    return jax.lax.scan(step, (zeros, zeros), currents)[1]


def convolved(params: Params, x: jax.Array) -> jax.Array:
    numbers = ("NHWC", "HWIO", "NHWC")
    flat = x.reshape(-1, *x.shape[2:])
    y = jax.lax.conv_general_dilated(flat, params.weights, (1, 1), "SAME", dimension_numbers=numbers)
    return y.reshape(*x.shape[:2], *y.shape[1:])


def read_out(p, x: jax.Array) -> jax.Array:
    weights, bias = p["readout/connection"]
    decay = jnp.float32(0.95)
    currents = (1 - decay) * (x.reshape(*x.shape[:2], -1) @ weights + bias)

    def step(v: jax.Array, current: jax.Array):
        v = decay * v + current
        return v, v

    return jax.lax.scan(step, jnp.zeros_like(currents[0]), currents)[1]


LEARNED = neurons.lif(learn_decay=True, learn_threshold=True)


def conv():
    return conv2d(3, 3, bias=False)


def sew(capacity: int | None = None) -> Network:
    """Spikes are added: Fang et al. 2021."""
    own = [layer(conv(), LEARNED, norm=blocks.batch_norm(), capacity=capacity) for _ in range(3)]
    return network(IMAGE, [own[0], residual(own[1:])], leaky_readout(3))


def sew_by_hand(p, x: jax.Array) -> jax.Array:
    def one(name: str, x: jax.Array) -> jax.Array:
        currents, *_ = normalised(convolved(p[f"{name}/connection"], x), *p[f"{name}/norm"])
        return lif(p[f"{name}/neuron"], currents)

    x = one("layer_0", x)
    body = one("residual_0/body/layer_1", one("residual_0/body/layer_0", x))
    return read_out(p, body + x)


def ms() -> Network:
    """Currents are added, and neurons stand before their weights: Hu et al. 2024."""
    body = [part for _ in range(2) for part in (LEARNED, conv(), blocks.batch_norm())]
    return network(IMAGE, [conv(), blocks.batch_norm(), residual(body), LEARNED], leaky_readout(3))


def ms_by_hand(p, x: jax.Array) -> jax.Array:
    x, *_ = normalised(convolved(p["conv2d_0"], x), *p["batch_norm_0"])
    y = x
    for place in range(2):
        name = "residual_0/body/{}_" + str(place)
        spikes = lif(p[name.format("lif")], y)
        y, *_ = normalised(convolved(p[name.format("conv2d")], spikes), *p[name.format("batch_norm")])
    return read_out(p, lif(p["lif_0"], x + y))


@pytest.mark.parametrize(
    "net, by_hand",
    [(sew(), sew_by_hand), (sew(48), sew_by_hand), (ms(), ms_by_hand)],
    ids=["SEW", "SEW on lists of all", "MS"],
)
def test_residual_blocks_with_norms_learn_as_in_plain_jax(net: Network, by_hand: Callable[..., Any]) -> None:
    inputs = inputs_of(IMAGE)
    params, stats = initial(net, inputs, target_activity=0.2), net.initial_stats(KEY)
    second = -jnp.inf if any(node.block.lists_spikes for node in net.nodes) else None

    def ours(params: Params) -> jax.Array:
        options = {"stats": stats, "train": True, "second_threshold": second}
        return net.apply(params, None, inputs, **options)[0].output

    def theirs(params: Params) -> jax.Array:
        with jax.numpy_rank_promotion("allow"):
            return by_hand(params, inputs)

    found, expected = (
        jit(jax.value_and_grad(lambda own, run=run: jnp.sum(jnp.sin(run(own)))))(params)
        for run in (ours, theirs)
    )
    for name, own in expected[1].items():
        learns = [leaf for leaf in jax.tree.leaves(own) if name != "readout/neuron"]
        assert all(np.any(leaf) for leaf in learns), name
    # Each is up to 6e-6 from the same in float64, on either side.
    assert_close(found, expected, of_largest=2 * ROUNDING)


NET = network(4, [layer(3, norm=blocks.batch_norm())])
X = jnp.zeros((STEPS, BATCH, 4))
TRY = "Try its default."
REFUSED = {
    f"batch_norm: `scale` must be a number above 0, got 0.0. {TRY}": lambda: blocks.batch_norm(scale=0.0),
    "group_norm: `groups` must divide the channels, 6, got 4. Choose a divisor.": lambda: blocks.group_norm(
        4
    ).out_shape((3, 6)),
    f"layer_norm: `epsilon` must be a number above 0, got inf. {TRY}": lambda: blocks.layer_norm(
        epsilon=float("inf")
    ),
    "batch_norm: `momentum` must be at least 0 and below 1, got 1.0. "
    "It is the share that is kept; try 0.9.": lambda: blocks.batch_norm(momentum=1.0),
    "batch_norm: `frozen` must be True or False, got 1. Choose one of these.": lambda: blocks.batch_norm(
        frozen=1
    ),
    "dropout: `rate` must be at least 0 and below 1, got 1.0. Try 0.2.": lambda: blocks.dropout(1.0),
    "dropout: `key` must be a PRNG key in training, got None. Pass key=jax.random.key(0) to apply.": lambda: (
        network(4, [blocks.dropout(0.5), layer(3)]).apply(
            initial(network(4, [blocks.dropout(0.5), layer(3)])), None, X, train=True
        )
    ),
    "network: `layer_0/recurrent/batch_norm_0` must run step by step, as a signal returns to it, got "
    "batch_norm. Put it before or behind the loop, or return False "
    "from its needs_all_steps.": lambda: network(4, [layer(3, recurrent=[dense(3), blocks.batch_norm()])]),
    "network.apply: `stats` must hold those of layer_0/norm, got None. "
    "Make them with network.initial_stats(key).": lambda: NET.apply(initial(NET), None, X),
    "network.apply: `stats` must hold layer_0/norm, got none of it. "
    "Make them with network.initial_stats(key).": lambda: NET.apply(initial(NET), None, X, stats={}),
    "network.apply: `stats['layer_0/norm'].mean` must be floating-point [3], got float32[5]. "
    "Make them with network.initial_stats(key).": lambda: NET.apply(
        initial(NET), None, X, stats=network(4, [layer(5, norm=blocks.batch_norm())]).initial_stats(KEY)
    ),
}
test_errors_say_what_is_wrong_and_a_hint = refusals(REFUSED)


def test_a_divided_batch_needs_the_name_of_its_axis() -> None:
    norm, shape = blocks.batch_norm(), (3,)
    mesh = jax.make_mesh((2,), ("data",), (AxisType.Auto,), devices=jax.devices()[:2])
    params = norm.init(jax.random.key(0), shape, dtype=jnp.float32)
    stats, x = norm.initial_stats(jax.random.key(0), shape), jnp.ones((5, 4, 3))

    def run(stats: NormStats, spec: PartitionSpec):
        def after(stats: NormStats, x):
            return norm.apply(params, None, stats, x, shapes=(shape,), context=Context(train=True)).stats

        specs = {"in_specs": (spec, PartitionSpec(None, "data")), "out_specs": spec}
        return jax.shard_map(after, mesh=mesh, **specs)(stats, x)

    with pytest.raises(ValueError) as caught:
        run(stats, PartitionSpec())
    assert str(caught.value) == (
        "batch_norm: `axis_name` must name the axis of shard_map over which the batch is divided, 'data', got None. "
        "Write batch_norm(axis_name='data')."
    )
    # Statistics of each device's own are meant where they come in so.
    chex.assert_tree_all_finite(
        run(jax.tree.map(lambda leaf: jnp.tile(leaf, 2), stats), PartitionSpec("data"))
    )
