"""A profile as one HTML page: everything is in it, so that it can be sent, kept and opened anywhere."""

import json
from html import escape
from importlib.resources import files
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Num

from snnjax.ipu.profiles import svg
from snnjax.ipu.profiles.tables import codelets, lines, memory, operations
from snnjax.ipu.profiles.text import device, of_each_run
from snnjax.ipu.profiles.units import percent, quantity, size

if TYPE_CHECKING:
    from snnjax.ipu.profiles.profile import Profile

# The browser itself refuses to ask anybody for anything.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'"
_NOTE = """<strong>Nothing here was measured on hardware.</strong> These are predictions of the IPU Model: what the
program would cost on the chip by published figures of it. The model's README says what it leaves out and how far it is
from published measurements."""
_STEPS = """The program from its begin (left) to its end, each step as wide as the time it takes in all its runs; the
body of a loop stands there once. Point at a step to read its name."""
_OPERATIONS = """An operation is what the compiler made of a line of the program: its compute sets, copies and streams
together. Click on a column's name to sort."""
_TILES = """Tiles in rows by number, not as they lie on the chip. Point at one to read its figures."""
_FIXED = """Here no two variables share memory over time: each tile holds the same from begin to end."""
_LIVE = """Live bytes of all tiles together, one column an operation of the program in order; what is no longer needed
gives its place to what comes."""


def render(profile: "Profile") -> str:
    """The whole page."""
    title = escape(profile.data.get("program") or "IPU profile")
    parts = (_head, _cards, _phases, _operations, _codelets, _tiles, _memory, _energy)
    body = "\n".join(part(profile) for part in parts)
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{_POLICY}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}: profile</title>
<style>
{_resource("page.css")}</style>
</head>
<body>
{body}
<footer>Made by snnjax. <code>Profile.json</code> holds all of these figures.</footer>
<script type="application/json" id="tiles">{_tile_texts(profile)}</script>
<script>
{_resource("page.js")}</script>
</body>
</html>
"""


def _resource(name: str) -> str:
    return (files("snnjax.ipu.profiles") / name).read_text(encoding="utf-8")


def _section(title: str, text: str, *contents: str) -> str:
    return (
        f"<section>\n<h2>{title}</h2>\n<p class='faint'>{text}</p>\n" + "\n".join(contents) + "\n</section>"
    )


def _head(profile: "Profile") -> str:
    title = escape(profile.data.get("program") or "IPU profile")
    return f"<h1>{title}</h1>\n<p class='faint'>{escape(device(profile))}</p>\n<p class='note' role='note'>{_NOTE}</p>"


def _cards(profile: "Profile") -> str:
    memory_, limit = profile.tile_memory, profile.data["memory_per_tile"]
    busy, exchange, energy = profile.tile_utilisation, profile.exchange, profile.energy
    cards = (
        ("modelled time", quantity(profile.seconds, "s"), f"{profile.cycles:,} cycles{of_each_run(profile)}"),
        ("tiles compute", percent(busy.mean()), f"of the time; the busiest {percent(busy.max())}"),
        ("fullest tile", size(memory_.max()), f"{percent(memory_.max() / limit)} of {size(limit)}"),
        (
            "exchanged",
            size(exchange.bytes),
            f"{exchange.messages:,} messages; {size(exchange.link_bytes)} over links",
        ),
        (
            "from and to the host",
            size(profile.host_bytes),
            quantity(profile.phases.host / profile.data["clock_hz"], "s"),
        ),
        ("energy, an estimate", quantity(energy.joules, "J"), f"{energy.watts:g} W for the modelled time"),
    )
    inner = "".join(
        f"<div><dt>{name}</dt><dd>{value}<small>{more}</small></dd></div>\n" for name, value, more in cards
    )
    return f"<dl class='cards'>\n{inner}</dl>"


def _phases(profile: "Profile") -> str:
    hertz, total = profile.data["clock_hz"], max(profile.cycles, 1)
    items = "".join(
        f"<li>{svg.swatch(name)}{name} {percent(cycles / total)}, {quantity(cycles / hertz, 's')}</li>"
        for name, cycles in zip(profile.phases._fields, profile.phases, strict=True)
    )
    return _section(
        "Phases, step by step", _STEPS, svg.strip(profile.steps), f"<ul class='legend'>{items}</ul>"
    )


def _operations(profile: "Profile") -> str:
    tables = _section("Operations", _OPERATIONS, operations(profile))
    if len(profile.lines) > 1:
        tables += "\n" + _section("Lines of the program", "The same by line.", lines(profile))
    return tables


def _codelets(profile: "Profile") -> str:
    text = "Classes of vertices, and the cycles that one of them took alone on its tile."
    if profile.counted_codelets:
        text += (
            f" Counted in their compiled code, an estimate: {escape(', '.join(profile.counted_codelets))}."
        )
    if profile.unknown_codelets:
        text += f" Of unknown cost and counted as nothing: {escape(', '.join(profile.unknown_codelets))}."
    return _section("Codelets", text, codelets(profile))


def _tiles(profile: "Profile") -> str:
    busy, bytes_ = profile.tile_utilisation, profile.tile_memory
    maps = (
        _maps("Time spent computing", busy, profile.data["ipus"], percent(busy.max())),
        _maps("Memory in use", bytes_, profile.data["ipus"], size(bytes_.max())),
    )
    return _section(
        "Tiles",
        _TILES,
        f"<div class='maps'>{''.join(maps)}</div>",
        "<p class='under' id='tile' aria-live='polite'></p>",
    )


def _maps(title: str, values: Num[np.ndarray, " tiles"], ipus: int, most: str) -> str:
    maps = (svg.tile_map(each, float(values.max()), ipu) for ipu, each in enumerate(np.split(values, ipus)))
    scale = f"<div class='scale'>0 <span></span> {most}</div>"
    return f"<figure><figcaption>{title}</figcaption>{''.join(maps)}{scale}</figure>"


def _memory(profile: "Profile") -> str:
    live = profile.live_memory
    contents = [memory(profile)]
    if live:
        most = max(live, key=lambda point: point.bytes)
        caption = f"Most at <code>{escape(most.name)}</code>: {size(most.bytes)}."
        contents += [f"<p class='faint'>{_LIVE} {caption}</p>", svg.memory_curve(live)]
    return _section("Memory of a tile", "" if live else _FIXED, *contents)


def _energy(profile: "Profile") -> str:
    joules, watts, source = profile.energy
    return _section(
        "Energy",
        f"An estimate, not a measurement: {watts:g} W for {quantity(profile.seconds, 's')} make "
        f"{quantity(joules, 'J')}. The power is that of boards: {escape(source)}. No energies of single "
        "instructions or exchanged words are published for these chips, so idle tiles are charged like busy ones.",
    )


def _tile_texts(profile: "Profile") -> str:
    texts = {
        "per_ipu": profile.data["tiles_per_ipu"],
        "busy": [percent(share) for share in profile.tile_utilisation],
        "memory": [size(bytes_) for bytes_ in profile.tile_memory],
    }
    return json.dumps(texts, separators=(",", ":"))
