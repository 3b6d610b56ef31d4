"""Online rules against back-propagation through time where they are exact; their memory, lists and messages."""

import functools
from typing import Any

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.typing import DTypeLike

from snnjax import conv1d, layer, leaky_readout, losses, network, neurons, online, spiking_readout
from snnjax._types import Params, Signal
from snnjax.blocks.linear import LinearParams
from tests.numbers import array
from tests.ops.common import jit

STEPS, BATCH, INPUTS, OUTPUTS = 12, 3, 6, 2
LEARNED: Any = {"learn_threshold": True}
MEMORYLESS = 1e-9  # the decay of a readout that forgets at once, up to rounding
RULES = {
    "e-prop": (online.eprop, [layer(5, neurons.adlif(**LEARNED))], leaky_readout(OUTPUTS)),
    "e-prop on lists": (
        online.eprop,
        [layer(5, neurons.lif(0.8, learn_decay=True), capacity=2)],
        leaky_readout(OUTPUTS),
    ),
    "ostl": (
        online.ostl,
        [layer(5, neurons.lif(0.8, learn_decay=True, detach_reset=False))],
        leaky_readout(OUTPUTS, decay=MEMORYLESS),
    ),
    "ottt": (online.ottt, [layer(5, neurons.lif(0.8))], leaky_readout(OUTPUTS, decay=MEMORYLESS)),
    "truncated": (
        lambda net, loss: online.truncated(net, loss, STEPS),
        [layer(5, neurons.adlif(), recurrent=True, capacity=3), layer(4, neurons.lif(0.5))],
        leaky_readout(OUTPUTS, learn_decay=True),
    ),
}

RULES_OF_TRACES = [name for name in RULES if name != "truncated"]


def squared(output, targets):
    return jnp.mean((output - targets) ** 2)


def stream(dtype: DTypeLike = jnp.float32) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    inputs = 3.0 * (rng.random((STEPS, BATCH, INPUTS)) < 0.5)
    return jnp.asarray(inputs, dtype), array(rng.random((STEPS, BATCH, OUTPUTS)), dtype)


def summed(learner: online.Learner, params: Params, inputs: Signal, targets) -> tuple[Any, Any, Any]:
    """The last carry, the sum of the gradients of all steps, and the outputs."""

    def step(carry, xs) -> tuple[Any, Any]:
        carry, gradients, output = learner.step(params, carry, *xs)
        return carry, (gradients, output)

    start = learner.init(params, BATCH)
    carry, (gradients, outputs) = jax.lax.scan(step, start, (inputs, targets))
    return carry, jax.tree.map(lambda each: jnp.sum(each, axis=0), gradients), outputs


def weights_alone(params: Params):
    """Those of connections, recurrent ones included."""
    return {name: own for name, own in params.items() if isinstance(own, LinearParams)}


@pytest.mark.parametrize("name", RULES)
def test_rule_equals_back_propagation_through_time(name: str) -> None:
    """In float64, up to rounding: sums of a few hundred terms of order 1; a decay of 1e-9 is not 0."""
    make, layers, readout = RULES[name]
    net = network(INPUTS, layers, readout)
    with jax.enable_x64(True):
        inputs, targets = stream(jnp.float64)
        params = net.init(jax.random.key(0), dtype=jnp.float64)

        def loss(params: Params) -> tuple[Any, Any]:
            output = net.apply(params, None, inputs)[0]
            terms = [squared(*each) for each in zip(output.output, targets, strict=True)]
            return sum(terms), (output.output, output.activity)

        expected, (outputs, activity) = jit(jax.grad(loss, has_aux=True))(params)
        _, gradients, online_outputs = jit(lambda p: summed(make(net, squared), p, inputs, targets))(params)
        results = jax.tree.map(
            np.asarray, (gradients, expected, online_outputs, outputs, activity["layer_0/neuron"])
        )
    gradients, expected, online_outputs, outputs, activity = results
    assert 0.05 < np.mean(activity) < 0.6
    assert np.any(gradients["layer_0/connection"].weights)
    chex.assert_trees_all_close(online_outputs, outputs, rtol=1e-12, atol=1e-12, strict=True)
    if name == "ottt":  # which has no gradient of neurons
        gradients, expected = weights_alone(gradients), weights_alone(expected)
    chex.assert_trees_all_close(gradients, expected, rtol=1e-8, atol=1e-8, strict=True)


