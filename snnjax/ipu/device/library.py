"""The shared library of the IPU Model and the plugin, for direct calls from snnjax; not loaded on import."""

import ctypes

from snnjax_jax_plugin import _wire


def missing() -> str | None:
    """None if the library is there, else a sentence that says why not."""
    try:
        _wire.load()
    except RuntimeError as error:
        return str(error)
    return None


def profile_of(fingerprint: str, *, reset: bool) -> str:
    """The cost of all runs of a loaded program since the last reset, as JSON; waits for runs in progress.

    Raises ValueError if no program has that fingerprint, or if called in a callback of a run, which would deadlock.
    """
    given: list[bytes] = []
    give = _wire.Give(lambda _, text, size: given.append(ctypes.string_at(text, size)))
    name = fingerprint.encode()
    code = _wire.load().snnjax_ipu_profile(name, len(name), reset, None, give)
    text = given[0].decode()
    if code == _wire.INVALID_ARGUMENT:
        raise ValueError(text)
    if code != _wire.DONE:
        raise RuntimeError(text)
    return text
