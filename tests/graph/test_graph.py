"""Graphs of blocks: how containers are wired, what joins compute, and the names by which blocks are found."""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from snnjax import (
    Network,
    SparseSpikes,
    axonal,
    blocks,
    conv2d,
    dense,
    flatten,
    layer,
    leaky_readout,
    max_pool,
    mean_pool,
    network,
    neurons,
    parallel,
    residual,
    sequential,
    spiking_readout,
    sum_pool,
)
from snnjax._types import Params, Signal
from snnjax.blocks.block import Context, dense_signal, flat, shaped
from snnjax.blocks.late import Late, LateState
from snnjax.graph.recurrence import parts
from tests.errors.refusals import refusals
from tests.graph.helpers import BATCH, initial, random_spikes
from tests.numbers import assert_close
from tests.ops.common import jit, weighted_sum

STEPS = 8
LENGTHS = jnp.array([8, 5, 0], jnp.int32)
IMAGE = (4, 4, 2)
BOTH: dict[str, Any] = {"seen": IMAGE, "heard": 5}
INNER = network(6, [layer(5, capacity=3), residual(layer(5, neurons.adlif()))])
NETS: dict[str, Network] = {
    "residuals of arrays and lists": network(
        6,
        [
            layer(5, capacity=3),
            residual(layer(5, capacity=2)),
            residual([layer(7), layer(5, neurons.adlif())], join="either"),
        ],
        leaky_readout(3),
    ),
    "shortcut of images": network(
        IMAGE,
        [
            layer(conv2d(3, 3)),
            residual([layer(conv2d(4, 3, strides=2)), layer(conv2d(4, 3))], layer(conv2d(4, 1, strides=2))),
        ],
        leaky_readout(3),
    ),
    "branches": network(
        6,
        [
            parallel(
                fast=layer(4, neurons.izhikevich()),
                slow=[axonal(2), layer(3, neurons.lif(0.9), capacity=2), layer(5)],
                skip=None,
            ),
            parallel(join="multiply", gate=layer(4), gated=layer(4)),
        ],
        leaky_readout(3),
    ),
    "recurrent convolutions of lists": network(
        IMAGE,
        [
            parallel(a=layer(conv2d(3, 3), capacity=9), b=layer(conv2d(2, 3), capacity=5)),
            layer(conv2d(2, 3), recurrent=[conv2d(2, 3)]),
            layer(conv2d(2, 3)),
        ],
        leaky_readout(2),
    ),
    "two inputs": network(
        BOTH,
        [
            sequential(layer(conv2d(2, 3)), sum_pool(2), flatten()).named("eye"),
            layer(4).named("ear").receiving("heard"),
            blocks.join("concatenate").receiving("eye", "ear"),
            layer(6),
        ],
        leaky_readout(3),
    ),
    "two readouts and a tap": network(
        6,
        [layer(5).named("first"), layer(4), layer(5).named("last"), blocks.join().receiving("first", "last")],
        {"early": leaky_readout(2).receiving("first"), "late": spiking_readout(3)},
    ),
    "no readout": network(6, [layer(5, capacity=2), layer(4, capacity=3)]),
    "a pool at the end": network(IMAGE, [layer(conv2d(2, 3)), sum_pool(2)]),
    "maxima and windows that overlap, of lists and arrays": network(
        IMAGE,
        [
            layer(conv2d(3, 3), capacity=20),
            max_pool(2, strides=1),
            layer(conv2d(3, 3)),
            sum_pool(2, strides=1),
            layer(conv2d(3, 2), capacity=5),
            mean_pool((2, 1), strides=1),
            max_pool((1, 2)),
        ],
        leaky_readout(3),
    ),
    "dilated and transposed": network(
        IMAGE,
        [
            layer(conv2d(3, 2, dilation=2)),
            layer(conv2d(3, 3, strides=2), capacity=6),
            layer(blocks.conv2d_transpose(3, 3, strides=2), capacity=20),
            blocks.conv2d_transpose(2, 2, strides=2, dilation=(1, 2)),
            neurons.adlif(),
        ],
        leaky_readout(conv2d(2, 3)),
    ),
    "masked recurrence": network(
        6,
        [
            layer(5, recurrent=dense(5, mask=np.eye(5) == 0)),
            layer(4, capacity=3, recurrent=dense(4, mask=np.eye(4) == 1)),
        ],
        leaky_readout(2),
    ),
    "networks in a network": network(6, [INNER, layer(6), INNER], leaky_readout(3)),
}


