"""SPAR: shoulder exercises recorded by a smartwatch, read from a file of the Python package `seglearn`."""

import importlib.util
import io
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from snnjax._check import check_integer, fail
from snnjax.data import _pickled_arrays
from snnjax.data._files import PathLike, read_bytes, refuse
from snnjax.data.datasets import SeriesDataset

_FILE = "watch_dataset.npy"
_NUM_CLASSES, _NUM_CHANNELS = 7, 6
_HINT = f"Install the package seglearn, without its dependencies if you like, or pass the path of its {_FILE}"


def load_spar(
    path: PathLike | None = None,
    *,
    subjects: Iterable[int] | None = None,
    window: int = 200,
    hop: int = 100,
) -> SeriesDataset:
    """Load seven shoulder exercises of ten people, as windows of measurements by a smartwatch 50 times per second.

    The six channels are accelerations (in g) and angular velocities (in rad/s) along x, y and z; the classes are
    pendulum, abduction, forward elevation, internal and external rotation, trapezius extension and upright row. A
    window begins every `hop` steps of each of the 140 recordings, and is within one recording.

    Args:
        path: path of the file; None finds that of the installed package `seglearn`, whose code is not run.
        subjects: numbers of the people, 1 to 10; None means all of them.
        window: steps per sample; 200 are 4 s.
        hop: steps between the starts of two windows.

    Errors: the file is missing or holds anything else, or does not have the subjects.

    Example:
        >>> import pathlib, tempfile
        >>> import numpy as np
        >>> from snnjax.data import load_spar
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "watch_dataset.npy"  # as if seglearn had installed it
        >>> content = {
        ...     "X": [np.zeros((900, 6)), np.ones((950, 6))],
        ...     "y": np.array([2, 5]),
        ...     "subject": np.array([1, 2]),
        ... }
        >>> np.save(path, content, allow_pickle=True)
        >>> load_spar(path, subjects=[2]).series.shape
        (8, 200, 6)

    Source: Burns et al. 2018, doi:10.1088/1361-6579/aacfd9.
    """
    op = "load_spar"
    window = check_integer(op, "window", window, 1)
    hop = check_integer(op, "hop", hop, 1)
    recordings, labels, people = _read(op, _installed() if path is None else Path(path))
    chosen = np.unique(people) if subjects is None else np.array(sorted(subjects))
    unknown = np.setdiff1d(chosen, people)
    if unknown.size > 0:
        known = np.unique(people).tolist()
        fail(f"load_spar: `subjects` must be among {known}, got {unknown.tolist()}. Omit the others.")
    samples, classes = [np.zeros((0, window, _NUM_CHANNELS))], [np.zeros(0)]
    for recording, label, person in zip(recordings, labels, people, strict=True):
        if person in chosen and len(recording) >= window:
            windows = np.lib.stride_tricks.sliding_window_view(recording, window, axis=0)[::hop]
            samples.append(windows.swapaxes(1, 2))
            classes.append(np.full(len(windows), label))
    series = np.concatenate(samples).astype(np.float32)
    labels = np.concatenate(classes).astype(np.int32)
    return SeriesDataset(series, np.full(len(series), window, np.int32), labels, _NUM_CLASSES)


def _installed() -> Path:
    """The file of the installed package, found without importing it."""
    found = importlib.util.find_spec("seglearn")
    if found is None or found.origin is None:
        fail(f"load_spar: `path` must be given without the package seglearn, got None. {_HINT}.")
    return Path(found.origin).parent / "data" / _FILE


def _read(op: str, path: Path) -> tuple[list[np.ndarray], np.ndarray, np.ndarray]:
    """Recordings ``[steps, channels]``, with their labels and subjects."""
    stream = io.BytesIO(read_bytes(op, path, _HINT))
    try:
        np.lib.format.read_magic(stream)
        np.lib.format.read_array_header_1_0(stream)
        (content,) = _pickled_arrays.load(stream.read()).objects()
        rows = content["X"] if isinstance(content["X"], list) else content["X"].objects()
        recordings = [each.numbers().astype(np.float64) for each in rows]
        labels, people = (content[name].numbers().astype(np.int64) for name in ("y", "subject"))
    except Exception as error:  # a damaged pickle may raise anything
        refuse(op, path, "hold the recordings of SPAR", f"{error or type(error).__name__}")
    fits = all(each.ndim == 2 and each.shape[1] == _NUM_CHANNELS for each in recordings)
    same = len(recordings) == labels.size == people.size and labels.ndim == people.ndim == 1
    if not fits or not same or not np.isin(labels, range(_NUM_CLASSES)).all():
        refuse(op, path, "hold recordings of six channels, with a label and a subject each", "others")
    return recordings, labels, people
