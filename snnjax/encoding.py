"""Encoders from numbers to spikes, time first.

All are pure functions of floating-point values that return spikes (0 or 1) of the same dtype; probabilities and times
are computed in float32 (float64 for float64), so that bfloat16 values keep their rates.
"""

import functools
import math
import warnings

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import DTypeLike
from jaxtyping import Array, Float, Int, PRNGKeyArray

from snnjax._arguments import explained
from snnjax._check import (
    check_choice,
    check_float_array,
    check_integer,
    check_key,
    check_shape,
    concrete,
    fail,
)
from snnjax._sparse_spikes import SparseSpikes, beyond
from snnjax._types import Unchecked, id_dtype, upcast

# Of the log form.
_THRESHOLD = 0.1
# In the log form without a time constant, a value this far above the threshold spikes in the last step.
_LAST_STEP_EXCESS = 0.01
# How far a value may be below a level by rounding: half a unit in the last place of its own, one of a product with a
# rounded step, half of the threshold.
_ROUNDING_UNITS = 2
# Less than half, or a constant value would cross the same level up and down for ever.
_MOST_OF_A_LEVEL = 0.25
# Knuth's multiplicative hash (TAOCP 3, 6.4): an odd number near 2**32 / golden ratio spreads consecutive ids.
_HASH_FACTOR = 2_654_435_761
# Of probabilities a gain of 2 may be meant; pixels up to 255 are not, nor are standardised ones.
_MOST_MEANT = 2.0


def rate_encode(
    key: PRNGKeyArray, values: Float[Array, "batch inputs"], num_steps: int
) -> Float[Array, "time batch inputs"]:
    """Draw spikes independently at each step: ``P(spikes[t, b, i] = 1) = values[b, i]``.

    `values` are probabilities per step; a value below 0 or NaN never spikes, one above 1 always does, and a
    RuntimeWarning says so where known ones are above 2.

    Errors: `values` is not a float array [batch, inputs], or `num_steps` is negative.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> from snnjax.encoding import rate_encode
        >>> rate_encode(jax.random.key(0), jnp.array([[0.0, 1.0]]), num_steps=3)[:, 0]
        Array([[0., 1.],
               [0., 1.],
               [0., 1.]], dtype=float32)
    """
    check_key("rate_encode", key)
    num_steps = _check_values("rate_encode", values, num_steps)
    _warn_of_large("rate_encode", values, "spike in every step", 3)
    precise = upcast(values)
    draws = jax.random.uniform(key, (num_steps, *values.shape), precise.dtype)
    return (draws < precise[None]).astype(values.dtype)


@explained
def latency_encode(
    values: Float[Array, "batch inputs"],
    num_steps: int,
    *,
    form: str = "linear",
    threshold: float | None = None,
    time_constant: float | None = None,
) -> Float[Array, "time batch inputs"]:
    """Encode each input as at most one spike, earlier for larger values; values of 0 (or less, or NaN) never spike.

    Form "linear": ``step = round((1 - value) * (num_steps - 1))`` for values in (0, 1], those above 1 counting as 1; a
    RuntimeWarning says so where known ones are above 2.

    Form "log": the time at which a leaky (RC) integrator charged by the value reaches `threshold`,
    ``step = floor(time_constant * log(value / (value - threshold)))``; values up to `threshold`, by default 0.1, and
    those that would spike after the last step, never spike. `time_constant` is in steps; None chooses it so that a
    value 1 % above `threshold` spikes in the last step. The form "linear" has neither.

    Errors: those of `rate_encode`, an unknown form, a threshold or time constant that is not positive, or one for the
    form "linear".

    Example:
        >>> import jax.numpy as jnp
        >>> from snnjax.encoding import latency_encode
        >>> latency_encode(jnp.array([[1.0, 0.5, 0.0]]), num_steps=3)[:, 0]
        Array([[1., 0., 0.],
               [0., 1., 0.],
               [0., 0., 0.]], dtype=float32)

    Source: Thorpe, Delorme, Van Rullen 2001, doi:10.1016/S0893-6080(01)00083-1.
    """
    step = _latency_step("latency_encode", values, num_steps, form, threshold, time_constant)
    steps = jnp.arange(num_steps, dtype=jnp.int32)[:, None, None]
    return (steps == step[None]).astype(values.dtype)


