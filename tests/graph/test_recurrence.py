"""Recurrent layers as edges of the graph: as before they were ones, as a `lax.scan` by hand, and what is refused."""

import functools
from pathlib import Path
from typing import Any

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import snnjax
import snnjax.train
from snnjax import blocks, metrics, neurons, online
from snnjax._types import Params, Stats
from tests.numbers import array, assert_close
from tests.ops.common import jit

KEY = jax.random.key(3)
STEPS, BATCH, INPUTS, HIDDEN = 7, 2, 4, 5
LENGTHS = jnp.array([7, 4], jnp.int32)
ROOT = Path(__file__).parents[2]
GOLDEN = ROOT / "tests/golden"


def spikes_of(*shape: int) -> jax.Array:
    return array(np.random.default_rng(0).random(shape) < 0.4, jnp.float32)


def _back(**options):
    return snnjax.dense(HIDDEN, bias=False, **options)


# Layers and the options of `apply`. Their checkpoints were written when recurrent weights were part of the neurons
# (format 3, commit 68de8039): params, stats, gradients, outputs and the last state of the steps below.
BEFORE: dict[str, tuple[Any, dict[str, Any]]] = {
    "dense": (lambda: snnjax.layer(HIDDEN, neurons.adlif(), recurrent=True).named("h"), {}),
    "scanned": (
        lambda: snnjax.layer(
            HIDDEN,
            neurons.refractory(neurons.lif((0.5, 0.9), 0.3, learn_decay=True), steps=1),
            recurrent=True,
        ),
        {"lengths": LENGTHS},
    ),
    "listed": (
        lambda: snnjax.layer(
            HIDDEN, neurons.lif(), recurrent=snnjax.sparse(HIDDEN, fan_in=3, bias=False), capacity=2
        ),
        {"chunk": 3},
    ),
    "late": (
        lambda: snnjax.layer(HIDDEN, neurons.lif(0.8, 0.5), recurrent=[snnjax.axonal(3), _back()]),
        {"lengths": LENGTHS},
    ),
    "synaptic": (
        lambda: snnjax.layer(HIDDEN, neurons.lif(0.8, 0.5), recurrent=snnjax.synaptic(_back(), 3)),
        {},
    ),
}


def network_of(name: str) -> snnjax.Network:
    return snnjax.network(INPUTS, [BEFORE[name][0]()], snnjax.leaky_readout(2))


def results(net: snnjax.Network, params: Params, stats: Stats, **options) -> dict[str, Any]:
    """What the checkpoints hold besides params and stats."""

    def loss(params: Params):
        out, state = net.apply(params, None, spikes_of(STEPS, BATCH, INPUTS), stats=stats, **options)
        rates = sum(jnp.sum(each**2) for each in out.activity.values())
        return jnp.sum(out.output**2) + rates, (out.output, state)

    gradients, (output, state) = jax.grad(loss, has_aux=True)(params)
    return {"gradients": gradients, "output": output, "state": state}


@pytest.mark.parametrize("name", BEFORE)
def test_recurrent_layers_are_as_they_were(name: str) -> None:
    """The checkpoint is read by the table of old names; values, states and gradients are those that it holds."""
    net, path = network_of(name), GOLDEN / f"recurrent-{name}.safetensors"
    params, stats = jax.eval_shape(net.init, KEY), jax.eval_shape(net.initial_stats, KEY)
    run = functools.partial(results, net, **BEFORE[name][1])
    like = {"params": params, "stats": stats, **jax.eval_shape(run, params, stats)}
    held, _ = snnjax.train.load_checkpoint(path, like, net)
    for part, found in jit(run)(held["params"], held["stats"]).items():
        chex.assert_trees_all_close(found, held[part], rtol=1e-5, atol=1e-6, strict=True)


def test_shipped_networks_are_read_by_the_old_names() -> None:
    """A recurrent one, and one of convolutions."""
    for name, sizes in {"qtdb-small": (4, 6), "nmnist-conv": (2312, 10)}.items():
        trained = snnjax.train.read_trained(ROOT / f"docs/pretrained/{name}.safetensors", *sizes)
        like = jax.eval_shape(trained.network.init, KEY)
        assert jax.tree.structure(trained.params) == jax.tree.structure(like)


