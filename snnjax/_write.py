"""Writing files: all of a file or nothing, through a new file beside it that nobody else can have prepared."""

import contextlib
import os
import secrets
import sys
from pathlib import Path
from typing import IO, Any

from snnjax._check import fail

_TOKEN_BYTES = 8
# Windows locks bytes, not files: this one, which no file has.
_LOCKED_BYTE = 2**31 - 2


def write_atomically(op: str, path: Path | str, content: bytes) -> None:
    """Write a file atomically: its name never refers to a partial file, even after a kill or a power cut.

    A link in place of the file is replaced, not followed.

    Errors: the file cannot be written, for instance because the disk is full. The partial file is removed, and the old
    file stays.
    """
    path = Path(path)
    # In the same folder, hence on the same disk, where a rename is atomic. In a folder that others can write to, a name
    # that can be guessed may be a link to any file by now; a kill leaves a hidden file.
    partial = path.with_name(f".{secrets.token_hex(_TOKEN_BYTES)}.partial")
    try:
        with partial.open("xb") as stream:  # "x": only if there is no such file or link
            with contextlib.suppress(OSError):  # a file system without locks
                lock(stream)  # until it is complete: see `remove_partial_files`
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(partial, path)
    except BaseException as error:
        with contextlib.suppress(OSError):
            partial.unlink()  # free the space that the partial file takes
        if isinstance(error, OSError):
            actual, hint = f"{str(path)!r} ({error.strerror})", "Make room, or name another folder"
            fail(f"{op}: `path` must be a file that can be written, got {actual}. {hint}.")
        raise
    if sys.platform != "win32":  # which opens no folders
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)  # the rename itself reaches the disk
        finally:
            os.close(folder)


def remove_partial_files(folder: Path) -> None:
    """Remove what a kill in the middle of `write_atomically` left in a folder.

    Files that someone writes to just now are locked, or still empty.
    """
    for partial in folder.glob("." + "[0-9a-f]" * 2 * _TOKEN_BYTES + ".partial"):
        with contextlib.suppress(OSError):
            if partial.lstat().st_size > 0:
                flags = os.O_RDWR if sys.platform == "win32" else os.O_RDWR | os.O_NOFOLLOW
                with open(os.open(partial, flags), encoding="utf-8") as stream:
                    is_abandoned = lock(stream)
                if is_abandoned:  # closed: Windows removes no open file
                    partial.unlink()


def lock(file: IO[Any]) -> bool:
    """Lock an open file for this process until it is closed; returns whether nobody else has locked it.

    The lock ends with the process too, however that ends, and on network file systems with the host.

    Errors: an `OSError` if the file system has no locks.
    """
    try:
        if sys.platform == "win32":
            import msvcrt

            # Nobody else can read a locked byte, so it lies behind all that a file may say.
            file.seek(_LOCKED_BYTE)
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
            file.seek(0)
        else:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):  # which of the two depends on the file system
        return False
    return True
