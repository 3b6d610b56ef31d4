"""Every neuron model in a network, under every transform; and networks as a user writes them."""

import functools
from collections.abc import Callable
from typing import Any

import chex
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from jax.sharding import AxisType, NamedSharding, PartitionSpec

import snnjax
from snnjax import Network, axonal, dense, layer, leaky_readout, network, neurons
from snnjax._types import Params, Signal, State
from tests.graph.helpers import BATCH, INPUTS, STEPS, initial, random_spikes, with_gradients
from tests.neurons.models import MODELS
from tests.numbers import assert_close
from tests.ops.common import is_float, jit, pick, stack

SPIKING = [name for name in MODELS if MODELS[name].spikes]
PIECES = 2


@functools.cache
def build(name: str) -> Network:
    model = MODELS[name]
    hidden = layer(8, model.build(**model.learn), capacity=4, recurrent=True)
    return network(INPUTS, [hidden], leaky_readout(3, learn_decay=True))


@functools.cache
def compiled(name: str) -> Callable[..., Any]:
    """Values and gradients, compiled once for all tests; the second threshold is an argument."""
    return jit(with_gradients(build(name).apply))


@functools.cache
def arguments(name: str, seed: int = 0) -> tuple[Any, Any, Any]:
    net = build(name)
    first = 5 if name == "izhikevich" else 0  # of other draws they double roundings in every step
    params = (
        jit(net.init)(jax.random.key(first))
        if seed == 0
        else jax.tree.map(lambda leaf: leaf * (1 + 0.01 * seed), arguments(name)[0])
    )
    return params, net.initial_state(params, BATCH), random_spikes(0.4, seed=seed)


@pytest.mark.parametrize("name", SPIKING)
def test_gradients_reach_every_parameter(name: str) -> None:
    (output, _), (_, gradients) = compiled(name)(*arguments(name), second_threshold=jnp.float32(0.3))
    assert 0.02 < float(jnp.mean(output.activity["layer_0/neuron"])) < 0.7
    chex.assert_tree_all_finite(gradients)
    for path, leaf in jax.tree.leaves_with_path(gradients[0]):
        assert np.any(leaf), jax.tree_util.keystr(path)


@pytest.mark.parametrize("name", SPIKING)
def test_second_threshold_moves_without_a_second_trace(name: str) -> None:
    chex.clear_trace_counter()
    traced = jit(chex.assert_max_traces(with_gradients(build(name).apply), n=1))
    for second_threshold in (0.3, 0.7):
        traced.trace(*arguments(name), second_threshold=jnp.float32(second_threshold))


@pytest.mark.parametrize("name", SPIKING)
def test_hidden_layers_learn_a_task_that_the_readout_alone_does_not(name: str) -> None:
    """Which half of the inputs fires? Only the hidden weights move, so the gradient must come through the spikes."""
    samples, labels = 32, jnp.arange(32, dtype=jnp.int32) % 2
    halves = jnp.arange(INPUTS)[None, None, :] // (INPUTS // 2) == labels[None, :, None]
    draws = (random_spikes(0.5, batch=samples, seed=seed) for seed in (0, 1))
    trained_on, tested_on = (jnp.where(halves, spikes, 0) for spikes in draws)
    # Half of the neurons vote for each class, and all of them start alike: at chance.
    net = network(INPUTS, [layer(8, MODELS[name].build(), capacity=4)], leaky_readout(2))
    params, stats = initial(net, trained_on, target_activity=0.1), net.initial_stats(jax.random.key(0))
    hidden, last = params["layer_0/connection"], params["readout/connection"]
    vote = jnp.where(jnp.arange(8)[:, None] % 2 == jnp.arange(2)[None, :], 1.0, -1.0)
    start = jnp.broadcast_to(jnp.mean(jnp.abs(hidden.weights)), hidden.weights.shape)
    optimizer = optax.adam(0.05)

    def logits(factors, inputs: Signal):
        own = {"layer_0/connection": hidden._replace(weights=start * factors)}
        own["readout/connection"] = last._replace(weights=vote)
        output, _ = net.apply(params | own, None, inputs, stats=stats)
        return jnp.sum(output.output, axis=0)

    def loss(factors):
        return jnp.mean(optax.softmax_cross_entropy_with_integer_labels(logits(factors, trained_on), labels))

    def accuracies():
        def step(carry, _: None):
            factors, memory = carry
            with jax.numpy_dtype_promotion("standard"):  # optax takes powers of Python floats by int32 counts
                updates, memory = optimizer.update(jax.grad(loss)(factors), memory)
            return (optax.apply_updates(factors, updates), memory), None

        first = jnp.ones_like(start)
        (trained, _), _ = jax.lax.scan(step, (first, optimizer.init(first)), length=30)
        right = [jnp.argmax(logits(factors, tested_on), axis=-1) == labels for factors in (first, trained)]
        return [jnp.mean(each, dtype=jnp.float32) for each in right]

    untrained, trained = jit(accuracies)()
    assert untrained <= 0.6 and trained >= 0.95, (untrained, trained)


