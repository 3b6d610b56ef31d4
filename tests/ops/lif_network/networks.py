"""`lif_network` written as a `lax.scan` of the single ops, and the networks that its tests run."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import DTypeLike

from snnjax import (
    LayerState,
    LIFLayer,
    LIFNetworkState,
    LIFReadout,
    lif_network_state,
    lif_step,
    select_spikes,
    spike,
    spike_matmul,
)
from snnjax._types import Signal, State
from snnjax.neurons import SecondState
from tests.numbers import array

STEPS, BATCH, INPUTS, OUTPUTS = 5, 2, 4, 2
ONE_LAYER, TWO_LAYERS = (5,), (5, 3)


def make_network(
    widths: tuple[int, ...] = TWO_LAYERS,
    recurrent: bool = True,
    seed: int = 0,
    dtype: DTypeLike = jnp.float32,
    second_states=(),
    currents: bool = False,
) -> tuple[Any, ...]:
    """Inputs, layers of `widths` (the first may be recurrent), a readout and a state, all random.

    With `currents`, these are the inputs, and the first layer has no weights.

    `second_states` lists the constants of each layer's second state, besides its decay, or None.
    """
    rng = np.random.default_rng(seed)

    def normal(*shape: int, scale: float = 1.0) -> jax.Array:
        return jnp.asarray(scale * rng.normal(size=shape), dtype)

    def uniform(low: float, high: float, *shape: int) -> jax.Array:
        return array(rng.uniform(low, high, shape), dtype)

    def second_state(index: int, neurons: int) -> SecondState | None:
        if not second_states or second_states[index] is None:
            return None
        couplings = {name: uniform(-0.5, 0.5, neurons) for name in second_states[index]}
        return SecondState(w_decay=uniform(0.5, 0.9, neurons), **couplings)

    layers = tuple(
        LIFLayer(
            weights=normal(inputs, neurons),
            decay=uniform(0.5, 0.9, neurons),
            threshold=uniform(0.5, 0.8, neurons) if index else uniform(0.5, 0.8),
            gain=uniform(0.6, 1.0, neurons),
            bias=normal(neurons, scale=0.2),
            recurrent=normal(neurons, neurons, scale=0.5) if recurrent and index == 0 else None,
            second_state=second_state(index, neurons),
        )
        for index, (inputs, neurons) in enumerate(zip((INPUTS, *widths), widths, strict=False))
    )
    readout = LIFReadout(normal(widths[-1], OUTPUTS), uniform(0.5, 0.9), bias=normal(OUTPUTS))
    inputs = array(rng.random((STEPS, BATCH, INPUTS)) < 0.6, dtype)
    if currents:
        inputs, layers = normal(STEPS, BATCH, widths[0]), (layers[0]._replace(weights=None), *layers[1:])
    state = lif_network_state(BATCH, layers, readout, currents=inputs)
    state = jax.tree.map(lambda leaf: leaf + normal(*leaf.shape), state)
    return inputs, layers, readout, state


def glif_step(
    layer,
    v,
    w,
    current,
    surrogate,
    reset: str = "subtract",
    detach_reset: bool = True,
):
    """The equation of `lif_network` with a second state: new states, spikes, and what the threshold is raised by."""
    constants = SecondState(*(0.0 if each is None else each[None] for each in layer.second_state))
    decay, gain, threshold = layer.decay[None], layer.gain[None], jnp.atleast_1d(layer.threshold)[None]
    raised = threshold + constants.threshold_coupling * w
    before = spike(v - raised, surrogate)
    held = jax.lax.stop_gradient(before) if detach_reset else before
    u = {"subtract": v - raised * held, "zero": v * (1 - held), "none": v}[reset]
    w = (
        constants.w_decay * w
        + constants.w_membrane * v
        + constants.w_gain * current
        + constants.w_jump * before
    )
    v = decay * u + gain * current + constants.v_coupling * w
    raise_by = constants.threshold_coupling * w
    return v, w, spike(v - (threshold + raise_by), surrogate), raise_by


def layer_step(layer, capacity, second_threshold, x, v, w, before, **options):
    """New states, true spikes (their gradient only above the second threshold) and lists of one layer."""
    surrogate, width = options["surrogate"], v.shape[-1]
    capacity, second = (width, -jnp.inf) if capacity is None else (capacity, second_threshold)
    current = (x if layer.weights is None else x @ layer.weights) + layer.bias[None]
    if layer.recurrent is not None:
        current = current + before @ layer.recurrent
    if layer.second_state is None:
        v, true = lif_step(v, current, layer.decay, layer.threshold, layer.gain, **options)
        raise_by = 0.0
    else:
        v, w, true, raise_by = glif_step(layer, v, w, current, **options)
    threshold = jnp.broadcast_to(layer.threshold, v.shape) + raise_by
    lists = select_spikes(v, threshold, second + raise_by, capacity=capacity, surrogate=surrogate)
    return v, w, jnp.where(v > second + raise_by, true, jax.lax.stop_gradient(true)), lists


def compose(
    inputs: Signal,
    layers,
    readout,
    state: State,
    lengths=None,
    second_threshold=0.9,
    capacity=None,
    surrogate="superspike",
    **switches,
):
    """Output, activity, listed spikes of each layer (dense), and state; one step is one round through the ops."""
    num_steps, batch = inputs.shape[:2]
    lengths = jnp.full(batch, num_steps, jnp.int32) if lengths is None else lengths
    capacities = capacity if isinstance(capacity, tuple) else (capacity,) * len(layers)

    def step(carry: LIFNetworkState, xs):
        states, out, (x, t) = [], carry.readout, xs
        inside, counted, listed = (t < lengths)[:, None], [], []
        for layer, state, slots in zip(layers, carry.layers, capacities, strict=True):
            options = {"surrogate": surrogate, **switches}
            before = x, state.v, state.w, state.spikes
            v, w, true, lists = layer_step(layer, slots, second_threshold, *before, **options)
            x = jnp.where(inside, lists.to_dense(), 0)
            after = LayerState(v, w, None if state.spikes is None else x)
            states.append(
                jax.tree.map(lambda new, old, inside=inside: jnp.where(inside, new, old), after, state)
            )
            counted.append(jnp.where(inside, true, 0))
            listed.append(x)
        if readout is not None:
            current = spike_matmul(lists, readout.weights) + readout.bias[None]
            out = jnp.where(inside, readout.decay * out + (1 - readout.decay) * current, out)
        state = LIFNetworkState(tuple(states), out)
        return state, (x if readout is None else out, counted, listed)

    steps = jnp.arange(num_steps, dtype=jnp.int32)
    last, (output, counted, listed) = jax.lax.scan(step, state, (inputs, steps))
    share = jnp.maximum(lengths, 1).astype(inputs.dtype)[:, None]
    activity = tuple(jnp.sum(each, axis=0) / share for each in counted)
    return output, activity, listed, last
