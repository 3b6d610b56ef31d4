"""Rules for loops and branches."""

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from snnjax.ipu.lowering import pairs
from snnjax.ipu.lowering.builder import Builder
from snnjax.ipu.lowering.operation import Operation
from snnjax.ipu.lowering.plan import Block
from snnjax.ipu.lowering.rules import elementwise, rule

_COUNTERS = frozenset({"s32", "u32"})


def _returned(region: Any) -> list[Any]:
    block = region.blocks[0]
    return list(list(block.operations)[-1].operands)


@rule("stablehlo.while")
def _lower_while(operation: Operation) -> Sequence[int]:
    """A loop, without carried values that never change or are empty; a loop with a known count is a `repeat`."""
    walk, builder = operation.walk, operation.builder
    condition, body = (region.blocks[0] for region in operation.regions)
    carried = zip(_returned(operation.regions[1]), body.arguments, operation.types, strict=True)
    unchanged = [result == argument or type_.size == 0 for result, argument, type_ in carried]
    places = [place for place, same in enumerate(unchanged) if not same]
    whole = [operation.types[place] for place in places]
    types = pairs.real_types(whole)

    def inside(source: Any, parameters: Sequence[int]) -> list[int]:
        values = dict(zip(places, pairs.join(builder, whole, parameters), strict=True))
        return walk.block(source, [values.get(place, value) for place, value in enumerate(operation.inputs)])

    def next_values(parameters: Sequence[int]) -> list[int]:
        results = inside(body, parameters)
        return pairs.split(builder, [results[place] for place in places])

    initial = pairs.split(builder, [operation.inputs[place] for place in places])
    blocks = [
        builder.block(types, lambda parameters: inside(condition, parameters)),
        builder.block(types, next_values, is_loop=True),
    ]
    count = _count(builder, blocks, initial)
    last = pairs.join(builder, whole, _loop(builder, blocks, initial, count))
    results = dict(zip(places, last, strict=True))
    return [results.get(place, value) for place, value in enumerate(operation.inputs)]


def _loop(
    builder: Builder, blocks: Sequence[Block], initial: Sequence[int], count: int | None
) -> Sequence[int]:
    types = [builder.types[value] for value in initial]
    if count == 0:
        return initial
    if count is not None:
        return builder.add("repeat", initial, types, ((count,),), blocks=blocks[1:])
    return builder.add("while", initial, types, blocks=blocks)


def _count(builder: Builder, blocks: Sequence[Block], initial: Sequence[int]) -> int | None:
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
    return _trips(int(start), limit, step, direction)


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


def _trips(start: int, limit: int, step: int, direction: str) -> int | None:
    if direction in ("le", "ge"):
        limit += 1 if direction == "le" else -1
    rises = direction in ("lt", "le")
    if direction not in ("lt", "le", "gt", "ge") or (step > 0) != rises or step == 0:
        return None
    return len(range(start, limit, step))


@rule("stablehlo.case")
def _lower_case(operation: Operation) -> Sequence[int]:
    return _case(operation, operation.inputs[0], operation.regions)


@rule("stablehlo.if")
def _lower_if(operation: Operation) -> Sequence[int]:
    index = elementwise.convert(operation.builder, operation.inputs[0], "s32")
    return _case(operation, index, list(operation.regions)[::-1])


def _case(operation: Operation, index: int, regions: Sequence[Any]) -> Sequence[int]:
    """The branch selected by the index, or the last branch if the index is out of range."""
    walk, builder = operation.walk, operation.builder
    branches = [region.blocks[0] for region in regions]
    known = builder.number(index)
    if known is not None and not 0 <= known < len(branches):
        known = len(branches) - 1
    if known is not None or len(branches) == 1:
        return walk.block(branches[int(known or 0)], ())

    kept = [place for place, type_ in enumerate(operation.types) if type_.size > 0]

    def results_of(source: Any, parameters: list[int]) -> list[int]:
        results = walk.block(source, parameters)
        return pairs.split(builder, [results[place] for place in kept])

    blocks = [builder.block((), functools.partial(results_of, source)) for source in branches]
    whole = [operation.types[place] for place in kept]
    outputs = builder.add("case", (index,), pairs.real_types(whole), blocks=blocks)
    results = dict(zip(kept, pairs.join(builder, whole, outputs), strict=True))
    return [
        results[place] if place in results else pairs.empty(builder, type_)
        for place, type_ in enumerate(operation.types)
    ]
