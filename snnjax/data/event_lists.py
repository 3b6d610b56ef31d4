"""From raw events to one list of ids per time step: binning, merging duplicates, fair lists with one capacity."""

import warnings
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jax.typing import DTypeLike

from snnjax._check import (
    check_array,
    check_integer,
    check_integers,
    check_within,
    fail,
    short_repr,
    type_words,
)
from snnjax._types import Unchecked, hash_of, id_dtype

# With at least so many events and steps, one step that holds this share of them means a mistaken unit as well: of times
# in seconds and a duration in microseconds, all are in the first one.
_MOST_IN_ONE_STEP = 0.99
_FEWEST_EVENTS = 100
_FEWEST_STEPS = 10
# 2**32 / golden ratio: unrelated hashes for consecutive steps.
_STEP_FACTOR = np.uint32(0x9E3779B1)
# The share of all events outside the duration from which on a warning is due.
MOST_OUTSIDE = 0.05
# The same for one recording: a mistaken unit, such as milliseconds for seconds, leaves about a thousandth inside.
_MOST_OUTSIDE_OF_ONE = 0.99
# A time on the border of two steps may be this many units in the last place below it: half a unit for its rounding, and
# one and a half for a product with a rounded length of a step, such as ``number * np.float32(0.001)``.
_UNITS = 2
# Even where these units are longer than a step, as in float16 with very many steps.
_MOST_OF_A_STEP = 0.5
# Events packed at once, but at least one sample, so that the temporary arrays take only some megabytes.
_PACK_BLOCK = 2**18


class EventLists(NamedTuple):
    """The distinct ids of each step, ascending, padded with `num_neurons`, and how many there were."""

    ids: np.ndarray  # [time, capacity] uint16, or int32 above 65,535 neurons
    counts: np.ndarray  # [time] int32, the true number, even beyond the capacity
    outside: int  # the number of events outside the duration, which are in no list


class RaggedLists(NamedTuple):
    """Lists without padding: the concatenated ids of all rows (step by step, sample by sample)."""

    ids: np.ndarray  # [events] uint16 or int32, ascending within a row
    counts: np.ndarray  # [samples, time] int32


def bin_events(
    times: Unchecked,
    ids: Unchecked,
    num_steps: int,
    num_neurons: int,
    *,
    capacity: int | None = None,
    duration: float | None = None,
) -> EventLists:
    """List the neurons with an event in each time step, ``step = floor(time * num_steps / duration)``.

    `times` [events] and `duration` have the same unit and count from the start of the sample; `times` need not be
    sorted. A time at most two units in the last place of its dtype below the border of two steps counts as on it, since
    binary numbers cannot hold most decimal fractions: in float32, 29 / 1000 is below 0.029. Integers are exact.

    Events before 0 and from `duration` on are left out; ``outside`` is their number, and a RuntimeWarning says so if
    they are more than 5 % of all. Another does where one of ten or more steps holds more than 99 % of 100 or more
    events, as with a mistaken unit. With None for `duration`, the steps divide the time from the first event to the
    last, which falls into the last step, and no event is left out. Several events of one id within a step count once.
    `capacity` None makes the lists as long as the fullest step; if a step has more distinct ids than `capacity`, those
    with the smallest hash of (id, step) are listed, which favours no neuron, and `counts` holds the true number.

    Errors: `times` and `ids` do not match, times are not finite or not below 2**63, ids are outside ``[0,
    num_neurons)``, or sizes are not positive.

    Example:
        >>> from snnjax.data import bin_events
        >>> lists = bin_events([0, 1, 1, 9], [3, 2, 2, 0], num_steps=2, num_neurons=4, duration=10)
        >>> lists.ids
        array([[2, 3],
               [0, 4]], dtype=uint16)
        >>> lists.counts
        array([2, 1], dtype=int32)
    """
    num_steps, num_neurons, capacity = check_sizes("bin_events", num_steps, num_neurons, capacity)
    ragged, outside, total = bin_ragged("bin_events", times, ids, num_steps, num_neurons, duration)
    if outside > MOST_OUTSIDE * total:
        what = (
            f"bin_events: {_percent(outside, total)} of the events are outside [0, {duration}) and left out."
        )
        _warn(what, 3)
    warn_of_one_step("bin_events", ragged.counts, total - outside, duration, 3)
    packed, counts = pack(ragged, num_neurons, capacity)
    return EventLists(packed[0], counts[0], outside)


def warn_of_outside(
    op: str, outside: np.ndarray, totals: np.ndarray, duration: float | None, most_outside: float
) -> None:
    """Warn if more than `most_outside` of all events are outside `duration`, or nearly all of one recording."""
    shares = outside / np.maximum(totals, 1)
    worst = int(np.argmax(shares)) if shares.size else 0
    if outside.sum() > most_outside * totals.sum() or shares.max(initial=0.0) > _MOST_OUTSIDE_OF_ONE:
        _warn(
            f"{op}: {_percent(outside.sum(), totals.sum())} of the events are outside [0, {duration}) and left out, "
            f"the largest part in recordings[{worst}] with {_percent(outside[worst], totals[worst])}.",
            5,
        )


