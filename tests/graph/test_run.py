"""The fused op and layer-by-layer scans compute the same; padded steps and other sequences have no influence."""

import dataclasses
import functools
import re
from typing import Any

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import PartitionSpec

from snnjax import (
    Network,
    SparseSpikes,
    axonal,
    blocks,
    conv1d,
    conv2d,
    dense,
    layer,
    leaky_readout,
    network,
    neurons,
    spiking_readout,
    sum_pool,
)
from snnjax._types import Params, Signal, State
from snnjax.blocks.delay import DelayState
from snnjax.blocks.late import LateState
from snnjax.graph import segments
from tests.graph.helpers import BATCH, INPUTS, STEPS, initial, louder, random_spikes, with_gradients
from tests.numbers import array, assert_close
from tests.ops.common import equations, jit

# Sums run in another order: a few ulp of float32 on sums of up to 60 terms of order 1.
TOLERANCE = {"rtol": 2e-5, "atol": 2e-5}
LEARNED = neurons.lif((0.7, 0.9), (0.8, 1.2), learn_decay=True, learn_threshold=True)
RAW = neurons.lif(0.8, per="layer", reset="zero", detach_reset=False, normalize=False, learn_decay=True)
NONE = neurons.lif(reset="none", surrogate="triangle")
LENGTHS = jnp.array([STEPS, 7, 0], jnp.int32)


def plain(neuron, readout, **options) -> Network:
    capacity = options.get("capacity")
    first = dense(8, bias=options.pop("bias", True))
    return network(INPUTS, [layer(first, neuron, **options), layer(6, neuron, capacity=capacity)], readout)


AFTER = neurons.lif((0.7, 0.9), reset_time="after_decay", learn_decay=True)
LOW = neurons.lif((0.7, 0.9), (0.1, 0.2), reset_time="after_decay", learn_decay=True, learn_threshold=True)
LEARN_ADAPTATION = {"learn_decay": True, "learn_adaptation": True, "learn_threshold": True}
MIXED = network(
    INPUTS,
    [
        layer(8, LEARNED, capacity=3, recurrent=True),
        layer(7, AFTER, recurrent=True),
        layer(6, neurons.adlif()),
        layer(5, neurons.refractory(LEARNED, 1), capacity=4),
        layer(6, NONE),
    ],
    leaky_readout(3),
)


# What is computed, and how: the network, and arguments of `apply`, `listed` for inputs as event lists. A chunk that
# leaves a rest of the 20 steps compiles everything twice: one case does.
CASES: dict[str, tuple[Network, dict[str, Any]]] = {
    "dense": (plain(LEARNED, leaky_readout(3, learn_decay=True)), {}),
    "lists, recurrent, lengths": (
        plain(LEARNED, leaky_readout(dense(3, bias=False)), capacity=3, recurrent=True),
        {"lengths": LENGTHS, "chunk": 6},
    ),
    "spiking readout, no reset": (
        plain(NONE, spiking_readout(3, NONE, recurrent=True), capacity=0.4),
        {"lengths": LENGTHS, "second_threshold": jnp.float32(0.7)},
    ),
    "events, attached reset": (
        plain(RAW, leaky_readout(3, normalize=False, learn_decay=True), capacity=6, bias=False),
        {"listed": True, "second_threshold": -jnp.inf, "chunk": 10},
    ),
    "adlif, lists, recurrent": (
        plain(neurons.adlif(), leaky_readout(3), capacity=1, recurrent=True),
        {"lengths": LENGTHS},
    ),
    "adaptive lif, attached reset": (
        plain(neurons.adaptive_lif(detach_reset=False, **LEARN_ADAPTATION), leaky_readout(3), recurrent=True),
        {"lengths": LENGTHS},
    ),
    "lists of current-based lif below its own": (
        network(
            INPUTS,
            [
                layer(8, neurons.current_lif(learn_decay=True, learn_synapse_decay=True), capacity=3),
                layer(6, neurons.integrate_and_fire(reset="zero")),
            ],
            spiking_readout(3, neurons.adaptive_lif(**LEARN_ADAPTATION)),
        ),
        {"listed": True},
    ),
    "lists of lif, another lif, adlif, refractory lif and lif": (MIXED, {"lengths": LENGTHS}),
    "lists, convolutions and pools": (
        network(
            (5, 2),
            [layer(conv1d(4, 3), LEARNED, capacity=0.2), sum_pool(2), layer(conv1d(3, 2), neurons.adlif())],
            leaky_readout(3),
        ),
        {"lengths": LENGTHS},
    ),
    "convolution of groups, lists of events, delays": (
        network(
            (5, 1, 2),
            [
                layer(conv2d(8, (3, 1), strides=(2, 1), groups=2), RAW),
                sum_pool((3, 1)),
                layer([axonal(3), dense(6)], LEARNED, recurrent=[axonal(3), dense(6, bias=False)]),
            ],
            spiking_readout(3),
        ),
        {"lengths": LENGTHS, "listed": True},
    ),
    "lists below a spiking readout that is scanned": (
        network(INPUTS, [layer(8, LEARNED, capacity=1)], spiking_readout(3, LOW)),
        {"lengths": LENGTHS},
    ),
}


