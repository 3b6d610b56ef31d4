"""The alternatives of the convolution of spikes: `spike_conv` of rows and of lists beside XLA's, and its gradients."""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from snnjax import SparseSpikes, spike_conv
from snnjax._types import Signal
from tests.benchmarks import workloads
from tests.benchmarks.programs.networks import jit
from tests.benchmarks.programs.products import FORWARD, TASKS, VALUES
from tests.benchmarks.timing import Program, Timer, timer

PLAIN, ROWS, LISTS = "plain JAX, lax.conv", "snnjax, rows", "snnjax, lists"
ALTERNATIVES = (PLAIN, ROWS, LISTS)


class Convolved(NamedTuple):
    """Some images of spikes and a kernel, "same" padding."""

    shape: tuple[int, int, int]  # height, width, channels
    kernel: int
    channels: int  # of the result
    rows: int = 480  # ten steps of a batch of 48

    @property
    def name(self) -> str:
        inputs = "x".join(map(str, self.shape))
        return f"spike_conv, {inputs} - {self.channels}C{self.kernel}, {self.rows} rows"

    @property
    def weights_shape(self) -> tuple[int, int, int, int]:
        return (self.kernel, self.kernel, self.shape[-1], self.channels)


def convolve(images: jax.Array, weights: jax.Array, strides: int = 1) -> jax.Array:
    """As a user writes it in plain JAX, on ``[images, height, width, channels]``."""
    form = ("NHWC", "HWIO", "NHWC")
    return jax.lax.conv_general_dilated(images, weights, (strides, strides), "SAME", dimension_numbers=form)


def task_of(conv: Callable[[Any, Any], jax.Array], task: str) -> Callable[..., jax.Array]:
    """The task of (what the spikes are given as, weights, cotangents)."""
    if task == FORWARD:
        return lambda spikes, weights, g: conv(spikes, weights)
    place = int(task != VALUES)

    def backward(spikes: Signal, weights: jax.Array, g: jax.Array) -> jax.Array:
        return jax.vjp(conv, spikes, weights)[1](g)[place]

    return backward


@functools.lru_cache(maxsize=1)
def data(of: Convolved, density: float) -> tuple[jax.Array, SparseSpikes, jax.Array, jax.Array]:
    """Spikes as images and as lists that hold them all, weights, and the gradient of the images that come out."""
    height, width, channels = of.shape
    dense = workloads.bernoulli((of.rows, height * width * channels), density)
    spikes = SparseSpikes.from_ids(jnp.asarray(workloads.listed_ids(dense)), dense.shape[1]).with_values()
    of_weights, of_gradient = jax.random.split(jax.random.key(workloads.SEED))
    weights = jax.random.normal(of_weights, of.weights_shape)
    g = jax.random.normal(of_gradient, (of.rows, height, width, of.channels))
    return jnp.asarray(dense).reshape(of.rows, *of.shape), spikes, weights, g


def program(
    of: Convolved, density: float, alternative: str, task: str
) -> tuple[Callable[..., jax.Array], tuple[Any, ...]]:
    """The jitted task of an alternative, and its arguments; rows and lists are flat, as the op takes them."""
    images, spikes, weights, g = data(of, density)
    conv: Callable[[Any, Any], jax.Array] = functools.partial(spike_conv, shape=of.shape)
    if alternative == PLAIN:
        return jit(task_of(convolve, task)), (images, weights, g)
    flat_g = g.reshape(of.rows, -1)
    if alternative == ROWS:
        return jit(task_of(conv, task)), (images.reshape(of.rows, -1), weights, flat_g)

    def of_lists(values: jax.Array, weights: jax.Array) -> jax.Array:
        return conv(dataclasses.replace(spikes, values=values), weights)

    return jit(task_of(of_lists, task)), (spikes.values, weights, flat_g)


def timed(of: Convolved, density: float, alternative: str, task: str) -> Timer:
    run, operands = program(of, density, alternative, task)
    return timer(run, lambda: operands)


def programs(of: Convolved, density: float) -> dict[tuple[str, str], Program]:
    """By task and alternative."""
    return {
        (task, name): functools.partial(timed, of, density, name, task)
        for task in TASKS
        for name in ALTERNATIVES
    }
