"""W10, what the gradient costs: a training step of W3 with other surrogates, and with less precision."""

import dataclasses
import functools
from collections.abc import Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from snnjax.ops._connection import DENSE, Connection
from snnjax.surrogates import Surrogate
from tests.benchmarks.programs import networks
from tests.benchmarks.programs.networks import (
    DONATED,
    TRAINING,
    Alternative,
    Spike,
    layer_by_layer,
    scan_over_time,
    through_snnjax,
)
from tests.benchmarks.timing import Program, Timer, timer
from tests.benchmarks.workloads import SLOPE, Workload

STEEP = 5.0  # of a triangle that ends 0.2 from the threshold
NEAR = 0.2  # from the threshold: further away, single products cost more than rounding saves
ROUNDED = Connection(rounds_cotangents=True)


class Gradient(NamedTuple):
    """A surrogate, and what a user may opt into."""

    surrogate: Surrogate
    connection: Connection = DENSE
    record_dtype: Any = None


GRADIENTS = {
    "superspike": Gradient(Surrogate("superspike", SLOPE)),
    "superspike, cutoff 1 %": Gradient(Surrogate("superspike", SLOPE, cutoff=0.01)),
    "superspike, cotangents in bfloat16": Gradient(Surrogate("superspike", SLOPE), ROUNDED),
    "superspike, cotangents and records in bfloat16": Gradient(
        Surrogate("superspike", SLOPE), ROUNDED, record_dtype=jnp.bfloat16
    ),
    f"superspike, cotangents in bfloat16, exact within {NEAR:g}": Gradient(
        Surrogate("superspike", SLOPE), dataclasses.replace(ROUNDED, exact_within=NEAR)
    ),
    "triangle, slope 1": Gradient(Surrogate("triangle", 1.0)),
    f"triangle, slope {STEEP:g}": Gradient(Surrogate("triangle", STEEP)),
}


@functools.cache
def spike_of(surrogate: Surrogate) -> Spike:
    """``[x > 0]`` with the derivative of a surrogate."""
    slope, cutoff = surrogate.slope, surrogate.cutoff

    def fire(x: jax.Array) -> jax.Array:
        return (x > 0).astype(x.dtype)

    def backward(x: jax.Array, g: jax.Array) -> tuple[jax.Array]:
        distance = slope * jnp.abs(x)
        if surrogate.name == "triangle":
            return (g * jnp.maximum(0, 1 - distance),)
        derivative = 1 / (1 + distance) ** 2
        return (g * (jnp.where(derivative < cutoff, 0, derivative) if cutoff > 0 else derivative),)

    spike = jax.custom_vjp(fire)
    spike.defvjp(lambda x: (fire(x), x), backward)
    return spike


def alternatives(gradient: Gradient) -> dict[str, Alternative]:
    """Plain JAX and snnjax; only the latter rounds cotangents and records."""
    plain = {"spike": spike_of(gradient.surrogate)}
    ours = functools.partial(
        through_snnjax,
        surrogate=gradient.surrogate,
        connection=gradient.connection,
        record_dtype=gradient.record_dtype,
    )
    return {
        "plain JAX, lax.scan": Alternative(functools.partial(scan_over_time, **plain), "dense"),
        "plain JAX, layer by layer": Alternative(functools.partial(layer_by_layer, **plain), "dense"),
        "snnjax, dense input": Alternative(ours, "dense"),
        "snnjax, events": Alternative(ours, "events"),
    }


def timed(workload: Workload, gradient: str, name: str, task: str) -> Timer:
    alternative = alternatives(GRADIENTS[gradient])[name]
    inputs = networks.data(workload)[1][alternative.inputs]
    run = networks.jitted(alternative.forward, task, workload.readout)
    return timer(run, networks.of_step(workload, inputs, task))


def programs(workload: Workload) -> Iterator[tuple[tuple[str, str], Program]]:
    """By gradient, whether the parameters are donated, and alternative."""
    for column, gradient in GRADIENTS.items():
        for task, end in ((TRAINING, ""), (DONATED, ", donated")):
            for name in alternatives(gradient):
                yield (f"{column}{end}", name), functools.partial(timed, workload, column, name, task)
