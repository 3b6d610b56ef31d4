"""What is wrong with a call of `network.apply` is said in its name, never in that of the op which it calls."""

import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp
import pytest

from snnjax import SparseSpikes, layer, leaky_readout, network, neurons, sparse, spiking_readout, synaptic
from snnjax._check import type_words
from snnjax._types import Params, Signal, State
from tests.errors.refusals import refusals

NET = network(4, [layer(3, capacity=2, recurrent=True)], leaky_readout(2))
PARAMS, STATE = jax.tree.map(
    lambda leaf: jnp.zeros(leaf.shape, leaf.dtype),
    jax.eval_shape(lambda key: (params := NET.init(key), NET.initial_state(params, 2)), jax.random.key(0)),
)
X = jnp.zeros((5, 2, 4))
FIRST, LAST = "['layer_0/connection']", "['readout/connection']"
PARTS = (
    *(f"{FIRST}.weights", f"{FIRST}.bias", "['layer_0/recurrent'].weights"),
    *(f"{LAST}.weights", f"{LAST}.bias"),
)


def lists() -> SparseSpikes:
    return SparseSpikes.from_dense(X, 3)


def rounded(name: str):
    """The parameters, of which one array is in bfloat16."""
    paths, form = jax.tree.flatten_with_path(PARAMS)
    return form.unflatten(
        leaf.astype(jnp.bfloat16) if jax.tree_util.keystr(path) == name else leaf for path, leaf in paths
    )


def apply(params: Params = PARAMS, state: State = STATE, inputs: Signal = X, **options):
    return NET.apply(params, state, inputs, **options)


def with_constants(**wrong):
    """Neurons of one's own, of which one constant is wrong."""
    constants = neurons.GLIFConstants(jnp.array(0.5), jnp.array(1.0), jnp.array(0.5))._replace(**wrong)
    plain, neuron = (
        neurons.lif(),
        dataclasses.replace(neurons.lif(), glif=neurons.GLIF(lambda params: constants)),
    )
    params = network(4, [layer(3, plain)], leaky_readout(2)).init(jax.random.key(0))
    return network(4, [layer(3, neuron)], leaky_readout(2)).apply(params, None, X)


STEPS = "Pass the number of steps of each sequence."
GLIF_ERRORS: list[tuple[dict[str, Any], str]] = [
    ({"detach_reset": "no"}, "detach_reset` must be True or False, got 'no'. Choose one of these."),
    ({"inclusive": "no"}, "inclusive` must be True or False, got 'no'. Choose one of these."),
    (
        {"reset_time": "immediate", "spike_from": "old"},
        "spike_from` must be 'new' if reset_time is 'immediate', got 'old'. "
        "Use reset_time='after_decay' with the old membrane's spikes.",
    ),
]
REFUSED = {
    f"network.apply: `lengths` must have shape [batch] = [2], got [3]. {STEPS}": lambda: apply(
        lengths=jnp.zeros(3, jnp.int32)
    ),
    "network.apply: `lengths` must hold integers, got float32. Cast it with lengths.astype(int).": lambda: (
        apply(lengths=jnp.ones(2))
    ),
    f"network.apply: `lengths` must be between 0 and 5, got 6. {STEPS}": lambda: apply(
        lengths=jnp.array([6, 1])
    ),
    "network.apply: `inputs.values` must have shape [..., capacity] = [5, 2, 3], got [5, 2, 1]. "
    "Build it with SparseSpikes.from_ids or from_dense.": lambda: apply(
        inputs=dataclasses.replace(lists(), values=lists().values[..., :1])
    ),
    "network.apply: `second_threshold` must be an array, got a list. Pass a JAX or NumPy array.": lambda: (
        apply(second_threshold=[0.5, 0.5])
    ),
    "network.apply: `second_threshold` must be a scalar or have shape [neurons] = [3], got [2]. "
    "Pass one value, or one per neuron.": lambda: apply(second_threshold={"layer_0": jnp.zeros(2)}),
    "network.apply: `decay` must be a scalar or have shape [neurons] = [3], got [2]. "
    "Pass one value, or one per neuron.": lambda: with_constants(decay=jnp.zeros(2)),
    "layer: `neuron.glif.reset` must be 'subtract', 'zero' or 'none', got 'add'. "
    "Choose one of these.": lambda: layer(
        3, dataclasses.replace(neurons.lif(), glif=neurons.GLIF(lambda params: params, reset="add"))
    ),
    **{
        f"layer: `neuron.glif.{text}": functools.partial(
            layer, 3, dataclasses.replace(neurons.lif(), glif=neurons.GLIF(lambda own: own, **given))
        )
        for given, text in GLIF_ERRORS
    },
}
test_wrong_arguments_are_blamed_on_the_network = refusals(REFUSED)


@pytest.mark.parametrize("name", PARTS)
def test_weights_of_two_dtypes_are_refused(name: str) -> None:
    """By scanned networks as by fused ones."""
    (first, *_), found = PARTS, ("float32", "bfloat16")
    if name == first:  # all others then differ from it
        name, found = PARTS[1], found[::-1]
    text = (
        f"network.apply: `params{name}` must have the dtype of the first weights, {found[0]}, got {found[1]}. "
        "Cast one of them."
    )
    for options in ({}, {"record": "membranes"}):
        with pytest.raises(ValueError) as caught:
            apply(rounded(first if found[0] == "bfloat16" else name), None, **options)
        assert str(caught.value) == text


def test_few_synapses_have_the_dtype_of_all_weights() -> None:
    """Results have it, where there is no matrix, too, and weights in another one are refused."""
    few = sparse(3, fan_in=2, bias=False)
    net, key = network(4, [layer(synaptic(few, 2)), layer(few, recurrent=few)]), jax.random.key(0)
    params, stats = net.init(key, dtype=jnp.bfloat16), net.initial_stats(key)
    run = lambda params: net.apply(params, None, X, stats=stats)[0].output  # noqa: E731
    assert jax.eval_shape(run, params).dtype == jnp.bfloat16
    paths, form = jax.tree.flatten_with_path(params)
    for path, _ in paths:
        if jax.tree_util.keystr(path).endswith("weights"):
            wrong = form.unflatten(leaf.astype(jnp.float32) if at == path else leaf for at, leaf in paths)
            with pytest.raises(ValueError, match="must have the dtype of the first weights"):
                jax.eval_shape(run, wrong)


@pytest.mark.parametrize("value", [None, "spikes", [[1.0, 0.0]], {}], ids=["None", "text", "list", "dict"])
def test_inputs_that_are_no_array_are_named(value) -> None:
    with pytest.raises(ValueError) as caught:
        apply(inputs={"input": value})
    words = type_words(value)
    assert str(caught.value) == (
        f"network.apply: `inputs` must be an array, got {words}. Pass a JAX or NumPy array."
    )


@pytest.mark.parametrize("value", [None, (), [1.0]])
def test_parameters_of_no_network_are_refused(value) -> None:
    with pytest.raises(ValueError) as caught:
        apply(value)
    text = f"network: `params` must be a dict by block, got {type_words(value)}. Make them with network.init(key)."
    assert str(caught.value) == text


def test_parameters_of_another_readout_are_refused() -> None:
    learned = neurons.lif(learn_threshold=True)
    net = network(4, [layer(3, capacity=2, recurrent=True)], spiking_readout(2, learned))
    with pytest.raises(ValueError) as caught:
        net.apply(PARAMS, None, X)
    text = "`params` must hold readout/neuron, got none of it"
    assert str(caught.value) == f"network: {text}. Make them with init of this network."
