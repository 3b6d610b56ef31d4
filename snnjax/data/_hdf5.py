"""The HDF5 library, isolated: it crashes on some damaged files and hangs on others.

`_hdf5_child.py` reads a file in one separate process, which is killed if it does not respond. The most common damage is
found beforehand, by checking the global heaps.

Arrays of variable length are stored in global heaps: "GCOL", version 1, three zero bytes, the size of the heap
(uint64), then objects of a header (index and reference count uint16, four zero bytes, size uint64) and data padded to 8
bytes. An object of index 0 is free space, and its size, header included, reaches the end of the heap.

Source: HDF5 File Format Specification 3.0, III.E "Global Heap"; the endless loop is known as HDFGroup/hdf5 1707.
"""

import io
import mmap
import os
import signal
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import numpy as np

from snnjax._check import plural
from snnjax.data import _hdf5_child

# Timeout in seconds for one block of samples, which takes milliseconds to read from a disk.
TIME_LIMIT = 60

_HEAP_HEADER, _OBJECT_HEADER = struct.Struct("<4sB3xQ"), struct.Struct("<HHIQ")
_SIGNATURE = b"GCOL\x01\0\0\0"


def read_blocks(path: Path, what: str = "samples") -> Iterator[dict[str, np.ndarray]]:
    """The arrays of a few samples at a time, as sent by `_hdf5_child`; a ValueError says what is wrong with a file.

    `what` is "samples", or "arrays" for all that the file holds, in one block.
    """
    # Use the import path of this process; "-P" excludes the script's own folder from it.
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-P", _hdf5_child.__file__, str(path), what]
    null, pipe = subprocess.DEVNULL, subprocess.PIPE
    with subprocess.Popen(command, env=environment, stdin=null, stdout=pipe, stderr=null) as child:
        assert child.stdout is not None
        is_late = threading.Event()
        blocks = receive_blocks(child.stdout)
        try:
            while (block := _next(blocks, child, is_late)) is not None:
                yield block
        except EOFError:
            raise ValueError(_how_it_ended(child.wait(), is_late.is_set())) from None
        finally:
            child.kill()


def _next(
    blocks: Iterator[dict[str, np.ndarray]], child: subprocess.Popen[bytes], is_late: threading.Event
) -> dict[str, np.ndarray] | None:
    """The next block, None after the last one; the child is killed if it takes longer than `TIME_LIMIT`."""

    def kill() -> None:
        is_late.set()
        child.kill()

    timer = threading.Timer(TIME_LIMIT, kill)
    timer.start()
    try:
        return next(blocks, None)
    finally:
        timer.cancel()


def receive_blocks(stream: IO[bytes]) -> Iterator[dict[str, np.ndarray]]:
    """The messages of `_hdf5_child` up to the last one; EOFError if they end before it."""
    while True:
        header = stream.read(_hdf5_child.LENGTH.size)
        content = stream.read(*_hdf5_child.LENGTH.unpack(header)) if len(header) == 8 else b""
        if not content:
            raise EOFError
        with np.load(io.BytesIO(content), allow_pickle=False) as archive:
            arrays = dict(archive)
        if not arrays:
            return
        if "error" in arrays:
            raise ValueError(str(arrays["error"]))
        yield arrays


def _how_it_ended(status: int, is_late: bool) -> str:
    if is_late:
        return f"no answer from the HDF5 library within {TIME_LIMIT} s"
    if status < 0:
        return f"a crash of the HDF5 library ({signal.Signals(-status).name})"
    return f"no answer from the HDF5 library (exit status {status})"


def heap_damage(path: Path) -> str | None:
    """What is wrong with the first damaged global heap of the file at `path`, None if all are valid."""
    with path.open("rb") as stream:
        if path.stat().st_size == 0:
            return None
        with mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as content:
            offset = content.find(_SIGNATURE)
            while offset >= 0:
                damage = _damage(content, offset)
                if damage is not None:
                    return damage
                offset = content.find(_SIGNATURE, offset + len(_SIGNATURE))
    return None


def _damage(content: mmap.mmap, offset: int) -> str | None:
    """What is wrong with the heap at `offset`."""
    if offset + _HEAP_HEADER.size > len(content):
        return f"a heap cut at offset {offset}"
    _, _, size = _HEAP_HEADER.unpack_from(content, offset)
    end, place, seen = offset + size, offset + _HEAP_HEADER.size, set()
    if end > len(content):
        return f"a heap of {plural(size, 'byte')} at offset {offset} beyond the end"
    while place + _OBJECT_HEADER.size <= end:
        index, _, _, length = _OBJECT_HEADER.unpack_from(content, place)
        if index == 0:
            free = end - place
            return (
                None
                if length == free
                else f"{plural(length, 'byte')} of free space, not {free}, at offset {place}"
            )
        stop = place + _OBJECT_HEADER.size + -(-length // 8) * 8
        if stop > end or index in seen:
            return f"a heap object of {plural(length, 'byte')} and index {index} at offset {place}"
        seen.add(index)
        place = stop
    return None
