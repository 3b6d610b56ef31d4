"""Traces: the derivatives of a layer's states with respect to its weights and constants, updated at each step."""

from typing import Any, NamedTuple, cast

import jax
import jax.numpy as jnp
from jaxtyping import Array

from snnjax._sparse_spikes import SparseSpikes
from snnjax._types import Params, State, Unchecked, upcast
from snnjax.blocks._fire import fire
from snnjax.blocks.block import Context
from snnjax.blocks.spiking import Spiking
from snnjax.graph.layers import ChainLayer
from snnjax.neurons import Neuron
from snnjax.neurons._neuron import for_each


class LayerArrays(NamedTuple):
    """The parameters of a layer as its neurons use them."""

    weights: Array  # [inputs, neurons], with masked ones at 0
    bias: Array | None
    recurrent: Array | None  # [neurons, neurons]
    neuron: Any  # what its neurons learn
    drawn: Any = None  # their constants that are drawn and not learned

    def constants(self, layer: ChainLayer, learned: Params) -> Any:
        """The constants of the neurons with these in place of what they learn."""
        return for_each(neuron_of(layer), learned, self.drawn, layer.out_shape)


def neuron_of(layer: ChainLayer) -> Neuron:
    """The neuron model of a layer or readout."""
    block: Any = layer.neuron.block
    return block.neuron


class Traces(NamedTuple):
    """The traces of a layer in the accumulation dtype; a state has components such as ``v`` and ``w``.

    The weights of everything that a neuron sums share one axis, `sources`: inputs, recurrent spikes, and 1 for a bias.
    """

    weights: Array  # [components, batch, sources, neurons]; for `ottt` [batch, sources]
    constants: Array  # [constants, components, batch, neurons], for the neuron parameters
    # Low-pass filtered spike derivatives, [batch, sources, neurons] and [constants, batch, neurons].
    filtered: tuple[Array, Array] | None


class Fired(NamedTuple):
    """The spikes of one step, ``[batch, neurons]``, and their derivatives by the distance to the threshold."""

    listed: Array  # the spikes that reach other neurons; a readout's membrane
    slope: Array
    counted: Array  # the true spikes, as the activity counts them
    counted_slope: Array


class LayerStep(NamedTuple):
    """The result of one step of a layer: its traces, its spikes, and the derivatives of the distance to the threshold.

    For a readout, the distance is its membrane.
    """

    traces: Traces
    # [batch, sources, neurons]; for `ottt` [batch, sources], to be multiplied by `by_current`
    by_weights: Array
    by_constants: Array  # [constants, batch, neurons]
    by_current: Array  # [batch, neurons], the current of this step
    fired: Fired


def readout_decay(layer: ChainLayer, own: LayerArrays, state: State) -> Array:
    """The decay of the readout's membrane, the mean over the outputs; 0 without a leaky readout."""
    if not layer.is_readout:
        return jnp.float32(0)
    nothing = jnp.zeros_like(state.v)

    def kept(v: Array) -> Array:
        given = own.constants(layer, own.neuron)
        return neuron_of(layer).advance(given, state._replace(v=v), nothing)[0]

    return jnp.mean(jax.jvp(kept, (nothing,), (jnp.ones_like(nothing),))[1])


def sources_of(own: LayerArrays, x: Array, before: Array | None) -> Array:
    """Everything that a neuron sums, in the accumulation dtype: inputs, recurrent spikes, and 1 for a bias."""
    parts = [upcast(x.astype(own.weights.dtype))]
    if before is not None:
        parts.append(upcast(before))
    if own.bias is not None:
        parts.append(jnp.ones_like(parts[0][:, :1]))
    return jnp.concatenate(parts, axis=-1)


def _weights(own: LayerArrays) -> Array:
    """The weights of all sources, ``[sources, neurons]``."""
    parts = [own.weights, own.recurrent, None if own.bias is None else own.bias[None, :]]
    return jnp.concatenate([upcast(part) for part in parts if part is not None])


def no_traces(own: LayerArrays, state: State, filtered: bool, is_presynaptic: bool) -> Traces:
    components, batch, neurons = len(state), *state.v.shape
    sources, constants = _weights(own).shape[0], len(jax.tree.leaves(own.neuron))
    dtype = state.v.dtype
    if is_presynaptic:
        nothing = jnp.zeros((0, components, batch, neurons), dtype)
        return Traces(jnp.zeros((batch, sources), dtype), nothing, None)
    last = None
    if filtered:
        last = (
            jnp.zeros((batch, sources, neurons), dtype),
            jnp.zeros((constants, batch, neurons), dtype),
        )
    return Traces(
        jnp.zeros((components, batch, sources, neurons), dtype),
        jnp.zeros((constants, components, batch, neurons), dtype),
        last,
    )


