"""`metrics.gradient_share`: by hand, by its definition, by what networks with cutoffs and lists keep."""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from snnjax import (
    axonal,
    blocks,
    conv2d,
    dense,
    layer,
    leaky_readout,
    losses,
    metrics,
    network,
    neurons,
    spike,
    spiking_readout,
    sum_pool,
    surrogates,
)
from snnjax._types import Params, Signal, State
from snnjax.blocks.linear import LinearParams
from snnjax.graph.containers import Node
from snnjax.graph.layers import layers_of
from snnjax.graph.network import checked_call
from snnjax.metrics.gradient_share import in_full, spike_gradients
from tests.graph.helpers import INPUTS, initial, random_spikes
from tests.ops.common import jit

LABELS = jnp.array([0, 2, 1])
LENGTHS = jnp.array([6, 4, 0], jnp.int32)
BANDS = jnp.array([0.1, 0.3, 1.0, jnp.inf])


@functools.cache
def compiled(net, **options):
    return jit(functools.partial(metrics.gradient_share, net, **options))


def tiny(*arguments, **options) -> jax.Array:
    """A loss whose gradients are far within the range of float32, but not their squares."""
    return 1e-25 * losses.cross_entropy_sum(*arguments, **options)


def test_two_neurons_by_hand() -> None:
    neuron = neurons.lif(0.5, normalize=False, surrogate="triangle")
    net = network(1, [layer(dense(2, bias=False), neuron)], leaky_readout(2))
    params = initial(net)
    hidden, readout = "layer_0/connection", "readout/connection"
    last = params[readout]._replace(weights=jnp.array([[1.0, 0.0], [1.0, 0.0]]))
    params |= {hidden: LinearParams(jnp.array([[1.25, 0.5]])), readout: last}
    measure = compiled(net, loss=losses.cross_entropy_sum, keep=0.5)
    batch = jnp.ones((1, 1, 1)), jnp.array([1])
    bands, seconds = jnp.array([0.6, 0.2, 0.3]), jnp.array([0.25, 0.9, 0.5])
    found = measure(params, *batch, bands=bands, second_thresholds=seconds)
    # At distances of 0.25 and -0.5 the triangle is 0.75 and 0.5; its squares are 9 and 4 sixteenths.
    np.testing.assert_allclose(found.neurons_within, [[1, 0, 0.5]])
    np.testing.assert_allclose(found.gradient_within, [[1, 0, 9 / 13]], rtol=1e-6)
    np.testing.assert_allclose(found.cutoffs, [[0.4, 0.8, 0.7]], rtol=1e-6)
    np.testing.assert_allclose(found.neurons_above, [[1, 0.5, 0.5]])
    np.testing.assert_allclose(found.gradient_above, [[1, 9 / 13, 9 / 13]], rtol=1e-6)
    assert found.capacities.tolist() == [[2, 1, 1]]
    chosen = float(found.cutoff[0]), float(found.second_threshold[0]), int(found.capacity[0])
    np.testing.assert_allclose(chosen, [0.7, 0.9, 1], rtol=1e-6)
    # No band reaches a neuron, and no list the gradient of a silent one: nothing can be left out.
    params |= {hidden: LinearParams(jnp.array([[0.5, 0.5]]))}
    found = measure(params, *batch, bands=bands / 6, second_thresholds=seconds / 3 + 0.6)
    assert not np.any(found.gradient_within) and not np.any(found.gradient_above)
    assert (found.cutoff.tolist(), found.second_threshold.tolist()) == ([0], [-np.inf])
    assert (found.capacity.tolist(), found.capacities.tolist()) == ([2], [[0, 0, 0]])
    # No gradient at all.
    params |= {readout: last._replace(weights=jnp.zeros((2, 2)))}
    assert not np.any(measure(params, *batch, bands=bands, second_thresholds=seconds).gradient_within)


def constants_of(node, params: Params):
    """The constants of the neurons of a node that are no numbers."""
    return node.block.neuron_params(params.get(node.name), None, (1,))