def penalty(rates, targets):
    """Of neurons below and above bounds, and of the population; the targets scale it, so they must arrive."""
    above = losses.activity_upper_bound(rates, 0.2, over="neurons") + losses.activity_upper_bound(rates, 0.1)
    return (above + losses.activity_lower_bound(rates, 0.3)) * jnp.sum(targets)


def pull_of(rates, targets):
    return jax.lax.stop_gradient(jax.grad(lambda each: penalty((each,), targets))(rates))


@pytest.mark.parametrize("name", RULES_OF_TRACES)
def test_penalty_equals_back_propagation_from_spikes_weighted_by_its_derivative(name: str) -> None:
    """Of ``sum_t <dpenalty/drates at the estimate of step t, held fixed; spikes_t>``, besides the loss.

    The estimate is computed anew here, from the activity of single steps. Tolerance: see above.
    """
    make, layers, readout = RULES[name]
    net, window = network(INPUTS, layers, readout), 5  # shorter than the stream
    with jax.enable_x64(True):
        inputs, targets = stream(jnp.float64)
        params = net.init(jax.random.key(0), dtype=jnp.float64)

        def objective(params: Params) -> tuple[Any, Any]:
            def step(carry, xs):
                state, rates, number = carry
                x, target = xs
                output, state = net.apply(params, state, x[None])
                spikes = output.activity["layer_0/neuron"]
                rates = rates + (spikes - rates) / jnp.minimum(number + 1, window)
                pulled = jnp.sum(pull_of(rates, target) * spikes)
                return (state, rates, number + 1), squared(output.output[0], target) + pulled

            start = net.initial_state(params, BATCH), jnp.zeros((BATCH, 5)), 0.0
            (_, rates, _), terms = jax.lax.scan(step, start, (inputs, targets))
            return jnp.sum(terms), rates

        expected, rates = jit(jax.grad(objective, has_aux=True))(params)
        learner = make(net, squared, penalty=penalty, rate_window=window)
        carry, gradients, _ = jit(lambda p: summed(learner, p, inputs, targets))(params)
        _, plain, _ = jit(lambda p: summed(make(net, squared), p, inputs, targets))(params)
        results = jax.tree.map(np.asarray, (gradients, expected, plain, carry.rates, rates))
    gradients, expected, plain, estimated, rates = results
    if name == "ottt":
        gradients, expected = weights_alone(gradients), weights_alone(expected)
        plain = weights_alone(plain)
    chex.assert_trees_all_close(gradients, expected, rtol=1e-8, atol=1e-8, strict=True)
    chex.assert_trees_all_close(estimated.means["layer_0/neuron"], rates, rtol=1e-12, atol=1e-12, strict=True)
    assert int(estimated.steps) == window
    assert (
        max(np.abs(a - b).max() for a, b in zip(*map(jax.tree.leaves, (gradients, plain)), strict=True)) > 1
    )


@pytest.mark.parametrize("name", RULES_OF_TRACES)
def test_penalty_is_exact_if_the_estimates_are_the_rates(name: str) -> None:
    """The mean gradient is then that of the penalty on the activity of the whole sequence, as in `TrainConfig`.

    The carry starts with these rates, and so many steps that 12 more change them by parts in 1e8.
    """
    make, layers, readout = RULES[name]
    net = network(INPUTS, layers, readout)
    many = 2**30
    with jax.enable_x64(True):
        inputs, targets = stream(jnp.float64)
        params, targets = net.init(jax.random.key(0), dtype=jnp.float64), jnp.ones_like(targets)

        def whole(params: Params) -> tuple[Any, Any]:
            activity = net.apply(params, None, inputs)[0].activity
            return penalty(activity, targets[0]), activity

        expected, activity = jit(jax.grad(whole, has_aux=True))(params)
        learner = make(net, lambda *_: 0.0, penalty=penalty, rate_window=many)

        def init(params: Params, batch: int):
            carry = learner.init(params, batch)
            return carry._replace(rates=carry.rates._replace(means=activity, steps=jnp.int32(many)))

        known = online.Learner(init, learner.step)
        _, gradients, _ = jit(lambda p: summed(known, p, inputs, targets))(params)
        gradients, expected = jax.tree.map(np.asarray, (gradients, expected))
    gradients = jax.tree.map(lambda each: each / STEPS, gradients)
    if name == "ottt":
        gradients, expected = weights_alone(gradients), weights_alone(expected)
    chex.assert_trees_all_close(gradients, expected, rtol=1e-6, atol=1e-6, strict=True)
    largest = max(np.abs(leaf).max() for leaf in jax.tree.leaves(expected))
    assert largest > 0.1


