"""Initial parameters that keep activity alive in deep layers."""

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array

from snnjax._network.connections import Shape
from snnjax._network.delays import init_delays
from snnjax._network.specs import LayerParams, LayerSpec, NetworkParams, ReadoutSpec
from snnjax._types import upcast
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


class Sample(NamedTuple):
    """Inputs, and the mean activity that each layer should have on them."""

    inputs: Any
    lengths: Array | None
    target: Any


# (layer, its parameters, inputs, lengths) -> (spikes, mean activity)
LayerRun = Callable[[LayerSpec, LayerParams, Any, Array | None], tuple[Any, Array]]


def init_params(
    key: Array,
    layers: tuple[LayerSpec, ...],
    readout: ReadoutSpec | None,
    dtype: Any,
    sample: Sample | None = None,
    run_layer: LayerRun | None = None,
) -> NetworkParams:
    """Draw normal weights, scaled to the number of inputs and to the response of each neuron model.

    With a sample, scale them to its target activity too. A network is one compiled program; another one finds the
    response of each neuron model, which all networks share.
    """
    specs = (*layers, *(() if readout is None else (readout,)))
    drives = []
    for place, spec in enumerate(specs):
        spikes = isinstance(spec, LayerSpec)
        drives.append(_drive(*_probe(key, place, spikes), neuron=spec.neuron, spikes=spikes))
    return _draw(key, drives, sample, layers, readout, jnp.dtype(dtype), run_layer)


@functools.partial(jax.jit, static_argnames=("layers", "readout", "dtype", "run_layer"))
def _draw(
    key: Array,
    drives: Sequence[Array],
    sample: Sample | None,
    layers: tuple[LayerSpec, ...],
    readout: ReadoutSpec | None,
    dtype: Any,
    run_layer: LayerRun | None,
) -> NetworkParams:
    params = []
    for spec, drive in zip(layers, drives, strict=False):
        key, own = jax.random.split(key)
        params.append(_init_layer(own, spec, drive, dtype))
    last = None if readout is None else _init_layer(key, readout, drives[-1], dtype)
    drawn = NetworkParams(tuple(params), last)
    if sample is None or run_layer is None:
        return drawn
    return _scale_to_activity(drawn, layers, sample, run_layer)


@functools.cache
def params_like(layers: tuple[LayerSpec, ...], readout: ReadoutSpec | None) -> NetworkParams:
    """The structure, shapes and dtypes of the parameters that `init_params` draws in float32, without arrays."""
    drives = [jax.ShapeDtypeStruct((), jnp.float32)] * (len(layers) + (readout is not None))
    options = {"layers": layers, "readout": readout, "dtype": jnp.dtype(jnp.float32), "run_layer": None}
    key = jax.eval_shape(lambda: jax.random.key(0))
    return jax.eval_shape(functools.partial(_draw, **options), key, drives, None)


def _init_layer(key: Array, spec: LayerSpec | ReadoutSpec, drive: Array, dtype: Any) -> LayerParams:
    weight_key, recurrent_key, neuron_key, _ = jax.random.split(key, 4)
    fitted, spiking = spec.fitted, spec if isinstance(spec, LayerSpec) else None
    # One constant and one bias per channel if the neurons of a channel share their weights.
    channels = fitted.out_shape[-1]
    neuron = spec.neuron.init(
        neuron_key, channels if spiking is None or spiking.per_channel else fitted.num_neurons, dtype
    )
    scale = drive * jax.lax.rsqrt(jnp.float32(max(fitted.fan_in, 1) * _EXPECTED_RATE))
    weights = fitted.masked(scale * _normal(weight_key, fitted.weights_shape)).astype(dtype)
    recurrent = delays = None
    if spiking is not None and spiking.recurrent:
        width = fitted.num_neurons
        scale = _RECURRENT_SHARE * drive * jax.lax.rsqrt(jnp.float32(width * _EXPECTED_RATE))
        recurrent = (scale * _normal(recurrent_key, (width, width))).astype(dtype)
    if spiking is not None and spiking.delays is not None:
        shape = fitted.out_shape if spiking.recurrent else None
        delays = init_delays(spiking.delays, jax.random.fold_in(key, 1), fitted.in_shape, shape, dtype)
    bias = jnp.zeros(channels, dtype) if spec.bias else None
    return LayerParams(weights, bias, recurrent, neuron, delays)


