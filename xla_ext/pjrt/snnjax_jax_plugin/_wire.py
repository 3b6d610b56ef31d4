"""What both sides of the plugin's calls agree on: the platform's name, the library's file, its functions, their types.

The functions are those of ``programs/compile.hpp`` and ``devices/{host_callback,client}.hpp`` in ``xla_ext/pjrt``.
"""

import ctypes
import functools
import importlib.util
import os
from pathlib import Path
from typing import Any

PLATFORM = "ipu"
# Return codes of calls: an ErrorCode of ``xla_ext/error.hpp``, numbered as in absl::StatusCode.
DONE, INVALID_ARGUMENT, UNIMPLEMENTED, INTERNAL = 0, 3, 12, 13
# Another build of the library, for instance one with sanitizers.
_VARIABLE = "SNNJAX_IPU_MODEL"
_HINT = (
    "in a clone, build it with `make kernels` (about 4 minutes on 2 cores); "
    "else install snnjax again where there is a C++20 compiler"
)

_BYTES = (ctypes.c_void_p, ctypes.c_size_t)
Give = ctypes.CFUNCTYPE(None, ctypes.c_void_p, *_BYTES)


class Array(ctypes.Structure):
    """An array that a running program hands over."""

    _fields_ = (
        ("dtype", ctypes.c_int64),
        ("rank", ctypes.c_size_t),
        ("shape", ctypes.POINTER(ctypes.c_size_t)),
        ("data", ctypes.c_void_p),
    )


# program, options, attempt
Lower = ctypes.CFUNCTYPE(ctypes.c_int, *_BYTES, *_BYTES, ctypes.c_int32, ctypes.c_void_p, Give)
CallBack = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.c_int64, ctypes.POINTER(Array), ctypes.c_size_t, ctypes.c_void_p, Give
)
# Of the functions that the library exports: the result, and the arguments.
_FUNCTIONS = {
    "snnjax_ipu_set_lowering": (None, Lower),
    "snnjax_ipu_set_callback": (None, CallBack),
    "snnjax_ipu_finish": (None,),
    "snnjax_ipu_profile": (
        ctypes.c_int,
        ctypes.c_char_p,
        ctypes.c_size_t,
        ctypes.c_int32,
        ctypes.c_void_p,
        Give,
    ),
}


class NotBuilt(RuntimeError):
    """No library was found, and none was named."""


def path() -> Path:
    """Where the library is looked for: in snnjax, which is found without being imported."""
    if named := os.environ.get(_VARIABLE):
        return Path(named)
    package = importlib.util.find_spec("snnjax")
    return Path(package.origin if package and package.origin else __file__).with_name("_ipu_model.so")


def load() -> Any:
    """The library; raises `NotBuilt` or another RuntimeError, with one sentence, if there is none."""
    library = path()
    if not library.exists():
        raise (RuntimeError if os.environ.get(_VARIABLE) else NotBuilt)(f"There is no {library}: {_HINT}")
    try:  # what is there may be no library, or that of another version of snnjax
        return _load(library)
    except (OSError, AttributeError) as error:
        raise RuntimeError(f"{library} cannot be loaded ({error}): {_HINT}") from error


@functools.cache
def _load(library: Path) -> Any:
    loaded = ctypes.CDLL(os.fspath(library))
    for name, (result, *arguments) in _FUNCTIONS.items():
        function = getattr(loaded, name)
        function.restype, function.argtypes = result, arguments
    return loaded
