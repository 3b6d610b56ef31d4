"""Code shared by all readers: reading files, errors that name the file, camera events."""

import os
from pathlib import Path
from typing import NamedTuple, NoReturn

import numpy as np

from snnjax._check import check_integer, fail

PathLike = str | os.PathLike[str]


class CameraEvents(NamedTuple):
    """The events of one recording of an event camera, in the order of the file."""

    times: np.ndarray  # [events] int64, microseconds
    x: np.ndarray  # [events] int64, column
    y: np.ndarray  # [events] int64, row
    polarity: np.ndarray  # [events] int64, 0 off (darker), 1 on (brighter)

    def ids(self, height: int, width: int) -> np.ndarray:
        """The input ids ``(polarity * height + y) * width + x``, int64 [events]."""
        return (self.polarity * height + self.y) * width + self.x


def read_bytes(op: str, path: PathLike, way_out: str) -> bytes:
    """The content of the file at `path`; empty, missing and unreadable files are errors."""
    try:
        content = Path(path).read_bytes()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        fail(op, "path", "be a readable file", f"{str(path)!r} ({reason})", way_out)
    if not content:
        fail(op, "path", "be a file with content", f"{str(path)!r} of 0 bytes", way_out)
    return content


def refuse(op: str, path: PathLike, expected: str, actual: object) -> NoReturn:
    """Raise the error for a file whose content is not as `expected`."""
    fail(op, "path", expected, f"{actual} in {str(path)!r}", "Download or extract the file again")


def list_folder(op: str, root: PathLike, folder: PathLike, pattern: str, way_out: str) -> list[Path]:
    """The files of `folder` in `root` that match `pattern`, at least one, sorted by name."""
    path = Path(root, folder)
    files = sorted(path.glob(pattern)) if path.is_dir() else []
    if not files:
        fail(op, "root", f"hold files {Path(folder, pattern)}", f"none in {str(root)!r}", way_out)
    return files


def pooled(events: CameraEvents, downsample: int) -> CameraEvents:
    """The events of a camera with one pixel in place of `downsample` x `downsample`."""
    return events._replace(x=events.x // downsample, y=events.y // downsample)


def check_downsample(op: str, downsample: int, size: int) -> int:
    """Check that `downsample` is a positive integer, and return the size after downsampling, rounded up."""
    check_integer(op, "downsample", downsample, 1)
    return -(-size // downsample)