@explained
def latency_spikes(
    values: Float[Array, "batch inputs"],
    num_steps: int,
    capacity: int,
    *,
    form: str = "linear",
    threshold: float | None = None,
    time_constant: float | None = None,
) -> SparseSpikes:
    """Encode as `latency_encode` does, as `SparseSpikes` ``[time, batch, capacity]`` and without a dense array.

    If more than `capacity` inputs spike in one step, those with the largest values are listed (ties are broken by a
    fixed hash of the id), and the others are counted in ``overflow``.

    Errors: those of `latency_encode`, or a negative capacity.

    Example:
        >>> import jax.numpy as jnp
        >>> from snnjax.encoding import latency_spikes
        >>> latency_spikes(jnp.array([[1.0, 0.5, 0.0, 0.9]]), num_steps=3, capacity=2).ids[:, 0]
        Array([[0, 3],
               [1, 4],
               [4, 4]], dtype=uint16)
    """
    capacity = check_integer("latency_spikes", "capacity", capacity, 0)
    step = _latency_step("latency_spikes", values, num_steps, form, threshold, time_constant)
    num_neurons = values.shape[-1]
    ids = jnp.broadcast_to(jnp.arange(num_neurons, dtype=jnp.int32)[None], step.shape)
    tie = ids.astype(jnp.uint32) * jnp.uint32(_HASH_FACTOR)
    # One sort orders the inputs of each example by step, so that each step's list is a contiguous part of `order`.
    *_, order = jax.lax.sort((step, -upcast(values), tie, ids), dimension=1, num_keys=3)
    steps = jnp.arange(num_steps + 1, dtype=jnp.int32)
    start = jax.vmap(lambda row: jnp.searchsorted(row, steps))(jnp.sort(step, axis=1)).astype(jnp.int32)
    count = (start[:, 1:] - start[:, :-1]).T  # [time, batch]
    slot = jnp.arange(capacity, dtype=jnp.int32)[None, None, :]
    used = slot < count[:, :, None]
    # An extra column holds the pad id, to which unused slots point.
    padded = jnp.pad(order, ((0, 0), (0, 1)), constant_values=num_neurons)
    place = jnp.where(used, start[:, :-1].T[:, :, None] + slot, num_neurons)
    batch = jnp.arange(values.shape[0], dtype=jnp.int32)[None, :, None]
    listed = jnp.sort(padded[jnp.broadcast_to(batch, place.shape), place], axis=-1)
    return SparseSpikes(
        listed.astype(id_dtype(num_neurons)),
        None,
        count,
        jnp.minimum(count, capacity),
        beyond(count, capacity),
        num_neurons,
    )


def delta_encode(
    series: Float[Array, "time batch channels"], threshold: float | Float[Array, "..."]
) -> Float[Array, "time batch 2*channels"]:
    """Encode level crossings: a spike whenever a channel has changed by `threshold` since its last one.

    With ``reference = 0`` initially, at each step ``levels = trunc((series[t] - series[0]) / threshold - reference)``,
    ``reference += levels``. Output ``[..., c]`` is ``[levels >= 1]`` (on) and ``[..., channels + c]`` is ``[levels <=
    -1]`` (off); several levels crossed within one step give one spike. `threshold` is in units of `series`, a positive
    number or an array [channels]. A level counts as crossed if no more than rounding is missing: two units in the last
    place (of the dtype of `series`) of ``series[t]`` and of ``series[0]``, and at most a quarter of the threshold.

    Errors: `series` is not a float array [time, batch, channels] of finite numbers, or the threshold has another shape
    or is not positive. Traced numbers cannot be checked: a channel is silent from a NaN on.

    Example:
        >>> import jax.numpy as jnp
        >>> from snnjax.encoding import delta_encode
        >>> delta_encode(jnp.array([0.0, 0.6, 1.2, 0.1])[:, None, None], threshold=1.0)[:, 0]
        Array([[0., 0.],
               [0., 0.],
               [1., 0.],
               [0., 0.]], dtype=float32)

    Source: Miskowicz 2006, "Send-on-delta concept", doi:10.3390/s6010049.
    """
    hint = "Pass series with time first, for instance series.swapaxes(0, 1)"
    check_shape("delta_encode", "series", series, (None, None, None), "time, batch, channels", hint)
    check_float_array("delta_encode", "series", series)
    numbers = concrete(series)
    if numbers is not None and not np.isfinite(numbers).all():
        first = int(np.argwhere(~np.isfinite(numbers))[0, 0])
        hint = "Fill what is missing: a channel would be silent from there on"
        fail(f"delta_encode: `series` must be finite, got NaN or infinity in step {first}. {hint}.")
    num_steps, _, num_channels = series.shape
    if jnp.shape(threshold) not in ((), (num_channels,)):
        expected = f"be a number or have shape [channels] = [{num_channels}]"
        actual = f"shape {list(jnp.shape(threshold))}"
        fail(f"delta_encode: `threshold` must {expected}, got {actual}. Pass one, or one for each channel.")
    precise = upcast(series)
    known = concrete(threshold)
    if known is not None and not np.all(good := (known > 0) & np.isfinite(known)):
        actual, hint = f"{float(known[~good].flat[0]):g}", "Pass one in the unit of the series"
        fail(f"delta_encode: `threshold` must be positive and finite, got {actual}. {hint}.")
    step_size = jnp.broadcast_to(jnp.asarray(threshold).astype(precise.dtype), (num_channels,))[None]

    start = precise[0] if num_steps > 0 else jnp.zeros(series.shape[1:], precise.dtype)
    return _crossings(precise, start, step_size, series.dtype)


