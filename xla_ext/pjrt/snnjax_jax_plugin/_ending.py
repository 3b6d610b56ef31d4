"""How Python ends while threads compile for the platform.

A thread that Python does not wait for (a daemon) is ended where it next asks for Python's lock. While jaxlib compiles,
the thread that asked for it does so again and again, from frames of C++ that do not survive it: the process aborts, as
it would on every platform. So Python waits for such calls before it ends.
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


def finish(platform: str, drain: Callable[[], None]) -> None:
    """Wait for the calls of JAX that compile for the platform by now, then for what it runs."""
    calls = _compiling(platform)
    while any(call in _frames(sys._current_frames().get(thread)) for thread, call in calls.items()):
        time.sleep(_SECONDS)
    drain()


def _compiling(platform: str) -> dict[int, FrameType]:
    """The outermost frame of the call of JAX that compiles, by thread; of threads but this one."""
    calls = {}
    for thread, frame in sys._current_frames().items():
        inside = [each for each in _frames(frame) if each.f_code.co_filename.startswith(_JAX)]
        platforms = {_jax_private.compiles_for(each) for each in inside}
        if thread != threading.get_ident() and platform in platforms:
            calls[thread] = inside[-1]
    return calls


def _frames(frame: FrameType | None) -> Iterator[FrameType]:
    while frame is not None:
        yield frame
        frame = frame.f_back
