"""Parameters, states and checkpoints of another network are refused, over all neurons, connections and switches."""

import importlib
import itertools
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import snnjax
import snnjax.nir
from snnjax import (
    axonal,
    blocks,
    conv1d,
    dense,
    layer,
    leaky_readout,
    losses,
    network,
    neurons,
    online,
    residual,
    spiking_readout,
    sum_pool,
    train,
)
from snnjax._types import Params, Signal, Stats
from snnjax.blocks.linear import LinearParams
from snnjax.graph.describe import describe, first_difference
from snnjax.graph.run import Results
from snnjax.quantisation import Quantised, quantise_network
from snnjax.train import load_checkpoint, save_checkpoint
from tests.graph.helpers import initial

INPUTS, STEPS, BATCH = 6, 3, 2
KEY = jax.random.key(0)
MASK = np.arange(INPUTS * 8).reshape(INPUTS, 8) % 3 > 0


def one(
    neuron=None,
    *,
    outputs: int = 3,
    shape=INPUTS,
    before=(),
    at=8,
    **options,
):
    return network(shape, [*before, layer(at, neuron, **options)], leaky_readout(outputs))


def image(*items) -> snnjax.Network:
    return network((3, 2), items, leaky_readout(3))


# Networks by their parameters: those of one row differ only in switches and initial values, which parameters do not
# show, so that one may be trained and another one run.
ALIKE: dict[str, dict[str, snnjax.Network]] = {
    "lif": {
        "lif": one(),
        "decay": one(neurons.lif(0.8)),
        "threshold": one(neurons.lif(threshold=0.5)),
        "reset": one(neurons.lif(reset="zero")),
        "detach_reset": one(neurons.lif(detach_reset=False)),
        "normalize": one(neurons.lif(normalize=False)),
        "surrogate": one(neurons.lif(surrogate="arctan")),
        "slope": one(neurons.lif(surrogate=snnjax.surrogates.superspike(slope=3.0))),
        "inclusive": one(neurons.lif(inclusive=True)),
        "reset_time": one(neurons.lif(reset_time="immediate")),
        "spike_from": one(neurons.lif(spike_from="old")),
        "capacity": one(capacity=3),
        "other capacity": one(capacity=4),
        "second_threshold": one(capacity=3, second_threshold=0.5),
        "record_dtype": one(record_dtype=jnp.bfloat16),
        "mask": one(at=dense(8, mask=MASK)),
        "other mask": one(at=dense(8, mask=~MASK)),
        "cotangents": one(at=dense(8, cotangent_dtype=jnp.bfloat16)),
        "exact cotangents": one(at=dense(8, cotangent_dtype=jnp.bfloat16, exact_within=0.5)),
        "readout decay": network(INPUTS, [layer(8)], leaky_readout(3, decay=0.9)),
        "readout gain": network(INPUTS, [layer(8)], leaky_readout(3, normalize=False)),
        "image": network((3, 2), [layer(8)], leaky_readout(3)),
    },
    "learn_decay": {
        "learn_decay": one(neurons.lif(learn_decay=True)),
        "drawn threshold": one(neurons.lif(threshold=(0.5, 1.0), learn_decay=True)),
    },
    "learn_threshold": {"learn_threshold": one(neurons.lif(learn_threshold=True))},
    "learned readout": {"learned readout": network(INPUTS, [layer(8)], leaky_readout(3, learn_decay=True))},
    "one decay": {"one decay": one(neurons.lif(per="layer", learn_decay=True))},
    "integrate_and_fire": {"integrate_and_fire": one(neurons.integrate_and_fire(learn_threshold=True))},
    "current_lif": {
        "current_lif": one(neurons.current_lif(learn_decay=True)),
        "normalize_synapse": one(neurons.current_lif(learn_decay=True, normalize_synapse=False)),
    },
    "adaptive_lif": {
        "adaptive_lif": one(neurons.adaptive_lif(learn_decay=True)),
        "after_decay": one(neurons.adaptive_lif(learn_decay=True, reset_time="after_decay")),
    },
    "adlif": {"adlif": one(neurons.adlif())},
    "se_adlif": {"se_adlif": one(neurons.se_adlif())},
    "resonate_and_fire": {"resonate_and_fire": one(neurons.resonate_and_fire())},
    "izhikevich": {
        "izhikevich": one(neurons.izhikevich(learn=True)),
        "preset": one(neurons.izhikevich("chattering", learn=True)),
    },
    "refractory": {
        "refractory": one(neurons.refractory(neurons.lif(learn_decay=True), 2)),
        "refractory time": one(neurons.refractory(neurons.lif(learn_decay=True), 3)),
    },
    "refractory adlif": {"refractory adlif": one(neurons.refractory(neurons.adlif(), 2))},
    "wider": {"wider": one(at=16)},
    "more outputs": {"more outputs": one(outputs=4)},
    "more inputs": {"more inputs": one(shape=12)},
    "no bias": {"no bias": one(at=dense(8, bias=False))},
    "no readout bias": {"no readout bias": network(INPUTS, [layer(8)], leaky_readout(dense(3, bias=False)))},
    "recurrent": {"recurrent": one(recurrent=True)},
    "deeper": {"deeper": network(INPUTS, [layer(8), layer(8)], leaky_readout(3))},
    "spiking": {
        "spiking": network(INPUTS, [layer(8)], spiking_readout(3, neurons.lif(learn_threshold=True)))
    },
    "delays": {
        "delays": one(before=[axonal(3)]),
        "max_delay": one(before=[axonal(4)]),
        "initial delays": one(before=[axonal(3, initial=1.0)]),
    },
    "one delay": {"one delay": one(before=[axonal(3, per="layer")])},
    "recurrent delays": {"recurrent delays": one(recurrent=[axonal(3), dense(8, bias=False)])},
    "recurrent bias": {"recurrent bias": one(recurrent=dense(8))},
    "norm": {
        "norm": one(norm=blocks.batch_norm()),
        "momentum": one(norm=blocks.batch_norm(momentum=0.5)),
        "norm of each step": one(norm=blocks.layer_norm()),
    },
    "residual": {
        "residual": one(before=[residual(layer(6))]),
        "either": one(before=[residual(layer(6), join="either")]),
    },
    "named": {"named": network(INPUTS, [layer(8).named("hidden")], leaky_readout(3))},
    "pool": {"pool": network((4, 2), [sum_pool(2), layer(8)], leaky_readout(3))},
    "conv": {
        "conv": image(layer(conv1d(4, 3))),
        "padding": image(layer(conv1d(4, 3, padding=((2, 0),)))),
    },
    "grouped conv": {"grouped conv": image(layer(conv1d(4, 3, groups=2)))},
    "strided conv": {"strided conv": image(layer(conv1d(4, 3, strides=2)))},
    "kernel": {"kernel": image(layer(conv1d(4, 2)))},
    "per neuron": {"per neuron": image(layer(conv1d(4, 3), neurons.lif(per="neuron", learn_decay=True)))},
}
NETWORKS = {name: net for row in ALIKE.values() for name, net in row.items()}
ROW = {name: row for row, own in ALIKE.items() for name in own}
# Rows whose states are alike: membranes of as many neurons of one model, and as many sources of spikes in transit.
ALIKE_STATES = (
    {
        *("lif", "learn_decay", "learn_threshold", "learned readout", "one decay"),
        *("more inputs", "no bias", "no readout bias", "pool", "strided conv", "norm"),
    },
    {"recurrent", "recurrent bias"},
    {"delays", "one delay"},
    {"conv", "grouped conv", "kernel", "per neuron"},
)
# The row of a network, of which it is the first one: it receives the parameters and states of the first of each row.
FIRST = {row: next(iter(own)) for row, own in ALIKE.items()}


