"""The tables of the page. A cell holds the text to show and the number to sort by."""

from collections.abc import Iterable, Sequence
from html import escape
from typing import NamedTuple

from snnjax.ipu.profiles import svg
from snnjax.ipu.profiles.costs import Costs
from snnjax.ipu.profiles.steps import Phases
from snnjax.ipu.profiles.units import amount, percent, size


class Number(NamedTuple):
    """The text of a cell, and its value."""

    text: str
    value: float


# Text, a number, or a number with a graphic that represents it.
Cell = str | Number


def operations(profile: Costs) -> str:
    """Where the time of each operation goes."""
    names = ("operation", "line", "time", "cycles", *Phases._fields, "runs", "moved", "tiles", "balance")
    total, most = max(profile.cycles, 1), max((each.cycles for each in profile.operations), default=1)
    rows: list[list[Cell]] = [
        [
            *(_code(each.name), _code(each.where), Number(svg.bar(each.phases, most), each.cycles)),
            Number(f"{each.cycles:,} ({percent(each.cycles / total)})", each.cycles),
            *map(_number, (*each.phases, each.executions)),
            *(_bytes(each.exchange.bytes), _number(each.tiles)),
            Number(percent(each.balance) if each.tiles else "", each.balance),
        ]
        for each in profile.operations
    ]
    return _table("operations", names, rows)


def lines(profile: Costs) -> str:
    """The same by line of the user's program."""
    total, most = max(profile.cycles, 1), max(sum(phases) for phases in profile.lines.values())
    rows = [
        [
            _code(where) if where else "no line",
            Number(svg.bar(phases, most), sum(phases)),
            Number(percent(sum(phases) / total), sum(phases)),
            *(_number(cycles) for cycles in phases),
        ]
        for where, phases in profile.lines.items()
    ]
    return _table("lines", ("line", "time", "share", *Phases._fields), rows)


def parts(profile: Costs) -> str:
    """The parts of `lif_network`."""
    total, most = max(profile.cycles, 1), max(each.cycles for each in profile.parts)
    rows: list[list[Cell]] = [
        [
            *(_code(each.operation), _code(each.where), each.layer or "several", each.purpose),
            Number(svg.bar(each.phases, most), each.cycles),
            Number(f"{each.cycles:,} ({percent(each.cycles / total)})", each.cycles),
            *map(_number, each.phases),
        ]
        for each in sorted(profile.parts, key=lambda part: -part.cycles)
    ]
    return _table("parts", ("operation", "line", "layer", "purpose", "time", "cycles", *Phases._fields), rows)


def codelets(profile: Costs) -> str:
    """The cost of each vertex class."""
    rows = [
        [
            _code(name),
            _number(each.count),
            Number(f"{each.mean:,.1f}", each.mean),
            _number(each.max),
            Number(f"{each.count * each.mean:,.0f}", each.count * each.mean),
        ]
        for name, each in profile.codelets.items()
    ]
    return _table("codelets", ("codelet", "runs", "mean cycles", "most cycles", "all cycles"), rows)


def memory(profile: Costs) -> str:
    """The memory of the tiles by kind."""
    kinds = {**profile.tile_memory_by_kind, "all": profile.tile_memory}
    rows = [
        [
            kind.replace("_", " "),
            Number(size(values.mean()), float(values.mean())),
            Number(size(values.max()), float(values.max())),
            Number(str(values.argmax()), int(values.argmax())),
            Number(size(values.sum()), float(values.sum())),
        ]
        for kind, values in kinds.items()
    ]
    return _table("memory", ("kind", "mean per tile", "maximum per tile", "on tile", "all tiles"), rows)


def _code(text: str) -> str:
    return f"<code>{escape(text)}</code>" if text else ""


def _number(number: int) -> Number:
    return Number(amount(number) if number else "", number)


def _bytes(number: int) -> Number:
    return Number(size(number) if number else "", number)


def _table(name: str, columns: Sequence[str], rows: Iterable[Sequence[Cell]]) -> str:
    """An HTML table; columns whose first cell is text are sorted as text."""
    rows = list(rows)
    words = [isinstance(cell, str) for cell in rows[0]] if rows else [True] * len(columns)
    head = "".join(
        f"<th scope='col'{' class=words' if is_words else ''}><button type='button'>{column}</button></th>"
        for column, is_words in zip(columns, words, strict=True)
    )
    body = "\n".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows)
    table = f"<table id='{name}'><thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody></table>"
    return f"<div class='wide'>{table}</div>"


def _cell(cell: Cell) -> str:
    if isinstance(cell, str):
        return f"<td class='words'>{cell}</td>"
    return f"<td data-value='{cell.value:.12g}'>{cell.text}</td>"
