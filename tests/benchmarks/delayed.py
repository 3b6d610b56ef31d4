"""W8, learnable axonal delays: what they cost a network."""

import functools
from collections.abc import Iterator

import jax
import optax

from snnjax import axonal, dense, layer, leaky_readout, network
from tests.benchmarks import workloads
from tests.benchmarks.networks import INFERENCE, TRAINING, jit
from tests.benchmarks.neurons import Shape, sample, tasks
from tests.benchmarks.timing import Program, Timer, timer

WITHOUT = "snnjax, without delays"


def timed(shape: Shape, max_delay: int, task: str) -> Timer:
    """Without delays if the longest is 0."""
    inputs, labels = sample(shape)
    optimiser = optax.adam(workloads.LEARNING_RATE)
    delays = [axonal(max_delay)] if max_delay else []
    layers = [layer([*delays, dense(each)]) for each in shape.hidden]
    net = network(shape.inputs, layers, leaky_readout(shape.outputs))
    params = net.init(jax.random.key(workloads.SEED), inputs, target_activity=shape.rate)
    run = jit(tasks(lambda params, inputs: net.apply(params, None, inputs)[0].output, optimiser)[task])
    given = (params, inputs) if task == INFERENCE else (params, optimiser.init(params), inputs, labels)
    return timer(run, lambda: given)


def programs(shape: Shape, max_delay: int) -> Iterator[tuple[tuple[str, str], Program]]:
    """By task and alternative."""
    for task in (TRAINING, INFERENCE):
        for name, longest in ((WITHOUT, 0), (f"snnjax, delays of up to {max_delay} steps", max_delay)):
            yield (task, name), functools.partial(timed, shape, longest, task)
