"""Damaged files: a reader returns a result or raises the error that names the file, and nothing else."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st


def survives(op: str, read: Callable[[Path], Any], path: Path, content: bytes) -> Any | None:
    """The result of `read` for a file with `content`; None if it raises a proper error."""
    path.write_bytes(content)
    try:
        return read(path)
    except ValueError as error:
        text = str(error)
        assert text.startswith(f"{op}: `path` must "), text
        assert f"{str(path)!r}" in text
        assert ", got " in text
        assert text.endswith(".")
        assert text == text.strip()
        return None


def flips(content: bytes) -> st.SearchStrategy[bytes]:
    """`content` with one to three bits flipped."""

    def flip(bits: list[int]) -> bytes:
        damaged = bytearray(content)
        for bit in bits:
            damaged[bit // 8] ^= 1 << bit % 8
        return bytes(damaged)

    return st.lists(st.integers(0, 8 * len(content) - 1), min_size=1, max_size=3).map(flip)


def check_absent(op: str, read: Callable[[Path], Any], folder: Path, hint: str) -> None:
    """Missing files, folders and empty files are refused word for word."""
    missing, empty = folder / "missing", folder / "empty"
    empty.write_bytes(b"")
    for path, expected, actual in [
        (missing, "be a readable file", f"{str(missing)!r} (No such file or directory)"),
        (folder, "be a readable file", f"{str(folder)!r} (Is a directory)"),
        (empty, "be a file with content", f"{str(empty)!r} of 0 bytes"),
    ]:
        with pytest.raises(ValueError) as caught:
            read(path)
        assert str(caught.value) == f"{op}: `path` must {expected}, got {actual}. {hint}."