@jax.custom_vjp
def spike(distance: jax.Array) -> jax.Array:
    return (distance > 0).astype(distance.dtype)


spike.defvjp(lambda x: (spike(x), x), lambda x, g: (g / (1 + 10 * jnp.abs(x)) ** 2,))


def lif(v, s, current):
    v = 0.9 * (v - jax.lax.stop_gradient(s)) + 0.1 * current
    return v, spike(v - 1)


def by_hand(params: Params, x, first: int) -> tuple[Any, Any]:
    """A low layer that receives the spikes of `first` steps before of a recurrent one above it."""

    def weights(name: str):
        return params[name].weights

    def bias(name: str):
        return params[f"{name}/connection"].bias[None]

    def step(carry, x):
        v, s, u, tops, y = carry
        current = x @ weights("low/connection") + bias("low") + tops[0] @ weights("low/recurrent")
        v, s = lif(v, s, current)
        current = s @ weights("top/connection") + bias("top") + tops[-1] @ weights("top/recurrent")
        u, top = lif(u, tops[-1], current)
        y = 0.95 * y + 0.05 * (top @ weights("readout/connection") + bias("readout"))
        return (v, s, u, jnp.concatenate([tops[1:], top[None]]), y), (y, s)

    none = lambda count: jnp.zeros((BATCH, count))  # noqa: E731
    start = none(HIDDEN), none(HIDDEN), none(3), jnp.zeros((first, BATCH, 3)), none(2)
    return jax.lax.scan(step, start, x)[1]


def feedback(steps: int = 1, is_recurrent: bool = True, **options) -> snnjax.Network:
    low = snnjax.layer(HIDDEN, recurrent=[blocks.late("top", 3, steps=steps), _back()], **options).named(
        "low"
    )
    return snnjax.network(
        INPUTS, [low, snnjax.layer(3, recurrent=is_recurrent).named("top")], snnjax.leaky_readout(2)
    )


def loud(net: snnjax.Network):
    """Params with which about every third neuron spikes in a step."""
    scaled = {1: lambda leaf: leaf + 0.3, 2: lambda leaf: 2 * leaf}
    return jax.tree.map(lambda leaf: scaled[leaf.ndim](leaf), net.init(KEY))


@pytest.mark.parametrize("implementation", [None, "composed"])
@pytest.mark.parametrize("steps", [1, 3])
def test_feedback_from_above_is_a_scan_by_hand(steps: int, implementation: str | None) -> None:
    """Values and all gradients; in pieces that carry a state, and in forward mode where every layer is composed."""
    net, x = feedback(steps), spikes_of(12, BATCH, INPUTS)
    params = loud(net)

    def total(y, rates):
        return jnp.sum(y**2) + jnp.sum(rates**2)

    def ours(params: Params, x):
        out, _ = net.apply(params, None, x, implementation=implementation)
        return total(out.output, out.activity["low/neuron"]), out.output

    def theirs(params: Params, x):
        y, spikes = by_hand(params, x, steps)
        return total(y, jnp.mean(spikes, axis=0)), y

    (found, expected), tangents = (
        (jit(jax.value_and_grad(own, (0, 1), has_aux=True))(params, x) for own in (ours, theirs)),
        jax.tree.map(jnp.ones_like, params),
    )
    chex.assert_trees_all_close(found, expected, rtol=1e-5, atol=1e-6)
    assert all(float(jnp.abs(leaf).max()) > 1e-4 for leaf in jax.tree.leaves(expected[1]))
    first, state = net.apply(params, None, x[:5], implementation=implementation)
    rest, _ = net.apply(params, state, x[5:], implementation=implementation)
    pieces = jnp.concatenate([first.output, rest.output])
    np.testing.assert_allclose(pieces, expected[0][1], rtol=1e-5, atol=1e-6)
    if implementation == "composed":
        _, tangent = jax.jvp(lambda params: ours(params, x)[0], (params,), (tangents,))
        sums = jax.tree.map(jnp.sum, expected[1][0])
        np.testing.assert_allclose(tangent, sum(jax.tree.leaves(sums)), rtol=1e-4)


