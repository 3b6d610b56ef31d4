"""Initial parameters: pure, alive in deep layers, and on request at a chosen activity."""

from typing import Any, NamedTuple

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.typing import DTypeLike

from snnjax import axonal, dense, layer, leaky_readout, network, neurons
from snnjax._types import Params, Signal, State
from snnjax.neurons.izhikevich import PRESETS
from tests.graph.helpers import initial, random_spikes
from tests.numbers import assert_close, assert_same_bits
from tests.ops.common import jit

STEPS, BATCH, INPUTS, DEPTH = 50, 8, 100, 4
MODELS = {
    "lif": neurons.lif(),
    "adlif": neurons.adlif(),
    "integrate_and_fire": neurons.integrate_and_fire(),
    "izhikevich": neurons.izhikevich(),
}


def activities(net, params: Params, *inputs: Signal) -> list[list[float]]:
    """Mean activity of each layer, of each of the inputs."""
    run = jit(lambda x: net.apply(params, net.initial_state(params, BATCH), x)[0].activity)
    return [[float(jnp.mean(each)) for each in run(x).values()] for x in inputs]


@pytest.mark.parametrize("name", MODELS)
def test_activity_is_alive_in_depth(name: str) -> None:
    net = network(INPUTS, [layer(64, MODELS[name]) for _ in range(DEPTH)], leaky_readout(3))
    inputs = [random_spikes(rate, STEPS, BATCH, INPUTS) for rate in (0.03, 0.05)]
    for each in activities(net, net.init(jax.random.key(0)), *inputs):
        assert len(each) == DEPTH and all(0.005 < rate < 0.25 for rate in each), each


@pytest.mark.parametrize("name, recurrent", [("lif", True), ("integrate_and_fire", False)])
def test_sample_inputs_set_the_activity(name: str, recurrent: bool) -> None:
    # Room for every spike: a list that drops spikes passes on fewer than were there when the next layer was scaled.
    hidden = [layer(32, MODELS[name], capacity=32, recurrent=recurrent), layer(32, MODELS[name])]
    net = network(INPUTS, hidden, leaky_readout(3))
    inputs = random_spikes(0.01, STEPS, BATCH, INPUTS)
    params = initial(net, inputs, target_activity=0.1)
    np.testing.assert_allclose(activities(net, params, inputs)[0], 0.1, rtol=0.2)


