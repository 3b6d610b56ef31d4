"""`lif_step`: one step of leaky integrate-and-fire neurons, dense."""

import functools
import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float

from snnjax._arguments import explained
from snnjax._batching import SHARED
from snnjax._check import (
    check_array,
    check_choice,
    check_float_array,
    check_kept,
    check_per_neuron,
    check_shape,
    check_switches,
    fail,
)
from snnjax._dispatch import Target, evaluate
from snnjax._neuron_table import RESETS, GLIFConstants
from snnjax._sharding import gathered, vary_alike
from snnjax._types import RESET_TIMES, SPIKE_SOURCES, accumulation_dtype, upcast
from snnjax.ops._glif_step import LIFConvention, glif_step
from snnjax.surrogates import Surrogate, as_surrogate


class _Operands(NamedTuple):
    v: Any  # [rows, neurons], like the current
    current: Any
    decay: Any  # [1 | neurons], like the other constants
    threshold: Any
    gain: Any


class _Results(NamedTuple):
    v: Any  # [rows, neurons]
    spikes: Any  # alike


class _BackwardOperands(NamedTuple):
    operands: _Operands
    g: _Results


@explained
def lif_step(
    v: Float[Array, "*batch neurons"],
    current: Float[Array, "*batch neurons"],
    decay: Float[ArrayLike, "..."],
    threshold: Float[ArrayLike, "..."],
    gain: Float[ArrayLike, "..."] | None = None,
    *,
    surrogate: str | Surrogate = "superspike",
    reset: str = "subtract",
    detach_reset: bool = True,
    reset_time: str = "before_decay",
    spike_from: str = "new",
    inclusive: bool = False,
    implementation: str | None = None,
) -> tuple[Float[Array, "*batch neurons"], Float[Array, "*batch neurons"]]:
    r"""Advance leaky integrate-and-fire neurons by one step.

    With the spikes of the previous step, ``s' = [v > threshold]``, `current` :math:`I`, `decay` :math:`\alpha`, `gain`
    :math:`g` and `threshold` :math:`\theta`:

    .. math::

        u &= v - \theta s' \text{ ("subtract")}, \quad v (1 - s') \text{ ("zero")} \quad \text{or} \quad
            v \text{ ("none")} \\
        v_\mathrm{new} &= \alpha u + g I \\
        s &= [v_\mathrm{new} > \theta]

    Other libraries differ in three places, each of which has a switch:

    * ``reset_time="after_decay"``: ``v_new = decay * v + gain * current - threshold * s'`` ("subtract") or
      ``(1 - s') * (decay * v + gain * current)`` ("zero").
    * ``reset_time="immediate"``: ``m = decay * v + gain * current``, ``spikes = [m > threshold]``, and
      ``v_new = m - threshold * spikes`` or ``m * (1 - spikes)``: the stored membrane is the one after the reset.
    * ``spike_from="old"``: ``spikes = s'``, the same spikes that reset the membrane.
    * ``inclusive=True``: every ``>`` above is ``>=``.

    Args:
        v: membrane, initially 0, in the unit of the threshold. Its dtype is the accumulation dtype of `current`:
            float32, or float64 for float64. In bfloat16 a small current would be rounded away.
        current: input of this step, of any floating-point dtype.
        decay: fraction of the membrane kept per step, scalar or ``[neurons]``.
        threshold: scalar or ``[neurons]``.
        gain: scalar or ``[neurons]``; None is ``1 - decay``.
        surrogate: replaces ``ds/dv``.
        detach_reset: no gradient through ``s'`` in the reset; the threshold it subtracts keeps its gradient.
        implementation: None or "reference"; "composed" also has forward mode and second-order derivatives. "cpu"
            raises, because there is no compiled kernel: XLA fuses the few operations of a step with their surroundings,
            as the device `ipu` does, and none of our kernels was faster.

    Returns:
        The new membrane in the dtype of `v`, and the spikes (0 or 1) in that of `current`.

    Raises:
        ValueError: if shapes do not match, a dtype is not floating-point, a decay is outside [0, 1], a switch is
            unknown, or the implementation is unknown or unavailable.

    Example:
        >>> import jax.numpy as jnp
        >>> from snnjax import lif_step
        >>> v, spikes = lif_step(
        ...     jnp.array([0.0, 1.5]), jnp.array([2.0, 0.5]), decay=0.5, threshold=1.0, gain=1.0
        ... )
        >>> v, spikes
        (Array([2.  , 0.75], dtype=float32), Array([1., 0.], dtype=float32))

    Reference:
        Eshraghian et al. 2023, doi:10.1109/JPROC.2023.3308088, for the conventions.
    """
    convention = LIFConvention(
        as_surrogate("lif_step", surrogate), reset, detach_reset, reset_time, spike_from, inclusive
    )
    _check_arguments(v, current, convention)
    v, current, decay, threshold, gain = gathered((v, current, decay, threshold, gain))
    constants = [per_neuron("lif_step", n, c, v) for n, c in (("decay", decay), ("threshold", threshold))]
    check_kept("lif_step", "decay", decay)
    constants.append(1 - constants[0] if gain is None else per_neuron("lif_step", "gain", gain, v))
    flat = (math.prod(v.shape[:-1]), v.shape[-1])
    operands = vary_alike(_Operands(v.reshape(flat), upcast(current).reshape(flat), *constants))
    is_composed = implementation == "composed"
    results: Any = (
        _composed(operands, convention) if is_composed else _lif_step(operands, convention, implementation)
    )
    return results.v.reshape(v.shape), results.spikes.reshape(v.shape).astype(current.dtype)


