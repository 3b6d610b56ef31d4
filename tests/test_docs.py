"""The documentation is correct: every public name is listed, its Python runs, its links work."""

import importlib
import inspect
import re

import pytest

from tests.architecture import ROOT, public_names
from tests.test_docstrings import PUBLIC
from tests.test_readme import LINK, TARGET, blocks, commands, run_python, subcommands, unknown_command

PAGES = sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*.md"))
# Public modules, whose names are called as snnjax.<module>.<name>; the index has most names of the others.
IN_THE_INDEX = ("ops", "blocks", "graph")
MODULES = [f"snnjax.{part}" for part in PUBLIC if part not in IN_THE_INDEX]
# Names of the index that the reference lists with their module.
ALSO_ELSEWHERE = {"blocks", "neurons", "Surrogate"}
DIRECTIVE = re.compile(r"^\.\. (?:autofunction|autoclass|py:data):: (\S+)$", re.MULTILINE)
ENTRY = re.compile(r"^```\{toctree\}\n(.*?)^```$", re.MULTILINE | re.DOTALL)
ROW = re.compile(r"^\| .*\| `(neurons\.\w+\(.*\))` \|$", re.MULTILINE)


def names_of(module):
    """The public names of a module: what its index re-exports, and what it defines itself."""
    source = inspect.getsource(module)
    own = [
        name
        for name, thing in vars(module).items()
        if getattr(thing, "__module__", None) == module.__name__
        and inspect.isroutine(thing) | inspect.isclass(thing)
    ]
    return {name for name in [*public_names(source), *own] if not name.startswith("_")}


def documented():
    """The full names that the reference lists."""
    return [
        name
        for page in (ROOT / "docs/reference").glob("*.md")
        for name in DIRECTIVE.findall(page.read_text())
    ]


def entries(text):
    """The pages that the contents of a page name."""
    lines = [line for block in ENTRY.findall(text) for line in block.splitlines()]
    return [re.sub(r".*<(.*)>", r"\1", line) for line in lines if line and not line.startswith(":")]


def rows(text):
    """The last column of the tables of neurons."""
    return ROW.findall(text)


def test_reference_lists_every_public_name_once():
    listed = documented()
    assert sorted(listed) == sorted(set(listed))
    index = names_of(importlib.import_module("snnjax"))
    public = {f"snnjax.{name}" for name in index - ALSO_ELSEWHERE}
    for part in IN_THE_INDEX:
        public |= {
            f"snnjax.{part}.{name}" for name in names_of(importlib.import_module(f"snnjax.{part}")) - index
        }
    for module in MODULES:
        public |= {f"{module}.{name}" for name in names_of(importlib.import_module(module))}
    assert public == set(listed)


@pytest.mark.parametrize("page", PAGES)
def test_python_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = (ROOT / page).read_text()
    run_python(text, page)


@pytest.mark.parametrize("page", PAGES)
def test_commands_exist(page):
    targets = TARGET.findall((ROOT / "Makefile").read_text())
    named = commands((ROOT / page).read_text())
    assert [words for words in named if unknown_command(words, targets, subcommands())] == []


@pytest.mark.parametrize("page", [*PAGES, "README.md", "CONTRIBUTING.md"])
def test_code_is_at_most_90_columns_wide(page):
    code = blocks((ROOT / page).read_text(), "python", "sh", "console", "bibtex", "text")
    assert [line for block in code for line in block.splitlines() if len(line) > 90] == []


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page):
    text = (ROOT / page).read_text()
    folder = (ROOT / page).parent
    assert [link for link in LINK.findall(text) if not (folder / link).exists()] == []
    pages = [
        name
        for name in entries(text)
        if not any((folder / f"{name}{end}").exists() for end in (".md", ".ipynb"))
    ]
    assert pages == []


def test_contents_name_every_page():
    named = {(ROOT / page).parent / entry for page in PAGES for entry in entries((ROOT / page).read_text())}
    shown = {path.resolve().with_suffix("") for path in map(ROOT.joinpath, PAGES) if path.name != "index.md"}
    shown |= {path.with_suffix("") for path in (ROOT / "notebooks").glob("*.ipynb")}
    assert shown <= {path.resolve() for path in named}


@pytest.mark.parametrize("library_name", ["snntorch", "norse", "spikingjelly", "spyx"])
def test_neurons_of_other_libraries_are_those_of_the_tested_table(library_name):
    table = (ROOT / "snnjax/neurons/README.md").read_text().splitlines()
    tested = rows("\n".join(line for line in table if line.startswith(f"| {library_name} |")))
    assert rows((ROOT / f"docs/coming_from/{library_name}.md").read_text()) == tested


def test_wrong_text_is_found():
    assert DIRECTIVE.findall("```{eval-rst}\n.. autofunction:: snnjax.layer\n```\n") == ["snnjax.layer"]
    assert entries("```{toctree}\n:hidden:\n\na\nB <../b>\n```\n") == ["a", "../b"]
    assert rows("| `A` | | `neurons.lif()` |\n| `B` | | none |\n") == ["neurons.lif()"]
    with pytest.raises(AssertionError):
        run_python("```python\nassert 1 == 2\n```\n", "page")


def test_each_of_thirty_wishes_has_an_answer_with_a_link():
    text = (ROOT / "docs/explanation/wishes.md").read_text()
    answers = re.findall(r"^\| (\d+) \| \[.*\]\(https://.*\) \| (.+) \|$", text, re.MULTILINE)
    assert [int(number) for number, _ in answers] == list(range(1, 31))
    assert [number for number, answer in answers if not LINK.search(answer)] == []