def test_only_a_penalty_keeps_rates() -> None:
    net = network(INPUTS, [layer(5), layer(4)], leaky_readout(OUTPUTS))
    params = net.init(jax.random.key(0))
    assert online.eprop(net, squared).init(params, BATCH).rates is None
    rates = online.eprop(net, squared, penalty=penalty).init(params, BATCH).rates
    assert [each.shape for each in rates.means.values()] == [(BATCH, 5), (BATCH, 4)]


def test_recurrent_layers_learn_by_random_feedback() -> None:
    """Gradient descent on one sequence halves the loss, and only changes parameters that feedback reaches."""
    net = network(INPUTS, [layer(8, neurons.adlif(), recurrent=True)], leaky_readout(OUTPUTS, decay=0.5))
    inputs, targets = stream()
    feedback = online.random_feedback(jax.random.key(1), net)
    learner = online.eprop(net, squared, feedback=feedback)

    def descend(params: Params, _) -> tuple[Any, Any]:
        _, gradients, outputs = summed(learner, params, inputs, targets)
        return jax.tree.map(lambda p, g: p - 0.01 * g, params, gradients), squared(outputs, targets)

    start = net.init(jax.random.key(0))
    end, curve = jit(lambda p: jax.lax.scan(descend, p, length=40))(start)
    assert float(curve[-1]) < 0.5 * float(curve[0])
    assert bool(jnp.any(end["layer_0/recurrent"].weights != start["layer_0/recurrent"].weights))


def test_a_window_that_is_full_moves_on() -> None:
    """The outputs of all steps are those of the whole sequence, whatever the window."""
    net = network(INPUTS, [layer(5, neurons.lif(0.8), recurrent=True)], leaky_readout(OUTPUTS))
    inputs, targets = stream()
    params = net.init(jax.random.key(0))
    learner = online.truncated(net, squared, window=3)
    carry, _, outputs = jit(lambda p: summed(learner, p, inputs, targets))(params)
    chex.assert_trees_all_close(
        outputs, net.apply(params, None, inputs)[0].output, rtol=1e-6, atol=1e-6, strict=True
    )
    assert int(carry.steps) == 3
    chex.assert_trees_all_equal(carry.inputs, inputs[-3:], strict=True)


# Of as many sequences as inputs: one number a sequence would be broadcast to all inputs.
WRONG_INPUTS = (
    "online: `inputs` must have shape [batch, inputs] = [any, 6], got [6, 1]. Pass those of one step, over"
)
LAST_STEPS = functools.partial(online.truncated, window=2)


def one_step(rule) -> None:
    net = network(6, [layer(5)], spiking_readout(2))
    params, learner = net.init(jax.random.key(0)), rule(net, squared)
    learner.step(params, learner.init(params, 6), jnp.ones((6, 1)), jnp.zeros((6, 2)))


@pytest.mark.parametrize(
    "make, message",
    [
        (
            lambda: online.eprop(network((6, 1), [layer(conv1d(2, 3))], leaky_readout(2)), squared),
            "online.eprop: `layer_0/connection` must be dense, without delays, pools and norms, got conv1d. ",
        ),
        (
            lambda: online.ottt(network(6, [layer(5, neurons.izhikevich())], leaky_readout(2)), squared),
            "online.ottt: `layer_0/neuron` must be of generalised LIF neurons, got izhikevich. "
            "Use online.truncated for this network.",
        ),
        (
            lambda: online.eprop(
                network(6, [layer(5)], leaky_readout(2)), squared, feedback=(jnp.ones((5, 2)),)
            ),
            "online.eprop: `feedback` must have shapes [(2, 5)], got [(5, 2)]. "
            "Make them with online.random_feedback(key, network).",
        ),
        (
            lambda: online.truncated(network(6, [layer(5)], spiking_readout(2)), squared, 0),
            "online.truncated: `window` must be an integer of at least 1, got 0. Pass 1 or more.",
        ),
        (
            lambda: online.ostl(network(6, [layer(5)], spiking_readout(2)), squared, rate_window=0),
            "online.ostl: `rate_window` must be an integer of at least 1, got 0. Pass 1 or more.",
        ),
        *((functools.partial(one_step, rule), WRONG_INPUTS) for rule in (online.ostl, LAST_STEPS)),
    ],
)
def test_networks_that_do_not_fit_are_refused(make, message: str) -> None:
    with pytest.raises(ValueError) as caught:
        make()
    assert str(caught.value).startswith(message)