def state_of(name: str) -> str:
    """What networks of one kind of state share."""
    if name == "max_delay":
        return name
    return min(next((rows for rows in ALIKE_STATES if ROW[name] in rows), {ROW[name]}))


def shapes(net: snnjax.Network):
    return jax.eval_shape(net.init, KEY)


def state_shapes(net: snnjax.Network):
    return jax.eval_shape(lambda params: net.initial_state(params, BATCH), shapes(net))


@pytest.fixture
def only_checks(monkeypatch: pytest.MonkeyPatch) -> None:
    """What passes the checks of `apply` is not run."""

    def run(running, arrays, *_) -> Results:
        signals = {name: jnp.zeros((STEPS, BATCH, 3)) for name in running.read}
        return Results(signals, {}, {}, {}, dict(arrays.state), {})

    monkeypatch.setattr(importlib.import_module("snnjax.graph.network"), "run", run)


def refusals_of(net: snnjax.Network, given: dict[str, tuple[Any, Any]]) -> dict[str, str | None]:
    """What `apply` says of each parameters and state, without computing anything; None if it runs.

    One trace for all of them: a trace costs more than the checks.
    """
    inputs = jax.ShapeDtypeStruct((STEPS, BATCH, net.num_inputs), jnp.float32)
    found: dict[str, str | None] = {}

    def attempt(given: dict[str, tuple[Any, Any]], inputs: Signal, stats: Stats) -> None:
        for name, (params, state) in given.items():
            found[name] = None
            try:
                net.apply(params, state, inputs, stats=stats)
            except ValueError as error:
                found[name] = str(error)

    jax.eval_shape(attempt, given, inputs, jax.eval_shape(net.initial_stats, KEY))
    return found


