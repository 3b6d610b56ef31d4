"""`sparse`: the same currents, spikes and gradients as dense weights that are 0 where there is no synapse."""

from typing import Any

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import snnjax
from snnjax import Synapses, blocks, metrics
from snnjax._types import Params
from tests.numbers import array

KEY = jax.random.key(3)
STEPS, BATCH, INPUTS, HIDDEN = 6, 3, 12, 10
BACK = "layer_0/recurrent"
ONE_OF = "sparse: `fan_out` must be given, or `fan_in`, `probability` or `synapses` in its place"


def network(make: Any, recurrent: Any, capacity: float | None) -> snnjax.Network:
    layer = snnjax.layer(make(HIDDEN), recurrent=recurrent, capacity=capacity)
    return snnjax.network(INPUTS, [layer], snnjax.leaky_readout(4))


def as_dense(synapses: Synapses, params: blocks.SparseParams) -> blocks.LinearParams:
    return blocks.LinearParams(synapses.to_dense(params.weights), params.bias)


@pytest.mark.parametrize("capacity", [None, 0.4])
@pytest.mark.parametrize("is_recurrent", [False, True])
def test_equals_dense_weights(is_recurrent: bool, capacity: float | None) -> None:
    """Values, and gradients through `to_dense`; sums of up to 12 numbers, in another order."""
    sparse = lambda count: snnjax.sparse(count, fan_in=4)  # noqa: E731
    feedback = snnjax.sparse(HIDDEN, fan_out=3, bias=False) if is_recurrent else False
    few, full = network(sparse, feedback, capacity), network(snnjax.dense, is_recurrent, capacity)
    assert not is_recurrent or "fused: layer_0/late" in few.paths
    params, stats = few.init(KEY), few.initial_stats(KEY)
    inputs = array(np.random.default_rng(0).random((STEPS, BATCH, INPUTS)) < 0.3, jnp.float32)

    def dense(params: Params) -> Any:
        out = {
            **params,
            "layer_0/connection": as_dense(stats["layer_0/connection"], params["layer_0/connection"]),
        }
        if is_recurrent:
            out[BACK] = as_dense(stats[BACK], params[BACK])
        return out

    def of(net: snnjax.Network, convert: Any, held: Any) -> Any:
        def total(params: Params) -> Any:
            out, _ = net.apply(convert(params), None, inputs, stats=held)
            return jnp.sum(out.output**2), out

        return jax.jit(jax.value_and_grad(total, has_aux=True))(params)

    (_, expected), g_expected = of(full, dense, None)
    (_, got), g_got = of(few, lambda params: params, stats)
    assert float(jnp.mean(expected.activity["layer_0/neuron"])) > 0.02
    chex.assert_trees_all_equal(got.activity, expected.activity)
    chex.assert_trees_all_close((got.output, g_got), (expected.output, g_expected), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("lengths", [None, [STEPS, 3, 0]])
def test_pieces_of_sequences_give_the_same(lengths: list[int] | None) -> None:
    """What a state feeds back reaches the first step densely, then lists do: gradients up to rounding of their sums."""
    net = network(lambda count: snnjax.sparse(count, fan_in=4), snnjax.sparse(HIDDEN, fan_out=3), 0.4)
    params, stats = net.init(KEY), net.initial_stats(KEY)
    params[BACK] = params[BACK]._replace(bias=jnp.linspace(-0.5, 0.5, HIDDEN))
    inputs = array(np.random.default_rng(0).random((STEPS, BATCH, INPUTS)) < 0.3, jnp.float32)
    ends = None if lengths is None else array(lengths, jnp.int32)

    def of(chunk: int | None) -> Any:
        def total(params: Params) -> Any:
            out, state = net.apply(params, None, inputs, stats=stats, chunk=chunk, lengths=ends)
            return jnp.sum(out.output**2) + sum(jnp.sum(leaf) for leaf in jax.tree.leaves(state)), state

        return jax.jit(jax.value_and_grad(total, has_aux=True))(params)

    ((_, state), gradients), ((_, state_of_pieces), of_pieces) = of(None), of(4)
    chex.assert_trees_all_close((state_of_pieces, of_pieces), (state, gradients), rtol=1e-5, atol=1e-6)


def test_synapses_of_other_neurons_are_refused() -> None:
    """As many synapses, one target more."""
    net = network(lambda count: snnjax.sparse(count, fan_out=3), False, None)
    stats = {"layer_0/connection": Synapses.fixed_fan_out(KEY, INPUTS, HIDDEN + 1, 3)}
    with pytest.raises(ValueError, match=r"network\.apply: `stats"):
        net.apply(net.init(KEY), None, jnp.zeros((2, 1, INPUTS)), stats=stats)


def test_synapses_are_drawn_with_a_probability_or_given() -> None:
    """So many pairs, none twice; given synapses make blocks that are equal, and networks that trace once."""
    block = snnjax.sparse(HIDDEN, probability=0.3)
    drawn = [block.initial_stats(key, (INPUTS,)) for key in jax.random.split(KEY)]
    pairs = [{*zip(each.sources().tolist(), each.targets.tolist(), strict=True)} for each in drawn]
    assert [len(own) for own in pairs] == [36, 36] and pairs[0] != pairs[1]
    none, all_pairs = (snnjax.sparse(HIDDEN, probability=each).num_synapses((INPUTS,)) for each in (0, 1.0))
    assert (none, all_pairs) == (0, INPUTS * HIDDEN)
    given = snnjax.sparse(HIDDEN, synapses=drawn[0])
    assert given == snnjax.sparse(HIDDEN, synapses=drawn[0]) != snnjax.sparse(HIDDEN, synapses=drawn[1])
    net = network(lambda _: given, False, None)
    stats = net.initial_stats(KEY)
    chex.assert_trees_all_equal(stats["layer_0/connection"], drawn[0], strict=True)
    assert net.init(KEY)["layer_0/connection"].weights.shape == (36,)


def test_traced_synapses_are_refused() -> None:
    with pytest.raises(ValueError) as refused:
        jax.jit(lambda given: snnjax.sparse(HIDDEN, synapses=given))(
            Synapses.fixed_fan_out(KEY, 2, HIDDEN, 1)
        )
    expected = "sparse: `synapses` must be of known values, got a tracer. Make the network outside of jit."
    assert str(refused.value) == expected


def test_operations_are_those_of_synapses() -> None:
    net = network(lambda count: snnjax.sparse(count, fan_out=2), False, None)
    params, stats = net.init(KEY), net.initial_stats(KEY)
    counts, rates = jnp.ones((1, INPUTS)), {"layer_0/neuron": jnp.zeros((1, HIDDEN))}
    cost = metrics.synaptic_operations(net, params, counts, rates, jnp.array([5]), stats=stats)
    assert (cost.effective_acs, cost.dense) == (2 * INPUTS, 5 * (2 * INPUTS + 4 * HIDDEN))


def test_init_reaches_the_activity_of_a_sample() -> None:
    net = network(lambda count: snnjax.sparse(count, fan_in=4), False, None)
    inputs = array(np.random.default_rng(0).random((50, 8, INPUTS)) < 0.2, jnp.float32)
    stats = net.initial_stats(KEY)
    params = net.init(KEY, inputs, stats=stats, target_activity=0.1)
    out, _ = net.apply(params, None, inputs, stats=stats)
    assert abs(float(jnp.mean(out.activity["layer_0/neuron"])) - 0.1) < 0.02


@pytest.mark.parametrize(
    "options, message",
    [
        ({}, f"{ONE_OF}, got none. Pass one of them."),
        ({"fan_out": 1, "fan_in": 2}, f"{ONE_OF}, got fan_out and fan_in. Pass one of them."),
        ({"fan_out": -1}, "sparse: `fan_out` must be an integer of at least 0, got -1. Pass 0 or more."),
        (
            {"fan_out": 11},
            "sparse: `fan_out` must be at most 10, the neurons to choose from, got 11. Choose fewer.",
        ),
        (
            {"fan_in": 13},
            "sparse: `fan_in` must be at most 12, the neurons to choose from, got 13. Choose fewer.",
        ),
        (
            {"probability": 2},
            "sparse: `probability` must be between 0 and 1, got 2. Pass the share of pairs that are connected.",
        ),
        (
            {"synapses": np.ones((INPUTS, HIDDEN), bool)},
            "sparse: `synapses` must be Synapses, got bool[12, 10]. Make them with Synapses.from_mask, for instance.",
        ),
        (
            {"synapses": Synapses.from_mask(np.ones((INPUTS, HIDDEN + 1), bool))},
            "sparse: `synapses` must lead to 10 neurons, got 11. Make them for the neurons of this block.",
        ),
        (
            {"synapses": Synapses.from_mask(np.ones((INPUTS + 1, HIDDEN), bool))},
            "sparse: `synapses` must be of 12 neurons, like the inputs, got 13. Make them for the block before.",
        ),
    ],
)
def test_what_cannot_be_is_refused(options: Any, message: str) -> None:
    with pytest.raises(ValueError) as refused:
        network(lambda count: snnjax.sparse(count, **options), False, None)
    assert str(refused.value) == message
