"""Structured arrays of camera events, as from Tonic and other loaders: one record ``(t, x, y, p)`` per event."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from snnjax._check import check_array, check_integer, fail, type_words
from snnjax._types import Unchecked
from snnjax.data._files import CameraEvents, check_downsample, pooled
from snnjax.data.datasets import EventDataset, binned_dataset

# The fields, and what to do if one of their values is out of range.
_HINTS = {
    "t": "Count microseconds from the start of the sample",
    "x": "Pass the width of the camera",
    "y": "Pass the height of the camera",
    "p": "Map polarities to 0 and 1",
}


def camera_events(events: Unchecked, *, height: int, width: int) -> CameraEvents:
    """Convert a structured array with the fields t (microseconds), x (column), y (row) and p (polarity) to events.

    The fields may be in any order, among others, and have any integer dtype; p may be bool. `height` and `width` are
    those of the camera, for instance 34 and 34: Tonic's ``sensor_size`` is ``(width, height, 2)``.

    Errors: `events` is not a structured array [events], a field is missing, masked or not an integer, ``x`` is outside
    ``[0, width)``, ``y`` is outside ``[0, height)``, or ``p`` is neither 0 nor 1.

    Example:
        >>> import numpy as np
        >>> from snnjax.data import camera_events
        >>> fields = [("x", np.int16), ("y", np.int16), ("t", np.int64), ("p", bool)]
        >>> events = np.array([(3, 7, 250, True), (0, 1, 900, False)], fields)
        >>> camera_events(events, height=34, width=34).ids(34, 34)
        array([1397,   34])
    """
    return _convert("camera_events", "events", events, height, width)


def structured_events(
    recordings: Iterable[tuple[Any, int]],
    *,
    height: int,
    width: int,
    num_steps: int,
    num_classes: int,
    duration: float | None = None,
    downsample: int = 1,
    capacity: int | None = None,
) -> EventDataset:
    """Make a data set from pairs ``(structured array, label)``, such as a Tonic data set without a transform.

    Times are binned as in `bin_events`, with `duration` in microseconds. `downsample` merges squares of this many
    pixels per side; the ``2 * rows * columns`` inputs are numbered ``(polarity * rows + y) * columns + x``, with ``rows
    = ceil(height / downsample)`` and columns accordingly. `recordings` may be a generator.

    Errors: those of `camera_events`, labels are not integers in ``[0, num_classes)``, there is no recording, or sizes
    are not positive.

    Example:
        >>> import numpy as np
        >>> from snnjax.data import structured_events
        >>> fields = [("t", np.int64), ("x", np.int64), ("y", np.int64), ("p", np.int64)]
        >>> digits = [(np.array([(0, 1, 0, 1), (9, 0, 0, 0)], fields), 4)]
        >>> structured_events(digits, height=1, width=2, num_steps=2, num_classes=10, duration=10).ids
        array([[[3],
                [0]]], dtype=uint16)
    """
    op = "structured_events"
    rows, columns = (check_downsample(op, downsample, size) for size in (height, width))
    labels: list[Any] = []

    def samples() -> Iterator[tuple[np.ndarray, np.ndarray]]:
        for number, pair in enumerate(recordings):
            events, label = _as_pair(op, number, pair)
            converted = _convert(op, f"recordings[{number}]", events, height, width)
            converted = pooled(converted, downsample)
            labels.append(label)
            yield converted.times, converted.ids(rows, columns)

    # The labels are complete once the recordings have been read, one by one, which happens first.
    binning = num_steps, 2 * rows * columns, duration
    dataset = binned_dataset(op, samples(), labels, *binning, num_classes, capacity)
    if len(dataset) == 0:
        hint = "Pass pairs (structured array, label)"
        fail(f"structured_events: `recordings` must hold at least one recording, got none. {hint}.")
    return dataset


def _as_pair(op: str, number: int, pair: Unchecked) -> Sequence[Any]:
    """Check that `pair` is one; a structured array of two events would be unpacked into them."""
    is_sequence = isinstance(pair, tuple | list)
    if not is_sequence or len(pair) != 2:
        actual = f"{type_words(pair)} of {len(pair)}" if is_sequence else type_words(pair)
        hint = "Pass pairs, as zip(arrays, labels) makes them"
        fail(f"{op}: `recordings[{number}]` must be a pair (structured array, label), got {actual}. {hint}.")
    return pair


def _convert(op: str, argument: str, events: Unchecked, height: int, width: int) -> CameraEvents:
    height = check_integer(op, "height", height, 1)
    width = check_integer(op, "width", width, 1)
    names = getattr(getattr(events, "dtype", None), "names", None)
    hint = "Pass a NumPy array whose dtype has these fields, as from Tonic without a transform"
    expected = "be a structured array [events] with the fields t, x, y and p"
    if names is None or events.ndim != 1:
        actual = type_words(events) if names is None else f"shape {list(events.shape)}"
        fail(f"{op}: `{argument}` must {expected}, got {actual}. {hint}.")
    missing = [name for name in _HINTS if name not in names]
    if missing:
        fail(f"{op}: `{argument}` must {expected}, got one without {' and '.join(missing)}. {hint}.")
    sizes = {"t": 2**63, "x": width, "y": height, "p": 2}
    for name, size in sizes.items():
        column = events[name]
        check_array(op, f"{argument}[{name!r}]", column)
        if column.dtype.kind not in ("iub" if name == "p" else "iu"):
            hint = "Convert it to whole microseconds" if name == "t" else "Cast the field"
            fail(f"{op}: `{argument}` must have integers as {name}, got {column.dtype.name}. {hint}.")
        # A negative time means an event before the start of the sample.
        wrong = column[(column >= size) if name == "t" else (column < 0) | (column >= size)]
        if wrong.size:
            hint = "Count it from 0" if name in "xy" and wrong[0] < 0 else _HINTS[name]
            fail(f"{op}: `{argument}` must have {name} in [0, {size}), got {wrong[0]}. {hint}.")
    return CameraEvents(*(events[name].astype(np.int64) for name in sizes))
