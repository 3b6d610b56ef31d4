"""Recurrent networks of each neuron model: `Network.apply` compared with a hand-written scan of the same equations."""

import functools
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

from snnjax import layer, leaky_readout, network, neurons
from snnjax._types import Params, Signal, State
from snnjax.graph.layers import layers_of
from tests.benchmarks.programs.networks import INFERENCE, TRAINING, jit
from tests.benchmarks.timing import Program, Timer, timer

PLAIN, FULL, CAPPED = "plain JAX, lax.scan", "snnjax", "snnjax, lists of 10 %"
MODELS: dict[str, Callable[[], neurons.Neuron]] = {
    "LIF": neurons.lif,
    "adLIF": neurons.adlif,
    "adaptive LIF": neurons.adaptive_lif,
    "current-based LIF": neurons.current_lif,
    "SE-adLIF": neurons.se_adlif,
    "resonate-and-fire": neurons.resonate_and_fire,
}
LEARNING_RATE = 1e-3


class Shape(NamedTuple):
    """A network of two recurrent layers, as for spoken digits."""

    inputs: int = 700
    hidden: tuple[int, ...] = (256, 256)
    outputs: int = 20
    steps: int = 100
    batch: int = 64
    rate: float = 0.02  # of the inputs
    recurrent: bool = True

    @property
    def name(self) -> str:
        mark = " (recurrent)" if self.recurrent else ""
        widths = "-".join([str(self.inputs), *(f"{each}{mark}" for each in self.hidden), str(self.outputs)])
        return f"{widths}, {self.steps} steps, batch {self.batch}"


def net(shape: Shape, model: str, capped: bool):
    """The network."""
    neuron, capacity = MODELS[model](), 0.1 if capped else None
    layers = [layer(each, neuron, recurrent=shape.recurrent, capacity=capacity) for each in shape.hidden]
    return network(shape.inputs, layers, leaky_readout(shape.outputs))


def made(shape: Shape, model: str, capped: bool) -> tuple[Any, Any, jax.Array, jax.Array]:
    """The network, its parameters at 2 % activity, inputs and labels."""
    of, (inputs, labels) = net(shape, model, capped), sample(shape)
    return of, of.init(jax.random.key(0), inputs, target_activity=shape.rate), inputs, labels


def sample(shape: Shape) -> tuple[jax.Array, jax.Array]:
    """Inputs and labels."""
    draw = np.random.default_rng(0)
    inputs = draw.random((shape.steps, shape.batch, shape.inputs)) < shape.rate
    labels = draw.integers(0, shape.outputs, shape.batch)
    return jnp.asarray(inputs, jnp.float32), jnp.asarray(labels, jnp.int32)


@jax.custom_vjp
def spike(x: jax.Array) -> jax.Array:
    """``[x > 0]`` with the derivative of the superspike surrogate, as the neurons above have it by default."""
    return (x > 0).astype(x.dtype)


SLOPE, READOUT_DECAY = neurons.lif().surrogate.slope, 0.95  # the default of `leaky_readout`
spike.defvjp(lambda x: (spike(x), x), lambda x, g: (g / (1 + SLOPE * jnp.abs(x)) ** 2,))


def by_hand(net, params: Params, inputs: jax.Array) -> jax.Array:
    """The output; the products with the inputs of a layer are one for all steps."""
    *hidden, _ = layers_of("by_hand", net)
    x = inputs
    for own in hidden:
        (weights, bias), neuron = params[own.connection.name], params.get(own.neuron.name)
        fed_back = params[own.returning[1].name].weights if own.returning else None
        constants = own.neuron.block.operands(neuron, None, own.out_shape).glif
        x = scan_neurons(constants, x @ weights + bias, fed_back)
    return scan_readout(params, x)


def scan_readout(params: Params, x: jax.Array) -> jax.Array:
    """The membranes of a leaky readout."""
    weights, bias = params["readout/connection"]
    decay = jnp.float32(READOUT_DECAY)
    currents = (1 - decay) * (x @ weights + bias)

    def step(v: jax.Array, current: jax.Array) -> tuple[jax.Array, jax.Array]:
        v = decay * v + current
        return v, v

    return jax.lax.scan(step, jnp.zeros_like(currents[0]), currents)[1]


