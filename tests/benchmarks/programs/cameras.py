"""W7, convolutional networks on the events of a camera: `Network.apply` compared with hand-written plain JAX.

Plain JAX has one `lax.conv` of all steps at once for each layer; only the neurons are scanned.
"""

import functools
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

from snnjax import SparseSpikes, conv2d, layer, leaky_readout, network, sum_pool
from snnjax._types import Params
from snnjax.data import load_mnist_10k, saccade_spikes
from snnjax.graph.layers import layers_of
from tests.benchmarks import peers, workloads
from tests.benchmarks.programs.convolutions import convolve
from tests.benchmarks.programs.networks import INFERENCE, TRAINING, jit
from tests.benchmarks.programs.neurons import READOUT_DECAY, SLOPE, scan_neurons, scan_readout, tasks
from tests.benchmarks.timing import Program, Timer, timer

BYTES_PER_MB = 1e6
DIGIT_PIXELS = 28  # each way


class Camera(NamedTuple):
    """Digits in front of a camera, and a network of convolutions with sum pools after them."""

    steps: int = 20
    batch: int = 48
    channels: tuple[int, ...] = (12, 32)
    kernel: int = 5
    pool: int = 2
    outputs: int = 10
    pixels: int = DIGIT_PIXELS  # of a digit, each way
    margin: int = 3
    rate: float = 0.02  # spikes per neuron and step, which `init` scales weights to

    @property
    def shape(self) -> tuple[int, int, int]:
        """Height, width and polarities of the camera."""
        edge = self.pixels + 2 * self.margin
        return (edge, edge, 2)

    @property
    def name(self) -> str:
        parts = ["x".join(map(str, self.shape))]
        parts += [f"{each}C{self.kernel} - P{self.pool}" for each in self.channels]
        return f"W7, {' - '.join(parts)} - {self.outputs}, {self.steps} steps, batch {self.batch}"


class Alternative(NamedTuple):
    """One way to compute the network."""

    events: bool  # inputs in lists instead of an array
    capped: bool  # lists of a share of each layer, above the second threshold: another gradient


PLAIN = "plain JAX, lax.conv"
ALTERNATIVES = {
    PLAIN: Alternative(events=False, capped=False),
    "snnjax, dense input": Alternative(events=False, capped=False),
    "snnjax, events": Alternative(events=True, capped=False),
    "snnjax, events, capacity 10 %": Alternative(events=True, capped=True),
}


def made(camera: Camera, capped: bool = False):
    """The network."""
    share = workloads.CAPACITY_SHARE if capped else None
    second = workloads.SECOND_THRESHOLD if capped else None
    layers: list[Any] = []
    for channels in camera.channels:
        conv = conv2d(channels, camera.kernel)
        layers += [layer(conv, capacity=share, second_threshold=second), sum_pool(camera.pool)]
    return network(camera.shape, layers, leaky_readout(camera.outputs))


@functools.lru_cache(maxsize=1)
def data(camera: Camera) -> tuple[Any, jax.Array, SparseSpikes, jax.Array]:
    """The parameters at the rate, the events of digits as an array and as lists, and their labels."""
    digits = load_mnist_10k("test").select(slice(camera.batch))
    stride = DIGIT_PIXELS // camera.pixels
    images = np.ascontiguousarray(digits.images[:, ::stride, ::stride])
    found = saccade_spikes(images, num_steps=camera.steps, margin=camera.margin)
    # The camera numbers [polarity, y, x]; images of a convolution have their channels last.
    height, width, polarities = camera.shape
    shape = (camera.steps, camera.batch, polarities, height, width)
    dense = np.moveaxis(np.asarray(found.to_dense()).reshape(shape), 2, -1)
    dense = dense.reshape(camera.steps, camera.batch, -1)
    events = SparseSpikes.from_ids(jnp.asarray(workloads.listed_ids(dense)), dense.shape[-1])
    inputs = jnp.asarray(dense, jnp.float32)
    params = made(camera).init(jax.random.key(workloads.SEED), inputs, target_activity=camera.rate)
    return params, inputs, events, jnp.asarray(digits.labels, jnp.int32)


def images(camera: Camera) -> peers.Images:
    """The same for other libraries, in NumPy alone."""
    params, inputs, _, labels = jax.tree.map(np.asarray, data(camera))
    *hidden, readout = layers_of("images", made(camera))
    return peers.Images(
        inputs.reshape(*inputs.shape[:2], *camera.shape),
        labels,
        tuple(tuple(params[own.connection.name]) for own in hidden),
        tuple(params[readout.connection.name]),
        camera.pool,
        SLOPE,
        READOUT_DECAY,
    )


def by_hand(net, pool: int, params: Params, inputs: jax.Array) -> jax.Array:
    """The output, of the same parameters."""
    *hidden, _ = layers_of("by_hand", net)
    x = inputs.reshape(-1, *hidden[0].in_shape)  # all steps are one batch
    for own in hidden:
        weights, bias = params[own.connection.name]
        images = convolve(x, weights) + bias
        currents = images.reshape(*inputs.shape[:2], *images.shape[1:])
        constants = own.neuron.block.operands(params.get(own.neuron.name), None, own.out_shape).glif
        spikes = scan_neurons(constants, currents, None).reshape(images.shape)
        window = (1, pool, pool, 1)
        x = jax.lax.reduce_window(spikes, 0.0, jax.lax.add, window, window, "VALID")
    return scan_readout(params, x.reshape(*inputs.shape[:2], -1))


def outputs_of(camera: Camera, alternative: str) -> Callable[[Any, Any], jax.Array]:
    """The forward pass of an alternative, of (parameters, inputs)."""
    net = made(camera, ALTERNATIVES[alternative].capped)
    if alternative == PLAIN:
        return functools.partial(by_hand, net, camera.pool)
    return lambda params, inputs: net.apply(params, None, inputs)[0].output


def program(camera: Camera, alternative: str, task: str) -> tuple[Any, tuple[Any, ...]]:
    """The compiled task, and its arguments."""
    params, dense, events, labels = data(camera)
    inputs = events if ALTERNATIVES[alternative].events else dense
    given = (params, inputs)
    if task == TRAINING:
        given = (params, optax.adam(workloads.LEARNING_RATE).init(params), inputs, labels)
    run = tasks(outputs_of(camera, alternative), optax.adam(workloads.LEARNING_RATE))[task]
    return jit(run).lower(*given).compile(), given


def timed(camera: Camera, alternative: str, task: str) -> Timer:
    run, given = program(camera, alternative, task)
    return timer(run, lambda: given)


def measured() -> Iterator[tuple[str, str]]:
    """Tasks and alternatives."""
    for task in (TRAINING, INFERENCE):
        for name, alternative in ALTERNATIVES.items():
            if task == TRAINING or not alternative.capped:  # lists matter to gradients
                yield task, name


def programs(camera: Camera) -> dict[tuple[str, str], Program]:
    """By task and alternative."""
    return {(task, name): functools.partial(timed, camera, name, task) for task, name in measured()}


def memory(camera: Camera) -> dict[tuple[str, str], list[float]]:
    """MB that the program of each task and alternative takes beside arguments and results.

    What a kernel takes by itself is not part of a program: scratch, up to 256 MiB of which stay from call to call.
    """
    made = {(task, name): program(camera, name, task)[0] for task, name in measured()}
    return {key: [run.memory_analysis().temp_size_in_bytes / BYTES_PER_MB] for key, run in made.items()}
