"""Reads the bytes of a plan (``xla_ext/executor/README.md``) into the dataclasses of the lowering."""

import struct
from collections.abc import Callable
from typing import Any

import numpy as np

from snnjax.ipu.lowering.plan import MAGIC, Block, Instruction, Plan
from snnjax.ipu.lowering.types import _NAMES, ArrayType, numpy_dtype


class _Reader:
    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def i(self) -> int:
        (value,) = struct.unpack_from("<q", self.data, self.at)
        self.at += 8
        return value

    def s(self) -> bytes:
        size = self.i()
        self.at += size
        return self.data[self.at - size : self.at]

    def text(self) -> str:
        return self.s().decode()

    def items(self, item: Callable[[], Any]) -> list[Any]:
        return [item() for _ in range(self.i())]

    def ints(self) -> list[int]:
        return self.items(self.i)

    def block(self) -> Block:
        return Block(self.ints(), self.items(self.instruction), self.ints())

    def instruction(self) -> Instruction:
        op, inputs, outputs = self.text(), tuple(self.ints()), tuple(self.ints())
        ints = tuple(map(tuple, self.items(self.ints)))
        texts, blocks = tuple(self.items(self.text)), tuple(self.items(self.block))
        return Instruction(op, inputs, outputs, ints, texts, blocks, self.text())

    def type(self) -> ArrayType:
        return ArrayType(_NAMES[self.i() - 1], tuple(self.ints()))

    def constant(self, types: list[ArrayType]) -> tuple[int, np.ndarray]:
        value, splat, data = self.i(), self.i(), self.s()
        type_ = types[value]
        array = np.frombuffer(data, numpy_dtype(type_.dtype))
        return value, np.broadcast_to(array[0], type_.shape) if splat else array.reshape(type_.shape)

    def pair(self) -> tuple[int, int]:
        return self.i(), self.i()


def read(data: bytes) -> Plan:
    """The plan; every byte is read."""
    r = _Reader(data)
    assert r.i() == MAGIC
    name, num_partitions = r.text(), r.i()
    options = r.items(lambda: (r.text(), r.text()))
    types = r.items(r.type)
    constants = dict(r.items(lambda: r.constant(types)))
    aliases, donated, devices = r.items(r.pair), r.ints(), r.ints()
    parameter_shardings, result_shardings = r.items(r.s), r.items(r.s)
    complex_parameters, complex_results = r.ints(), r.ints()
    plan = Plan(
        name, num_partitions, options, types, constants, r.block(), aliases, donated, devices,
        parameter_shardings, result_shardings, complex_parameters, complex_results,
    )  # fmt: skip
    assert r.at == len(data)
    return plan


def describe(plan: Plan) -> str:
    """A plan as text, to read."""
    lines: list[str] = []

    def names(values) -> str:
        return ", ".join(f"%{value}:{plan.types[value]}" for value in values)

    def show(block: Block, indent: str) -> None:
        lines.append(f"{indent}({names(block.parameters)})")
        for instruction in block.instructions:
            left = f"{names(instruction.outputs)} = " if instruction.outputs else ""
            lines.append(
                f"{indent}{left}{instruction.op}({names(instruction.inputs)}) "
                f"ints={[list(numbers) for numbers in instruction.ints]} texts={list(instruction.texts)} "
                f"# {instruction.where}"
            )
            for inner in instruction.blocks:
                show(inner, indent + "    ")
        lines.append(f"{indent}-> {names(block.results)}")

    lines.append(f"plan {plan.name}: {plan.num_partitions} partitions, options {plan.options}")
    lines.append(f"aliases {plan.aliases}, donated {plan.donated}, devices {plan.devices}")
    for value, array in plan.constants.items():
        text = np.array2string(np.asarray(array).reshape(-1)[:8])
        lines.append(f"constant %{value}:{plan.types[value]} = {text}")
    show(plan.main, "")
    return "\n".join(lines)
