"""What a run on the IPU Model would have cost on the chip."""

import functools
import json
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Int


class Phases(NamedTuple):
    """Cycles of the tiles' clock; the chip is in one phase at a time."""

    compute: int
    exchange: int  # between tiles, on the chip and over links
    sync: int
    host: int  # streams from and to the host


@dataclass(frozen=True)
class Codelet:
    """The vertices of one class: how often one ran, and the cycles that it took alone on its tile."""

    count: int
    mean: float
    max: int


@dataclass(frozen=True)
class Profile:
    """What a run would have cost on the chip, as the model accounts for it; nothing was measured on hardware.

    Example:
        >>> import numpy as np
        >>> from snnjax.ipu import run_on_model
        >>> arrays = {"ids": np.array([[0, 2]]), "weights": np.ones((3, 8), np.float32)}
        >>> _, profile = run_on_model("spike_matmul", arrays, num_tiles=4)
        >>> profile.cycles == sum(profile.phases)
        True
        >>> profile.phases.compute > 0, profile.phases.host
        (True, 0)
        >>> for name, codelet in profile.codelets.items():
        ...     name, codelet.count, codelet.mean <= codelet.max
        ('snnjax::SpikeMatmul<float,float,short unsigned int>', 4, True)
        >>> profile.tile_memory.shape, bool(profile.tile_memory.max() < profile.data["memory_per_tile"])
        ((4,), True)
    """

    json: str  # everything that is known: the fields of xla_ext/ipu_model/include/ipu_model/profile.hpp
    summary: str  # the same as a table to read

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
    def seconds(self) -> float:
        """The same on the clock of the chip."""
        return self.cycles / self.data["clock_hz"]

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
    def tile_memory(self) -> Int[np.ndarray, " tiles"]:
        """Bytes in use on each tile: variables, vertices, their code, code and buffers of the exchange."""
        parts = ("variables", "vertices", "code", "exchange_code", "buffers")
        return np.array([sum(tile[part] for part in parts) for tile in self.data["tiles"]], np.int64)

    def __str__(self) -> str:
        return self.summary