def scan_neurons(constants, currents: jax.Array, recurrent: jax.Array | None) -> jax.Array:
    """The spikes of a layer; terms that its equation has not are not computed."""
    (decay, threshold, gain), second = constants[:3], constants.second_state
    none = (0.0,) * 6
    w_decay, *couplings = none if second is None else second
    w_membrane, w_gain, w_jump, v_coupling, raised = (0.0 if each is None else each for each in couplings)

    def step(carry, current: jax.Array) -> tuple[Any, jax.Array]:
        v, w, s, theta = carry
        if recurrent is not None:
            current = current + s @ recurrent
        terms = ((w_decay, w), (w_membrane, v), (w_gain, current), (w_jump, s))
        w = sum((factor * x for factor, x in terms if not isinstance(factor, float)), start=jnp.zeros_like(v))
        v = decay * (v - theta * jax.lax.stop_gradient(s)) + gain * current
        v = v if isinstance(v_coupling, float) else v + v_coupling * w
        theta = threshold if isinstance(raised, float) else threshold + raised * w
        s = spike(v - theta)
        return (v, w, s, jnp.broadcast_to(theta, v.shape)), s

    zeros = jnp.zeros_like(currents[0])
    return jax.lax.scan(step, (zeros, zeros, zeros, zeros + threshold), currents)[1]


def scan_zeroed(currents: jax.Array) -> jax.Array:
    """The spikes of ``lif(0.5, reset="zero")``."""

    def step(v: jax.Array, current: jax.Array) -> tuple[jax.Array, jax.Array]:
        v = 0.5 * v + 0.5 * current
        s = spike(v - 1.0)
        return jax.lax.stop_gradient(1.0 - s) * v, s

    return jax.lax.scan(step, jnp.zeros_like(currents[0]), currents)[1]


def outputs_of(name: str, net) -> Callable[[Any, Any], jax.Array]:
    """The forward pass of an alternative."""
    if name == PLAIN:
        return functools.partial(by_hand, net)
    return lambda params, inputs: net.apply(params, None, inputs)[0].output


def timed(shape: Shape, model: str, name: str, task: str) -> Timer:
    optimiser = optax.adam(LEARNING_RATE)
    net, params, inputs, labels = made(shape, model, name == CAPPED)
    run = jit(tasks(outputs_of(name, net), optimiser)[task])
    given = (params, inputs) if task == INFERENCE else (params, optimiser.init(params), inputs, labels)
    return timer(run, lambda: given)


def programs(shape: Shape) -> Iterator[tuple[tuple[str, str], Program]]:
    """By model, task and alternative."""
    for model in MODELS:
        for task, names in ((TRAINING, (PLAIN, FULL, CAPPED)), (INFERENCE, (PLAIN, FULL))):
            for name in names:
                yield (f"{model}, {task}", name), functools.partial(timed, shape, model, name, task)


def loss_of(forward: Callable[[Any, Any], jax.Array]) -> Callable[[Any, Any, Any], jax.Array]:
    """The mean cross entropy of (parameters, inputs, labels); logits are means over time."""

    def loss(params: Params, inputs: Signal, labels) -> jax.Array:
        logits = jnp.mean(forward(params, inputs), axis=0)
        return jnp.mean(optax.softmax_cross_entropy_with_integer_labels(logits, labels))

    return loss


def tasks(forward: Callable[[Any, Any], jax.Array], optimiser) -> dict[str, Callable[..., Any]]:
    """Inference, of (parameters, inputs), and a training step, of (parameters, state, inputs, labels)."""

    def train(params: Params, state: State, inputs: Signal, labels):
        updates, state = optimiser.update(jax.grad(loss_of(forward))(params, inputs, labels), state)
        return optax.apply_updates(params, updates), state

    return {INFERENCE: lambda params, inputs: jnp.mean(forward(params, inputs), axis=0), TRAINING: train}