# Steps of a chunk; one that leaves a rest, which compiles everything twice, is in test_run.py.
CHUNKED = {"branches": 4, "recurrent convolutions of lists": 4}


def inputs_of(net: Network) -> dict[str, Any]:
    found = {}
    for seed, (name, shape) in enumerate(net.inputs):
        flat = random_spikes(0.4, STEPS, BATCH, int(np.prod(shape)), seed)
        found[name] = flat.reshape(STEPS, BATCH, *shape)
    return found


def by_blocks(net: Network, params: Params, inputs: dict[str, Any], lengths) -> dict[str, Any]:
    """The signals of all inputs and nodes: of each block alone on the signals of its sources."""
    found = dict(inputs)
    for part in parts(net.nodes):
        if len(part) > 1:
            found |= by_steps(net, part, params, found, lengths)
            continue
        node, shapes = net.nodes[part[0]], net.in_shapes[part[0]]
        own = params.get(node.name)
        state = node.block.initial_state(own, None, BATCH, *shapes)
        received = [shaped(found[source], shape) for source, shape in zip(node.sources, shapes, strict=True)]
        options = {"shapes": shapes, "context": Context(lengths)}
        found[node.name] = node.block.apply(own, state, None, *received, **options).signal
    return found


def by_steps(net: Network, loop, params: Params, found, lengths) -> dict[str, Any]:
    """The signals of a loop: of each block alone in every step."""
    nodes = [(net.nodes[index], net.in_shapes[index]) for index in loop]
    names = {node.name for node, _ in nodes}
    outside = {source: found[source] for node, _ in nodes for source in node.sources if source not in names}
    states = {
        node.name: node.block.initial_state(params.get(node.name), None, BATCH, *own) for node, own in nodes
    }

    def step(states, xs):
        time, given = xs
        signals, after = jax.tree.map(lambda x: x[None], given), dict(states)
        context = Context((time < lengths).astype(jnp.int32))
        for node, shapes in nodes:
            if isinstance(node.block, Late):
                signals[node.name] = shaped(states[node.name].sent, node.block.shape)
                continue
            held = params.get(node.name), states[node.name], None
            received = [
                shaped(signals[source], own) for source, own in zip(node.sources, shapes, strict=True)
            ]
            ran = node.block.apply(*held, *received, shapes=shapes, context=context)
            signals[node.name], after[node.name] = ran.signal, ran.state
        for node, _ in nodes:
            if isinstance(node.block, Late):
                sent = dense_signal(signals[node.sources[0]], node.block.shape)
                after[node.name] = LateState(flat(sent))
        return after, {name: jax.tree.map(lambda x: x[0], signals[name]) for name in names}

    return jax.lax.scan(step, states, (jnp.arange(STEPS), outside))[1]


def to_arrays(tree):
    """A tree of signals without lists: those of two programs may name the same spikes in another order."""
    is_list = lambda own: isinstance(own, SparseSpikes)  # noqa: E731
    return jax.tree.map(lambda own: own.to_dense() if is_list(own) else own, tree, is_leaf=is_list)


@functools.cache
def case(name: str) -> tuple[Network, Any, Any]:
    net = NETS[name]
    inputs = inputs_of(net)
    params = initial(net, inputs, target_activity=0.3)
    return net, params, inputs


@pytest.mark.parametrize("name", NETS)
def test_a_network_is_its_blocks_in_order(name: str) -> None:
    """Outputs, spikes and gradients, whatever is fused: of whole runs, and of runs in chunks."""
    net, params, inputs = case(name)
    spiking = [node.name for node in net.nodes if node.block.is_spiking]

    def ours(params: Params, inputs: Signal, chunk: int | None):
        options = {"lengths": LENGTHS, "record": "spikes", "chunk": chunk}
        out, _ = net.apply(params, None, inputs, **options)
        return to_arrays((out.output, out.recorded))

    def theirs(params: Params, inputs: Signal):
        found = by_blocks(net, params, inputs, LENGTHS)
        outputs = {name: found[node] for name, node in net.outputs}
        output = next(iter(outputs.values())) if net.is_single else outputs
        return to_arrays((output, {name: found[name] for name in spiking}))

    def both(run: Callable[..., Any], *rest):
        def loss(params: Params, inputs: Signal):
            results = run(params, inputs, *rest)
            return weighted_sum(results[0]), results

        return jit(jax.grad(loss, (0, 1), has_aux=True))(params, inputs)

    expected = both(theirs)
    spikes = jax.tree.leaves(expected[1][1])
    assert all(0 < jnp.mean(own) < 1 for own in spikes)
    for chunk in (None, CHUNKED[name]) if name in CHUNKED else (None,):
        assert_close(both(ours, chunk), expected, of_largest=1e-4)


