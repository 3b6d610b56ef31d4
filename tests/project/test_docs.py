"""The documentation is correct: every public name is listed, its Python runs, its links work."""

import importlib
import json
import re

import pytest

import snnjax
from tests.project.architecture import ROOT, names_of
from tests.project.test_docstrings import PUBLIC
from tests.project.test_readme import LINK, TARGET, blocks, commands, run_python, subcommands, unknown_command

PAGES = sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*.md"))
# Public modules, whose names are called as snnjax.<module>.<name>.
MODULES = [f"snnjax.{part}" for part in PUBLIC]
DIRECTIVE = re.compile(r"^\.\. (?:autofunction|autoclass|py:data):: (\S+)$", re.MULTILINE)
ENTRY = re.compile(r"^```\{toctree\}\n(.*?)^```$", re.MULTILINE | re.DOTALL)
ROW = re.compile(r"^\| .*\| `(neurons\.\w+\(.*\))` \|$", re.MULTILINE)
# Where the figures of a workload stand; others repeat or round them. What a row there says of another device, dtype or
# surrogate has a page of its own.
FAST, MODEL, KERNELS = (
    "docs/how_to/faster_than_what.md",
    "xla_ext/ipu_model/README.md",
    "xla_ext/README.md",
)
OF_OTHER_KINDS = [
    *(f"docs/how_to/{page}.md" for page in ("bfloat16", "capacity_and_thresholds", "int8")),
    "docs/explanation/gpu.md",
]
HOMES = {
    r"2312-1024-512-256-10|\bW3\b|700-256 \(recurrent\)-20|\bW2\b": (FAST, KERNELS, *OF_OTHER_KINDS),
    r"[Tt]imes faster|Speed-up over the fastest": (FAST, "docs/how_to/capacity_and_thresholds.md"),
    r"2312-1466-1466-10|[Hh]ardware log|sparse training steps": (MODEL,),
    r"[Bb]eside (halves|products of halves)|With a recurrent layer": (MODEL,),
    r"CPU time.{0,8} of the whole|34x34x2|camera takes": ("docs/explanation/results.md", FAST),
    r"--task digits|[Tt]he (demo|first command) takes": ("README.md", "docs/explanation/results.md"),
    r"784-\d+|takes 26 ms": (FAST,),
    r"4,?096 neurons|128-4096-10": ("docs/explanation/sparse_measurements.md", MODEL),
    r"\| digits \||--model conv|On the 2,000 test digits": ("docs/explanation/results.md",),
    r"\bH[12]00\b": ("docs/explanation/gpu.md",),
    r"\bCUBA\b|\bCOBA\b|in Brian2": ("docs/explanation/sparse_measurements.md",),
    r"[Cc]ortical column|299 million": ("docs/explanation/sparse_measurements.md",),
    r"CIFAR-10\b(?!-DVS)|\bQTDB\b|[Hh]eartbeat": ("docs/explanation/results.md",),
    r"temporaries|compiler_options": ("docs/how_to/larger_programs.md",),
    r"[Ww]heel (weighs|of \d)": ("docs/start.md",),
    r"[Pp]ipeline|modelled IPUs (train|\()": ("xla_ext/executor/README.md",),
}
UNITS = r"ms|s|µs|seconds|minutes|x|times|%|MB|MiB|thousand cycles|M cycles"
FIGURE = re.compile(
    rf"(?<![\w.,-])(\d+(?:\.\d+)?)(?=(?:,? (?:to|and|or|beside) \d+(?:\.\d+)?)? ?(?:{UNITS})(?![\w-]))"
)
NUMBER = re.compile(r"(?<![\w.,-])\d+(?:\.\d+)?(?![\w,-])")
# A function that is compiled, with its decorator. `nnx.jit` passes no options on.
COMPILED = re.compile(r"^@((?:jax\.|eqx\.filter_)jit.*)\ndef .*\n((?:[ ].*\n|\n(?=[ ]))+)", re.MULTILINE)


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
    index = names_of(snnjax).keys() - {"blocks", "neurons"}
    public = {f"snnjax.{name}" for name in index}
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


