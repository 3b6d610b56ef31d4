"""W11, inference as events come in: a few time steps of W3 a call, from the state that the call before returned."""

import functools
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp

from snnjax import LIFLayer, lif_network
from snnjax._types import Signal, State
from tests.benchmarks.programs import networks
from tests.benchmarks.programs.networks import SUPERSPIKE, step_of_neurons
from tests.benchmarks.timing import Program, Timer, timer
from tests.benchmarks.workloads import DECAY, THRESHOLD, Layer, Workload

ONE_STEP = "plain JAX, a call a step"
# (layers, state, inputs) -> state, output [time, batch, outputs]
Streamed = Callable[[list[Layer], Any, Any], tuple[Any, Any]]


def one_step(layers: list[Layer], state: State, x: jax.Array) -> tuple[Any, jax.Array]:
    """All layers, in plain JAX; the state is the membranes of each."""
    after = []
    for layer, v in zip(layers, state, strict=True):
        v, x = step_of_neurons(v, x @ layer.weights)
        after.append(v)
    return after, x


def scan_over_time(layers: list[Layer], state: State, inputs: jax.Array) -> tuple[Any, jax.Array]:
    return jax.lax.scan(functools.partial(one_step, layers), state, inputs)


def layer_by_layer(layers: list[Layer], state: State, inputs: jax.Array) -> tuple[Any, jax.Array]:
    """One product per layer for all steps."""
    after = []
    for layer, v in zip(layers, state, strict=True):
        v, inputs = jax.lax.scan(step_of_neurons, v, inputs @ layer.weights)
        after.append(v)
    return after, inputs


def call_a_step(layers: list[Layer], state: State, inputs: list[jax.Array]) -> tuple[Any, list[jax.Array]]:
    """As a loop in Python runs it, of inputs that come one by one."""
    outputs = []
    for x in inputs:
        state, output = compiled(ONE_STEP)(layers, state, x)
        outputs.append(output)
    return state, outputs


def through_snnjax(layers: list[Layer], state: State, inputs: Signal) -> tuple[Any, jax.Array]:
    network = [LIFLayer(each.weights, DECAY, THRESHOLD, 1.0) for each in layers]
    out, state = lif_network(inputs, network, state=state, surrogate=SUPERSPIKE)
    return state, out.output


# And the form of the inputs.
ALTERNATIVES: dict[str, tuple[Streamed, str]] = {
    ONE_STEP: (one_step, "dense"),
    "plain JAX, lax.scan": (scan_over_time, "dense"),
    "plain JAX, layer by layer": (layer_by_layer, "dense"),
    "snnjax, dense input": (through_snnjax, "dense"),
    "snnjax, events": (through_snnjax, "events"),
}


@functools.cache
def compiled(alternative: str) -> Callable[..., Any]:
    return networks.jit(ALTERNATIVES[alternative][0])


def program(workload: Workload, alternative: str) -> tuple[Streamed, tuple[Any, ...]]:
    """A call, and its arguments: a state at rest."""
    layers, forms = networks.data(workload)
    inputs = forms[ALTERNATIVES[alternative][1]]
    state: State = [jnp.zeros((workload.batch, width)) for width in workload.widths[1:]]
    if alternative == ONE_STEP:
        return call_a_step, (layers, state, [*inputs])
    if ALTERNATIVES[alternative][0] is through_snnjax:
        state, _ = through_snnjax(layers, None, inputs[:0])
    return compiled(alternative), (layers, state, inputs)


def timed(workload: Workload, alternative: str) -> Timer:
    run, given = program(workload, alternative)
    return timer(run, lambda: given)


def programs(workloads: tuple[Workload, ...]) -> Iterator[tuple[tuple[str, str], Program]]:
    """By batch and steps, and alternative."""
    for each in workloads:
        steps = "1 step" if each.steps == 1 else f"{each.steps} steps"
        for name in ALTERNATIVES:
            yield (f"batch {each.batch}, {steps}", name), functools.partial(timed, each, name)
