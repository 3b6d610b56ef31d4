"""The alternatives that compute W1 to W3, and their timed tasks: forward, gradient, training step."""

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

from snnjax import LIFLayer, LIFReadout, SparseSpikes, compiler_options, lif_network
from snnjax._types import Signal, State
from snnjax.ops._connection import DENSE, Connection
from snnjax.surrogates import Surrogate
from tests.benchmarks import workloads
from tests.benchmarks.timing import Program, Timer, timer
from tests.benchmarks.workloads import DECAY, SLOPE, THRESHOLD, Layer, Workload

SUPERSPIKE = Surrogate("superspike", SLOPE)

# (layers, inputs, whether the last layer is a readout) -> outputs [time, batch, outputs]
Forward = Callable[[list[Layer], Any, bool], jax.Array]
Spike = Callable[[jax.Array], jax.Array]  # of the membranes' distances from the threshold


@jax.custom_vjp
def spike(v: jax.Array) -> jax.Array:
    """``[v > 0]`` with the derivative of the superspike surrogate."""
    return (v > 0).astype(v.dtype)


spike.defvjp(lambda v: (spike(v), v), lambda v, g: (g / (1 + SLOPE * jnp.abs(v)) ** 2,))


def step_of_neurons(v: jax.Array, current: jax.Array, spike: Spike = spike) -> tuple[jax.Array, jax.Array]:
    """The membranes after the reset, and the spikes."""
    v = DECAY * v + current
    spikes = spike(v - THRESHOLD)
    return v - jax.lax.stop_gradient(spikes), spikes


def scan_over_time(layers: list[Layer], inputs: jax.Array, readout: bool, spike: Spike = spike) -> jax.Array:
    """As a user writes it in plain JAX: all layers, step by step."""

    def step(carry, x: jax.Array) -> tuple[Any, jax.Array]:
        after = []
        for index, (layer, (v, spikes)) in enumerate(zip(layers, carry, strict=True)):
            current = x @ layer.weights
            if layer.recurrent is not None:
                current = current + spikes @ layer.recurrent
            if readout and index == len(layers) - 1:
                v = x = DECAY * v + current
            else:
                v, x = step_of_neurons(v, current, spike)
            after.append((v, x))
        return after, x

    zeros = [jnp.zeros((inputs.shape[1], layer.weights.shape[1]), inputs.dtype) for layer in layers]
    return jax.lax.scan(step, [(v, v) for v in zeros], inputs)[1]


def layer_by_layer(layers: list[Layer], inputs: jax.Array, readout: bool, spike: Spike = spike) -> jax.Array:
    """Plain JAX with one product per layer for all steps; only the neurons are scanned."""
    for index, layer in enumerate(layers):
        currents = inputs @ layer.weights
        is_readout = readout and index == len(layers) - 1
        inputs = scan_neurons(currents, layer.recurrent, is_readout, spike)
    return inputs


def scan_neurons(
    currents: jax.Array, recurrent: jax.Array | None, readout: bool, spike: Spike, unroll: int = 1
) -> jax.Array:
    def step(carry: tuple[jax.Array, jax.Array], current: jax.Array) -> tuple[Any, jax.Array]:
        v, spikes = carry
        if recurrent is not None:
            current = current + spikes @ recurrent
        if readout:
            v = spikes = DECAY * v + current
        else:
            v, spikes = step_of_neurons(v, current, spike)
        return (v, spikes), spikes

    zeros = jnp.zeros_like(currents[0])
    return jax.lax.scan(step, (zeros, zeros), currents, unroll=unroll)[1]


def through_snnjax(
    layers: list[Layer],
    inputs: Signal,
    readout: bool,
    implementation: str | None = None,
    capacity_share: float | None = None,
    surrogate: Surrogate = SUPERSPIKE,
    connection: Connection = DENSE,
    record_dtype=None,
) -> jax.Array:
    """Through `lif_network`; a share is that of each hidden layer, and the connection that into each layer."""
    spiking = layers[:-1] if readout else layers
    network = [
        LIFLayer(each.weights, DECAY, THRESHOLD, 1.0, recurrent=each.recurrent, connection=connection)
        for each in spiking
    ]
    capacity = None
    if capacity_share is not None:
        capacity = [max(1, round(capacity_share * each.weights.shape[1])) for each in spiking]
        capacity = capacity if readout else [*capacity[:-1], None]  # so that a silent class can still learn
    out, _ = lif_network(
        inputs,
        network,
        LIFReadout(layers[-1].weights, DECAY, 1.0) if readout else None,
        capacity=capacity,
        second_threshold=workloads.SECOND_THRESHOLD,
        surrogate=surrogate,
        record_dtype=record_dtype,
        implementation=implementation,
    )
    return out.output


class Alternative(NamedTuple):
    """One way to compute a network."""

    forward: Forward
    inputs: str  # the form that it takes them in


reference = functools.partial(through_snnjax, implementation="reference")
capped = functools.partial(through_snnjax, capacity_share=workloads.CAPACITY_SHARE)

# Ratios are those to the fastest of these.
PLAIN = {
    "plain JAX, lax.scan": Alternative(scan_over_time, "dense"),
    "plain JAX, layer by layer": Alternative(layer_by_layer, "dense"),
}
KERNELS = {
    "snnjax, dense input": Alternative(through_snnjax, "dense"),
    "snnjax, events": Alternative(through_snnjax, "events"),
}
EXACT = {
    **PLAIN,
    "snnjax reference, dense input": Alternative(reference, "dense"),
    **KERNELS,
    "snnjax, uint8 input": Alternative(through_snnjax, "uint8"),
}
# Another gradient, that of the listed neurons only.
CAPPED = {
    "snnjax, dense input, capacity 10 %": Alternative(capped, "dense"),
    "snnjax, events, capacity 10 %": Alternative(capped, "events"),
}
ALTERNATIVES = {**EXACT, **CAPPED}