def somewhere(state: State):
    """A state in the midst of a sequence: membranes around the threshold, and spikes of 0 and 1."""
    rng = np.random.default_rng(1)

    def draw(leaf: jax.Array) -> jax.Array:
        return array(rng.uniform(-0.5, 1.5, leaf.shape), leaf.dtype)

    def fired(own):
        """Spikes of 0 and 1, also those in transit."""
        spikes = lambda leaf: (draw(leaf) > 1).astype(leaf.dtype)  # noqa: E731
        return jax.tree.map(spikes, own) if isinstance(own, DelayState | LateState) else own

    return {name: fired(jax.tree.map(draw, own)) for name, own in state.items()}


@pytest.mark.parametrize("name", CASES)
def test_both_ways_through_a_network_agree(name: str) -> None:
    net, options = CASES[name]
    options = {"record": "spikes"} | options
    inputs = random_spikes(0.3)
    inputs = SparseSpikes.from_dense(inputs, 6) if options.pop("listed", False) else inputs
    params = louder(initial(net))
    arguments = (params, somewhere(net.initial_state(params, BATCH)), inputs)
    assert "fused" in net.paths
    fused, fused_gradients = jit(with_gradients(functools.partial(net.apply, **options)))(*arguments)
    composed = functools.partial(net.apply, implementation="composed", **options)
    layered, layered_gradients = jit(with_gradients(composed))(*arguments)
    assert jax.tree.structure(fused) == jax.tree.structure(layered)
    chex.assert_trees_all_close(fused, layered, **TOLERANCE, strict=True)
    # Gradients grow to 100 on their way back, and their entries share the rounding of the largest.
    assert_close(fused_gradients, layered_gradients, **TOLERANCE, of_largest=2e-6)
    assert all(0.01 < float(jnp.mean(each)) < 0.6 for each in fused[0].activity.values())
    drops = sum(int(jnp.sum(each)) for each in fused[0].dropped.values())
    assert (drops > 0) == name.startswith(("lists", "spiking", "adlif"))


def test_a_network_says_which_path_each_block_takes() -> None:
    assert MIXED.paths.splitlines() == [
        "fused: layer_0/connection > layer_0/late > layer_0/recurrent > layer_0/join > layer_0/neuron",
        "alone: layer_1/connection (no neurons follow it in a way that the fused op knows)",
        "loop: layer_1/late > layer_1/recurrent > layer_1/join > layer_1/neuron "
        "(lif with reset_time='after_decay': its reset follows the decay)",
        "fused: layer_2/connection > layer_2/neuron > layer_3/connection > layer_3/neuron > layer_4/connection "
        "> layer_4/neuron > readout/connection > readout/neuron",
    ]


