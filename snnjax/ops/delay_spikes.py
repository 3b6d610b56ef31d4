"""`delay_spikes`: axonal delays, one learnable and fractional delay per neuron."""

import functools
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax.typing import DTypeLike
from jaxtyping import Array, ArrayLike, Float, Integer, Num, PyTree

from snnjax._arguments import explained
from snnjax._batching import SHARED
from snnjax._check import as_lengths, check_float, check_integer, check_real_array, check_shape, fail
from snnjax._dispatch import Kernel, Target, evaluate
from snnjax._sharding import gathered, vary_alike
from snnjax._sparse_spikes import SparseSpikes, check_spikes
from snnjax._types import Unchecked, accumulation_dtype, upcast
from snnjax.ops._kernel_operands import call_by_records, dtype_obstacle
from snnjax.ops._tables.delay_spikes import (
    BackwardOperands,
    BackwardResults,
    DelayNumbers,
    Operands,
    Results,
)

_OP = "delay_spikes"


@explained
def delay_spikes(
    spikes: SparseSpikes | Num[Array, "time batch neurons"],
    delays: Float[ArrayLike, "*neurons"],
    pending: Num[Array, "rows batch neurons"] | None = None,
    *,
    max_delay: int,
    lengths: Integer[ArrayLike, " batch"] | None = None,
    implementation: str | None = None,
) -> tuple[Float[Array, "time batch neurons"], Float[Array, "rows batch neurons"]]:
    """Delay the spikes of neuron n by ``delays[n]`` steps, split between two steps if that is not an integer.

    With ``k = floor(delays[n])`` and ``f = delays[n] - k``,
    ``delayed[t, b, n] = (1 - f) spikes[t - k, b, n] + f spikes[t - k - 1, b, n]``, where `pending` holds the spikes
    before the first step. A term with factor 0 adds nothing whatever the spike, so an integer delay (round with
    ``jnp.round``) moves values unchanged.

    The derivative is exact for `spikes` and `pending`; for `delays` it is that of the split,
    ``d delayed[t] / d delays = spikes[t - k - 1] - spikes[t - k]``; at an integer delay this is the right-hand
    derivative. The cost of the kernel, forward and backward, grows with the number of spikes.

    Args:
        spikes: spikes of any numeric dtype. Lists become an array, because splitting an entry would take two.
        delays: delays in steps, a scalar or ``[neurons]``. Those outside ``[0, max_delay]`` are clipped and have no
            gradient; NaN counts as 0.
        pending: spikes of the last ``max_delay + 1`` steps before these, oldest first, ``[max_delay + 1, batch,
            neurons]``, from an earlier call; None if there were none (in a scan, pass zeros).
        max_delay: the longest possible delay; it determines the shape of `pending`.
        lengths: number of steps of each sequence. After its end `delayed` is 0, and `pending` holds the last steps
            before it, so running in pieces equals running the whole.
        implementation: None chooses automatically; "reference" forces the jnp reference; "cpu" forces the compiled
            kernel or raises; "composed" is plain jnp with forward mode and second-order derivatives.

    Returns:
        `delayed` and the new `pending`, in the dtype of the spikes (or of the delays if spikes are integers); sums are
        computed in float32 (float64 for float64).

    Raises:
        ValueError: if shapes do not match, delays are not floating-point, lengths are not integers, `max_delay` is
            negative, or the implementation is unknown or unavailable.

    Example:
        >>> import jax.numpy as jnp
        >>> from snnjax import delay_spikes
        >>> spikes = jnp.zeros((4, 1, 2)).at[0].set(1.0)
        >>> delayed, pending = delay_spikes(spikes, jnp.array([1.0, 2.25]), max_delay=3)
        >>> delayed[:, 0].T
        Array([[0.  , 1.  , 0.  , 0.  ],
               [0.  , 0.  , 0.75, 0.25]], dtype=float32)

    Reference:
        Hammouamri et al. 2023, arXiv:2306.17670 (learned delays, split by a Gaussian of decreasing width).
    """
    spikes, delays, pending, lengths = gathered((spikes, delays, pending, lengths))
    max_delay = check_integer(_OP, "max_delay", max_delay, 0)
    rows, steps = _spikes_and_delays(spikes, delays, max_delay)
    num_steps, batch, neurons = rows.shape
    before = (max_delay + 1, batch, neurons)
    if pending is None:  # no rows stand for rows of zeros, which then need not be read
        pending = jnp.zeros((0, batch, neurons), rows.dtype)
    else:
        hint = "Pass that of the previous call, or None"
        check_shape(_OP, "pending", pending, before, "max_delay + 1, batch, neurons", hint)
    ends = None if lengths is None else _ends(lengths, num_steps, batch)
    # Padding, even NaN, affects no gradient.
    rows = _zero_after(ends, rows)
    operands = vary_alike(Operands(rows, pending.astype(rows.dtype), steps, ends))
    is_composed = implementation == "composed"
    results: PyTree = (
        delayed(operands, max_delay) if is_composed else _delay_spikes(operands, max_delay, implementation)
    )
    return results.delayed, results.left


