"""Host callbacks of running programs, by number: `jax.debug.print` and similar functions."""

import collections
import secrets
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

# A program may be saved and loaded by another process, where a number must not be that of another function: each is
# drawn from so many that no two processes ever draw the same one.
_NUMBER_BITS = 63
# A program may still run after JAX has released it: the most recent callbacks stay alive.
_KEPT = 256


class Callback:
    """A function that one program calls; its number is valid while this object is alive."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.once: Callback | None = None  # the same for one partition of several
        self.number = secrets.randbits(_NUMBER_BITS)
        _CALLBACKS[self.number] = self
        _NEWEST.append(self)


_CALLBACKS: weakref.WeakValueDictionary[int, Callback] = weakref.WeakValueDictionary()
_NEWEST: collections.deque[Callback] = collections.deque(maxlen=_KEPT)


def of_first_partition(number: int) -> int:
    """The number of a function for all partitions, whose number it takes first: one call, and all get its results."""
    callback = _CALLBACKS.get(number)
    if callback is None:  # compiled in another process; the call will say so
        return number
    function = callback.function
    results: list[np.ndarray] = []

    def call(partition: np.ndarray, *arrays: np.ndarray) -> list[np.ndarray]:
        if partition == 0:
            results[:] = function(*arrays) or ()
        return results

    callback.once = callback.once or Callback(call)
    return callback.once.number


def call_back(number: int, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Call the function of a `callback` instruction with the contents of its operands.

    Raises `LookupError` if there is none, as in a process other than the one that compiled the program.
    """
    callback = _CALLBACKS.get(number)
    if callback is None:
        raise LookupError(
            f"callback: `number` must be that of a function of this process, got {number}. Compile the program here."
        )
    return list(callback.function(*arrays) or ())
