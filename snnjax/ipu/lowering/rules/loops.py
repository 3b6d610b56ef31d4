"""Loops: the values that they carry, and the number of rounds where it is known when they are compiled."""

from collections.abc import Callable, Sequence

import numpy as np

from snnjax._jax_compat import ir
from snnjax.ipu.lowering.builder import Builder
from snnjax.ipu.lowering.operation import Operation
from snnjax.ipu.lowering.plan import Block

_COUNTERS = frozenset({"s32", "u32"})


class Loop:
    """A loop, and the places of the values that change as it goes on."""

    def __init__(self, operation: Operation) -> None:
        self.operation, self.walk, self.builder = operation, operation.walk, operation.builder
        self.condition, self.body = (region.blocks[0] for region in operation.regions)
        yielded = list(list(self.body.operations)[-1].operands)
        ends = enumerate(zip(yielded, self.body.arguments, strict=True))
        self.places = [place for place, (result, argument) in ends if result != argument]

    def results_of(self, source: ir.Block, values: Sequence[int]) -> list[int]:
        """What the condition or the body yields for these values at `places`."""
        return self.walk.block(source, self.with_unchanged(values))

    def with_unchanged(self, values: Sequence[int]) -> list[int]:
        """All values, given those at `places`."""
        known = dict(zip(self.places, values, strict=True))
        return [known.get(place, value) for place, value in enumerate(self.operation.inputs)]


def repeated(
    builder: Builder, blocks: Sequence[Block], initial: Sequence[int], otherwise: Callable[[], Sequence[int]]
) -> Sequence[int]:
    """What a loop yields, from its condition and its body: a `repeat` if its number of rounds is known."""
    count = _trip_count(builder, blocks, initial)
    if count is None:
        return otherwise()
    types = [builder.types[value] for value in initial]
    return builder.add("repeat", initial, types, ((count,),), blocks=blocks[1:]) if count else initial


def _trip_count(builder: Builder, blocks: Sequence[Block], initial: Sequence[int]) -> int | None:
    """The trip count of a loop that counts from a constant to a constant in constant steps, else None."""
    condition, body = blocks
    compared = _with_constant(builder, condition.results[0], condition.parameters)
    if compared is None:
        return None
    place, direction, limit = compared
    stepped = _with_constant(builder, body.results[place], body.parameters)
    start = builder.number(initial[place])
    if stepped is None or start is None or stepped[0] != place or stepped[1] not in ("add", "subtract"):
        return None
    step = stepped[2] if stepped[1] == "add" else -stepped[2]
    return _trips(int(start), limit, step, direction, np.iinfo(start.dtype))


def _with_constant(builder: Builder, value: int, parameters: Sequence[int]) -> tuple[int, str, int] | None:
    """``parameter op constant``: the parameter's index, the operation, and the constant."""
    definition = builder.definitions.get(value)
    if definition is None or definition.op != "elementwise" or len(definition.steps) != 3:
        return None
    load, constant, combine = definition.steps
    if constant.operation.startswith("load"):
        load, constant = constant, load
    name, _, dtype = combine.operation.partition(".")
    straight = combine.arguments == (definition.steps.index(load), definition.steps.index(constant))
    if not constant.operation.startswith("constant") or dtype not in _COUNTERS:
        return None
    if definition.inputs[0] not in parameters or not (straight or name == "add"):
        return None
    number = int(np.int32(constant.arguments[0]).view(np.uint32 if dtype == "u32" else np.int32))
    return parameters.index(definition.inputs[0]), name, number


def _trips(start: int, limit: int, step: int, direction: str, held: np.iinfo) -> int | None:
    """None also if the counter wraps around, outside the numbers that it holds: such a loop goes on."""
    if direction in ("le", "ge"):
        limit += 1 if direction == "le" else -1
    rises = direction in ("lt", "le")
    if direction not in ("lt", "le", "gt", "ge") or (step > 0) != rises or step == 0:
        return None
    trips = len(range(start, limit, step))
    return trips if held.min <= start + trips * step <= held.max else None
