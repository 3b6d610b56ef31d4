"""The form of every error message, and the list of all of them: ``make messages``.

`watch` checks each message that a test provokes, and appends it to the file that the variable `SNNJAX_MESSAGES` names.
"""

import ast
import importlib
import os
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

ROOT = Path(__file__).parents[1]
VARIABLE = "SNNJAX_MESSAGES"
_FORM = re.compile(
    r"(?P<op>[A-Za-z]\w*(\.\w+)*): `(?P<argument>[^`]+)` must (?P<expected>[a-z].*?), got (?P<actual>.+)\. "
    r"(?P<hint>[A-Z`'/].*[^.\s])\.",
    re.DOTALL,
)
# What no message may contain, with what it is.
_WRONG = {
    r"  ": "two spaces",
    r"\.\.(?![.\w)\]/])(?<!\.\.\.)": "two full stops",
    r"(?<![\w.])1 (?!(as|is|has|was|bias|axis|class)\b)[a-z]+s\b": "1 with a plural",
    r"\b(\w+) \1\b(?<!\d)": "a word twice",
    r"\([a-z][a-z ]+,\)": "a tuple of words",
    r"object at 0x|<(function|class) ": "the address or class of an object",
    r"\b(a (?!one\b|uni)[aeiou]\w*|an (?!hour\b|n\b)[b-df-hj-np-tv-z]\w*)\b": "the wrong article",
}
# The modules whose names a message may begin with, innermost last, and commands that raise in their own name.
_MODULES = [
    "snnjax",
    "snnjax.data",
    "snnjax.encoding",
    "snnjax.event_times",
    "snnjax.ipu",
    "snnjax.losses",
    "snnjax.metrics",
    "snnjax.neurobench",
    "snnjax.neurons",
    "snnjax.nir",
    "snnjax.online",
    "snnjax.ops",
    "snnjax.plasticity",
    "snnjax.plot",
    "snnjax.quantisation",
    "snnjax.sparse_spikes",
    "snnjax.surrogates",
    "snnjax.train",
]
_COMMANDS = ("train", "benchmarks")
_OF_TESTS = ("marked", "product")  # ops of tests/test_dispatch.py


class Check(NamedTuple):
    """A place in the source that raises a message."""

    place: str  # file:line
    message: str  # with placeholders in braces


def problems(message: str) -> list[str]:
    """What is wrong with a message, if anything: it has one form, is English, and names what the user called."""
    parts = _FORM.fullmatch(message)
    if parts is None:
        return ["not of the form op: `argument` must <expected>, got <actual>. <hint>."]
    own_words = re.sub(r"'[^']*'", "''", message)  # what is quoted may hold anything
    found = [what for pattern, what in _WRONG.items() if re.search(pattern, own_words)]
    if not is_public(parts["op"]):
        found.append(f"{parts['op']} is no public name")
    return found


def is_public(op: str) -> bool:
    """Whether users know what a message begins with: a function, a method, or what a neuron is made of."""
    first, *rest = op.split(".")
    if first in _COMMANDS + _OF_TESTS:
        return not rest
    if rest and rest[0] in {*_neuron().Neuron._fields, "init", "step"}:
        return True  # in the name of a neuron, which may be a user's
    for module in map(importlib.import_module, _MODULES):
        found: Any = getattr(module, first, None)
        if found is None or first.startswith("_"):
            continue
        # Methods of a network are called on what the function `network` returned.
        found = (
            importlib.import_module("snnjax").Network if (first, bool(rest)) == ("network", True) else found
        )
        if not rest or all(hasattr(found, name) for name in rest[:1]):
            return True
    return False


def _neuron() -> Any:
    return importlib.import_module("snnjax.neurons")


def watch() -> None:
    """Check every message that is raised from now on, in whichever module."""
    check = importlib.import_module("snnjax._check")
    original: Callable[[str], NoReturn] = check.fail

    def fail(message: str) -> NoReturn:
        found = problems(message)
        assert not found, f"{', '.join(found)}: {message}"
        _record(message, sys._getframe(1))
        original(message)

    for name, module in list(sys.modules.items()):
        if name.split(".")[0] == "snnjax" and getattr(module, "fail", None) is original:
            module.__dict__["fail"] = fail


def _record(message: str, frame: Any) -> None:
    path = os.environ.get(VARIABLE)
    if path is not None:
        place = f"{Path(frame.f_code.co_filename).relative_to(ROOT)}:{frame.f_lineno}"
        with Path(path).open("a") as file:
            file.write(f"{message!r}\t{place}\n")


def checks() -> Iterator[Check]:
    """Every message in the source, with placeholders."""
    for path in sorted((ROOT / "snnjax").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "fail":
                yield Check(f"{path.relative_to(ROOT)}:{node.lineno}", template(node.args[0]))


def template(node: ast.expr) -> str:
    """The text of a string with ``{placeholders}``."""
    if isinstance(node, ast.Constant):
        return str(node.value)
    assert isinstance(node, ast.JoinedStr), f"a message that is no string: {ast.unparse(node)}"
    return "".join(
        str(part.value) if isinstance(part, ast.Constant) else f"{{{ast.unparse(part.value)}}}"
        for part in node.values
    )


def main(path: Path) -> None:
    """Replace what `watch` wrote by a sorted list, followed by the checks that no test provoked."""
    lines = sorted(set(path.read_text().splitlines()))
    provoked = {line.rpartition("\t")[2] for line in lines}
    messages = sorted({ast.literal_eval(line.rpartition("\t")[0]) for line in lines})
    missing = [f"{each.place}: {each.message}" for each in checks() if each.place not in provoked]
    heading = f"\n{len(missing)} checks that no test of this run provoked:\n"
    path.write_text("\n".join([f"{len(messages)} messages:\n", *messages, heading, *missing]) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
