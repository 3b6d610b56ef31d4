"""A neuron that the fused op does not support, after layers that it does: what it costs these layers."""

import functools
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from snnjax import layer, network, neurons, spiking_readout
from tests.benchmarks.programs.networks import TRAINING, jit
from tests.benchmarks.programs.neurons import Shape
from tests.benchmarks.timing import Program, Timer, timer

MIXED, FUSED, SCANNED = "LIF layers and Izhikevich", "LIF layers alone", "Izhikevich alone"
# The activity that `init` scales the LIF layers to.
RATE = 0.02


def made(shape: Shape) -> tuple[dict[str, Any], Any, jax.Array]:
    """The networks by name, the parameters of the mixed one, and inputs."""
    lif, last = neurons.lif(), spiking_readout(shape.outputs, neurons.izhikevich())
    layers = [layer(each, lif) for each in shape.hidden]
    fused = network(shape.inputs, layers)
    nets = {
        MIXED: network(shape.inputs, layers, last),
        FUSED: fused,
        SCANNED: network(shape.hidden[-1], [], last),
    }
    draw = np.random.default_rng(0)
    inputs = draw.random((shape.steps, shape.batch, shape.inputs)) < shape.rate
    inputs = jnp.asarray(inputs, jnp.float32)
    first = fused.init(jax.random.key(0), inputs, target_activity=RATE)
    params = nets[MIXED].init(jax.random.key(1))
    return nets, params | first, inputs


def timed(shape: Shape, name: str) -> Timer:
    """The gradient of the whole, or of a part fed with what it gets there."""
    nets, params, inputs = made(shape)
    above = {name: own for name, own in params.items() if name.startswith("readout/")}
    below = {name: own for name, own in params.items() if name not in above}
    given = (below if name == FUSED else params, inputs)
    if name == SCANNED:
        given = above, jit(lambda params, x: nets[FUSED].apply(params, None, x)[0].output)(below, inputs)
    # Spikes that come from a layer have a gradient, inputs from outside have none.
    step = jit(jax.grad(summed(nets[name]), argnums=(0, 1) if name == SCANNED else 0))
    return timer(step, lambda: given)


def programs(shape: Shape) -> Iterator[tuple[tuple[str, str], Program]]:
    for name in (MIXED, FUSED, SCANNED):
        yield (f"{shape.name}, {TRAINING}", name), functools.partial(timed, shape, name)


def summed(net) -> Callable[[Any, Any], jax.Array]:
    """A loss that costs next to nothing."""
    return lambda params, inputs: jnp.sum(jnp.square(net.apply(params, None, inputs)[0].output))
