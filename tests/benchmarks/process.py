"""Processes that measure: each holds one program, as the process of a user does, and waits while others run.

Programs that share a process share its heap: what one frees, the next finds mapped. This file needs no package, so that
other libraries may have an interpreter of their own.

    python -m tests.benchmarks.process     # pickled messages (method, argument) come in, pickled answers go out
"""

import contextlib
import os
import pickle
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

from tests.benchmarks.timing import Program, Timer, Turn

ROOT = Path(__file__).parents[2]
Answer = TypeVar("Answer")


# The allocator keeps a heap for each thread; a block is reused once all of them have held one, after some 20 calls.
WARM_UP_SECONDS = 1.0

# Only errors of XLA: with `snnjax.compiler_options` it warns, many times, of each array above the size of a block.
QUIET = {"TF_CPP_MIN_LOG_LEVEL": "2"}


def environment() -> dict[str, str]:
    """Without a compilation cache, which would make the first call look fast; quiet, whatever level JAX has set."""
    own = {name: text for name, text in os.environ.items() if name != "JAX_COMPILATION_CACHE_DIR"}
    return {**own, **QUIET}


class Process:
    """A process that does what it is sent: first `send`, then `answer`, so that several can prepare at a time."""

    def __init__(self, python: str = sys.executable) -> None:
        command = [python, "-m", "tests.benchmarks.process"]
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(command, cwd=ROOT, env=environment(), stdin=pipe, stdout=pipe)

    def send(self, method: Callable[["Held", Any], Any], argument) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # then there is no answer either
            pickle.dump((method.__name__, argument), self._process.stdin)
            self._process.stdin.flush()

    def answer(self):
        assert self._process.stdout is not None
        try:
            return pickle.load(self._process.stdout)
        except EOFError:
            raise RuntimeError("a process of the benchmarks ended early; its error stands above") from None

    def time(self, calls: int) -> Turn:
        """The timer of the program that it holds."""
        self.send(Held.time, calls)
        return self.answer()

    def close(self) -> None:
        with contextlib.suppress(BrokenPipeError):
            self._process.communicate()


@contextlib.contextmanager
def opened(python: str = sys.executable) -> Iterator[Process]:
    """A process that ends with the block."""
    process = Process(python)
    try:
        yield process
    finally:
        process.close()


def ask(function: Callable[[], Answer]) -> Answer:
    """What the function returns in a new process; both are pickled."""
    with opened() as process:
        process.send(Held.ask, function)
        return process.answer()


class Held:
    """The other side of a process."""

    timer: Timer

    def ask(self, function: Callable[[], Answer]) -> Answer:
        return function()

    def hold(self, program: Program) -> None:
        """Make the timer of a program, in place of the one before; compile it and run it until its heap has grown."""
        self.timer = program()
        self.timer(1)
        start = time.perf_counter()
        while time.perf_counter() - start < WARM_UP_SECONDS:
            self.timer(1)

    def time(self, calls: int) -> Turn:
        return self.timer(calls)


def serve() -> None:
    """Answer messages until there are no more."""
    # What a library prints goes elsewhere.
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    held = Held()
    for method, argument in messages():
        pickle.dump(getattr(held, method)(argument), answers)
        answers.flush()


def messages() -> Iterator[tuple[str, Any]]:
    while True:
        try:
            yield pickle.load(sys.stdin.buffer)
        except EOFError:
            return


if __name__ == "__main__":
    serve()
