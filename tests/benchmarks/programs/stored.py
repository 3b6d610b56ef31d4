"""W9, weights as they are stored: inference with rows of float32, of bfloat16 and of int8."""

import functools
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
from jax.typing import DTypeLike

from snnjax.quantisation import quantise
from tests.benchmarks.programs import networks
from tests.benchmarks.programs.networks import INFERENCE
from tests.benchmarks.timing import Program, Timer, timer
from tests.benchmarks.workloads import Layer, Workload

FORMS = ("events", "uint8", "dense")
# What is done to each of the weights; inputs in float32 come in the dtype that the op then has.
STORED: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "snnjax, float32 weights": (lambda weights: weights, jnp.float32),
    "snnjax, bfloat16 weights": (lambda weights: weights.astype(jnp.bfloat16), jnp.bfloat16),
    "snnjax, int8 weights": (quantise, jnp.float32),
}


def timed(workload: Workload, form: str, name: str) -> Timer:
    layers, inputs = networks.data(workload)
    change, dtype = STORED[name]
    own = [Layer(*(None if weights is None else change(weights) for weights in layer)) for layer in layers]
    given = own, jax.tree.map(lambda x: in_dtype(x, dtype), inputs[form])
    return timer(networks.jitted(networks.through_snnjax, INFERENCE, workload.readout), lambda: given)


def programs(workload: Workload) -> Iterator[tuple[tuple[str, str], Program]]:
    """By form of the inputs and alternative."""
    for form in FORMS:
        for name in STORED:
            yield (form, name), functools.partial(timed, workload, form, name)


def in_dtype(array, dtype: DTypeLike):
    return array.astype(dtype) if jnp.issubdtype(array.dtype, jnp.floating) else array
