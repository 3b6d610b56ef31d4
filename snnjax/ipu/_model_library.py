"""The library of the IPU Model: found, loaded and called here alone, through a plain C interface.

The structures are those of ``xla_ext/ipu_model/harness/call.hpp``. Nothing is loaded on import.
"""

import ctypes
import functools
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

# Another build of the library, for instance one with sanitizers.
_VARIABLE = "SNNJAX_IPU_MODEL"
_WAY_OUT = "build it with `make kernels` (about 8 minutes on 2 cores), or install snnjax where there is a C++ compiler"

# How calls end: an ErrorCode of ``xla_ext/builders/error.hpp``, numbered as in absl::StatusCode.
DONE, INVALID_ARGUMENT, UNIMPLEMENTED, INTERNAL = 0, 3, 12, 13


class _Array(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("data", ctypes.c_void_p),
        ("size", ctypes.c_int64),
        ("is_integer", ctypes.c_int32),
    )


class _Number(ctypes.Structure):
    _fields_ = (("name", ctypes.c_char_p), ("value", ctypes.c_double))


class _Call(ctypes.Structure):
    _fields_ = (
        ("op", ctypes.c_char_p),
        ("chip", ctypes.c_char_p),
        ("num_tiles", ctypes.c_int64),
        ("num_ipus", ctypes.c_int64),
        ("arrays", ctypes.POINTER(_Array)),
        ("num_arrays", ctypes.c_int64),
        ("numbers", ctypes.POINTER(_Number)),
        ("num_numbers", ctypes.c_int64),
    )


def missing() -> str | None:
    """None when the library can be loaded, else one sentence that says why not."""
    library = load()
    return library if isinstance(library, str) else None


def path() -> Path:
    """Where the library is looked for."""
    return Path(os.environ.get(_VARIABLE) or Path(__file__).parents[1] / "_ipu_model.so")


@functools.cache
def load() -> Any:
    """The library, or the sentence."""
    # With this interpreter the model compiles the codelets that a program adds from their sources.
    os.environ.setdefault("SNNJAX_PYTHON", sys.executable)
    if not path().exists():
        return f"There is no {path()}: {_WAY_OUT}"
    try:  # what is there may be no library, or that of another version of snnjax
        library = ctypes.CDLL(os.fspath(path()))
        text = ctypes.POINTER(ctypes.c_char_p)
        library.snnjax_ipu_model_run.argtypes = (ctypes.POINTER(_Call), text, text)
        library.snnjax_ipu_model_free.argtypes = (ctypes.c_char_p,)
        library.snnjax_ipu_model_free.restype = None
    except (OSError, AttributeError) as error:
        return f"{path()} cannot be loaded ({error}): {_WAY_OUT}"
    return library


def call(
    op: str, chip: str, tiles: tuple[int, int], arrays: Mapping[str, np.ndarray], numbers: Mapping[str, float]
) -> str:
    """Run an op on so many (tiles of each of, IPUs); results among the arrays are filled in place.

    Yields the profile as JSON. Arrays are contiguous float32 or int32.
    """
    library = load()
    if isinstance(library, str):
        raise RuntimeError(f"run_on_model: the IPU Model is not there. {library}.")
    each = [
        _Array(name.encode(), array.ctypes.data, array.size, array.dtype == np.int32)
        for name, array in arrays.items()
    ]
    values = [_Number(name.encode(), float(value)) for name, value in numbers.items()]
    request = _Call(
        op.encode(),
        chip.encode(),
        *tiles,
        (_Array * len(each))(*each),
        len(each),
        (_Number * len(values))(*values),
        len(values),
    )
    texts = profile, error = ctypes.c_char_p(), ctypes.c_char_p()
    try:
        status = library.snnjax_ipu_model_run(ctypes.byref(request), *map(ctypes.byref, texts))
        profile_text, message = ((text.value or b"").decode() for text in (profile, error))
    finally:
        for text in texts:
            library.snnjax_ipu_model_free(text)
    check(status, message)
    return profile_text


def check(status: int, message: str) -> None:
    """Raises what a call says that ended with an error."""
    if status == INVALID_ARGUMENT:
        raise ValueError(message)
    if status != DONE:
        raise RuntimeError(message)
