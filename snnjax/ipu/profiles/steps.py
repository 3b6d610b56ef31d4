"""The steps of a program, and the operation and the user's line that each step belongs to.

A step's name is ``operation/part (file.py:12)/part``; parts and the location may be missing. A stream's is that of the
argument or result.
"""

import functools
import itertools
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeVar

_NAME = re.compile(r"(?P<operation>[^/()]*)(?:/.*?)?(?: \((?P<where>[^()]*:\d+)\)(?:/.*)?)?")
# The streams of a program's arguments and results, by number.
_STREAM = re.compile(r"(?P<kept>kept )?(?P<what>argument|result) (?P<number>\d+)")
# Copies that share an exchange are one step, with all their names.
_BETWEEN_NAMES = ", "
# The names of snnjax's own operations in a compiled program.
_OWN = "snnjax_"
CONTROL = "control"


class Phases(NamedTuple):
    """Cycles of the tile clock by phase; the chip is in one phase at a time."""

    compute: int
    exchange: int  # between tiles, on the chip and over links
    sync: int
    host: int  # streams from and to the host


class Exchange(NamedTuple):
    """What tiles received from one another, or for a stream, what was transferred between host and device."""

    bytes: int
    link_bytes: int  # transferred between IPUs
    messages: int


Counts = TypeVar("Counts", Phases, Exchange)


def join(a: Counts, b: Counts) -> Counts:
    """Both together."""
    return type(a)(*(x + y for x, y in zip(a, b, strict=True)))


@dataclass(frozen=True)
class StepCost:
    """A compute set, a copy or a stream, over all its executions."""

    kind: str  # "compute set", "copy" or "stream"
    name: str
    operation: str
    where: str  # the user's line, "file.py:12", or ""
    position: int  # in the program
    executions: int
    phases: Phases
    exchange: Exchange
    tiles: int  # number of tiles that compute
    tile_cycles: int  # over all tiles and all executions
    codelets: tuple[tuple[str, int], ...] = ()  # vertex classes, and the cycles of all their vertices

    @property
    def cycles(self) -> int:
        """The sum over all phases."""
        return sum(self.phases)

    @property
    def balance(self) -> float:
        """Mean busy time of the tiles with vertices, relative to the slowest, so 1 when all take equally long."""
        possible = self.phases.compute * self.tiles
        return self.tile_cycles / possible if possible else 1.0


@dataclass(frozen=True)
class OperationCost:
    """The steps of one operation of the user's program on one line."""

    name: str
    where: str
    steps: tuple[StepCost, ...]
    phases: Phases
    exchange: Exchange  # including host streams

    @property
    def cycles(self) -> int:
        """The sum over all phases."""
        return sum(self.phases)

    @property
    def executions(self) -> int:
        """The executions of the step that ran most often."""
        return max((step.executions for step in self.steps), default=0)

    @property
    def tiles(self) -> int:
        """The tiles of the compute set on the most tiles."""
        return max((step.tiles for step in self.steps), default=0)

    @property
    def balance(self) -> float:
        """Mean busy time of the tiles with vertices, relative to the slowest of each compute set."""
        possible = sum(step.phases.compute * step.tiles for step in self.steps)
        return sum(step.tile_cycles for step in self.steps) / possible if possible else 1.0


def parse(name: str) -> tuple[str, str]:
    """Split a step's name into the operation and its location.

    Example:
        >>> from snnjax.ipu.profiles.steps import parse
        >>> parse("dot/partials (train.py:12)"), parse("copy"), parse("add (a.py:1), dot (a.py:1)")
        (('dot', 'train.py:12'), ('copy', ''), ('add + dot', 'a.py:1'))
    """
    names = [_parse_one(each) for each in name.split(_BETWEEN_NAMES)]
    names = [each for each in names if each[1]] or names
    operations = dict.fromkeys(operation.removeprefix(_OWN) for operation, _ in names)
    places = {where for _, where in names}
    return " + ".join(operations), places.pop() if len(places) == 1 else ""


