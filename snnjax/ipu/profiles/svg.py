"""The graphics of the page: a strip for the program, bars, tile maps and a curve, each as one ``<svg>``."""

from collections.abc import Sequence
from html import escape

import numpy as np
from jaxtyping import Num

from snnjax.ipu.profiles.costs import LiveMemory
from snnjax.ipu.profiles.steps import Phases, StepCost
from snnjax.ipu.profiles.tiles import columns_of
from snnjax.ipu.profiles.units import amount, size

# Classes h0, h1, ... of the style sheet.
_HUES = 16
# Units of a strip's width. Steps narrower than one unit are drawn together.
_WIDTH = 1000
# The share of the width that a step needs for its name to fit above it.
_LABELLED = 0.05


def swatch(phase: str) -> str:
    """A swatch in the colour of a phase."""
    return f'<svg viewBox="0 0 1 1" aria-hidden="true"><rect class="{phase}" width="1" height="1"/></svg>'


def bar(phases: Phases, most: int) -> str:
    """The phases side by side, as a share of `most` cycles."""
    rectangles = _phase_rectangles(phases, 0.0, 100 / max(most, 1), (0.0, 1.0))
    return f'<svg class="bar" viewBox="0 0 100 1" preserveAspectRatio="none" aria-hidden="true">{rectangles}</svg>'


def strip(steps: Sequence[StepCost]) -> str:
    """The steps in program order, with widths proportional to their times, and their phases in colour below."""
    scale = _WIDTH / max(sum(step.cycles for step in steps), 1)
    drawn, begin = [], 0.0
    for narrow, group in _groups(steps, scale):
        cycles = sum(step.cycles for step in group)
        title = f"{len(group)} short steps" if narrow else _title(group[0])
        parts = f'<rect class="even" x="{begin:.2f}" width="{cycles * scale:.2f}" height="6"/>'
        for step in group:
            parts += _phase_rectangles(step.phases, begin, scale, (8.0, 42.0))
            begin += step.cycles * scale
        drawn.append(f"<g><title>{escape(title)}: {amount(cycles)} cycles</title>{parts}</g>")
    picture = (
        f'<svg class="strip" viewBox="0 0 {_WIDTH} 50" preserveAspectRatio="none" role="img" '
        f'aria-label="phases of the program, step by step">{"".join(drawn)}</svg>'
    )
    return f"<div class='steps'>{_labels(steps)}{picture}</div>"


def _labels(steps: Sequence[StepCost]) -> str:
    """Names above the widest steps, as page text that does not stretch with the graphic."""
    total, begin, labels = max(sum(step.cycles for step in steps), 1), 0, ""
    for step in steps:
        if step.cycles > _LABELLED * total:
            place = f"left:{100 * begin / total:.2f}%;width:{100 * step.cycles / total:.2f}%"
            name = f"{step.operation} {step.where}"
            labels += f"<span style='{place}'>{escape(name)}</span>"
        begin += step.cycles
    return f"<div class='labels' aria-hidden='true'>{labels}</div>"


def tile_map(values: Num[np.ndarray, " tiles"], most: float, ipu: int) -> str:
    """The tiles of one IPU, darker (on a dark page lighter) the closer they are to `most`."""
    columns = columns_of(len(values))
    hues = np.minimum((values / max(most, 1e-30) * _HUES).astype(int), _HUES - 1)
    squares = [""] * _HUES
    for tile, hue in enumerate(hues):
        row, column = divmod(tile, columns)
        squares[hue] += f"M{column} {row}h.92v.92h-.92z"
    paths = "".join(f'<path class="h{hue}" d="{path}"/>' for hue, path in enumerate(squares) if path)
    rows = -(-len(values) // columns)
    return (
        f'<svg class="map" data-ipu="{ipu}" viewBox="0 0 {columns} {rows}" role="img" '
        f'aria-label="tiles of IPU {ipu}">{paths}</svg>'
    )


def memory_curve(points: Sequence[LiveMemory]) -> str:
    """Live bytes of all tiles together, one column per operation."""
    most = max(point.bytes for point in points)
    columns = "".join(
        f'<rect class="area" x="{index}" y="{100 - 100 * point.bytes / max(most, 1):.2f}" width="1.02" '
        f'height="{100 * point.bytes / max(most, 1):.2f}"><title>{escape(point.name)}: {size(point.bytes)}, '
        f"{size(point.tile_bytes)} on the fullest tile</title></rect>"
        for index, point in enumerate(points)
    )
    return (
        f'<svg class="curve" viewBox="0 0 {len(points)} 100" preserveAspectRatio="none" role="img" '
        f'aria-label="live memory over the program">{columns}</svg>'
    )


def _groups(steps: Sequence[StepCost], scale: float) -> list[tuple[bool, list[StepCost]]]:
    """Groups of steps: each wide step alone, consecutive narrow ones together."""
    groups: list[tuple[bool, list[StepCost]]] = []
    for step in steps:
        narrow = step.cycles * scale < 1
        if narrow and groups and groups[-1][0]:
            groups[-1][1].append(step)
        else:
            groups.append((narrow, [step]))
    return groups


def _title(step: StepCost) -> str:
    phases = ", ".join(
        f"{name} {amount(cycles)}"
        for name, cycles in zip(step.phases._fields, step.phases, strict=True)
        if cycles
    )
    return f"{step.name} ({step.kind}, {amount(step.executions)} runs; {phases})"


def _phase_rectangles(phases: Phases, begin: float, scale: float, span: tuple[float, float]) -> str:
    top, height = span
    drawn = ""
    for phase, cycles in zip(phases._fields, phases, strict=True):
        if cycles:
            place = f'x="{begin:.2f}" y="{top:g}" width="{cycles * scale:.2f}" height="{height:g}"'
            drawn += f'<rect class="{phase}" {place}/>'
            begin += cycles * scale
    return drawn