def warn_of_one_step(
    op: str, counts: np.ndarray, events: int, duration: float | None, stacklevel: int
) -> None:
    """Warn if nearly all of many events are in one step, by the ``counts[samples, time]`` of distinct ones."""
    each = counts.sum(axis=0, dtype=np.int64)
    fullest, total = int(each.argmax()), int(each.sum())
    if events < _FEWEST_EVENTS or each.size < _FEWEST_STEPS or each[fullest] <= _MOST_IN_ONE_STEP * total:
        return
    what = f"{op}: {_percent(each[fullest], total)} of the events are in step {fullest} of {each.size}."
    hint = "Pass the duration in the unit of times"
    hint = "Pass the duration, or remove events far from all others" if duration is None else hint
    warnings.warn(f"{what} {hint}.", RuntimeWarning, stacklevel=stacklevel + 1)


def warn_of_unlisted(op: str, counts: np.ndarray, capacity: int) -> None:
    """Warn if lists do not hold all of their events: what is made of lists cannot count the others."""
    lost, total = np.maximum(counts - capacity, 0).sum(dtype=np.int64), counts.sum(dtype=np.int64)
    if lost > 0:
        what = f"{op}: {_percent(lost, total)} of the events are in no list, and are not in the counts of the result."
        warnings.warn(f"{what} Bin them with a larger capacity.", RuntimeWarning, stacklevel=3)


def _percent(part: int | np.integer, total: int | np.integer) -> str:
    return f"{100 * int(part) / int(total):.3g} %"


def _warn(what: str, stacklevel: int) -> None:
    hint = "Count times from the start of the recording, in the unit of duration, or pass a longer one."
    warnings.warn(f"{what} {hint}", RuntimeWarning, stacklevel=stacklevel)


def check_sizes(op: str, num_steps: int, num_neurons: int, capacity: object) -> tuple[int, int, int | None]:
    """Check the sizes of lists."""
    return (
        check_integer(op, "num_steps", num_steps, 1),
        check_integer(op, "num_neurons", num_neurons, 1),
        check_capacity(op, capacity),
    )


def check_capacity(op: str, capacity: Unchecked) -> int | None:
    """Check that `capacity` is None or a positive integer."""
    return None if capacity is None else check_integer(op, "capacity", capacity, 1)


class Binned(NamedTuple):
    """One sample in ragged lists."""

    lists: RaggedLists  # counts[1, time]
    outside: int  # the number of events outside the duration
    total: int  # the number of all events


def bin_ragged(
    op: str,
    times: Unchecked,
    ids: Unchecked,
    num_steps: int,
    num_neurons: int,
    duration: float | None,
    of: str = "",
) -> Binned:
    """Bin one sample's events; see `bin_events`. Sizes are checked before. Errors name the arguments with `of`."""
    times, ids, unit = _check_events(op, times, ids, num_neurons, duration, of)
    total = times.size
    if duration is not None:
        inside = (times >= 0) & (times < duration)
        times, ids, unit = times[inside], ids[inside], unit[inside]
    elif times.size:
        # A difference is as uncertain as the larger of the two.
        times, unit = times - times.min(), unit.max(keepdims=True)
        # The difference of two integers of 64 bits needs all of them.
        times = times.view(np.uint64) if times.dtype.kind == "i" else times
    span = max(times.max(initial=0), 1e-300) if duration is None else duration
    step = _steps(times, unit, span, num_steps)
    code = np.unique(step * num_neurons + ids)
    row = code // num_neurons
    counts = np.bincount(row, minlength=num_steps).astype(np.int32)
    lists = RaggedLists((code - row * num_neurons).astype(id_dtype(num_neurons)), counts[None])
    return Binned(lists, total - times.size, total)


