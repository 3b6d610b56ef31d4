"""The form of every error message, and the list of all of them: ``make messages``."""

import ast
import importlib
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

ROOT = Path(__file__).parents[2]
_FORM = re.compile(
    r"(?P<op>([A-Za-z]\w*|{[^}]+})(\.(\w+|{\w+}))*): `(?P<argument>[^`]+)` must (?P<expected>[a-z{].*?), "
    r"got (?P<actual>.+?)\. (?P<hint>[A-Z{`'/].*[^.\s])\.",
    re.DOTALL,
)
# What no message may contain, with what it is.
_WRONG = {
    r"  ": "two spaces",
    r"\.\.(?![.\w)\]/])(?<!\.\.\.)": "two full stops",
    r"(?<![\w.])1 (?!(as|is|has|was|bias|axis|class)\b)[a-z]+s\b": "1 with a plural",
    r"\b([a-z]+) \1\b": "a word twice",
    r"\([a-z][a-z ]+,\)": "a tuple of words",
    r"object at 0x|<(function|class) ": "the address or class of an object",
    r"\b(a (?!one\b|uni)[aeiou]\w*|an (?!hour\b|n\b)[b-df-hj-np-tv-z]\w*)\b": "the wrong article",
}
# The modules whose names a message may begin with, innermost last, and commands that raise in their own name.
_MODULES = [
    "snnjax",
    "snnjax.blocks",
    "snnjax.circuits",
    "snnjax.data",
    "snnjax.encoding",
    "snnjax.event_times",
    "snnjax.fixed_point",
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
    "snnjax._sparse_spikes",
    "snnjax.surrogates",
    "snnjax.train",
]
_COMMANDS = ("train", "evaluate", "results", "new", "benchmarks")
_OF_TESTS = ("marked", "product")  # ops of tests/evaluation/test_dispatch.py


class Check(NamedTuple):
    """A place in the source that raises a message."""

    place: str  # file:line
    message: str  # with placeholders in braces


def problems(message: str) -> list[str]:
    """What is wrong with a message, if anything: it has one form, is English, and names what the user called."""
    own_words = re.sub(r"'[^']*'", "''", message)  # what is quoted may hold anything
    parts = _FORM.fullmatch(own_words)
    if parts is None:
        return ["not of the form op: `argument` must <expected>, got <actual>. <hint>."]
    found = [what for pattern, what in _WRONG.items() if re.search(pattern, own_words)]
    if re.search(r"\. [A-Z]", parts["hint"]):
        found.append("more than one hint")
    if not is_public(parts["op"]):
        found.append(f"{parts['op']} is no public name")
    return found


def is_public(op: str) -> bool:
    """Whether users know what a message begins with: a function, a method, or what a neuron is made of."""
    first, *rest = op.split(".")
    if first in _COMMANDS + _OF_TESTS:
        return not rest
    if first.startswith("{"):  # known once it is raised
        return True
    neurons = importlib.import_module("snnjax.neurons")
    if rest and rest[0] in {*neurons.Neuron.__dataclass_fields__, "init", "step"}:
        return True  # in the name of a neuron, which may be a user's
    for module in list(
        map(importlib.import_module, _MODULES)
    ):  # all, so that each is known as a part of snnjax
        found = getattr(module, first, None)
        if found is None or first.startswith("_"):
            continue
        # Methods of a network are called on what the function `network` returned.
        if first == "network" and rest:
            found = importlib.import_module("snnjax").Network
        if not rest or rest[0].startswith("{") or hasattr(found, rest[0]):
            return True
    return False


def watch() -> None:
    """Check every message that is raised from now on, in whichever module."""
    check = importlib.import_module("snnjax._check")
    original: Callable[[str], NoReturn] = check.fail

    def fail(message: str) -> NoReturn:
        found = problems(message)
        assert not found, f"{', '.join(found)}: {message}"
        original(message)

    for name, module in list(sys.modules.items()):
        if name.split(".")[0] == "snnjax" and getattr(module, "fail", None) is original:
            module.__dict__["fail"] = fail


def checks() -> Iterator[Check]:
    """Every message in the source, with placeholders for what is known when it is raised."""
    for path in sorted((ROOT / "snnjax").rglob("*.py")):
        tree = ast.parse(path.read_text())
        functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "fail":
                around = [each for each in functions if node in ast.walk(each)]
                texts = {**_texts(tree.body, node), **_texts(list(ast.walk(around[-1])), node)}
                yield Check(f"{path.relative_to(ROOT)}:{node.lineno}", _template(node.args[0], texts))


def _texts(statements: list[Any], before: ast.expr) -> dict[str, ast.expr]:
    """What is assigned to names, of which the last assignment before the message counts."""
    texts: dict[str, ast.expr] = {}
    assignments = [each for each in statements if isinstance(each, ast.Assign)]
    for each in sorted(assignments, key=lambda each: each.lineno):
        target, value = each.targets[0], each.value
        targets, values = (
            (target.elts, value.elts)
            if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple)
            else ([target], [value])
        )
        for name, text in zip(targets, values, strict=True):
            if isinstance(name, ast.Name) and each.lineno < before.lineno:
                texts[name.id] = text
    return texts


def _template(node: ast.expr, texts: dict[str, ast.expr]) -> str:
    """The text of a string with ``{placeholders}``, and with the strings that its names stand for."""
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.IfExp):
        return f"{_template(node.body, texts)} | {_template(node.orelse, texts)}"
    assert isinstance(node, ast.JoinedStr), f"a message that is no string: {ast.unparse(node)}"
    return "".join(_part(part, texts) for part in node.values)


def _part(part: ast.expr, texts: dict[str, ast.expr]) -> str:
    if not isinstance(part, ast.FormattedValue):
        return _template(part, texts)
    stands_for = texts.get(part.value.id) if isinstance(part.value, ast.Name) else None
    own = {name: text for name, text in texts.items() if text is not stands_for}
    is_text = isinstance(stands_for, ast.JoinedStr) or (
        isinstance(stands_for, ast.Constant) and isinstance(stands_for.value, str)
    )
    is_choice = isinstance(stands_for, ast.IfExp) and all(
        isinstance(each, ast.JoinedStr | ast.Constant) for each in (stands_for.body, stands_for.orelse)
    )
    if stands_for is not None and (is_text or is_choice):
        return _template(stands_for, own)
    return f"{{{ast.unparse(part.value)}}}"


if __name__ == "__main__":
    for each in checks():
        print(f"{each.message}  [{each.place}]")