def _spikes_and_delays(spikes: Unchecked, delays: Unchecked, max_delay: int) -> tuple[Array, Array]:
    """The spikes as a float array, and the clipped delays ``[neurons]`` in the accumulation dtype."""
    check_float(_OP, "delays", delays)
    delays = jnp.asarray(delays)
    if isinstance(spikes, SparseSpikes):
        check_spikes(_OP, "spikes", spikes)
    else:
        check_real_array(_OP, "spikes", spikes)
    hint = "Add the missing axes, for instance spikes[:, None]"
    check_shape(_OP, "spikes", spikes, (None,) * 3, "time, batch, neurons", hint)
    neurons = spikes.shape[-1]
    if delays.shape not in ((), (neurons,)):
        expected, actual = f"be a scalar or have shape [neurons] = [{neurons}]", list(delays.shape)
        fail(f"delay_spikes: `delays` must {expected}, got {actual}. Pass one delay, or one per neuron.")
    rows = spikes.to_dense() if isinstance(spikes, SparseSpikes) else spikes
    if not jnp.issubdtype(rows.dtype, jnp.floating):
        rows = rows.astype(delays.dtype)
    return rows, bounded(delays, max_delay, neurons, accumulation_dtype(rows.dtype))


def bounded(delays: Array, max_delay: int, neurons: int, dtype: DTypeLike) -> Array:
    """Delays ``[neurons]`` clipped to their bounds; those outside have no gradient."""
    delays = delays.astype(dtype)  # in which the bounds are exact
    # The bounds are included: a delay that starts at 0 can learn.
    inside = (delays >= 0) & (delays <= max_delay)
    delays = jnp.where(inside, delays, jnp.where(delays > max_delay, max_delay, 0))
    return jnp.broadcast_to(delays, (neurons,))


def _ends(lengths: Unchecked, num_steps: int, batch: int) -> Array:
    """The step after the last one of each sequence, int32 ``[batch]``."""
    return as_lengths(_OP, lengths, num_steps, batch)


