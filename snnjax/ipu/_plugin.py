"""The plugin in the library of the IPU Model: what it calls in Python (lowering, callbacks), and its profiles.

The functions are those of ``xla_ext/pjrt/{compile,host_callback,client,registry}.hpp``.
"""

import atexit
import ctypes
import functools
import math
from typing import Any

import numpy as np

from snnjax.ipu import _model_library, lowering
from snnjax.ipu._model_library import DONE, INTERNAL, INVALID_ARGUMENT, UNIMPLEMENTED
from snnjax.ipu.lowering._types import numbered

_Give = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)
_Lower = ctypes.CFUNCTYPE(
    ctypes.c_int,
    *(ctypes.c_void_p, ctypes.c_size_t),  # program
    *(ctypes.c_void_p, ctypes.c_size_t),  # options
    *(ctypes.c_void_p, _Give),
)


@_Lower
def _lower(program: int, program_size: int, options: int, options_size: int, result: int, give: Any) -> int:
    """Nothing may be raised into C++: every error becomes a code and a message."""
    try:
        plan = lowering.lower(
            ctypes.string_at(program, program_size), ctypes.string_at(options, options_size)
        )
        give(result, plan, len(plan))
        return DONE
    except BaseException as error:
        message, code = _described(error)
        give(result, message, len(message))
        return code


class _Array(ctypes.Structure):
    _fields_ = (
        ("dtype", ctypes.c_int64),
        ("rank", ctypes.c_size_t),
        ("shape", ctypes.POINTER(ctypes.c_size_t)),
        ("data", ctypes.c_void_p),
    )


_CallBack = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.c_int64, ctypes.POINTER(_Array), ctypes.c_size_t, ctypes.c_void_p, _Give
)


@_CallBack
def _call_back(number: int, arrays: Any, num_arrays: int, result: int, give: Any) -> int:
    """The arrays end with the call: the function gets copies."""
    try:
        lowering.call_back(number, [_copied(arrays[i]) for i in range(num_arrays)])
        return DONE
    except BaseException as error:
        message = f"callback: the function raised {type(error).__name__}: {error}".encode()
        give(result, message, len(message))
        return INTERNAL


def _copied(array: _Array) -> np.ndarray:
    dtype = numbered(array.dtype)
    shape = array.shape[: array.rank]
    return np.frombuffer(ctypes.string_at(array.data, math.prod(shape) * dtype.itemsize), dtype).reshape(
        shape
    )


def _described(error: BaseException) -> tuple[bytes, int]:
    """What an error of the lowering says, and its code."""
    if isinstance(error, lowering.Unsupported):
        return str(error).encode(), UNIMPLEMENTED
    if isinstance(error, ValueError):
        return str(error).encode(), INVALID_ARGUMENT
    return f"compile: the lowering failed with {type(error).__name__}: {error}".encode(), INTERNAL


@functools.cache
def library() -> Any:
    """The library with its plugin made ready; raises RuntimeError with one sentence where there is none."""
    loaded = _model_library.load()
    if isinstance(loaded, str):
        raise RuntimeError(loaded)
    loaded.snnjax_ipu_set_lowering.argtypes = (_Lower,)
    loaded.snnjax_ipu_set_lowering.restype = None
    loaded.snnjax_ipu_set_lowering(_lower)
    loaded.snnjax_ipu_set_callback.argtypes = (_CallBack,)
    loaded.snnjax_ipu_set_callback.restype = None
    loaded.snnjax_ipu_set_callback(_call_back)
    loaded.snnjax_ipu_finish.argtypes = ()
    loaded.snnjax_ipu_finish.restype = None
    text = (ctypes.c_char_p, ctypes.c_size_t)
    loaded.snnjax_ipu_profile.argtypes = (*text, ctypes.c_int32, ctypes.c_void_p, _Give)
    # A program that still runs may call back into Python.
    atexit.register(loaded.snnjax_ipu_finish)
    return loaded


def profile_of(fingerprint: str, *, reset: bool) -> str:
    """What all runs of a loaded program have cost since it was last reset, as JSON; waits for those under way.

    Raises ValueError where no program has that fingerprint, and in a callback of a run, which it would wait for.
    """
    given: list[bytes] = []
    give = _Give(lambda _, text, size: given.append(ctypes.string_at(text, size)))
    name = fingerprint.encode()
    code = library().snnjax_ipu_profile(name, len(name), reset, None, give)
    _model_library.check(code, given[0].decode())
    return given[0].decode()
