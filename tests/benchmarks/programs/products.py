"""The alternatives of W4: the product of spikes with weights, and its two backward passes."""

import dataclasses
import functools
import importlib
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp

from snnjax import SparseSpikes, spike_matmul
from tests.benchmarks import workloads
from tests.benchmarks.programs.networks import jit
from tests.benchmarks.timing import Program, Timer, timer
from tests.benchmarks.workloads import Product

FORWARD, VALUES, WEIGHTS = "forward", "backward to spikes", "backward to weights"
TASKS = (FORWARD, VALUES, WEIGHTS)

PLAIN = "plain JAX, dense"
LISTED = {"snnjax reference, lists": "reference", "snnjax, lists": None}  # and the implementation
ALTERNATIVES = (PLAIN, *LISTED)
# The two forms of the reference and whether they gather, whatever it would choose for these sizes.
FORMS = {"reference, rows gathered": True, "reference, dense product": False}
# A gather of more would only show that it is slow.
MAX_GATHERED = 2**27  # entries of the weights

# The module, which the op of the same name hides.
OP = importlib.import_module("snnjax.ops.spike_matmul")


@functools.cache
def compiled(alternative: str, task: str) -> Callable[..., jax.Array]:
    """The jitted task, for any size."""
    if alternative == PLAIN:
        return jit(dense_task(task))
    return jit(listed_task(task, LISTED[alternative]))


def dense_task(task: str) -> Callable[..., jax.Array]:
    """The task on dense arrays, as a user writes it in plain JAX."""
    return {
        FORWARD: lambda dense, weights, g: dense @ weights,
        VALUES: lambda dense, weights, g: g @ weights.T,
        WEIGHTS: lambda dense, weights, g: dense.T @ g,
    }[task]


def listed_task(task: str, implementation: str | None) -> Callable[..., jax.Array]:
    """The task through `spike_matmul`."""

    def product(spikes: SparseSpikes, values: jax.Array, weights: jax.Array) -> jax.Array:
        lists = dataclasses.replace(spikes, values=values)
        return spike_matmul(lists, weights, implementation=implementation)

    def to_values(spikes: SparseSpikes, weights: jax.Array, g: jax.Array) -> jax.Array:
        return jax.vjp(lambda values: product(spikes, values, weights), spikes.values)[1](g)[0]

    def to_weights(spikes: SparseSpikes, weights: jax.Array, g: jax.Array) -> jax.Array:
        return jax.vjp(lambda w: product(spikes, spikes.values, w), weights)[1](g)[0]

    def forward(spikes: SparseSpikes, weights: jax.Array, g: jax.Array) -> jax.Array:
        return product(spikes, spikes.values, weights)

    return {FORWARD: forward, VALUES: to_values, WEIGHTS: to_weights}[task]


def compiled_form(task: str, gathers: bool, operands: tuple[Any, ...]) -> Callable[..., jax.Array]:
    """The task through one form of the reference."""
    own = OP.prefers_lists
    OP.prefers_lists = lambda *_: gathers
    try:
        return jit(listed_task(task, "reference")).lower(*operands).compile()
    finally:
        OP.prefers_lists = own


@functools.lru_cache(maxsize=1)
def data(product: Product) -> tuple[jax.Array, SparseSpikes, jax.Array, jax.Array]:
    """Spikes as an array and as lists that hold them all, weights, and the gradient of the output."""
    dense = workloads.bernoulli((product.batch, product.neurons), product.density)
    spikes = SparseSpikes.from_ids(jnp.asarray(workloads.listed_ids(dense)), product.neurons).with_values()
    of_weights, of_gradient = jax.random.split(jax.random.key(workloads.SEED))
    weights = jax.random.normal(of_weights, (product.neurons, product.neurons))
    return jnp.asarray(dense), spikes, weights, jax.random.normal(of_gradient, dense.shape)


def program(
    product: Product, alternative: str, task: str
) -> tuple[Callable[..., jax.Array], tuple[Any, ...]]:
    """The compiled task of an alternative, and its arguments."""
    dense, spikes, weights, g = data(product)
    operands = (dense if alternative == PLAIN else spikes, weights, g)
    if alternative in FORMS:
        return compiled_form(task, FORMS[alternative], operands), operands
    return compiled(alternative, task), operands


def timed(product: Product, alternative: str, task: str) -> Timer:
    run, operands = program(product, alternative, task)
    return timer(run, lambda: operands)


def programs(product: Product, alternatives: Sequence[str]) -> dict[tuple[str, str], Program]:
    """By task and alternative, but for gathers that are out of proportion."""
    capacity = workloads.listed_ids(
        workloads.bernoulli((product.batch, product.neurons), product.density)
    ).shape[1]
    too_much = product.batch * capacity * product.neurons > MAX_GATHERED
    return {
        (task, name): functools.partial(timed, product, name, task)
        for task in TASKS
        for name in alternatives
        if not (too_much and FORMS.get(name, False))
    }