FORWARD, INFERENCE, GRADIENT = "forward", "inference", "forward + backward"
TRAINING, DONATED = "training step", "training step, donated"


def jit(function: Callable[..., Any], donate_argnums: tuple[int, ...] = ()):
    """With the options that a user should give, ours and plain JAX alike."""
    return jax.jit(function, donate_argnums=donate_argnums, compiler_options=compiler_options())


@functools.cache
def compiled(alternative: str, task: str, readout: bool) -> Callable[..., Any]:
    """The jitted task; `arguments` says what it takes."""
    return jitted(ALTERNATIVES[alternative].forward, task, readout)


def loss_of(forward: Forward, readout: bool) -> Callable[..., jax.Array]:
    """The mean cross entropy of (layers, inputs, labels)."""

    def loss(layers: list[Layer], inputs: Signal, labels: jax.Array) -> jax.Array:
        logits = jnp.sum(forward(layers, inputs, readout), axis=0)
        return jnp.mean(optax.softmax_cross_entropy_with_integer_labels(logits, labels))

    return loss


def updated(layers: list[Layer], state: State, gradients: list[Layer]) -> tuple[list[Layer], Any]:
    """The parameters and the optimiser's state after a step."""
    updates, state = optax.adam(workloads.LEARNING_RATE).update(gradients, state)
    return optax.apply_updates(layers, updates), state  # pyright: ignore


def jitted(forward: Forward, task: str, readout: bool) -> Callable[..., Any]:
    """The task of any network on the CPU."""
    return jit(task_of(forward, task, readout), donate_argnums=donated(task))


def donated(task: str) -> tuple[int, ...]:
    """The arguments that a task gives away."""
    return (0, 1) if task == DONATED else ()


def task_of(forward: Forward, task: str, readout: bool) -> Callable[..., Any]:
    """The task of any network."""

    def outputs(layers: list[Layer], inputs: Signal) -> jax.Array:
        return forward(layers, inputs, readout)

    def logits(layers: list[Layer], inputs: Signal) -> jax.Array:
        return jnp.sum(outputs(layers, inputs), axis=0)

    def weighted(layers: list[Layer], inputs: Signal, weights: jax.Array) -> jax.Array:
        return jnp.sum(outputs(layers, inputs) * weights)

    def train(layers: list[Layer], state: State, inputs: Signal, labels: jax.Array):
        value, gradients = jax.value_and_grad(loss_of(forward, readout))(layers, inputs, labels)
        return (*updated(layers, state, gradients), value)

    return {
        FORWARD: outputs,
        INFERENCE: logits,
        GRADIENT: jax.value_and_grad(weighted),
        TRAINING: train,
        DONATED: train,
    }[task]


@functools.lru_cache(maxsize=1)
def data(workload: Workload) -> tuple[list[Layer], dict[str, Any]]:
    """The weights and the inputs in each form; of the workload asked for last, the others are let go."""
    dense = workloads.bernoulli(workload.input_shape, workload.rate)
    inputs = {
        "dense": jnp.asarray(dense),
        "uint8": jnp.asarray(dense.astype(np.uint8)),
        "events": SparseSpikes.from_ids(jnp.asarray(workloads.listed_ids(dense)), workload.widths[0]),
    }
    return jax.tree.map(jnp.asarray, workloads.layers(workload)), inputs


@functools.lru_cache(maxsize=1)
def output_weights(workload: Workload) -> jax.Array:
    """What the outputs are weighed with, so that they have a gradient."""
    return jax.random.normal(jax.random.key(workloads.SEED), workload.output_shape)


@functools.lru_cache(maxsize=1)
def optimiser_state(workload: Workload):
    return optax.adam(workloads.LEARNING_RATE).init(data(workload)[0])


def arguments(workload: Workload, alternative: str, task: str) -> Callable[[], tuple[Any, ...]]:
    """What makes the arguments of a call: the same arrays every time, but for copies of those that are donated."""
    layers, forms = data(workload)
    inputs = forms[ALTERNATIVES[alternative].inputs]
    if task in (FORWARD, INFERENCE):
        return lambda: (layers, inputs)
    if task == GRADIENT:
        weights = output_weights(workload)
        return lambda: (layers, inputs, weights)
    return of_step(workload, inputs, task)


def of_step(workload: Workload, inputs: Signal, task: str) -> Callable[[], tuple[Any, ...]]:
    """What makes the arguments of a training step."""
    parameters = data(workload)[0], optimiser_state(workload)
    labels = jnp.asarray(workloads.labels(workload))
    if task == TRAINING:
        return lambda: (*parameters, inputs, labels)
    return lambda: (*jax.tree.map(jnp.copy, parameters), inputs, labels)


def timed(workload: Workload, alternative: str, task: str) -> Timer:
    return timer(compiled(alternative, task, workload.readout), arguments(workload, alternative, task))


def programs(
    workload: Workload, alternatives: Sequence[str], tasks: Sequence[str]
) -> dict[tuple[str, str], Program]:
    """By task and alternative."""
    return {
        (task, name): functools.partial(timed, workload, name, task)
        for task in tasks
        for name in alternatives
    }
