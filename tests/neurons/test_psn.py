"""Parallel spiking neurons: the published equations, cut sequences, lists, and what is refused."""

import functools
import re

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from snnjax import conv2d, layer, leaky_readout, network, neurons, spike
from snnjax._types import Params
from snnjax.losses import cross_entropy_sum
from snnjax.metrics import gradient_share
from tests.errors.refusals import refusals
from tests.graph.helpers import initial
from tests.ops.common import jit

STEPS, BATCH, INPUTS = 6, 3, 5
LENGTHS = jnp.array([6, 4, 0], jnp.int32)
VALID = jnp.arange(STEPS)[:, None] < LENGTHS[None, :]
CURRENTS = jax.random.normal(jax.random.key(1), (STEPS, BATCH, 4))
INPUT = jax.random.bernoulli(jax.random.key(2), 0.4, (STEPS, BATCH, INPUTS)).astype(jnp.float32)


def of(neuron: neurons.Neuron, currents: jax.Array, valid: jax.Array | None = None):
    params = neuron.init(jax.random.key(0), currents.shape[-1])
    assert neuron.sequence is not None
    return params, neuron.sequence(
        params, neuron.initial_state(params, BATCH, currents.shape[-1]), currents, valid
    )


def test_membranes_of_psn_are_the_product_with_the_currents_of_all_steps() -> None:
    params, (membranes, thresholds, _) = of(neurons.psn(STEPS, 0.5), CURRENTS)
    expected = np.einsum("ts,sbn->tbn", params.weights, CURRENTS)
    chex.assert_trees_all_close(membranes, expected, rtol=1e-5)
    np.testing.assert_array_equal(thresholds, np.full((STEPS, 1, 1), 0.5, np.float32))


@pytest.mark.parametrize("order", [3, STEPS])
def test_a_masked_psn_depends_on_the_last_currents_alone(order: int) -> None:
    neuron = neurons.masked_psn(STEPS, order)
    by_current = jax.jacobian(lambda x: of(neuron, x)[1][0][:, 0, 0])(CURRENTS)[:, :, 0, 0]
    age = np.arange(STEPS)[:, None] - np.arange(STEPS)[None, :]
    np.testing.assert_array_equal(by_current != 0, (age >= 0) & (age < order))


def test_a_mask_of_half_a_share_halves_the_weights_outside() -> None:
    params, (membranes, *_) = of(neurons.masked_psn(STEPS, 1, mask_share=0.5), CURRENTS)
    weights = params.weights * (0.5 + 0.5 * np.eye(STEPS, dtype=np.float32))
    chex.assert_trees_all_close(membranes, np.einsum("ts,sbn->tbn", weights, CURRENTS), rtol=1e-5)


@pytest.mark.parametrize(("order", "cut"), [(1, 2), (3, 0), (3, 1), (4, 5), (3, STEPS)])
def test_a_sliding_psn_may_be_cut_anywhere(order: int, cut: int) -> None:
    neuron = neurons.sliding_psn(order)
    valid = VALID
    assert neuron.sequence is not None
    run = jit(neuron.sequence)
    params = neurons.SlidingPSNParams(jnp.linspace(-1, 1, order), jnp.ones(4))
    start, currents = neuron.initial_state(params, BATCH, 4), jnp.where(valid[:, :, None], CURRENTS, 0)
    whole, _, end = run(params, start, currents, valid)
    first, _, state = run(params, start, currents[:cut], valid[:cut])
    second, _, state = run(params, state, currents[cut:], valid[cut:])
    parts = jnp.concatenate([first, second])
    np.testing.assert_array_equal(parts[VALID], whole[VALID])  # nothing reads membranes behind an end
    np.testing.assert_array_equal(state.currents, end.currents)


def test_the_step_of_a_sliding_psn_is_a_sequence_of_one() -> None:
    neuron = neurons.sliding_psn(3)
    params, (membranes, threshold, _) = of(neuron, CURRENTS)
    start = neuron.initial_state(params, BATCH, 4)
    _, spikes = jax.lax.scan(lambda state, x: neuron.step(params, state, x), start, CURRENTS)
    np.testing.assert_array_equal(spikes, membranes > threshold[None, None])
    assert spikes.sum() > 0


NEURONS = {
    "psn": neurons.psn(STEPS, surrogate="sigmoid"),
    "masked": neurons.masked_psn(STEPS, 2, surrogate="sigmoid"),
    "sliding": neurons.sliding_psn(2, (0.5, 1.0), surrogate="sigmoid"),
}