def per_neuron(op: str, argument: str, value: ArrayLike, v: Array) -> Array:
    """`value` as an array ``[1]`` or ``[neurons]`` in the dtype of `v`."""
    check_per_neuron(op, argument, value, v.shape[-1])
    array = jnp.asarray(value, v.dtype)
    return array.reshape(1) if array.ndim == 0 else array


def _check_arguments(v: Array, current: Array, convention: LIFConvention) -> None:
    check_float_array("lif_step", "v", v)
    if v.ndim == 0:
        fail("lif_step: `v` must have a neuron axis, got a scalar. Pass v[neurons].")
    check_array("lif_step", "current", current)
    check_shape("lif_step", "current", current, v.shape, "..., neurons", "Give it the shape of v")
    dtype = jnp.dtype(accumulation_dtype(current.dtype))
    if v.dtype != dtype:
        expected = f"have dtype {dtype.name}, the accumulation dtype of {current.dtype.name}"
        fail(f"lif_step: `v` must {expected}, got {v.dtype.name}. Cast it with v.astype(jnp.{dtype.name}).")
    switches = {"detach_reset": convention.detach_reset, "inclusive": convention.inclusive}
    check_switches("lif_step", **switches)
    check_choice("lif_step", "reset", convention.reset, RESETS)
    check_choice("lif_step", "reset_time", convention.reset_time, RESET_TIMES)
    check_choice("lif_step", "spike_from", convention.spike_from, SPIKE_SOURCES)
    if convention.reset_time == "immediate" and convention.spike_from == "old":
        hint = "Use reset_time='after_decay' with the old membrane's spikes"
        fail(f"lif_step: `spike_from` must be 'new' if reset_time is 'immediate', got 'old'. {hint}.")


def _definition(operands: _Operands, convention: LIFConvention) -> _Results:
    """The new membrane and the spikes, from v, current ``[batch, neurons]`` and constants ``[1 | neurons]``.

    Constants are spread over the batch once, so that each has one sum over it on the way back.
    """
    decay, threshold, gain = (jnp.broadcast_to(each, operands.v.shape) for each in operands[2:])
    stepped = glif_step(GLIFConstants(decay, threshold, gain), convention, operands.v, None, operands.current)
    return _Results(stepped.v, convention.fire(stepped.membrane - stepped.threshold))


# One program outside jit too, like the target.
_composed = jax.jit(_definition, static_argnums=1)


def _backward(arguments: _BackwardOperands, convention: LIFConvention) -> _Operands:
    """The cotangents of the operands: those of the definition, in which only `spike` has a surrogate."""
    _, pull_back = jax.vjp(lambda operands: _definition(operands, convention), arguments.operands)
    return pull_back(arguments.g)[0]


FORWARD = Target("snnjax_lif_step", "lif_step", _definition)
BACKWARD = Target("snnjax_lif_step_backward", "lif_step", _backward)
_AXES = _Operands(v=0, current=0, decay=SHARED, threshold=SHARED, gain=SHARED)
_RESULT_AXES = _Results(v=0, spikes=0)


@functools.partial(jax.custom_vjp, nondiff_argnums=(1, 2))
def _lif_step(operands: _Operands, convention: LIFConvention, implementation: str | None) -> _Results:
    return evaluate(FORWARD, operands, _AXES, _RESULT_AXES, convention, implementation=implementation)


def _fwd(
    operands: _Operands, convention: LIFConvention, implementation: str | None
) -> tuple[_Results, _Operands]:
    results: Any = _lif_step(operands, convention, implementation)
    return results, operands


def _bwd(
    convention: LIFConvention, implementation: str | None, operands: _Operands, g: _Results
) -> tuple[_Operands]:
    given, axes = _BackwardOperands(operands, g), _BackwardOperands(_AXES, _RESULT_AXES)
    return (evaluate(BACKWARD, given, axes, _AXES, convention, implementation=implementation),)


_lif_step.defvjp(_fwd, _bwd)
