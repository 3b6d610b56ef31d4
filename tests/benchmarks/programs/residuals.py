"""W12, residual networks with batch norms: `Network.apply` compared with hand-written plain JAX.

Plain JAX has one `lax.conv` of all steps at once for each layer; only the neurons are scanned. In inference both use
the running statistics, which are those of the inputs, so that training and inference compute the same.
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

from snnjax import blocks, conv2d, layer, leaky_readout, network, neurons, residual
from snnjax._types import Params, Stats
from tests.benchmarks import workloads
from tests.benchmarks.programs.convolutions import convolve
from tests.benchmarks.programs.networks import INFERENCE, TRAINING, jit
from tests.benchmarks.programs.neurons import scan_neurons, scan_readout, tasks
from tests.benchmarks.timing import Program, Timer, timer

SEW, MS = "SEW", "MS"
PLAIN, FULL, CAPPED = "plain JAX, lax.conv", "snnjax", "snnjax, lists of 6 %"
CAPACITY_SHARE = 0.06
_NEURON = neurons.lif()


class Residual(NamedTuple):
    """A stem and stages of two residual blocks, each stage at half the resolution with twice the channels."""

    kind: str = SEW  # spikes are added after the neurons, or currents before them
    channels: int = 32
    stages: int = 4
    edge: int = 34  # pixels each way, with two polarities
    steps: int = 10
    batch: int = 8
    outputs: int = 10
    rate: float = 0.02  # of the inputs, and what `init` scales the layers to

    @property
    def name(self) -> str:
        """The section's title."""
        of = f"{self.kind} blocks with norms, {self.stages} stages from {self.channels} channels"
        return f"W12, {of}, {self.edge}x{self.edge}x2, {self.steps} steps, batch {self.batch}"

    @property
    def strides(self) -> tuple[tuple[int, int], ...]:
        """The channels and the strides of each residual block."""
        stages = [(self.channels * 2**stage, 1 + (stage > 0)) for stage in range(self.stages)]
        return tuple(block for channels, strides in stages for block in ((channels, strides), (channels, 1)))


def made(of: Residual, capped: bool = False):
    """The network."""
    capacity = CAPACITY_SHARE if capped else None

    def sew(channels: int, kernel: int, strides: int = 1):
        connection = conv2d(channels, kernel, strides=strides, bias=False)
        return layer(connection, _NEURON, norm=blocks.batch_norm(), capacity=capacity)

    def ms(channels: int, kernel: int, strides: int = 1):
        neuron = blocks.spiking(_NEURON, capacity=capacity)
        return [neuron, conv2d(channels, kernel, strides=strides, bias=False), blocks.batch_norm()]

    part = sew if of.kind == SEW else ms
    shortcut = sew if of.kind == SEW else lambda *given: ms(*given)[1:]
    stem = shortcut(of.channels, 3)
    nodes: list[Any] = [stem] if of.kind == SEW else [*stem]
    for channels, strides in of.strides:
        body = [part(channels, 3, strides), part(channels, 3)]
        nodes.append(residual(body, shortcut(channels, 1, strides) if strides > 1 else None))
    nodes += [] if of.kind == SEW else [_NEURON]
    return network((of.edge, of.edge, 2), nodes, leaky_readout(of.outputs))


@functools.lru_cache(maxsize=1)
def data(of: Residual) -> tuple[Any, Any, jax.Array, jax.Array]:
    """Parameters, statistics of the inputs, inputs and labels."""
    draw, net = np.random.default_rng(workloads.SEED), made(of)
    inputs = jnp.asarray(draw.random((of.steps, of.batch, of.edge, of.edge, 2)) < of.rate, jnp.float32)
    labels = jnp.asarray(draw.integers(0, of.outputs, of.batch), jnp.int32)
    params = net.init(jax.random.key(workloads.SEED), inputs, target_activity=of.rate)
    keeping = jax.jit(lambda stats: net.apply(params, None, inputs, stats=stats, train=True)[0].stats)
    first = net.initial_stats(jax.random.key(workloads.SEED))
    after = keeping(first)
    # A call keeps nine tenths of the statistics before it.
    stats = jax.tree.map(lambda old, new: old + 10 * (new - old), first, after)
    return params, stats, inputs, labels


def by_hand(of: Residual, stats: Stats, params: Params, inputs: jax.Array) -> jax.Array:
    """The output, of the same parameters; with the statistics of the inputs if `stats` is None."""
    constants = jax.tree.map(
        lambda leaf: leaf.reshape(()), _NEURON.glif.constants(_NEURON.init(jax.random.key(0), 1))
    )
    names = iter([name for name in made(of).shapes if name in params and not name.startswith("readout")])

    def fire(x: jax.Array) -> jax.Array:
        return scan_neurons(constants, x, None)

    def convolved(x: jax.Array, strides: int = 1) -> jax.Array:
        weights, norm = params[next(names)].weights, next(names)
        images = convolve(x.reshape(-1, *x.shape[2:]), weights, strides)
        images = images.reshape(*x.shape[:2], *images.shape[1:])
        axes, (scale, bias) = (0, 1, 2, 3), params[norm]
        mean, variance = (jnp.mean(images, axes), jnp.var(images, axes)) if stats is None else stats[norm]
        return (images - mean) * (scale * jax.lax.rsqrt(variance + 1e-5)) + bias

    is_sew = of.kind == SEW
    x = fire(convolved(inputs)) if is_sew else convolved(inputs)
    for _, strides in of.strides:
        if is_sew:
            y = fire(convolved(fire(convolved(x, strides))))
            x = y + (x if strides == 1 else fire(convolved(x, strides)))
        else:
            y = convolved(fire(convolved(fire(x), strides)))
            x = y + (x if strides == 1 else convolved(x, strides))
    x = x if is_sew else fire(x)
    return scan_readout(params, x.reshape(*x.shape[:2], -1))


def outputs_of(of: Residual, alternative: str, train: bool) -> Callable[[Any, Any], jax.Array]:
    """The forward pass of an alternative, of (parameters, inputs)."""
    if alternative == PLAIN:
        return functools.partial(by_hand, of, None if train else data(of)[1])
    net, stats = made(of, alternative == CAPPED), data(of)[1]
    return lambda params, inputs: net.apply(params, None, inputs, stats=stats, train=train)[0].output


def timed(of: Residual, alternative: str, task: str) -> Timer:
    params, _, inputs, labels = data(of)
    optimiser = optax.adam(workloads.LEARNING_RATE)
    run = jit(tasks(outputs_of(of, alternative, task == TRAINING), optimiser)[task])
    given = (params, inputs) if task == INFERENCE else (params, optimiser.init(params), inputs, labels)
    return timer(run, lambda: given)


def programs(of: Residual) -> dict[tuple[str, str], Program]:
    """By task and alternative; lists matter to gradients, and to what a join passes on."""
    names = (PLAIN, FULL, CAPPED)
    return {
        (task, name): functools.partial(timed, of, name, task)
        for task in (TRAINING, INFERENCE)
        for name in names
    }