def test_steps_that_run_at_once_need_not_divide_a_call() -> None:
    """Nothing returns within three steps: seven are three pieces, which end as steps one by one do."""
    net, x = feedback(3, is_recurrent=False), spikes_of(7, BATCH, INPUTS)
    params = loud(net)
    whole, alone = (jit(functools.partial(net.apply, chunk=chunk))(params, None, x) for chunk in (None, 1))
    assert float(whole[0].activity["top/neuron"].max()) > 0
    chex.assert_trees_all_close(whole, alone, rtol=1e-6, atol=1e-6)


def test_a_current_that_a_loop_reads_twice_has_both_cotangents() -> None:
    """Recurrent weights have the cotangent of the current beside them only where nothing else reads that."""
    neuron, back = neurons.lif(0.5, 0.3), [blocks.late("top", 3), snnjax.dense(3, bias=False)]
    low = snnjax.layer(3, neuron, recurrent=back).named("low")
    both = blocks.join("add").receiving("low", "low/connection")
    net = snnjax.network(INPUTS, [low, both, blocks.spiking(neuron).named("top")], snnjax.leaky_readout(2))
    params, x = loud(net), spikes_of(STEPS, BATCH, INPUTS)

    def loss(implementation: str | None, params: Params):
        return jnp.sum(net.apply(params, None, x, implementation=implementation)[0].output ** 2)

    ours, theirs = (jit(jax.grad(functools.partial(loss, by)))(params) for by in (None, "composed"))
    assert np.any(theirs["low/recurrent"].weights != 0)
    assert_close(ours, theirs, of_largest=1e-5)


def test_a_loop_works_as_any_other_part_of_a_network() -> None:
    """Lengths, chunks, capacity, `vmap` of networks, half precision, dropout, `init` on a sample, and nesting."""
    net, x = feedback(capacity=3, dropout=blocks.dropout(0.5)), spikes_of(STEPS, BATCH, INPUTS)
    params = net.init(KEY, x, target_activity=0.15)
    out, _ = net.apply(params, None, x)
    assert all(0.05 < float(jnp.mean(each)) < 0.6 for each in out.activity.values())

    def run(params: Params, **options):
        options = {"lengths": LENGTHS, "train": True, "key": KEY} | options
        out, state = net.apply(params, None, x, **options)
        return jnp.sum(out.output**2), (out.output, state)

    whole = jit(jax.grad(run, has_aux=True))(params)
    pieces = jit(jax.grad(functools.partial(run, chunk=3), has_aux=True))(params)
    chex.assert_trees_all_close(pieces, whole, rtol=1e-5, atol=1e-6)
    both = jax.tree.map(lambda leaf: jnp.stack([leaf, 0 * leaf]), params)
    many = jit(jax.vmap(jax.grad(run, has_aux=True)))(both)
    chex.assert_trees_all_close(jax.tree.map(lambda leaf: leaf[0], many), whole, rtol=1e-5, atol=1e-6)
    half = jax.tree.map(lambda leaf: leaf.astype(jnp.bfloat16), params)
    assert {leaf.dtype.name for leaf in jax.tree.leaves(jax.grad(run, has_aux=True)(half)[0])} == {"bfloat16"}
    mesh, spec = jax.sharding.Mesh(jax.devices()[:1], ("rows",)), jax.sharding.PartitionSpec
    specs = {"in_specs": (spec(), spec(None, "rows")), "out_specs": spec()}

    def of_rows(params: Params, x):
        return jax.lax.psum(jnp.sum(net.apply(params, None, x)[0].output ** 2), "rows")

    sharded = jit(jax.grad(lambda params: jax.shard_map(of_rows, mesh=mesh, **specs)(params, x)))(params)
    alone = jit(jax.grad(lambda params: jnp.sum(net.apply(params, None, x)[0].output ** 2)))(params)
    chex.assert_trees_all_close(sharded, alone, rtol=1e-5, atol=1e-6)
    outer = snnjax.network(INPUTS, [net])
    inner = {f"network_0/{name}": own for name, own in params.items()}
    np.testing.assert_array_equal(outer.apply(inner, None, x)[0].output, out.output)
    assert not any("loop" in line and "readout" in line for line in outer.paths.splitlines())


