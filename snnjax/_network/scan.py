"""One layer of any neurons, scanned over all time steps; its products run in the event kernels."""

import dataclasses
import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array

from snnjax._check import check_shape, fail
from snnjax._network.delays import Axonal, delayed
from snnjax._network.specs import LayerParams, LayerSpec, ReadoutSpec
from snnjax._sharding import vary_alike
from snnjax._types import accumulation_dtype, upcast
from snnjax.neurons import Neuron
from snnjax.ops import select_spikes, spike, spike_conv, spike_matmul
from snnjax.ops._connection import Connection
from snnjax.ops.pool_spikes import pooled
from snnjax.sparse_spikes import SparseSpikes


class LayerSteps(NamedTuple):
    """A layer over all steps, ``[time, batch, ...]``."""

    listed: Any  # the spikes that reach other neurons, an array or `SparseSpikes`
    counted: Array  # the true spikes, as the activity counts them
    membranes: Array | None  # if recorded; with offsets their distances from the threshold


def within(inputs: Any, valid: Array | None) -> Any:
    """The inputs, 0 after the end of each sequence: padding, even NaN, does not affect outputs or gradients."""
    if valid is None:
        return inputs
    if isinstance(inputs, SparseSpikes):
        values = jnp.where(valid[:, :, None], inputs.values, jnp.zeros_like(inputs.values))
        return dataclasses.replace(inputs, values=values)
    return jnp.where(valid[:, :, None], inputs, jnp.zeros_like(inputs))


def rounded(x: Any, dtype: Any) -> Any:
    """Spikes, an array or `SparseSpikes`, in another dtype."""
    if isinstance(x, SparseSpikes):
        return dataclasses.replace(x, values=x.values.astype(dtype))
    return x.astype(dtype)


def widened(x: Any) -> Any:
    """Spikes in their accumulation dtype, so that nothing between two layers rounds their cotangents."""
    return rounded(x, accumulation_dtype((x.values if isinstance(x, SparseSpikes) else x).dtype))


class Carry(NamedTuple):
    """The state that a layer carries from step to step, in the accumulation dtype."""

    neuron: Any
    spikes: Array | None  # the last listed spikes of a recurrent layer, dense
    pending: Array | None  # earlier ones in transit, if they are delayed


def product(x: Any, connection: Connection, own: LayerParams, implementation: str | None) -> Array:
    """The input currents of a layer for all its steps at once, in the accumulation dtype, which `x` has."""
    if connection.pooling is not None:
        x = pooled(connection.pooling, x)
    weights, form = upcast(own.weights), connection.convolution
    if form is None:
        currents = spike_matmul(x, weights, implementation=implementation)
    else:
        options = {
            "shape": form.shape,
            "strides": form.strides,
            "padding": form.padding,
            "groups": form.groups,
        }
        currents = spike_conv(x, weights, **options, implementation=implementation)
    return currents if own.bias is None else currents + upcast(own.bias)[None, None, :]


# A scan of a new function is a new program: without `jit`, each call outside of one would compile it again.
@functools.partial(jax.jit, static_argnames=("spec", "implementation", "records_membranes"), inline=True)
def run_layer(
    spec: LayerSpec,
    own: LayerParams,
    start: Carry,
    x: Any,
    second: Any,
    valid: Array | None,
    implementation: str | None,
    records_membranes: bool = False,
    feedback: Array | None = None,
    offsets: Array | None = None,
) -> tuple[Carry, LayerSteps]:
    """Run a layer over all steps; return the carried state and the results of every step.

    Everything is in the accumulation dtype, `start` and `x` included: only results of a network are rounded.
    `feedback` holds the delays of the recurrent spikes, ``[neurons]``, if they have any. `offsets`, ``[time, batch,
    neurons]``, are added to the distances from the threshold at which neurons spike, and to nothing else.
    """

    def step(carry: Carry, xs: tuple[Array, Array | None, Array | None]) -> tuple[Carry, LayerSteps]:
        neuron_state, before, _ = carry
        current, inside, offset = xs
        current, pending = _fed_back(spec.delays, own, carry, current, inside, feedback, implementation)
        membrane, threshold, after = spec.neuron.advance(own.neuron, neuron_state, current)
        op, hint = f"{spec.neuron.name}.integrate", "Give the membrane the shape of the inputs"
        check_shape(op, "membrane", membrane, current.shape, "batch, neurons", hint)
        recorded = membrane
        if offset is not None:
            threshold = jnp.broadcast_to(upcast(threshold), membrane.shape) - offset
            recorded = membrane - threshold
        listed, true_spikes = fire(spec, own, membrane, threshold, second, inside, implementation)
        after = spec.neuron.finish(after, true_spikes)
        _check_kept(spec.neuron, neuron_state, after)
        after = jax.tree.map(lambda new, old: _choose(inside, new, old), after, neuron_state)
        if before is not None:
            before = _choose(
                inside, listed.to_dense() if isinstance(listed, SparseSpikes) else listed, before
            )
        in_activity = counted(spec, true_spikes, membrane, threshold, second, own, inside)
        recorded = _choose(inside, recorded, jnp.zeros_like(recorded)) if records_membranes else None
        return Carry(after, before, pending), LayerSteps(listed, in_activity, recorded)

    currents = product(x, spec.fitted.connection, own, implementation)
    own = _widened_constants(own)
    start = _varying_as(start, (own, currents, second, valid, offsets))
    return jax.lax.scan(step, start, (currents, valid, offsets))


