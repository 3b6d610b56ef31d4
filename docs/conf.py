"""How Sphinx builds the documentation: `make docs`.

The source folder is the root of the repository, so that notebooks and texts are read where they stand, and a link
between two files is the same link in the repository and on the pages.
"""

import ast
import base64
import inspect
import json
import re
import sys
import textwrap
import tomllib
from pathlib import Path
from typing import Any

from docutils.nodes import SkipNode
from latex2mathml.converter import convert

ROOT = Path(__file__).resolve().parents[1]
OUT = ROOT / "out" / "docs"
sys.path.insert(0, str(ROOT))

project = "snnjax"
author = copyright = "The snnjax authors"
release = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]

root_doc = "docs/index"
include_patterns = [
    *("docs/**.md", "notebooks/*.ipynb", "README.md", "CONTRIBUTING.md", "CHANGELOG.md"),
    *("snnjax/neurons/README.md", "xla_ext/README.md", "xla_ext/ipu_model/README.md"),
]
exclude_patterns = [".*", "build", "dist", "out", "tests", "poplar_kernels"]
nitpick_ignore_regex = [("py:.*", r"(jax|numpy|optax|nir)\..*")]
extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
nitpicky = True

myst_heading_anchors = 3
nb_execution_mode = "off"  # `make notebooks` stores the outputs

autodoc_typehints = "none"  # the docstrings give shapes
autodoc_member_order = "bysource"
autodoc_default_options = {"members": True}
default_role = "py:obj"
highlight_language = "none"  # blocks without a language are equations

html_theme = "furo"  # without icon fonts and frameworks: the start page weighs 160 kB
html_title = "snnjax"
html_static_path = ["static"]
html_css_files = ["snnjax.css"]
html_extra_path = ["redirect"]
html_copy_source = False
html_show_sphinx = False
html_math_renderer = "mathml"  # browsers draw it themselves: no script, and no network
html_theme_options = {"top_of_page_buttons": []}  # no links to sources, which are not on the pages
pygments_style, pygments_dark_style = "default", "github-dark"

# `make docs-links` asks for every address on the pages, three times where one does not answer.
linkcheck_retries = 3
linkcheck_timeout = 20
linkcheck_ignore = [r"https://repository\.invalid/"]  # CONTRIBUTING.md: Releasing
linkcheck_anchors = False  # many pages make theirs by scripts


def fields(owner: type) -> list[str]:
    """The fields of a class with the comments beside them, as a list in reStructuredText."""
    source = textwrap.dedent(inspect.getsource(owner))
    lines = source.splitlines()
    listed = []
    for node in ast.parse(source).body[0].body:  # pyright: ignore[reportAttributeAccessIssue]
        if not (isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)):
            continue
        comment = (
            lines[(node.end_lineno or 0) - 1]
            .encode()[node.end_col_offset :]
            .decode()
            .partition("#")[2]
            .strip()
        )
        above = node.lineno - 2
        while not comment and lines[above].strip().startswith("#"):
            above -= 1
        comment = comment or " ".join(line.strip(" #") for line in lines[above + 1 : node.lineno - 1])
        shapes = [part.value for part in ast.walk(node.annotation) if isinstance(part, ast.Constant)]
        shape = next(
            (
                f" ``[{part.strip()}]``"
                for part in shapes
                if isinstance(part, str) and "Array" in ast.unparse(node)
            ),
            "",
        )
        listed.append(f"* ``{node.target.id}``{shape}{': ' if comment else ''}{comment}")
    return listed


def add_fields(app: Any, what: str, name: str, owner: Any, options: Any, lines: list[str]) -> None:
    """Behind the docstring of a class stand its fields."""
    ours = [each for each in getattr(owner, "__mro__", ())[::-1] if each.__module__.startswith("snnjax")]
    if what == "class" and (listed := [line for each in ours for line in fields(each)]):
        lines += ["", "Fields:", "", *listed, ""]


def skip_fields(app: Any, what: str, name: str, member: Any, skip: bool, options: Any) -> bool | None:
    """What Python says of the fields of a named tuple is left out."""
    return True if (getattr(member, "__doc__", None) or "").startswith("Alias for field") else None


def plain_code(app: Any, env: Any, node: Any, content: Any) -> Any:
    """A name in backticks is a link where there is such a name, else code, as those of arguments are."""
    return content if node.get("reftype") == "obj" else None


def unlink_what_has_no_page(app: Any, name: str, source: list[str]) -> None:
    """A folder has no page, nor have some texts: a link to one, which the repository shows, is only its name here."""
    folder = (ROOT / name).parent

    def text_of(link: re.Match[str]) -> str:
        target = (folder / link[2]).resolve()
        is_text = target.suffix == ".md" and target.is_relative_to(ROOT)
        without = is_text and target.relative_to(ROOT).with_suffix("").as_posix() not in app.env.found_docs
        return f"`{link[1]}`" if target.is_dir() or without else link[0]

    source[0] = re.sub(r"\[([^\]`]+)\]\(([\w./]+)\)", text_of, source[0])


def pictures(notebook: Path) -> list[tuple[str, bytes]]:
    """The pictures of a notebook, as PNG, each with the heading that it stands under."""
    found, heading = [], ""
    for cell in json.loads(notebook.read_text(encoding="utf-8"))["cells"]:
        headings = re.findall(r"^#+ (.+)$", "".join(cell["source"]), re.MULTILINE)
        if cell["cell_type"] == "markdown" and headings:
            heading = headings[-1]
        for output in cell.get("outputs", []):
            png = output.get("data", {}).get("image/png")
            found += [(heading, base64.b64decode("".join(png)))] if png else []
    return found


def fill_gallery(app: Any, name: str, source: list[str]) -> None:
    """On its page, each picture of the notebooks leads to its notebook."""
    if name != "docs/gallery":
        return
    folder = OUT / "gallery"
    folder.mkdir(parents=True, exist_ok=True)
    for notebook in sorted((ROOT / "notebooks").glob("*.ipynb")):
        for number, (heading, png) in enumerate(pictures(notebook)):
            picture = folder / f"{notebook.stem}-{number}.png"
            picture.write_bytes(png)
            image = f"![{heading}](../{picture.relative_to(ROOT)})"
            source[0] += f"\n**{heading}**\n\n[{image}](../notebooks/{notebook.name})\n"


def inline_equation(writer: Any, node: Any) -> None:
    """An equation within a sentence, as MathML."""
    writer.body.append(convert(node.astext()))
    raise SkipNode


def displayed_equation(writer: Any, node: Any) -> None:
    """An equation on lines of its own; several lines are aligned at their `&`, as by LaTeX's `split`."""
    equation = node.astext()
    split = rf"\begin{{split}}{equation}\end{{split}}" if r"\\" in equation or "&" in equation else equation
    writer.body.append(writer.starttag(node, "div", CLASS="math"))
    writer.body.append(convert(split, display="block") + "</div>\n")
    raise SkipNode


def setup(app: Any) -> None:
    """Called by Sphinx."""
    app.add_html_math_renderer("mathml", (inline_equation, None), (displayed_equation, None))
    app.connect("autodoc-process-docstring", add_fields, priority=900)
    app.connect("autodoc-skip-member", skip_fields)
    app.connect("missing-reference", plain_code)
    app.connect("source-read", unlink_what_has_no_page)
    app.connect("source-read", fill_gallery)
