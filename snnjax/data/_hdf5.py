"""A look at the global heaps of an HDF5 file before the HDF5 library, which reads damaged ones for ever.

Arrays of variable length lie in global heaps: "GCOL", version 1, three zero bytes, the size of the heap (uint64), then
objects of a header (index and reference count uint16, four zero bytes, size uint64) and data padded to 8 bytes. An
object of index 0 is free space, and its size, header included, reaches the end of the heap.

Source: HDF5 File Format Specification 3.0, III.E "Global Heap"; the endless loop is known as HDFGroup/hdf5 1707.
"""

import mmap
import struct
from pathlib import Path

_HEAP_HEADER, _OBJECT_HEADER = struct.Struct("<4sB3xQ"), struct.Struct("<HHIQ")
_SIGNATURE = b"GCOL\x01\0\0\0"


def heap_damage(path: Path) -> str | None:
    """What is wrong with the first damaged global heap of the file at `path`, None where all are sound."""
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
        return f"a heap of {size} bytes at offset {offset} beyond the end"
    while place + _OBJECT_HEADER.size <= end:
        index, _, _, length = _OBJECT_HEADER.unpack_from(content, place)
        if index == 0:
            free = end - place
            return None if length == free else f"{length} bytes of free space, not {free}, at offset {place}"
        stop = place + _OBJECT_HEADER.size + -(-length // 8) * 8
        if stop > end or index in seen:
            return f"a heap object of {length} bytes and index {index} at offset {place}"
        seen.add(index)
        place = stop
    return None