def test_few_steps_are_scanned_with_equal_results() -> None:
    for recurrent, fewest in ((False, 4), (True, 2)):
        net = network(INPUTS, [layer(8, recurrent=recurrent), layer(6, capacity=3)], leaky_readout(3))
        paths = [len(net.segments(steps=steps)) for steps in range(1, 5)]
        assert paths == [6] * (fewest - 1) + [1] * (5 - fewest)
        params, inputs = louder(initial(net)), random_spikes(0.3, steps=8)
        whole, end = jit(net.apply)(params, None, inputs)
        step, state = jit(net.apply), net.initial_state(params, BATCH)
        for index in range(len(inputs)):
            out, state = step(params, state, inputs[index : index + 1])
            chex.assert_trees_all_close(out.output[0], whole.output[index], **TOLERANCE)
        chex.assert_trees_all_close(state, end, **TOLERANCE)


@pytest.mark.parametrize("option", [{}, {"capacity": 3}, {"recurrent": True}], ids=str)
def test_few_rows_of_dense_layers_are_scanned_with_equal_results(
    monkeypatch: pytest.MonkeyPatch, option: dict[str, Any]
) -> None:
    """Not those of spike lists, and not recurrent ones, whose scans call a product at each step."""
    net = network(INPUTS, [layer(8, LEARNED, **option), layer(6)], leaky_readout(3))
    params, inputs = louder(initial(net)), random_spikes(0.3)
    arguments = (params, net.initial_state(params, BATCH), inputs)
    results, calls = [], []
    for fewest in (64, 0):
        monkeypatch.setattr(segments, "FEWEST_ROWS", fewest)
        segments.segments_of.cache_clear()
        results.append(jit(with_gradients(net.apply))(*arguments))
        calls.append([len(net.segments(rows=rows)) for rows in (32, 64)])
    segments.segments_of.cache_clear()
    assert calls == [[1 if option else 6, 1], [1, 1]]
    assert_close(*results, of_largest=TOLERANCE["rtol"])


@pytest.mark.parametrize("make", [neurons.lif, neurons.current_lif, neurons.integrate_and_fire])
def test_a_path_names_the_conventions_of_other_libraries(make) -> None:
    neuron = make(reset_time="after_decay", spike_from="old", inclusive=True)
    paths = network(INPUTS, [layer(2, neuron)], leaky_readout(1)).paths.splitlines()
    switches = "reset_time='after_decay' and spike_from='old' and inclusive=True"
    assert (
        paths[1]
        == f"alone: layer_0/neuron ({neuron.name} with {switches}: it spikes from the membrane of the step before)"
    )


@pytest.mark.parametrize("capacity", [None, 3])
def test_both_ways_agree_in_bfloat16(capacity: int | None) -> None:
    """Slow neurons and a slow readout, whose gains a rounded decay would halve or take away."""
    slow = neurons.lif((0.95, 0.999), (0.02, 0.05), learn_decay=True)
    last = leaky_readout(3, decay=0.999, learn_decay=True)
    net = network(INPUTS, [layer(8, slow, capacity=capacity, recurrent=True), layer(6, slow)], last)
    params, inputs = initial(net, dtype=jnp.bfloat16), random_spikes(0.3)
    stats = net.initial_stats(jax.random.key(0))
    arguments = (params, net.initial_state(params, BATCH, stats), inputs)
    fused, (_, fused_gradients) = jit(with_gradients(functools.partial(net.apply, stats=stats)))(*arguments)
    composed = functools.partial(net.apply, stats=stats, implementation="composed")
    layered, (_, layered_gradients) = jit(with_gradients(composed))(*arguments)
    assert float(jnp.mean(fused[0].activity["layer_1/neuron"])) > 0.01
    # Sums in another order: a bit of float32 in membranes, of bfloat16 where they are rounded.
    chex.assert_trees_all_close(fused[1], layered[1], **TOLERANCE, strict=True)
    chex.assert_trees_all_close(
        fused[0]._replace(output=0), layered[0]._replace(output=0), **TOLERANCE, strict=True
    )
    chex.assert_trees_all_close(fused[0].output, layered[0].output, rtol=2**-7, strict=True)
    # Fused, cotangents are rounded between layers, and distances to the threshold where they are recorded.
    assert_close(fused_gradients, layered_gradients, of_largest=0.03)


