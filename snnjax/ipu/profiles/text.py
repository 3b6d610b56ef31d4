"""A profile as plain text."""

import numpy as np

from snnjax.ipu.profiles.costs import Costs
from snnjax.ipu.profiles.units import percent, quantity, size

# How many operations and codelets are listed; the rest are summed up.
_SHOWN = 24
_WIDTH = 44


def summary(profile: Costs) -> str:
    """Time by phase, operation and codelet, tiles, memory and energy; the first line says that it is modelled."""
    parts = (_head, _phases, _waiting, _tiles, _operations, _codelets)
    return "".join(f"{line}\n" for part in parts for line in part(profile))


def device(profile: Costs) -> str:
    """Which chips the program would run on."""
    data = profile.data
    return f"{data['ipus']} x {data['chip']}, {data['tiles_per_ipu']} tiles each, {data['clock_hz'] / 1e6:.1f} MHz"


def _head(profile: Costs) -> list[str]:
    time = quantity(profile.seconds, "s")
    return [
        f"IPU Model (not measured on hardware): {device(profile)}",
        f"Time: {profile.cycles:,} cycles, {time}{of_each_run(profile)}",
        *profile.notes,
    ]


def of_each_run(profile: Costs) -> str:
    """The addition to the time if there are several runs."""
    if profile.runs < 2:
        return ""
    return f"; {profile.runs:,} runs of {quantity(profile.seconds / profile.runs, 's')}"


def _phases(profile: Costs) -> list[str]:
    hertz, total = profile.data["clock_hz"], max(profile.cycles, 1)
    return [
        f"  {name:<10}{cycles:>16,} cycles {quantity(cycles / hertz, 's'):>10} {percent(cycles / total):>8}"
        for name, cycles in zip(profile.phases._fields, profile.phases, strict=True)
    ]


def _waiting(profile: Costs) -> list[str]:
    """Nothing if there is nobody to wait for."""
    shares = profile.waiting / max(profile.cycles, 1)
    if len(shares) < 2:
        return []
    each = ", ".join(percent(share) for share in shares[:_SHOWN])
    more = f" and {len(shares) - _SHOWN} more" if len(shares) > _SHOWN else ""
    return [f"Partitions wait for others {percent(shares.mean())} of the time on average: {each}{more}"]


def _tiles(profile: Costs) -> list[str]:
    exchange, energy = profile.exchange, profile.energy
    memory, limit = profile.tile_memory, profile.data["memory_per_tile"]
    fullest = int(np.argmax(memory))
    busy = profile.tile_utilisation
    return [
        f"Exchange: {size(exchange.bytes)} in {exchange.messages:,} messages, {size(exchange.link_bytes)} over links; "
        f"host: {size(profile.host_bytes)}",
        f"Tiles compute {percent(busy.mean())} of the time on average, the busiest {percent(busy.max())}, "
        f"{int(np.sum(busy == 0)):,} of {len(busy):,} never",
        f"Memory per tile: mean {size(memory.mean())}, most {size(memory[fullest])} (tile {fullest}) of {size(limit)}",
        f"Energy (an estimate): {quantity(energy.joules, 'J')} at {energy.watts:g} W: {energy.source}",
    ]


def _operations(profile: Costs) -> list[str]:
    lines = ["Operations (share of the time, runs, cycles: compute, exchange, sync, host):"]
    total = max(profile.cycles, 1)
    for each in profile.operations[:_SHOWN]:
        name = f"{each.name} ({each.where})" if each.where else each.name
        cycles = " ".join(f"{part:>11,}" for part in each.phases)
        lines.append(f"  {name:<{_WIDTH}} {percent(each.cycles / total):>7} {each.executions:>7,} {cycles}")
    rest = profile.operations[_SHOWN:]
    if rest:
        lines.append(f"  and {len(rest)} more, {percent(sum(each.cycles for each in rest) / total)}")
    return lines


def _codelets(profile: Costs) -> list[str]:
    lines = ["Codelets (count, mean and maximum cycles):"]
    listed = list(profile.codelets.items())[:_SHOWN]
    lines += [f"  {name}: {each.count:,}, {each.mean:,.1f}, {each.max:,}" for name, each in listed]
    rest = len(profile.codelets) - len(listed)
    lines += [f"  and {rest} more"] if rest else []
    return lines + [f"  {name}: of unknown cost, counted as 0 cycles" for name in profile.unknown_codelets]
