"""The compiled kernels: one shared library of XLA FFI handlers, which only this module loads and calls.

Nothing is loaded on import: the first program that could use a kernel calls `missing`.
"""

import ctypes
import functools
import os
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import jax
from jax import Array

from snnjax import _schema

# Each name is that of a primitive, of the handler in the library, and of the custom call in the program.
TARGETS = (
    *(
        f"snnjax_{op}{which}"
        for op in _schema.PRODUCTS
        for which in ("", "_spikes_backward", "_weights_backward")
    ),
    "snnjax_select_spikes",
    "snnjax_select_spikes_backward",
    "snnjax_delay_spikes",
    "snnjax_delay_spikes_backward",
    "snnjax_delayed_spike_matmul",
    "snnjax_delayed_spike_matmul_spikes_backward",
    "snnjax_delayed_spike_matmul_weights_backward",
    "snnjax_moments",
    "snnjax_moments_backward",
    "snnjax_pool_spikes",
    "snnjax_integer_layer",
    "snnjax_connect",
    "snnjax_simulate",
    "snnjax_lif_network",
    "snnjax_lif_network_backward",
)

# The path of another build of the library, for instance one with sanitizers.
_VARIABLE = "SNNJAX_CPU_KERNELS"
_SUFFIX = ".dll" if sys.platform == "win32" else ".so"
_HINT = (
    "in a clone, build it with `make kernels`; else install snnjax again: wheels for Linux (x86-64, aarch64) and macOS "
    "(arm64) have it, and elsewhere it takes a C++20 compiler"
)


@functools.cache
def missing() -> str | None:
    """None if the library is loaded and its handlers are registered, else a sentence that says why not."""
    path = _path()
    if not path.exists():
        return f"There is no {path}: {_HINT}"
    try:  # the file may not be a library, or belong to another version of snnjax
        library = ctypes.CDLL(os.fspath(path))
        handlers = {target: _handlers(library, target) for target in TARGETS}
        built = tuple((ctypes.c_int * 2).in_dll(library, "snnjax_api_version"))
        table = ctypes.c_char_p.in_dll(library, "snnjax_schema").value or b""
    except (OSError, AttributeError, ValueError) as error:
        return f"{path} cannot be loaded ({error}): {_HINT}"
    newest = _api_version()
    # Older handlers run in a newer jaxlib. Newer ones must not even be registered: an older jaxlib then fails to set
    # up the CPU at all.
    if built[0] != newest[0] or built > newest:
        versions = [".".join(map(str, version)) for version in (built, newest)]
        return f"{path} was built for XLA FFI {versions[0]}, and jaxlib has {versions[1]}: {_HINT}"
    if table.decode() != schema():
        return f"{path} was built with other tables of arrays ({table.decode()}, not {schema()}): {_HINT}"
    for target, stages in handlers.items():
        jax.ffi.register_ffi_target(target, stages, platform="cpu")
    return None


def _handlers(library: ctypes.CDLL, target: str) -> dict[str, Any]:
    """By stage: attributes are read when a program is compiled, and what they say is kept with it."""
    stages = {"instantiate": f"{target}_instantiate", "execute": target}
    return {stage: jax.ffi.pycapsule(getattr(library, name)) for stage, name in stages.items()}


@functools.cache
def schema() -> str:
    """The digest of the tables from which C++ was generated; libraries, codelets and programs carry it."""
    return _schema.digest()


def instruction_set() -> str:
    """The instruction set of the kernels on this machine, such as `avx2`; requires that nothing is `missing`."""
    named = ctypes.CDLL(os.fspath(_path())).snnjax_instruction_set  # the library is loaded already
    named.restype = ctypes.c_char_p
    return named().decode()


def _path() -> Path:
    return Path(os.environ.get(_VARIABLE) or Path(__file__).with_name("_cpu_kernels").with_suffix(_SUFFIX))


def _api_version() -> tuple[int, int]:
    """The FFI version of jaxlib according to its header: (major, minor)."""
    header = Path(jax.ffi.include_dir(), "xla", "ffi", "api", "c_api.h").read_text(encoding="utf-8")
    major, minor = (re.search(rf"#define XLA_FFI_API_{part} (\d+)", header) for part in ("MAJOR", "MINOR"))
    return (int(major[1]), int(minor[1])) if major and minor else (0, 0)


def call(
    target: str,
    operands: Sequence[Array],
    results: Sequence[Any],
    aliases: Mapping[int, int] | None = None,
    **attributes: Any,
) -> list[Array]:
    """The results of a handler, shaped as `results`; `attributes` are NumPy arrays and strings.

    `aliases` gives, by operand, the result of the same shape that may be written over it: XLA passes a copy of the
    operand if it is needed afterwards.
    """
    called = jax.ffi.ffi_call(target, tuple(results), input_output_aliases=dict(aliases or {}))
    return list(called(*operands, **attributes))
