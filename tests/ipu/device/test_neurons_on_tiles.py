"""Networks of generalised LIF neurons on the device: codelets against the reference, on few tiles and many.

Arguments are dyadic (tests/ops/lif_network/random_networks.py), so that results are held equal bit for bit; gradients
go through quotients and cosines, which differ in their last bits.
"""

import functools
import itertools
from typing import Any

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from snnjax import lif_network
from snnjax.ipu import read_profile
from tests.cases import as_numpy
from tests.ops.lif_network import random_networks
from tests.ops.lif_network.random_networks import ADAPTIVE, ADLIF, ALL, RESONANCE, SYNAPSE, Form

# A step's current is told from the states around it: a difference of numbers of their size, over a gain of 1/4.
CLOSE = {"rtol": 2e-5, "atol": 2e-5}
TILES = "ipu_tiles"

# Each form with the switches of its layers, and the tiles that it runs on.
FORMS: dict[str, tuple[Form, dict[str, Any], tuple[int, ...]]] = {
    "adlif below lif": (
        Form(5, 3, 7, (9, 6), recurrent=True, capacity=(4, None), second_states=(ADLIF, None)),
        {"reset": ("zero", "subtract"), "surrogate": ("triangle", "superspike")},
        (1, 7, 64),
    ),
    "lif below adaptive": (
        Form(5, 3, 7, (8, 6), capacity=(None, 5), second_states=(None, ADAPTIVE), given="int32 lists"),
        {"detach_reset": (True, False), "surrogate": "arctan"},
        (7,),
    ),
    "recurrent with raised thresholds": (
        Form(4, 2, 5, (10,), recurrent=True, capacity=3, second_states=(ALL,), given="uint16 lists"),
        {"reset": "subtract", "detach_reset": False, "surrogate": "gaussian"},
        (7,),
    ),
    "spiking output": (
        Form(4, 3, 6, (7, 8), outputs=None, second_states=(SYNAPSE, ALL), bias=False, lengths=False),
        {"reset": ("none", "zero"), "detach_reset": False, "surrogate": "sigmoid"},
        (7,),
    ),
    "one constant for all": (
        Form(
            4, 3, 6, (8, 5, 6), capacity=(4, 2, 6), second_states=(RESONANCE, None, ADLIF), per_neuron=False
        ),
        {"surrogate": ("boxcar", "straight_through", "superspike")},
        (64,),
    ),
}


def run(form: Form, switches: dict[str, Any], *given):
    """All results of `lif_network` that have a gradient, and the spikes that were dropped."""
    inputs, layers, readout, state, lengths, second_threshold = given
    out, last = lif_network(
        inputs,
        layers,
        readout,
        state,
        lengths=lengths,
        capacity=form.capacity,
        second_threshold=tuple(second_threshold),
        **switches,
    )
    return (out.output, out.activity, tuple(last)), out.dropped


def results_and_gradients(form: Form, switches: dict[str, Any], given: tuple[Any, ...], weights):
    """Results, and the gradients of a weighted sum of them by layers, readout and state."""

    def function(layers, readout, state):
        return run(form, switches, given[0], layers, readout, state, *given[4:])

    results, pull, dropped = jax.vjp(function, *given[1:4], has_aux=True)
    return results, dropped, pull(weights)


def compiled(device: jax.Device, function, options: dict[str, str], *arguments):
    """What a function yields on a device, and the compiled function."""
    there = jax.device_put(arguments, device)
    program = jax.jit(function, compiler_options=options).lower(*there).compile()
    return as_numpy(program(*there)), program


def lively_arguments(form: Form, switches: dict[str, Any]) -> tuple[Any, ...]:
    """Those of the first seed with which every layer fires, but not always."""
    reference = jax.jit(functools.partial(run, form, switches))
    for seed in itertools.count():
        given = random_networks.arguments(form, np.random.default_rng(seed))
        if all(0.05 < jnp.mean(activity) < 0.8 for activity in reference(*given)[0][1]):
            return given
    raise AssertionError


def cotangents(form: Form, switches: dict[str, Any], given: tuple[Any, ...], seed: int):
    """One of eighths for each result."""
    rng = np.random.default_rng(seed)
    shapes = jax.eval_shape(functools.partial(run, form, switches), *given)[0]
    return jax.tree.map(lambda leaf: jnp.asarray(rng.integers(-8, 9, leaf.shape) / 8, leaf.dtype), shapes)


@pytest.mark.parametrize("name", FORMS)
def test_results_and_gradients_equal_the_reference(ipus, name):
    form, switches, tiles = FORMS[name]
    given = lively_arguments(form, switches)
    function = functools.partial(results_and_gradients, form, switches)
    arguments = given, cotangents(form, switches, given, len(name))
    expected, _ = compiled(jax.devices("cpu")[0], function, {}, *arguments)
    codelet = ("LifRecurrentGradient" if form.recurrent else "LifGradientScan") + "<true,true>"
    for count in tiles:
        actual, program = compiled(ipus[0], function, {TILES: str(count)}, *arguments)
        assert f"snnjax::{codelet}" in read_profile(program).codelets
        results, dropped, gradients = actual
        chex.assert_trees_all_equal((results, dropped), expected[:2], strict=True)
        chex.assert_trees_all_close(gradients, expected[2], **CLOSE, strict=True)
