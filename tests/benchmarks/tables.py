"""Tables of what is measured: columns and alternatives, each in a process of its own."""

import contextlib
import sys
from collections.abc import Mapping
from typing import NamedTuple

from tests.benchmarks import process, timing
from tests.benchmarks.plan import Plan
from tests.benchmarks.process import Held
from tests.benchmarks.timing import Program, Turn

SECONDS, MEGABYTES = "seconds", "MB"
# The pictures that a table can be part of.
SPEED, DENSITY, PRODUCTS, SCALING = "speed", "density", "products", "scaling"
# By column and alternative, the value of every round.
Cells = dict[tuple[str, str], list[float]]


class Table(NamedTuple):
    """A column, or all of them, is one interleaved run."""

    title: str
    cells: Cells  # in seconds or MB
    across: str = ""  # what the numbers are that the columns begin with
    unit: str = SECONDS
    picture: str = ""
    section: str = ""  # which yielded it
    cpu: Cells = {}  # noqa: RUF012 (never changed); seconds of all threads, where cells are those of a clock


# In the process of each program.
Programs = Mapping[tuple[str, str], Program]
Turns = dict[tuple[str, str], list[Turn]]


def sweep(
    plan: Plan, programs: Programs, rounds: int, interpreters: Mapping[str, str] | None = None
) -> Turns:
    """Column by column, an interleaved run each; an alternative has one process, for one program after the other."""
    turns: Turns = {}
    with contextlib.ExitStack() as stack:
        pythons = {name: (interpreters or {}).get(name, sys.executable) for _, name in programs}
        own = {name: stack.enter_context(process.opened(python)) for name, python in pythons.items()}
        for column in dict.fromkeys(column for column, _ in programs):
            names = [name for other, name in programs if other == column]
            for name in names:
                own[name].send(Held.hold, programs[column, name])
            for name in names:
                own[name].answer()
            timers = {(column, name): own[name].time for name in names}
            turns |= timing.measure(timers, rounds, plan.min_seconds)
    return turns


def measure(
    plan: Plan, programs: Programs, rounds: int, interpreters: Mapping[str, str] | None = None
) -> Turns:
    """The same with a process for each program."""
    turns: Turns = {}
    for column in dict.fromkeys(column for column, _ in programs):
        own = {key: program for key, program in programs.items() if key[0] == column}
        turns |= sweep(plan, own, rounds, interpreters)
    return turns


def table_of(title: str, turns: Turns, **rest) -> Table:
    wall = {key: [turn.wall for turn in values] for key, values in turns.items()}
    return Table(
        title, wall, cpu={key: [turn.cpu for turn in values] for key, values in turns.items()}, **rest
    )
