"""Interleaved measurement: in each round every alternative has its turn, in a new random order."""

import functools
import math
import os
import random
import statistics
import sys
import time
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar


class Turn(NamedTuple):
    """The seconds of a call, on average over those of a turn."""

    wall: float
    cpu: float  # of all threads of the process, which a busy machine changes less


# Runs something a number of times.
Timer = Callable[[int], Turn]
# Makes a timer in the process that calls it.
Program = Callable[[], Timer]
Name = TypeVar("Name", bound=Hashable)

# A turn is as many calls as take this long, so that the clock does not dominate short calls.
MIN_SECONDS = 0.02
MAX_CALLS = 500
# Between two turns: threads that wait in a loop for their next task go to sleep.
PAUSE_SECONDS = 0.005
SEED = 0


def turn(calls: Sequence[Callable[[], Any]]) -> Turn:
    """Of all calls but the first: it compiles, or wakes threads and fills caches after the turns of others."""
    calls[0]()
    start, cpu_start = time.perf_counter(), time.process_time()
    for call in calls[1:]:
        call()
    timed = len(calls) - 1
    return Turn((time.perf_counter() - start) / timed, (time.process_time() - cpu_start) / timed)


def timer(run: Callable[..., Any], arguments: Callable[[], tuple[Any, ...]]) -> Timer:
    """Of a JAX function; `arguments` are made for each call, outside the measured time."""
    import jax

    def call(given: tuple[Any, ...]) -> None:
        jax.block_until_ready(run(*given))

    def timed(calls: int) -> Turn:
        prepared = [jax.block_until_ready(arguments()) for _ in range(calls + 1)]
        return turn([functools.partial(call, given) for given in prepared])

    return timed


def measure(
    timers: Mapping[Name, Timer], rounds: int, min_seconds: float = MIN_SECONDS
) -> dict[Name, list[Turn]]:
    """A turn of each timer in each round. A short one before that says how many calls are long enough."""
    calls: dict[Name, int] = {}
    for name, timed in timers.items():
        calls[name] = min(MAX_CALLS, max(1, math.ceil(min_seconds / max(timed(1).wall, 1e-9))))
    turns: dict[Name, list[Turn]] = {name: [] for name in timers}
    for name in shuffled([*timers], rounds):
        time.sleep(PAUSE_SECONDS)
        turns[name].append(timers[name](calls[name]))
    return turns


def shuffled(names: Sequence[Name], rounds: int) -> Iterator[Name]:
    """All of them in every round, in a new order."""
    order, draw = list(names), random.Random(SEED)
    for _ in range(rounds):
        draw.shuffle(order)
        yield from order


def quartiles(values: Sequence[float]) -> tuple[float, float]:
    """The lower and the upper quartile; of one value, that value."""
    if len(values) == 1:
        return values[0], values[0]
    low, _, high = statistics.quantiles(values, n=4, method="inclusive")
    return low, high


def announce(title: str) -> None:
    """Say what comes next, and how busy the machine was in the last minute: above 0 before the start is noise."""
    say(f"load {os.getloadavg()[0]:.2f}  {title}")


def say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()
