"""What the clients of the plugin are told, and the Python functions that it calls.

What they do is in `snnjax.ipu.device.plugin`, imported when the first program is compiled.
"""

import atexit
import ctypes
import functools
import os
import sys
from typing import Any

from snnjax_jax_plugin import _wire

_MAX_DEVICES = 64


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
    # With this interpreter the model compiles the codelets that a program adds from their sources.
    os.environ.setdefault("SNNJAX_PYTHON", sys.executable)
    _connect(_wire.load())


@functools.cache
def _connect(loaded: Any) -> None:
    loaded.snnjax_ipu_set_lowering(_lower)
    loaded.snnjax_ipu_set_callback(_call_back)
    atexit.register(loaded.snnjax_ipu_finish)  # waits for what runs, which may call back into Python


@_wire.Lower
def _lower(
    program: int, program_size: int, options: int, options_size: int, attempt: int, result: int, give: Any
) -> int:
    """Nothing may be raised into C++: every error becomes a code and a message."""
    try:
        from snnjax.ipu.device import plugin

        code, text = plugin.lower(
            ctypes.string_at(program, program_size), ctypes.string_at(options, options_size), attempt
        )
    except BaseException as error:
        code, text = _wire.INTERNAL, _not_imported("compile", error)
    give(result, text, len(text))
    return code


@_wire.CallBack
def _call_back(number: int, arrays: Any, num_arrays: int, result: int, give: Any) -> int:
    try:
        from snnjax.ipu.device import plugin

        code, text = plugin.call_back(number, arrays[:num_arrays])
    except BaseException as error:
        code, text = _wire.INTERNAL, _not_imported("callback", error)
    give(result, text, len(text))
    return code


def _not_imported(op: str, error: BaseException) -> bytes:
    sentence = f"{type(error).__name__}: {error}".removesuffix(".")
    return (
        f"{op}: `snnjax` must be a package that can be imported, got {sentence}. Install it again.".encode()
    )
