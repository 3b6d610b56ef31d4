"""A StableHLO operation as the rules see it, and what they may ask of the walk over its module."""

import re
from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import numpy as np

from snnjax._jax_compat import func, ir
from snnjax.ipu.lowering.builder import Builder
from snnjax.ipu.lowering.errors import Unsupported
from snnjax.ipu.lowering.locations import user_line
from snnjax.ipu.lowering.sharding import Sharding
from snnjax.ipu.lowering.types import ArrayType, numpy_dtype


@runtime_checkable
class Walk(Protocol):
    """What rules use of the walk over a module (`walk.ModuleWalk`), which calls them."""

    attempt: int  # how many plans of the module did not fit into the tiles
    builder: Builder
    functions: dict[str, func.FuncOp]
    meshes: dict[str, ir.Attribute]
    num_partitions: int
    shardings: dict[int, Sharding]  # of values that are sharded over IPUs
    manual: frozenset[str]  # the mesh axes of the `shard_map` around
    is_manual: bool  # inside one over all axes
    shape: tuple[int, ...] | None  # of the arrays to which a block of scalars is applied
    mask: int | None  # their elements that a branch or loop is for, if not all

    def array_type(self, type_: ir.Type) -> ArrayType:
        """The type of a value of the module."""
        ...

    def block(self, block: ir.Block, inputs: Sequence[int]) -> list[int]:
        """The results of a block of the module, whose operations are added at the builder's current position."""
        ...

    def lower(self, operation: "Operation") -> Sequence[int]:
        """The results of an operation, given the values of its operands."""
        ...


class Operation:
    """An operation with the values of its operands and the types of its results; attributes as Python objects."""

    __slots__ = ("attributes", "builder", "inputs", "name", "regions", "source", "types", "walk")

    def __init__(
        self, walk: Walk, name: str, inputs: list[int], types: list[ArrayType], source: ir.Operation
    ) -> None:
        self.walk = walk
        self.builder = walk.builder  # receives the instructions
        self.name = name
        self.inputs = inputs
        self.types = types
        self.source = source
        self.attributes = source.attributes
        self.regions = source.regions

    def called(self, function: str) -> list[int]:
        """The results of a function of the module for the operands, inlined."""
        source = self.walk.functions[function]
        # Neither a call of a function that is jitted by itself nor its operations need have a line: it has that of its
        # first call then.
        with self.builder.at(self.builder.op, self.builder.where or user_line(str(source.location))):
            return self.walk.block(source.regions[0].blocks[0], self.inputs)

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

    def text(self, name: str) -> str:
        """An attribute ``"text"``, or the name in ``@name``; empty if it is missing."""
        if name not in self.attributes:
            return ""
        attribute = self.attributes[name]
        try:
            return ir.StringAttr(attribute).value
        except ValueError:
            return ir.FlatSymbolRefAttr(attribute).value

    def enumeration(self, name: str) -> str:
        """An attribute such as ``#stablehlo<comparison_direction LT>``: its last word; empty if it is missing."""
        return str(self.attributes[name]).rstrip(">").split()[-1] if name in self.attributes else ""

    def refuse(self, what: str, hint: str) -> Unsupported:
        """The error that refuses this operation."""
        return self.builder.refuse(self.inputs, what, hint)


def array_of(attribute: ir.Attribute, type_: ArrayType) -> np.ndarray:
    """The elements of a constant; a repeated single element is a broadcast view."""
    dtype = numpy_dtype(type_.dtype)
    if type_.dtype == "bf16":  # which Python's buffer protocol does not know
        return from_text(str(attribute), type_)
    try:
        dense = ir.DenseElementsAttr(attribute)
    except ValueError:
        return np.array(attribute).astype(dtype).reshape(type_.shape)
    if dense.is_splat:
        return np.broadcast_to(np.array(dense).reshape(-1)[0].astype(dtype), type_.shape)
    return np.ascontiguousarray(np.array(dense).astype(dtype)).reshape(type_.shape)


def from_text(text: str, type_: ArrayType) -> np.ndarray:
    """The elements in ``dense<[1.0, 0x7FC0]>`` or ``dense<(1.0,2.0)>``, in ``dense<"0x803F...">`` if there are many."""
    dtype = numpy_dtype(type_.dtype)
    body = text[text.index("dense<") + len("dense<") : text.rindex(">", 0, text.rindex(" : "))]
    if body.startswith('"0x'):
        flat = np.frombuffer(bytes.fromhex(body[3:-1]), dtype)
    else:
        part, bits = (dtype.type, np.uint16) if type_.dtype == "bf16" else (np.float32, np.uint32)
        words = re.findall(r"0x[0-9A-Fa-f]+|[-+.\w]+", body)
        numbers = [
            bits(int(word, 16)).view(part) if word.startswith("0x") else part(float(word)) for word in words
        ]
        flat = np.array(numbers, part).view(dtype)
    return np.broadcast_to(flat[0], type_.shape) if flat.size == 1 else flat.reshape(type_.shape)
