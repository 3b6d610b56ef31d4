"""The derivative of a layer of integer neurons: that of the real neurons for which the integers stand."""

import functools
from typing import NamedTuple, cast

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from snnjax._types import steps_within
from snnjax.fixed_point._chips import FixedPoint
from snnjax.fixed_point._network import IntegerLayer, LayerState
from snnjax.fixed_point._route import drive_of
from snnjax.fixed_point._run import Steps, a_step_later, delivered, run_layer
from snnjax.fixed_point._step import beside
from snnjax.surrogates import Surrogate


class SpikeRule(NamedTuple):
    """How the spikes of neurons are differentiated; static."""

    surrogate: Surrogate
    detach_reset: bool


class Real(NamedTuple):
    """What the derivative of a layer reads. Gradients reach weights, threshold and bias."""

    weights: Float[Array, "synapses *inputs neurons"]  # integers, straight through
    recurrent: Float[Array, "synapses neurons neurons"] | None
    threshold: Float[Array, " neurons"]  # in the unit of the membrane
    bias: Float[Array, " neurons"]  # in integers
    unit: Float[Array, " neurons"]  # a membrane of 1, in integers
    decay: Float[Array, " neurons"]  # the share of the membrane that a step keeps
    synapse_decay: Float[Array, "synapses neurons"]


_Static = tuple[FixedPoint, SpikeRule | None]
_Held = tuple[IntegerLayer, LayerState, Array | None]
_Found = tuple[Steps, LayerState]


@functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
def train_layer(static: _Static, real: Real, spikes: Array, held: _Held) -> _Found:
    """`run_layer` with a derivative; what is `held` are a layer, its state and the lengths of sequences."""
    del real
    layer, state, lengths = held
    return run_layer(static[0], layer, state, spikes, lengths)


def _forward(static: _Static, real: Real, spikes: Array, held: _Held) -> tuple[_Found, "_Saved"]:
    found = cast(_Found, train_layer(static, real, spikes, held))
    return found, _Saved(real, spikes, held, found[0])


class _Saved(NamedTuple):
    """What the backward pass reads."""

    real: Real
    spikes: Array
    held: _Held
    steps: Steps


class _Cotangents(NamedTuple):
    """What a step passes to the one before it."""

    v: Array  # [batch, neurons]
    current: Array  # [synapses, batch, neurons]
    fired: Array  # [batch, neurons]


class _Step(NamedTuple):
    """What the derivative of a step reads, ``[batch, neurons]``; of all steps with time first."""

    of_spikes: Array  # the cotangents from outside
    of_v: Array
    membrane: Array  # before the reset
    spikes: Array
    slope: Array  # the derivative of the spikes by membrane and threshold
    inside: Array | None  # [batch] whether the sequence has not ended


def _backward(static: _Static, saved: _Saved, cotangents: _Found) -> tuple[Real, Array | None, None]:
    r"""The derivative of the steps of the real neurons.

    With membrane :math:`m`, such a step is

    .. math::

        i = b (i' + 2^k x) \text{ or } b i' + 2^k x, \quad m = a v' + \sum i + \mathrm{bias}, \quad
        s = \sigma(m / u - \theta), \quad v = m - s u \theta \text{ or } m (1 - s)

    Gradients do not pass through the state before the first step.
    """
    rule, (real, spikes, (layer, state, lengths), steps), given = static[1], saved, cotangents[0]
    wide, start = beside(real), state.membranes
    before = a_step_later(start.v.astype(jnp.float32), steps.v)
    membrane = wide.decay[None] * before + jnp.sum(steps.current, 1) + wide.bias[None]
    slope = jnp.zeros_like(membrane)
    if rule is not None:
        slope = rule.surrogate.derivative(membrane / wide.unit[None] - wide.threshold[None])
    none = _Cotangents(*(jnp.zeros(own.shape, jnp.float32) for own in (start.v, start.current, start.v)))
    inside = steps_within(len(membrane), lengths)
    xs = _Step(given.spikes, given.v, membrane, steps.spikes, slope, inside)
    back = functools.partial(_step_back, static, (layer, real))
    _, (drive, of_m, of_threshold) = jax.lax.scan(back, none, xs, reverse=True)
    recurrent = None
    if state.fired is not None:
        sent = a_step_later(state.fired, steps.spikes)
        recurrent = jnp.einsum("tbm,tkbn->kmn", sent, drive) * _power(layer.recurrent_shift)
    weights, g_spikes = _to_sources(layer, state, real.weights, spikes, drive)
    sums = {"threshold": of_threshold.sum((0, 1)), "bias": of_m.sum((0, 1))}
    found = jax.tree.map(jnp.zeros_like, real)._replace(weights=weights, recurrent=recurrent, **sums)
    return found, g_spikes, None


