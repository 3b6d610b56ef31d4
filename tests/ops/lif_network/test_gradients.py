"""Back-propagation through time against finite differences, and the gradients through capped lists and activity."""

import functools
from typing import Any

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from snnjax import Connection, LayerState, LIFLayer, LIFNetworkState, LIFReadout, lif_network
from snnjax._types import Signal, State
from snnjax.surrogates import Surrogate
from tests.cases import SMOOTH
from tests.ops.common import check_gradient, jit, with_gradient
from tests.ops.lif_network.networks import ONE_LAYER, STEPS, TWO_LAYERS, make_network

SMOOTH_NETWORK = {"surrogate": SMOOTH, "second_threshold": -np.inf}
FULL = 9  # more slots than neurons
EVERYTHING = ("w_membrane", "w_gain", "w_jump", "v_coupling", "threshold_coupling")
LENGTHS = np.array([STEPS, 3])


def run(inputs: Signal, layers, readout, state: State, **options):
    out, state = lif_network(inputs, layers, readout, state, **options)
    return out.output, out.activity, tuple(state)


@pytest.mark.parametrize(
    "options",
    [
        {"reset": "subtract", "capacity": (None, FULL), "widths": TWO_LAYERS},
        {"reset": "zero", "capacity": FULL, "lengths": LENGTHS, "widths": ONE_LAYER},
        {"reset": "none", "capacity": None, "chunk": 2, "widths": ONE_LAYER},
        {
            "reset": "subtract",
            "capacity": FULL,
            "widths": TWO_LAYERS,
            "second_states": (EVERYTHING, EVERYTHING),
        },
        {
            "reset": "zero",
            "chunk": 2,
            "lengths": LENGTHS,
            "widths": ONE_LAYER,
            "second_states": (EVERYTHING,),
        },
    ],
    ids=lambda options: f"{options['reset']}{'-w' if 'second_states' in options else ''}",
)
def test_whole_network_equals_finite_differences_of_its_relaxed_form(options: dict[str, Any]) -> None:
    """One layer recurrent, all constants learnable, the states and the activity in the loss."""
    given = dict(options)
    widths, second_states = given.pop("widths"), given.pop("second_states", ())
    relaxed = functools.partial(run, detach_reset=False, **SMOOTH_NETWORK, **given)
    with jax.enable_x64(True):
        check_gradient(relaxed, make_network(widths, dtype=jnp.float64, second_states=second_states))


def test_delays_of_recurrent_synapses_equal_finite_differences() -> None:
    """By weights, delays between steps, and what is under way."""
    relaxed = functools.partial(run, lengths=LENGTHS, detach_reset=False, **SMOOTH_NETWORK)
    with jax.enable_x64(True):
        inputs, (layer,), readout, state = make_network(ONE_LAYER, dtype=jnp.float64)
        neurons, (before,) = layer.recurrent.shape[0], state.layers
        delays = 0.0625 + (jnp.arange(neurons**2, dtype=jnp.float64) * 7 % 11).reshape(neurons, -1) / 8
        layer = layer._replace(recurrent_connection=Connection(max_delay=2), synaptic_delays=delays)
        rows = jnp.stack([before.v, -before.v]) / 2
        state = state._replace(layers=(before._replace(arriving=rows),))
        check_gradient(relaxed, (inputs, (layer,), readout, state))


def frozen_network(inputs: Signal, layers, readout, state: State, masks):
    """One relaxed recurrent layer step by step, in which given numbers stand for the reset's spikes."""
    (layer,), ((v, w, spikes, *none),), out = layers, *state
    outputs, fired = [], []
    for x, mask in zip(inputs, masks, strict=True):
        current = x @ layer.weights + layer.bias[None] + spikes @ layer.recurrent
        v = layer.decay[None] * (v - layer.threshold * mask) + layer.gain[None] * current
        spikes = SMOOTH.relaxed(v - layer.threshold)
        out = readout.decay * out + (1 - readout.decay) * (spikes @ readout.weights + readout.bias[None])
        outputs.append(out)
        fired.append(spikes)
    state = LIFNetworkState((LayerState(v, w, spikes, *none),), out)
    return jnp.stack(outputs), (sum(fired) / len(fired),), state


def test_detached_reset_equals_finite_differences_with_its_spikes_given() -> None:
    """The network written out, with recorded resets, is compared with differences; then ours with it."""
    with jax.enable_x64(True):
        network = _, (layer,), _, state = make_network(ONE_LAYER, dtype=jnp.float64)
        out, _ = lif_network(*network, record_spikes=True, **SMOOTH_NETWORK)
        first = SMOOTH.relaxed(state.layers[0].v - layer.threshold)
        masks = jnp.concatenate([first[None], out.spikes[0]])[:-1]
        frozen = functools.partial(frozen_network, masks=masks)
        check_gradient(frozen, network)
        expected = jit(with_gradient(frozen))(*network)
        for capacity in (None, FULL):
            ours = jit(with_gradient(functools.partial(run, capacity=capacity, **SMOOTH_NETWORK)))(*network)
            # sums in float64, results of order 1 to 100
            chex.assert_trees_all_close(ours, expected, rtol=1e-10, atol=1e-12, strict=True)


