"""A readable description of a network, and how two of them differ: checkpoints record the network that they are of."""

import dataclasses
import functools
import hashlib
import itertools
from typing import Any

import numpy as np

from snnjax.graph.containers import Node

# The names that describe an object: its class, or its function if it is a function with bound arguments.
_CLASS, _FUNCTION = "class", "function"


def describe(value: Any) -> Any:
    """A network, or any part of one, as JSON: classes, functions and numbers by name; arrays by a checksum.

    A function is described by its name and its bound arguments, so two of a user's own functions with one name are the
    same to it.
    """
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.bool_ | np.integer | np.floating):
        return value.item()
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
        return _named(_CLASS, type(value), fields)
    if isinstance(value, tuple) and value and all(isinstance(own, Node) for own in value):
        return {node.name: describe({"sources": node.sources, "block": node.block}) for node in value}
    names = getattr(value, "_fields", None)
    if isinstance(value, tuple) and names is not None:
        return _named(_CLASS, type(value), dict(zip(names, value, strict=True)))
    if isinstance(value, functools.partial):
        bound = {f"argument {place}": own for place, own in enumerate(value.args)} | value.keywords
        return _named(_FUNCTION, value.func, bound)
    if isinstance(value, dict):
        return {str(name): describe(own) for name, own in value.items()}
    if isinstance(value, tuple | list):
        return [describe(own) for own in value]
    if hasattr(value, "dtype") and hasattr(value, "shape"):
        return _of_array(np.asarray(value))
    return getattr(value, "__qualname__", type(value).__qualname__)


def _named(kind: str, what: Any, parts: dict[str, Any]) -> dict[str, Any]:
    name = getattr(what, "__qualname__", type(what).__qualname__)
    return {kind: name, **{part: describe(own) for part, own in parts.items()}}


def _of_array(array: np.ndarray) -> str:
    digest = hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()
    return f"{array.dtype.name}{list(array.shape)} {digest[:16]}"


def first_difference(old: Any, new: Any, path: str) -> tuple[str, Any, Any] | None:
    """The path of what differs first between two descriptions, and both values; None if nothing does."""
    if isinstance(old, dict) and isinstance(new, dict):
        pairs = [(_joined(path, name), old.get(name), new.get(name)) for name in {**old, **new}]
    elif isinstance(old, list) and isinstance(new, list):
        both = itertools.zip_longest(old, new, fillvalue="nothing")
        pairs = [(f"{path}[{place}]", *pair) for place, pair in enumerate(both)]
    else:
        is_same = old == new and isinstance(old, bool) == isinstance(new, bool)
        return None if is_same else (path, _name_of(old), _name_of(new))
    found = (first_difference(before, after, where) for where, before, after in pairs)
    return next((each for each in found if each is not None), None)


def _name_of(value: Any) -> Any:
    """The class of a described object, or of the block of a described node; other values as they are."""
    own = value.get("block", value) if isinstance(value, dict) else {}
    return own.get(_CLASS) or own.get(_FUNCTION) or value


def _joined(path: str, name: str) -> str:
    return path if name in (_CLASS, _FUNCTION) else f"{path}.{name}"
