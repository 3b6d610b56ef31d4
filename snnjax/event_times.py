"""Spike times: exact gradients for neurons that spike once, without a surrogate.

In a latency code each input spikes at most once, at ``times[batch, inputs]``; infinity means never. Between two inputs
a current-based LIF neuron has a closed-form solution, so the time at which it first crosses its threshold, and the
derivative of that time, are exact up to rounding. There is neither a time step nor a surrogate.
"""

import functools
import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from snnjax._check import check_float_array, check_shape, concrete, fail

# Bisection steps for the threshold crossing of a membrane: more than the bits of a float64.
_HALVINGS = 60


class _Neuron(NamedTuple):
    """The constants of current-based LIF neurons, in the unit of the times."""

    membrane: float
    synapse: float
    threshold: float


class _Crossing(NamedTuple):
    """The first threshold crossing of each membrane, fields of shape ``[neurons]``."""

    v: Array  # at the start of the interval between two inputs
    current: Array
    start: Array  # time of that start
    length: Array  # from the start to a time at which the membrane is above the threshold
    found: Array  # bool


def first_spike_times(
    times: Float[Array, "batch inputs"],
    weights: Float[Array, "inputs neurons"],
    *,
    membrane_time: float = 20.0,
    synapse_time: float = 5.0,
    threshold: float = 1.0,
) -> Float[Array, "batch neurons"]:
    r"""Compute the first spike times of current-based LIF neurons, with the exact gradient of EventProp.

    With the inputs :math:`i` that spike at `times` :math:`t_i`, `weights` :math:`w_i`, `synapse_time` :math:`\tau_I`,
    `membrane_time` :math:`\tau_V` and `threshold` :math:`\theta`:

    .. math::

        \tau_I \dot I &= -I + \tau_I \sum_i w_i \delta(t - t_i) \\
        \tau_V \dot V &= -V + I, \qquad V = I = 0 \text{ before the first input} \\
        t_\mathrm{out} &= \min \{t : V(t) > \theta\}, \quad \infty \text{ if there is none}

    The backward pass is the adjoint equation of EventProp for one spike per neuron: at its spike, an error ``lambda = g
    / V'(out)`` starts, and decays backwards in time as the membrane does forwards. If ``K(t)`` is the membrane after
    one input with weight 1, then ``d weights[i] = -lambda K(out - times[i])`` and ``d times[i] = lambda weights[i]
    K'(out - times[i])``. A neuron that does not spike has no gradient.

    A neuron whose current becomes NaN before it spikes has the time NaN, and so has its gradient: it is not silent.

    Args:
        times: spike times of the inputs, in any unit; infinity for no spike.
        weights: weights with the dtype of the times.
        membrane_time: time constant of the membrane, in the same unit.
        synapse_time: time constant of the current, in the same unit; it may be that of the membrane.
        threshold: threshold of all neurons.

    Raises:
        ValueError: if shapes or dtypes do not match, a constant is not positive and finite, or a time is NaN or
            -infinity. Inside `jit`, such a time makes all times of its example NaN.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> from snnjax.event_times import first_spike_times
        >>> times, weights = jnp.array([[0.0, 1.0]]), jnp.array([[6.0, 0.1], [6.0, 0.1]])
        >>> out = first_spike_times(times, weights)
        >>> bool(2 < out[0, 0] < 4), bool(jnp.isinf(out[0, 1]))
        (True, True)
        >>> gradient = jax.grad(lambda w: first_spike_times(times, w)[0, 0])(weights)
        >>> gradient[:, 0] < 0  # more weight, an earlier spike
        Array([ True,  True], dtype=bool)

    Reference:
        Wunderlich and Pehle 2021, doi:10.1038/s41598-021-91786-z; Goeltz et al. 2021, doi:10.1038/s42256-021-00388-x.
    """
    op = "event_times.first_spike_times"
    check_float_array(op, "times", times)
    check_shape(op, "times", times, (None, None), "batch, inputs", "Add the missing axis, as in times[None]")
    expected = (times.shape[1], None)
    check_shape(op, "weights", weights, expected, "inputs, neurons", "Pass one row of weights per input")
    if weights.dtype != times.dtype:
        hint = "Cast them with weights.astype(times.dtype)"
        fail(f"{op}: `weights` must have dtype {times.dtype.name}, got {weights.dtype.name}. {hint}.")
    for name, value in (
        ("membrane_time", membrane_time),
        ("synapse_time", synapse_time),
        ("threshold", threshold),
    ):
        if not 0 < value < math.inf:
            fail(f"{op}: `{name}` must be positive and finite, got {value}. Use the unit of the times.")
    known = concrete(times)
    if known is not None and not (known > -np.inf).all():
        actual = "NaN" if np.isnan(known).any() else "-infinity"
        fail(f"{op}: `times` must hold numbers, got {actual}. Pass infinity for an input without a spike.")
    return _compiled(times, weights, _Neuron(membrane_time, synapse_time, threshold))


def _rate(neuron: _Neuron) -> float:
    """The difference of the decay rates, ``1 / membrane - 1 / synapse``, without cancelling where they are close."""
    return (neuron.synapse - neuron.membrane) / (neuron.synapse * neuron.membrane)


