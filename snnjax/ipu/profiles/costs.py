"""What a run on the IPU Model would have cost on the chip, as figures."""

import functools
import json
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from snnjax.ipu.profiles.energy import Energy, estimate
from snnjax.ipu.profiles.limits import Limit, limits_of
from snnjax.ipu.profiles.parts import PartCost, parts_of
from snnjax.ipu.profiles.steps import Exchange, OperationCost, Phases, StepCost, join, operations_of, steps_of

# JAX's name of a jitted lambda.
_LAMBDA = "_lambda"
# The kinds of tile memory that the model distinguishes.
MEMORY_KINDS = ("variables", "vertices", "code", "exchange_code", "buffers", "stacks")


@dataclass(frozen=True)
class Codelet:
    """The vertices of one class: the number of executions, and the cycles of one alone on its tile."""

    count: int
    mean: float
    max: int


class LiveMemory(NamedTuple):
    """The live memory while one operation of a program runs."""

    name: str
    bytes: int  # of all tiles
    tile_bytes: int  # of the fullest tile


@dataclass(frozen=True)
class Costs:
    """The figures of a profile, which texts, pages and figures show."""

    # All data: the fields of xla_ext/ipu_model/include/ipu_model/profile.hpp, and for a jitted program its name
    # (`program`), the names of its arguments and results (`arguments`, `results`), its number of runs (`runs`), the
    # live memory at each operation (`live_memory`), which ops run on their references (`notes`), and if `profile` made
    # it, what the run before these took (`first_run`).
    json: str

    @functools.cached_property
    def data(self) -> dict[str, Any]:
        """The decoded JSON."""
        return json.loads(self.json)

    @property
    def phases(self) -> Phases:
        """Cycles by phase."""
        return Phases(*(self.data["cycles"][phase] for phase in Phases._fields))

    @property
    def cycles(self) -> int:
        """All cycles of the tile clock, from the start of the first run to the end of the last one."""
        return sum(self.phases)

    @property
    def runs(self) -> int:
        """The number of runs in this profile."""
        return self.data.get("runs", 1)

    @property
    def program(self) -> str:
        """The name of the user's function; of a lambda its line is told, too."""
        name = self.data.get("program", "").removeprefix("jit_")
        if name != _LAMBDA:
            return name
        line = next((step.where for step in self.steps if step.where), "")
        return f"lambda ({line})" if line else "lambda"

    @property
    def notes(self) -> tuple[str, ...]:
        """Which ops of the library run on their references, because they are faster there, or lack codelets."""
        return tuple(self.data.get("notes", ()))

    @property
    def seconds(self) -> float:
        """The modelled time, `cycles` divided by the clock frequency; with the host."""
        return self.cycles / self.data["clock_hz"]

    @property
    def chip_cycles(self) -> int:
        """Those of the chip itself, without the streams from and to the host."""
        return self.cycles - sum(step.cycles for step in self.steps if step.kind == "stream")

    @property
    def chip_seconds(self) -> float:
        """The modelled time of the chip itself."""
        return self.chip_cycles / self.data["clock_hz"]

    @property
    def first_run(self) -> tuple[Phases, int] | None:
        """Of a warm `profile`, the cycles of the run before those counted, and the bytes that the host moved for it."""
        first = self.data.get("first_run")
        return first and (Phases(*first["cycles"]), first["host_bytes"])

    @functools.cached_property
    def steps(self) -> tuple[StepCost, ...]:
        """Compute sets, copies and streams in program order; a loop's body appears once."""
        return steps_of(self.data)

    @functools.cached_property
    def operations(self) -> tuple[OperationCost, ...]:
        """The steps of each operation combined, the most expensive first; their cycles add up to `cycles`."""
        return operations_of(self.steps, self.phases)

    @property
    def lines(self) -> dict[str, Phases]:
        """Cycles by line of the user's program, the most expensive first; "" holds those that belong to no line."""
        by_line: dict[str, Phases] = {}
        for each in self.operations:
            by_line[each.where] = join(by_line.get(each.where, Phases(0, 0, 0, 0)), each.phases)
        return dict(sorted(by_line.items(), key=lambda item: -sum(item[1])))

    @functools.cached_property
    def parts(self) -> tuple[PartCost, ...]:
        """The cycles of each `lif_network` by layer and purpose, in the order in which they begin.

        Where layers or purposes share compute sets, the cycles of a set are divided as those of its tiles are.
        """
        return parts_of(self.steps)

    @functools.cached_property
    def limits(self) -> tuple[Limit, ...]:
        """What keeps the average tile from computing, where it arises and what to do, the largest loss first."""
        return limits_of(
            self.phases, self.operations, float(self.tile_cycles.mean()), len(self.data["tiles"])
        )

    @property
    def exchange(self) -> Exchange:
        """The exchange between tiles, without host streams."""
        received = (step.exchange for step in self.steps if step.kind != "stream")
        return functools.reduce(join, received, Exchange(0, 0, 0))

    @property
    def host_bytes(self) -> int:
        """Bytes transferred from and to the host."""
        return sum(step.exchange.bytes for step in self.steps if step.kind == "stream")

    @property
    def codelets(self) -> dict[str, Codelet]:
        """The cost of each vertex class, the most expensive first, without `unknown_codelets`."""
        known = (each for each in self.data["codelets"] if each["name"] not in self.unknown_codelets)
        return {each["name"]: Codelet(each["count"], each["mean"], each["max"]) for each in known}

    @property
    def unknown_codelets(self) -> list[str]:
        """Vertex classes that ran without a known cost and are counted as 0 cycles."""
        return self.data["unknown_codelets"]

    @property
    def waiting(self) -> Int[np.ndarray, " partitions"]:
        """Cycles in which each partition of the program (as a rule one IPU) has nothing to do while others work.

        All run one program at the same time. A partition waits while others take a branch that it does not take, go
        through a loop more often, or compute longer, for instance because their lists hold more spikes. So it waits in
        the bubble of `snnjax.train.pipeline_loss`.
        """
        return np.array(self.data["waiting"], np.int64)

    @property
    def tile_cycles(self) -> Int[np.ndarray, " tiles"]:
        """Cycles in which each tile computed."""
        return np.array([tile["cycles"] for tile in self.data["tiles"]], np.int64)

    @property
    def tile_utilisation(self) -> Float[np.ndarray, " tiles"]:
        """The share of all cycles in which each tile computed."""
        return self.tile_cycles / max(self.cycles, 1)

    @property
    def tile_memory_by_kind(self) -> dict[str, Int[np.ndarray, " tiles"]]:
        """Bytes on each tile for variables, vertices, their code, exchange code and buffers, and stacks of workers."""
        tiles = self.data["tiles"]
        return {kind: np.array([tile[kind] for tile in tiles], np.int64) for kind in MEMORY_KINDS}

    @property
    def tile_memory(self) -> Int[np.ndarray, " tiles"]:
        """Bytes in use on each tile, of all kinds."""
        return np.sum(list(self.tile_memory_by_kind.values()), axis=0)

    @property
    def live_memory(self) -> tuple[LiveMemory, ...]:
        """The live memory at each operation, in program order; empty if no memory is reused over time."""
        rows = self.data.get("live_memory", [])
        return tuple(LiveMemory(row["name"], row["bytes"], row["tile_bytes"]) for row in rows)

    @property
    def idle_tiles(self) -> int:
        """The number of tiles that never compute."""
        return int(np.sum(self.tile_cycles == 0))

    @property
    def energy(self) -> Energy:
        """An estimate, the published power of boards with this chip times the modelled time; with the host's part."""
        return estimate(self.data["chip"], self.data["ipus"], self.seconds)

    @property
    def chip_energy(self) -> Energy:
        """The same of `chip_seconds`."""
        return estimate(self.data["chip"], self.data["ipus"], self.chip_seconds)
