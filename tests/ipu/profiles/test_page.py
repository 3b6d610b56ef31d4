"""The HTML page of a profile as text: well formed, complete, closed to the outside, deaf to hostile names."""

import json
import re
from html.parser import HTMLParser

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from tests.ipu.profiles import made

VOID = {"meta", "br", "img", "hr", "input", "link"}
# What a browser could follow to somewhere else.
FOLLOWED = {"src", "href", "srcset", "action", "data", "poster", "xlink:href", "formaction"}


class Page(HTMLParser):
    """Elements, texts by element, and what is wrong with the page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.wrong: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.rows: dict[str, list[list[str]]] = {}  # texts of cells, by table
        self.words: list[str] = []
        self.feed(text)
        self.close()
        self.wrong += [f"{tag} is never closed" for tag in self.open]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self.wrong += [f"{tag} asks for {value}" for name, value in attrs if name in FOLLOWED]
        self.wrong += [f"{tag} has {name}" for name, _ in attrs if name.startswith("on")]
        if tag == "table":
            self.rows[str(dict(attrs)["id"])] = []
        elif tag == "tr":
            self.table.append([])
        elif tag in ("td", "th"):
            self.table[-1].append("")
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.wrong.append(f"</{tag}> closes nothing")

    def handle_data(self, data: str) -> None:
        if {"td", "th"} & set(self.open):
            self.table[-1][-1] += data
        elif "script" not in self.open and "style" not in self.open:
            self.words.append(data)

    @property
    def table(self) -> list[list[str]]:
        return list(self.rows.values())[-1]

    def count(self, tag: str) -> int:
        return sum(name == tag for name, _ in self.elements)


def of(**changes) -> Page:
    return Page(made.profile(**changes).html())


def test_page_is_well_formed_and_follows_nothing() -> None:
    html = made.profile().html()
    assert Page(html).wrong == []
    assert html.startswith("<!DOCTYPE html>\n<html lang=")
    assert not re.search(r"https?:|//\w+\.|@import|url\(|fetch\(|XMLHttpRequest|import\(", html)
    policy = next(each for tag, each in Page(html).elements if tag == "meta" and "http-equiv" in each)
    assert str(policy["content"]).startswith("default-src 'none'; ")


def test_first_thing_said_is_that_nothing_was_measured() -> None:
    text = " ".join(of().words)
    assert "Nothing here was measured on hardware." in text
    assert text.index("Nothing here was measured") < text.index("on the chip")
    assert "An estimate, not a measurement: 250 W for 1 ms is 250 mJ." in re.sub(r"\s+", " ", text)


def test_page_says_what_limits_the_program_and_what_to_do() -> None:
    text = re.sub(r"\s+", " ", " ".join(of().words))
    assert "The average tile computes 37.5 % of the time" in text
    assert "22.5 % waiting : a tile has done its part" in text
    assert "most of it in dot (net.py:3), where dot/products computes on 2 of 2 tiles" in text
    assert "snnjax.ipu.sweep tries them" in text
    assert "parts" not in of().rows


def test_parts_of_the_network_have_a_table() -> None:
    sets = [
        made.compute_set(f"forward/{what}", place, 100) for place, what in ((3, "neurons0"), (4, "lists0"))
    ]
    first = made.compute_set("snnjax_lif_network/events (net.py:3)", 2, 50)
    for each, codelet in zip(
        (first, *sets), ("SortEvents<int,false>", "LifScan<false>", "JoinCandidates<int>"), strict=True
    ):
        each["codelets"] = [made.codelet(f"snnjax::{codelet}", 1, 100, 100)]
    page = Page(made.profile(compute_sets=[first, *sets], copies=[], streams=[]).html())
    rows = [row[:4] + row[5:6] for row in page.rows["parts"][1:]]
    own = ["lif_network", "net.py:3"]
    assert rows == [
        [*own, "layer 0", "neurons", "100 (10.0 %)"],
        [*own, "layer 0", "lists", "100 (10.0 %)"],
        [*own, "several", "lists", "50 (5.0 %)"],
    ]


def test_operations_of_the_page_are_those_of_the_profile() -> None:
    header, *rows = of().rows["operations"]
    assert header[:2] + header[3:8] == [
        *("operation", "line", "cycles", "compute", "exchange", "sync", "host"),
    ]
    assert rows[0] == [
        *("dot", "net.py:3", "", "700 (70.0 %)", "500", "150", "50", "", "2", "96 bytes", "2", "75.0 %"),
    ]
    assert [row[0] for row in rows] == ["dot", "x", "add", "concatenate", "control"]
    assert [row[0] for row in of().rows["lines"][1:]] == ["net.py:3", "net.py:4", "no line"]


def test_codelets_and_memory_stand_there() -> None:
    page = of()
    assert page.rows["codelets"][1] == ["Dot<float>", "4", "250.0", "300", "1,000"]
    assert page.rows["memory"][-1] == ["all", "1.50 KiB", "2.00 KiB", "0", "3.00 KiB"]


def test_one_line_needs_no_table_of_lines() -> None:
    page = of(compute_sets=[made.compute_set("a", 0, 600)], copies=[], streams=[])
    assert "lines" not in page.rows


@pytest.mark.parametrize("ipus, per_ipu", [(1, 1), (1, 1472), (4, 5), (16, 3)])
def test_every_tile_is_on_both_maps(ipus: int, per_ipu: int) -> None:
    tile = made.data()["tiles"][0]
    page = of(ipus=ipus, tiles_per_ipu=per_ipu, tiles=[tile] * (ipus * per_ipu))
    maps = [each for tag, each in page.elements if each.get("class") == "map"]
    assert [each["data-ipu"] for each in maps] == [str(ipu) for ipu in range(ipus)] * 2
    squares = [each["d"] for tag, each in page.elements if tag == "path"]
    assert sum(str(path).count("M") for path in squares) == 2 * ipus * per_ipu


def test_live_memory_is_drawn_where_it_is_known() -> None:
    rows = [{"name": f"op{i} (a.py:{i})", "bytes": 64 * i, "tile_bytes": i} for i in range(4)]
    known, unknown = of(live_memory=rows), of()
    assert "op3 (a.py:3)" in known.words
    assert sum(each.get("class") == "area" for _, each in known.elements) == 4
    assert "No variables share memory over time" in " ".join(" ".join(unknown.words).split())


def test_program_that_did_nothing_has_a_page() -> None:
    nothing = dict.fromkeys(("compute", "exchange", "sync", "host", "total"), 0)
    idle = [tile | {"cycles": 0} for tile in made.data()["tiles"]]
    page = of(cycles=nothing, compute_sets=[], copies=[], streams=[], codelets=[], tiles=idle)
    assert page.wrong == []
    assert page.rows["operations"][1:] == []


def test_short_steps_are_joined_in_the_strip() -> None:
    many = [made.compute_set(f"op{i}", i + 1, 1) for i in range(5000)]
    sets = [made.compute_set("long", 0, 10**7), *many]
    page = of(
        compute_sets=sets, copies=[], streams=[], cycles=made.data()["cycles"] | {"compute": 10**7 + 5000}
    )
    assert page.count("title") < 10
    assert any("5000 short steps" in words for words in page.words)


HOSTILE = st.one_of(
    st.text(),
    st.sampled_from(
        [
            "</script><script>alert(1)</script>",
            "<img src=x onerror=alert(1)>",
            "a' onclick='x",
            '"><b>',
            "&lt;",
        ]
    ),
)


@settings(max_examples=60)
@given(program=HOSTILE, operation=HOSTILE, line=HOSTILE, codelet=HOSTILE, unknown=HOSTILE)
def test_hostile_names_stay_words(
    program: str, operation: str, line: str, codelet: str, unknown: str
) -> None:
    names = [f"{operation} ({line}:1)", f"{operation}/{line}", operation]
    sets = [made.compute_set(name, place, 200) for place, name in enumerate(names)]
    live = [{"name": names[0], "bytes": 1, "tile_bytes": 1}]
    known = [made.codelet(codelet, 1, 1, 1)]
    page = of(
        program=program, compute_sets=sets, codelets=known, live_memory=live, unknown_codelets=[unknown]
    )
    assert page.wrong == []
    assert page.count("script") == 2
    assert {tag for tag, _ in page.elements}.isdisjoint({"img", "b", "iframe", "object"})


def test_data_for_the_script_cannot_end_it() -> None:
    html = made.profile(program="</script>").html()
    text = re.search(r'<script type="application/json" id="tiles">(.*?)</script>', html)
    assert text is not None
    assert json.loads(text[1])["busy"] == ["50.0 %", "25.0 %"]
