"""Which of the library's own ops reach their codelets, and which are left to their references."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import snnjax
from snnjax import _targets
from snnjax.ipu.device import network_cost
from snnjax.ipu.lowering import lower
from snnjax.ops._connection import Connection
from snnjax.ops._convolution import Convolution
from snnjax.surrogates import Surrogate
from tests.ipu.lowering.arrays import numbers
from tests.ipu.lowering.artifacts import artifact, options
from tests.ipu.lowering.checks import plan_of
from tests.ipu.lowering.reader import read

V, W = numbers(np.float32, (4, 6)), numbers(np.float32, (6, 5))


def instructions(function, *arguments):
    """Those of a plan, in its order."""
    found = []

    def visit(block):
        for instruction in block.instructions:
            found.append(instruction)
            for inner in instruction.blocks:
                visit(inner)

    visit(plan_of(function, *arguments).main)
    return found


def targets(function, *arguments):
    """The custom calls of a plan, in its order."""
    found = instructions(function, *arguments)
    return [each.texts[0].removeprefix("snnjax_") for each in found if each.op == "custom_call"]


def layer(**changes):
    return snnjax.LIFLayer(**{"weights": jnp.asarray(W), "decay": jnp.float32(0.9), **changes})


def network(x, *layers, **options):
    capacity = (*(3 for _ in layers[1:]), None)  # of all but the last layer, whose spikes are the output
    return snnjax.lif_network(x, layers, **{"capacity": capacity, **options})[0].output


def gradient(x, *layers, **options):
    return jax.grad(lambda x: jnp.sum(network(x, *layers, **options)))(x)


X = numbers(np.float32, (3, 4, 6))
SQUARE = numbers(np.float32, (5, 5))
CONVOLVED = Connection(
    convolution=Convolution.of("test", (3, 2), (3,), 2, strides=1, padding="same", groups=1)
)


def test_ops_reach_their_codelets():
    assert targets(lambda v: snnjax.select_spikes(v, 1.0, 0.5, capacity=3), V) == ["select_spikes"]
    assert targets(lambda x: network(x, layer()), X) == ["lif_network"]
    assert targets(lambda x: network(x, layer(), record_dtype=jnp.bfloat16), X) == ["lif_network"]
    assert targets(lambda x: gradient(x, layer()), X) == ["lif_network", "lif_network_backward"]


def test_records_are_not_converted_within_a_program():
    """The backward pass takes what the forward pass yields; elsewhere it is made of the record, by a `top_k`."""
    found = instructions(lambda x: gradient(x, layer(), layer(weights=SQUARE)), X)
    forward, backward = (each for each in found if each.op == "custom_call")
    assert set(forward.outputs[-3:]) <= set(backward.inputs)
    assert not {"top_k", "scatter", "gather"} & {each.op for each in found}

    def parts(x):
        return jax.vjp(lambda x: network(x, layer(), layer(weights=SQUARE)), x)[1]

    pull_back = jax.eval_shape(parts, X)
    backward = instructions(
        lambda pull_back, g: pull_back(g), pull_back, jax.ShapeDtypeStruct((3, 4, 5), X.dtype)
    )
    assert {"top_k", "custom_call"} <= {each.op for each in backward}


@pytest.mark.parametrize(
    "neurons, capacity, recurrent, is_faster",
    [
        (64, None, False, True),
        (1024, None, False, False),
        (64, 4, False, True),
        (64, None, True, True),
        (1024, None, True, False),
        (64, 4, True, True),
    ],
)
def test_networks_reach_their_codelets_where_these_are_faster(neurons, capacity, recurrent, is_faster):
    """Forward and backward alike; lists of all neurons are longer than rows of products take."""
    weights = jax.ShapeDtypeStruct((6, neurons), jnp.float32)
    square = jax.ShapeDtypeStruct((neurons, neurons), jnp.float32) if recurrent else None

    def output(x, weights, square):
        hidden, readout = layer(weights=weights, recurrent=square), snnjax.LIFReadout(weights.T, 0.9)
        return snnjax.lif_network(x, [hidden], readout, capacity=capacity)[0].output

    x = jax.ShapeDtypeStruct((8, 4, 6), jnp.float32)
    both = ["lif_network", "lif_network_backward"] if is_faster else []
    assert targets(output, x, weights, square) == both[:1]
    assert targets(jax.grad(lambda *given: jnp.sum(output(*given)), argnums=1), x, weights, square) == both


@pytest.mark.parametrize(
    "function, argument",
    [
        (lambda v: snnjax.lif_step(v, v, 0.9, 1.0), V),
        (lambda v: snnjax.select_spikes(v, 1.0, 0.5, capacity=3), V[:0]),
        (lambda v: snnjax.select_spikes(v, 1.0, 0.5, capacity=3, implementation="reference"), V),
        (lambda x: network(x, layer(), surrogate=Surrogate("superspike", 3.0, smooth=True)), X),
        (lambda v: snnjax.select_spikes(v, 0.5, 0.2, capacity=4).ids, jnp.ones((4, 6), jnp.bfloat16)),
        (lambda x: network(x, layer()), X[:0]),
        (lambda x: network(x, layer(weights=None)), X),
        (lambda x: gradient(x, layer(), record_dtype=jnp.bfloat16), X),
        (lambda x: network(x, layer(connection=CONVOLVED, weights=jnp.ones((3, 2, 2)))), X),
        (lambda x: network(x.astype(jnp.bfloat16), layer(weights=jnp.asarray(W, jnp.bfloat16))), X),
    ],
    ids=[
        "step",
        "empty",
        "reference",
        "smooth network",
        "bfloat16 membranes",
        "no time",
        "currents",
        "rounded record",
        "convolved",
        "bfloat16 network",
    ],
)
def test_what_codelets_cannot_take_is_the_reference(function, argument):
    assert targets(function, argument) == []


def test_lists_that_overflow_in_the_reference_are_made_by_codelets():
    """Of a network whose spikes are recorded, which has no codelets itself."""
    recorded = targets(lambda x: gradient(x, layer(), layer(weights=SQUARE), record_spikes=True), X)
    assert recorded == ["select_spikes"]


def test_thresholds_of_rows_are_the_reference():
    def selected(v, threshold):
        return snnjax.select_spikes(v, threshold, threshold - 1.0, capacity=3)

    assert targets(selected, V, V) == []
    assert targets(selected, V, V[0]) == ["select_spikes"]
    assert targets(jax.grad(lambda v, t: jnp.sum(selected(v, t).values)), V, V) == []
    in_groups = targets(jax.vmap(selected), V, V)  # each row with its thresholds is a group
    assert in_groups == ["select_spikes"]


def test_the_kernel_by_name_is_refused():
    with pytest.raises(
        ValueError, match=r"select_spikes: `implementation` must be None or 'reference' on platform ipu, got"
    ):
        plan_of(lambda v: snnjax.select_spikes(v, 1.0, 0.9, capacity=2, implementation="cpu"), V)


def test_network_s_attributes_are_those_of_the_cpu():
    instruction = plan_of(lambda x: network(x, layer(bias=jnp.ones(5))), X).main.instructions
    (call,) = (each for each in instruction if each.op == "custom_call")
    attributes = dict(text.split(":", 1) for text in call.texts[1:])
    names = "inputs linears.weights[0] linears.bias[0] constants.glif.decay[0] constants.glif.threshold[0]"
    assert attributes["operand_names"].startswith(f"string={names} ")
    assert attributes["reset"] == "s64=0"
    assert attributes["capacity"] == "s64=-1"
    assert attributes["slope"].startswith("f32=")
    assert attributes["schema"] == f"string={_targets.schema()}"


def test_after_plans_that_did_not_fit_ops_take_less_of_the_tiles(monkeypatch):
    monkeypatch.setattr(network_cost, "pays", lambda *_: False)
    program = artifact(lambda x: network(x, layer(recurrent=SQUARE), layer(weights=SQUARE)), X)
    plans = [lower(program, options(), attempt) for attempt in range(7)]
    assert [b"snnjax_lif_network" in plan for plan in plans] == [False] * 3 + [True] * 3 + [False]
    assert plans[0] != plans[1]
    assert plans[6] == lower(artifact(lambda x: x + 1, X), options(), 1) == b""
    assert [dict(read(plan).options).get("attempts") for plan in plans[:6]] == 2 * [None, "1", "2"]