@pytest.mark.usefixtures("only_checks")
def test_parameters_of_another_network_never_run() -> None:
    given = {name: shapes(net) for name, net in NETWORKS.items()}
    for name, row in ROW.items():
        chex.assert_trees_all_equal_shapes_and_dtypes(given[name], given[FIRST[row]])
    form = r"network: `params[^`]*` must .*, got .*\. Make them with init of this network\."
    for first in FIRST.values():
        refusals = refusals_of(NETWORKS[first], {name: (given[name], None) for name in FIRST.values()})
        assert len(refusals) == len(FIRST)
        for name, refusal in refusals.items():
            if first == name:
                assert refusal is None, (first, refusal)
            else:
                assert re.fullmatch(form, refusal or "it runs"), (first, name, refusal)


@pytest.mark.usefixtures("only_checks")
def test_states_of_another_network_never_run() -> None:
    given = {name: state_shapes(net) for name, net in NETWORKS.items()}
    for name in given.keys() - {"max_delay"}:
        chex.assert_trees_all_equal_shapes_and_dtypes(given[name], given[FIRST[ROW[name]]])
    kinds = (*FIRST.values(), "max_delay")
    params = {name: shapes(NETWORKS[name]) for name in kinds}
    form = r"network.apply: `state[^`]*` must .*, got .*\. Make it with initial_state of this network\."
    for first in kinds:
        refusals = refusals_of(NETWORKS[first], {name: (params[first], given[name]) for name in kinds})
        assert len(refusals) == len(kinds)
        for name, refusal in refusals.items():
            if state_of(first) == state_of(name):
                assert refusal is None, (first, name, refusal)
            else:
                assert re.fullmatch(form, refusal or "it runs"), (first, name, refusal)


def test_checkpoints_of_another_network_are_never_loaded(tmp_path: Path) -> None:
    descriptions = {name: json.loads(json.dumps(describe(net))) for name, net in NETWORKS.items()}
    for (name, own), (other, its) in itertools.product(descriptions.items(), repeat=2):
        assert (first_difference(own, its, "network") is None) == (name == other), (name, other)
    array = {"array": jnp.ones(1)}
    for (name, net), other in zip(
        NETWORKS.items(), [*[*NETWORKS.values()][1:], NETWORKS["lif"]], strict=True
    ):
        save_checkpoint(tmp_path / name, array, {}, net)
        load_checkpoint(tmp_path / name, array, net)
        with pytest.raises(ValueError, match=r"^load_checkpoint: `network[^`]*` must be .* as in .*, got "):
            load_checkpoint(tmp_path / name, array, other)


LIF, ADLIF, DELAYS = shapes(NETWORKS["lif"]), shapes(NETWORKS["adlif"]), shapes(NETWORKS["delays"])
FIRST_WEIGHTS, NEURON, LAST_WEIGHTS = "layer_0/connection", "layer_0/neuron", "readout/connection"
MESSAGES = {
    "recurrence": ("recurrent", LIF, None, "", "hold layer_0/recurrent, got none of it"),
    "bias": ("no bias", LIF, None, f"['{FIRST_WEIGHTS}'].bias", "be None, got float32[8]"),
    "outputs": (
        "more outputs",
        LIF,
        None,
        f"['{LAST_WEIGHTS}'].weights",
        "be floating-point [8, 4], got float32[8, 3]",
    ),
    "neuron": ("se_adlif", ADLIF, None, f"['{NEURON}']", "be a SEAdLIFParams, got an AdLIFParams"),
    "delays": ("delays", LIF, None, "", "hold axonal_0, got none of it"),
    "blocks": ("deeper", LIF, None, "", "hold layer_1/connection, got none of it"),
    "names": ("named", LIF, None, "", "hold hidden/connection, got none of it"),
    "too many": ("lif", DELAYS, None, "", "hold only blocks of this network, got axonal_0"),
    "integers": (
        "lif",
        jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape, jnp.int32), LIF),
        None,
        f"['{FIRST_WEIGHTS}'].weights",
        "be floating-point [6, 8], got int32[6, 8]",
    ),
    "a number": ("lif", LIF | {LAST_WEIGHTS: 0.5}, None, f"['{LAST_WEIGHTS}']", "be a LinearParams, got 0.5"),
    "quantised with another scale": (
        "lif",
        LIF
        | {
            LAST_WEIGHTS: LinearParams(
                Quantised(jax.ShapeDtypeStruct((8, 3), jnp.int8), jax.ShapeDtypeStruct((4,), jnp.float32)),
                jax.ShapeDtypeStruct((3,), jnp.float32),
            )
        },
        None,
        f"['{LAST_WEIGHTS}'].weights",
        "be floating-point [8, 3], got int8[8, 3] of quantised weights",
    ),
    "state of a neuron": (
        "current_lif",
        shapes(NETWORKS["current_lif"]),
        state_shapes(NETWORKS["adaptive_lif"]),
        f"['{NEURON}']",
        "be a CurrentLIFState, got an AdaptiveLIFState",
    ),
    "rows in transit": (
        "delays",
        DELAYS,
        state_shapes(NETWORKS["max_delay"]),
        "['axonal_0'].pending",
        "be float32[4, 2, 6], got float32[5, 2, 6]",
    ),
}


