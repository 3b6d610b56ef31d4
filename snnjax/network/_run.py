"""The two ways through a network: the fused op, and layer by layer for any neurons. They compute the same."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array

from snnjax._types import sum_dtype, wide
from snnjax.network._specs import LayerParams, LayerSpec, NetworkParams, NetworkState, ReadoutSpec
from snnjax.neurons import LIFState, Neuron, lif_constants, raw_to_decay
from snnjax.ops import (
    LeakyReadout,
    LIFLayer,
    LIFNetworkOutput,
    LIFNetworkState,
    lif_network,
    select_spikes,
    spike,
    spike_matmul,
)
from snnjax.ops._chunks import in_chunks
from snnjax.ops.lif_network import mean_activity
from snnjax.sparse_spikes import SparseSpikes


def is_plain(layers: Sequence[LayerSpec]) -> bool:
    """Whether `lif_network` computes these layers: plain LIF, with the same switches everywhere."""
    configs = [spec.neuron.plain_lif for spec in layers]
    switches = {config and (config.surrogate, config.reset, config.detach_reset) for config in configs}
    return None not in switches and len(switches) == 1


def run_fused(
    layers: Sequence[LayerSpec],
    readout: ReadoutSpec | None,
    params: NetworkParams,
    state: NetworkState,
    inputs: Any,
    second_threshold: Sequence[Any],
    **options: Any,
) -> tuple[LIFNetworkOutput, NetworkState]:
    """Run plain LIF layers as one op."""
    config = layers[0].neuron.plain_lif
    fused_layers = []
    for spec, own in zip(layers, params.layers, strict=True):
        decay, threshold, gain = lif_constants(own.neuron, spec.neuron.plain_lif)
        fused_layers.append(LIFLayer(own.weights, decay, threshold, gain, own.bias, own.recurrent))
    last, last_state = None, None
    if readout is not None and params.readout is not None:
        decay = raw_to_decay(params.readout.neuron.raw_decay)
        decay = decay if readout.learn_decay else jax.lax.stop_gradient(decay)
        gain = None if readout.normalize else 1.0
        last = LeakyReadout(params.readout.weights, decay, gain, params.readout.bias)
        last_state = state.readout.v
    output, end = lif_network(
        inputs,
        fused_layers,
        last,
        LIFNetworkState(tuple(own.v for own in state.neurons), state.spikes, last_state),
        capacity=[spec.capacity for spec in layers],
        second_threshold=tuple(second_threshold),
        surrogate=config.surrogate,
        reset=config.reset,
        detach_reset=config.detach_reset,
        **options,
    )
    end_readout = None if readout is None else state.readout._replace(v=end.readout)
    return output, NetworkState(tuple(LIFState(v) for v in end.v), end.spikes, end_readout)


def run_layers(
    layers: Sequence[LayerSpec],
    readout: ReadoutSpec | None,
    params: NetworkParams,
    state: NetworkState,
    inputs: Any,
    second_threshold: Sequence[Any],
    *,
    lengths: Array | None,
    record_spikes: bool,
    chunk: int | None,
    implementation: str | None,
) -> tuple[LIFNetworkOutput, NetworkState]:
    """Run any layers, one after the other, each over all time steps."""

    def run(inputs: Any, state: NetworkState, lengths: Array | None) -> tuple[Any, Any, NetworkState]:
        valid = None if lengths is None else jnp.arange(inputs.shape[0])[:, None] < lengths[None, :]
        x, counts, spikes, ends = _within(inputs, valid), [], [], []
        each = (layers, params.layers, state.neurons, state.spikes, second_threshold)
        for spec, own, start, before, second in zip(*each, strict=True):
            end, (x, true_spikes) = run_layer(spec, own, (start, before), x, second, valid, implementation)
            counts.append(jnp.sum(wide(true_spikes), axis=0))
            spikes.append(x)
            ends.append(end)
        output, last = x, None
        if readout is not None and params.readout is not None:
            own, start = params.readout, state.readout
            last, output = _run_readout(readout.neuron, own, start, x, valid, implementation)
        recorded = tuple(spikes) if record_spikes else ()
        dropped = tuple(_overflow(listed) for listed in spikes)
        neurons, carried = (tuple(part) for part in zip(*ends, strict=True))
        return (output, recorded), (tuple(counts), dropped), NetworkState(neurons, carried, last)

    if chunk is None:
        results = run(inputs, state, lengths)
    else:
        results = in_chunks(run, inputs, state, lengths, chunk)
    (output, recorded), (counts, dropped), state = results
    activity = mean_activity(counts, inputs.shape[0], lengths)
    return LIFNetworkOutput(output, activity, dropped, recorded if record_spikes else None), state


def _within(inputs: Any, valid: Array | None) -> Any:
    """The inputs, 0 behind the end of each sequence: what stands there, NaN too, reaches no output and no gradient."""
    if valid is None:
        return inputs
    if isinstance(inputs, SparseSpikes):
        values = jnp.where(valid[:, :, None], inputs.values, jnp.zeros_like(inputs.values))
        return dataclasses.replace(inputs, values=values)
    return jnp.where(valid[:, :, None], inputs, jnp.zeros_like(inputs))


def product(x: Any, own: LayerParams, implementation: str | None) -> Array:
    """The input currents of a layer for all its steps at once, in the dtype of the weights."""
    if isinstance(x, SparseSpikes):
        currents = spike_matmul(x, own.weights, implementation=implementation)
    else:
        sums = sum_dtype(own.weights.dtype)
        currents = jnp.matmul(x.astype(own.weights.dtype), own.weights, preferred_element_type=sums)
    if own.bias is not None:
        currents = (wide(currents) + wide(own.bias)[None, None, :]).astype(own.weights.dtype)
    return currents.astype(own.weights.dtype)


def run_layer(
    spec: LayerSpec,
    own: LayerParams,
    start: tuple[Any, Array | None],
    x: Any,
    second: Any,
    valid: Array | None,
    implementation: str | None,
) -> tuple[tuple[Any, Array | None], tuple[Any, Array]]:
    """One layer over all steps; yields the last state and spikes, and of every step the listed and the true spikes."""

    def step(carry: tuple[Any, Any], xs: tuple[Array, Array | None]) -> tuple[Any, tuple[Any, Array]]:
        neuron_state, before = carry
        current, inside = xs
        if own.recurrent is not None:
            sums = sum_dtype(own.recurrent.dtype)
            recurrent = jnp.matmul(before, own.recurrent, preferred_element_type=sums)
            current = (wide(current) + recurrent).astype(current.dtype)
        membrane, threshold = spec.neuron.integrate(own.neuron, neuron_state, current)
        listed, true_spikes = _fire(spec, own, membrane, threshold, second, inside, implementation)
        after = spec.neuron.fire(own.neuron, neuron_state, current, membrane, true_spikes)
        after = jax.tree.map(lambda new, old: _choose(inside, new, old), after, neuron_state)
        if before is not None:
            before = _choose(
                inside, listed.to_dense() if isinstance(listed, SparseSpikes) else listed, before
            )
        return (after, before), (
            listed,
            _counted(spec, true_spikes, membrane, threshold, second, own, inside),
        )

    return jax.lax.scan(step, start, (product(x, own, implementation), valid))


def _fire(
    spec: LayerSpec,
    own: LayerParams,
    membrane: Array,
    threshold: Array,
    second: Any,
    inside: Array | None,
    implementation: str | None,
) -> tuple[Any, Array]:
    """The listed and the true spikes of one step."""
    threshold = jnp.broadcast_to(threshold, membrane.shape)
    surrogate = spec.neuron.surrogate
    true_spikes = spike(wide(membrane) - wide(threshold), surrogate).astype(membrane.dtype)
    if spec.capacity is None:
        return _choose(inside, true_spikes, jnp.zeros_like(true_spikes)), true_spikes
    # Behind the end of a sequence nothing is listed.
    shown = _choose(inside, membrane, jnp.full_like(membrane, -jnp.inf))
    second = _moved(second, threshold, spec.neuron, own)
    options = {"capacity": spec.capacity, "surrogate": surrogate, "implementation": implementation}
    return select_spikes(shown, threshold, second, **options), true_spikes


def _moved(second: Any, threshold: Array, neuron: Neuron, own: LayerParams) -> Array:
    """The second threshold, kept at its distance from a threshold that adapts, ``[batch, neurons]``."""
    resting = jnp.broadcast_to(neuron.threshold(own.neuron), threshold.shape)
    second = jnp.broadcast_to(jnp.asarray(second, threshold.dtype), threshold.shape)
    return jax.lax.stop_gradient(second + (threshold - resting))


def _counted(
    spec: LayerSpec,
    true_spikes: Array,
    membrane: Array,
    threshold: Array,
    second: Any,
    own: LayerParams,
    inside: Array | None,
) -> Array:
    """The true spikes as the activity counts them: with a gradient above the second threshold alone."""
    if spec.capacity is not None:
        near = membrane > _moved(second, jnp.broadcast_to(threshold, membrane.shape), spec.neuron, own)
        true_spikes = jnp.where(near, true_spikes, jax.lax.stop_gradient(true_spikes))
    return _choose(inside, true_spikes, jnp.zeros_like(true_spikes))


def _choose(inside: Array | None, now: Array, otherwise: Array) -> Array:
    return now if inside is None else jnp.where(inside[:, None], now, otherwise)


def _overflow(x: Any) -> Array:
    """Spikes of each sequence that were not listed, int32 ``[batch]``."""
    if isinstance(x, SparseSpikes):
        return jnp.sum(x.overflow, axis=0, dtype=jnp.int32)
    return jnp.zeros(x.shape[1], jnp.int32)


def _run_readout(
    neuron: Neuron, own: LayerParams, state: Any, x: Any, valid: Array | None, implementation: str | None
) -> tuple[Any, Array]:
    """A read-out over all steps: its last state and its outputs ``[time, batch, outputs]``."""

    def step(carry: tuple[Any, Array], xs: tuple[Array, Array | None]) -> tuple[tuple[Any, Array], Array]:
        before, last = carry
        current, inside = xs
        after, output = neuron.step(own.neuron, before, current)
        output = _choose(inside, output, last)
        return (jax.tree.map(lambda new, old: _choose(inside, new, old), after, before), output), output

    currents = product(x, own, implementation)
    (end, _), outputs = jax.lax.scan(step, (state, state.v), (currents, valid))
    return end, outputs