@functools.partial(jax.jit, static_argnames="dtype")  # compiled once, not in each call outside jit
def _crossings(precise: Array, start: Array, step_size: Array, dtype: DTypeLike) -> Array:
    """The spikes of `delta_encode`, for a series that `dtype` has rounded."""
    rounding = _ROUNDING_UNITS * float(jnp.finfo(dtype).eps)

    def step(reference: Array, frame: Array) -> tuple[Array, Array]:
        missing = (frame - start) / step_size - reference
        tolerance = rounding * (jnp.abs(frame) + jnp.abs(start)) / step_size
        tolerance = jnp.minimum(tolerance, _MOST_OF_A_LEVEL)
        levels = jnp.trunc(missing + jnp.copysign(tolerance, missing))
        spikes = jnp.concatenate([levels >= 1, levels <= -1], axis=-1)
        # An integer number of levels, which does not drift as a sum of thresholds does.
        return reference + levels, spikes.astype(dtype)

    return jax.lax.scan(step, jnp.zeros_like(start), precise)[1]


def _latency_step(
    op: str,
    values: Array,
    num_steps: int,
    form: str,
    threshold: float | None,
    time_constant: float | None,
) -> Int[Array, "batch inputs"]:
    """The step at which each input spikes, `num_steps` if it never does (int32)."""
    num_steps = _check_values(op, values, num_steps)
    check_choice(op, "form", form, ("linear", "log"))
    for name, given in (("threshold", threshold), ("time_constant", time_constant)):
        if given is None:
            continue
        _check_positive(op, name, given)
        if form == "linear":
            hint = 'Pass form="log", or set small values to 0'
            fail(f"{op}: `{name}` must be None with the form 'linear', got {given!r}. {hint}.")
    threshold = _THRESHOLD if threshold is None else threshold
    precise = upcast(values)
    if form == "linear":
        _warn_of_large(op, values, "spike in the first step", 4)
        spikes = precise > 0
        time = jnp.round((1 - jnp.clip(precise, 0, 1)) * (num_steps - 1))
    else:
        if time_constant is None:
            # In the middle of the last step, so that rounding cannot move it to another step.
            time_constant = (num_steps - 0.5) / math.log((1 + _LAST_STEP_EXCESS) / _LAST_STEP_EXCESS)
        spikes = precise > threshold
        # Without a spike, placeholder values keep the logarithm finite.
        charged = jnp.where(spikes, precise, 2 * threshold)
        # log1p distinguishes large values: value / (value - threshold) = 1 + threshold / (value - threshold).
        time = jnp.floor(time_constant * jnp.log1p(threshold / (charged - threshold)))
    spikes = spikes & (time < num_steps)
    return jnp.where(spikes, time, num_steps).astype(jnp.int32)


def _check_values(op: str, values: Unchecked, num_steps: int) -> int:
    """Check the values, and return the number of steps."""
    hint = "Flatten the inputs, for instance values.reshape(batch, -1)"
    check_shape(op, "values", values, (None, None), "batch, inputs", hint)
    check_float_array(op, "values", values)
    return check_integer(op, "num_steps", num_steps, 0)


def _warn_of_large(op: str, values: Array, effect: str, stacklevel: int) -> None:
    """Warn of values that are not between 0 and 1, such as pixels up to 255; traced ones cannot be checked."""
    known = concrete(values)
    if known is None or not np.any(known > _MOST_MEANT):
        return
    share, most = 100 * np.mean(known > 1), float(np.nanmax(known))
    warnings.warn(
        f"{op}: {share:.3g} % of `values` are above 1, up to {most:g}, and {effect}. Scale them to numbers from 0 to "
        "1, for instance pixels / 255.",
        RuntimeWarning,
        stacklevel=stacklevel,
    )


def _check_positive(op: str, argument: str, value: float) -> None:
    if not isinstance(value, int | float) or not 0 < value < math.inf:
        fail(f"{op}: `{argument}` must be positive and finite, got {value!r}. Leave it out for its default.")
