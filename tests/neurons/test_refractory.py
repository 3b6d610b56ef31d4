"""The refractory period: spike counts, and the frozen state."""

import dataclasses
import functools
from typing import Any

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from snnjax import Network, dense, layer, leaky_readout, network, neurons
from snnjax._types import Params, State
from snnjax.surrogates import as_surrogate, superspike
from tests.neurons.models import unroll
from tests.numbers import assert_close

KEY = jax.random.key(0)


@given(st.integers(0, 6))
def test_strong_input_spikes_every_steps_plus_one(steps: int) -> None:
    neuron = neurons.refractory(neurons.lif(0.5, normalize=False), steps)
    params = neuron.init(KEY, 1)
    _, spikes = unroll(neuron, params, neuron.initial_state(params, 1, 1), jnp.full((20, 1, 1), 10.0))
    np.testing.assert_array_equal(np.flatnonzero(spikes[:, 0, 0]), np.arange(0, 20, steps + 1))


@pytest.mark.parametrize(
    "model", ["integrate_and_fire", "current_lif", "adaptive_lif", "adlif", "izhikevich"]
)
def test_no_two_spikes_within_the_period(model: str) -> None:
    neuron = neurons.refractory(getattr(neurons, model)(), 3)
    params = neuron.init(KEY, 4)
    scale = 40.0 if model == "izhikevich" else 4.0
    inputs = scale * jnp.abs(jax.random.normal(KEY, (40, 2, 4)))
    _, spikes = unroll(neuron, params, neuron.initial_state(params, 2, 4), inputs)
    assert np.sum(spikes) > 20
    windows = sum(spikes[i : 37 + i] for i in range(4))
    assert np.max(windows) == 1


def test_time_stands_still_for_a_refractory_neuron() -> None:
    plain = neurons.lif(0.5, reset="zero", normalize=False)
    neuron = neurons.refractory(plain, 2)
    params = neuron.init(KEY, 1)
    # Spike at 2; the next two inputs are lost; then 0 from the reset plus 0.5, and half of it plus 0.5.
    state, membranes = neuron.initial_state(params, 1, 1), []
    for x in (2.0, 7.0, -7.0, 0.5, 0.5):
        state, _ = neuron.step(params, state, jnp.array([[x]]))
        membranes.append(float(state.neuron.v[0, 0]))
    assert membranes == [2.0, 2.0, 2.0, 0.5, 0.75]


def test_zero_steps_change_nothing() -> None:
    plain = neurons.adaptive_lif(0.7)
    neuron = neurons.refractory(plain, 0)
    params = plain.init(KEY, 3)
    inputs = 3 * jax.random.normal(KEY, (20, 2, 3))
    own = neurons.RefractoryParams(params)
    last, spikes = unroll(neuron, own, neuron.initial_state(own, 2, 3), inputs)
    wanted = unroll(plain, params, plain.initial_state(params, 2, 3), inputs)
    assert np.sum(spikes) > 5
    np.testing.assert_array_equal(spikes, wanted[1])
    np.testing.assert_allclose(last.neuron.v, wanted[0].v, rtol=1e-5)  # fused sums round otherwise


def test_ignored_inputs_get_no_gradient() -> None:
    neuron = neurons.refractory(neurons.lif(0.5, normalize=False), 2)
    params = neuron.init(KEY, 1)
    state = neuron.initial_state(params, 1, 1)

    def membrane(inputs: jax.Array) -> jax.Array:
        return unroll(neuron, params, state, inputs)[0].neuron.v[0, 0]

    # Spike at the first input, two are ignored, 1/2 of the fourth remains at the fifth; detached reset.
    gradient = jax.grad(membrane)(jnp.array([2.0, 9.0, 9.0, 0.25, 0.25]).reshape(5, 1, 1))
    assert gradient[:, 0, 0].tolist() == [0.25, 0.0, 0.0, 0.5, 1.0]


@pytest.mark.parametrize("name", ["superspike", "arctan", "triangle", "sigmoid", "straight_through"])
def test_smooth_spikes_are_silent_in_the_period_too(name: str) -> None:
    smooth = dataclasses.replace(as_surrogate("test", name), smooth=True)
    neuron = neurons.refractory(neurons.lif(0.5, normalize=False, surrogate=smooth), 2)
    params = neuron.init(KEY, 1)
    inputs = jnp.array([2.0, 9.0, 9.0, 0.25]).reshape(4, 1, 1)

    def run(inputs: jax.Array) -> jax.Array:
        return unroll(neuron, params, neuron.initial_state(params, 1, 1), inputs)[1][:, 0, 0]

    spikes, gradient = run(inputs), jax.jacrev(run)(inputs)[..., 0, 0]
    chex.assert_tree_all_finite((spikes, gradient))
    np.testing.assert_array_equal(spikes[1:3], 0)
    assert not np.any(gradient[1:3]) and not np.any(gradient[:, 1:3])


