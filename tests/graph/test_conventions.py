"""Conventions of other libraries: in the fused op where it equals the scan, and scanned with a reason elsewhere."""

import functools
import itertools
from typing import Any

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from snnjax import dense, layer, leaky_readout, network, neurons
from snnjax._types import Params, Signal
from snnjax.blocks import LinearParams
from snnjax.surrogates import sigmoid
from tests.graph.helpers import initial, with_gradients
from tests.numbers import assert_close
from tests.ops.common import jit

STEPS, BATCH, INPUTS = 10, 3, 6
LENGTHS = jnp.array([10, 6, 0], jnp.int32)
INPUT = jax.random.bernoulli(jax.random.key(3), 0.5, (STEPS, BATCH, INPUTS)).astype(jnp.float32)
SWITCHES: dict[str, tuple[Any, ...]] = {
    "reset": ("zero", "subtract", "none"),
    "detach_reset": (True, False),
    "reset_time": ("before_decay", "immediate", "after_decay"),
    "spike_from": ("new", "old"),
    "inclusive": (False, True),
}
CHOICES = [
    options
    for options in (dict(zip(SWITCHES, each, strict=True)) for each in itertools.product(*SWITCHES.values()))
    if (options["reset_time"], options["spike_from"])
    != ("immediate", "old")  # refused: no old membrane is left
]
COMMON = {"normalize": False, "learn_decay": True, "learn_threshold": True, "surrogate": sigmoid(4)}


def net_of(make, options: dict[str, Any], **of_layer):
    return network(INPUTS, [layer(7, make(0.5, **(COMMON | options)), **of_layer)], leaky_readout(2))


def is_fused(net) -> bool:
    return "fused: layer_0/connection > layer_0/neuron" in net.paths


def dyadic_params(net):
    """Weights whose sums are exact, so that membranes are at the threshold to the bit now and then."""
    params = initial(net)
    rng = np.random.default_rng(0)

    def drawn(leaf):
        return jnp.asarray(rng.integers(-2, 4, leaf.shape) / 4, jnp.float32) if leaf.ndim == 2 else leaf

    params = {name: jax.tree.map(drawn, own) for name, own in params.items()}
    biased = {
        name: own._replace(bias=jnp.full(7, 0.25))
        for name, own in params.items()
        if name.endswith("connection")
    }
    return params | biased | {"readout/connection": params["readout/connection"]}


@pytest.mark.parametrize("learned", [False, True])
def test_what_is_fused_is_what_equals_other_constants(learned: bool) -> None:
    own = {"learn_threshold": learned}
    fused = [options for options in CHOICES if is_fused(net_of(neurons.lif, options | own))]
    for options in CHOICES:
        resets = options["reset"] != "none"
        expected = options["spike_from"] == "new" and not (resets and options["reset_time"] == "after_decay")
        if options["reset"] == "subtract":
            attached = options["reset_time"] == "immediate" and not options["detach_reset"]
            expected = expected and not options["inclusive"] and not attached
            expected = expected and not (learned and options["reset_time"] == "immediate")
        assert (options in fused) == expected


@pytest.mark.parametrize(
    "neuron",
    [
        neurons.lif(0.5, -0.5, reset_time="immediate"),
        neurons.lif(0.5, (-0.1, 0.5), reset_time="immediate"),
        neurons.integrate_and_fire(reset="zero", reset_time="immediate", inclusive=True, initial=1.0),
        neurons.integrate_and_fire(reset="zero", reset_time="immediate", learn_threshold=True, initial=0.5),
    ],
)
def test_neurons_that_may_start_above_their_threshold_are_scanned(neuron) -> None:
    """The op would reset them before the first step: learned thresholds may fall below 0."""
    paths = network(INPUTS, [layer(7, neuron)], leaky_readout(2)).paths
    assert "it may start above its threshold, which the op would reset" in paths


IMMEDIATE: dict[str, Any] = {"reset": "zero", "reset_time": "immediate"}
ATTACHED = {"detach_reset": False}
CURRENT = functools.partial(neurons.current_lif, synapse_decay=0.5, normalize_synapse=False)
NETS: dict[str, list[tuple[Any, dict[str, Any], dict[str, Any]]]] = {
    "arrays": [
        (neurons.lif, {**IMMEDIATE, "inclusive": True}, {}),
        (
            neurons.lif,
            {"reset": "subtract", "reset_time": "immediate", "learn_threshold": False},
            {"recurrent": True},
        ),
        (CURRENT, {**IMMEDIATE, **ATTACHED}, {}),
    ],
    "lists": [
        (neurons.lif, {**IMMEDIATE, **ATTACHED, "inclusive": True}, {"capacity": 3}),
        (neurons.lif, {"reset": "none", "reset_time": "after_decay", "inclusive": True}, {"capacity": 7}),
        (neurons.lif, {"reset": "zero", **ATTACHED, "inclusive": True}, {"capacity": 3}),
    ],
}


