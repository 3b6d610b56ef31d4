"""Arrays from a pickle, without unpickling it: nothing that the file names is imported, called or given a state.

A pickle is a program for a machine with a stack. This one knows the instructions for numbers, text, lists and
dictionaries, and three calls: of NumPy's dtype and empty array, whose states are checked here, and of the codec that
Python 2 wrote bytes with. It stops at any other.

Source: the opcodes are described in Python's module pickletools; the states by NumPy's `ndarray.__reduce__`.
"""

import math
import pickletools
import re
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from snnjax._types import State

# Names that NumPy's arrays are pickled with.
_CALLS = {
    "_codecs encode": "bytes",
    "numpy dtype": "dtype",
    "numpy ndarray": "array type",
    "numpy.core.multiarray _reconstruct": "array",
    "numpy._core.multiarray _reconstruct": "array",
}
_DTYPE = re.compile(r"O8?|b1|[iu][1248]|f[248]|[SU][0-9]{1,6}")
_CONSTANTS = {
    "NONE": lambda: None,
    "NEWTRUE": lambda: True,
    "NEWFALSE": lambda: False,
    "EMPTY_TUPLE": tuple,
    "EMPTY_LIST": list,
    "EMPTY_DICT": dict,
}
_VALUES = {
    *("INT", "LONG", "LONG1", "LONG4", "BININT", "BININT1", "BININT2", "FLOAT", "BINFLOAT"),
    *("UNICODE", "BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8", "SHORT_BINBYTES", "BINBYTES", "BINBYTES8"),
    *(
        "STRING",
        "BINSTRING",
        "SHORT_BINSTRING",
    ),  # of Python 2: bytes, which arrive as the text of their numbers
}
_IGNORED = {"PROTO", "FRAME", "STOP"}
_TUPLES = {"TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}


class _Name(NamedTuple):
    """What a call would be of."""

    what: str


@dataclass
class PickledDtype:
    """A dtype without a byte order, and its order."""

    kind: str
    order: str = "="


@dataclass
class PickledArray:
    """An array before and after it has got its state."""

    shape: tuple[int, ...] = (0,)
    dtype: PickledDtype | None = None
    transposed: bool = False  # last axis slowest
    content: Any = b""  # bytes, or a list of objects

    def objects(self) -> list[Any]:
        """The objects of an array of objects."""
        if not isinstance(self.content, list) or len(self.content) != math.prod(self.shape):
            raise ValueError("no array of objects")
        return self.content

    def numbers(self) -> np.ndarray:
        """The array, if it is one of numbers."""
        if self.dtype is None or self.dtype.kind[0] not in "biuf" or not isinstance(self.content, bytes):
            raise ValueError("no array of numbers")
        flat = np.frombuffer(self.content, np.dtype(self.dtype.order + self.dtype.kind))
        return flat.reshape(self.shape, order="F" if self.transposed else "C")


def load(content: bytes) -> Any:
    """The numbers, texts, lists and dictionaries of a pickle, in which arrays are `PickledArray`.

    Errors: a ValueError for any other pickle, and for damaged ones.
    """
    machine = _Machine()
    for opcode, argument, _ in pickletools.genops(content):
        machine.do(opcode.name, argument)
    (result,) = machine.stack
    return result


class _Machine:
    """The stack, the marks on it, and what was remembered."""

    def __init__(self) -> None:
        self.stack: list[Any] = []
        self.marks: list[int] = []
        self.memo: dict[int, Any] = {}

    def do(self, name: str, argument: Any) -> None:
        """Run one instruction."""
        stack = self.stack
        if name in _CONSTANTS:
            stack.append(_CONSTANTS[name]())
        elif name == "MARK":
            self.marks.append(len(stack))
        elif name in ("MEMOIZE", "PUT", "BINPUT", "LONG_BINPUT"):
            self.memo[len(self.memo) if argument is None else argument] = stack[-1]
        elif name in ("GET", "BINGET", "LONG_BINGET"):
            stack.append(self.memo[argument])
        elif name in _TUPLES:
            stack.append(tuple(self.pop(_TUPLES[name])))
        elif name in ("TUPLE", "LIST"):
            values = self.pop_to_mark()
            stack.append(tuple(values) if name == "TUPLE" else values)
        elif name in ("APPEND", "APPENDS", "SETITEM", "SETITEMS"):
            self.extend(name)
        elif name in ("GLOBAL", "STACK_GLOBAL"):
            stack.append(_named(argument if name == "GLOBAL" else " ".join(self.pop(2))))
        elif name == "REDUCE":
            stack.append(_called(*self.pop(2)))
        elif name == "BUILD":
            (state,) = self.pop(1)
            _give_state(stack[-1], state)
        elif name in _VALUES:
            stack.append(argument)
        elif name not in _IGNORED:
            raise ValueError(f"a pickle with {name}")

    def pop(self, number: int) -> list[Any]:
        """The last values, which leave the stack."""
        if len(self.stack) - (self.marks[-1] if self.marks else 0) < number:
            raise ValueError("a pickle that takes more than there is")
        values = self.stack[len(self.stack) - number :]
        del self.stack[len(self.stack) - number :]
        return values

    def pop_to_mark(self) -> list[Any]:
        """The values since the last mark, which leave the stack."""
        start = self.marks.pop()
        values = self.stack[start:]
        del self.stack[start:]
        return values

    def extend(self, name: str) -> None:
        """Add values to the list or dictionary below them."""
        values = self.pop_to_mark() if name.endswith("S") else self.pop(1 if name == "APPEND" else 2)
        place = self.stack[-1]
        if name.startswith("APPEND") and isinstance(place, list):
            place.extend(values)
        elif name.startswith("SETITEM") and isinstance(place, dict):
            place.update(zip(values[::2], values[1::2], strict=True))
        else:
            raise ValueError(f"a pickle with {name} of a {type(place).__name__}")


def _named(name: str) -> _Name:
    if name not in _CALLS:
        raise ValueError(f"a pickle that calls {name.replace(' ', '.')}")
    return _Name(_CALLS[name])


def _called(function: Any, arguments: Any) -> Any:
    """What the call would have returned."""
    what = function.what if isinstance(function, _Name) else None
    if what == "array":
        return PickledArray()
    if what == "bytes" and len(arguments) == 2 and arguments[1] == "latin1":
        return arguments[0].encode("latin1")
    if what == "dtype" and isinstance(arguments[0], str) and _DTYPE.fullmatch(arguments[0]):
        return PickledDtype(arguments[0])
    raise ValueError("a pickle with another call than those of arrays")


def _give_state(of: Any, state: State) -> None:
    """Check the state of an array or a dtype, and give it."""
    if isinstance(of, PickledDtype) and len(state) in (8, 9) and state[1] in ("<", ">", "|"):
        of.order = state[1]
        return
    if not isinstance(of, PickledArray) or len(state) != 5:
        raise ValueError("a pickle with the state of no array")
    _, shape, dtype, transposed, content = state
    content = content.encode("latin1") if isinstance(content, str) else content
    good = isinstance(shape, tuple) and all(type(length) is int and length >= 0 for length in shape)
    if not good or not isinstance(dtype, PickledDtype) or not isinstance(content, bytes | list):
        raise ValueError("a pickle with an array of another state")
    of.shape, of.dtype, of.transposed, of.content = shape, dtype, bool(transposed), content