@pytest.mark.parametrize("name", NEURONS)
def test_layers_equal_plain_jax_with_lengths_in_arrays_and_full_lists(name: str) -> None:
    neuron = NEURONS[name]
    dense, lists = (
        network(INPUTS, [layer(4, neuron, capacity=capacity, second_threshold=second)], leaky_readout(2))
        for capacity, second in ((None, None), (4, -100.0))
    )
    params = initial(dense)

    def plain(params: Params):
        weights, bias = params["layer_0/connection"]
        own = params["layer_0/neuron"]
        inside = VALID[:, :, None]
        currents = jnp.where(inside, INPUT @ weights + bias[None, None], 0)
        found = neuron.sequence(own, neuron.initial_state(own, BATCH, 4), currents, inside[:, :, 0])  # type: ignore[misc]
        threshold = found[1].reshape((1, 1, -1) if found[1].ndim == 1 else found[1].shape)
        return jnp.where(inside, spike(found[0] - threshold, "sigmoid"), 0)

    def run(net, params: Params):
        output, _ = net.apply(params, None, INPUT, lengths=LENGTHS, record="spikes")
        spikes = output.recorded["layer_0/neuron"]
        return (spikes if net is dense else spikes.to_dense()), output.activity["layer_0/neuron"]

    weight = jax.random.normal(jax.random.key(3), (STEPS, BATCH, 4))
    losses = [plain, lambda own: run(dense, own)[0], lambda own: run(lists, own)[0]]
    found = [
        jit(jax.value_and_grad(lambda own, f=f: (jnp.sum(weight * f(own)), f(own)), has_aux=True))(params)
        for f in losses
    ]
    for other in found[1:]:
        chex.assert_trees_all_close(other, found[0], rtol=1e-5, atol=1e-6)
    spikes, activity = found[0][0][1], jit(functools.partial(run, lists))(params)[1]
    assert 0 < spikes.sum() < spikes.size
    chex.assert_trees_all_close(activity, np.asarray(spikes).sum(0) / np.maximum(LENGTHS, 1)[:, None])


def test_chunks_and_carried_state_change_nothing() -> None:
    net = network(INPUTS, [layer(6, NEURONS["sliding"], capacity=3)], leaky_readout(2))
    params = initial(net)
    run = jit(lambda state, x, lengths: net.apply(params, state, x, lengths=lengths))
    cut = jit(lambda state, x, lengths: net.apply(params, state, x, lengths=lengths, chunk=4))
    start = net.initial_state(params, BATCH)
    whole, end = run(start, INPUT, LENGTHS)
    chex.assert_trees_all_close(cut(start, INPUT, LENGTHS), (whole, end), rtol=1e-6)
    first, state = run(start, INPUT[:3], jnp.minimum(LENGTHS, 3))
    second, state = run(state, INPUT[3:], jnp.maximum(LENGTHS - 3, 0))
    chex.assert_trees_all_close(state, end, rtol=1e-6)
    dropped = jax.tree.map(jnp.add, first.dropped, second.dropped)
    chex.assert_trees_all_close(dropped, whole.dropped)


def test_a_psn_is_not_cut_into_chunks_and_shares_its_weights_over_an_image() -> None:
    net = network((3, 3, 2), [layer(conv2d(4, 3), NEURONS["psn"]), layer(conv2d(4, 3), NEURONS["sliding"])])
    params, image = initial(net), jnp.ones((STEPS, BATCH, 3, 3, 2))
    assert params["layer_0/neuron"].weights.shape == (STEPS, STEPS)
    assert params["layer_1/neuron"].threshold.shape == (4,)
    population = jax.tree.map(lambda leaf: jnp.stack([leaf, 2 * leaf]), params)
    run = jit(lambda own: net.apply(own, None, image, chunk=2)[0].output)
    both = jit(jax.vmap(lambda own: net.apply(own, None, image)[0].output))(population)
    np.testing.assert_array_equal(both[0], run(params))


def test_paths_and_gradient_share_know_them() -> None:
    net = network(INPUTS, [layer(4, NEURONS["psn"])], leaky_readout(2))
    assert "alone: layer_0/neuron (psn computes all steps at once)" in net.paths
    params = initial(net)
    found = gradient_share(net, params, INPUT, jnp.zeros(BATCH, jnp.int32), loss=cross_entropy_sum)
    assert 0 < found.gradient_within[0, 0] < 1


def test_a_wrong_number_of_steps_is_refused() -> None:
    net = network(INPUTS, [layer(4, NEURONS["psn"])])
    message = (
        "psn: `currents` must have 6 steps, got 4. "
        "Make the neurons for 4 steps, or pad the sequences and pass their lengths."
    )
    with pytest.raises(ValueError, match=re.escape(message)):
        net.apply(initial(net), None, INPUT[:4])


REFUSED = {
    "psn: `num_steps` must be an integer of at least 1, got 0. Pass 1 or more.": lambda: neurons.psn(0),
    "psn: `threshold` must be a number, got (0.5, 1.0). It is learned for each step.": lambda: neurons.psn(
        4, threshold=(0.5, 1.0)
    ),
    "psn: `threshold` must be finite in float32, got inf. "
    "Use leaky_integrator for neurons that never spike.": lambda: neurons.psn(4, threshold=float("inf")),
    "masked_psn: `order` must be at most `num_steps`, 4, got 5. Lower it.": lambda: neurons.masked_psn(4, 5),
    "masked_psn: `mask_share` must be between 0 and 1, got 2. Pass 1 to mask in full.": lambda: (
        neurons.masked_psn(4, 2, mask_share=2)
    ),
    "layer: `recurrent` must be False for neurons that compute all steps at once, sliding_psn, got True. "
    "Choose neurons with a step, such as lif().": lambda: layer(4, neurons.sliding_psn(2), recurrent=True),
    "psn.step: `neuron` must have a step of its own, got one that needs all 4 steps. "
    "Call neuron.sequence, or run it in a network.": lambda: neurons.psn(4).step(
        neurons.psn(4).init(jax.random.key(0), 2), (), jnp.ones((1, 2))
    ),
}
test_what_cannot_be_is_refused = refusals(REFUSED)