def _shift(rows: Array, steps: Array, most: int, *, later: bool) -> Array:
    """``out[r] = rows[r + most - steps]`` for `later`, else ``rows[r + steps]``, with `most` rows fewer than `rows`.

    `most` is ``2^n - 1``; `steps` are at most that and have the rank of `rows`. Rows move by one binary digit of
    `steps` after another: n selects of whole rows, which are fast on every platform, instead of a gather, which is slow
    on most.
    """
    digit = (most + 1) // 2
    while digit > 0:
        ahead, behind = rows[digit:], rows[:-digit]
        moves = (steps // digit) % 2 == 1
        rows = jnp.where(moves, behind, ahead) if later else jnp.where(moves, ahead, behind)
        digit //= 2
    return rows


def _reach(most: int) -> int:
    """The smallest ``2^n - 1`` that is at least `most`."""
    return (1 << most.bit_length()) - 1


def _pad(rows: Array, before: int, behind: int) -> Array:
    """Pad with rows of zeros on both sides."""
    return jnp.pad(rows, ((before, behind), (0, 0), (0, 0)))


def _split(delays: Array) -> tuple[Array, Array, Array]:
    """The integer parts of delays, int32, and the fractions that arrive then and a step later; ``[1, 1, neurons]``."""
    delays = delays[None, None, :]
    whole_steps = jnp.floor(delays)
    fraction = delays - whole_steps
    return whole_steps.astype(jnp.int32), 1 - fraction, fraction


def share_of(share: Array, rows: Array) -> Array:
    """``share * rows``, in which a share of 0 yields 0 whatever the row holds."""
    return jnp.where((share == 0) & ~jnp.isfinite(rows), 0, share * rows)  # differentiable at a share of 0


def _zero_after(ends: Array | None, rows: Array) -> Array:
    """`rows` ``[time, ...]``, 0 after the end of a sequence."""
    if ends is None:
        return rows
    going = jnp.arange(rows.shape[0], dtype=jnp.int32)[:, None, None] < ends[None, :, None]
    return jnp.where(going, rows, 0)


def delayed(operands: Operands, max_delay: int) -> Results:
    """The jnp reference: the delayed and the new pending spikes."""
    results = arrivals(operands, max_delay)
    return results._replace(delayed=results.delayed.astype(results.left.dtype))


def arrivals(operands: Operands, max_delay: int) -> Results:
    """The same, with the delayed spikes in the accumulation dtype; None as ends: all sequences are complete."""
    spikes, pending, ends = operands.spikes, operands.pending, operands.ends
    num_steps, before = spikes.shape[0], max_delay + 1
    rows = jnp.concatenate([_pad(pending, before - pending.shape[0], 0), spikes])  # starting at step -before
    whole_steps, now, next_step = _split(operands.delays)
    reach = _reach(max_delay)
    # arriving[t + 1] is what neurons sent `whole_steps` before t.
    arriving = upcast(_shift(_pad(rows, reach + 1 - before, 0), whole_steps, reach, later=True))
    arrived = _zero_after(ends, now * arriving[1:] + share_of(next_step, arriving[:-1]))
    if ends is None:
        left = rows[num_steps:]
    else:
        reach = _reach(num_steps)
        left = _shift(_pad(rows, 0, reach - num_steps), ends[None, :, None], reach, later=False)
    return Results(arrived, left)


def delayed_backward(arguments: BackwardOperands, max_delay: int) -> BackwardResults:
    """The cotangents of spikes, pending and delays."""
    operands, g, g_left = arguments.operands, arguments.g.delayed, arguments.g.left
    spikes, pending, ends = operands.spikes, operands.pending, operands.ends
    num_steps, before = spikes.shape[0], max_delay + 1
    missing = before - pending.shape[0]
    whole_steps, now, next_step = _split(operands.delays)
    reach = _reach(max_delay)
    # The row of each step starting at -before, and one more, is the cotangent `whole_steps` later.
    g_arriving = _shift(
        _pad(_zero_after(ends, upcast(g)), before, reach + 1), whole_steps, reach, later=False
    )
    soon, later = g_arriving[:-1], g_arriving[1:]
    g_rows = now * soon + share_of(next_step, later)
    if ends is None:
        g_rows = g_rows + _pad(upcast(g_left), num_steps, 0)
    else:
        reach = _reach(num_steps)
        padded = _pad(upcast(g_left), reach, num_steps)
        g_rows = g_rows + _shift(padded, ends[None, :, None], reach, later=True)
    rows = upcast(jnp.concatenate([_pad(pending, missing, 0), spikes]))
    g_delays = jnp.sum(jnp.where(rows == 0, 0, rows * (later - soon)), axis=(0, 1))
    g_rows = g_rows[missing:].astype(spikes.dtype)
    return BackwardResults(g_rows[pending.shape[0] :], g_rows[: pending.shape[0]], g_delays)


def _as_kernel_reads(operands: Operands) -> Operands:
    """The operands of the kernel, which needs the length of every sequence."""
    if operands.ends is not None:
        return operands
    spikes = operands.spikes
    return operands._replace(ends=jnp.full((1, spikes.shape[2]), spikes.shape[1], jnp.int32))


def _call(operands: Operands, max_delay: int, results: Sequence[jax.ShapeDtypeStruct]) -> list[Array]:
    read = _as_kernel_reads(operands)
    return call_by_records("snnjax_delay_spikes", read, Results(*results), [DelayNumbers(max_delay)])


def _call_backward(
    arguments: BackwardOperands, max_delay: int, results: Sequence[jax.ShapeDtypeStruct]
) -> list[Array]:
    read = arguments._replace(operands=_as_kernel_reads(arguments.operands))
    shapes = BackwardResults(*results)
    return call_by_records("snnjax_delay_spikes_backward", read, shapes, [DelayNumbers(max_delay)])


_FORWARD = Target(
    "snnjax_delay_spikes",
    "delay_spikes",
    delayed,
    {"cpu": Kernel(_call, lambda shapes, _: dtype_obstacle("spikes", shapes.spikes))},
)
_BACKWARD = Target(
    "snnjax_delay_spikes_backward",
    "delay_spikes",
    delayed_backward,
    {"cpu": Kernel(_call_backward, lambda shapes, _: dtype_obstacle("spikes", shapes.operands.spikes))},
)


def _axes(ends: Array | None) -> Operands:
    """The batch axis of each operand."""
    return Operands(spikes=1, pending=1, delays=SHARED, ends=None if ends is None else 0)


@functools.partial(jax.custom_vjp, nondiff_argnums=(1, 2))
def _delay_spikes(operands: Operands, max_delay: int, implementation: str | None) -> Results:
    axes, result_axes = _axes(operands.ends), Results(delayed=1, left=1)
    return evaluate(_FORWARD, operands, axes, result_axes, max_delay, implementation=implementation)


def _fwd(operands: Operands, max_delay: int, implementation: str | None) -> tuple[Results, Operands]:
    results: Any = _delay_spikes(operands, max_delay, implementation)
    return results, operands


def _bwd(max_delay: int, implementation: str | None, operands: Operands, g: Results) -> tuple[Operands]:
    cotangents = evaluate(
        _BACKWARD,
        BackwardOperands(operands, g),
        BackwardOperands(_axes(operands.ends), Results(delayed=1, left=1)),
        BackwardResults(g_spikes=1, g_pending=1, g_delays=SHARED),
        max_delay,
        implementation=implementation,
    )
    return (Operands(cotangents.g_spikes, cotangents.g_pending, cotangents.g_delays, None),)


_delay_spikes.defvjp(_fwd, _bwd)
