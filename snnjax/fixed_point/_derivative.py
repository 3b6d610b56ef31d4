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


class _Factors(NamedTuple):
    """What the cotangents of each step are multiplied by, ``[time, batch, neurons]``."""

    keeps: Array  # the derivative of the membrane after the reset by that before it
    rises: Array  # that of the spikes by the membrane


class _Cotangents(NamedTuple):
    """What a step passes to the one before it."""

    v: Array  # [batch, neurons]
    current: Array  # [synapses, batch, neurons]
    fired: Array | None  # [batch, neurons] of a recurrent layer


def _backward(static: _Static, saved: _Saved, cotangents: _Found) -> tuple[Real, Array | None, None]:
    r"""The derivative of the steps of the real neurons.

    With membrane :math:`m`, such a step is

    .. math::

        i = b (i' + 2^k x) \text{ or } b i' + 2^k x, \quad m = a v' + \sum i + \mathrm{bias}, \quad
        s = \sigma(m / u - \theta), \quad v = m - s u \theta \text{ or } m (1 - s)

    Gradients do not pass through the state before the first step.
    """
    rule, (real, spikes, (layer, state, lengths), steps), given = static[1], saved, cotangents[0]
    factors = _factors(static, real, state, steps)
    g_v, g_m, g_drive = _steps_back(static, (layer, real), factors, given, lengths)
    recurrent = None
    if state.fired is not None:
        sent = a_step_later(state.fired, steps.spikes)
        recurrent = jnp.einsum("tbm,tkbn->kmn", sent, g_drive) * _power(layer.recurrent_shift)
    # By the argument of the spikes, of which the membrane is the other part, and by what a reset takes.
    threshold = jnp.zeros_like(real.threshold)
    if rule is not None:
        threshold = real.unit * jnp.sum((1 - steps.spikes) * g_v - g_m, axis=(0, 1))
    weights, g_spikes = _to_sources(layer, state, real.weights, spikes, g_drive)
    of_neurons = {"threshold": threshold, "bias": g_m.sum((0, 1))}
    found = jax.tree.map(jnp.zeros_like, real)
    return found._replace(weights=weights, recurrent=recurrent, **of_neurons), g_spikes, None


def _factors(static: _Static, real: Real, state: LayerState, steps: Steps) -> _Factors:
    """Of all steps at once."""
    (chip, rule), wide = static, beside(real)
    before = a_step_later(state.membranes.v.astype(jnp.float32), steps.v)
    membrane = wide.decay[None] * before + jnp.sum(steps.current, 1) + wide.bias[None]
    if rule is None:
        return _Factors(jnp.ones_like(membrane), jnp.zeros_like(membrane))
    unit, threshold, subtracts = wide.unit[None], wide.threshold[None], chip.reset == "subtract"
    rises = rule.surrogate.derivative(membrane / unit - threshold) / unit
    keeps = jnp.ones_like(membrane) if subtracts else 1 - steps.spikes
    if not rule.detach_reset:
        keeps -= rises * (unit * threshold if subtracts else membrane)
    return _Factors(keeps, rises)


# What a step back reads: the cotangent of its membrane, two factors with a sum between them, whether it is inside.
_OfStep = tuple[Array, Array, Array, Array | None, Array | None]
_Three = tuple[Array, Array, Array]


def _steps_back(
    static: _Static,
    held: tuple[IntegerLayer, Real],
    factors: _Factors,
    given: Steps,
    lengths: Array | None,
) -> _Three:
    """The cotangents of membranes after and before their reset, and of drives; 0 behind the end of a sequence."""
    (chip, _), (layer, real), wide = static, held, beside(held[1])
    to_drive = 2.0**chip.input_shift * (wide.synapse_decay if chip.input_first else 1.0)

    def back(after: _Cotangents, own: _OfStep) -> tuple[_Cotangents, _Three]:
        of_v, keeps, sent, rises, inside = own
        g_v, g_fired = of_v + after.v, after.fired
        g_m = keeps * g_v + sent
        if g_fired is not None and rises is not None:
            g_m += rises * g_fired
        g_current = g_m[None] + after.current
        g_drive = g_current * to_drive
        if real.recurrent is not None:
            g_fired = jnp.einsum("kbn,kmn->bm", g_drive, real.recurrent) * _power(layer.recurrent_shift)
        now = _Cotangents(wide.decay * g_m, wide.synapse_decay * g_current, g_fired)
        found = g_v, g_m, g_drive
        if inside is None:
            return now, found

        def within(now: Array, otherwise: Array) -> Array:
            return jnp.where(jnp.expand_dims(inside, (*range(now.ndim - 2), now.ndim - 1)), now, otherwise)

        kept = _Cotangents(g_v, after.current, after.fired)
        return jax.tree.map(within, (now, found), (kept, jax.tree.map(jnp.zeros_like, found)))

    zeros = jnp.zeros(given.v.shape[1:], jnp.float32)
    is_recurrent = real.recurrent is not None
    currents = jnp.zeros(given.current.shape[1:], jnp.float32)
    last = _Cotangents(zeros, currents, zeros if is_recurrent else None)
    sent, rises = factors.rises * given.spikes, factors.rises if is_recurrent else None
    xs = given.v, factors.keeps, sent, rises, steps_within(given.v.shape[0], lengths)
    return jax.lax.scan(back, last, xs, reverse=True)[1]


def _to_sources(
    layer: IntegerLayer, state: LayerState, weights: Array, spikes: Array, g_drive: Array
) -> tuple[Array, Array | None]:
    """The cotangents of weights and spikes; of whole numbers there is none."""

    def drive(weights: Array, spikes: Array) -> Array:
        return drive_of(weights, layer.shift, delivered(state.arriving, spikes), layer.route)

    _, pull = jax.vjp(drive, weights, spikes.astype(jnp.float32))
    g_weights, g_spikes = pull(g_drive)
    return g_weights, g_spikes if spikes.dtype == jnp.float32 else None


def _power(shift: ArrayLike) -> Array:
    return (1 << jnp.asarray(shift, jnp.int32)).astype(jnp.float32)


train_layer.defvjp(_forward, _backward)
