"""How Python ends while threads compile for the platform.

A thread that Python does not wait for (a daemon) is ended where it next asks for Python's lock. While jaxlib compiles,
the thread that asked for it does so ten times a second, from frames of C++ that do not survive it: the process aborts.
So Python waits for such calls before it ends.
"""

import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType

import jax

from snnjax_jax_plugin import _jax_private

_JAX = str(Path(jax.__file__).parent)
_SECONDS = 0.002  # between two looks


def finish(library: Callable[[], int]) -> None:
    """Wait for what the platform runs and compiles, and for the calls of JAX that asked for what it compiles."""
    calls = _compiling()
    if not library():
        return
    calls |= _compiling()  # begun meanwhile
    while any(call in _frames(sys._current_frames().get(thread)) for thread, call in calls.items()):
        time.sleep(_SECONDS)


def _compiling() -> dict[int, FrameType]:
    """The outermost frame of the call of JAX that compiles, by thread; of threads but this one."""
    calls = {}
    for thread, frame in sys._current_frames().items():
        inside = [each for each in _frames(frame) if each.f_code.co_filename.startswith(_JAX)]
        names = {each.f_code.co_filename for each in inside}
        if thread != threading.get_ident() and _jax_private.COMPILER in names:
            calls[thread] = inside[-1]
    return calls


def _frames(frame: FrameType | None) -> Iterator[FrameType]:
    while frame is not None:
        yield frame
        frame = frame.f_back
