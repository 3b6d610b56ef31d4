"""`synaptic`: the same network in every way to run it, as the definition, and what it leaves to others or refuses."""

from typing import Any

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import snnjax
from snnjax import Synapses, blocks, metrics, neurons, online
from snnjax._types import Params, Stats
from snnjax.nir import to_nir
from snnjax.quantisation import quantise_network
from tests.graph.helpers import initial
from tests.numbers import array
from tests.ops.common import jit

KEY = jax.random.key(3)
STEPS, BATCH, INPUTS, HIDDEN, LONGEST = 8, 3, 6, 5, 3
INPUT = array(np.random.default_rng(0).random((STEPS, BATCH, INPUTS)) < 0.4, jnp.float32)
NAME, BACK = "layer_0/connection", "layer_0/recurrent"


def network(connection, **options) -> snnjax.Network:
    return snnjax.network(INPUTS, [snnjax.layer(connection, **options)], snnjax.leaky_readout(4))


def total(net: snnjax.Network, params: Params, stats: Stats, **options):
    out, state = net.apply(params, None, INPUT, stats=stats, lengths=jnp.array([8, 5, 0]), **options)
    return jnp.sum(out.output**2) + jnp.sum(out.activity["layer_0/neuron"]), state


CONNECTIONS = {
    "dense": lambda: snnjax.synaptic(snnjax.dense(HIDDEN), LONGEST),
    "masked, fixed": lambda: snnjax.synaptic(
        snnjax.dense(HIDDEN, mask=np.arange(INPUTS * HIDDEN).reshape(INPUTS, HIDDEN) % 3 > 0),
        LONGEST,
        learn=False,
    ),
    "sparse": lambda: snnjax.synaptic(snnjax.sparse(HIDDEN, fan_in=3), LONGEST, initial=(1, 3)),
    "one fixed delay": lambda: snnjax.synaptic(
        snnjax.sparse(HIDDEN, fan_out=2, bias=False), LONGEST, initial=2, learn=False
    ),
}


@pytest.mark.parametrize(
    "make, capacity", [*zip(CONNECTIONS.values(), (None, 3, 3, None), strict=True)], ids=CONNECTIONS
)
def test_pieces_of_references_are_the_whole(make, capacity: int | None) -> None:
    """Value, state and gradients: the state holds what is under way."""
    net = network(make(), capacity=capacity)
    stats = net.initial_stats(KEY)
    params = initial(net, INPUT, stats=stats, target_activity=0.2)

    def of(**options):
        run = lambda params: total(net, params, stats, **options)  # noqa: E731
        return jit(jax.value_and_grad(run, has_aux=True))(params)

    whole = of()
    assert any(bool(jnp.any(leaf != 0)) for leaf in jax.tree.leaves(whole[1][NAME]))
    pieces = of(chunk=4, implementation="reference")
    chex.assert_trees_all_close(pieces, whole, rtol=1e-4, atol=1e-5)


def test_equal_delays_are_axonal_ones() -> None:
    late = network(snnjax.synaptic(snnjax.dense(HIDDEN), LONGEST, initial=1.5))
    before = network([snnjax.axonal(LONGEST, initial=1.5), snnjax.dense(HIDDEN)])
    params = late.init(KEY)
    own = params[NAME]
    names = f"{NAME}/axonal_0", f"{NAME}/dense_0"
    others = {name: params[name] for name in params if name != NAME} | {
        names[0]: blocks.DelayParams(own.raw_delay[:, 0]),
        names[1]: blocks.LinearParams(own.weights, own.bias),
    }
    gradients = [
        jit(jax.grad(lambda p, net=net: total(net, p, None)[0]))(each)
        for net, each in ((late, params), (before, others))
    ]
    chex.assert_trees_all_close(
        gradients[0][NAME].weights, gradients[1][names[1]].weights, rtol=1e-4, atol=1e-5
    )
    sums = jnp.sum(gradients[0][NAME].raw_delay, axis=1)
    chex.assert_trees_all_close(sums, gradients[1][names[0]].raw_delay, rtol=1e-4, atol=1e-5)


def test_recurrent_delays_come_on_top_of_the_step() -> None:
    """Of one delay of 2: the spikes of three steps before."""
    feedback = snnjax.synaptic(snnjax.dense(HIDDEN, bias=False), LONGEST, initial=2, learn=False)
    net = network(snnjax.dense(HIDDEN), recurrent=feedback)
    params = net.init(KEY)
    zero = params | {BACK: jax.tree.map(jnp.zeros_like, params[BACK])}
    with_feedback, without = (
        net.apply(each, None, INPUT, record="layer_0/neuron")[0].recorded["layer_0/neuron"]
        for each in (params, zero)
    )
    first = int(jnp.argmax(jnp.any(without != 0, axis=(1, 2))))
    np.testing.assert_array_equal(with_feedback[: first + 3], without[: first + 3])
    assert bool(jnp.any(with_feedback[first + 3 :] != without[first + 3 :]))


def feedback_of(kind: str, least: int):
    """Recurrent connections with the delays [2, 6]."""
    weights, delays = snnjax.dense(HIDDEN, bias=False), dict[str, Any](min_delay=least, initial=(2.0, 6.0))
    if kind == "axonal":
        return [snnjax.axonal(6, **delays), weights]
    return snnjax.synaptic(
        weights if kind == "dense" else snnjax.sparse(HIDDEN, fan_in=2, bias=False), 6, **delays
    )


def late(params: Params):
    """The params of delays from 0 on that are those of delays from 2 on."""
    (name,) = params.keys() & {BACK, f"{BACK}/axonal_0"}
    share = (2 + 4 * jax.nn.sigmoid(params[name].raw_delay)) / 6
    return params | {name: params[name]._replace(raw_delay=jnp.log(share / (1 - share)))}


