"""W8, learnable axonal delays: what they cost a network."""

from collections.abc import Iterator

import jax
import optax

from snnjax import axonal, layer, leaky_readout, network
from tests.benchmarks import workloads
from tests.benchmarks.networks import INFERENCE, TRAINING
from tests.benchmarks.neurons import Shape, sample, tasks
from tests.benchmarks.timing import Timer, timer

WITHOUT = "snnjax, without delays"


def timers(shape: Shape, max_delay: int) -> Iterator[tuple[tuple[str, str], Timer]]:
    """By column and alternative."""
    inputs, labels = sample(shape)
    optimiser = optax.adam(workloads.LEARNING_RATE)
    for name, delays in ((WITHOUT, None), (f"snnjax, delays of up to {max_delay} steps", axonal(max_delay))):
        layers = [layer(each, recurrent=shape.recurrent, delays=delays) for each in shape.hidden]
        net = network(shape.inputs, layers, leaky_readout(shape.outputs))
        params = net.init(jax.random.key(workloads.SEED), inputs, target_activity=shape.rate)
        each = tasks(lambda params, inputs, net=net: net.apply(params, None, inputs)[0].output, optimiser)
        training, inference = (params, optimiser.init(params), inputs, labels), (params, inputs)
        yield (TRAINING, name), timer(jax.jit(each[TRAINING]), lambda given=training: given)
        yield (INFERENCE, name), timer(jax.jit(each[INFERENCE]), lambda given=inference: given)
