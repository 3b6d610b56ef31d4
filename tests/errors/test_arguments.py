"""Calls whose arguments do not fit: every function that takes options answers them in the library's own words."""

import subprocess
import sys

import jax
import jax.numpy as jnp
import pytest

import snnjax
from snnjax import neurons, train
from snnjax._arguments import explained
from tests.errors.refusals import refusals

NET = snnjax.network(8, [snnjax.layer(4)], snnjax.leaky_readout(3))

FAULTS = {
    "lif: `beta` must be one of its arguments, got 0.9. Call it `decay`.": lambda: neurons.lif(beta=0.9),
    "TrainConfig: `lr` must be one of its arguments, got 0.1. Call it `learning_rate`.": lambda: (
        train.TrainConfig(lr=0.1)
    ),
    "dense: `name` must be one of its arguments, got 'low'. Call .named(...) of what it returns.": lambda: (
        snnjax.dense(8, name="low")
    ),
    "residual: `source` must be one of its arguments, got 'low'. Call .receiving(...) of what it returns.": (
        lambda: snnjax.residual(snnjax.dense(8), source="low")
    ),
    "layer: `capcity` must be one of its arguments, got 4. Call it `capacity`.": lambda: snnjax.layer(
        8, capcity=4
    ),
    "LIFReadout: `decoy` must be one of its arguments, got 0.9. Call it `decay`.": lambda: snnjax.LIFReadout(
        jnp.ones((2, 3)), decoy=0.9
    ),
    "network: `seed` must be one of its arguments, got 1. Choose inputs, blocks or readout.": lambda: (
        snnjax.network(8, [], seed=1)
    ),
    "dense: `num_neurons` must be given, got none. Write dense(num_neurons).": lambda: snnjax.dense(),
    "PoissonInput.of: `weight` must be given, got none. "
    "Write PoissonInput.of(rate=..., weight=..., dt=...).": lambda: snnjax.PoissonInput.of(rate=3.0),
    "network.apply: `inputs` must be given, got none. Write network.apply(params, "
    "None, inputs) to start from rest.": lambda: NET.apply(NET.init(jax.random.key(0)), jnp.ones((2, 1, 8))),
    "layer: `norm` must be given by name, got 4 by position. Pass options by name.": lambda: snnjax.layer(
        8, None, 4
    ),
    "layer: `connection` must be given once, got it by position and by name. "
    "Leave one of them out.": lambda: snnjax.layer(8, connection=8),
    "network: `arguments` must be at most 3, got one more, 1. Leave it out.": lambda: snnjax.network(
        8, [], None, 1
    ),
}
test_arguments_that_do_not_fit_are_answered = refusals(FAULTS)


# As users have them: the type checker of the tests wraps each function once more.
EVERY = """
import inspect, sys
import snnjax
from snnjax import blocks, encoding, losses, neurons, online, train

def has_options(function):
    taken = inspect.signature(function).parameters.values()
    return any(each.kind is each.KEYWORD_ONLY or each.default is not each.empty for each in taken)

modules = (snnjax, blocks, encoding, losses, neurons, online)
held = [(module.__name__, each) for module in modules for each in vars(module).values() if inspect.isfunction(each)]
public = {each for name, each in held if each.__module__.startswith(name) and not each.__name__.startswith("_")}
public = {each for each in public if has_options(each)} - {snnjax.parallel}  # which takes any name
for each in (*public, train.fit, train.evaluate, train.make_train_step, train.TrainConfig, snnjax.LIFLayer):
    try:
        each(no_such_name=1)
    except ValueError as error:
        assert ": `no_such_name` must be one of its arguments, got 1. C" in str(error), each
sys.stdout.write(str(len(public)))
"""


def test_every_function_with_options_knows_their_names() -> None:
    done = subprocess.run([sys.executable, "-c", EVERY], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 60


def test_faults_within_a_function_stay_what_they_are() -> None:
    with pytest.raises(TypeError, match="unsupported operand"):
        explained(lambda x: x + "text")(1)
