"""The HDF5 reader that runs in a separate process, because the library crashes or hangs on some damaged files.

This script does not import snnjax, so that it starts in a fraction of a second. It writes messages to standard output:
the length of an `.npz` as a uint64, and the `.npz`. That holds the arrays of some samples, or all arrays of the file,
or the text `error`; the last message is empty.
"""

import io
import os
import struct
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np

LENGTH = struct.Struct("<Q")
# Number of samples read at once, because one call per sample would dominate the time.
_BLOCK = 256
# Deflate compresses at most 1032 times (zlib's own figure): a file that declares more cannot hold it. Arrays without
# chunks are small. Whatever the ratio, all arrays together are no longer than half a billion numbers in float32.
_MAX_RATIO, _ALLOWANCE, _MOST_BYTES = 1032, 2**20, 2**31
# A row of arrays of variable length has one reference of this many bytes for each.
_REFERENCE_BYTES = 16
# The memory that reading may take, for what cannot be known beforehand: rows may refer to one long array many times.
_MOST_MEMORY = 4 * _MOST_BYTES
# Limits on nested groups, which may be circular links, and on the number of arrays.
_MAX_DEPTH, _MAX_ARRAYS = 64, 100_000


def send_blocks(path: str, stream: IO[bytes], what: str = "samples") -> None:
    """Write the samples of the file at `path` to `stream`.

    `what` is "samples", or "arrays" for everything in a file, in one block.
    """
    try:
        for block in (_blocks if what == "samples" else _all_arrays)(path):
            _send(stream, block)
        _send(stream, {})
    except (
        Exception
    ) as error:  # for damaged files, h5py raises OSError, KeyError, RuntimeError, TypeError and more
        _send(stream, {"error": np.array(f"{type(error).__name__}: {error}")})


def _blocks(path: str) -> Iterator[dict[str, np.ndarray]]:
    """Times, units (concatenated over samples, with the count of each) and labels of some samples at a time."""
    import h5py

    with h5py.File(path, "r") as file:
        parts: Any = file
        times, units, labels = (parts[name] for name in ("spikes/times", "spikes/units", "labels"))
        shapes = [times.shape, units.shape, labels.shape]
        size = Path(path).stat().st_size
        if times.size * _REFERENCE_BYTES > _MAX_RATIO * size + _ALLOWANCE:
            raise ValueError(f"{times.size} samples declared, more than the file holds")
        if len(times.shape) != 1 or len(set(shapes)) != 1 or labels.dtype.kind not in "iu":
            raise ValueError(f"times, units and {labels.dtype} labels of shapes {shapes}")
        for first in range(0, len(labels), _BLOCK):
            block = slice(first, first + _BLOCK)
            arrays = _joined("times", times[block]) | _joined("units", units[block])
            arrays["labels"] = labels[block]
            # The arrays themselves are not compressed, and each belongs to one sample.
            size -= arrays["times"].nbytes + arrays["units"].nbytes
            if size < 0:
                raise ValueError("longer arrays than the file holds")
            yield arrays


def _joined(name: str, samples: Any) -> dict[str, np.ndarray]:
    arrays = [np.asarray(sample) for sample in samples]
    return {name: np.concatenate(arrays), f"{name}_counts": np.array([array.size for array in arrays])}


def _all_arrays(path: str) -> Iterator[dict[str, np.ndarray]]:
    """The names of all arrays, and the arrays by the index of their name."""
    import h5py

    names: list[str] = []
    arrays: dict[str, np.ndarray] = {}
    room = min(_MAX_RATIO * Path(path).stat().st_size + _ALLOWANCE, _MOST_BYTES)
    with h5py.File(path, "r") as file:
        for name, dataset in _datasets(file, "", 0):
            room -= dataset.nbytes
            if room < 0 or len(names) >= _MAX_ARRAYS:
                raise ValueError(
                    f"{dataset.dtype} {list(dataset.shape)} declared at {name}, more than the file holds, or than "
                    f"{_MOST_BYTES} bytes or {_MAX_ARRAYS} arrays in all"
                )
            arrays[str(len(names))] = _plain(name, dataset[()])
            names.append(name)
    yield {"names": np.array(names, str), **arrays}


def _datasets(group: Any, prefix: str, depth: int) -> Iterator[tuple[str, Any]]:
    """The arrays of a group and its subgroups, without links to other files."""
    import h5py

    if depth > _MAX_DEPTH:
        raise ValueError(f"groups nested deeper than {_MAX_DEPTH}")
    for name in group:
        item, full = group.get(name, getlink=True), f"{prefix}{name}"
        item = group[name] if isinstance(item, h5py.HardLink) else None
        if isinstance(item, h5py.Group):
            yield from _datasets(item, f"{full}/", depth + 1)
        elif isinstance(item, h5py.Dataset) and not item.external and not item.is_virtual:
            yield full, item
        else:
            raise ValueError(f"a link out of its place at {full}")


def _plain(name: str, value: Any) -> np.ndarray:
    """Numbers unchanged, and text as NumPy strings instead of Python objects."""
    array = np.asarray(value)
    if array.dtype.kind in "OS":
        texts = [text.decode() if isinstance(text, bytes) else text for text in array.reshape(-1).tolist()]
        if all(isinstance(text, str) for text in texts):
            array = np.array(texts, str).reshape(array.shape)
    if array.dtype.kind not in "biufU":
        raise ValueError(f"neither numbers nor text at {name}")
    return array


def _send(stream: IO[bytes], arrays: dict[str, np.ndarray]) -> None:
    buffer = io.BytesIO()
    members: dict[str, Any] = arrays
    np.savez(buffer, allow_pickle=False, **members)
    stream.write(LENGTH.pack(buffer.tell()))
    stream.write(buffer.getbuffer())
    stream.flush()


def limit_memory() -> None:
    """Let this process take `_MOST_MEMORY` more than it has, where the system says how much that is."""
    statistics = Path("/proc/self/statm")
    if sys.platform != "win32" and statistics.exists():
        import resource

        used = int(statistics.read_text(encoding="utf-8").split()[0]) * os.sysconf("SC_PAGE_SIZE")
        _, most = resource.getrlimit(resource.RLIMIT_AS)
        limit = used + _MOST_MEMORY
        resource.setrlimit(resource.RLIMIT_AS, (limit if most < 0 else min(limit, most), most))


if __name__ == "__main__":
    limit_memory()
    send_blocks(sys.argv[1], sys.stdout.buffer, *sys.argv[2:])