@pytest.mark.parametrize(
    "neuron, listed", [(LEARNED, True), (AFTER, False)], ids=["fused, events", "scanned, dense"]
)
def test_what_stands_behind_the_end_has_no_influence(neuron, listed: bool) -> None:
    net = network(INPUTS, [layer(8, neuron, capacity=3, recurrent=True)], leaky_readout(3, learn_decay=True))
    params = initial(net)
    run = jit(with_gradients(functools.partial(net.apply, lengths=LENGTHS, record="spikes")))
    padded = jnp.arange(STEPS, dtype=jnp.int32)[:, None] >= LENGTHS[None, :]
    inputs = random_spikes(0.3)
    lists = SparseSpikes.from_dense(inputs, 6)

    def with_padding(value: float):
        if not listed:
            return jnp.where(padded[:, :, None], value, inputs)
        return dataclasses.replace(lists, values=jnp.where(padded[:, :, None], value, lists.values))

    state = net.initial_state(params, BATCH)
    clean, garbage = (run(params, state, with_padding(value)) for value in (0.0, jnp.nan))
    chex.assert_trees_all_equal(garbage, clean, strict=True)
    chex.assert_tree_all_finite(clean[1])
    output, end = clean[0]
    # Frozen at the end: the readout keeps its last value, hidden layers are silent.
    last = np.asarray(output.output)[np.maximum(np.asarray(LENGTHS) - 1, 0), np.arange(BATCH)]
    np.testing.assert_array_equal(
        np.where(np.asarray(LENGTHS)[:, None] > 0, last, 0), end["readout/neuron"].v
    )
    assert not np.any(np.asarray(output.recorded["layer_0/neuron"].num_listed)[np.asarray(padded)])


@pytest.mark.parametrize("neuron", [LEARNED, AFTER], ids=["fused", "scanned"])
def test_sequences_of_a_batch_do_not_meet(neuron) -> None:
    net = plain(neuron, leaky_readout(3), capacity=3, recurrent=True)
    params, inputs = initial(net), random_spikes(0.3)
    run = jit(lambda x, lengths: net.apply(params, net.initial_state(params, BATCH), x, lengths=lengths))
    output, end = run(inputs, LENGTHS)
    others = inputs.at[:, 1:].set(1 - inputs[:, 1:])
    changed, changed_end = run(others, jnp.array([STEPS, 3, 9], jnp.int32))
    np.testing.assert_array_equal(output.output[:, 0], changed.output[:, 0])
    first = lambda leaf: leaf[:, 0] if leaf.ndim == 3 else leaf[0]  # noqa: E731 (late spikes have steps)
    chex.assert_trees_all_equal(jax.tree.map(first, end), jax.tree.map(first, changed_end), strict=True)
    for before, after in zip(output.activity.values(), changed.activity.values(), strict=True):
        np.testing.assert_array_equal(before[0], after[0])
        assert np.any(before[1] != after[1])


@pytest.mark.parametrize("neuron, chunk", [(LEARNED, None), (AFTER, 3)], ids=["fused", "scanned in chunks"])
def test_no_steps_change_nothing(neuron, chunk: int | None) -> None:
    net = plain(neuron, leaky_readout(3), capacity=3, recurrent=True)
    params = initial(net)
    state = somewhere(net.initial_state(params, BATCH))
    output, end = jit(lambda state: net.apply(params, state, jnp.zeros((0, BATCH, INPUTS)), chunk=chunk))(
        state
    )
    assert output.output.shape == (0, BATCH, 3)
    chex.assert_trees_all_equal(end, state, strict=True)
    assert not any(np.any(each) for each in (*output.activity.values(), *output.dropped.values()))