def _parse_one(name: str) -> tuple[str, str]:
    match = _NAME.fullmatch(name)
    if match is None:
        return name, ""
    return match["operation"], match["where"] or ""


def _adopted(steps: Iterable["StepCost"]) -> Iterator["StepCost"]:
    """Steps of snnjax's own ops do not know the user's line: they belong to the neighbouring operation."""
    groups = [
        (known, list(group))
        for known, group in itertools.groupby(steps, lambda step: step.where != "" or step.kind == "stream")
    ]
    for index, (known, group) in enumerate(groups):
        if known:
            yield from group
            continue
        before = groups[index - 1][1][-1].name if index else ""
        after = groups[index + 1][1][0].name if index + 1 < len(groups) else ""
        beside = (before.split(_BETWEEN_NAMES)[-1], after.split(_BETWEEN_NAMES)[0])
        adopter = next((name for name in beside if name.startswith(_OWN)), None)
        operation, where = ("", "") if adopter is None else _parse_one(adopter)
        for step in group:
            changed = {"operation": operation.removeprefix(_OWN), "where": where}
            yield step if adopter is None else replace(step, **changed)


def steps_of(data: dict[str, Any]) -> tuple[StepCost, ...]:
    """The steps of a profile, in program order."""
    kinds = (("compute set", "compute_sets"), ("copy", "copies"), ("stream", "streams"))
    named = {"argument": data.get("arguments", []), "result": data.get("results", [])}
    steps = [_step(kind, each, named) for kind, name in kinds for each in data[name]]
    ran = sorted((step for step in steps if step.executions), key=lambda step: step.position)
    return tuple(_adopted(ran))


def operations_of(steps: Iterable[StepCost], total: Phases) -> tuple[OperationCost, ...]:
    """Steps by operation and line; cycles of `total` that belong to no step are control flow."""
    groups: dict[tuple[str, str], list[StepCost]] = {}
    for step in steps:
        groups.setdefault((step.operation, step.where), []).append(step)
    operations = [_operation(*key, group) for key, group in groups.items()]
    known = [sum(column) for column in zip(*(each.phases for each in operations), strict=True)] or [0] * 4
    rest = Phases(*(all_ - part for all_, part in zip(total, known, strict=True)))
    if any(rest):
        operations.append(OperationCost(CONTROL, "", (), rest, Exchange(0, 0, 0)))
    return tuple(sorted(operations, key=lambda each: -each.cycles))


def _operation(name: str, where: str, steps: list[StepCost]) -> OperationCost:
    phases = functools.reduce(join, (step.phases for step in steps))
    exchange = functools.reduce(join, (step.exchange for step in steps))
    return OperationCost(name, where, tuple(steps), phases, exchange)


def _stream(name: str, named: dict[str, list[str]]) -> str:
    """``argument params['layer_0'].weights``, ``result[0]`` or ``kept argument x``, of ``argument 0`` and so on."""
    found = _STREAM.fullmatch(name)
    if found is None:
        return name
    names, number = named[found["what"]], int(found["number"])
    known = names[number] if number < len(names) else ""
    if not known:
        return name
    return known if found["what"] == "result" else f"{found['kept'] or ''}argument {known}"


def _step(kind: str, data: dict[str, Any], named: dict[str, list[str]]) -> StepCost:
    """A step of a profile; what its kind does not have costs nothing."""
    name, exchange = data["name"], data["exchange"]
    if kind == "stream":
        name = _stream(name, named)
    phases = Phases(
        data.get("cycles", 0), exchange["cycles"], data["sync_cycles"], data.get("host_cycles", 0)
    )
    received = Exchange(*(exchange[field] for field in Exchange._fields))
    busy = data.get("tiles", 0), data.get("tile_cycles", 0)
    place = (name, "") if kind == "stream" else parse(name)
    codelets = tuple((each["name"], each["cycles"]) for each in data.get("codelets", ()))
    return StepCost(
        kind, name, *place, data["position"], data["executions"], phases, received, *busy, codelets
    )