@pytest.mark.parametrize("name", ["lif", "adlif", "izhikevich"])  # fused, with two states, and scanned
def test_vmap_of_a_checkpointed_scan_over_pieces_equals_a_loop_of_whole_runs(name: str) -> None:
    """An ensemble of parameters, each run in pieces that carry their state: values and gradients."""
    net = build(name)

    @jax.checkpoint
    def piece(params: Params, state: State, inputs: Signal):
        return net.apply(params, state, inputs, second_threshold=jnp.float32(0.3))

    def in_pieces(params: Params, state: State, inputs: Signal):
        def step(state: State, inputs: Signal) -> tuple[Any, Any]:
            output, state = piece(params, state, inputs)
            return state, output

        pieces = inputs.reshape(PIECES, STEPS // PIECES, *inputs.shape[1:])
        state, outputs = jax.lax.scan(step, state, pieces)
        whole = outputs._replace(
            output=outputs.output.reshape(STEPS, *outputs.output.shape[2:]),
            activity=jax.tree.map(lambda each: jnp.mean(each, axis=0), outputs.activity),
            dropped=jax.tree.map(lambda each: jnp.sum(each, axis=0, dtype=each.dtype), outputs.dropped),
        )
        return whole, state

    members = [arguments(name, seed) for seed in range(2)]
    results = jit(jax.vmap(with_gradients(in_pieces)))(*stack(members))
    for index, member in enumerate(members):
        expected, nudged = (
            compiled(name)(*each, second_threshold=jnp.float32(0.3)) for each in (member, nudge(member))
        )
        # Another program rounds elsewhere: a few times as much as one rounding of the parameters changes.
        of_largest = max(2e-5, 4 * largest_difference(nudged, expected))
        # The tolerance must stay small. Izhikevich neurons reach 2.2e-3 with JAX 0.12.
        assert of_largest < (5e-3 if name == "izhikevich" else 2e-3)
        assert_close(pick(results, index), expected, rtol=1e-4, of_largest=of_largest)


def nudge(member):
    """The arguments with every parameter moved by a last bit."""
    params, *others = member
    return jax.tree.map(lambda leaf: leaf * jnp.asarray(1 + 2**-23, leaf.dtype), params), *others


def largest_difference(actual, expected) -> float:
    """Between two trees, relative to the largest entry of each array, or to 1 where that is smaller."""
    each = zip(jax.tree.leaves(actual), jax.tree.leaves(expected), strict=True)
    return max(
        float(np.max(np.abs(a - b), initial=0) / np.max(np.abs(b), initial=1)) for a, b in each if is_float(b)
    )


def test_a_classifier_in_a_few_lines_learns() -> None:
    inputs, labels = (random_spikes(0.15, batch=16, inputs=20) > 0), jnp.arange(16, dtype=jnp.int32) % 2
    inputs = (inputs & (jnp.arange(20)[None, None, :] // 10 == labels[None, :, None])).astype(jnp.float32)

    net = snnjax.network(20, [snnjax.layer(16, capacity=8)], snnjax.leaky_readout(2))
    params = net.init(jax.random.key(0))
    optimizer = optax.adam(1e-2)
    memory = optimizer.init(params)

    def loss(params: Params):
        output, _ = net.apply(params, net.initial_state(params, 16), inputs)
        logits = jnp.sum(output.output, axis=0)
        return jnp.mean(optax.softmax_cross_entropy_with_integer_labels(logits, labels)), logits

    @jax.jit
    def step(params: Params, memory):
        (_, logits), gradients = jax.value_and_grad(loss, has_aux=True)(params)
        with jax.numpy_dtype_promotion("standard"):
            updates, memory = optimizer.update(gradients, memory)
        return optax.apply_updates(params, updates), memory, logits

    for _ in range(40):
        params, memory, logits = step(params, memory)
    np.testing.assert_array_equal(jnp.argmax(logits, axis=-1), labels)


@pytest.mark.parametrize("neuron", [snnjax.neurons.lif(), snnjax.neurons.adlif()], ids=["fused", "layers"])
def test_bfloat16_parameters_keep_their_dtype(neuron) -> None:
    """So do the results; what is carried is float32."""
    net = network(INPUTS, [layer(8, neuron, capacity=4, recurrent=True)], leaky_readout(3))
    params = initial(net, dtype=jnp.bfloat16)
    assert {leaf.dtype for leaf in jax.tree.leaves(params)} == {jnp.dtype(jnp.bfloat16)}
    state, name = net.initial_state(params, BATCH), "layer_0/neuron"
    output, end = jit(functools.partial(net.apply, record="spikes"))(params, state, random_spikes(0.4))
    assert {leaf.dtype for leaf in jax.tree.leaves(end)} == {jnp.dtype(jnp.float32)}
    assert (output.output.dtype, output.recorded[name].values.dtype) == (jnp.bfloat16, jnp.bfloat16)
    assert (output.activity[name].dtype, output.dropped[name].dtype) == (jnp.float32, jnp.int32)
    chex.assert_tree_all_finite(output.output)


@pytest.mark.parametrize("name", ["lif", "izhikevich"])  # fused, and scanned
def test_a_batch_over_explicit_axes_of_a_mesh_is_gathered(name: str) -> None:
    net, (params, state, inputs) = build(name), arguments(name)
    mesh = jax.make_mesh((BATCH,), ("data",), (AxisType.Explicit,), devices=jax.devices()[:BATCH])
    lengths = jnp.arange(BATCH) + STEPS - BATCH
    whole, rows = (NamedSharding(mesh, PartitionSpec(*axes)) for axes in ((), ("data",)))
    columns = NamedSharding(mesh, PartitionSpec(None, "data"))
    of_state = jax.tree.map(lambda leaf: columns if leaf.ndim == 3 else rows, state)  # late spikes have steps
    sharded = jax.device_put((params, state, inputs, lengths), (whole, of_state, columns, rows))

    def apply(params: Params, state: State, inputs: Signal, lengths):
        return net.apply(params, state, inputs, lengths=lengths)

    chex.assert_trees_all_equal(jit(apply)(*sharded), jit(apply)(params, state, inputs, lengths), strict=True)


@pytest.mark.parametrize(
    "first",
    [
        layer(7, neurons.izhikevich(), capacity=2),
        layer([axonal(3), dense(7)], capacity=2, recurrent=[axonal(3), dense(7)]),
    ],
    ids=["izhikevich", "recurrent delays"],
)
def test_lists_of_a_scanned_layer_have_gradients_in_a_fused_one(first) -> None:
    net = network(5, [first, layer(4)], leaky_readout(3))
    assert net.paths.splitlines()[-1].startswith("fused: layer_1/connection")
    params, inputs = initial(net), random_spikes(0.4, steps=6, batch=3, inputs=5)

    def gradient(implementation: str | None):
        def loss(params: Params):
            return jnp.sum(net.apply(params, None, inputs, implementation=implementation)[0].output ** 2)

        return jit(jax.grad(loss))(params)

    expected = gradient("composed")
    for implementation in (None, "reference"):
        assert_close(gradient(implementation), expected, of_largest=1e-5)


def test_network_prints_a_line_for_each_block() -> None:
    body = layer(snnjax.conv2d(3, 3, bias=False), neurons.izhikevich()).named("body")
    net = network((4, 5, 2), [snnjax.residual(body, snnjax.conv2d(3, 1))], leaky_readout(1000))
    lines = [" ".join(line.split()) for line in repr(net).splitlines()]
    assert lines == [
        "input (4, 5, 2)",
        "residual_0/body/body/connection conv2d (4, 5, 3) 54 alone",
        "residual_0/body/body/neuron izhikevich (4, 5, 3) alone",
        "residual_0/shortcut conv2d (4, 5, 3) 9 alone",
        "residual_0/join add (4, 5, 3) alone",
        "readout/connection dense (1000,) 61,000 alone",
        "readout/neuron leaky_integrator (1000,) alone",
    ]
