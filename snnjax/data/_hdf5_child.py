"""What runs in a process of its own: the HDF5 library, which some damaged files crash, and others hold for ever.

A script that imports nothing of snnjax, so that it starts in a fraction of a second. It writes messages to standard
output: the length of an `.npz` as a uint64, and the `.npz`. That holds the arrays of some samples, or the text `error`,
or after the last sample nothing.
"""

import io
import signal
import struct
import sys
from collections.abc import Iterator
from typing import IO, Any

import numpy as np

LENGTH = struct.Struct("<Q")
# Samples read at once: one call into the file for each would dominate.
_BLOCK = 256


def send_blocks(path: str, stream: IO[bytes], time_limit: int) -> None:
    """Write the samples of the file at `path` to `stream`; the process is ended where it waits `time_limit` seconds.

    A `time_limit` of 0 is none.
    """
    try:
        for block in _blocks(path, time_limit):
            _send(stream, block)
        _send(stream, {})
    except Exception as error:  # h5py answers damage with OSError, KeyError, RuntimeError, TypeError and more
        _send(stream, {"error": np.array(f"{type(error).__name__}: {error}")})


def _blocks(path: str, time_limit: int) -> Iterator[dict[str, np.ndarray]]:
    """Times, units (of all samples behind one another, and how many each has) and labels of some samples at a time."""
    import h5py

    # SIGALRM ends a process wherever it is, in compiled code too. A reader that takes its time is not waited for.
    signal.alarm(time_limit)
    with h5py.File(path, "r") as file:
        parts: Any = file
        times, units, labels = (parts[name] for name in ("spikes/times", "spikes/units", "labels"))
        shapes = [times.shape, units.shape, labels.shape]
        if len(times.shape) != 1 or len(set(shapes)) != 1 or labels.dtype.kind not in "iu":
            raise ValueError(f"times, units and {labels.dtype} labels of shapes {shapes}")
        for first in range(0, len(labels), _BLOCK):
            block = slice(first, first + _BLOCK)
            arrays = _joined("times", times[block]) | _joined("units", units[block])
            arrays["labels"] = labels[block]
            signal.alarm(0)
            yield arrays
            signal.alarm(time_limit)
    signal.alarm(0)


def _joined(name: str, samples: Any) -> dict[str, np.ndarray]:
    arrays = [np.asarray(sample) for sample in samples]
    return {name: np.concatenate(arrays), f"{name}_counts": np.array([array.size for array in arrays])}


def _send(stream: IO[bytes], arrays: dict[str, np.ndarray]) -> None:
    buffer = io.BytesIO()
    members: dict[str, Any] = arrays
    np.savez(buffer, allow_pickle=False, **members)
    stream.write(LENGTH.pack(buffer.tell()))
    stream.write(buffer.getbuffer())
    stream.flush()


if __name__ == "__main__":
    send_blocks(sys.argv[1], sys.stdout.buffer, int(sys.argv[2]))