def test_full_list_below_everything_equals_no_list() -> None:
    """With steps as spikes. A few ulp: the same sums, compiled into other programs."""
    network = make_network()
    plain = jit(with_gradient(run))(*network)
    listed = jit(with_gradient(functools.partial(run, capacity=FULL, second_threshold=-np.inf)))(*network)
    chex.assert_trees_all_close(listed, plain, rtol=2e-6, atol=2e-6, strict=True)


READOUT = LIFReadout(jnp.arange(1.0, 11.0).reshape(5, 2) / 8, decay=0.5, gain=1.0)


def one_layer(inputs: Signal, weights, readout, **options):
    """Spikes without reset and with a memory of no step: the membrane is the current, in every step."""
    layer = LIFLayer(weights, decay=0.0, threshold=1.0, gain=1.0)
    options = {"reset": "none", "surrogate": Surrogate("superspike", 2.0), **options}
    return lif_network(inputs, [layer], readout, record_spikes=True, **options)[0]


def test_capped_gradient_is_the_dense_one_masked_to_the_listed_neurons() -> None:
    """By membranes, which without memory are the currents: d loss / d weights = inputs^T (mask * dense gradient)."""
    inputs, layers, _, _ = make_network(recurrent=False, seed=3)
    weights = layers[0].weights + 0.5

    def loss(weights):
        out = one_layer(inputs, weights, READOUT, capacity=2, second_threshold=0.4)
        return jnp.sum(out.output), out

    gradient, out = jit(jax.grad(loss, has_aux=True))(weights)
    v = np.asarray(inputs) @ np.asarray(weights)
    slope = 1 / (1 + 2 * np.abs(v - 1)) ** 2
    listed = np.zeros_like(v)
    for place in np.ndindex(v.shape[:2]):
        ids = [i for i in np.asarray(out.spikes[0].ids[place]) if i < v.shape[-1]]
        listed[place][ids] = 1
    # A step's spike reaches the sum of outputs with the leak's remaining steps: 1 + 1/2 + 1/4 ...
    remaining = np.array([2 - 0.5 ** (len(v) - 1 - t) for t in range(len(v))])[:, None, None]
    d_v = listed * slope * remaining * np.asarray(READOUT.weights).sum(1)
    expected = np.einsum("tbi,tbj->ij", inputs, d_v)
    np.testing.assert_allclose(gradient, expected, rtol=1e-5, atol=1e-6)  # float32 sums of 10 terms
    assert 0 < listed.mean() < 1
    assert np.any(out.dropped[0])


@pytest.mark.parametrize("second_threshold", [0.9, 0.2, -np.inf])
@pytest.mark.parametrize("capacity", [0, 2])
def test_activity_gradient_is_the_surrogate_above_the_second_threshold(
    capacity: int, second_threshold: float
) -> None:
    """At every neuron above it, listed or dropped, including those that the list of 0 slots drops."""
    inputs, layers, _, _ = make_network(recurrent=False, seed=3)
    options = {"capacity": capacity, "second_threshold": second_threshold}

    def activity(weights):
        return jnp.sum(one_layer(inputs, weights, READOUT, **options).activity[0])

    v = np.asarray(inputs) @ np.asarray(layers[0].weights)
    np.testing.assert_allclose(activity(layers[0].weights), np.sum(v > 1) / STEPS, rtol=1e-6)
    slope = (v > second_threshold) / (1 + 2 * np.abs(v - 1)) ** 2 / STEPS
    expected = np.einsum("tbi,tbj->ij", inputs, slope)
    np.testing.assert_allclose(jit(jax.grad(activity))(layers[0].weights), expected, rtol=1e-5, atol=1e-6)


def test_silent_output_still_learns() -> None:
    """Without a capacity a class far below the second threshold still has its gradient; with one it has none."""
    layer = LIFLayer(jnp.full((2, 3), -1.0), decay=0.5)

    def loss(weights, capacity: int | None = None):
        out, _ = lif_network(jnp.ones((2, 1, 2)), [layer._replace(weights=weights)], capacity=capacity)
        return jnp.sum(out.output if capacity is None else out.output.values)

    assert loss(layer.weights) == 0
    assert (jax.grad(loss)(layer.weights) > 0).all()
    assert not np.any(jax.grad(loss)(layer.weights, 3))