def by_definition(net, params: Params, inputs: Signal, lengths, state: State):
    """The distances and gradients of each layer by name, ``[time, batch, neurons]``, by a loop over the steps."""
    *hidden, last = layers_of("by_definition", net)
    zeros = {own.neuron.name: jnp.zeros((*inputs.shape[:2], *own.out_shape)) for own in hidden}

    def cost(offsets) -> tuple[jax.Array, Any]:
        x, distances = inputs, {}
        for own in hidden:
            name, (weights, bias) = own.neuron.name, params[own.connection.name]
            model, constants = own.neuron.block.neuron, constants_of(own.neuron, params)
            neuron_state, before, spikes, found = state[name], None, [], []
            if own.returning:
                late, recurrent = own.returning
                before = state[late.name].sent[0]
            for now, away in zip(x, offsets[name], strict=True):
                current = now @ weights + bias[None]
                current = current if before is None else current + before @ params[recurrent.name].weights
                membrane, threshold, after = model.advance(constants, neuron_state, current)
                found.append(membrane - jnp.broadcast_to(threshold, membrane.shape))
                spikes.append(spike(found[-1] + away, model.surrogate))
                neuron_state = model.finish(after, spikes[-1])
                before = None if before is None else spikes[-1]
            x, distances[name] = jnp.stack(spikes), jnp.stack(found)
        (weights, bias), outputs, v = params[last.connection.name], [], state[last.neuron.name]
        constants = constants_of(last.neuron, params)
        for now in x:
            current = now @ weights + bias[None]
            v, output = last.neuron.block.neuron.step(constants, v, current)
            outputs.append(output)
        return losses.cross_entropy_sum(jnp.stack(outputs), LABELS, lengths=lengths), distances

    gradients, distances = jit(jax.grad(cost, has_aux=True))(zeros)
    return distances, gradients


DEFINED = {
    "recurrent and adaptive": [
        layer(9, neurons.lif(0.7), recurrent=True),
        layer(7, neurons.adaptive_lif(0.7, adaptation_decay=0.5, surrogate="triangle")),
    ],
    "own reset": [
        layer(9, neurons.refractory(neurons.lif(0.7), steps=2)),
        layer(7, neurons.izhikevich(detach_reset=False)),
    ],
}


@pytest.mark.parametrize("kind", DEFINED)
def test_shares_are_those_of_the_definition(kind: str) -> None:
    net = network(INPUTS, DEFINED[kind], leaky_readout(3))
    inputs = random_spikes(0.5, 10)
    params = initial(net, inputs, target_activity=0.2)
    _, state = jit(net.apply)(params, None, inputs[:4])
    names = ["layer_0/neuron", "layer_1/neuron"]
    models = [node.block.neuron for node in net.nodes if node.name in names]
    resting = [
        np.asarray(node.block.neuron.threshold(constants_of(node, params)))
        for node in net.nodes
        if node.name in names
    ]
    seconds = jnp.array([0.9, 0.5, -100.0, -jnp.inf])
    measure, options = compiled(net, loss=tiny), {"lengths": LENGTHS, "state": state}
    found = measure(params, inputs[4:], LABELS, bands=BANDS, second_thresholds=seconds, **options)
    distances, gradients = by_definition(net, params, inputs[4:], LENGTHS, state)
    inside = np.arange(6)[:, None] < np.asarray(LENGTHS)
    for index, name in enumerate(names):
        x, squares = np.asarray(distances[name])[inside], np.asarray(gradients[name], np.float64)[inside] ** 2
        squares = np.where(np.isinf(x), 0, squares)
        within = [np.abs(x) < band for band in np.asarray(BANDS)]
        above = [(x > second - resting[index]) | (x > 0) for second in np.asarray(seconds)]
        for masks, listed, kept in (
            (within, found.neurons_within, found.gradient_within),
            (above, found.neurons_above, found.gradient_above),
        ):
            np.testing.assert_allclose(listed[index], [np.mean(mask) for mask in masks], rtol=1e-6)
            shares = [np.sum(squares[mask]) / np.sum(squares) for mask in masks]
            # Gradients of float32, whose sums were in another order.
            np.testing.assert_allclose(kept[index], shares, rtol=1e-4, atol=1e-6)
        assert found.capacities[index].tolist() == [np.max(np.sum(mask, -1)) for mask in above]
        if models[index].surrogate.name == "triangle":  # it ends at 1
            assert found.gradient_within[index].tolist()[2:] == [1, 1]
            assert found.cutoffs[index].tolist()[2:] == [0, 0]


# No reset: the threshold then only enters through the distance of the spikes.
FREE, EACH = (neurons.lif(0.7, reset="none", learn_threshold=True, per=per) for per in ("channel", "neuron"))
PATHS = {
    "convolution": network(
        (6, 6, 1),
        [layer(conv2d(2, 3), EACH), sum_pool(2), layer(5, FREE)],
        leaky_readout(3),
    ),
    "delays": network(
        36,
        [
            layer([axonal(3), dense(8)], FREE, recurrent=[axonal(3), dense(8, bias=False)]),
            layer([axonal(2), dense(6)], FREE),
        ],
        spiking_readout(3, FREE),
    ),
}