@pytest.mark.parametrize("capacity", [None, 2])
def test_smooth_networks_are_finite(capacity: int | None) -> None:
    smooth = dataclasses.replace(superspike(), smooth=True)
    net = network(
        4,
        [layer(3, neurons.refractory(neurons.lif(surrogate=smooth), 2), capacity=capacity)],
        leaky_readout(2),
    )
    params = net.init(KEY)
    inputs = 4 * jnp.abs(jax.random.normal(KEY, (10, 2, 4)))

    @jax.jit
    @functools.partial(jax.value_and_grad, has_aux=True)
    def run(params: Params):
        output, _ = net.apply(params, None, inputs)
        return jnp.sum(output.output), output

    chex.assert_tree_all_finite(run(params))


ATTACHED: dict[str, Any] = {"learn_decay": True, "learn_threshold": True, "detach_reset": False}
LAYERS: dict[str, Any] = {
    "lif": lambda: (neurons.lif((0.6, 0.9), 0.4, **ATTACHED), {}),
    "lists of adlif": lambda: (neurons.adlif(0.8, 0.3), {"capacity": 6}),
    "adaptive threshold, recurrent": lambda: (
        neurons.adaptive_lif(0.8, 0.3, reset="zero", learn_adaptation=True),
        {"recurrent": dense(WIDTH, bias=False)},
    ),
}
WIDTH = 9


@pytest.mark.parametrize("name", LAYERS)
def test_fused_layers_are_those_of_the_neurons_own_functions(name: str) -> None:
    """Of a neuron given by its functions, which is scanned: from a state in a period, in chunks, with lengths."""
    plain, options = LAYERS[name]()
    by_functions = dataclasses.replace(plain, integrate=plain.advance)
    fused, scanned = (
        network(5, [layer(WIDTH, neurons.refractory(each, 2), **options)], leaky_readout(2))
        for each in (plain, by_functions)
    )
    assert "fused: layer_0/connection" in fused.paths and "fused: layer_0" not in scanned.paths
    params = fused.init(KEY)
    inputs = 2 * jnp.asarray(jax.random.bernoulli(KEY, 0.6, (19, 4, 5)), jnp.float32)
    state = jax.tree.map(lambda leaf: leaf + jnp.ones((), leaf.dtype), fused.initial_state(params, 4))

    @functools.partial(jax.jit, static_argnums=3)
    @functools.partial(jax.grad, argnums=(0, 1, 2), has_aux=True, allow_int=True)
    def run(params: Params, state: State, inputs: jax.Array, net: Network):
        results = net.apply(params, state, inputs, lengths=jnp.array([19, 0, 7, 12]), chunk=8)
        output, last = results
        floats = [leaf for leaf in jax.tree.leaves(last) if jnp.issubdtype(leaf.dtype, jnp.floating)]
        return sum(jnp.sum(leaf**2) for leaf in [output.output, *output.activity.values(), *floats]), results

    (found, results), (wanted, expected) = (run(params, state, inputs, net) for net in (fused, scanned))
    chex.assert_trees_all_close(results, expected, rtol=1e-5, atol=1e-6)
    assert 0.05 < float(jnp.mean(results[0].activity["layer_0/neuron"])) < 0.34
    found, wanted = (
        [leaf for leaf in jax.tree.leaves(each) if leaf.dtype == jnp.float32] for each in (found, wanted)
    )
    assert_close(found, wanted, rtol=1e-4, of_largest=1e-5)  # sums of some hundred products, in another order


def test_long_periods_are_counted_in_integers() -> None:
    """Float32 does not hold every whole number above the longest fused one."""
    for steps, path in ((1 << 24, "fused: layer_0/connection"), ((1 << 24) + 1, "alone: layer_0/neuron")):
        net = network(5, [layer(3, neurons.refractory(neurons.lif(), steps))], leaky_readout(2))
        assert path in net.paths


def test_only_spiking_neurons_have_a_period() -> None:
    with pytest.raises(ValueError) as error:
        neurons.refractory(neurons.leaky_integrator(), 1)
    assert str(error.value) == (
        "refractory: `neuron` must be a spiking neuron, got leaky_integrator. "
        "Use it as the readout, snnjax.leaky_readout, or choose another."
    )


@pytest.mark.parametrize("steps, hint", [(-1, "Pass 0 or more"), (1.5, "Pass an int, such as 1")])
def test_length_is_checked(steps: float, hint: str) -> None:
    with pytest.raises(ValueError) as error:
        neurons.refractory(neurons.lif(), steps)  # type: ignore[arg-type]
    assert str(error.value) == (f"refractory: `steps` must be an integer of at least 0, got {steps}. {hint}.")
