"""The plan: what a program computes; the executor decides where. ``xla_ext/executor/README.md`` defines the format."""

import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from snnjax.ipu.lowering.types import ArrayType, dtype_number

MAGIC = 0x32414E4C504E4E53  # "SNNPLNA2"
# Operations with side effects: neither merged, nor moved, nor dropped.
EFFECTS = frozenset({"callback"})


class Step(NamedTuple):
    """One operation of an elementwise program on the results of earlier steps.

    The arguments are positions of steps, except that ``load.T`` takes the index of an input and ``constant.T`` takes
    bits.
    """

    operation: str
    arguments: tuple[int, ...]


@dataclass(slots=True)
class Instruction:
    """One operation; `steps` and `results` hold an elementwise program before slot allocation."""

    op: str
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    ints: tuple[tuple[int, ...], ...] = ()
    texts: tuple[str, ...] = ()
    blocks: tuple["Block", ...] = ()
    where: str = ""
    steps: tuple[Step, ...] = ()
    results: tuple[int, ...] = ()  # for each output, the position of its step

    def reads(self) -> Iterator[int]:
        """The values that it reads, including those read inside its blocks."""
        yield from self.inputs
        for block in self.blocks:
            yield from block.results
            for inner in block.instructions:
                yield from inner.reads()

    def has_effect(self) -> bool:
        """Whether it or an instruction inside its blocks has a side effect."""
        inside = (inner for block in self.blocks for inner in block.instructions)
        return self.op in EFFECTS or any(inner.has_effect() for inner in inside)


@dataclass(slots=True)
class Block:
    """Instructions in order; it sees the values of the blocks around it."""

    parameters: list[int]
    instructions: list[Instruction]
    results: list[int]


@dataclass(slots=True)
class Plan:
    """A program for `num_partitions` IPUs; shapes are those of one partition."""

    name: str
    num_partitions: int
    options: list[tuple[str, str]]
    types: list[ArrayType]
    constants: dict[int, np.ndarray]
    main: Block
    # (parameter, result) pairs that share memory
    aliases: list[tuple[int, int]] = field(default_factory=list)
    donated: list[int] = field(default_factory=list)  # parameters whose buffers end with the call
    devices: list[int] = field(default_factory=list)  # of each partition
    parameter_shardings: list[bytes] = field(default_factory=list)  # xla.OpSharding
    result_shardings: list[bytes] = field(default_factory=list)
    # complex64 to JAX; here their parts, f32[..., 2]
    complex_parameters: list[int] = field(default_factory=list)
    complex_results: list[int] = field(default_factory=list)


class _Writer:
    def __init__(self) -> None:
        self.parts: list[bytes] = []

    def integer(self, value: int) -> None:
        self.parts.append(struct.pack("<q", value))

    def integers(self, values: Sequence[int]) -> None:
        self.parts.append(struct.pack(f"<{len(values) + 1}q", len(values), *values))

    def text(self, value: str | bytes) -> None:
        encoded = value.encode() if isinstance(value, str) else value
        self.integer(len(encoded))
        self.parts.append(encoded)

    def texts(self, values: Sequence[str | bytes]) -> None:
        self.integer(len(values))
        for value in values:
            self.text(value)

    def pairs(self, values: Iterable[tuple[int, int]]) -> None:
        flat = [number for pair in values for number in pair]
        self.integer(len(flat) // 2)
        self.parts.append(struct.pack(f"<{len(flat)}q", *flat))

    def block(self, block: Block) -> None:
        self.integers(block.parameters)
        self.integer(len(block.instructions))
        for instruction in block.instructions:
            self.instruction(instruction)
        self.integers(block.results)

    def instruction(self, instruction: Instruction) -> None:
        self.text(instruction.op)
        self.integers(instruction.inputs)
        self.integers(instruction.outputs)
        self.integer(len(instruction.ints))
        for numbers in instruction.ints:
            self.integers(numbers)
        self.texts(instruction.texts)
        self.integer(len(instruction.blocks))
        for block in instruction.blocks:
            self.block(block)
        self.text(instruction.where)


def is_splat(array: np.ndarray) -> bool:
    """Whether the strides say that all elements are one."""
    return array.size > 0 and all(
        stride == 0 or length == 1 for stride, length in zip(array.strides, array.shape, strict=True)
    )


def serialise(plan: Plan) -> bytes:
    """The bytes of a plan whose elementwise programs have slots."""
    writer = _Writer()
    writer.integer(MAGIC)
    writer.text(plan.name)
    writer.integer(plan.num_partitions)
    writer.integer(len(plan.options))
    for key, value in plan.options:
        writer.text(key)
        writer.text(value)
    writer.integer(len(plan.types))
    for type_ in plan.types:
        writer.integer(dtype_number(type_.dtype))
        writer.integers(type_.shape)
    writer.integer(len(plan.constants))
    for value, array in plan.constants.items():
        splat = is_splat(array)
        writer.integer(value)
        writer.integer(splat)
        writer.text((array[(0,) * array.ndim] if splat else array).tobytes())
    writer.pairs(plan.aliases)
    writer.integers(plan.donated)
    writer.integers(plan.devices)
    writer.texts(plan.parameter_shardings)
    writer.texts(plan.result_shardings)
    writer.integers(plan.complex_parameters)
    writer.integers(plan.complex_results)
    writer.block(plan.main)
    return b"".join(writer.parts)
