"""Every example in a docstring runs, and every public function has a complete docstring."""

import ast
import doctest
import importlib
import importlib.util

import pytest

from snnjax.ipu.device import library
from tests.project.architecture import ROOT, imports, module_of, public_names, python_files

# What users import from; of a package, the functions that its index names, of a module, those without underscore.
PUBLIC = (
    "surrogates",
    "ops",
    "neurons",
    "blocks",
    "circuits",
    "graph",
    "losses",
    "online",
    "event_times",
    "fixed_point",
    "plasticity",
    "quantisation",
    "encoding",
    "metrics",
    "models",
    "train",
    "nir",
    "neurobench",
    "plot",
    "data",
    "ipu",
)
DEFINITIONS = (ast.FunctionDef, ast.ClassDef)


def docstrings(source, prefix=""):
    """Pairs of a dotted name and a docstring: of the module (no name), its classes, methods and functions."""
    tree = ast.parse(source) if isinstance(source, str) else source
    if text := ast.get_docstring(tree):
        yield prefix, text
    for node in tree.body:
        if isinstance(node, DEFINITIONS):
            yield from docstrings(node, f"{prefix}.{node.name}".lstrip("."))


def missing_parts(function):
    """What the docstring of a public function lacks."""
    text = ast.get_docstring(function) or ""
    calls = [ast.unparse(node.func) for node in ast.walk(function) if isinstance(node, ast.Call)]
    refuses = any("check" in call or call.split(".")[-1] == "fail" for call in calls)
    parts = {
        "a first sentence": text.split("\n\n")[0].rstrip().endswith("."),
        "an example": "Example:" in text and ">>> " in text,
        "its errors": not refuses or "Raises:" in text or "rrors" in text,
    }
    return [part for part, there in parts.items() if not there]


def is_public(function):
    """Whether users call it; a function whose first argument is `op` raises errors for its caller."""
    arguments = [argument.arg for argument in function.args.args]
    return not function.name.startswith("_") and arguments[:1] != ["op"]


def in_the_index(part):
    """The names that `snnjax` has from one of its packages."""
    names = [name for name, _ in imports((ROOT / "snnjax/__init__.py").read_text())]
    return [name.split(".")[-1] for name in names if name.startswith(f"snnjax.{part}.")]


def public_functions():
    """Pairs of a path and the definition of a public function."""
    for path in python_files("snnjax"):
        part = path.removesuffix(".py").split("/")[1]
        if part not in PUBLIC:
            continue
        index = f"snnjax/{part}/__init__.py"
        package = (ROOT / index).exists()
        names = public_names((ROOT / index).read_text()) + in_the_index(part) if package else []
        for node in ast.parse((ROOT / path).read_text()).body:
            named = not package or path == index or getattr(node, "name", None) in names
            if isinstance(node, ast.FunctionDef) and named and is_public(node):
                yield path, node


def run_examples(text, name, globals_of_examples):
    """The number of examples in `text`, and a report of those with a different result."""
    report = []
    flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    test = doctest.DocTestParser().get_doctest(text, dict(globals_of_examples), name, name, 0)
    result = doctest.DocTestRunner(optionflags=flags, verbose=False).run(test, out=report.append)
    return result.attempted, "".join(report)


EXAMPLES = [
    pytest.param(module_of(path), text, id=f"{module_of(path)}:{name}")
    for path in python_files("snnjax")
    for name, text in docstrings((ROOT / path).read_text())
    if ">>> " in text
]


@pytest.mark.parametrize("module, text", EXAMPLES)
def test_example_runs(module, text, tmp_path, monkeypatch):
    if module.startswith("snnjax.ipu") and (sentence := library.missing()):
        pytest.skip(sentence)
    if module == "snnjax.neurobench" and importlib.util.find_spec("neurobench") is None:
        pytest.skip("NeuroBench is not installed")
    monkeypatch.chdir(tmp_path)
    count, report = run_examples(text, module, vars(importlib.import_module(module)))
    assert count > 0
    assert not report, report


def test_public_functions_say_what_a_reader_needs():
    functions = list(public_functions())
    lacks = [f"{path}: {node.name} lacks {part}" for path, node in functions for part in missing_parts(node)]
    assert not lacks, "\n".join(lacks)
    assert {"spike_matmul", "superspike"} <= {node.name for _, node in functions}


def first_lines_with_a_colon(source):
    """Names of properties that the site would show with a type: the words before the colon."""
    for node in ast.walk(ast.parse(source)):
        is_property = any("property" in ast.unparse(each) for each in getattr(node, "decorator_list", []))
        if is_property and ":" in (ast.get_docstring(node) or "").partition("\n")[0]:
            yield node.name


def test_first_lines_of_properties_have_no_colon():
    assert list(first_lines_with_a_colon('@property\ndef f(x):\n    """A, B: c."""')) == ["f"]
    found = {
        path: list(first_lines_with_a_colon((ROOT / path).read_text())) for path in python_files("snnjax")
    }
    assert not {path: names for path, names in found.items() if names}


def test_wrong_example_is_found():
    assert run_examples(">>> 1 + 1\n2\n", "right", {}) == (1, "")
    assert "Got:\n    2" in run_examples(">>> 1 + 1\n3\n", "wrong", {})[1]
    assert "ZeroDivisionError" in run_examples(">>> 1 / 0\n", "raises", {})[1]


@pytest.mark.parametrize(
    "source, missing",
    [
        ("def f(): ...", ["a first sentence", "an example"]),
        ('def f():\n    """Twice."""', ["an example"]),
        ('def f():\n    """Twice\n\n    Example:\n        >>> f()\n    """', ["a first sentence"]),
        (
            'def f(x):\n    """Twice.\n\n    Example:\n        >>> f()\n    """\n    check_shape(x)',
            ["its errors"],
        ),
        (
            'def f(x):\n    """Twice.\n\n    Raises:\n        E: always.\n\n    Example:\n        >>> f()\n    """',
            [],
        ),
    ],
)
def test_missing_parts_are_found(source, missing):
    assert missing_parts(ast.parse(source).body[0]) == missing


def test_docstrings_of_classes_and_methods_are_found():
    source = '"""M."""\nclass A:\n    """C."""\n    def f(self):\n        """F."""'
    assert list(docstrings(source)) == [("", "M."), ("A", "C."), ("A.f", "F.")]
