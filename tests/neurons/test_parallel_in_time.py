"""`parallel_in_time`: results equal those of the steps, in networks too, and what is refused."""

import re

import chex
import jax
import jax.numpy as jnp
import pytest

from snnjax import dense, layer, network, neurons
from tests.graph.helpers import initial, with_gradients
from tests.neurons.models import unroll
from tests.ops.common import jit

STEPS, BATCH, INPUTS = 7, 3, 5
LENGTHS = jnp.array([7, 4, 0], jnp.int32)
INPUT = jax.random.bernoulli(jax.random.key(2), 0.4, (STEPS, BATCH, INPUTS)).astype(jnp.float32)
MODELS = {
    "lif": neurons.lif((0.5, 0.9), reset="none", learn_decay=True),
    "current_lif": neurons.current_lif((0.5, 0.9), reset="none", learn_decay=True),
    "resonate_and_fire": neurons.resonate_and_fire(0.8, reset="none"),
}


@pytest.mark.parametrize("name", MODELS)
def test_networks_and_their_gradients_equal_those_of_steps(name: str) -> None:
    neuron = MODELS[name]
    at_once, steps = (
        network(
            INPUTS,
            [layer(4, own, capacity=3), dense(2)],
            read_out,
        )
        for own, read_out in (
            (neurons.parallel_in_time(neuron), neurons.parallel_in_time(neurons.leaky_integrator(0.8))),
            (neuron, neurons.leaky_integrator(0.8)),
        )
    )
    params = initial(steps)
    state = steps.initial_state(params, BATCH)
    state = jax.tree.map(lambda leaf: leaf + 0.25, state)
    # Not to the bit: a scan adds in the order of a tree.
    found, expected = (
        jit(with_gradients(lambda *given, net=net: net.apply(*given, lengths=LENGTHS)))(params, state, INPUT)
        for net in (at_once, steps)
    )
    assert expected[0][0].activity["layer_0/neuron"].sum() > 0
    chex.assert_trees_all_close(found, expected, rtol=2e-5, atol=1e-5)
    assert f"alone: layer_0/neuron ({name} computes all steps at once)" in at_once.paths


def test_its_step_is_that_of_the_neuron() -> None:
    plain = MODELS["lif"]
    neuron = neurons.parallel_in_time(plain)
    params = neuron.init(jax.random.key(0), INPUTS)
    start = neuron.initial_state(params, BATCH, INPUTS)
    chex.assert_trees_all_close(unroll(neuron, params, start, INPUT), unroll(plain, params, start, INPUT))


@pytest.mark.parametrize(
    ("neuron", "message"),
    [
        (
            3,
            "parallel_in_time: `neuron` must be a Neuron, got 3. Try neurons.lif(reset='none').",
        ),
        (
            neurons.izhikevich(),
            "parallel_in_time: `neuron` must be a generalised LIF neuron, got izhikevich. "
            "Try neurons.lif(reset='none').",
        ),
        (
            neurons.lif(),
            "parallel_in_time: `neuron` must have a state that its spikes do not change, got lif. "
            "Pass reset='none' to a neuron without adaptation.",
        ),
        (
            neurons.adlif(reset="none"),
            "parallel_in_time: `neuron` must have a state that its spikes do not change, got adlif. "
            "Pass reset='none' to a neuron without adaptation.",
        ),
    ],
)
def test_neurons_with_other_states_are_refused(neuron, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        neurons.parallel_in_time(neuron)
