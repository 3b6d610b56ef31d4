"""How a program's time changes with the chip, the number of tiles and the number of IPUs, and what limits it."""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
from jaxtyping import PyTree

from snnjax._check import check_integer, fail
from snnjax.ipu.profiles.measure import measured
from snnjax.ipu.profiles.profile import Profile
from snnjax.ipu.profiles.units import percent, quantity, size

# The start of JAX's message when a program does not fit into memory.
_EXHAUSTED = "RESOURCE_EXHAUSTED"
_COMPUTE = "compute"


@dataclass(frozen=True)
class SweepRow:
    """A program on one machine."""

    chip: str
    tiles: int  # of each IPU
    ipus: int
    profile: Profile | None  # None if it does not fit

    @property
    def seconds(self) -> float:
        """The modelled time of a run on the chip, without the host."""
        return float("inf") if self.profile is None else self.profile.chip_seconds / self.profile.runs

    @property
    def limit(self) -> str:
        """The largest loss, such as "waiting"; "memory" if the program does not fit, "compute" if there is none."""
        if self.profile is None:
            return "memory"
        return next((limit.name for limit in self.profile.limits if limit.name != "host"), _COMPUTE)

    @property
    def shares(self) -> dict[str, float]:
        """The share of the chip's time in which the average tile computes, and of each loss."""
        if self.profile is None:
            return {}
        cycles = {limit.name: limit.cycles for limit in self.profile.limits if limit.name != "host"}
        cycles[_COMPUTE] = float(self.profile.tile_cycles.mean())
        total = max(sum(cycles.values()), 1)
        return {name: each / total for name, each in cycles.items()}


@dataclass(frozen=True)
class Sweep:
    """A program on several machines; as text, a table and what limits it on each."""

    rows: tuple[SweepRow, ...]

    @property
    def fastest(self) -> SweepRow:
        """The row with the least time on the chip; of equal ones that with the fewest tiles."""
        return min(self.rows, key=lambda row: (row.seconds, row.tiles * row.ipus))

    @property
    def first(self) -> SweepRow:
        """The first row that fits, with which others are compared."""
        return next((row for row in self.rows if row.profile is not None), self.rows[0])

    def __str__(self) -> str:
        lines = (_HEAD, _COLUMNS, *map(self._line, self.rows), self._verdict())
        return "".join(f"{line}\n" for line in lines)

    def _line(self, row: SweepRow) -> str:
        machine = f"{row.chip:<6}{row.ipus:>5}{row.tiles:>7}"
        if row.profile is None:
            return f"{machine}  does not fit"
        energy = row.profile.chip_energy.joules / row.profile.runs
        shares = sorted(row.shares.items(), key=lambda item: -item[1])
        return (
            f"{machine}{quantity(row.seconds, 's'):>10}{self.first.seconds / row.seconds:>8.2f}"
            f"{quantity(energy, 'J'):>10}{size(row.profile.tile_memory.max()):>14}"
            f"  {', '.join(f'{name} {percent(share)}' for name, share in shares)}"
        )

    def _verdict(self) -> str:
        """Of the fastest machine beside the first: the speed-up, and what keeps it from that of the tiles."""
        first, best = self.first, self.fastest
        if best.profile is None:
            return "It fits on none of them. Use more tiles or IPUs, a smaller batch, or fewer steps."
        sentence = f"Fastest: {best.ipus} x {best.chip} with {best.tiles:,} tiles"
        if best is not first:
            hardware = best.tiles * best.ipus / (first.tiles * first.ipus)
            sentence += (
                f", {first.seconds / best.seconds:.2f} times as fast as the first that fits, with {hardware:.2f} "
                "times its tiles"
            )
        # Of the time on the chip, as in the table.
        limits = [
            f"{limit._replace(share=best.shares[limit.name])}"
            for limit in best.profile.limits
            if limit.name == best.limit
        ]
        return f"{sentence}. What limits it: {limits[0] if limits else 'the arithmetic alone'}"


_HEAD = "IPU Model (not measured on hardware): a warm run, on the chip alone, and the shares of its time"
_COLUMNS = f"{'chip':<6}{'IPUs':>5}{'tiles':>7}{'time':>10}{'speed':>8}{'energy':>10}{'fullest tile':>14}"


def sweep(
    function: Callable[..., Any],
    *args: PyTree,
    chips: Sequence[str] = ("mk2", "bow"),
    tiles: Sequence[int] = (368, 736, 1472),
    ipus: Sequence[int] = (1,),
    **kwargs: PyTree,
) -> Sweep:
    """Profile a function on all combinations of chips, numbers of tiles and of IPUs, and say what limits it.

    Each is a compilation and two runs of the model, as in `profile`. A program on several IPUs is the same one with its
    tensors spread over all their tiles (``ipu_ipus``): for data parallelism see `jax.shard_map`.

    Args:
        function: anything that `jax.jit` accepts or returns.
        args: positional arguments of the function.
        chips: among "mk1", "mk2", "bow" and "c600".
        tiles: how many of each IPU to use.
        ipus: how many IPUs one program spans.
        kwargs: keyword arguments of the function.

    Raises:
        ValueError: if there is nothing to try, or a number is not positive.
        jax.errors.JaxRuntimeError: if the program does not compile, except for want of memory.

    Example:
        >>> import jax.numpy as jnp
        >>> from snnjax import ipu
        >>> found = ipu.sweep(lambda x: x @ x, jnp.ones((64, 64)), chips=["bow"], tiles=[2, 32])
        >>> [(row.tiles, row.limit) for row in found.rows], found.fastest.tiles
        ([(2, 'exchange'), (32, 'exchange')], 32)
        >>> "What limits it: exchange" in str(found)
        True
    """
    for name, values in (("chips", chips), ("tiles", tiles), ("ipus", ipus)):
        if not values:
            fail(f"sweep: `{name}` must hold at least one, got none. Leave it out for the default.")
    for name, numbers in (("tiles", tiles), ("ipus", ipus)):
        for number in numbers:
            check_integer("sweep", name, number, 1)
    rows = []
    for chip, count, own in itertools.product(chips, ipus, tiles):
        options = {"ipu_version": chip, "ipu_tiles": own, "ipu_ipus": count}
        rows.append(SweepRow(chip, own, count, _tried(function, args, kwargs, options)))
    return Sweep(tuple(rows))


def _tried(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], options: dict[str, Any]
) -> Profile | None:
    """None if it does not fit."""
    try:
        return measured(function, args, kwargs, 1, options)
    except jax.errors.JaxRuntimeError as error:
        if _EXHAUSTED not in str(error):
            raise
        return None
