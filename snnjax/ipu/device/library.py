"""The shared library of the IPU Model and the plugin, for direct calls from snnjax; not loaded on import."""

import ctypes
import functools
import os
from typing import Any

from snnjax_jax_plugin import _library as plugin

# Return codes of calls: an ErrorCode of ``xla_ext/error.hpp``, numbered as in absl::StatusCode.
DONE, INVALID_ARGUMENT, UNIMPLEMENTED, INTERNAL = 0, 3, 12, 13


def missing() -> str | None:
    """None if the platform is available, else a sentence that says why not."""
    try:
        plugin.connect()
    except RuntimeError as error:
        return str(error)
    return None


def profile_of(fingerprint: str, *, reset: bool) -> str:
    """The cost of all runs of a loaded program since the last reset, as JSON; waits for runs in progress.

    Raises ValueError if no program has that fingerprint, or if called in a callback of a run, which would deadlock.
    """
    given: list[bytes] = []
    give = plugin.Give(lambda _, text, size: given.append(ctypes.string_at(text, size)))
    name = fingerprint.encode()
    code = _load().snnjax_ipu_profile(name, len(name), reset, None, give)
    text = given[0].decode()
    if code == INVALID_ARGUMENT:
        raise ValueError(text)
    if code != DONE:
        raise RuntimeError(text)
    return text


@functools.cache
def _load() -> Any:
    """The library, once a client has loaded it."""
    loaded = ctypes.CDLL(os.fspath(plugin.path()))
    text = (ctypes.c_char_p, ctypes.c_size_t)
    loaded.snnjax_ipu_profile.argtypes = (*text, ctypes.c_int32, ctypes.c_void_p, plugin.Give)
    return loaded
