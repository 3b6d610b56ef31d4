"""Initial parameters that keep activity alive in deep layers."""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array

from snnjax._network.delays import init_delays
from snnjax._network.specs import LayerParams, LayerSpec, NetworkParams, ReadoutSpec
from snnjax._types import wide
from snnjax.neurons import Neuron

# The spikes per step and input that weights are scaled for, and at which the neurons then fire: the activity that
# sparse training aims for, kept alive in deep layers.
_EXPECTED_RATE = 0.05
# The probe of a neuron model's response to noise: steps, samples, and neurons (with constants that may be random).
_PROBE_STEPS, _PROBE_SAMPLES, _PROBE_NEURONS = 64, 8, 64
# The initial standard deviation of read-out membranes. It is small so that the first predictions are undecided: summed
# over time they are logits, and large random logits would cost the first epochs.
_READOUT_DEVIATION = 0.1
# Recurrent weights start at this fraction of the scale at which they would drive a layer as strongly as its input.
_RECURRENT_SHARE = 0.5
# Bisection steps of the search for a scale factor, from 2^-8 to 2^8, or for a probe from 2^-4 to 2^4.
_HALVINGS, _LOG2_RANGE, _PROBE_LOG2_RANGE = 12, 8.0, 4.0

# (layer, its parameters, inputs, lengths) -> (spikes, mean activity)
LayerRun = Callable[[LayerSpec, LayerParams, Any, Array | None], tuple[Any, Array]]


def init_params(
    key: Array, layers: Sequence[LayerSpec], readout: ReadoutSpec | None, dtype: Any
) -> NetworkParams:
    """Draw normal weights, scaled to the number of inputs and to the response of each neuron model."""
    params = []
    for spec in layers:
        key, own = jax.random.split(key)
        params.append(_init_layer(own, spec, dtype))
    last = None if readout is None else _init_layer(key, readout, dtype)
    return NetworkParams(tuple(params), last)


def _init_layer(key: Array, spec: LayerSpec | ReadoutSpec, dtype: Any) -> LayerParams:
    weight_key, recurrent_key, neuron_key, probe_key = jax.random.split(key, 4)
    fitted, spiking = spec.fitted, spec if isinstance(spec, LayerSpec) else None
    # One constant and one bias per channel if the neurons of a channel share their weights.
    channels = fitted.out_shape[-1]
    neuron = spec.neuron.init(
        neuron_key, channels if spiking is None or spiking.per_channel else fitted.num_neurons, dtype
    )
    drive = _drive(probe_key, spec.neuron, spikes=spiking is not None)
    scale = drive * jax.lax.rsqrt(jnp.float32(max(fitted.fan_in, 1) * _EXPECTED_RATE))
    weights = fitted.masked(scale * jax.random.normal(weight_key, fitted.weights_shape, jnp.float32)).astype(
        dtype
    )
    recurrent = delays = None
    if spiking is not None and spiking.recurrent:
        width = fitted.num_neurons
        scale = _RECURRENT_SHARE * drive * jax.lax.rsqrt(jnp.float32(width * _EXPECTED_RATE))
        recurrent = (scale * jax.random.normal(recurrent_key, (width, width), jnp.float32)).astype(dtype)
    if spiking is not None and spiking.delays is not None:
        shape = fitted.out_shape if spiking.recurrent else None
        delays = init_delays(spiking.delays, jax.random.fold_in(key, 1), fitted.in_shape, shape, dtype)
    bias = jnp.zeros(channels, dtype) if spec.bias else None
    return LayerParams(weights, bias, recurrent, neuron, delays)