def test_front_page_is_short():
    assert len((ROOT / "README.md").read_text().split()) <= 1200


def steps_without_options(text):
    """The decorators of training steps that are compiled without the options that make them fast."""
    found = [match for block in blocks(text, "python") for match in COMPILED.findall(block)]
    return [head for head, body in found if "apply_updates" in body and "compiler_options" not in head]


def test_training_steps_are_compiled_with_the_options():
    """JAX takes options at the outermost `jax.jit` only, which is the user's: so listings show them."""
    texts = [(ROOT / page).read_text() for page in [*PAGES, "README.md"]]
    assert sum(text.count("jit(compiler_options=") for text in texts) > 5
    assert [found for text in texts for found in steps_without_options(text)] == []
    plain = "```python\n@jax.jit\ndef step(x):\n    y = x\n\n    return optax.apply_updates(x, y)\n```\n"
    assert steps_without_options(plain) == ["jax.jit"]


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


def documents():
    """The text of each, of notebooks the words alone."""
    found = {
        path.relative_to(ROOT).as_posix(): path.read_text()
        for pattern in ("*.md", "docs/**/*.md", "xla_ext/**/README.md", "poplar_kernels/README.md")
        for path in ROOT.glob(pattern)
    }
    for path in (ROOT / "notebooks").glob("*.ipynb"):
        cells = [cell for cell in json.loads(path.read_text())["cells"] if cell["cell_type"] == "markdown"]
        found[path.relative_to(ROOT).as_posix()] = "\n\n".join("".join(cell["source"]) for cell in cells)
    return found


def figures_of(workload, text):
    """The numbers with a unit in sentences that name a workload, and those of rows that do, or whose section does."""
    found, section = [], ""
    for block in re.split(r"\n\s*\n|\n(?=[-*] )", text):
        if block.startswith("|"):
            top, *rows = [row.strip("|").split("|") for row in block.splitlines()]
            named = False
            for first, *cells in rows:
                named = bool(re.search(workload, f"{section} {top[0]} {first}")) or (
                    named and first.strip().startswith("the same")
                )
                found += [number for cell in cells for number in NUMBER.findall(cell)] if named else []
            continue
        section = block if block.startswith("#") else f"{section} {block}"
        for sentence in re.split(r"(?<=[.:;]) ", " ".join(block.split())):
            found += FIGURE.findall(sentence) if re.search(workload, sentence) else []
    return found


def sections(text):
    """Its parts, each from a heading to the next one."""
    return re.split(r"\n(?=#+ )", text)


def contradictions(texts, homes):
    """Figures of a workload that no section about it in its homes has, by document."""
    found = []
    for workload, places in homes.items():
        own = [part for place in places for part in sections(texts[place]) if re.search(workload, part)]
        known = {float(number) for part in own for number in NUMBER.findall(part)}
        for name in texts.keys() - {*places}:
            for figure in figures_of(workload, texts[name]):
                digits = len(figure.partition(".")[2])
                if all(round(number, digits) != float(figure) for number in known):
                    found.append((name, workload, figure))
    return sorted(found)


def test_figures_of_a_workload_are_those_of_its_home():
    assert contradictions(documents(), HOMES) == []


def test_second_figure_of_a_workload_is_found():
    texts = {
        "home": "| network | ms |\n| --- | --- |\n| 8-4-2 | 1.54 |\n",
        "rounded": "A step of 8-4-2 takes 1.5 ms. Another one takes 9 ms.\n",
        "other": "A step of 8-4-2 takes 6 ms.\n",
        "below": "Steps of 8-4-2:\n\n| | step |\n| --- | --- |\n| sparse | 6.03 ms |\n",
    }
    assert contradictions(texts, {"8-4-2": ("home",)}) == [
        ("below", "8-4-2", "6.03"),
        ("other", "8-4-2", "6"),
    ]
