"""Initial parameters that keep activity alive in depth."""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array

from snnjax._types import wide
from snnjax.network._specs import LayerParams, LayerSpec, NetworkParams, ReadoutSpec
from snnjax.neurons import Neuron

# Weights are scaled for spikes at this rate, spikes per step and input: the activity that sparse training aims at.
_EXPECTED_RATE = 0.05
# Membranes then deviate from rest by as much as the threshold does: alive in depth, and training quiets them.
_TARGET_DEVIATION = 1.0
# Probe of a neuron's response to noise: steps and samples.
_PROBE_STEPS, _PROBE_SAMPLES = 64, 64
# Recurrent weights start at this share of what would drive a layer as strongly as its input does.
_RECURRENT_SHARE = 0.5
# Halvings of the interval in which the factor of a data-dependent scale is sought, a factor 2^16 wide.
_HALVINGS, _LOG2_RANGE = 12, 8.0

LayerRun = Callable[[LayerSpec, LayerParams, Any], tuple[Any, Array]]


def init_params(
    key: Array, num_inputs: int, layers: Sequence[LayerSpec], readout: ReadoutSpec | None, dtype: Any
) -> NetworkParams:
    """Normal weights, scaled to the number of inputs and to the response of each neuron model."""
    params = []
    for spec in layers:
        key, own = jax.random.split(key)
        params.append(_init_layer(own, num_inputs, spec.num_neurons, spec, dtype))
        num_inputs = spec.num_neurons
    last = None if readout is None else _init_layer(key, num_inputs, readout.num_outputs, readout, dtype)
    return NetworkParams(tuple(params), last)


def _init_layer(key: Array, num_inputs: int, width: int, spec: LayerSpec | ReadoutSpec, dtype: Any) -> LayerParams:
    weight_key, recurrent_key, neuron_key, probe_key = jax.random.split(key, 4)
    neuron = spec.neuron.init(neuron_key, width, dtype)
    deviation = _unit_deviation(probe_key, spec.neuron, dtype)
    scale = jax.lax.rsqrt(jnp.float32(max(num_inputs, 1) * _EXPECTED_RATE)) / deviation
    weights = (scale * jax.random.normal(weight_key, (num_inputs, width))).astype(dtype)
    recurrent = None
    if isinstance(spec, LayerSpec) and spec.recurrent:
        scale = _RECURRENT_SHARE * jax.lax.rsqrt(jnp.float32(width * _EXPECTED_RATE)) / deviation
        recurrent = (scale * jax.random.normal(recurrent_key, (width, width))).astype(dtype)
    return LayerParams(weights, jnp.zeros(width, dtype) if spec.bias else None, recurrent, neuron)


def _unit_deviation(key: Array, neuron: Neuron, dtype: Any) -> Array:
    """How far noise of unit variance drives the membrane, over the distance that it should be driven."""
    params = neuron.init(key, 1, dtype)
    noise = jax.random.normal(key, (_PROBE_STEPS, _PROBE_SAMPLES, 1)).astype(dtype)

    def step(state: Any, current: Array) -> tuple[Any, Array]:
        membrane, _ = neuron.integrate(params, state, current)
        return neuron.fire(params, state, current, membrane, jnp.zeros_like(membrane)), membrane

    start = neuron.initial_state(params, _PROBE_SAMPLES)
    rest, _ = neuron.integrate(params, start, jnp.zeros_like(noise[0]))
    _, membranes = jax.lax.scan(step, start, noise)
    distance = jnp.max(jnp.abs(wide(neuron.threshold(params)) - wide(rest[0])))
    distance = jnp.where(jnp.isfinite(distance), distance, 1)  # a read-out has no threshold
    deviation = jnp.std(wide(membranes[_PROBE_STEPS // 2 :]))
    return deviation / (_TARGET_DEVIATION * distance)


def scale_to_activity(
    params: NetworkParams, layers: Sequence[LayerSpec], inputs: Any, target: float, run_layer: LayerRun
) -> NetworkParams:
    """Scale the weights of one layer after the other until its mean activity on `inputs` is `target`.

    Layer-sequential, after Mishkin and Matas 2016 (arXiv:1511.06422), with the activity in the place of the variance.
    """
    scaled = []
    for spec, layer_params in zip(layers, params.layers, strict=True):

        def activity(log2_factor: Array, spec: LayerSpec = spec, own: LayerParams = layer_params) -> Array:
            return jnp.mean(run_layer(spec, _scaled(own, log2_factor), inputs)[1])

        def halve(_: int, bounds: tuple[Array, Array], activity: Any = activity) -> tuple[Array, Array]:
            low, high = bounds
            middle = 0.5 * (low + high)
            too_quiet = activity(middle) < target
            return jnp.where(too_quiet, middle, low), jnp.where(too_quiet, high, middle)

        bounds = (jnp.float32(-_LOG2_RANGE), jnp.float32(_LOG2_RANGE))
        low, high = jax.lax.fori_loop(0, _HALVINGS, halve, bounds)
        scaled.append(_scaled(layer_params, 0.5 * (low + high)))
        inputs, _ = run_layer(spec, scaled[-1], inputs)
    return params._replace(layers=tuple(scaled))


def _scaled(params: LayerParams, log2_factor: Array) -> LayerParams:
    """The layer with its weights, recurrent ones too, times ``2 ** log2_factor``."""
    factor = jnp.exp2(log2_factor)

    def times(weights: Array) -> Array:
        return (wide(weights) * factor.astype(wide(weights).dtype)).astype(weights.dtype)

    recurrent = None if params.recurrent is None else times(params.recurrent)
    return params._replace(weights=times(params.weights), recurrent=recurrent)
