"""Code shared by all readers: reading files, errors that name the file, camera events."""

import os
from pathlib import Path
from typing import NamedTuple, NoReturn

import numpy as np

from snnjax._check import check_integer, check_integers, check_within, fail

PathLike = str | os.PathLike[str]

_HINTS = {
    "polarity": "Map polarities to 0 and 1",
    "y": "Pass the height of the camera",
    "x": "Pass the width of the camera",
}


class CameraEvents(NamedTuple):
    """The events of one recording of an event camera, in the order of the file."""

    times: np.ndarray  # [events] integer, microseconds
    x: np.ndarray  # [events] integer, column
    y: np.ndarray  # [events] integer, row
    polarity: np.ndarray  # [events] integer or bool, 0 off (darker), 1 on (brighter)

    def ids(self, height: int, width: int) -> np.ndarray:
        """The input ids ``(polarity * height + y) * width + x``, int64 [events].

        Errors: a column, a row or a polarity is not a whole number below `width`, `height` or 2.
        """
        columns = []
        sizes = {"polarity": 2, "y": height, "x": width}
        for name, size in sizes.items():
            column = np.asanyarray(getattr(self, name))  # with a mask, which the check refuses
            column = column.astype(np.uint8) if column.dtype == bool else column
            check_integers("CameraEvents.ids", name, column)
            check_within("CameraEvents.ids", name, column, size - 1, _HINTS[name])
            # Files have integers of 8 or 16 bits, which products with the sizes would overflow.
            columns.append(column.astype(np.int64))
        polarity, y, x = columns
        return (polarity * height + y) * width + x


def read_bytes(op: str, path: PathLike, hint: str) -> bytes:
    """The content of the file at `path`; empty, missing and unreadable files are errors."""
    try:
        content = Path(path).read_bytes()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        fail(f"{op}: `path` must be a readable file, got {str(path)!r} ({reason}). {hint}.")
    if not content:
        fail(f"{op}: `path` must be a file with content, got {str(path)!r} of 0 bytes. {hint}.")
    return content


def refuse(op: str, path: PathLike, expected: str, actual: object) -> NoReturn:
    """Raise the error for a file whose content is not as `expected`."""
    fail(f"{op}: `path` must {expected}, got {actual} in {str(path)!r}. Download or extract the file again.")


def list_folder(op: str, root: PathLike, folder: PathLike, pattern: str, hint: str) -> list[Path]:
    """The files of `folder` in `root` that match `pattern`, at least one, sorted by name."""
    path = Path(root, folder)
    # macOS writes a hidden file ``._*`` beside each file on a disk or in an archive of another system.
    files = sorted(file for file in path.glob(pattern) if file.name[0] != ".") if path.is_dir() else []
    if not files:
        fail(f"{op}: `root` must hold files {Path(folder, pattern)}, got none in {str(root)!r}. {hint}.")
    return files


def pooled(events: CameraEvents, downsample: int) -> CameraEvents:
    """The events (int64) of a camera with one pixel in place of `downsample` x `downsample`."""
    return events._replace(x=events.x // downsample, y=events.y // downsample)


def check_downsample(op: str, downsample: int, size: int) -> int:
    """Check that `downsample` is a positive integer, and return the size after downsampling, rounded up."""
    downsample = check_integer(op, "downsample", downsample, 1)
    return -(-size // downsample)
