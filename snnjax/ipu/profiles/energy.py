"""An energy estimate: a board's power times the modelled time.

The energy of single instructions, memory accesses or exchanged words has not been published for these chips, nor has
the power of an idle one. So a program with idle tiles is charged like a busy one, and sparsity saves energy only by the
time that it saves.
"""

from typing import NamedTuple


class Energy(NamedTuple):
    """An energy estimate, and its basis."""

    joules: float
    watts: float  # of all IPUs together
    source: str


CONSTANT = "The power is taken as constant, so sparsity saves energy only by the time that it saves"
# Watts per IPU, including its share of the board.
_POWER = {
    "mk1": (157.5, "a C2 card with two IPUs takes 315 W (eeNews Europe on Dell's DSS 8440)"),
    "mk2": (
        250.0,
        "an IPU-M2000 with four IPUs typically takes 1 kW in training (S. Knowles at Hot Chips 33, eeNews Europe)",
    ),
    "bow": (312.5, "a Bow-2000 with four IPUs takes 1.25 kW on average (eeNews Europe, 2022)"),
    "c600": (185.0, "thermal design power of a card under typical workloads (Graphcore's C600 datasheet)"),
}


def estimate(chip: str, ipus: int, seconds: float) -> Energy:
    """Estimate the energy: ``joules = watts_per_ipu * ipus * seconds``.

    Example:
        >>> from snnjax.ipu.profiles import energy
        >>> energy.estimate("mk2", 2, 0.001).joules
        0.5
    """
    watts, source = _POWER[chip]
    return Energy(watts * ipus * seconds, watts * ipus, source)
