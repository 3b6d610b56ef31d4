"""A real browser without a window: what its scripts find on a page, and what the page looks like."""

import json
import re
import shutil
import subprocess
from html import unescape
from pathlib import Path
from typing import Any

PROGRAMS = (
    "chromium-headless-shell",
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
)
LIGHT, DARK = 1, 0  # as the engine numbers its colour schemes
# Seconds; a page takes one.
_LIMIT = 60

# Before anything else runs: what goes wrong is written down.
_WATCH = """<script>
const found = {wrong: []};
addEventListener("error", (event) => found.wrong.push(event.message));
document.addEventListener("securitypolicyviolation", (event) => found.wrong.push(event.violatedDirective));
</script></head>"""


def program() -> str | None:
    """The browser that is installed, if there is one."""
    return next(filter(None, map(shutil.which, PROGRAMS)), None)


def _run(path: Path, scheme: int, width: int, height: int, *options: str) -> str:
    command = [str(program()), "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
    command += [f"--blink-settings=preferredColorScheme={scheme}", f"--window-size={width},{height}"]
    command += [f"--user-data-dir={path.parent / 'browser'}", *options, path.as_uri()]
    return subprocess.run(command, capture_output=True, text=True, timeout=_LIMIT, check=True).stdout


def found(page: str, script: str, folder: Path, *, scheme: int = LIGHT, width: int = 1280) -> dict[str, Any]:
    """What `script` writes into `found` once the page stands there, and `wrong`: errors and refused requests."""
    tell = "addEventListener('load', () => { document.title = 'found ' + JSON.stringify(found); });"
    told = f"<script>{script}\n{tell}</script></body>"
    path = folder / "page.html"
    path.write_text(page.replace("</head>", _WATCH, 1).replace("</body>", told, 1), encoding="utf-8")
    dom = _run(path, scheme, width, 900, "--dump-dom")
    title = re.search(r"<title>found (.*?)</title>", dom, re.DOTALL)
    assert title, dom[-2000:]
    return json.loads(unescape(title[1]))


def screenshot(
    page: str, folder: Path, *, scheme: int = LIGHT, width: int = 1280, height: int = 1600
) -> Path:
    """The page as PNG."""
    path, picture = folder / "page.html", folder / "page.png"
    path.write_text(page, encoding="utf-8")
    _run(path, scheme, width, height, f"--screenshot={picture}")
    return picture