WIRES: dict[str, tuple[Network, dict[str, tuple[str, ...]]]] = {
    "residual": (
        network(4, [layer(3), residual([layer(3), layer(3)], layer(3), join="either").named("block")]),
        {
            "layer_0/connection": ("input",),
            "layer_0/neuron": ("layer_0/connection",),
            "block/body/layer_0/connection": ("layer_0/neuron",),
            "block/body/layer_0/neuron": ("block/body/layer_0/connection",),
            "block/body/layer_1/connection": ("block/body/layer_0/neuron",),
            "block/body/layer_1/neuron": ("block/body/layer_1/connection",),
            "block/shortcut/connection": ("layer_0/neuron",),
            "block/shortcut/neuron": ("block/shortcut/connection",),
            "block/join": ("block/body/layer_1/neuron", "block/shortcut/neuron"),
        },
    ),
    "parallel": (
        network(4, [parallel(a=dense(2), b=neurons.lif(), c=None), [neurons.lif(), neurons.lif()]]),
        {
            "parallel_0/a": ("input",),
            "parallel_0/b": ("input",),
            "parallel_0/join": ("parallel_0/a", "parallel_0/b", "input"),
            "sequential_0/lif_0": ("parallel_0/join",),
            "sequential_0/lif_1": ("sequential_0/lif_0",),
        },
    ),
    "a name within a container hides the one outside": (
        network(
            4,
            [
                layer(3).named("a"),
                sequential(
                    dense(2).named("a"), dense(2), dense(2).receiving("a"), dense(2).receiving("input")
                ),
                dense(2).receiving("a"),
                dense(2).receiving("sequential_0/a"),
            ],
        ),
        {
            "a/connection": ("input",),
            "a/neuron": ("a/connection",),
            "sequential_0/a": ("a/neuron",),
            "sequential_0/dense_0": ("sequential_0/a",),
            "sequential_0/dense_1": ("sequential_0/a",),
            "sequential_0/dense_2": ("input",),
            "dense_0": ("a/neuron",),
            "dense_1": ("sequential_0/a",),
        },
    ),
    "a network, of which a container is named": (
        network(6, [INNER, dense(2).receiving("network_0/residual_0")]),
        {
            "network_0/layer_0/connection": ("input",),
            "network_0/layer_0/neuron": ("network_0/layer_0/connection",),
            "network_0/residual_0/body/layer_0/connection": ("network_0/layer_0/neuron",),
            "network_0/residual_0/body/layer_0/neuron": ("network_0/residual_0/body/layer_0/connection",),
            "network_0/residual_0/join": (
                "network_0/residual_0/body/layer_0/neuron",
                "network_0/layer_0/neuron",
            ),
            "dense_0": ("network_0/residual_0/join",),
        },
    ),
}


@pytest.mark.parametrize("name", WIRES)
def test_containers_are_wired_and_named(name: str) -> None:
    net, wires = WIRES[name]
    if name == "residual":  # a body of one block is as good as a list of it
        one = network(4, [layer(3), residual(layer(3))])
        assert [node.name for node in one.nodes[2:]] == [
            "residual_0/body/layer_0/connection",
            "residual_0/body/layer_0/neuron",
            "residual_0/join",
        ]
    assert {node.name: node.sources for node in net.nodes} == wires


def test_a_network_in_a_network_has_its_own_parameters_behind_its_name() -> None:
    net, inner = NETS["networks in a network"], INNER
    params, inputs = initial(net), random_spikes(0.4, STEPS, BATCH, 6)
    own = {name.removeprefix("network_0/"): p for name, p in params.items() if name.startswith("network_0/")}
    expected = jit(inner.apply)(own, None, inputs)[0].output
    record = "network_0", "network_0/residual_0", "layer_0"
    out, _ = jit(functools.partial(net.apply, record=record))(params, None, inputs)
    assert out.recorded.keys() == set(record)  # by the names that were asked for
    for name in record[:2]:
        chex.assert_trees_all_close(out.recorded[name], expected, rtol=1e-6, atol=1e-6)