@pytest.mark.parametrize("name", NETS)
def test_spikes_gradients_and_states_equal_those_of_the_scan(name: str) -> None:
    layers = [layer(7, make(0.5, **(COMMON | options)), **of_layer) for make, options, of_layer in NETS[name]]
    net = network(INPUTS, layers, leaky_readout(2))
    assert "alone" not in net.paths
    params = dyadic_params(net)

    def run(params: Params, state: None, inputs: Signal, implementation: str | None = None):
        return net.apply(
            params, state, inputs, lengths=LENGTHS, record="spikes", implementation=implementation
        )

    found, (_, gradients) = jit(with_gradients(run))(params, None, INPUT)
    composed = with_gradients(functools.partial(run, implementation="composed"))
    expected, (_, expected_gradients) = jit(composed)(params, None, INPUT)
    chex.assert_trees_all_equal(found[0].recorded, expected[0].recorded)
    chex.assert_trees_all_equal(found[0].dropped, expected[0].dropped)
    chex.assert_trees_all_close(found, expected, rtol=1e-6, atol=1e-6)
    # The slope of the surrogate is taken one float beside.
    assert_close(gradients, expected_gradients, rtol=2e-5, atol=2e-5, of_largest=2e-6)
    for each in found[0].activity.values():
        assert 0.05 < float(jnp.mean(each)) < 0.95


def test_membranes_at_the_threshold_decide_the_inclusive_case() -> None:
    """Else the equality of the spikes would not show that the threshold is one float lower."""
    exclusive, inclusive = (
        net_of(neurons.lif, {"reset": "zero", "inclusive": value}) for value in (False, True)
    )
    params = dyadic_params(inclusive)
    first, second = (
        jit(lambda own, net=net: net.apply(own, None, INPUT)[0].activity["layer_0/neuron"])(params)
        for net in (exclusive, inclusive)
    )
    assert jnp.any(first != second)


@pytest.mark.parametrize("threshold", [0.0, 2.0**-126, 1.0, -1.0])
@pytest.mark.parametrize("reset", ["zero", "subtract"])
def test_membranes_at_any_threshold_spike_in_the_inclusive_case(reset: str, threshold: float) -> None:
    """Also at 0, below which no float is left where those that are not normal count as 0."""
    neuron = neurons.lif(0.5, threshold, normalize=False, inclusive=True, reset=reset)
    net = network(3, [layer(dense(3, bias=False), neuron, capacity=3, second_threshold=-2.0)])
    params = {"layer_0/connection": LinearParams(jnp.eye(3))}
    above, below = jnp.nextafter(jnp.float32(threshold), jnp.float32([4, -4]))
    inputs = jnp.stack([above, jnp.float32(threshold), below if threshold else jnp.float32(-1e-30)])
    # A first step from rest: what its reset adds, if rest is at the threshold or above.
    start = -0.5 * threshold if reset == "subtract" and threshold <= 0 else 0.0
    inputs = jnp.tile(inputs - start, (4, 1, 1))
    lists = net.apply(params, None, inputs)[0].output
    np.testing.assert_array_equal(lists.to_dense()[0, 0], [1, 1, 0])


def test_a_carried_state_and_chunks_are_scanned_with_an_immediate_reset() -> None:
    net = net_of(neurons.lif, {"reset": "subtract", "reset_time": "immediate", "learn_threshold": False})
    params = dyadic_params(net)
    state = net.initial_state(params, BATCH)
    high = state["layer_0/neuron"]._replace(v=jnp.full((BATCH, 7), 5.0))  # it has been reset already
    state |= {"layer_0/neuron": high}
    given = jit(lambda own: net.apply(params, own, INPUT))
    scanned = jit(lambda own: net.apply(params, own, INPUT, implementation="composed"))
    chex.assert_trees_all_close(given(state), scanned(state), rtol=1e-6)
    whole = jit(lambda own: net.apply(own, None, INPUT))(params)
    chex.assert_trees_all_close(
        jit(lambda own: net.apply(own, None, INPUT, chunk=4))(params), whole, rtol=1e-5
    )
    segments = net.segments(from_rest=False)
    assert any("only from rest" in getattr(segment, "why", "") for segment in segments)


@pytest.mark.parametrize(
    ("neuron", "why"),
    [
        (
            neurons.adaptive_lif(reset_time="after_decay"),
            "adaptive_lif with reset_time='after_decay': its reset follows the decay",
        ),
        (
            neurons.lif(inclusive=True),
            "lif with inclusive=True: it subtracts the threshold, which is not the one that its membrane must exceed",
        ),
        (
            neurons.lif(reset_time="immediate", detach_reset=False),
            "lif with reset_time='immediate': "
            "the gradient of its threshold flows through the reset of the first step",
        ),
    ],
)
def test_paths_say_what_differs(neuron: neurons.Neuron, why: str) -> None:
    assert f"alone: layer_0/neuron ({why})" in network(INPUTS, [layer(2, neuron)]).paths