def _to_sources(
    layer: IntegerLayer, state: LayerState, weights: Array, spikes: Array, g_drive: Array
) -> tuple[Array, Array | None]:
    """The cotangents of weights and spikes; of whole numbers there is none."""

    def drive(weights: Array, spikes: Array) -> Array:
        return drive_of(weights, layer.shift, delivered(state.arriving, spikes), layer.route)

    _, pull = jax.vjp(drive, weights, spikes.astype(jnp.float32))
    g_weights, g_spikes = pull(g_drive)
    return g_weights, g_spikes if spikes.dtype == jnp.float32 else None


def _step_back(
    static: _Static, held: tuple[IntegerLayer, Real], after: _Cotangents, own: _Step
) -> tuple[_Cotangents, tuple[Array, Array, Array]]:
    """A step of the backward pass, and the cotangents of its drive, its membrane and its threshold."""
    (chip, rule), (layer, real) = static, held
    wide, subtracts = beside(real), chip.reset == "subtract"
    g_spikes, g_v = own.of_spikes + after.fired, own.of_v + after.v
    of_threshold = jnp.zeros_like(g_v)
    if rule is not None:
        if not rule.detach_reset:
            g_spikes = g_spikes - g_v * (wide.unit * wide.threshold if subtracts else own.membrane)
        of_threshold = -g_spikes * own.slope - (g_v * own.spikes * wide.unit if subtracts else 0)
    stays = g_v if rule is None or subtracts else g_v * (1 - own.spikes)
    g_m = stays + g_spikes * own.slope / wide.unit
    g_current = g_m[None] + after.current
    g_drive = g_current * 2.0**chip.input_shift
    g_drive = g_drive * wide.synapse_decay if chip.input_first else g_drive
    g_fired = jnp.zeros_like(g_m)
    if real.recurrent is not None:
        g_fired = jnp.einsum("kbn,kmn->bm", g_drive, real.recurrent) * _power(layer.recurrent_shift)
    now = _Cotangents(wide.decay * g_m, wide.synapse_decay * g_current, g_fired)
    found = g_drive, g_m, of_threshold
    if own.inside is None:
        return now, found
    none = jax.tree.map(jnp.zeros_like, found)
    within = functools.partial(jnp.where, own.inside[:, None])
    kept = _Cotangents(g_v, after.current, after.fired)
    return (
        _Cotangents(
            within(now.v, kept.v),
            _within(own.inside, now.current, kept.current),
            within(now.fired, kept.fired),
        ),
        (_within(own.inside, g_drive, none[0]), within(g_m, none[1]), within(of_threshold, none[2])),
    )


def _within(inside: Array, now: Array, otherwise: Array) -> Array:
    """Arrays ``[synapses, batch, neurons]`` from `now` within a sequence."""
    return jnp.where(inside[None, :, None], now, otherwise)


def _power(shift: ArrayLike) -> Array:
    return (1 << jnp.asarray(shift, jnp.int32)).astype(jnp.float32)


train_layer.defvjp(_forward, _backward)
