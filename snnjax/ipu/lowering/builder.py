"""Building a plan: values, constants, and instructions, with one instruction for equal ones."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from snnjax.ipu.lowering.errors import Unsupported, refusal
from snnjax.ipu.lowering.plan import EFFECTS, Block, Instruction, Step, is_splat
from snnjax.ipu.lowering.types import WIDE, ArrayType, name_of, numpy_dtype, register_of

# Larger constants would waste tile memory.
MAX_CONSTANT = 64
Number = float | np.generic | np.ndarray  # of one element; bfloat16 is a np.generic and no np.number
# 64-bit values, for which an IPU has no registers, exist only as constants: at most 128 MiB of host memory.
MAX_WIDE_CONSTANT = 2**24
# Values this small may be computed before a loop, and stay in memory while it runs.
HOISTED_ELEMENTS = 2**14


def is_small(size: int, *dtypes: str) -> bool:
    """Whether this many elements may be a constant, if its dtype or the dtype of an operand is among `dtypes`."""
    has_no_register = any(dtype in WIDE for dtype in dtypes)
    return size <= (MAX_WIDE_CONSTANT if has_no_register else MAX_CONSTANT)


class _OpenBlock(NamedTuple):
    """A block under construction, and its instructions by content."""

    is_loop: bool
    instructions: list[Instruction]
    known: dict[Any, tuple[int, ...]]


class Builder:
    """A plan under construction: a stack of blocks, and what is known about every value."""

    def __init__(self) -> None:
        self.types: list[ArrayType] = []
        self.constants: dict[int, np.ndarray] = {}
        self.definitions: dict[int, Instruction] = {}  # of values that instructions yield
        self.parts: dict[int, tuple[int, int]] = {}  # of complex numbers: real and imaginary
        self.made_of: dict[int, dict[str, int]] = {}  # what an array was made of, by name (`rules.calls`)
        self.notes: dict[str, None] = {}  # what a profile says of the program, in order
        self.where = ""
        self.op = "compile"  # the program's operation, for error messages
        self._blocks = [_OpenBlock(False, [], {})]
        self._levels: dict[int, int] = {}  # value -> nesting depth of the block that defines it

    def value(self, type_: ArrayType) -> int:
        """A new value."""
        self.types.append(type_)
        return len(self.types) - 1

    def constant(self, array: np.ndarray) -> int:
        """A value known at compile time; a repeated single element is a broadcast view."""
        key = None
        if array.size <= 16 or is_splat(array):
            first = array[(0,) * array.ndim] if is_splat(array) else array
            key = ("constant", array.dtype, array.shape, first.tobytes())
            if key in self._blocks[0].known:
                return self._blocks[0].known[key][0]
        value = self.value(ArrayType(name_of(array.dtype), array.shape))
        self.constants[value] = array
        if key is not None:
            self._blocks[0].known[key] = (value,)
        return value

    def splat(self, number: Number, type_: ArrayType) -> int:
        """A constant of equal elements."""
        return self.constant(np.broadcast_to(np.asarray(number, numpy_dtype(type_.dtype)), type_.shape))

    def add(
        self,
        op: str,
        inputs: Sequence[int],
        types: Sequence[ArrayType],
        ints: Sequence[Sequence[int]] = (),
        texts: Sequence[str] = (),
        blocks: Sequence[Block] = (),
        steps: Sequence[Step] = (),
    ) -> tuple[int, ...]:
        """The results of an instruction, which is added unless an equal one exists."""
        numbers = tuple(map(tuple, ints))
        key = None if blocks or op in EFFECTS else (op, *inputs, None, *types, numbers, *texts, *steps)
        if key is not None:
            for block in self._blocks:
                if key in block.known:
                    return block.known[key]
        level = len(self._blocks) - 1 if key is None else self._level(inputs, types)
        outputs = tuple(map(self.value, types))
        last = (len(steps) - 1,) if steps else ()
        instruction = Instruction(
            op, tuple(inputs), outputs, numbers, tuple(texts), tuple(blocks), self.where, tuple(steps), last
        )
        self._blocks[level].instructions.append(instruction)
        for output in outputs:
            self.definitions[output] = instruction
            self._levels[output] = level
        if key is not None:
            self._blocks[level].known[key] = outputs
        return outputs

    def _level(self, inputs: Sequence[int], types: Sequence[ArrayType]) -> int:
        """The nesting level of an instruction: outside the loops that do not change its operands, if it is small."""
        level = len(self._blocks) - 1
        defined = max((self._levels.get(value, 0) for value in inputs), default=level)
        written, read = (
            sum(type_.size for type_ in each) for each in (types, [self.types[value] for value in inputs])
        )
        while level > defined and self._blocks[level].is_loop and written <= max(read, HOISTED_ELEMENTS):
            level -= 1
        return level

    def one(
        self,
        op: str,
        inputs: Sequence[int],
        type_: ArrayType,
        ints: Sequence[Sequence[int]] = (),
        texts: Sequence[str] = (),
    ) -> int:
        """The result of an instruction with one result."""
        return self.add(op, inputs, (type_,), ints, texts)[0]

    def block(
        self, types: Sequence[ArrayType], body: Callable[[list[int]], Sequence[int]], *, is_loop: bool = False
    ) -> Block:
        """The instructions that `body` adds and the values that it yields, as a block with parameters of these types.

        Instructions that do not change in a loop's body are hoisted out of it.
        """
        parameters = list(map(self.value, types))
        self._levels.update(dict.fromkeys(parameters, len(self._blocks)))
        self._blocks.append(_OpenBlock(is_loop, [], {}))
        try:
            results = list(body(parameters))
        finally:
            instructions = self._blocks.pop().instructions
        return Block(parameters, instructions, results)

    def finish(self) -> list[Instruction]:
        """The instructions of the outermost block."""
        return self._blocks[0].instructions

    def number(self, value: int) -> Any:
        """The element of a constant of equal elements, or None if the value is not one."""
        array = self.constants.get(value)
        return None if array is None or not is_splat(array) else array[(0,) * array.ndim]

    def repeated(self, value: int) -> int | None:
        """The single element that a value repeats, or None if it does not."""
        definition = self.definitions.get(value)
        if definition is None or definition.op != "broadcast_in_dim":
            return None
        (inner,) = definition.inputs
        return inner if self.types[inner].size == 1 else None

    @contextmanager
    def at(self, op: str, where: str) -> Iterator[None]:
        """Set the operation and the line that the following instructions come from."""
        before = self.op, self.where
        self.op, self.where = op, where or self.where
        try:
            yield
        finally:
            self.op, self.where = before

    def refuse(self, inputs: Sequence[int], what: str, hint: str) -> Unsupported:
        """The error that refuses the current operation."""
        return refusal(self.op, (self.types[value] for value in inputs), what, hint, self.where)


def bits(number: Number) -> int:
    """The content of a slot for a number: its 32 bits as an int32."""
    register = register_of(name_of(np.asarray(number).dtype))
    return int(np.asarray(number).astype(numpy_dtype(register)).view(np.int32))


class Expression:
    """An elementwise program under construction: steps on arrays of one shape and on single elements."""

    def __init__(self, builder: Builder) -> None:
        self.builder = builder
        self.inputs: list[int] = []
        self.steps: list[Step] = []

    def step(self, operation: str, *arguments: int) -> int:
        """The position of a new step."""
        self.steps.append(Step(operation, arguments))
        return len(self.steps) - 1

    def constant(self, number: Number) -> int:
        """A step that holds a NumPy scalar."""
        return self.step(f"constant.{register_of(name_of(np.asarray(number).dtype))}", bits(number))

    def load(self, value: int) -> int:
        """A step that holds the elements of a value; for a broadcast single element, the element itself is read."""
        builder = self.builder
        number = builder.number(value)
        if number is not None:
            return self.constant(number)
        repeated = builder.repeated(value)
        value = value if repeated is None else repeated
        if value not in self.inputs:
            self.inputs.append(value)
        return self.step(f"load.{builder.types[value].dtype}", self.inputs.index(value))

    def finish(self, type_: ArrayType) -> int:
        """The value of the last step; if it only depends on single elements, it is computed once and broadcast."""
        builder = self.builder
        single = all(builder.types[value].size == 1 for value in self.inputs)
        if not single or type_.size == 1:
            return builder.add("elementwise", self.inputs, (type_,), steps=self.steps)[0]
        (scalar,) = builder.add("elementwise", self.inputs, (ArrayType(type_.dtype, ()),), steps=self.steps)
        return builder.one("broadcast_in_dim", (scalar,), type_, ((),))