def _steps(times: np.ndarray, unit: np.ndarray, span: Unchecked, num_steps: int) -> np.ndarray:
    """The step of each time in [0, span]; `unit` is what the last place of each, or of all, is worth."""
    is_exact = times.dtype.kind in "iu" and float(span).is_integer()
    # Integer division is exact if the product fits into 64 bits.
    if is_exact and int(span) * num_steps < 2**63:
        steps = (times * num_steps // int(span)).astype(np.int64)
    else:
        places = times / float(span) * num_steps
        # Quotient and product round as well, in float64.
        tolerance = _UNITS * (unit / float(span) * num_steps + _last_place(places, np.float64))
        steps = np.floor(places + np.minimum(tolerance, _MOST_OF_A_STEP)).astype(np.int64)
    # The last event without a given duration, and those just before its end, belong to the last step.
    return np.minimum(steps, num_steps - 1)


def _last_place(values: np.ndarray, dtype: DTypeLike) -> np.ndarray:
    """What the last place of each value is worth in a floating-point `dtype`, float64."""
    limits = np.finfo(dtype)
    place = np.ldexp(np.float64(limits.eps), np.frexp(values)[1] - 1)
    return np.maximum(place, limits.smallest_subnormal)


def concatenate(samples: Sequence[RaggedLists], num_steps: int, num_neurons: int) -> RaggedLists:
    """Concatenate the samples of several ragged lists."""
    ids = [np.zeros(0, id_dtype(num_neurons)), *(sample.ids for sample in samples)]
    counts = [np.zeros((0, num_steps), np.int32), *(sample.counts for sample in samples)]
    return RaggedLists(np.concatenate(ids), np.concatenate(counts))


def pack(lists: RaggedLists, num_neurons: int, capacity: int | None) -> tuple[np.ndarray, np.ndarray]:
    """Ragged lists padded to ``[samples, time, capacity]``, and counts; `capacity` None fits the fullest row."""
    if capacity is None:
        capacity = max(1, int(lists.counts.max(initial=0)))
    samples, num_steps = lists.counts.shape
    ids = np.full((samples, num_steps, capacity), num_neurons, id_dtype(num_neurons))
    ends = np.concatenate([[0], np.cumsum(lists.counts.sum(axis=1, dtype=np.int64))])
    first = 0
    while first < samples:
        last = int(np.searchsorted(ends, ends[first] + _PACK_BLOCK, "right")) - 1
        block = slice(first, max(last, first + 1))
        first = block.stop
        events = lists.ids[ends[block.start] : ends[block.stop]]
        _pack_rows(ids[block].reshape(-1, capacity), events, lists.counts[block].ravel(), num_steps)
    return ids, lists.counts


def _pack_rows(out: np.ndarray, ids: np.ndarray, counts: np.ndarray, num_steps: int) -> None:
    """Write the rows of `ids`, of lengths `counts`, into ``out[rows, capacity]``."""
    capacity = out.shape[1]
    row = np.repeat(np.arange(counts.size), counts)
    if counts.max(initial=0) > capacity:
        keep = _fair_choice(ids, row, counts, capacity, num_steps)
        ids, row, counts = ids[keep], row[keep], np.minimum(counts, capacity)
    start = np.cumsum(counts) - counts
    # Slot k of row r is element r * capacity + k of `out`, which is contiguous.
    place = np.arange(ids.size) + np.repeat(np.arange(counts.size) * capacity - start, counts)
    out.reshape(-1)[place] = ids


def _fair_choice(
    ids: np.ndarray, row: np.ndarray, counts: np.ndarray, capacity: int, num_steps: int
) -> np.ndarray:
    """True for the `capacity` events of each row with the smallest hash of id and step, or for all if they fit."""
    keep = np.ones(ids.size, bool)
    full = np.flatnonzero((counts > capacity)[row])
    code = ids[full].astype(np.uint32) + (row[full] % num_steps).astype(np.uint32) * _STEP_FACTOR
    order = np.lexsort((hash_of(code), row[full]))
    lengths = counts[counts > capacity]
    rank = np.arange(full.size) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    keep[full[order[rank >= capacity]]] = False
    return keep


def _as_array(op: str, argument: str, value: Unchecked) -> np.ndarray:
    """`value` as an array, or an error."""
    try:
        found = np.asanyarray(value)
    except ValueError:  # a list of arrays of several lengths
        actual = f"{type_words(value)} of several lengths"
        fail(f"{op}: `{argument}` must be one array, got {actual}. Bin one sample at a time.")
    check_array(op, argument, found)
    return np.asarray(found)


def _check_events(
    op: str, times: Unchecked, ids: Unchecked, num_neurons: int, duration: float | None, of: str
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Check `times` and `ids`, and convert them to int64 or float64, and int64, both [events].

    Also returned: what the last place of each time is worth, 0 for integers.
    """
    times, ids = (_as_array(op, *each) for each in ((f"times{of}", times), (f"ids{of}", ids)))
    if duration is not None:
        good = np.ndim(duration) == 0 and np.asarray(duration).dtype.kind in "iuf"
        good = good and bool(np.isfinite(duration)) and duration > 0
        if not good:
            actual = short_repr(duration)
            fail(f"{op}: `duration` must be a positive number, got {actual}. Pass it in the unit of times.")
    if times.ndim != 1 or times.shape != ids.shape:
        actual = f"shape {list(ids.shape)} for times of shape {list(times.shape)}"
        fail(f"{op}: `ids{of}` must have one id for each time, got {actual}. Pass two arrays [events].")
    if times.dtype.kind not in "iuf":
        fail(f"{op}: `times{of}` must hold numbers, got {times.dtype.name}. Cast them to integers or floats.")
    last = int(times.max(initial=0)) if times.dtype.kind == "u" else 0
    if last >= 2**63:
        hint = "Count them from the start of the recording"
        fail(f"{op}: `times{of}` must be below 2**63, got {last}. {hint}.")
    real, dtype = times.dtype.kind == "f", times.dtype
    times = times.astype(np.float64 if real else np.int64)
    if not np.isfinite(times).all():
        fail(f"{op}: `times{of}` must be finite, got NaN or infinity. Remove such events.")
    check_integers(op, f"ids{of}", ids)
    hint = "Number the neurons from 0" if ids.min(initial=0) < 0 else "Pass a larger num_neurons"
    check_within(op, f"ids{of}", ids, num_neurons - 1, hint)
    unit = _last_place(times, dtype) if real else np.broadcast_to(0.0, times.shape)
    return times, ids.astype(np.int64), unit
