"""N-MNIST: digits recorded by a moving event camera, one `.bin` file of 40-bit events per sample.

An event has 5 bytes: x, y, and 24 bits, most significant first, of which the first is the polarity and the other
23 the time in microseconds. An entry with y = 240 is not an event but a clock overflow: the times of all later events
increase by 2**13 us.

Source: Orchard, Jayawant, Cohen, Thakor 2015, doi:10.3389/fnins.2015.00437, and the reader `Read_Ndataset.m`
published with the data.
"""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

from snnjax._check import check_choice, check_integer, check_within, plural
from snnjax.data._array_file import read_arrays
from snnjax.data._files import CameraEvents, PathLike, list_folder, read_bytes, refuse
from snnjax.data.datasets import EventDataset, binned_dataset

_EVENT_BYTES = 5
_SIZE = 34  # pixels in each direction
_OVERFLOW_ROW, _OVERFLOW_TIME = 240, 2**13
_DURATION = 300_000  # microseconds: three saccades of 100 ms
_FOLDERS = {"train": "Train", "test": "Test"}
_HINT = "Download N-MNIST from doi.org/10.17632/468j46mzdv.1, and unpack Train.zip and Test.zip"
NUM_FOLDS = 10


def read_nmnist(path: PathLike) -> CameraEvents:
    """Read the events of an N-MNIST `.bin` file.

    Errors: the file is missing, empty, truncated within an event, or has pixels beyond 34 x 34.

    Example:
        >>> import pathlib, tempfile
        >>> from snnjax.data import read_nmnist
        >>> path = pathlib.Path(tempfile.mkdtemp(), "00001.bin")
        >>> _ = path.write_bytes(bytes([3, 7, 0x80, 0x01, 0x00]))
        >>> read_nmnist(path)
        CameraEvents(times=array([256]), x=array([3]), y=array([7]), polarity=array([1]))
    """
    content = read_bytes("read_nmnist", path, _HINT)
    spare = len(content) % _EVENT_BYTES
    if spare:
        actual = f"{plural(len(content), 'byte')}, {spare} of them left at offset {len(content) - spare},"
        refuse("read_nmnist", path, "hold events of 5 bytes each", actual)
    columns = np.frombuffer(content, np.uint8).reshape(-1, _EVENT_BYTES).T.astype(np.int64)
    x, y, high, middle, low = columns
    overflow = y == _OVERFLOW_ROW
    times = ((high & 0x7F) << 16) + (middle << 8) + low + _OVERFLOW_TIME * np.cumsum(overflow)
    wrong = np.flatnonzero(((x >= _SIZE) | (y >= _SIZE)) & ~overflow)
    if wrong.size:
        first = wrong[0]
        actual = f"({x[first]}, {y[first]}) at offset {first * _EVENT_BYTES}"
        refuse("read_nmnist", path, f"hold pixels (x, y) below ({_SIZE}, {_SIZE})", actual)
    real = ~overflow
    return CameraEvents(times[real], x[real], y[real], (high >> 7)[real])


def load_nmnist(
    root: PathLike,
    split: str = "train",
    *,
    fold: int | None = None,
    num_steps: int = 30,
    capacity: int | None = None,
) -> EventDataset:
    """Load unpacked N-MNIST, ``root/Train/<digit>/*.bin`` and ``root/Test/<digit>/*.bin``, or one array file.

    The 300 ms become `num_steps` steps, binned as in `bin_events`; later events are dropped. The 2312 inputs are
    numbered ``(polarity * 34 + y) * 34 + x``; for convolutions, `EventDataset.channels_last` renumbers them.

    An array file is an `.npz` of these integer arrays: ``x``, ``y``, ``polarity`` and ``time_us`` of all events in a
    row, of which those of recording i are ``offsets[i]:offsets[i + 1]``; and ``label`` and ``is_test`` (boolean), one
    value per recording.

    Args:
        root: the folder or the array file.
        split: "train" or "test".
        fold: None for the published split; 0 to 9 for cross-validation: the test part is a tenth of all recordings,
            of each digit and of both published parts alike, and the training part is the rest.
        num_steps: the number of time steps.
        capacity: slots of the lists; None fits the fullest step.

    Errors: the split or the fold is unknown, files are missing or damaged, and those of `read_nmnist`.

    Example:
        >>> import pathlib, tempfile
        >>> from snnjax.data import load_nmnist
        >>> root = pathlib.Path(tempfile.mkdtemp())
        >>> for digit in range(10):
        ...     (root / "Test" / str(digit)).mkdir(parents=True)
        ...     _ = (root / "Test" / str(digit) / "00001.bin").write_bytes(bytes([3, 7, 0x80, 0x01, 0x00]))
        >>> load_nmnist(root, "test").labels.tolist()
        [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]
    """
    op = "load_nmnist"
    check_choice(op, "split", split, tuple(_FOLDERS))
    if fold is not None:
        fold = check_integer(op, "fold", fold, 0)
        check_within(op, "fold", np.array([fold]), NUM_FOLDS - 1, "Number the folds from 0")
    wanted = tuple(_FOLDERS) if fold is not None else (split,)
    read = _from_folders if Path(root).is_dir() else _from_arrays
    recordings, labels = read(op, root, wanted)
    if fold is not None:
        # Every tenth recording of each digit, in the order of the parts and of the files.
        chosen = np.empty(len(labels), bool)
        chosen[np.argsort(labels, kind="stable")] = np.arange(len(labels)) % NUM_FOLDS == fold
        kept = np.flatnonzero(chosen == (split == "test"))
        recordings, labels = [recordings[n] for n in kept], labels[kept]
    events = (each() for each in recordings)
    pairs = ((each.times, each.ids(_SIZE, _SIZE)) for each in events)
    binning = num_steps, 2 * _SIZE * _SIZE, _DURATION
    return binned_dataset(op, pairs, labels, *binning, 10, capacity)


# Recordings are read only when they are binned: 70,000 do not fit into memory at once.
_Recordings = list[Callable[[], CameraEvents]]


def _from_folders(op: str, root: PathLike, splits: tuple[str, ...]) -> tuple[_Recordings, np.ndarray]:
    files, labels = [], []
    for split in splits:
        for digit in range(10):
            found = list_folder(op, root, Path(_FOLDERS[split], str(digit)), "*.bin", _HINT)
            files += found
            labels += [digit] * len(found)
    return [partial(read_nmnist, file) for file in files], np.array(labels, np.int32)


def _from_arrays(op: str, path: PathLike, splits: tuple[str, ...]) -> tuple[_Recordings, np.ndarray]:
    columns = ("time_us", "x", "y", "polarity")
    fields = dict.fromkeys(columns, "iu") | {"label": "iu", "is_test": "biu"}
    arrays = read_arrays(op, path, fields, ("label", "is_test"), _HINT)
    for name, size in (("x", _SIZE), ("y", _SIZE), ("polarity", 2), ("label", 10), ("is_test", 2)):
        values = arrays[name]
        if values.size and (values.min() < 0 or values.max() >= size):
            refuse(op, path, f"have {name} from 0 to {size - 1}", f"{values.min()} to {values.max()}")
    offsets, parts = arrays["offsets"], [name == "test" for name in splits]
    chosen = np.flatnonzero(np.isin(arrays["is_test"].astype(bool), parts))

    def recording(number: int) -> CameraEvents:
        events = slice(offsets[number], offsets[number + 1])
        times, x, y, polarity = (arrays[name][events].astype(np.int64) for name in columns)
        return CameraEvents(times, x, y, polarity)

    return [partial(recording, number) for number in chosen.tolist()], arrays["label"][chosen].astype(
        np.int32
    )
