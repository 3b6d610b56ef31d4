"""Dead-code elimination: unused instructions, unused values carried by loops, and renumbering of values."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np

from snnjax.ipu.lowering.plan import Block, Instruction
from snnjax.ipu.lowering.types import ArrayType

_LOOPS = frozenset({"while", "repeat"})


def drop_identities(block: Block, same: dict[int, int]) -> None:
    """Replace the results of `identity` instructions by their operands; the replacements are added to `same`."""
    kept = []
    for instruction in block.instructions:
        instruction.inputs = tuple(same.get(value, value) for value in instruction.inputs)
        if instruction.op == "identity":
            same[instruction.outputs[0]] = instruction.inputs[0]
            continue
        for inner in instruction.blocks:
            drop_identities(inner, same)
        kept.append(instruction)
    block.instructions = kept
    block.results = [same.get(value, value) for value in block.results]


def prune(block: Block, needed: set[int]) -> None:
    """Remove the instructions that `needed` does not depend on, and add all values that the rest reads to it."""
    kept: list[Instruction] = []
    for instruction in reversed(block.instructions):
        if instruction.op in _LOOPS:
            _prune_loop(instruction, needed)
        elif instruction.op == "case":
            _prune_case(instruction, needed)
        if not needed.isdisjoint(instruction.outputs) or instruction.has_effect():
            needed.update(instruction.reads())
            kept.append(instruction)
    block.instructions = kept[::-1]


def _keep(items: Sequence[int], places: Iterable[int]) -> list[int]:
    return [items[place] for place in places]


def _prune_loop(loop: Instruction, needed: set[int]) -> None:
    """Carry only what is needed after the loop, in its condition, or for other carried values."""
    body = loop.blocks[-1]
    carried = {place for place, output in enumerate(loop.outputs) if output in needed}
    if len(loop.blocks) == 2:
        condition = loop.blocks[0]
        inner = set(condition.results)
        prune(condition, inner)
        carried |= {place for place, p in enumerate(condition.parameters) if p in inner}
    while True:
        inner = set(_keep(body.results, carried))
        for instruction in reversed(body.instructions):  # an inner loop is pruned once its users are known
            if not inner.isdisjoint(instruction.outputs) or instruction.has_effect():
                inner.update(instruction.reads())
        more = {place for place, p in enumerate(body.parameters) if p in inner} - carried
        if not more:
            break
        carried |= more
    places = sorted(carried)
    for block in loop.blocks:
        block.parameters = _keep(block.parameters, places)
    body.results = _keep(body.results, places)
    prune(body, set(body.results))
    loop.inputs, loop.outputs = tuple(_keep(loop.inputs, places)), tuple(_keep(loop.outputs, places))


def _prune_case(case: Instruction, needed: set[int]) -> None:
    places = [place for place, output in enumerate(case.outputs) if output in needed]
    case.outputs = tuple(_keep(case.outputs, places))
    for block in case.blocks:
        block.results = _keep(block.results, places)
        prune(block, set(block.results))


def renumber(
    main: Block, types: Sequence[ArrayType], constants: dict[int, np.ndarray]
) -> tuple[list[ArrayType], dict[int, np.ndarray]]:
    """Renumber the remaining values from 0, in order of definition; return their types and constants."""
    numbers = {value: number for number, value in enumerate(dict.fromkeys(_defined(main, constants)))}
    _rewrite(main, numbers)
    kept = {numbers[value]: array for value, array in constants.items() if value in numbers}
    return [types[value] for value in numbers], kept


def _defined(block: Block, constants: Mapping[int, np.ndarray]) -> Iterator[int]:
    """The values in order of definition; a constant is defined where it is first read."""
    yield from block.parameters
    for instruction in block.instructions:
        yield from (value for value in instruction.reads() if value in constants)
        for inner in instruction.blocks:
            yield from _defined(inner, constants)
        yield from instruction.outputs
    yield from (value for value in block.results if value in constants)


def _rewrite(block: Block, numbers: Mapping[int, int]) -> None:
    block.parameters = [numbers[value] for value in block.parameters]
    for instruction in block.instructions:
        instruction.inputs = tuple(numbers[value] for value in instruction.inputs)
        instruction.outputs = tuple(numbers[value] for value in instruction.outputs)
        for inner in instruction.blocks:
            _rewrite(inner, numbers)
    block.results = [numbers[value] for value in block.results]
