"""Traces: the derivatives of a layer's states with respect to its weights and constants, updated at each step."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array

from snnjax._network import Network
from snnjax._network.scan import counted, fire
from snnjax._network.specs import LayerParams, LayerSpec, NetworkParams, NetworkState, ReadoutSpec
from snnjax._types import upcast
from snnjax.sparse_spikes import SparseSpikes


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

    listed: Array  # the spikes that reach other neurons; a read-out's membrane
    slope: Array
    counted: Array  # the true spikes, as the activity counts them
    counted_slope: Array


class LayerStep(NamedTuple):
    """The result of one step of a layer: its traces, its spikes, and the derivatives of the distance to the threshold.

    For a read-out, the distance is its membrane.
    """

    traces: Traces
    # [batch, sources, neurons]; for `ottt` [batch, sources], to be multiplied by `by_current`
    by_weights: Array
    by_constants: Array  # [constants, batch, neurons]
    by_current: Array  # [batch, neurons], the current of this step
    fired: Fired


def readout_decay(network: Network, params: NetworkParams, state: NetworkState) -> Array:
    """The decay of the read-out's membrane, the mean over the outputs; 0 without a leaky read-out."""
    spec, readout = network.readout, params.readout
    if spec is None or readout is None:
        return jnp.float32(0)
    nothing = jnp.zeros_like(state.readout.v)

    def kept(v: Array) -> Array:
        return spec.neuron.advance(readout.neuron, state.readout._replace(v=v), nothing)[0]

    return jnp.mean(jax.jvp(kept, (nothing,), (jnp.ones_like(nothing),))[1])


def sources_of(params: LayerParams, x: Array, before: Array | None) -> Array:
    """Everything that a neuron sums, in the accumulation dtype: inputs, recurrent spikes, and 1 for a bias."""
    parts = [upcast(x.astype(params.weights.dtype))]
    if before is not None:
        parts.append(upcast(before))
    if params.bias is not None:
        parts.append(jnp.ones_like(parts[0][:, :1]))
    return jnp.concatenate(parts, axis=-1)


def _weights(params: LayerParams) -> Array:
    """The weights of all sources, ``[sources, neurons]``."""
    parts = [params.weights, params.recurrent, None if params.bias is None else params.bias[None, :]]
    return jnp.concatenate([upcast(part) for part in parts if part is not None])


def no_traces(params: LayerParams, state: Any, filtered: bool, is_presynaptic: bool) -> Traces:
    components, batch, neurons = len(state), *state.v.shape
    sources, constants = _weights(params).shape[0], len(jax.tree.leaves(params.neuron))
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
    spec: LayerSpec | ReadoutSpec,
    params: LayerParams,
    state: Any,
    sources: Array,
    traces: Traces,
    second: Any,
    kappa: Array,
    is_presynaptic: bool,
) -> tuple[Any, LayerStep]:
    """Advance a layer by one step: its new state, and everything that its gradient needs."""

    def move(constants: Any, components: Any, current: Array) -> tuple[tuple[Array, ...], Array, Array]:
        before = type(state)(*components)
        membrane, threshold, after = spec.neuron.advance(constants, before, current)
        after = spec.neuron.finish(after, jnp.zeros_like(membrane))
        threshold = jnp.broadcast_to(upcast(threshold), membrane.shape)
        return tuple(after), membrane, threshold

    def distance(*arguments: Any) -> tuple[tuple[Array, ...], Array]:
        after, membrane, threshold = move(*arguments)
        return after, membrane - threshold if isinstance(spec, LayerSpec) else membrane

    at = (params.neuron, tuple(state), sources @ _weights(params))
    after, membrane, threshold = move(*at)
    fired = _fired(spec, params, membrane, threshold, second)
    unit = jnp.ones_like(membrane)
    by_current = jax.jvp(lambda current: distance(*at[:2], current), (at[2],), (unit,))[1]
    if is_presynaptic:
        kept = jnp.mean(_by_component(distance, at, 0)[0][0])
        trace = kept * traces.weights + sources
        traces = traces._replace(weights=trace)
        layer_step = LayerStep(traces, trace, traces.constants[:, 0], by_current[1], fired)
        return type(state)(*after), layer_step
    weights, by_weights = _trace_weights(distance, at, sources, traces.weights, by_current)
    constants, by_constants = _trace_constants(distance, at, traces.constants)
    last = None
    if traces.filtered is not None:
        last = (
            kappa * traces.filtered[0] + fired.slope[:, None, :] * by_weights,
            kappa * traces.filtered[1] + fired.slope[None] * by_constants,
        )
    layer_step = LayerStep(Traces(weights, constants, last), by_weights, by_constants, by_current[1], fired)
    return type(state)(*after), layer_step


def _fired(
    spec: LayerSpec | ReadoutSpec, params: LayerParams, membrane: Array, threshold: Array, second: Any
) -> Fired:
    """The spikes of one step and their slopes; the slope of the listed ones is 0 for neurons that are not listed."""
    if isinstance(spec, ReadoutSpec):
        unit = jnp.ones_like(membrane)
        return Fired(membrane, unit, membrane, unit)

    def both(membrane: Array) -> tuple[Array, Array]:
        listed, true_spikes = fire(spec, params, membrane, threshold, second, None, "composed")
        listed = listed.to_dense() if isinstance(listed, SparseSpikes) else listed
        return upcast(listed), upcast(counted(spec, true_spikes, membrane, threshold, second, params, None))

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
            jnp.ones_like(leaf) if number == place else jnp.zeros_like(leaf)
            for number, leaf in enumerate(leaves)
        ]
        tangents = (jax.tree.unflatten(tree, units), tuple(trace))
        after, by_distance = jax.jvp(
            lambda constants, components: distance(constants, components, at[2]), at[:2], tangents
        )[1]
        new.append(jnp.stack(after))
        distances.append(by_distance)
    return (jnp.stack(new), jnp.stack(distances)) if new else (traces, traces[:, 0])
