"""Why tiles do not compute all the time, where most of each loss arises, and what to do about it."""

from collections.abc import Sequence
from typing import NamedTuple

from snnjax.ipu.profiles.steps import OperationCost, Phases
from snnjax.ipu.profiles.units import amount, percent, size

WAITING, EXCHANGE, SYNC, HOST = "waiting", "exchange", "sync", "host"

_MEANING = {
    WAITING: "a tile has done its part of a compute set, or has none, and waits for the slowest",
    EXCHANGE: "tiles send and receive",
    SYNC: "tiles agree that a step is over",
    HOST: "arrays come from the host, or go there",
}
_NEXT = {
    WAITING: (
        "A larger batch, more time steps a call or wider layers give more tiles work; with fewer tiles "
        '(compiler_options={"ipu_tiles": ...}) as much time may take less hardware: snnjax.ipu.sweep tries them.'
    ),
    EXCHANGE: "Shorter lists (`capacity`), events in place of dense inputs, or fewer tiles to reach move less.",
    SYNC: "Steps are many and short: a larger batch, or more time steps a call, gives each more to do.",
    HOST: (
        "Keep arrays on the IPU: jax.device_put before the loop, donate what a step replaces, and read results "
        "together and rarely, since each request takes about 165 thousand cycles."
    ),
}


class Limit(NamedTuple):
    """A part of the time in which the average tile does not compute."""

    name: str  # "waiting", "exchange", "sync" or "host"
    cycles: float
    share: float  # of all cycles
    meaning: str
    where: str  # what most of it belongs to
    advice: str

    def __str__(self) -> str:
        most = f", most of it in {self.where}" if self.where else ""
        return f"{self.name} {percent(self.share)}: {self.meaning}{most}. {self.advice}"


def limits_of(
    phases: Phases, operations: Sequence[OperationCost], tile_cycles: float, tiles: int
) -> tuple[Limit, ...]:
    """What keeps the average tile from computing, the largest loss first, without those that cost nothing.

    Args:
        phases: the cycles of the program.
        operations: its operations.
        tile_cycles: cycles in which the average tile computes.
        tiles: their number.
    """
    losses = {
        WAITING: phases.compute - tile_cycles,
        EXCHANGE: phases.exchange,
        SYNC: phases.sync,
        HOST: phases.host,
    }
    total = max(sum(phases), 1)
    limits = [
        Limit(name, cycles, cycles / total, _MEANING[name], _largest(name, operations, tiles), _NEXT[name])
        for name, cycles in losses.items()
        if cycles > 0
    ]
    return tuple(sorted(limits, key=lambda limit: -limit.cycles))


def _lost(name: str, operation: OperationCost, tiles: int) -> float:
    if name != WAITING:
        return getattr(operation.phases, name)
    return operation.phases.compute - sum(step.tile_cycles for step in operation.steps) / max(tiles, 1)


def _largest(name: str, operations: Sequence[OperationCost], tiles: int) -> str:
    """The operation with most of a loss, and what tells how it comes about."""
    most = max(operations, key=lambda each: _lost(name, each, tiles), default=None)
    if most is None or _lost(name, most, tiles) <= 0:
        return ""
    place = f"{most.name} ({most.where})" if most.where else most.name
    if name == WAITING and most.steps:
        step = max(most.steps, key=lambda step: step.phases.compute - step.tile_cycles / max(tiles, 1))
        return f"{place}, where {step.name.split(' (')[0]} computes on {amount(step.tiles)} of {amount(tiles)} tiles"
    if name == SYNC:
        return f"{place}, in {amount(sum(step.executions for step in most.steps))} steps"
    return f"{place}, of {size(most.exchange.bytes)}"
