"""A StableHLO operation as the rules see it: values as numbers, attributes as Python objects."""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from snnjax._jax_compat import ir
from snnjax.ipu.lowering.types import ArrayType, numpy_dtype

if TYPE_CHECKING:
    from snnjax.ipu.lowering.walk import Walk


class Operation:
    """An operation with the values of its operands and the types of its results."""

    __slots__ = ("attributes", "inputs", "name", "regions", "source", "types", "walk")

    def __init__(
        self, walk: "Walk", name: str, inputs: list[int], types: list[ArrayType], source: Any
    ) -> None:
        self.walk = walk
        self.name = name
        self.inputs = inputs
        self.types = types
        self.source = source
        self.attributes = source.attributes
        self.regions = source.regions

    @property
    def builder(self) -> Any:
        """The builder that receives the instructions."""
        return self.walk.builder

    def on(self, inputs: Sequence[int], types: Sequence[ArrayType]) -> "Operation":
        """The same operation on other values and with other result types."""
        return Operation(self.walk, self.name, list(inputs), list(types), self.source)

    def input_types(self) -> list[ArrayType]:
        """The types of the operands."""
        return [self.builder.types[value] for value in self.inputs]

    def ints(self, name: str, otherwise: Sequence[int] = ()) -> tuple[int, ...]:
        """An attribute ``array<i64: ...>`` or ``dense<...> : tensor<...xi64>``, flat."""
        if name not in self.attributes:
            return tuple(otherwise)
        attribute = self.attributes[name]
        try:
            return tuple(ir.DenseI64ArrayAttr(attribute))
        except ValueError:
            return tuple(map(int, np.array(ir.DenseIntElementsAttr(attribute)).ravel()))

    def integer(self, name: str, otherwise: int = 0) -> int:
        """An attribute ``3 : i64``."""
        return ir.IntegerAttr(self.attributes[name]).value if name in self.attributes else otherwise

    def flag(self, name: str) -> bool:
        """An attribute ``true`` or ``false``; false if it is missing."""
        return name in self.attributes and ir.BoolAttr(self.attributes[name]).value

    def flags(self, name: str, otherwise: Sequence[bool] = ()) -> tuple[bool, ...]:
        """An attribute ``array<i1: ...>``."""
        return tuple(ir.DenseBoolArrayAttr(self.attributes[name]) if name in self.attributes else otherwise)

    def text(self, name: str, otherwise: str = "") -> str:
        """An attribute ``"text"``, or the name in ``@name``."""
        if name not in self.attributes:
            return otherwise
        attribute = self.attributes[name]
        try:
            return ir.StringAttr(attribute).value
        except ValueError:
            return ir.FlatSymbolRefAttr(attribute).value

    def enumeration(self, name: str, otherwise: str = "") -> str:
        """An attribute such as ``#stablehlo<comparison_direction LT>``: its last word."""
        return str(self.attributes[name]).rstrip(">").split()[-1] if name in self.attributes else otherwise

    def refuse(self, what: str, hint: str) -> Exception:
        """The error that refuses this operation."""
        return self.builder.refuse(self.inputs, what, hint)


def array_of(attribute: Any, type_: ArrayType) -> np.ndarray:
    """The elements of a constant; a repeated single element is a broadcast view."""
    dtype = numpy_dtype(type_.dtype)
    try:
        dense = ir.DenseElementsAttr(attribute)
    except ValueError:
        dense = None
    if type_.dtype == "bf16":  # which Python's buffer protocol does not know
        flat = _bfloat16s(str(attribute))
        splat = flat.size == 1
    elif dense is None:
        return np.array(attribute).astype(dtype).reshape(type_.shape)
    elif dense.is_splat:
        flat, splat = np.array(dense).reshape(-1)[:1].astype(dtype), True
    else:
        return np.ascontiguousarray(np.array(dense).astype(dtype)).reshape(type_.shape)
    return np.broadcast_to(flat[0], type_.shape) if splat else flat.reshape(type_.shape)


def complex_array(text: str, type_: ArrayType) -> np.ndarray:
    """The elements in ``dense<[(1.0,2.0), (0x7FC00000,-1.0)]>``, or in ``dense<"0x0000803F...">`` if there are many."""
    body = text[text.index("dense<") + len("dense<") : text.rindex(">", 0, text.rindex(" : "))]
    if body.startswith('"0x'):
        flat = np.frombuffer(bytes.fromhex(body[3:-1]), np.complex64)
    else:
        words = re.findall(r"0x[0-9A-Fa-f]+|[-+.\w]+", body)
        numbers = [
            np.uint32(int(word, 16)).view(np.float32) if word.startswith("0x") else np.float32(word)
            for word in words
        ]
        flat = np.array(numbers, np.float32).view(np.complex64)
    return np.broadcast_to(flat[0], type_.shape) if flat.size == 1 else flat.reshape(type_.shape)


def _bfloat16s(text: str) -> np.ndarray:
    """The elements in ``dense<[1.0, 0x7FC0]>``, or in ``dense<"0x803F...">`` if there are many."""
    body = text[text.index("<") + 1 : text.rindex(">", 0, text.rindex(":"))]
    if body.startswith('"0x'):
        return np.frombuffer(bytes.fromhex(body[3:-1]), numpy_dtype("bf16"))
    words = re.findall(r"0x[0-9A-Fa-f]+|[-+.\w]+", body)
    return np.array(
        [
            np.uint16(int(word, 16)).view(numpy_dtype("bf16"))
            if word.startswith("0x")
            else numpy_dtype("bf16").type(float(word))
            for word in words
        ],
        numpy_dtype("bf16"),
    )