def _widened_constants(own: LayerParams) -> LayerParams:
    """The parameters that each step reads, in the accumulation dtype, in which a scan adds up their cotangents."""
    recurrent = None if own.recurrent is None else upcast(own.recurrent)
    return own._replace(recurrent=recurrent, neuron=jax.tree.map(upcast, own.neuron))


def _varying_as(start: Any, others: Any) -> Any:
    """A first carry that varies over all `shard_map` axes of the values that later carries depend on."""
    leaves, form = jax.tree.flatten(start)
    return form.unflatten(vary_alike([*leaves, *jax.tree.leaves(others)])[: len(leaves)])


def _fed_back(
    delays: Axonal | None,
    own: LayerParams,
    carry: Carry,
    current: Array,
    inside: Array | None,
    feedback: Array | None,
    implementation: str | None,
) -> tuple[Array, Array | None]:
    """The current including the recurrent current, and the recurrent spikes then in transit."""
    arriving, pending = carry.spikes, carry.pending
    if own.recurrent is None or arriving is None:
        return current, pending
    if delays is not None and feedback is not None and pending is not None:
        lengths = None if inside is None else inside.astype(jnp.int32)
        sent = arriving[None], pending, lengths
        (arriving,), pending = delayed(delays, feedback, *sent, implementation)
    return current + spike_matmul(arriving, own.recurrent, implementation=implementation), pending


def _check_kept(neuron: Neuron, before: Any, after: Any) -> None:
    """Check that a state keeps its structure from step to step, which a user's neuron may violate."""
    given, returned = (
        str(jax.tree.map(lambda leaf: f"{leaf.dtype.name}{list(leaf.shape)}", state))
        for state in (before, after)
    )
    if returned != given:
        fail(
            f"{neuron.name}.fire: `state` must stay {given}, got {returned}. "
            "Compute in the dtype of the state; inputs have the accumulation dtype, at least float32."
        )


def fire(
    spec: LayerSpec,
    own: LayerParams,
    membrane: Array,
    threshold: Array,
    second: Any,
    inside: Array | None,
    implementation: str | None,
) -> tuple[Any, Array]:
    """The listed and the true spikes of one step, in the accumulation dtype."""
    threshold = jnp.broadcast_to(upcast(threshold), membrane.shape)
    surrogate = spec.neuron.surrogate
    true_spikes = spike(membrane - threshold, surrogate)
    if spec.capacity is None:
        return _choose(inside, true_spikes, jnp.zeros_like(true_spikes)), true_spikes
    # Nothing is listed after the end of a sequence.
    selected_from = _choose(inside, membrane, jnp.full_like(membrane, -jnp.inf))
    second = _adapted_second_threshold(second, threshold, spec.neuron, own)
    options = {"capacity": spec.capacity, "surrogate": surrogate, "implementation": implementation}
    return select_spikes(selected_from, threshold, second, **options), true_spikes


def _adapted_second_threshold(second: Any, threshold: Array, neuron: Neuron, own: LayerParams) -> Array:
    """The second threshold at its fixed distance from an adaptive threshold, ``[batch, neurons]``."""
    resting = jnp.broadcast_to(upcast(neuron.threshold(own.neuron)), threshold.shape)
    second = jnp.broadcast_to(jnp.asarray(second, threshold.dtype), threshold.shape)
    return jax.lax.stop_gradient(second + (threshold - resting))


def counted(
    spec: LayerSpec,
    true_spikes: Array,
    membrane: Array,
    threshold: Array,
    second: Any,
    own: LayerParams,
    inside: Array | None,
) -> Array:
    """The true spikes as the activity counts them: with a gradient only above the second threshold."""
    if spec.capacity is not None:
        threshold = jnp.broadcast_to(upcast(threshold), membrane.shape)
        near = membrane > _adapted_second_threshold(second, threshold, spec.neuron, own)
        true_spikes = jnp.where(near, true_spikes, jax.lax.stop_gradient(true_spikes))
    return _choose(inside, true_spikes, jnp.zeros_like(true_spikes))


def _choose(inside: Array | None, now: Array, otherwise: Array) -> Array:
    return now if inside is None else jnp.where(inside[:, None], now, otherwise)


def overflow(x: Any) -> Array:
    """The number of spikes of each sequence that were not listed, int32 ``[batch]``."""
    if isinstance(x, SparseSpikes):
        return jnp.sum(x.overflow, axis=0, dtype=jnp.int32)
    return jnp.zeros(x.shape[1], jnp.int32)


@functools.partial(jax.jit, static_argnames=("spec", "implementation"), inline=True)
def run_readout(
    spec: ReadoutSpec, own: LayerParams, state: Any, x: Any, valid: Array | None, implementation: str | None
) -> tuple[Any, Array]:
    """Run a read-out over all steps of inputs in the accumulation dtype; return its last state and its outputs."""

    def step(carry: tuple[Any, Array], xs: tuple[Array, Array | None]) -> tuple[tuple[Any, Array], Array]:
        before, last = carry
        current, inside = xs
        after, output = spec.neuron.step(own.neuron, before, current)
        output = _choose(inside, output, last)
        return (jax.tree.map(lambda new, old: _choose(inside, new, old), after, before), output), output

    currents = product(x, spec.fitted.connection, own, implementation)
    own = _widened_constants(own)
    start = _varying_as((state, state.v), (own, currents, valid))
    (end, _), outputs = jax.lax.scan(step, start, (currents, valid))
    return end, outputs.astype(own.weights.dtype)
