"""Slot allocation for elementwise programs: a step's result goes to a slot that is no longer needed."""

from collections.abc import Sequence

from snnjax.ipu.lowering.plan import Instruction, Step
from snnjax.ipu.lowering.types import ArrayType

_SOURCES = ("load", "constant")


def _is_source(step: Step) -> bool:
    return step.operation.startswith(_SOURCES)


def _schedule(steps: Sequence[Step], results: Sequence[int]) -> list[int]:
    """The positions of the steps that the results need, in order; loads and constants come just before their use."""
    needed = set(results)
    for position in range(len(steps) - 1, -1, -1):
        if position in needed and not _is_source(steps[position]):
            needed.update(steps[position].arguments)
    order: list[int] = []
    placed: set[int] = set()
    for position in range(len(steps)):
        if position not in needed or (_is_source(steps[position]) and position not in results):
            continue
        for source in (*(() if _is_source(steps[position]) else steps[position].arguments), position):
            if source not in placed:
                placed.add(source)
                order.append(source)
    return order


def _last_uses(steps: Sequence[Step], order: Sequence[int]) -> dict[int, int]:
    """For each step, the position in the order of its last use."""
    last = {}
    for place, position in enumerate(order):
        last[position] = place
        if not _is_source(steps[position]):
            last.update(dict.fromkeys(steps[position].arguments, place))
    return last


def in_slots(
    steps: Sequence[Step], results: Sequence[int], types: Sequence[ArrayType]
) -> tuple[tuple[str, ...], tuple[tuple[int, ...], ...], int]:
    """The operations with their types, their slots, and the number of slots.

    `results` are the positions of the steps that the outputs hold, `types` the outputs' types.
    """
    order = _schedule(steps, results)
    last = _last_uses(steps, order)
    stores: dict[int, list[int]] = {}
    for output, position in enumerate(results):
        stores.setdefault(position, []).append(output)
    slots: dict[int, int] = {}
    free: list[int] = []
    count = 0
    texts: list[str] = []
    ints: list[tuple[int, ...]] = []
    for place, position in enumerate(order):
        step = steps[position]
        arguments = step.arguments
        if not _is_source(step):
            arguments = tuple(slots[argument] for argument in arguments)
            free.extend({slots[each] for each in step.arguments if last[each] == place})
        if free:
            slot = free.pop()
        else:
            slot, count = count, count + 1
        slots[position] = slot
        texts.append(step.operation)
        ints.append((slot, *arguments))
        for output in stores.get(position, ()):
            texts.append(f"store.{types[output].dtype}")
            ints.append((output, slot))
        if last[position] == place:
            free.append(slot)
    return tuple(texts), tuple(ints), count


def write_in_slots(instruction: Instruction, types: Sequence[ArrayType]) -> None:
    """Convert an elementwise instruction to the form of plans."""
    outputs = [types[value] for value in instruction.outputs]
    instruction.texts, instruction.ints, _ = in_slots(instruction.steps, instruction.results, outputs)
