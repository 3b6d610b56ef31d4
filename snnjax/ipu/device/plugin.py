"""The Python functions that the plugin in the IPU Model's library calls.

`snnjax_jax_plugin` forwards the calls; every error becomes an ``absl::StatusCode`` and a message.
"""

import ctypes
import math
from collections.abc import Iterable
from typing import Any

import numpy as np
from snnjax_jax_plugin._wire import DONE, INTERNAL, INVALID_ARGUMENT, UNIMPLEMENTED, Array

from snnjax.ipu import lowering
from snnjax.ipu.lowering.types import numbered


def lower(program: bytes, options: bytes, attempt: int) -> tuple[int, bytes]:
    """The plan of a program, or the reason why there is none."""
    try:
        return DONE, lowering.lower(program, options, attempt)
    except BaseException as error:
        return _described(error)


def call_back(number: int, arrays: Iterable[Any]) -> tuple[int, bytes]:
    """Call a function on the host. The arrays are only valid during the call, so the function gets copies."""
    try:
        results = lowering.call_back(number, [_copied(array) for array in arrays])
        return DONE, b"".join(each.tobytes() for each in results)
    except BaseException as error:
        return INTERNAL, f"callback: the function raised {type(error).__name__}: {error}".encode()


def _copied(array: Array) -> np.ndarray:
    dtype, shape = numbered(array.dtype), array.shape[: array.rank]
    contents = ctypes.string_at(array.data, math.prod(shape) * dtype.itemsize)
    return np.frombuffer(contents, dtype).reshape(shape)


def _described(error: BaseException) -> tuple[int, bytes]:
    """The code and the message of an error in the lowering."""
    if isinstance(error, lowering.Unsupported):
        return UNIMPLEMENTED, str(error).encode()
    if isinstance(error, ValueError):
        return INVALID_ARGUMENT, str(error).encode()
    return INTERNAL, f"compile: the lowering failed with {type(error).__name__}: {error}".encode()