def test_padded_samples_count_nowhere() -> None:
    """Three quarters of the steps are padding, of whatever numbers."""
    net = network(INPUTS, [layer(32, capacity=32, recurrent=True), layer(32)], leaky_readout(3))
    lengths = jnp.full(BATCH, STEPS // 4, jnp.int32)
    padded = jnp.arange(STEPS)[:, None, None] >= lengths[None, :, None]
    inputs = random_spikes(0.02, STEPS, BATCH, INPUTS)
    params = initial(net, jnp.where(padded, jnp.nan, inputs), lengths=lengths, target_activity=0.1)
    output, _ = jit(lambda x: net.apply(params, None, x, lengths=lengths))(inputs)
    np.testing.assert_allclose([jnp.mean(each) for each in output.activity.values()], 0.1, rtol=0.1)
    chex.assert_trees_all_close(
        params, initial(net, inputs[: STEPS // 4], target_activity=0.1), rtol=1e-6, strict=True
    )


def test_weights_of_layers_that_cannot_be_active_keep_their_scale() -> None:
    net, silence = network(4, [layer(8)], leaky_readout(2)), jnp.zeros((5, 2, 4))
    with pytest.warns(
        RuntimeWarning, match=r"^network\.init: `layer_0/neuron` does not reach an activity of 0\.05 "
    ):
        params = net.init(jax.random.key(0), silence)
    assert_same_bits(params, net.init(jax.random.key(0)))


class NonlinearState(NamedTuple):
    v: Any  # [batch, neurons]
    spikes: Signal  # [batch, neurons] of the last step


def nonlinear(change, rest: float, threshold: float) -> neurons.Neuron:
    """A neuron whose membrane changes by a function of it and the currents, and is reset to `rest`."""

    def initial_state(params: Params, batch: int, count: int, dtype: DTypeLike = jnp.float32):
        return NonlinearState(jnp.full((batch, count), rest, dtype), jnp.zeros((batch, count), dtype))

    def integrate(params: Params, state: State, currents):
        before = jnp.where(state.spikes > 0, jnp.float32(rest), state.v)
        v = before + change(before, currents)
        return v, jnp.float32(threshold), state._replace(v=v)

    return neurons.Neuron(
        "nonlinear",
        lambda key, count, dtype=jnp.float32: (),
        initial_state,
        integrate,
        lambda state, spikes: state._replace(spikes=spikes),
        threshold=lambda params: jnp.float32(threshold),
        rest=rest,
    )


# Each has an impulse of 1 that lets it run away or that it does not feel, or spikes without any.
NONLINEAR = {
    "quadratic": nonlinear(lambda v, x: 0.2 * v * (v - 0.5) + x, 0.0, 1.0),  # of notebook 5
    "quadratic that spikes by itself": nonlinear(lambda v, x: 0.1 * (v**2 + 0.5 + x), -1.0, 10.0),
    "exponential in mV": nonlinear(lambda v, x: 0.1 * (2 * jnp.exp((v + 50) / 2) - (v + 65) + x), -65.0, 0.0),
    "exponential in V and A": nonlinear(
        lambda v, x: 3.5e6 * (6e-11 * jnp.exp((v + 0.05) / 2e-3) - 3e-8 * (v + 0.07) + x), -0.07, 0.02
    ),
    "currents in fA": nonlinear(lambda v, x: 0.05 * (1e-6 * x - (v + 65)), -65.0, -50.0),
    "cubic": nonlinear(lambda v, x: 0.5 * (v - v**3 / 3 + x), -1.7, 1.0),
    "saturating": nonlinear(lambda v, x: jnp.tanh(0.9 * v + x) - v, 0.0, 0.8),
    "at its threshold": nonlinear(lambda v, x: 0.1 * (x - v), 0.0, 0.0),
    **{f"izhikevich {preset}": neurons.izhikevich(preset) for preset in PRESETS},
}


@pytest.mark.parametrize("name", NONLINEAR)
def test_nonlinear_membranes_get_finite_weights(name: str) -> None:
    """Also where a membrane runs away; and their layers are alive: neither silent nor in every step."""
    net = network(INPUTS, [layer(32, NONLINEAR[name])], leaky_readout(3))
    params = net.init(jax.random.key(0))
    chex.assert_tree_all_finite(params)
    ((rate,),) = activities(net, params, random_spikes(0.05, STEPS, BATCH, INPUTS))
    assert 0.005 < rate < 0.6


@pytest.mark.parametrize(
    "change",
    [lambda v, x: jnp.zeros_like(v), lambda v, x: jnp.nan * x, lambda v, x: x / 0],
    ids=["none", "NaN", "infinite"],
)
def test_membranes_without_a_response_are_refused(change) -> None:
    net = network(4, [layer(2, nonlinear(change, 0.0, 1.0))], leaky_readout(3))
    with pytest.raises(ValueError) as caught:
        net.init(jax.random.key(0))
    assert str(caught.value) == (
        "network.init: `layer_0/neuron` must have membranes that small currents move and leave finite, got a drive of "
        "nan. Check the function integrate of its neuron."
    )


def test_init_is_a_pure_function_of_its_key() -> None:
    net = network(INPUTS, [layer(8, neurons.adlif(), recurrent=True)], leaky_readout(3))
    init = jit(net.init)
    first = init(jax.random.key(3))
    chex.assert_trees_all_equal(init(jax.random.key(3)), first, strict=True)
    chex.assert_trees_all_equal(jit(net.init)(jax.random.PRNGKey(3)), first, strict=True)
    other = init(jax.random.key(4))
    connection, neuron = "layer_0/connection", "layer_0/neuron"
    assert np.any(first[connection].weights != other[connection].weights)
    assert np.any(first[neuron].raw_decay != other[neuron].raw_decay)
    ensemble = jit(jax.vmap(net.init))(jax.random.split(jax.random.key(3), 2))
    assert ensemble["layer_0/recurrent"].weights.shape == (2, 8, 8)


def test_a_named_block_draws_the_same_wherever_it_stands() -> None:
    named = layer(8, neurons.adlif((0.5, 0.9)), recurrent=True).named("hidden")
    alone, behind = (network(6, blocks, leaky_readout(3)) for blocks in ([named], [layer(6), named]))
    first, second = (jit(net.init)(jax.random.key(0)) for net in (alone, behind))
    chex.assert_trees_all_equal(first, {name: second[name] for name in first}, strict=True)


def test_parameters_in_float64_are_the_same_numbers() -> None:
    """Weights are drawn in float32 whatever their dtype, with and without a target."""
    specs = [axonal(4), layer(8, neurons.adlif(), recurrent=[axonal(4), dense(8)]), layer(5)]
    net = network(6, specs, leaky_readout(3))
    inputs = jnp.ones((9, 2, 6), jnp.float32)
    for given in ((), (inputs,)):
        options = {"target_activity": 0.1} if given else {}
        narrow = net.init(jax.random.key(0), *given, **options)
        with jax.enable_x64(True):
            wide = net.init(jax.random.key(0), *given, dtype=jnp.float64, **options)
            assert {leaf.dtype for leaf in jax.tree.leaves(wide)} == {jnp.dtype("float64")}
        # Scales are found by halving intervals, and constants drawn, in float32: a few of its ulps.
        assert_close(jax.tree.map(lambda leaf: leaf.astype(jnp.float32), wide), narrow, of_largest=1e-5)
