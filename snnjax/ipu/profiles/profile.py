"""What a run on the IPU Model would have cost on the chip."""

import functools
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from snnjax._check import fail
from snnjax.ipu.profiles import energy, figures, page, text
from snnjax.ipu.profiles.steps import Exchange, OperationCost, Phases, StepCost, join, operations_of, steps_of

# Kinds of what lies in a tile's memory, as the model tells them apart.
MEMORY_KINDS = ("variables", "vertices", "code", "exchange_code", "buffers")


@dataclass(frozen=True)
class Codelet:
    """The vertices of one class: how often one ran, and the cycles that it took alone on its tile."""

    count: int
    mean: float
    max: int


class LiveMemory(NamedTuple):
    """What is alive while one operation of a program runs."""

    name: str
    bytes: int  # of all tiles
    tile_bytes: int  # of the fullest tile


@dataclass(frozen=True)
class Profile:
    """What a run would have cost on the chip, as the model accounts for it; nothing was measured on hardware.

    The chip is in one phase at a time: ``cycles = compute + exchange + sync + host``, of a tile's clock.

    Example:
        >>> import jax.numpy as jnp
        >>> from snnjax import ipu
        >>> profile = ipu.profile(lambda x: 2 * x + 1, jnp.arange(8.0))
        >>> profile.cycles == sum(profile.phases) == sum(each.cycles for each in profile.operations)
        True
        >>> for name, codelet in profile.codelets.items():
        ...     name.startswith("snnjax::"), codelet.count > 0, codelet.mean <= codelet.max
        (True, True, True)
        >>> bool(profile.tile_memory.max() < profile.data["memory_per_tile"])
        True
        >>> "not measured on hardware" in str(profile), profile.html().startswith("<!DOCTYPE html>")
        (True, True)
    """

    # Everything known: the fields of xla_ext/ipu_model/include/ipu_model/profile.hpp, and of a jitted program its
    # name (`program`), how often it ran (`runs`) and what is alive at each operation (`live_memory`).
    json: str

    @functools.cached_property
    def data(self) -> dict[str, Any]:
        """What the JSON says."""
        return json.loads(self.json)

    @property
    def phases(self) -> Phases:
        """Cycles by phase."""
        return Phases(*(self.data["cycles"][phase] for phase in Phases._fields))

    @property
    def cycles(self) -> int:
        """All cycles of a tile's clock from the first program's begin to the last one's end."""
        return sum(self.phases)

    @property
    def runs(self) -> int:
        """How many runs are counted together."""
        return self.data.get("runs", 1)

    @property
    def seconds(self) -> float:
        """The same on the clock of the chip."""
        return self.cycles / self.data["clock_hz"]

    @functools.cached_property
    def steps(self) -> tuple[StepCost, ...]:
        """Compute sets, copies and streams in the order of the program; a loop's body stands there once."""
        return steps_of(self.data)

    @functools.cached_property
    def operations(self) -> tuple[OperationCost, ...]:
        """The steps of each operation of the program together, the costliest first; their cycles add up to all."""
        return operations_of(self.steps, self.phases)

    @property
    def lines(self) -> dict[str, Phases]:
        """Cycles by the line of the user's program, the costliest first; "" is what belongs to none."""
        by_line: dict[str, Phases] = {}
        for operation in self.operations:
            by_line[operation.where] = join(
                by_line.get(operation.where, Phases(0, 0, 0, 0)), operation.phases
            )
        return dict(sorted(by_line.items(), key=lambda item: -sum(item[1])))

    @property
    def exchange(self) -> Exchange:
        """What went from tile to tile; streams of the host are not part of it."""
        moved = (step.exchange for step in self.steps if step.kind != "stream")
        return functools.reduce(join, moved, Exchange(0, 0, 0))

    @property
    def host_bytes(self) -> int:
        """What went from and to the host."""
        return sum(step.exchange.bytes for step in self.steps if step.kind == "stream")

    @property
    def codelets(self) -> dict[str, Codelet]:
        """What each class of vertices took, the costliest first; not those of `unknown_codelets`."""
        known = (each for each in self.data["codelets"] if each["name"] not in self.unknown_codelets)
        return {each["name"]: Codelet(each["count"], each["mean"], each["max"]) for each in known}

    @property
    def unknown_codelets(self) -> list[str]:
        """Classes of vertices that ran without a known cost, and are counted as nothing."""
        return self.data["unknown_codelets"]

    @property
    def counted_codelets(self) -> list[str]:
        """Classes of vertices whose cost was counted in their compiled code: an estimate."""
        return self.data["counted_codelets"]

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
        """Bytes on each tile for variables, vertices, their code, and the code and buffers of the exchange."""
        tiles = self.data["tiles"]
        return {kind: np.array([tile[kind] for tile in tiles], np.int64) for kind in MEMORY_KINDS}

    @property
    def tile_memory(self) -> Int[np.ndarray, " tiles"]:
        """Bytes in use on each tile, of all kinds."""
        return np.sum(list(self.tile_memory_by_kind.values()), axis=0)

    @property
    def live_memory(self) -> tuple[LiveMemory, ...]:
        """What is alive at each operation, in the program's order; empty where no memory is shared over time."""
        rows = self.data.get("live_memory", [])
        return tuple(LiveMemory(row["name"], row["bytes"], row["tile_bytes"]) for row in rows)

    @property
    def energy(self) -> energy.Energy:
        """An estimate, the power that boards of this chip are said to take times the modelled time."""
        return energy.estimate(self.data["chip"], self.data["ipus"], self.seconds)

    def html(self) -> str:
        """One page that shows all of it, and asks for nothing from elsewhere."""
        return page.render(self)

    def figures(self) -> dict[str, Any]:
        """Pictures of it by name, as matplotlib's ``Figure``."""
        return figures.draw(self)

    def save(self, path: str | Path) -> None:
        """Write it to a file that ends in .html, .json or .txt.

        Raises:
            ValueError: for another ending.
        """
        writers: dict[str, Callable[[], str]] = {
            ".html": self.html,
            ".json": lambda: self.json,
            ".txt": lambda: str(self),
        }
        ending = Path(path).suffix
        if ending not in writers:
            way_out = "Figures of figures() have a savefig of their own"
            fail("Profile.save", "path", f"end in one of {', '.join(writers)}", repr(ending), way_out)
        Path(path).write_text(writers[ending](), encoding="utf-8")

    def __str__(self) -> str:
        return text.summary(self)
