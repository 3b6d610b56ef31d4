"""Constants of neurons in networks: params hold those that are learned, stats those that are drawn and are not."""

import dataclasses
from typing import Any, NamedTuple

import chex
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from jax.typing import DTypeLike

from snnjax import conv1d, layer, leaky_readout, network, neurons
from tests.graph.helpers import INPUTS, initial, random_spikes

KEY = jax.random.key(0)


def test_weight_decay_leaves_constants_where_they_are() -> None:
    """They are no parameters, unless they are learned."""
    for learn, held in ((False, set()), (True, {"layer_0/neuron", "readout/neuron"})):
        hidden = layer(8, neurons.lif(learn_decay=learn, learn_threshold=learn))
        net = network(INPUTS, [hidden], leaky_readout(3, learn_decay=learn))
        params = initial(net)
        assert params.keys() - {"layer_0/connection", "readout/connection"} == held
        constants = [node.block.operands(params.get(node.name), None, (8,)) for node in net.nodes[1::2]]
        optimiser = optax.adamw(0.1, weight_decay=1.0)
        with jax.numpy_dtype_promotion("standard"):
            updates, _ = optimiser.update(
                jax.tree.map(jnp.zeros_like, params), optimiser.init(params), params
            )
            decayed = optax.apply_updates(params, updates)
        after = [node.block.operands(decayed.get(node.name), None, (8,)) for node in net.nodes[1::2]]
        if learn:
            assert float(after[0].glif.threshold[0]) == pytest.approx(0.9)
        else:
            chex.assert_trees_all_equal(after, constants, strict=True)


@pytest.mark.parametrize("per, count", [("channel", 4), ("neuron", 24), ("layer", None)])
def test_drawn_constants_are_stats_that_every_path_uses(per: str, count: int | None) -> None:
    """They have the values that learned ones start from, and stay as they are."""
    given = {"decay": (0.5, 0.9), "threshold": (0.2, 0.6), "per": per}
    fixed, learned = (
        network((6, 2), [layer(conv1d(4, 3), neurons.lif(**given, learn_decay=on, learn_threshold=on))])
        for on in (False, True)
    )
    params, stats, inputs = initial(fixed), fixed.initial_stats(KEY), random_spikes(0.5, inputs=12)
    assert stats.keys() == {"layer_0/neuron"}
    assert stats["layer_0/neuron"].raw_decay.shape == (() if count is None else (count,))
    full, name = initial(learned), "layer_0/neuron"
    # Of two programs XLA may multiply and add at once in one alone.
    chex.assert_trees_all_close(full[name], stats[name], rtol=2e-7, strict=True)
    chex.assert_trees_all_equal(full["layer_0/connection"], params["layer_0/connection"], strict=True)
    full |= {name: stats[name]}
    expected = learned.apply(full, None, inputs)[0].output
    assert 0 < np.mean(expected) < 0.9
    for implementation in (None, "composed"):
        out, state = fixed.apply(params, None, inputs, stats=stats, implementation=implementation)
        np.testing.assert_array_equal(out.output, expected)
        chex.assert_trees_all_equal(out.stats, stats, strict=True)
        fixed.apply(params, state, inputs, stats=out.stats)


def test_missing_stats_are_refused() -> None:
    net = network(INPUTS, [layer(8, neurons.lif((0.5, 0.9)))], leaky_readout(3))
    with pytest.raises(ValueError) as error:
        net.apply(initial(net), None, random_spikes(0.5))
    assert str(error.value) == (
        "network.apply: `stats` must hold those of layer_0/neuron, got None. "
        "Make them with network.initial_stats(key)."
    )


class Own(NamedTuple):
    """The params of a neuron of one's own."""

    pairs: jax.Array  # [neurons, 2]
    taps: jax.Array  # [4]
    threshold: jax.Array  # [neurons]


class OwnState(NamedTuple):
    """Its state."""

    v: jax.Array  # [batch, neurons]


def own(per: str, seen: list[Any]) -> neurons.Neuron:
    """A neuron whose constants have other axes than that of neurons."""

    def init(key: jax.Array, num_neurons: int, dtype: DTypeLike = jnp.float32) -> Own:
        pairs = jnp.arange(2 * num_neurons, dtype=dtype).reshape(num_neurons, 2)
        return Own(pairs, jnp.arange(4, dtype=dtype), jnp.ones(num_neurons, dtype))

    def integrate(params: Own, state: OwnState, inputs: jax.Array):
        seen.append(params)
        v = 0.5 * state.v + inputs + params.pairs[None, :, 0] + params.taps[0]
        return v, params.threshold, OwnState(v)

    def initial_state(params: Own, batch: int, num_neurons: int, dtype: DTypeLike = jnp.float32) -> OwnState:
        return OwnState(jnp.zeros((batch, num_neurons), jnp.float32))

    return neurons.Neuron("own", init, initial_state, integrate, per=per)


@pytest.mark.parametrize("per, owners", [("channel", 4), ("neuron", 24), ("layer", 1)])
def test_constants_of_ones_own_neurons_are_spread_along_their_axis_of_neurons(per: str, owners: int) -> None:
    """Whatever their lengths: `taps` has as many entries as the image has channels."""
    seen: list[Own] = []
    net = network((6, 2), [layer(conv1d(4, 3), own(per, seen))])
    params = initial(net)
    held = params["layer_0/neuron"]
    assert [leaf.shape for leaf in held] == [(owners, 2), (4,), (owners,)]
    jax.eval_shape(lambda params: net.apply(params, None, random_spikes(0.5, inputs=12)), params)
    assert [leaf.shape for leaf in seen[-1]] == [(24, 2), (4,), (24,)]


def test_constants_of_pairs_of_neurons_are_refused_per_channel() -> None:
    def init(key: jax.Array, num_neurons: int, dtype: DTypeLike = jnp.float32) -> Own:
        return Own(
            jnp.ones((num_neurons, num_neurons), dtype), jnp.ones(4, dtype), jnp.ones(num_neurons, dtype)
        )

    net = network((6, 2), [layer(conv1d(4, 3), dataclasses.replace(own("channel", []), init=init))])
    with pytest.raises(ValueError) as error:
        net.apply(initial(net), None, random_spikes(0.5, inputs=12))
    assert str(error.value) == (
        "Neuron.init: `own` must have constants of at most one axis of neurons, "
        "got [2, 2] for 2 neurons and [3, 3] for 3. Make them for each neuron with per='neuron'."
    )


def test_unknown_owners_of_constants_are_refused() -> None:
    with pytest.raises(ValueError) as error:
        layer(4, own("pixel", []))
    assert str(error.value) == (
        "layer: `neuron.per` must be 'channel', 'neuron' or 'layer', got 'pixel'. Choose one of these."
    )