def _normal(key: Array, shape: Shape) -> Array:
    """Normal numbers, drawn on one axis: the same ones, but XLA compiles them up to three times faster."""
    return jax.random.normal(key, (math.prod(shape),), jnp.float32).reshape(shape)


@jax.jit  # compiled once for all layers
def _probe(key: Array, place: Any, spikes: Any) -> tuple[Array, Array]:
    """The key of the constants and the currents that probe the neurons of the layer at `place`, or of a read-out."""
    key = jax.lax.fori_loop(0, place, lambda _, last: jax.random.split(last)[0], key)
    own = jax.lax.cond(spikes, lambda last: jax.random.split(last)[1], lambda last: last, key)
    init_key, noise_key = jax.random.split(jax.random.split(own, 4)[3])
    return init_key, _noise(noise_key)


@functools.partial(jax.jit, static_argnames=("neuron", "spikes"))  # compiled once for all layers of a neuron
def _drive(key: Array, noise: Array, neuron: Neuron, spikes: bool) -> Array:
    """The standard deviation of the current that weights should produce from spikes at the expected rate."""
    params = neuron.init(key, _PROBE_NEURONS, jnp.float32)
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
    noise = _normal(noise_key, (_PROBE_STEPS, _PROBE_SAMPLES, _PROBE_NEURONS))
    means = _normal(mean_key, (1, _PROBE_SAMPLES, _PROBE_NEURONS))
    return (1 - _EXPECTED_RATE) ** 0.5 * noise + _EXPECTED_RATE**0.5 * means


def _linear_drive(neuron: Neuron, params: Any, start: Any, noise: Array) -> Array:
    """The drive for which the deviation of non-spiking membranes from rest equals that of the threshold."""

    def step(state: Any, current: Array) -> tuple[Any, Array]:
        membrane, _, after = neuron.advance(params, state, current)
        return neuron.finish(after, jnp.zeros_like(membrane)), membrane

    rest, *_ = neuron.advance(params, start, jnp.zeros_like(noise[0]))
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


def _scale_to_activity(
    params: NetworkParams, layers: Sequence[LayerSpec], sample: Sample, run_layer: LayerRun
) -> NetworkParams:
    """Scale the weights layer by layer until each layer's mean activity on the inputs is the target.

    Layer-sequential, after Mishkin and Matas 2016 (arXiv:1511.06422), with the activity instead of the variance.
    """
    scaled, (inputs, lengths, target) = [], sample
    for spec, own in zip(layers, params.layers, strict=True):

        def activity(
            log2_factor: Array, spec: LayerSpec = spec, own: LayerParams = own, x: Any = inputs
        ) -> Array:
            return run_layer(spec, _scaled(own, log2_factor), x, lengths)[1]

        scaled.append(_scaled(own, _log2_factor(activity, target, _LOG2_RANGE)))
        inputs, _ = run_layer(spec, scaled[-1], inputs, lengths)
    return params._replace(layers=tuple(scaled))


def _scaled(params: LayerParams, log2_factor: Array) -> LayerParams:
    """The layer with all weights, including recurrent ones, times ``2 ** log2_factor``."""
    factor = jnp.exp2(log2_factor)

    def times(weights: Array) -> Array:
        return (upcast(weights) * factor.astype(upcast(weights).dtype)).astype(weights.dtype)

    recurrent = None if params.recurrent is None else times(params.recurrent)
    return params._replace(weights=times(params.weights), recurrent=recurrent)