def test_signals_are_recorded_by_the_names_asked_for_outputs_too() -> None:
    net = network({"x": 4}, [layer(3).named("hidden")], spiking_readout(2).named("last"))
    params, inputs = initial(net), random_spikes(0.4, STEPS, BATCH, 4)
    record = "hidden", "hidden/connection", "last", "x"
    out, _ = jit(functools.partial(net.apply, record=record))(params, None, inputs)
    assert set(out.recorded) == set(record)
    chex.assert_trees_all_equal(out.recorded["last"], out.output, strict=True)
    chex.assert_trees_all_equal(out.recorded["x"], inputs, strict=True)
    assert {own.shape[2:] for own in out.recorded.values()} == {(2,), (3,), (4,)}


def test_a_chain_goes_on_into_the_longest_consumer() -> None:
    net = NETS["two readouts and a tap"]
    chain = "first/connection > first/neuron > layer_0/connection > layer_0/neuron > last/connection > last/neuron"
    assert net.paths.splitlines() == [
        f"fused: {chain}",
        "alone: add_0 (it is no part of the fused op)",
        "alone: early/connection (a readout is fused only at the end of a chain)",
        "alone: early/neuron (a readout is fused only at the end of a chain)",
        "fused: late/connection > late/neuron",
    ]


def lists(shape: tuple[int, ...], capacity: int, seed: int) -> SparseSpikes:
    size = int(np.prod(shape))
    return SparseSpikes.from_dense(random_spikes(0.4, 4, BATCH, size, seed), capacity)


@pytest.mark.parametrize("how", ["add", "concatenate", "multiply", "either", "iand"])
@pytest.mark.parametrize("kinds", ["lists", "arrays", "lists and arrays"])
def test_joins_of_lists_are_those_of_arrays(how: str, kinds: str) -> None:
    """Sums and concatenated channels of lists stay lists; what does not fit into one of them is lost in both."""
    shapes = ((3, 2, 2), (3, 2, 1 if how == "concatenate" else 2), (3, 2, 2))[: 2 if how == "iand" else 3]
    given: list[Any] = [
        lists(shape, capacity, seed)
        for seed, (shape, capacity) in enumerate(zip(shapes, (12, 3, 8), strict=False))
    ]
    dense_ones = [own.to_dense().reshape(4, BATCH, *shape) for own, shape in zip(given, shapes, strict=True)]
    signals = {"lists": given, "arrays": dense_ones, "lists and arrays": [given[0], *dense_ones[1:]]}[kinds]
    block = blocks.join(how)
    apply = functools.partial(block.apply, None, None, None, shapes=shapes, context=Context())
    joined = jit(lambda *own: apply(*own).signal)(*signals)
    first, *others = map(np.asarray, dense_ones)
    expected = {
        "add": lambda: sum(others, first),
        "multiply": lambda: np.prod(dense_ones, axis=0),
        "either": lambda: np.max(dense_ones, axis=0),
        "iand": lambda: (1 - first) * others[0],
        "concatenate": lambda: np.concatenate(dense_ones, axis=-1),
    }[how]()
    assert isinstance(joined, SparseSpikes) == (kinds == "lists" and how in ("add", "concatenate"))
    if isinstance(joined, SparseSpikes):
        assert joined.capacity == 12 + 3 + 8
        assert any(np.any(own.num_dropped) for own in given)
        np.testing.assert_array_equal(joined.num_spikes, sum(np.asarray(own.num_spikes) for own in given))
        joined = shaped(joined.to_dense(), block.out_shape(*shapes))
    np.testing.assert_array_equal(joined, expected)