def test_whole_number_inputs_equal_floats_layer_by_layer() -> None:
    net = network(INPUTS, [layer(8, AFTER)], leaky_readout(3))
    params, inputs = initial(net), random_spikes(0.3)
    run = jit(lambda x: net.apply(params, net.initial_state(params, BATCH), x, lengths=LENGTHS))
    for dtype in (jnp.uint8, jnp.bool_):
        chex.assert_trees_all_equal(run(inputs.astype(dtype)), run(inputs), strict=True)


@pytest.mark.parametrize("dtype", [np.int64, np.uint64])
def test_integers_that_32_bits_do_not_hold_are_the_numbers_that_they_are(dtype) -> None:
    net = network(1, [layer(1, AFTER)], leaky_readout(1))
    params, large = initial(net), np.full((2, 1, 1), 2**40, dtype)
    found, expected = (net.apply(params, None, x) for x in (large, large.astype(np.float32)))
    chex.assert_trees_all_equal(found, expected, strict=True)


@pytest.mark.parametrize(
    "neuron, ops",
    [
        (LEARNED, {"lif_network"}),
        (neurons.izhikevich(), {"select_spikes", "spike_matmul"}),
        (AFTER, {"select_spikes", "spike_matmul"}),
        (
            neurons.refractory(neurons.current_lif(reset_time="immediate"), 1),
            {"select_spikes", "spike_matmul"},
        ),
    ],
)
def test_implementation_reaches_every_op(neuron, ops: set[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """The forward and the backward pass of all; the products of the events, of the layers and of the readout."""
    net = plain(neuron, leaky_readout(3), capacity=3, recurrent=True)
    params, inputs = initial(net), SparseSpikes.from_dense(random_spikes(0.3), 6)
    run = with_gradients(functools.partial(net.apply, implementation="reference"))
    jaxpr = jax.make_jaxpr(run)(params, net.initial_state(params, BATCH), inputs)
    called = [each.params["call"] for each in equations(jaxpr.jaxpr) if "call" in each.params]
    names = [call.target.name.removeprefix("snnjax_") for call in called]
    implementations = [call.implementation for call in called]
    assert {name for name in names if "backward" not in name} == ops
    assert {name.split("_backward")[0] for name in names if "backward" in name} >= ops - {"spike_matmul"}
    assert set(implementations) == {"reference"}


@pytest.mark.parametrize("neuron", [LEARNED, neurons.adlif()], ids=["fused", "layers"])
def test_implementation_that_is_unknown(neuron) -> None:
    net = plain(neuron, leaky_readout(3))
    with pytest.raises(ValueError) as error:
        jax.eval_shape(
            lambda params: net.apply(params, None, random_spikes(0.3), implementation="tpu"), initial(net)
        )
    assert str(error.value) == (
        "network.apply: `implementation` must be None, 'reference', 'cpu', 'gpu' or 'composed', got 'tpu'. "
        "Choose one of these."
    )


SCANNED = {
    "dense inputs and lists": (False, {"capacity": 3}),
    "recurrent weights": (True, {"recurrent": True}),
    "recurrent weights and lists": (True, {"capacity": 3, "recurrent": True}),
}


@pytest.mark.parametrize("name", SCANNED)
def test_kernels_by_name_layer_by_layer(name: str) -> None:
    """The products of layers that are scanned, forward and backward."""
    (listed, options), inputs = SCANNED[name], random_spikes(0.3)
    inputs = SparseSpikes.from_dense(inputs, 6) if listed else inputs
    net = plain(AFTER, leaky_readout(3), **options)
    params = initial(net)

    def loss(params: Params, name: str):
        output, _ = net.apply(params, None, inputs, implementation=name)
        return jnp.sum(output.output**2), output

    forced, reference = (
        jit(jax.value_and_grad(lambda params, name=name: loss(params, name), has_aux=True))(params)
        for name in ("cpu", "reference")
    )
    chex.assert_trees_all_close(forced, reference, **TOLERANCE, strict=True)


def test_a_scanned_layer_is_traced_once_for_all_calls_outside_of_jit() -> None:
    """Else each call would compile it again."""
    traced, given = [], neurons.izhikevich()

    def integrate(*arguments):
        traced.append(arguments)
        return given.advance(*arguments)

    net = network(INPUTS, [layer(4, dataclasses.replace(given, integrate=integrate))], leaky_readout(3))
    params, inputs = initial(net), random_spikes(0.3, steps=2)
    traced.clear()
    first, _ = net.apply(params, None, inputs)
    assert traced
    traced.clear()
    again, _ = net.apply(params, None, 1 - inputs)
    assert not traced
    assert np.any(first.output != again.output)


def test_scanned_layers_run_on_shares_of_a_batch() -> None:
    """Their first states are zeros, which do not vary over the devices as the inputs do."""
    net = network(
        INPUTS,
        [
            layer(8, neurons.izhikevich()),
            layer([axonal(2), dense(6)], recurrent=[axonal(2), dense(6, bias=False)]),
            layer(4, neurons.refractory(neurons.lif(), 2)),
        ],
        leaky_readout(3),
    )
    params, inputs = initial(net), random_spikes(0.3, steps=5, batch=4)

    def run(params: Params, inputs: Signal, lengths):
        return net.apply(params, None, inputs, lengths=lengths, implementation="composed")[0].output

    mesh = jax.make_mesh((4,), ("batch",), (jax.sharding.AxisType.Auto,))
    shares = PartitionSpec(None, "batch")
    specs = (PartitionSpec(), shares, PartitionSpec("batch"))
    shared = jax.shard_map(run, mesh=mesh, in_specs=specs, out_specs=shares)
    lengths = jnp.array([5, 3, 4, 0])
    # A product of one row is summed in another order.
    chex.assert_trees_all_close(
        jit(shared)(params, inputs, lengths),
        jit(run)(params, inputs, lengths),
        rtol=1e-5,
        atol=1e-6,
        strict=True,
    )


def test_gradients_of_params_that_shares_of_a_batch_close_over() -> None:
    """They are those of params that are passed: of the sum over devices, also inside; cast, of a device's own share."""
    net = network(
        INPUTS, [layer(6, capacity=3, recurrent=True), layer(4, neurons.izhikevich())], leaky_readout(3)
    )
    params, inputs = initial(net), random_spikes(0.5, steps=5, batch=4)
    mesh = jax.make_mesh((4,), ("batch",), (jax.sharding.AxisType.Auto,))
    columns, whole, rows = PartitionSpec(None, "batch"), PartitionSpec(), PartitionSpec("batch")

    def loss(params: Params, inputs: Signal):
        return jnp.sum(net.apply(params, None, inputs)[0].output ** 2)

    def shared(run, out_specs):
        return jax.shard_map(run, mesh=mesh, in_specs=(columns,), out_specs=out_specs)(inputs)

    def own_share(params: Params, inputs: Signal):
        own = jax.tree.map(lambda leaf: jax.lax.pcast(leaf, "batch", to="varying"), params)
        return jax.tree.map(lambda leaf: leaf[None], jax.grad(loss)(own, inputs))

    def gradients(params: Params):
        outside = jax.grad(lambda own: shared(lambda x: jax.lax.psum(loss(own, x), "batch"), whole))(params)
        inside = shared(lambda x: jax.grad(loss)(params, x), whole)
        return outside, inside, shared(lambda x: own_share(params, x), rows)

    expected = jit(jax.vmap(jax.grad(loss), (None, 1)))(params, inputs[:, :, None])
    total = jax.tree.map(lambda leaf: jnp.sum(leaf, 0), expected)
    for found, right in zip(jit(gradients)(params), (total, total, expected), strict=True):
        assert_close(found, right, of_largest=TOLERANCE["rtol"])


@pytest.mark.parametrize(
    "dtype, given",
    [("float64", "uint8"), ("float64", "float32"), ("float32", "float64"), ("bfloat16", "float64")],
)
def test_the_state_keeps_its_dtype_whatever_the_inputs_have(dtype: str, given: str) -> None:
    """Also from piece to piece: delays of float32 inputs in a network of float64 had turned into float32."""
    specs = [axonal(3, learn=False), layer(4, neurons.adlif(), recurrent=[axonal(2), dense(4)])]
    with jax.enable_x64(True):
        net = network(5, specs, leaky_readout(2))
        params = net.init(jax.random.key(0), dtype=jnp.dtype(dtype))
        inputs = jnp.asarray(np.random.default_rng(0).random((5, 3, 5)) < 0.3).astype(given)
        stats = net.initial_stats(jax.random.key(1))
        start = net.initial_state(params, 3, stats)
        whole, cut = (
            jax.eval_shape(functools.partial(net.apply, stats=stats, chunk=chunk), params, None, inputs)
            for chunk in (None, 2)
        )
    shapes = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype), start)
    assert whole[1] == cut[1] == shapes
    assert whole[0].output.dtype == jnp.dtype(dtype)