def _membrane(v: Array, current: Array, passed: Array, neuron: _Neuron) -> Array:
    """The membrane after the time `passed` without input.

    The response to a current of 1 is ``exp(-t / slow) (1 - exp(-rate t)) / (rate membrane)``, where `slow` is the
    longer time constant, and ``t exp(-t / slow) / membrane``, the alpha function, if both are equal.
    """
    rate, slow = abs(_rate(neuron)), max(neuron.membrane, neuron.synapse)
    area = -jnp.expm1(-rate * passed) / rate if rate else passed
    response = jnp.exp(-passed / slow) * area / neuron.membrane
    return v * jnp.exp(-passed / neuron.membrane) + current * response


def _peak(v: Array, current: Array, neuron: _Neuron) -> Array:
    """The time of the membrane's maximum without input, or 0 if the maximum is at an end of the interval."""
    rate, there = _rate(neuron), current != 0
    # The slope is 0 where ``(exp(rate t) - 1) / rate``, or t if the rate is 0, has this value.
    grown = neuron.synapse * (1 - v / jnp.where(there, current, 1))
    turns = there & (1 + rate * grown > 0)
    grown = jnp.where(turns, grown, 0)
    return jnp.log1p(rate * grown) / rate if rate else grown


def _find(times: Array, weights: Array, neuron: _Neuron) -> Array:
    """The first spikes of one example, ``[neurons]``."""
    order = jnp.argsort(times)
    starts = times[order]
    ends = jnp.concatenate([starts, jnp.full((1,), jnp.inf, starts.dtype)])[1:]
    nothing = jnp.zeros(weights.shape[1:], weights.dtype)

    def step(carry: tuple[Array, Array, _Crossing], event: Any) -> tuple[Any, None]:
        v, current, crossing = carry
        start, end, row = event
        happens = jnp.isfinite(start)
        current = jnp.where(happens, current + row, current)
        length = jnp.where(happens, end - start, 0)
        peak = jnp.clip(_peak(v, current, neuron), 0, length)
        after = jnp.where(jnp.isfinite(length), length, 0)
        later = _membrane(v, current, after, neuron)
        at_peak = _membrane(v, current, peak, neuron) > neuron.threshold
        found = happens & (at_peak | (later > neuron.threshold)) & ~crossing.found
        new = _Crossing(v, current, jnp.broadcast_to(start, v.shape), jnp.where(at_peak, peak, after), found)
        crossing = jax.tree.map(lambda now, before: jnp.where(found, now, before), new, crossing)
        return (later, current * jnp.exp(-after / neuron.synapse), crossing), None

    none = _Crossing(nothing, nothing, nothing, nothing, jnp.zeros(nothing.shape, bool))
    rows = jnp.where(jnp.isfinite(starts)[:, None], weights[order], 0)
    (_, current, crossing), _ = jax.lax.scan(step, (nothing, nothing, none), (starts, ends, rows))

    def halve(_: object, bounds: tuple[Array, Array]) -> tuple[Array, Array]:
        low, high = bounds
        middle = (low + high) / 2
        above = _membrane(crossing.v, crossing.current, middle, neuron) > neuron.threshold
        return jnp.where(above, low, middle), jnp.where(above, middle, high)

    _, passed = jax.lax.fori_loop(0, _HALVINGS, halve, (nothing, crossing.length))
    known = jnp.all(times > -jnp.inf)  # neither NaN nor -infinity
    silent = jnp.where(jnp.isnan(current), jnp.nan, jnp.inf)
    return jnp.where(known, jnp.where(crossing.found, crossing.start + passed, silent), jnp.nan)


@functools.partial(jax.custom_vjp, nondiff_argnums=(2,))
def _first_spike_times(times: Array, weights: Array, neuron: _Neuron) -> Array:
    return jax.vmap(lambda inputs: _find(inputs, weights, neuron))(times)


def _fwd(times: Array, weights: Array, neuron: _Neuron) -> tuple[Array, tuple[Array, Array, Array]]:
    out: Any = _first_spike_times(times, weights, neuron)
    return out, (times, weights, out)


def _bwd(neuron: _Neuron, residuals: tuple[Array, Array, Array], g: Array) -> tuple[Array, Array]:
    """Example by example, so that no array ``[batch, inputs, neurons]`` is stored."""
    times, weights, out = residuals

    def response(passed: Array) -> Array:
        """The membrane after one input with weight 1."""
        return _membrane(jnp.zeros_like(passed), jnp.ones_like(passed), passed, neuron)

    def one(inputs: Array, spikes: Array, g: Array) -> tuple[Array, Array]:
        passed = spikes[None, :] - inputs[:, None]
        acts = jnp.isfinite(passed) & (passed > 0)
        passed = jnp.where(acts, passed, 0)
        value, slope = jax.jvp(response, (passed,), (jnp.ones_like(passed),))
        slope = jnp.where(acts, slope, 0)
        moved = (
            jnp.where(acts, weights, 0) * slope
        )  # an input that does not act may have any weight, even NaN
        rise = jnp.sum(moved, axis=0)
        silent = jnp.where(jnp.isnan(spikes), spikes, 0)
        error = jnp.where(jnp.isfinite(spikes) & (rise > 0), g / jnp.where(rise > 0, rise, 1), silent)
        return jnp.sum(moved * error[None, :], axis=1), -value * error[None, :]

    def add(total: Array, each: tuple[Array, Array, Array]) -> tuple[Array, Array]:
        g_times, g_weights = one(*each)
        return total + g_weights, g_times

    g_weights, g_times = jax.lax.scan(add, jnp.zeros_like(weights), (times, out, g))
    return g_times, g_weights


_first_spike_times.defvjp(_fwd, _bwd)
_compiled = jax.jit(_first_spike_times, static_argnums=2)  # once, not in each call outside jit
