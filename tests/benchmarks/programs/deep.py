"""W14, whole networks of images with batch norms, as `snnjax.models` has them: one gradient of a loss, and inference.

Images are pixels as currents, the same in every step. Plain JAX has one `lax.conv` of all steps at once for each layer
of a VGG; only the neurons are scanned. SpikingJelly runs models of the same layers with weights of its own.
"""

import functools
import math
from collections.abc import Callable, Collection
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import snnjax
from snnjax import models
from snnjax._types import Params, Stats
from tests.benchmarks import peers, workloads
from tests.benchmarks.programs import fresh
from tests.benchmarks.programs.convolutions import convolve
from tests.benchmarks.programs.networks import INFERENCE
from tests.benchmarks.programs.neurons import loss_of, scan_zeroed
from tests.benchmarks.timing import Program, Timer, timer

GRADIENT = "loss and gradient"
PLAIN, FULL, CAPPED = "plain JAX, lax.conv", "snnjax", "snnjax, lists of 10 %"
STAGES = ((64, 64), (128, 128), (256, 256))
QUARTER = ((32, 32), (64, 64), (128, 128))
OUTPUTS, EPSILON = 10, 1e-5
# Bytes of an array with which the options gain nothing and take memory (docs/how_to/larger_programs.md).
LARGE = 2**25


class Deep(NamedTuple):
    """A network of `snnjax.models`, by the name of its function."""

    model: str = "vgg"
    stages: tuple[tuple[int, ...], ...] = STAGES  # of a VGG
    width: int = 256  # of a Spikformer
    edge: int = 32
    steps: int = 4
    batch: int = 32

    @property
    def name(self) -> str:
        """The section's title."""
        stages = " ".join("-".join(map(str, stage)) + "-P" for stage in self.stages)
        kind = {
            "vgg": f"VGG {stages}",
            "sew_resnet": "SEW-ResNet-18",
            "spikformer": f"Spikformer-4-{self.width}",
        }
        shape = f"{self.edge}x{self.edge}x3, {self.steps} steps, batch {self.batch}"
        return f"W14, {kind[self.model]}, {shape}"

    @property
    def shape(self) -> tuple[int, int, int]:
        return (self.edge, self.edge, 3)


def made(of: Deep, capped: bool = False):
    """The network."""
    options: dict[str, Any] = {"capacity": workloads.CAPACITY_SHARE if capped else None}
    if of.model == "vgg":
        options["stages"] = of.stages
    if of.model == "spikformer":
        options["width"] = of.width
    return getattr(models, of.model)(of.shape, OUTPUTS, **options)


def pixels(of: Deep) -> tuple[np.ndarray, np.ndarray]:
    """Images ``[time, batch, height, width, channels]`` and labels."""
    draw = np.random.default_rng(workloads.SEED)
    images = draw.standard_normal((of.batch, *of.shape)).astype(np.float32)
    return np.repeat(images[None], of.steps, 0), draw.integers(0, OUTPUTS, of.batch).astype(np.int32)


@functools.lru_cache(maxsize=1)
def data(of: Deep) -> tuple[Any, Any, jax.Array, jax.Array]:
    """Parameters, statistics of the images, images and labels."""
    net, (inputs, labels) = made(of), map(jnp.asarray, pixels(of))
    key = jax.random.key(workloads.SEED)
    params, first = net.init(key), net.initial_stats(key)
    after = jax.jit(lambda stats: net.apply(params, None, inputs, stats=stats, train=True)[0].stats)(first)
    # A call keeps nine tenths of the statistics before it.
    stats = jax.tree.map(lambda old, new: old + 10 * (new - old), first, after)
    return params, stats, inputs, labels


def by_hand(of: Deep, stats: Stats, params: Params, inputs: jax.Array) -> jax.Array:
    """The output of a VGG, of the same parameters; with the statistics of the inputs if `stats` is None."""
    net, x = made(of), inputs
    for node in net.nodes:
        kind = node.block.kind
        if kind == "conv2d":
            images = convolve(x.reshape(-1, *x.shape[2:]), params[node.name].weights)
            x = images.reshape(*x.shape[:2], *images.shape[1:])
        elif kind == "batch_norm":
            axes, (scale, bias) = (0, 1, 2, 3), params[node.name]
            mean, variance = (jnp.mean(x, axes), jnp.var(x, axes)) if stats is None else stats[node.name]
            x = (x - mean) * (scale * jax.lax.rsqrt(variance + EPSILON)) + bias
        elif kind == "max_pool":
            window = (1, 1, 2, 2, 1)
            x = jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, window, window, "VALID")
        elif kind == "lif":
            x = scan_zeroed(x)
    weights, bias = params["readout"]
    return x.reshape(*x.shape[:2], -1) @ weights + bias


def outputs_of(of: Deep, alternative: str, train: bool) -> Callable[[Any, Any], jax.Array]:
    """The forward pass of an alternative, of (parameters, inputs)."""
    stats = data(of)[1]
    if alternative == PLAIN:
        return functools.partial(by_hand, of, None if train else stats)
    net = made(of, alternative == CAPPED)
    return lambda params, inputs: net.apply(params, None, inputs, stats=stats, train=train)[0].output


def jit(of: Deep, alternative: str, function: Callable[..., Any]):
    """With the options that a user should give; plain JAX has them in any case, as elsewhere."""
    widest = max(math.prod(shape) for shape in made(of).shapes.values())
    is_large = np.dtype(np.float32).itemsize * of.steps * of.batch * widest >= LARGE
    has_none = is_large and alternative != PLAIN
    return jax.jit(function, compiler_options={} if has_none else snnjax.compiler_options())


def program(of: Deep, alternative: str, task: str) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """The compiled task, and its arguments."""
    params, _, inputs, labels = data(of)
    forward = outputs_of(of, alternative, task == GRADIENT)
    if task == GRADIENT:
        return jit(of, alternative, jax.value_and_grad(loss_of(forward))), (params, inputs, labels)

    def mean(params: Params, inputs: jax.Array) -> jax.Array:
        return jnp.mean(forward(params, inputs), axis=0)

    return jit(of, alternative, mean), (params, inputs)


def timed(of: Deep, alternative: str, task: str) -> Timer:
    run, given = program(of, alternative, task)
    return timer(run, lambda: given)


def programs(of: Deep, labels: Collection[str]) -> dict[tuple[str, str], Program]:
    """By task and alternative; `labels` are those of SpikingJelly."""
    plain = (PLAIN,) if of.model == "vgg" else ()
    found = {
        (task, name): functools.partial(timed, of, name, task)
        for task, names in ((GRADIENT, (*plain, FULL, CAPPED)), (INFERENCE, (*plain, FULL)))
        for name in names
    }
    if labels:
        given = peers.Deep(of.model, of.stages, of.width, *pixels(of))
        found |= peers.deep_programs(given, labels)
    return found


def memory(of: Deep, alternative: str) -> float:
    """MB of the peak of a process that computes some gradients; for `process.ask`."""
    run, given = program(of, alternative, GRADIENT)
    for _ in range(fresh.TRAINING_STEPS):
        jax.block_until_ready(run(*given))
    return fresh.memory_mb("VmHWM")