@pytest.mark.parametrize("platform, rounds", [("cpu", 16), ("cuda", 2), ("rocm", 2), ("tpu", 16)])
def test_neurons_outside_of_the_fused_op_take_eight_steps_in_a_round_on_gpus(
    platform: str, rounds: int
) -> None:
    """Spiking neurons and a readout, forward and backward."""
    net = network(3, [layer(2, neurons.izhikevich())], leaky_readout(2))
    inputs = jnp.ones((16, 1, 3))
    loss = jax.grad(lambda params: jnp.sum(net.apply(params, None, inputs)[0].output ** 2))
    text = jax.jit(loss).trace(initial(net)).lower(lowering_platforms=(platform,)).as_text()
    loops = re.findall(r"stablehlo.while.*?dense<(\d+)> : tensor<i32>", text, re.DOTALL)
    assert [int(count) for count in loops] == 4 * [rounds]


@pytest.mark.parametrize("chunk", [None, 2])
@pytest.mark.parametrize(
    "block",
    [
        blocks.max_rate_pool(2),
        sum_pool(2),
        blocks.upsample(2),
        blocks.spiking(neurons.lif()),
        blocks.spiking(neurons.refractory(neurons.izhikevich(), 1)),
        blocks.integrator(),
    ],
    ids=lambda block: block.kind,
)
def test_a_network_without_parameters_has_the_precision_of_its_inputs(block, chunk) -> None:
    """2^-40 beside numbers near 1 is lost in float32; a state of float32 that is given keeps its dtype."""
    net, is_spiking = network((4, 4, 2), [block]), "lif" in block.kind or "izhikevich" in block.kind
    with jax.enable_x64(True):
        coarse = jnp.round(8 * jax.random.uniform(jax.random.key(0), (6, 2, 4, 4, 2), jnp.float64)) + 4
        (found, state), (expected, _) = (
            net.apply({}, None, inputs, chunk=chunk, record=("membranes",) * is_spiking)
            for inputs in (coarse * (1 + 2.0**-40), coarse)
        )
        for a, b in zip(
            *(jax.tree.leaves((each.output, each.membranes)) for each in (found, expected)), strict=True
        ):
            assert a.dtype == jnp.float64
            if not is_spiking:
                np.testing.assert_allclose(a, b * (1 + 2.0**-40), rtol=2.0**-48)
        assert all(leaf.dtype in (jnp.float64, jnp.int32) for leaf in jax.tree.leaves(state))
        again, _ = net.apply({}, state, coarse, chunk=chunk)
        assert again.output.dtype == jnp.float64
        given = net.initial_state({}, 2)
        held = net.apply({}, given, coarse, chunk=chunk)[1]
        assert jax.tree.map(lambda leaf: leaf.dtype, held) == jax.tree.map(lambda leaf: leaf.dtype, given)
