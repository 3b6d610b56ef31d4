"""Heaps without an HDF5 file around them; whole files are tested with their reader."""

import struct

from snnjax.data._hdf5 import heap_damage


def heap(objects, size):
    """A heap of (index, data) and, where a header fits, free space up to `size` bytes."""
    content = b"GCOL" + struct.pack("<B3xQ", 1, size)
    for index, data in objects:
        content += struct.pack("<HHIQ", index, 0, 0, len(data)) + data + bytes(-len(data) % 8)
    free = size - len(content)
    return content + (struct.pack("<HHIQ", 0, 0, 0, free) + bytes(free - 16) if free >= 16 else bytes(free))


def damage(tmp_path, content):
    path = tmp_path / "file"
    path.write_bytes(content)
    return heap_damage(path)


def test_heap_damage_passes_sound_heaps(tmp_path):
    full = heap([(1, b"12345678"), (2, b"1")], 64)
    nearly_full = heap([(1, b"12345678")], 48)
    some_free = heap([(7, b"123")], 128)
    assert damage(tmp_path, b"") is None
    assert damage(tmp_path, b"x" * 99) is None
    assert damage(tmp_path, b"abc" + full + some_free + b"y" * 40 + nearly_full) is None


def test_heap_damage_finds_any_damaged_heap(tmp_path):
    sound, broken = heap([(1, b"1")], 64), heap([(1, b"1")], 64)[:-1]
    assert damage(tmp_path, sound + broken) == "a heap of 64 bytes at offset 64 beyond the end"
    assert damage(tmp_path, sound + broken[:10]) == "a heap cut at offset 64"
