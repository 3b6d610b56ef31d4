"""W8, learnable delays, of each neuron and of each synapse: what they cost a network."""

import functools
from collections.abc import Callable, Iterator
from typing import Any

import jax
import optax

from snnjax import axonal, dense, layer, leaky_readout, network, synaptic
from tests.benchmarks import workloads
from tests.benchmarks.programs.networks import INFERENCE, TRAINING, jit
from tests.benchmarks.programs.neurons import Shape, sample, tasks
from tests.benchmarks.timing import Program, Timer, timer

WITHOUT, RECURRENT = "snnjax, without delays", "snnjax, recurrent"


def delayed_neurons(longest: int, width: int, *, bias: bool = True):
    """A dense connection, whose inputs have a delay each."""
    return [axonal(longest), dense(width, bias=bias)]


def delayed_synapses(longest: int, width: int, *, bias: bool = True):
    """A dense connection, whose synapses have a delay each."""
    return synaptic(dense(width, bias=bias), longest)


def forward(connection: Callable[..., Any], width: int):
    """A layer whose inputs are delayed."""
    return layer(connection(width))


def recurrent(connection: Callable[..., Any], width: int):
    """A layer without delays but for those of what its neurons feed back."""
    return layer(width, recurrent=connection(width, bias=False))


def timed(shape: Shape, make: Callable[[int], Any], task: str) -> Timer:
    """With layers of so many neurons."""
    inputs, labels = sample(shape)
    optimiser = optax.adam(workloads.LEARNING_RATE)
    layers = [make(each) for each in shape.hidden]
    net = network(shape.inputs, layers, leaky_readout(shape.outputs))
    params = net.init(jax.random.key(workloads.SEED), inputs, target_activity=shape.rate)
    run = jit(tasks(lambda params, inputs: net.apply(params, None, inputs)[0].output, optimiser)[task])
    given = (params, inputs) if task == INFERENCE else (params, optimiser.init(params), inputs, labels)
    return timer(run, lambda: given)


def programs(shape: Shape, of_neurons: int, of_synapses: int) -> Iterator[tuple[tuple[str, str], Program]]:
    """By task and alternative; of delays of up to so many steps."""
    delayed: dict[str, Callable[..., Any]] = {
        f"axonal delays of up to {of_neurons} steps": functools.partial(delayed_neurons, of_neurons),
        f"synaptic delays of up to {of_synapses} steps": functools.partial(delayed_synapses, of_synapses),
    }
    alternatives: dict[str, Callable[[int], Any]] = {WITHOUT: layer}
    for name, connection in delayed.items():
        alternatives[f"snnjax, {name}"] = functools.partial(forward, connection)
    for name, connection in {"without delays": dense, **delayed}.items():
        alternatives[f"{RECURRENT}, {name}"] = functools.partial(recurrent, connection)
    for task in (TRAINING, INFERENCE):
        for name, make in alternatives.items():
            yield (task, name), functools.partial(timed, shape, make, task)
