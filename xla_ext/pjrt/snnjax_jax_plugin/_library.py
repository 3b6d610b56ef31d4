"""The library of the IPU Model, in which the plugin is: where it is, what its clients are told, and whom it calls.

The functions are those of ``xla_ext/pjrt/{compile,host_callback,client}.hpp``. What they do is in
`snnjax.ipu.device.plugin`, imported when the first program is compiled.
"""

import atexit
import ctypes
import functools
import importlib.util
import os
import sys
from pathlib import Path
from typing import Any

from snnjax_jax_plugin import PLATFORM, _ending

# Another build of the library, for instance one with sanitizers.
_VARIABLE = "SNNJAX_IPU_MODEL"
_HINT = "build it with `make kernels` (about 4 minutes on 2 cores), or install snnjax where there is a C++ compiler"
_MAX_DEVICES = 64
_INTERNAL = 13  # as in absl::StatusCode

Give = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)


class Array(ctypes.Structure):
    """An array that a running program hands over."""

    _fields_ = (
        ("dtype", ctypes.c_int64),
        ("rank", ctypes.c_size_t),
        ("shape", ctypes.POINTER(ctypes.c_size_t)),
        ("data", ctypes.c_void_p),
    )


_Lower = ctypes.CFUNCTYPE(
    ctypes.c_int,
    *(ctypes.c_void_p, ctypes.c_size_t),  # program
    *(ctypes.c_void_p, ctypes.c_size_t),  # options
    *(ctypes.c_void_p, Give),
)
_CallBack = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.c_int64, ctypes.POINTER(Array), ctypes.c_size_t, ctypes.c_void_p, Give
)


class NotBuilt(RuntimeError):
    """No library was found, and none was named."""


def path() -> Path:
    """Where the library is looked for: in snnjax, which is found without being imported."""
    if named := os.environ.get(_VARIABLE):
        return Path(named)
    package = importlib.util.find_spec("snnjax")
    return Path(package.origin if package and package.origin else __file__).with_name("_ipu_model.so")


def missing() -> str:
    """One sentence that says that it is missing."""
    return f"There is no {path()}: {_HINT}"


def is_not_built() -> bool:
    """Whether no library was found, and none was named."""
    return not (os.environ.get(_VARIABLE) or path().exists())


def client_options() -> dict[str, str | int]:
    """The IPUs that the environment asks for; raises ValueError for invalid settings."""
    options: dict[str, str | int] = {"num_devices": _number("SNNJAX_IPU_DEVICES", 1, _MAX_DEVICES)}
    options["num_tiles"] = _number("SNNJAX_IPU_TILES", 0)
    if version := os.environ.get("SNNJAX_IPU_VERSION"):
        options["version"] = version
    return options


def _number(variable: str, default: int, most: int | None = None) -> int:
    text = os.environ.get(variable)
    if not text:
        return default
    if not (text.isascii() and text.isdigit()) or int(text) < 1 or (most is not None and int(text) > most):
        upper = f" and at most {most}" if most else ""
        raise ValueError(
            f"ipu: `{variable}` must be an integer of at least 1{upper}, got {text!r}. Unset it for {default or 'all'}"
        )
    return int(text)


def connect() -> None:
    """Give the plugin its Python functions; raises RuntimeError with one sentence if there is no plugin."""
    library = path()
    # With this interpreter the model compiles the codelets that a program adds from their sources.
    os.environ.setdefault("SNNJAX_PYTHON", sys.executable)
    if not library.exists():
        raise RuntimeError(missing())
    try:  # what is there may be no library, or that of another version of snnjax
        _connect(library)
    except (OSError, AttributeError) as error:
        raise RuntimeError(f"{library} cannot be loaded ({error}): {_HINT}") from error


@functools.cache
def _connect(library: Path) -> None:
    loaded = ctypes.CDLL(os.fspath(library))
    for name, function in (("snnjax_ipu_set_lowering", _lower), ("snnjax_ipu_set_callback", _call_back)):
        setter = getattr(loaded, name)
        setter.argtypes, setter.restype = (type(function),), None
        setter(function)
    loaded.snnjax_ipu_finish.argtypes, loaded.snnjax_ipu_finish.restype = (), None
    # A program that still runs may call back into Python.
    atexit.register(_ending.finish, PLATFORM, loaded.snnjax_ipu_finish)


@_Lower
def _lower(program: int, program_size: int, options: int, options_size: int, result: int, give: Any) -> int:
    """Nothing may be raised into C++: every error becomes a code and a message."""
    try:
        from snnjax.ipu.device import plugin

        code, text = plugin.lower(
            ctypes.string_at(program, program_size), ctypes.string_at(options, options_size)
        )
    except BaseException as error:
        code, text = _INTERNAL, _not_imported("compile", error)
    give(result, text, len(text))
    return code


@_CallBack
def _call_back(number: int, arrays: Any, num_arrays: int, result: int, give: Any) -> int:
    try:
        from snnjax.ipu.device import plugin

        code, text = plugin.call_back(number, arrays[:num_arrays])
    except BaseException as error:
        code, text = _INTERNAL, _not_imported("callback", error)
    give(result, text, len(text))
    return code


def _not_imported(op: str, error: BaseException) -> bytes:
    sentence = f"{type(error).__name__}: {error}".removesuffix(".")
    return (
        f"{op}: `snnjax` must be a package that can be imported, got {sentence}. Install it again.".encode()
    )