@pytest.mark.parametrize("case", MESSAGES)
def test_what_differs_first_is_named(case: str) -> None:
    name, params, state, path, found = MESSAGES[case]
    net = NETWORKS[name]
    if state is None:
        text = f"network: `params{path}` must {found}. Make them with init of this network."
        with pytest.raises(ValueError, match=f"^{re.escape(text)}$"):
            net.initial_state(params, BATCH)
    else:
        text = f"network.apply: `state{path}` must {found}. Make it with initial_state of this network."
        assert refusals_of(net, {"": (params, state)}) == {"": text}


def squared(output: jax.Array, target: jax.Array) -> jax.Array:
    return jnp.mean((output - target) ** 2)


RULES = {"eprop": online.eprop, "ostl": online.ostl, "ottt": online.ottt}
RULES["truncated"] = lambda net, loss: online.truncated(net, loss, window=2)
ENTRANCES: dict[str, Callable[[snnjax.Network, Any], Any]] = {
    "initial_state": lambda net, params: net.initial_state(params, BATCH),
    "to_nir": lambda net, params: snnjax.nir.to_nir(net, params, dt=1e-3),
    "fit": lambda net, params: train.fit(
        net, params, None, None, loss=losses.cross_entropy_sum, config=train.TrainConfig()
    ),
    **{
        name: lambda net, params, rule=rule: rule(net, squared).init(params, BATCH)
        for name, rule in RULES.items()
    },
}


@pytest.mark.parametrize("name", ENTRANCES)
def test_every_function_refuses_parameters_of_another_network(name: str) -> None:
    found = r"must be a SEAdLIFParams, got an AdLIFParams\. Make them with init of this network\."
    text = rf"`params\['layer_0/neuron'\]` {found}$"
    with pytest.raises(ValueError, match=text):
        ENTRANCES[name](NETWORKS["se_adlif"], ADLIF)


@pytest.mark.parametrize("name", RULES)
def test_online_rules_refuse_the_carry_of_another_network(name: str) -> None:
    nets = [NETWORKS[each] for each in ("lif", "adlif")]
    learners = [RULES[name](net, squared) for net in nets]

    def step(params: Params, other):
        carry = learners[1].init(other, BATCH)
        return learners[0].step(params, carry, jnp.ones((BATCH, INPUTS)), jnp.ones((BATCH, 3)))

    with pytest.raises(
        ValueError,
        match=r"^online: `carry\.state\['layer_0/neuron'\]` must be a LIFState, got an AdLIFState\. ",
    ):
        jax.eval_shape(step, LIF, ADLIF)


def test_parameters_in_other_forms_run() -> None:
    """Quantised, of another dtype, of a batch of networks, or of one with the same parameters."""
    net, x = NETWORKS["recurrent"], jnp.ones((STEPS, BATCH, INPUTS))
    params = initial(net)
    low = jax.tree.map(lambda leaf: leaf.astype(jnp.bfloat16), params)
    for own in (params, quantise_network(params), low):
        out, state = jax.eval_shape(net.apply, own, None, x)
        jax.eval_shape(net.apply, own, state, x)  # a state that it returns is one of its own
        assert out.output.shape == (STEPS, BATCH, 3)
    batch = jax.vmap(net.init)(jax.random.split(KEY, 2))
    assert jax.vmap(lambda own: net.apply(own, None, x)[0].output)(batch).shape == (2, STEPS, BATCH, 3)
    text = "`params['layer_0/connection'].weights` must be floating-point [6, 8], got float32[2, 6, 8]. "
    with pytest.raises(ValueError, match=re.escape(text)):
        net.apply(batch, None, x)


def test_state_without_rows_in_transit_is_one_of_zeros() -> None:
    """As `apply` returns it after no steps."""
    net = NETWORKS["delays"]
    params = initial(net)
    state = net.apply(params, None, jnp.ones((0, BATCH, INPUTS)))[1]
    net.apply(params, state, jnp.ones((STEPS, BATCH, INPUTS)))
