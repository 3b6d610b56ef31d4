"""The HTML page of a profile in a real browser: it works offline, sorts, tells tiles, and can be read in any light."""

from pathlib import Path

import numpy as np
import pytest

from tests.ipu.profiles import browser, made

pytestmark = pytest.mark.skipif(
    browser.program() is None,
    reason=f"no browser is installed (one of {', '.join(browser.PROGRAMS)}): the page is tested as text alone",
)

# Contrast of two colours by WCAG 2.2; 4.5 is what its level AA asks of text.
CONTRAST = """
const numbers = (colour) => colour.match(/[\\d.]+/g).map(Number);
const clear = (colour) => colour === "transparent" || numbers(colour)[3] === 0;
const light = (colour) => {
  const linear = numbers(colour).slice(0, 3).map((c) => {
    c /= 255;
    return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2];
};
const behind = (element) => {
  while (element && clear(getComputedStyle(element).backgroundColor)) element = element.parentElement;
  return getComputedStyle(element).backgroundColor;
};
found.faint = [];
found.texts = 0;
for (const element of document.querySelectorAll("body *")) {
  const own = [...element.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
  if (!own || ["SCRIPT", "STYLE", "title"].includes(element.tagName)) continue;
  found.texts += 1;
  const [a, b] = [light(getComputedStyle(element).color), light(behind(element))];
  const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  if (contrast < 4.5) found.faint.push(element.tagName + ": " + element.textContent + " " + contrast);
}
"""
SORT = """
const column = (table, n) => [...document.querySelectorAll(`#${table} tbody tr`)].map((r) => r.cells[n].textContent);
const click = (table, n) => document.querySelectorAll(`#${table} th button`)[n].click();
const sorted = (table, n) => { click(table, n); return column(table, 0); };
found.ready = document.documentElement.dataset.ready;
found.first = column("operations", 0);
found.by_exchange = sorted("operations", 5);
found.by_exchange_again = sorted("operations", 5);
found.by_name = sorted("operations", 0);
found.mark = document.querySelectorAll("#operations th")[0].getAttribute("aria-sort");
found.codelets = sorted("codelets", 3);
found.requests = performance.getEntriesByType("resource").length;
"""
POINT = """
const map = document.querySelectorAll(".map")[1], box = map.getBoundingClientRect();
const point = (x) => {
  const where = {clientX: box.left + box.width * x, clientY: box.top + box.height / 2, bubbles: true};
  map.dispatchEvent(new PointerEvent("pointermove", where));
  return document.getElementById("tile").textContent;
};
found.tiles = [point(0.2), point(0.8)];
"""


def test_page_runs_alone_and_sorts_by_a_click(tmp_path: Path) -> None:
    found = browser.found(made.profile().html(), SORT, tmp_path)
    assert found["wrong"] == []
    assert found["ready"] == "yes"
    assert found["requests"] == 0
    assert found["first"] == ["dot", "x", "add", "concatenate", "control"]
    assert found["by_exchange"][:2] == ["dot", "concatenate"]
    assert found["by_exchange_again"][-2:] == ["concatenate", "dot"]
    assert found["by_name"] == sorted(found["first"])
    assert found["mark"] == "ascending"
    assert found["codelets"] == ["Dot<float>", "Add<float>"]


def test_pointer_on_a_tile_tells_its_figures(tmp_path: Path) -> None:
    found = browser.found(made.profile().html(), POINT, tmp_path)
    assert found["tiles"] == [
        "tile 0: computes 50.0 %, holds 2.00 KiB",
        "tile 1: computes 25.0 %, holds 1.00 KiB",
    ]


@pytest.mark.parametrize("scheme", [browser.LIGHT, browser.DARK], ids=["light", "dark"])
def test_words_can_be_read_in_light_and_in_dark(scheme: int, tmp_path: Path) -> None:
    found = browser.found(made.profile().html(), CONTRAST, tmp_path, scheme=scheme)
    assert found["texts"] > 50
    assert found["faint"] == []


def test_missing_contrast_is_found(tmp_path: Path) -> None:
    faded = made.profile().html().replace("--faint: #59616e", "--faint: #c9c9ce")
    assert browser.found(faded, CONTRAST, tmp_path)["faint"]


def test_requests_are_refused_by_the_page_itself(tmp_path: Path) -> None:
    script = "const picture = document.createElement('img'); picture.src = 'http://localhost:9/x.png';"
    page = (
        made.profile()
        .html()
        .replace("</body>", f"<script>{script}\ndocument.body.append(picture)</script></body>", 1)
    )
    late = "found.wait = document.images.length;"
    assert "img-src" in browser.found(page, late, tmp_path)["wrong"]


@pytest.mark.parametrize("width", [390, 1280])
def test_page_is_not_wider_than_its_window(width: int, tmp_path: Path) -> None:
    script = "found.width = [document.documentElement.scrollWidth, innerWidth];"
    wide, window = browser.found(made.profile().html(), script, tmp_path, width=width)["width"]
    assert wide <= window


@pytest.mark.parametrize("scheme, page", [(browser.LIGHT, (255, 255, 255)), (browser.DARK, (20, 23, 28))])
def test_phases_are_seen_in_their_colours(scheme: int, page: tuple[int, ...], tmp_path: Path) -> None:
    """Four colours in the strip, in the shares of their cycles."""
    from matplotlib.image import imread

    picture = imread(browser.screenshot(made.profile().html(), tmp_path, scheme=scheme))
    pixels = np.round(255 * picture[..., :3]).astype(int)
    assert tuple(pixels[0, 0]) == page
    colours = {
        browser.LIGHT: ((0, 114, 178), (230, 159, 0), (138, 143, 152), (196, 103, 155)),
        browser.DARK: ((75, 163, 220), (230, 165, 42), (125, 131, 141), (215, 137, 180)),
    }[scheme]
    # Rows of the strip: where the most pixels have such a colour.
    is_phase = np.stack([(np.abs(pixels - colour).sum(-1) < 6) for colour in colours])
    row = is_phase.sum(axis=(0, 2)).argmax()
    shares = is_phase[:, row].sum(-1) / is_phase[:, row].sum()
    assert shares == pytest.approx([600 / 980, 200 / 980, 80 / 980, 100 / 980], abs=0.01)
