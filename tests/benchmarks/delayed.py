"""W8, learnable delays, of each neuron and of each synapse: what they cost a network."""

import functools
from collections.abc import Callable, Iterator
from typing import Any

import jax
import optax

from snnjax import axonal, dense, layer, leaky_readout, network, synaptic
from tests.benchmarks import workloads
from tests.benchmarks.networks import INFERENCE, TRAINING, jit
from tests.benchmarks.neurons import Shape, sample, tasks
from tests.benchmarks.timing import Program, Timer, timer

WITHOUT = "snnjax, without delays"


def delayed_neurons(longest: int, width: int) -> Any:
    """A dense connection, whose inputs have a delay each."""
    return [axonal(longest), dense(width)]


def delayed_synapses(longest: int, width: int) -> Any:
    """A dense connection, whose synapses have a delay each."""
    return synaptic(dense(width), longest)


def timed(shape: Shape, connection: Callable[[int], Any], task: str) -> Timer:
    """With connections of so many neurons."""
    inputs, labels = sample(shape)
    optimiser = optax.adam(workloads.LEARNING_RATE)
    layers = [layer(connection(each)) for each in shape.hidden]
    net = network(shape.inputs, layers, leaky_readout(shape.outputs))
    params = net.init(jax.random.key(workloads.SEED), inputs, target_activity=shape.rate)
    run = jit(tasks(lambda params, inputs: net.apply(params, None, inputs)[0].output, optimiser)[task])
    given = (params, inputs) if task == INFERENCE else (params, optimiser.init(params), inputs, labels)
    return timer(run, lambda: given)


def programs(shape: Shape, of_neurons: int, of_synapses: int) -> Iterator[tuple[tuple[str, str], Program]]:
    """By task and alternative; of delays of up to so many steps."""
    alternatives: dict[str, Callable[[int], Any]] = {
        WITHOUT: dense,
        f"snnjax, axonal delays of up to {of_neurons} steps": functools.partial(delayed_neurons, of_neurons),
        f"snnjax, synaptic delays of up to {of_synapses} steps": functools.partial(
            delayed_synapses, of_synapses
        ),
    }
    for task in (TRAINING, INFERENCE):
        for name, connection in alternatives.items():
            yield (task, name), functools.partial(timed, shape, connection, task)
