"""The README's Python runs from top to bottom, and its commands exist."""

import importlib.util
import re
import shlex
import textwrap

import jax
import pytest
from snnjax_jax_plugin import _wire

from tests.project.architecture import ROOT

# Also within an item of a list, where the whole block is indented.
BLOCK = re.compile(r"^( *)```(\w+)\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\((?!https?://|#|mailto:)([^)#\s]+)")
# Packages whose blocks run where they are installed; `make test` installs all but neurobench.
OPTIONAL = ("neurobench", "equinox", "flax", "keras")
TARGET = re.compile(r"^([a-z0-9-]+):", re.MULTILINE)


def blocks(text, *languages):
    """The contents of the fenced blocks in one of `languages`, in order."""
    return [textwrap.dedent(content) for _, language, content in BLOCK.findall(text) if language in languages]


def run_python(text, name):
    """Run the Python blocks of a page from top to bottom, in one namespace."""
    code = blocks(text, "python")
    if not _wire.path().exists():  # tests/ipu/device/test_library.py holds that there is a reason
        code = [block for block in code if "snnjax.ipu" not in block]
    missing = [name for name in OPTIONAL if importlib.util.find_spec(name) is None]
    code = [block for block in code if not any(re.search(rf"\b{name}\b", block) for name in missing)]
    namespace = {"__name__": "page"}
    # As a reader runs it: optax mixes dtypes, which the strict rules of the other tests forbid.
    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        for number, block in enumerate(code, 1):
            exec(compile(block, f"{name}, Python block {number}", "exec"), namespace)


def commands(text):
    """The shell commands as lists of words, without prompts, comments and what a command prints."""
    lines = [line for block in blocks(text, "sh", "bash", "console") for line in block.splitlines()]
    # In a block with prompts only lines with one are commands.
    prompted = [line.removeprefix("$ ") for line in lines if line.startswith("$ ")]
    split = [shlex.split(line, comments=True) for line in (prompted or lines)]
    return [words for words in split if words]


def unknown_command(words, targets, subcommands):
    """Whether a `make` target or a `snnjax` subcommand among `words` does not exist."""
    program = words[0].rsplit("/", 1)[-1]
    named = [word for word in words[1:] if not word.startswith("-") and "=" not in word]
    if program == "make":
        return not set(named) <= set(targets)
    return program == "snnjax" and named[:1] != [] and named[0] not in subcommands


def subcommands():
    """The subcommands that the program's own help lists."""
    from snnjax import cli

    return [name for name in ("train", "evaluate", "results", "new", "info") if helps(cli, name)]


def helps(cli, name):
    with pytest.raises(SystemExit) as exit_:
        cli.main([name, "--help"])
    return exit_.value.code == 0


@pytest.fixture(scope="module")
def readme():
    return (ROOT / "README.md").read_text()


def test_python_runs(readme, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert blocks(readme, "python")
    run_python(readme, "README.md")


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md"])
def test_commands_exist(name):
    named = commands((ROOT / name).read_text())
    targets = TARGET.findall((ROOT / "Makefile").read_text())
    assert ["make", "test"] in named
    assert [words for words in named if unknown_command(words, targets, subcommands())] == []


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md", "CHANGELOG.md"])
def test_links_lead_somewhere(name):
    links = LINK.findall((ROOT / name).read_text())
    assert [link for link in links if not (ROOT / link).exists()] == []


def test_wrong_text_is_found():
    text = "# A\n```python\nx = 1\n```\n```console\n$ make demo  # slow\ndone\n```\n[b](docs/b.md) [c](https://c.d)\n"
    assert blocks(text, "python") == ["x = 1\n"]
    assert commands(text) == [["make", "demo"]]
    assert LINK.findall(text) == ["docs/b.md"]
    assert unknown_command(["make", "demo"], ["test"], [])
    assert unknown_command([".venv/bin/snnjax", "fly", "--fast"], [], ["train"])
    assert not unknown_command(["make", "-j", "PYTHON=python3.12", "test"], ["test"], [])
    assert not unknown_command(["snnjax", "--help"], [], [])
