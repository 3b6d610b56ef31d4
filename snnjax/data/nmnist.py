"""N-MNIST: digits recorded by a moving event camera, one `.bin` file of 40-bit events per sample.

An event has 5 bytes: x, y, and 24 bits, most significant first, of which the first is the polarity and the other
23 the time in microseconds. An entry with y = 240 is not an event but a clock overflow: the times of all later events
increase by 2**13 us.

Source: Orchard, Jayawant, Cohen, Thakor 2015, doi:10.3389/fnins.2015.00437, and the reader `Read_Ndataset.m`
published with the data.
"""

from pathlib import Path

import numpy as np

from snnjax._check import check_choice, plural
from snnjax.data._files import CameraEvents, PathLike, list_folder, read_bytes, refuse
from snnjax.data.datasets import EventDataset, binned_dataset

_EVENT_BYTES = 5
_SIZE = 34  # pixels in each direction
_OVERFLOW_ROW, _OVERFLOW_TIME = 240, 2**13
_DURATION = 300_000  # microseconds: three saccades of 100 ms
_FOLDERS = {"train": "Train", "test": "Test"}
_HINT = "Download N-MNIST and unpack Train.zip and Test.zip"


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
    root: PathLike, split: str = "train", *, num_steps: int = 30, capacity: int | None = None
) -> EventDataset:
    """Load unpacked N-MNIST: ``root/Train/<digit>/*.bin`` and ``root/Test/<digit>/*.bin``.

    The 300 ms become `num_steps` steps, binned as in `bin_events`; later events are dropped. The 2312 inputs are
    numbered ``(polarity * 34 + y) * 34 + x``; for convolutions, `EventDataset.channels_last` renumbers them.

    Errors: the split is unknown, folders are missing, and those of `read_nmnist`.

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
    check_choice("load_nmnist", "split", split, tuple(_FOLDERS))
    files, labels = [], []
    for digit in range(10):
        found = list_folder("load_nmnist", root, Path(_FOLDERS[split], str(digit)), "*.bin", _HINT)
        files += found
        labels += [digit] * len(found)
    recordings = (read_nmnist(file) for file in files)
    binning = num_steps, 2 * _SIZE * _SIZE, _DURATION
    pairs = ((events.times, events.ids(_SIZE, _SIZE)) for events in recordings)
    return binned_dataset("load_nmnist", pairs, np.array(labels, np.int32), *binning, 10, capacity)
