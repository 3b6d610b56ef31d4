"""The lock of a run's folder, which one run at a time writes to."""

import contextlib
import os
import platform
import sys
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import jax

from snnjax._check import fail
from snnjax._write import lock, remove_partial_files

LOCK = ".lock"
# The frames between a warning of the lock and the caller of `fit`.
_OF_CALLER = 9


@dataclass(frozen=True)
class LockedFolder(os.PathLike[str]):
    """A folder that belongs to this run until `locked` ends."""

    path: Path

    def __fspath__(self) -> str:
        """The path as text."""
        return str(self.path)


@contextmanager
def locked(folder: os.PathLike[str] | str) -> Iterator[LockedFolder]:
    """Make a folder that no other run writes to meanwhile; one that is locked already stays so.

    Its lock file names process and host. The operating system ends the lock with its process: a file that a kill
    leaves stops nobody. Of several processes that train together, only the first one writes, and locks.
    """
    if isinstance(folder, LockedFolder):
        yield folder
        return
    own = LockedFolder(Path(folder))
    try:
        own.path.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=own.path).close()
        file = _lock_file(own.path) if jax.process_index() == 0 else None
    except OSError as error:
        actual = f"{str(folder)!r} ({error.strerror})"
        fail(f"fit: `folder` must be a folder that can be written to, got {actual}. Choose another folder.")
    if file is None:
        yield own
        return
    with file:
        remove_partial_files(own.path)
        try:
            yield own
        finally:
            if sys.platform == "win32":
                file.close()
            with contextlib.suppress(
                PermissionError
            ):  # the next run has opened it, and Windows removes no open file
                (own.path / LOCK).unlink(missing_ok=True)


def _lock_file(folder: Path) -> IO[str]:
    """The lock file of a folder, open and locked."""
    path = folder / LOCK
    while True:
        file = path.open("a+", encoding="utf-8")
        if not _is_ours(file, folder):
            with file:
                file.seek(0)
                owner = file.read().strip() or "another process"
            hint = "Wait until that one has ended, or choose another folder"
            fail(f"fit: `folder` must belong to one run, got {str(folder)!r} of {owner}. {hint}.")
        # Since it was opened here, the run before may have removed it, and the next one made another.
        if path.exists() and os.path.samestat(path.stat(), os.fstat(file.fileno())):
            file.truncate(0)
            with contextlib.suppress(OSError):  # a full disk: it is locked all the same
                file.write(f"process {os.getpid()} on {platform.node()}\n")
                file.flush()
            return file
        file.close()


def _is_ours(file: IO[str], folder: Path) -> bool:
    """Whether the file is locked now; without locks it has to be hoped."""
    try:
        return lock(file)
    except OSError as error:
        text = (
            "fit: `folder` must be on a file system with locks for a second run in it to be noticed, "
            f"got {str(folder)!r} ({error.strerror}). Start no other run in it."
        )
        warnings.warn(text, RuntimeWarning, stacklevel=_OF_CALLER)
        return True