@functools.partial(jax.jit, static_argnames=("neuron", "spikes"))  # compiled once for all layers of a neuron
def _drive(key: Array, neuron: Neuron, spikes: bool) -> Array:
    """The standard deviation of the current that weights should produce from spikes at the expected rate."""
    init_key, noise_key = jax.random.split(key)
    params = neuron.init(init_key, _PROBE_NEURONS, jnp.float32)
    noise = _noise(noise_key)
    start = neuron.initial_state(params, _PROBE_SAMPLES)
    drive = _linear_drive(neuron, params, start, noise)
    if not spikes:
        return _READOUT_DEVIATION * drive

    def activity(log2_factor: Array) -> Array:
        currents = drive * jnp.exp2(log2_factor) * noise
        _, fired = jax.lax.scan(lambda state, current: neuron.step(params, state, current), start, currents)
        return jnp.mean(fired[_PROBE_STEPS // 2 :])

    log2_factor = _log2_factor(activity, _EXPECTED_RATE, _PROBE_LOG2_RANGE)
    # Weights cannot silence a model that fires spontaneously.
    restless = activity(jnp.float32(-_PROBE_LOG2_RANGE)) >= _EXPECTED_RATE
    return drive * jnp.exp2(jnp.where(restless, 0, log2_factor))


def _noise(key: Array) -> Array:
    """Currents ``[time, samples, neurons]`` with variance 1, as produced by random spikes at the expected rate.

    They are noise in time plus a constant for each neuron, its mean input.
    """
    noise_key, mean_key = jax.random.split(key)
    noise = jax.random.normal(noise_key, (_PROBE_STEPS, _PROBE_SAMPLES, _PROBE_NEURONS), jnp.float32)
    means = jax.random.normal(mean_key, (1, _PROBE_SAMPLES, _PROBE_NEURONS), jnp.float32)
    return (1 - _EXPECTED_RATE) ** 0.5 * noise + _EXPECTED_RATE**0.5 * means


def _linear_drive(neuron: Neuron, params: Any, start: Any, noise: Array) -> Array:
    """The drive for which the deviation of non-spiking membranes from rest equals that of the threshold."""

    def step(state: Any, current: Array) -> tuple[Any, Array]:
        membrane, _ = neuron.integrate(params, state, current)
        return neuron.fire(params, state, current, membrane, jnp.zeros_like(membrane)), membrane

    rest, _ = neuron.integrate(params, start, jnp.zeros_like(noise[0]))
    _, membranes = jax.lax.scan(step, start, noise)
    distance = jnp.abs(neuron.threshold(params) - rest[0])
    distance = jnp.where(jnp.isfinite(distance), distance, 1)  # a read-out has no threshold
    # The median, because single neurons may be unstable.
    return jnp.median(distance / jnp.std(membranes[_PROBE_STEPS // 2 :], axis=(0, 1)))


def _log2_factor(activity: Callable[[Array], Array], target: Any, log2_range: float) -> Array:
    """The logarithm of the factor at which an increasing activity reaches the target."""

    def halve(_: Any, bounds: tuple[Array, Array]) -> tuple[Array, Array]:
        low, high = bounds
        middle = 0.5 * (low + high)
        too_quiet = activity(middle) < target
        return jnp.where(too_quiet, middle, low), jnp.where(too_quiet, high, middle)

    low, high = jax.lax.fori_loop(0, _HALVINGS, halve, (jnp.float32(-log2_range), jnp.float32(log2_range)))
    return 0.5 * (low + high)


def scale_to_activity(
    params: NetworkParams,
    layers: Sequence[LayerSpec],
    inputs: Any,
    lengths: Array | None,
    target: float,
    run_layer: LayerRun,
) -> NetworkParams:
    """Scale the weights layer by layer until each layer's mean activity on `inputs` is `target`.

    Layer-sequential, after Mishkin and Matas 2016 (arXiv:1511.06422), with the activity instead of the variance.
    """
    scaled = []
    for spec, own in zip(layers, params.layers, strict=True):
        scaled.append(_scaled(own, _factor_of_layer(own, inputs, lengths, target, spec, run_layer)))
        inputs, _ = run_layer(spec, scaled[-1], inputs, lengths)
    return params._replace(layers=tuple(scaled))


@functools.partial(jax.jit, static_argnames=("spec", "run_layer"))  # compiled once, not in each call
def _factor_of_layer(
    own: LayerParams, x: Any, lengths: Array | None, target: Any, spec: LayerSpec, run_layer: LayerRun
) -> Array:
    def activity(log2_factor: Array) -> Array:
        return run_layer(spec, _scaled(own, log2_factor), x, lengths)[1]

    return _log2_factor(activity, target, _LOG2_RANGE)


def _scaled(params: LayerParams, log2_factor: Array) -> LayerParams:
    """The layer with all weights, including recurrent ones, times ``2 ** log2_factor``."""
    factor = jnp.exp2(log2_factor)

    def times(weights: Array) -> Array:
        return (wide(weights) * factor.astype(wide(weights).dtype)).astype(weights.dtype)

    recurrent = None if params.recurrent is None else times(params.recurrent)
    return params._replace(weights=times(params.weights), recurrent=recurrent)
