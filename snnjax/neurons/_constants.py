"""The constants of neurons: initial values, and decays in an unconstrained parametrisation for learning."""

import numbers
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import DTypeLike
from jaxtyping import Array, ArrayLike, Float

from snnjax._arguments import explained
from snnjax._check import check_kept, concrete, fail, short_repr
from snnjax._types import Unchecked, accumulation_dtype

# One value for all, or a range (low, high) from which each neuron's value is drawn uniformly.
Constant = float | tuple[float, float]
_LARGEST = float(np.finfo(np.float32).max)


@jax.custom_jvp
def raw_to_decay(raw: Float[Array, "..."]) -> Float[Array, "..."]:
    """Map an unconstrained number to a decay between 0 and 1: ``decay = 1 / (1 + exp(-raw))``.

    The derivative is computed as ``sigmoid(raw) sigmoid(-raw)`` instead of ``decay (1 - decay)``, so it stays positive
    even if `decay` rounds to 1: a learned decay cannot get stuck.

    Example:
        >>> float(raw_to_decay(jnp.float32(0.0)))
        0.5
    """
    return jax.nn.sigmoid(raw)


@raw_to_decay.defjvp
def _raw_to_decay_jvp(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    (raw,), (tangent,) = primals, tangents
    decay = jax.nn.sigmoid(raw)
    return decay, tangent * (decay * jax.nn.sigmoid(-raw))


def decay_to_raw(decay: Float[ArrayLike, "..."]) -> Float[Array, "..."]:
    """Invert `raw_to_decay`: ``raw = log(decay / (1 - decay))``, for ``0 < decay < 1``.

    Raises:
        ValueError: if a decay is not between 0 and 1, of which traced ones cannot be checked.

    Example:
        >>> float(decay_to_raw(0.5))
        0.0
    """
    check_kept("decay_to_raw", "decay", decay)
    decay = jnp.asarray(decay)
    return jnp.log(decay) - jnp.log1p(-decay)


@jax.custom_jvp
def within(value: Float[Array, "..."], low: ArrayLike, high: ArrayLike) -> Float[Array, "..."]:
    """Clip a constant to bounds; its derivative stays 1 outside, so that a learned one cannot get stuck there.

    The bounds have no derivative.

    Example:
        >>> float(within(jnp.float32(3.0), 0.0, 1.0))
        1.0
    """
    return jnp.clip(value, low, high)


@within.defjvp
def _within_jvp(primals: tuple[Array, Any, Any], tangents: tuple[Array, Any, Any]) -> tuple[Array, Array]:
    clipped = within(*primals)
    return clipped, jnp.broadcast_to(tangents[0], clipped.shape)


@explained
def time_constant_to_decay(time_constant: float | Array, dt: float = 1.0) -> Float[Array, "..."]:
    """Compute the decay per step of length `dt`: ``decay = exp(-dt / time_constant)``, both in the same unit of time.

    Raises:
        ValueError: if `dt` or a `time_constant` is not positive, of which traced ones cannot be checked.

    Example:
        >>> round(float(time_constant_to_decay(20.0, dt=1.0)), 4)
        0.9512
    """
    if not dt > 0:
        fail(f"time_constant_to_decay: `dt` must be positive, got {dt}. Pass the length of a step.")
    known = concrete(time_constant)
    if known is not None and not np.all(known > 0):
        actual = known.ravel()[np.argmin(known > 0)]
        fail(f"time_constant_to_decay: `time_constant` must be positive, got {actual}. Use the unit of dt.")
    return jnp.exp(-dt / jnp.asarray(time_constant))


def draw(key: Array, value: Constant, num_neurons: int | None, dtype: DTypeLike) -> Array:
    """`value`, or draws from its range: ``[neurons]``, or ``[]`` if `num_neurons` is None."""
    shape = () if num_neurons is None else (num_neurons,)
    if isinstance(value, tuple):
        low, high = value
        # Drawn in float32 and rounded, so that the draws are the same for all dtypes.
        return jax.random.uniform(key, shape, jnp.float32, low, high).astype(dtype)
    return jnp.full(shape, value, dtype)


def draw_raw_decay(key: Array, decay: Constant, num_neurons: int | None, dtype: DTypeLike) -> Array:
    """The raw parameters of `decay`, or of draws from its range."""
    return decay_to_raw(draw(key, decay, num_neurons, accumulation_dtype(dtype))).astype(dtype)


def check_constant(op: str, argument: str, value: Unchecked) -> None:
    """Check that `value` is a number or a range (low, high), finite in float32."""
    ends = value if isinstance(value, tuple) else (value, value)
    numeric = len(ends) == 2 and all(isinstance(end, numbers.Real) for end in ends)
    if not (numeric and ends[0] <= ends[1]):
        actual, hint = short_repr(value), f"Try {argument}=(0.5, 0.9)"
        fail(f"{op}: `{argument}` must be a number or a range (low, high), got {actual}. {hint}.")
    if max(abs(end) for end in ends) > _LARGEST:  # draws and resets would be NaN
        spikes, actual = argument == "threshold", short_repr(value)
        hint = "Use leaky_integrator for neurons that never spike" if spikes else "Pass a finite number"
        fail(f"{op}: `{argument}` must be finite in float32, got {actual}. {hint}.")


def check_decay(op: str, argument: str, value: Unchecked, is_fixed: bool) -> None:
    """Check that `value` is a number or a range between 0 and 1, both of which only a fixed number may be."""
    check_constant(op, argument, value)
    low, high = value if isinstance(value, tuple) else (value, value)
    may_be_ends = is_fixed and not isinstance(value, tuple)
    if not (0 <= low <= high <= 1 if may_be_ends else 0 < low <= high < 1):
        expected = "between 0 and 1" if may_be_ends else "strictly between 0 and 1"
        hint = "From a time constant it is exp(-dt / time_constant)"
        fail(f"{op}: `{argument}` must be {expected}, got {value}. {hint}.")