@pytest.mark.parametrize("kind", PATHS)
def test_gradients_add_up_to_those_of_the_thresholds(kind: str) -> None:
    net, inputs = PATHS[kind], random_spikes(0.4, 8, inputs=36)
    lengths = jnp.array([8, 5, 0], jnp.int32)
    params = initial(net, inputs, target_activity=0.2)

    def cost(params: Params) -> jax.Array:
        output, _ = net.apply(params, None, inputs, lengths=lengths)
        return losses.cross_entropy_sum(output.output, LABELS, lengths=lengths)

    def measured(params: Params):
        arguments = checked_call(net, params, None, None, inputs, lengths)
        return spike_gradients(net, *arguments, losses.cross_entropy_sum, LABELS)

    by_threshold = jit(jax.grad(cost))(params)
    for name, (_, gradients) in jit(measured)(params).items():
        total = -np.asarray(by_threshold[name].threshold)
        assert np.any(total)
        # The kernels add in another order.
        np.testing.assert_allclose(np.sum(gradients, (0, 1)), total, rtol=1e-4, atol=1e-5)


def test_shares_are_what_networks_with_these_settings_keep() -> None:
    """In a single step of one sequence the gradient of the biases is that of the membranes."""
    inputs = 6 * random_spikes(0.5, 1, 1)

    def build(cutoff: float = 0.0, **options):
        neuron = neurons.lif(surrogate=surrogates.superspike(25.0, cutoff=cutoff))
        return network(INPUTS, [layer(64, neuron, **options)], leaky_readout(3))

    def squared_norm(net):
        def cost(params: Params) -> jax.Array:
            output, _ = net.apply(params, None, inputs)
            return losses.cross_entropy_sum(output.output, LABELS[:1])

        bias = jit(jax.grad(cost))(params)["layer_0/connection"].bias
        return np.sum(np.asarray(bias, np.float64) ** 2)

    params = initial(build(), random_spikes(0.5))
    candidates = {"bands": jnp.array([0.2]), "second_thresholds": jnp.array([0.8])}
    measure = compiled(build(), loss=losses.cross_entropy_sum)
    found = measure(params, inputs, LABELS[:1], **candidates)
    full, slots = squared_norm(build()), int(found.capacities[0, 0])
    cut = squared_norm(build(float(found.cutoffs[0, 0])))
    listed = squared_norm(build(capacity=slots, second_threshold=0.8))
    assert full > cut > 0 and full > listed > 0 and 0 < slots < 64
    np.testing.assert_allclose(cut / full, found.gradient_within[0, 0], rtol=1e-5)
    np.testing.assert_allclose(listed / full, found.gradient_above[0, 0], rtol=1e-5)


@pytest.mark.parametrize("kind", [neurons.lif, neurons.adlif, "refractory"])
def test_cutoff_and_capacity_are_left_out(kind) -> None:
    surrogate = surrogates.gaussian(cutoff=0.9)
    if kind == "refractory":
        neuron = neurons.refractory(neurons.lif(surrogate=surrogate), steps=1)
    else:
        neuron = kind(surrogate=surrogate)
    node = Node("neuron", blocks.spiking(neuron, capacity=2), ())
    full = in_full(node).block
    assert full.capacity is None
    assert full.neuron.surrogate == surrogates.gaussian()
    assert full.neuron.inner_surrogate in (None, surrogates.gaussian())
    if kind != "refractory":  # whose own functions hold the cutoff, but take no derivative of spikes
        assert full.neuron.fused == neuron.glif
    assert in_full(node._replace(block=full)).block == full


ADLIF = neurons.adlif(surrogate=surrogates.superspike(cutoff=0.1))
NET = network(INPUTS, [layer(4, neurons.refractory(ADLIF, steps=1))], leaky_readout(3))


@pytest.mark.parametrize(
    "options, message",
    [
        (
            {},
            "`layer_0/neuron` must have a surrogate without cutoff, got refractory adlif. Make "
            "one without it: the same parameters fit.",
        ),
        (
            {"bands": 0.5},
            "`bands` must be a list of numbers, got 0.5. Pass a list such as [0.5, 0.2, 0.1].",
        ),
        (
            {"second_thresholds": []},
            "`second_thresholds` must be a list of numbers, got []. Pass a list such as [0.5, 0.2, 0.1].",
        ),
        (
            {"bands": [0.5, 0.0]},
            "`bands` must be distances above 0, got [0.5, 0.0]. Try [0.1], a tenth of a threshold of 1.",
        ),
        ({"keep": 99}, "`keep` must be a number in (0, 1], got 99. Try 0.99."),
        ({"loss": "mean"}, "`loss` must be a function, got 'mean'. Pass one of snnjax.losses."),
    ],
)
def test_what_cannot_be_measured_is_refused(options, message: str) -> None:
    options = {"loss": losses.cross_entropy_sum} | options
    with pytest.raises(ValueError) as error:
        metrics.gradient_share(NET, None, random_spikes(0.5), LABELS, **options)  # before anything runs
    assert str(error.value) == f"gradient_share: {message}"
