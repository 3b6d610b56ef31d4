"""A profile as plain text."""

import numpy as np

from snnjax.ipu.profiles.costs import Costs
from snnjax.ipu.profiles.energy import CONSTANT
from snnjax.ipu.profiles.units import percent, quantity, size

# How many operations and codelets are listed; the rest are summed up.
_SHOWN = 24
_WIDTH = 44


def summary(profile: Costs) -> str:
    """Time by phase, operation and codelet, tiles, memory and energy; the first line says that it is modelled."""
    parts = (_head, _phases, _waiting, _tiles, _limits, _operations, _parts, _codelets)
    return "".join(f"{line}\n" for part in parts for line in part(profile))


def device(profile: Costs) -> str:
    """Which chips the program would run on."""
    data = profile.data
    return f"{data['ipus']} x {data['chip']}, {data['tiles_per_ipu']} tiles each, {data['clock_hz'] / 1e6:.1f} MHz"


def _head(profile: Costs) -> list[str]:
    name = f"{profile.program} on " if profile.program else ""
    chip, all_ = (
        f"{round(cycles / profile.runs):,} cycles, {quantity(seconds / profile.runs, 's')}, "
        f"{quantity(energy.joules / profile.runs, 'J')}"
        for cycles, seconds, energy in (
            (profile.chip_cycles, profile.chip_seconds, profile.chip_energy),
            (profile.cycles, profile.seconds, profile.energy),
        )
    )
    return [
        f"IPU Model (not measured on hardware): {name}{device(profile)}",
        f"Time, {of_a_run(profile)}: {chip} on the chip; with the host {all_}",
        *first_run(profile),
        *of_all_runs(profile),
        *profile.notes,
    ]


def of_a_run(profile: Costs) -> str:
    """What the figures at the top are of."""
    mean = f", the mean of {profile.runs:,}" if profile.runs > 1 else ""
    return f"a {'warm ' if profile.first_run else ''}run{mean}"


def of_all_runs(profile: Costs) -> list[str]:
    """What the other figures are of, if that is not the one run."""
    return [f"All other figures are of the {profile.runs:,} runs together"] if profile.runs > 1 else []


def first_run(profile: Costs) -> list[str]:
    """What a run took before those that are counted, if one was."""
    if profile.first_run is None:
        return []
    phases, moved = profile.first_run
    cycles = f"{sum(phases):,} cycles, {phases.host:,} of them with the host, which moved {size(moved)}"
    return [f"The first run, which brought the arguments to the tiles and is not counted: {cycles}"]


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
        f"Tiles compute {percent(busy.mean())} of the time on average, the busiest {percent(busy.max())}; "
        f"{part_of_tiles(profile)}",
        f"Memory per tile: mean {size(memory.mean())}, most {size(memory[fullest])} (tile {fullest}) of {size(limit)}",
        f"Energy (an estimate): {quantity(energy.joules, 'J')} at {energy.watts:g} W: {energy.source}. {CONSTANT}",
    ]


def part_of_tiles(profile: Costs) -> str:
    """How many tiles take no part."""
    idle, count = profile.idle_tiles, len(profile.tile_cycles)
    return f"{idle:,} of {count:,} take no part" if idle else f"all {count:,} take part"


def _limits(profile: Costs) -> list[str]:
    return ["Why not all the time, the largest loss first:", *(f"  {limit}" for limit in profile.limits)]


def _parts(profile: Costs) -> list[str]:
    """Nothing without an op that has parts."""
    if not profile.parts:
        return []
    total = max(profile.cycles, 1)
    lines = ["Inside lif_network (share of the time, cycles: compute, exchange, sync, host):"]
    for each in sorted(profile.parts, key=lambda part: -part.cycles)[:_SHOWN]:
        name = ", ".join(filter(None, (each.operation, each.layer, each.purpose)))
        cycles = " ".join(f"{part:>11,}" for part in each.phases)
        lines.append(f"  {name:<{_WIDTH}} {percent(each.cycles / total):>7} {'':>7} {cycles}")
    return lines


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