X = jnp.zeros((STEPS, BATCH, 4))
SEVERAL = network({"a": 4, "b": 3}, [layer(2), blocks.join("concatenate").receiving("a", "b")])
AXES = "Time comes first; add a missing batch axis with inputs[:, None]."
REFUSED = {
    "network: `inputs` must each be read by a block, got 'b' that none reads. Give it a block with "
    '.receiving("b"), or leave it out.': lambda: network({"a": 4, "b": 3}, [layer(2)]),
    "join: `iand` must receive two signals, got 3. Join the others before.": lambda: blocks.join(
        "iand"
    ).out_shape((3,), (3,), (3,)),
    "join: `add` must receive signals of one shape, got (5,) and (3,). Give the shortcut "
    "a convolution of the same strides and channels.": lambda: network(4, [layer(3), residual(layer(5))]),
    "join: `concatenate` must receive signals of one image size, got (4, 4, 2) and (2, 2, 2). Give the "
    "shortcut a convolution of the "
    "same strides and channels.": lambda: network(IMAGE, [parallel(a=layer(conv2d(2, 3)), b=sum_pool(2))]),
    "join: `how` must be 'add', 'multiply', 'either', 'iand' or 'concatenate', got 'sum'. "
    "Choose one of these.": lambda: residual(layer(3), join="sum"),
    "parallel: `branches` must be at least two, got 1. Name them, as in a=[...], b=[...].": lambda: parallel(
        a=layer(3)
    ),
    "network: `source` must be the name of an input or an earlier block, got 'last'. Choose input.": lambda: (
        network(4, [layer(3).receiving("last"), layer(3).named("last")])
    ),
    "network: `source` must be the name of an input or an earlier block, got 0. Choose input.": lambda: (
        network(4, [dataclasses.replace(dense(3), source=(0,))])
    ),
    "network: `source` must be the name of an input or an earlier block, got 'b'. "
    "Choose input or a.": lambda: network(4, [dense(3).named("a"), layer(3).receiving("b")]),
    "network: `dense_0` must receive 1 signal, got 'a' and 'b'. Join them with blocks.join(...).": lambda: (
        network({"a": 4, "b": 4}, [dense(3).receiving("a", "b")])
    ),
    "network: `name` must be given once, got 'a' twice. Choose another one.": lambda: network(
        4, [layer(3).named("a"), layer(3).named("a")]
    ),
    "network: `name` must be a word without a slash, got 'a/b'. Choose another.": lambda: network(
        4, [layer(3).named("a/b")]
    ),
    "network: `blocks` must hold networks with one output, got one with 2. Make it "
    "without readouts, and name sources in the outer network.": lambda: network(
        4, [network(4, [layer(3)], {"a": leaky_readout(2), "b": leaky_readout(2)})]
    ),
    "network: `blocks` must hold networks for signals of (5,), got one of (6,). "
    "Make it for the blocks before it.": lambda: network(5, [INNER]),
    "network: `blocks` must hold networks for signals of (5,), got one of (4,) and (3,). "
    "Make it for the blocks before it.": lambda: network(5, [SEVERAL]),
    "network.apply: `inputs` must be a dict of 'a', 'b', got float32[8, 3, 4]. "
    "Pass one array for each.": lambda: SEVERAL.apply(initial(SEVERAL), None, X),
    "network.apply: `inputs` must be a dict of 'a', 'b', got 'a', 'c'. Rename them.": lambda: SEVERAL.apply(
        initial(SEVERAL), None, {"a": X, "c": X}
    ),
    f"network.apply: `inputs` must have shape [time, batch, inputs] = [any, any, 3], got [8, 3, 4]. {AXES}": lambda: (
        SEVERAL.apply(initial(SEVERAL), None, {"a": X, "b": X})
    ),
    "network.apply: `inputs` must have the same time and batch axes, got [(4, 3), (8, 3)]. "
    "Pad them.": lambda: SEVERAL.apply(initial(SEVERAL), None, {"a": X, "b": X[:4, :, :3]}),
}
REFUSED_TOO = {
    "network: `name` must be given once, got 'a' twice. Choose another one.": lambda: network(
        4, [layer(3).named("a")], {"a": leaky_readout(2)}
    ),
}
test_errors_say_what_is_wrong_and_a_hint = refusals(REFUSED, REFUSED_TOO)


def test_a_pool_before_the_readout_is_part_of_the_chain() -> None:
    net = network(IMAGE, [layer(conv2d(2, 3)), sum_pool(2)], leaky_readout(3))
    x = random_spikes(0.4, inputs=int(np.prod(IMAGE)))
    params = initial(net)
    outputs = [net.apply(params, None, x, implementation=each)[0].output for each in (None, "composed")]
    assert "alone" not in net.paths
    assert_close(*outputs, of_largest=1e-5)