def advance(
    layer: ChainLayer,
    own: LayerArrays,
    state: State,
    sources: Array,
    traces: Traces,
    second: Unchecked,
    kappa: Array,
    is_presynaptic: bool,
) -> tuple[Any, LayerStep]:
    """Advance a layer by one step: its new state, and everything that its gradient needs."""
    model = neuron_of(layer)

    def move(learned: Params, components: Any, current: Array) -> tuple[tuple[Array, ...], Array, Array]:
        before = type(state)(*components)
        membrane, threshold, after = model.advance(own.constants(layer, learned), before, current)
        after = model.finish(after, jnp.zeros_like(membrane))
        threshold = jnp.broadcast_to(threshold.astype(membrane.dtype), membrane.shape)
        return tuple(after), membrane, threshold

    def distance(*arguments: Any) -> tuple[tuple[Array, ...], Array]:
        after, membrane, threshold = move(*arguments)
        return after, membrane if layer.is_readout else membrane - threshold

    at = (own.neuron, tuple(state), sources @ _weights(own))
    after, membrane, threshold = move(*at)
    fired = _fired(layer, own, membrane, threshold, second)
    unit = jnp.ones_like(membrane)
    by_current = jax.jvp(lambda current: distance(*at[:2], current), (at[2],), (unit,))[1]
    if is_presynaptic:
        kept = jnp.mean(_by_component(distance, at, 0)[0][0])
        traces = traces._replace(weights=kept * traces.weights + sources)
        ran = LayerStep(traces, traces.weights, traces.constants[:, 0], by_current[1], fired)
        return type(state)(*after), ran
    weights, by_weights = _trace_weights(distance, at, sources, traces.weights, by_current)
    constants, by_constants = _trace_constants(distance, at, traces.constants)
    last = None
    if traces.filtered is not None:
        last = (
            kappa * traces.filtered[0] + fired.slope[:, None, :] * by_weights,
            kappa * traces.filtered[1] + fired.slope[None] * by_constants,
        )
    ran = LayerStep(Traces(weights, constants, last), by_weights, by_constants, by_current[1], fired)
    return type(state)(*after), ran


def _fired(
    layer: ChainLayer, own: LayerArrays, membrane: Array, threshold: Array, second: Unchecked
) -> Fired:
    """The spikes of one step and their slopes; the slope of the listed ones is 0 for neurons that are not listed."""
    block, unit = cast(Spiking, layer.neuron.block), jnp.ones_like(membrane)
    if layer.is_readout:
        return Fired(membrane, unit, membrane, unit)

    def both(membrane: Array) -> tuple[Array, Array]:
        fired = (membrane, threshold, *block.neuron.graded(membrane, threshold))
        context = Context(implementation="composed")
        given, slots = own.constants(layer, own.neuron), block.slots(layer.out_shape)
        listed, true_spikes = fire(block.neuron, given, slots, fired, second, None, context)
        return upcast(listed.to_dense() if isinstance(listed, SparseSpikes) else listed), upcast(true_spikes)

    (listed, true_spikes), pull_back = jax.vjp(both, membrane)
    unit, zero = jnp.ones_like(listed), jnp.zeros_like(listed)
    return Fired(listed, pull_back((unit, zero))[0], true_spikes, pull_back((zero, unit))[0])


def _by_component(distance: Any, at: Any, component: int) -> tuple[tuple[Array, ...], Array]:
    """The derivatives of states and distance with respect to one component of the previous state."""
    units = tuple(
        jnp.ones_like(each) if place == component else jnp.zeros_like(each)
        for place, each in enumerate(at[1])
    )
    return jax.jvp(lambda components: distance(at[0], components, at[2]), (at[1],), (units,))[1]


def _trace_weights(
    distance: Any, at: Any, sources: Array, traces: Array, by_current: Any
) -> tuple[Array, Array]:
    """The traces of the weights after the step, and the derivative of the distance with respect to the weights."""
    new = [each[:, None, :] * sources[:, :, None] for each in (*by_current[0], by_current[1])]
    for component, trace in enumerate(traces):
        after, by_distance = _by_component(distance, at, component)
        new = [
            total + slope[:, None, :] * trace for total, slope in zip(new, (*after, by_distance), strict=True)
        ]
    return jnp.stack(new[:-1]), new[-1]


def _trace_constants(distance: Any, at: Any, traces: Array) -> tuple[Array, Array]:
    """The same for the neuron parameters: each neuron depends only on its own."""
    leaves, tree = jax.tree.flatten(at[0])
    new, distances = [], []
    for place, trace in enumerate(traces):
        units = [
            jnp.ones_like(leaf) if own == place else jnp.zeros_like(leaf) for own, leaf in enumerate(leaves)
        ]
        tangents = (jax.tree.unflatten(tree, units), tuple(trace))
        after, by_distance = jax.jvp(
            lambda constants, components: distance(constants, components, at[2]), at[:2], tangents
        )[1]
        new.append(jnp.stack(after))
        distances.append(by_distance)
    return (jnp.stack(new), jnp.stack(distances)) if new else (traces, traces[:, 0])
