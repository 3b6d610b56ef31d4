"""The derivative of a layer of integer neurons: that of the real neurons for which the integers stand."""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from snnjax.fixed_point._chips import FixedPoint
from snnjax.fixed_point._network import IntegerLayer, LayerState
from snnjax.fixed_point._run import Arriving, Steps, delivered, drive_of, scan_neurons
from snnjax.fixed_point._step import beside
from snnjax.surrogates import Surrogate


class Spiking(NamedTuple):
    """How the spikes of neurons are differentiated; static."""

    surrogate: Surrogate
    detach_reset: bool


class Real(NamedTuple):
    """What the derivative of a layer reads. Gradients reach weights, threshold and bias."""

    weights: Float[Array, "synapses inputs neurons"]  # integers, straight through
    recurrent: Float[Array, "synapses neurons neurons"] | None
    threshold: Float[Array, " neurons"]  # in the unit of the membrane
    bias: Float[Array, " neurons"]  # in integers
    unit: Float[Array, " neurons"]  # a membrane of 1, in integers
    decay: Float[Array, " neurons"]  # the share of the membrane that a step keeps
    synapse_decay: Float[Array, "synapses neurons"]


def train_layer(
    chip: FixedPoint,
    spiking: Spiking | None,
    held: tuple[IntegerLayer, Real],
    state: LayerState,
    spikes: Float[Array, "time batch inputs"],
    valid: Array | None,
) -> tuple[Steps, LayerState]:
    """`run_layer` with a derivative: the same integers, of which spikes and membranes are float32."""
    layer, real = held
    spikes, late = delivered(state.arriving, spikes, valid)
    arriving = Arriving(spikes, drive_of(real.weights, layer.shift, spikes), valid)
    start = state.membranes, state.fired
    found: Any = _layer((chip, spiking), real, arriving, (layer, start))
    steps, (membranes, fired) = found
    return steps, LayerState(membranes, late, fired)


@functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
def _layer(static: Any, real: Real, arriving: Arriving, held: Any) -> tuple[Steps, Any]:
    del real
    layer, start = held
    end, steps = scan_neurons(static[0], layer, start, arriving)
    as_floats = (steps.spikes.astype(jnp.float32), steps.v.astype(jnp.float32))
    return Steps(*as_floats, steps.current), end


def _forward(static: Any, real: Real, arriving: Arriving, held: Any) -> tuple[Any, Any]:
    found: Any = _layer(static, real, arriving, held)
    return found, (real, arriving.valid, held, found[0])


class _Cotangents(NamedTuple):
    """What a step passes to the one before it."""

    v: Array  # [batch, neurons]
    current: Array  # [synapses, batch, neurons]
    fired: Array  # [batch, neurons]


def _backward(static: Any, saved: Any, cotangents: Any) -> tuple[Real, Arriving, Any]:
    r"""The derivative of the steps of the real neurons.

    With membrane :math:`m`, such a step is

    .. math::

        i = b (i' + 2^k x) \text{ or } b i' + 2^k x, \quad m = a v' + \sum i + \mathrm{bias}, \quad
        s = \sigma(m / u - \theta), \quad v = m - s u \theta \text{ or } m (1 - s)

    Gradients do not pass through the state before the first step.
    """
    (chip, spiking), (real, valid, (layer, (start, fired)), steps), (given, _) = static, saved, cotangents
    wide, rise = beside(real), 2.0**chip.input_shift
    before = jnp.concatenate([start.v[None].astype(jnp.float32), steps.v[:-1]])
    membrane = wide.decay[None] * before + jnp.sum(steps.current.astype(jnp.float32), 1) + wide.bias[None]
    slope = jnp.zeros_like(membrane)
    if spiking is not None:
        slope = spiking.surrogate.derivative(membrane / wide.unit[None] - wide.threshold[None])
    first = wide.synapse_decay if chip.input_first else jnp.ones_like(wide.synapse_decay)

    def step(after: _Cotangents, xs: Any) -> tuple[_Cotangents, Any]:
        (of_spikes, of_v), (m, s, rate), inside = xs
        g_spikes, g_v = of_spikes + after.fired, of_v + after.v
        if spiking is not None and not spiking.detach_reset:
            lost = wide.unit * wide.threshold if chip.reset == "subtract" else m
            g_spikes = g_spikes - g_v * lost
        stays = g_v if spiking is None or chip.reset == "subtract" else g_v * (1 - s)
        g_m = stays + g_spikes * rate / wide.unit
        g_current = g_m[None] + after.current
        g_drive = g_current * first * rise
        g_fired = jnp.zeros_like(g_m)
        if real.recurrent is not None:
            back = jnp.einsum("kbn,kmn->bm", g_drive, real.recurrent)
            g_fired = back * (1 << jnp.asarray(layer.recurrent_shift)).astype(jnp.float32)
        now = _Cotangents(wide.decay * g_m, wide.synapse_decay * g_current, g_fired)
        of_threshold = -g_spikes * rate
        if spiking is not None and chip.reset == "subtract":
            of_threshold -= g_v * s * wide.unit
        if inside is None:
            return now, (g_drive, g_m, of_threshold)
        is_inside = inside[:, None]
        kept = _Cotangents(
            jnp.where(is_inside, now.v, g_v),
            jnp.where(is_inside[None], now.current, after.current),
            jnp.where(is_inside, now.fired, after.fired),
        )
        within = (
            jnp.where(is_inside[None], g_drive, 0),
            *(jnp.where(is_inside, g, 0) for g in (g_m, of_threshold)),
        )
        return kept, within

    none = _Cotangents(*(jnp.zeros(own.shape, jnp.float32) for own in (start.v, start.current, start.v)))
    xs = ((given.spikes, given.v), (membrane, steps.spikes, slope), valid)
    _, (drive, of_m, of_threshold) = jax.lax.scan(step, none, xs, reverse=True)
    recurrent = None
    if real.recurrent is not None:
        sent = jnp.concatenate([fired[None], steps.spikes[:-1]])
        recurrent = jnp.einsum("tbm,tkbn->kmn", sent, drive)
        recurrent *= (1 << jnp.asarray(layer.recurrent_shift)).astype(jnp.float32)
    zeros = jax.tree.map(jnp.zeros_like, real)
    found = zeros._replace(recurrent=recurrent, threshold=of_threshold.sum((0, 1)), bias=of_m.sum((0, 1)))
    return found, Arriving(None, drive, None), None  # type: ignore[arg-type]


_layer.defvjp(_forward, _backward)
