"""An estimate of energy: a board's power times the modelled time.

Energies of single instructions, memory accesses or exchanged words have not been published for these chips, so a
program that keeps its tiles idle is charged like a busy one.
"""

from typing import NamedTuple


class Energy(NamedTuple):
    """An estimate, and what it rests on."""

    joules: float
    watts: float  # of all IPUs
    source: str


# Watts an IPU, with its share of the board.
_POWER = {
    "mk1": (157.5, "a C2 card of two takes 315 W (eeNews Europe on Dell's DSS 8440)"),
    "mk2": (
        250.0,
        "an IPU-M2000 of four typically takes 1 kW in training (S. Knowles at Hot Chips 33, eeNews Europe)",
    ),
    "bow": (312.5, "a Bow-2000 of four takes 1.25 kW on average (eeNews Europe, 2022)"),
    "c600": (185.0, "thermal design power of a card under typical workloads (Graphcore's C600 datasheet)"),
}


def estimate(chip: str, ipus: int, seconds: float) -> Energy:
    """``joules = watts an IPU * ipus * seconds``.

    Example:
        >>> from snnjax.ipu.profiles import energy
        >>> energy.estimate("mk2", 2, 0.001).joules
        0.5
    """
    watts, source = _POWER[chip]
    return Energy(watts * ipus * seconds, watts * ipus, source)