def test_only_the_nodes_of_a_loop_run_step_by_step() -> None:
    """What stands between a late signal and its source, but in no loop, runs behind it."""
    items = [
        blocks.late("out", 3).named("back"),
        snnjax.dense(3).named("own"),
        snnjax.dense(3).named("aside").receiving("input"),
        blocks.join("add").named("sum").receiving("own", "aside"),
        snnjax.dense(5).named("beside").receiving("back"),
        blocks.spiking().named("out").receiving("sum"),
        blocks.join("concatenate").receiving("beside", "out"),
    ]
    net = snnjax.network(4, items)
    assert [node.name for node in net.nodes][:5] == ["aside", "back", "own", "sum", "out"]
    assert "alone: beside" in net.paths and "loop: back > own > sum > out" in net.paths


def test_lists_that_return_are_those_of_dense_spikes() -> None:
    """Of a scanned layer with synapses, all of whose spikes fit into its lists."""
    few = snnjax.sparse(HIDDEN, fan_in=2, bias=False)
    neuron = neurons.lif(0.8, 0.3, reset_time="after_decay")
    listed, dense = (
        snnjax.network(
            INPUTS,
            [snnjax.layer(HIDDEN, neuron, recurrent=few, capacity=capacity, second_threshold=second)],
            snnjax.leaky_readout(2),
        )
        for capacity, second in ((HIDDEN, -jnp.inf), (None, None))
    )
    params, stats = listed.init(KEY), listed.initial_stats(KEY)
    found, expected = (jit(functools.partial(results, net))(params, stats) for net in (listed, dense))
    assert float(jnp.abs(expected["gradients"]["layer_0/recurrent"].weights).max()) > 1e-5
    chex.assert_trees_all_close(found, expected, rtol=1e-5, atol=1e-6)


REFUSED = {
    "late: `steps` must be an integer of at least 1, got 0. Pass 1 or more.": lambda: blocks.late(
        "a", 3, steps=0
    ),
    "late: `source` must be the name of a block, got 3. Pass the name of a layer.": lambda: blocks.late(3, 3),
    "late: `source` must be the name of a block, got 'top'. Choose input, back or dense_0.": lambda: (
        snnjax.network(4, [blocks.late("top", 3).named("back"), snnjax.dense(2)])
    ),
    "late: `shape` must be that of 'input', (4,), got (3,). Pass it.": lambda: snnjax.network(
        4, [blocks.late("input", 3)]
    ),
    "network: `back` must be in a loop that receives a signal from outside, got none. "
    "Add one with blocks.join, such as that of an input.": lambda: snnjax.network(
        4, [blocks.late("out", 3).named("back"), snnjax.dense(3), blocks.spiking().named("out")]
    ),
}


@pytest.mark.parametrize("expected", REFUSED)
def test_what_is_no_loop_is_refused(expected: str) -> None:
    with pytest.raises(ValueError) as error:
        REFUSED[expected]()
    assert str(error.value) == expected


def test_metrics_count_feedback_and_online_rules_refuse_it() -> None:
    net, x = feedback(), spikes_of(STEPS, BATCH, INPUTS)
    params = loud(net)
    out, _ = net.apply(params, None, x, record="top/neuron")
    counts = metrics.input_counts(x), out.activity, jnp.full(BATCH, STEPS)
    with_feedback = metrics.synaptic_operations(net, params, *counts).effective_acs
    params["low/recurrent"] = params["low/recurrent"]._replace(weights=jnp.zeros((3, HIDDEN)))
    without = metrics.synaptic_operations(net, params, *counts).effective_acs
    spikes = jnp.sum(out.recorded["top/neuron"]) / BATCH
    np.testing.assert_allclose(with_feedback - without, HIDDEN * spikes, rtol=1e-6)
    with pytest.raises(ValueError, match=r"online\.eprop: `network` must be a chain of layers.*`low/late`"):
        online.eprop(net, lambda output, targets: jnp.sum(output))