@pytest.mark.parametrize(
    "kind, capacity, scanned",
    [("dense", None, True), ("axonal", 3, False), ("sparse", None, True), ("sparse", 2, False)],
)
def test_spikes_are_fed_back_for_as_many_steps_as_they_take(
    kind: str, capacity: int | None, scanned: bool
) -> None:
    """Value and gradients with `min_delay`, of a run that is cut at other steps, are those without it."""
    neuron = neurons.lif(reset_time="after_decay") if scanned else neurons.lif()
    nets = [
        network(snnjax.dense(HIDDEN), neuron=neuron, recurrent=feedback_of(kind, least), capacity=capacity)
        for least in (2, 0)
    ]
    assert ("loop: layer_0/late > " in str(nets[0].paths)) == scanned
    stats = nets[0].initial_stats(KEY)
    params = initial(nets[0], INPUT, target_activity=0.3, stats=stats)

    def of(net: snnjax.Network, moved, **options):
        run = lambda params: total(net, moved(params), stats, **options)[0]  # noqa: E731
        return jit(jax.value_and_grad(run))(params)

    chex.assert_trees_all_close(
        of(nets[0], lambda own: own, chunk=5), of(nets[1], late), rtol=1e-4, atol=1e-5
    )


@pytest.mark.parametrize("learn, capacity", [(True, None), (False, 3)])
def test_a_recurrent_layer_is_the_same_fused_and_scanned(learn: bool, capacity: int | None) -> None:
    """Value, state and gradients beside those with a bias of 0, for which a layer is scanned."""
    nets = [
        network(
            snnjax.dense(HIDDEN),
            recurrent=snnjax.synaptic(snnjax.dense(HIDDEN, bias=bias), LONGEST, learn=learn),
            capacity=capacity,
        )
        for bias in (False, True)
    ]
    assert ["loop: layer_0/late" in str(net.paths) for net in nets] == [False, True]
    stats, params = nets[0].initial_stats(KEY), initial(nets[0], INPUT, target_activity=0.3)
    biased = params | {BACK: params[BACK]._replace(bias=jnp.zeros(HIDDEN))}

    def of(net: snnjax.Network, params: Params, **options):
        run = lambda params: total(net, params, stats, **options)  # noqa: E731
        (value, state), g = jit(jax.value_and_grad(run, has_aux=True))(params)
        return value, state, g[BACK].weights, g[BACK].raw_delay, g["layer_0/connection"]

    fused = of(nets[0], params)
    assert bool(jnp.any(fused[1][BACK].pending != 0))
    for other in (of(nets[1], biased), of(nets[0], params, implementation="reference")):
        chex.assert_trees_all_close(fused, other, rtol=1e-4, atol=1e-5)


def test_a_bias_is_fed_back_in_every_step() -> None:
    """Its current does not wait for a spike, so spikes are fed back step by step."""
    biased = network(snnjax.dense(HIDDEN), recurrent=snnjax.synaptic(snnjax.dense(HIDDEN), 6, min_delay=2))
    state = biased.initial_state(biased.init(KEY), batch=1)["layer_0/late"]
    assert state.sent.shape == (1, 1, HIDDEN)


def test_operations_are_those_of_the_connection() -> None:
    net = network(snnjax.synaptic(snnjax.sparse(HIDDEN, fan_out=2), LONGEST))
    params, stats = net.init(KEY), net.initial_stats(KEY)
    counts, rates = jnp.ones((1, INPUTS)), {"layer_0/neuron": jnp.zeros((1, HIDDEN))}
    cost = metrics.synaptic_operations(net, params, counts, rates, jnp.array([5]), stats=stats)
    assert (cost.effective_acs, cost.dense) == (2 * INPUTS, 5 * (2 * INPUTS + 4 * HIDDEN))


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(
        ValueError, match=r"synaptic: `connection` must be dense or sparse, got .*axonal\(max_delay\)"
    ):
        snnjax.synaptic(snnjax.conv1d(2, 3), 4)
    refused = (
        ({"initial": 5}, r"`initial` must be a number or a range .* from 0 to 4, got 5"),
        ({"min_delay": 1, "initial": 0}, r"`initial` must be a number or a range .* from 1 to 4, got 0"),
        ({"min_delay": 4}, r"`min_delay` must be below max_delay, 4, got 4"),
    )
    for options, expected in refused:
        with pytest.raises(ValueError, match=f"synaptic: {expected}"):
            snnjax.synaptic(snnjax.dense(2), 4, **options)
    net = network(snnjax.synaptic(snnjax.sparse(HIDDEN, fan_out=2), LONGEST))
    wrong = {NAME: blocks.SynapticStats(Synapses.fixed_fan_out(KEY, INPUTS, HIDDEN + 1, 2))}
    with pytest.raises(ValueError, match=r"network\.apply: `stats"):
        net.apply(net.init(KEY), None, INPUT, stats=wrong)


def test_who_does_not_take_them_says_so() -> None:
    """NIR and online rules refuse; weights of 8 bits pass them over."""
    net = network(snnjax.synaptic(snnjax.dense(HIDDEN), LONGEST))
    params = net.init(KEY)
    with pytest.raises(
        ValueError, match="to_nir: `network` must hold blocks that NIR has nodes for, got synaptic"
    ):
        to_nir(net, params, dt=1e-3)
    with pytest.raises(
        ValueError,
        match=r"online\.eprop: `network` must be a chain .* got 0 connections before `\S*` \(synaptic\)",
    ):
        online.eprop(net, lambda output, label: jnp.sum(output))
    chex.assert_trees_all_equal(quantise_network(params)[NAME], params[NAME])
