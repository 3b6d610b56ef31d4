"""DVS-Gesture: eleven hand gestures in front of a 128 x 128 event camera.

A recording `userNN_light.aedat` holds one gesture after another; `userNN_light_labels.csv` lists them in lines
``class,startTime_usec,endTime_usec`` with classes 1 to 11. The files `trials_to_train.txt` and `trials_to_test.txt`
name the recordings of each split.

Source: Amir et al. 2017, "A Low Power, Fully Event-Based Gesture Recognition System", doi:10.1109/CVPR.2017.781.
"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from snnjax._check import check_choice
from snnjax.data._files import CameraEvents, PathLike, check_downsample, pooled, read_bytes, refuse
from snnjax.data.aedat import read_aedat
from snnjax.data.datasets import EventDataset, binned_dataset

_SIZE, _NUM_CLASSES = 128, 11
_COLUMNS = "class,startTime_usec,endTime_usec"
_TRIALS = {"train": "trials_to_train.txt", "test": "trials_to_test.txt"}
_HINT = "Download DVS-Gesture and unpack DvsGesture.tar.gz"
_MAX_TIME = 2**62  # microseconds; the times of a file have 31 + 31 bits


def read_gesture_labels(path: PathLike) -> np.ndarray:
    r"""Read a `_labels.csv` file: class from 0 to 10, start and end in microseconds, int64 [gestures, 3].

    Errors: the file is missing or empty, has another first line, or a line is not three integers with a class from 1 to
    11 and a start before the end.

    Example:
        >>> import pathlib, tempfile
        >>> from snnjax.data import read_gesture_labels
        >>> path = pathlib.Path(tempfile.mkdtemp(), "user01_led_labels.csv")
        >>> _ = path.write_text("class,startTime_usec,endTime_usec\n2,1000,6000\n")
        >>> read_gesture_labels(path)
        array([[   1, 1000, 6000]])
    """
    op = "read_gesture_labels"
    text = read_bytes(op, path, _HINT).decode("ascii", errors="replace")
    first, *lines = text.rstrip().splitlines() or [""]
    if first.replace(" ", "") != _COLUMNS:
        refuse(op, path, f"begin with the line {_COLUMNS!r}", ascii(first[: len(_COLUMNS)]))
    gestures = [np.zeros((0, 3), np.int64)]
    for number, line in enumerate(lines, start=2):
        cells = [cell.strip() for cell in line.split(",")]
        # Only ASCII digits are accepted, and at most 19 of them, because 20 would not fit into 64 bits.
        values = [int(cell) for cell in cells if cell.isdigit() and len(cell) < 20]
        good = len(cells) == len(values) == 3 and 1 <= values[0] <= _NUM_CLASSES
        if not (good and values[1] < values[2] < _MAX_TIME):
            expected = f"have lines class (1 to {_NUM_CLASSES}), start, later end"
            refuse(op, path, expected, f"{line!a} in line {number}")
        gestures.append(np.array([[values[0] - 1, *values[1:]]], np.int64))
    return np.concatenate(gestures)


def load_dvs_gesture(
    root: PathLike,
    split: str = "train",
    *,
    num_steps: int = 60,
    duration: float = 1_500_000,
    downsample: int = 1,
    capacity: int | None = None,
) -> EventDataset:
    """Load DVS-Gesture from `root`, the unpacked folder of `.aedat`, `_labels.csv` and `trials_to_*.txt` files.

    Each gesture is one sample; its first `duration` microseconds become `num_steps` steps, binned as in `bin_events`.
    `downsample` merges squares of this many pixels per side; with ``size = ceil(128 / downsample)`` the ``2 * size *
    size`` inputs are numbered ``(polarity * size + y) * size + x``; for convolutions, `EventDataset.channels_last`
    renumbers them.

    Errors: the split is unknown, files are missing, and those of `read_aedat` and `read_gesture_labels`.

    Example:
        >>> from snnjax.data import load_dvs_gesture
        >>> load_dvs_gesture("nowhere")
        Traceback (most recent call last):
        ...
        ValueError: load_dvs_gesture: `path` must be a readable file, got 'nowhere/trials_to_train.txt' \
(No such file or directory). Download DVS-Gesture and unpack DvsGesture.tar.gz.
    """
    check_choice("load_dvs_gesture", "split", split, tuple(_TRIALS))
    size = check_downsample("load_dvs_gesture", downsample, _SIZE)
    trials = Path(root, _TRIALS[split])
    names = read_bytes("load_dvs_gesture", trials, _HINT).decode("ascii", errors="replace").split()
    if not names:
        refuse("load_dvs_gesture", trials, "name recordings", "none")
    labels: list[int] = []

    def recordings() -> Iterator[tuple[np.ndarray, np.ndarray]]:
        for name in names:
            for label, events in _gestures(Path(root, name)):
                labels.append(label)
                events = pooled(events, downsample)
                yield events.times, events.ids(size, size)

    # The labels are complete once the recordings have been read, which happens first.
    # A gesture lasts longer than `duration` as a rule, so its later events are no surprise; if all are left out, it is.
    binning = num_steps, 2 * size * size, duration
    return binned_dataset(
        "load_dvs_gesture", recordings(), labels, *binning, _NUM_CLASSES, capacity, most_outside=0.99
    )


def _gestures(path: Path) -> Iterator[tuple[int, CameraEvents]]:
    """The class and the events of each gesture in a recording, with times relative to its start."""
    labels = read_gesture_labels(path.with_name(path.stem + "_labels.csv"))
    events = read_aedat(path, _SIZE)
    for label, start, end in labels.tolist():
        inside = (events.times >= start) & (events.times < end)
        times, *others = (column[inside] for column in events)
        yield label, CameraEvents(times - start, *others)
