"""Interleaved measurement: in each round every alternative runs once, in a new random order."""

import math
import os
import random
import statistics
import sys
import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, TypeVar

# Runs something a number of times and returns the seconds of each run.
Timer = Callable[[int], float]
Name = TypeVar("Name", bound=Hashable)

# A turn is as many calls as take this long, so that neither the clock nor a cold cache dominates short calls.
MIN_SECONDS = 0.02
MAX_CALLS = 500
# Between two turns: threads that wait in a loop for their next task go to sleep.
PAUSE_SECONDS = 0.005
SEED = 0


def timer(run: Callable[..., Any], arguments: Callable[[], tuple[Any, ...]]) -> Timer:
    """Of a JAX function; `arguments` are made for each call, outside the measured time."""
    import jax

    def seconds(calls: int) -> float:
        prepared = [jax.block_until_ready(arguments()) for _ in range(calls)]
        start = time.perf_counter()
        for each in prepared:
            jax.block_until_ready(run(*each))
        return (time.perf_counter() - start) / calls

    return seconds


def measure(
    timers: Mapping[Name, Timer], rounds: int, min_seconds: float = MIN_SECONDS
) -> dict[Name, list[float]]:
    """Seconds per call of each timer in each round. Two turns before that compile and warm up."""
    calls = {}
    for name, seconds in timers.items():
        seconds(1)
        calls[name] = min(MAX_CALLS, max(1, math.ceil(min_seconds / max(seconds(1), 1e-9))))
    times: dict[Name, list[float]] = {name: [] for name in timers}
    order = list(timers)
    draw = random.Random(SEED)
    for _ in range(rounds):
        draw.shuffle(order)
        for name in order:
            time.sleep(PAUSE_SECONDS)
            times[name].append(timers[name](calls[name]))
    return times


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
