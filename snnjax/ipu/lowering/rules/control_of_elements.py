"""Branches and loops in functions of elements, which are applied to whole arrays: each element goes its own way.

All branches are computed, and their results selected. A loop goes on until it has ended for each element; those for
which it has keep their values. The mask of the walk holds which elements a branch or loop is for: the loops inside
wait for no others, for which they might never end.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from snnjax._jax_compat import ir
from snnjax.ipu.lowering import pairs
from snnjax.ipu.lowering.builder import Builder
from snnjax.ipu.lowering.operation import Operation, Walk
from snnjax.ipu.lowering.rules import by_function, elementwise, reductions
from snnjax.ipu.lowering.rules.loops import Loop, repeated


def case(operation: Operation, index: int, branches: Sequence[ir.Block]) -> list[int]:
    """The branch that each element's index selects, or the last one if it is out of range."""
    walk, builder = operation.walk, operation.builder
    *others, last = branches
    results, is_last = [], builder.splat(True, builder.types[index]._replace(dtype="bool"))
    for number, branch in enumerate(others):
        number_of_all = builder.splat(number, builder.types[index])
        chosen = elementwise.compare(builder, "EQ", index, number_of_all)
        is_last = elementwise.binary(builder, "and", is_last, elementwise.unary(builder, "not", chosen))
        with _among(walk, _both(builder, walk.mask, chosen)):
            results.append((chosen, walk.block(branch, ())))
    with _among(walk, _both(builder, walk.mask, is_last)):
        selected = walk.block(last, ())
    for chosen, values in results:
        selected = [
            by_function.selected(builder, chosen, *each) for each in zip(values, selected, strict=True)
        ]
    return selected


class _Carried(Loop):
    """The carried values of a loop, without those that never change, for each element."""

    def __init__(self, operation: Operation) -> None:
        super().__init__(operation)
        self.types = [operation.types[place] for place in self.places]
        self.initial = self.carried(operation.inputs)

    def carried(self, values: Sequence[int]) -> list[int]:
        """The parts of the values that the loop carries."""
        return pairs.split(
            self.builder, [by_function.for_all(self.walk, values[place]) for place in self.places]
        )

    def _block(self, source: ir.Block, parameters: Sequence[int]) -> list[int]:
        return self.results_of(source, pairs.join(self.builder, self.types, parameters))

    def holds(self, parameters: Sequence[int]) -> list[int]:
        """The condition, for each element."""
        return [by_function.for_all(self.walk, self._block(self.condition, parameters)[0])]

    def following(self, parameters: Sequence[int]) -> list[int]:
        """What the body yields, for each element."""
        return self.carried(self._block(self.body, parameters))

    def masked(self, parameters: Sequence[int]) -> list[int]:
        """The elements for which the loop goes on, and their new values; the others keep theirs."""
        mask, *old = parameters
        with _among(self.walk, mask):
            both = zip(self.following(old), old, strict=True)
            new = [elementwise.select(self.builder, mask, *each) for each in both]
            return [_both(self.builder, mask, self.holds(new)[0]), *new]


def loop(operation: Operation) -> list[int]:
    """A loop; one with a known count is a `repeat`, which is the same for all elements."""
    carried, builder = _Carried(operation), operation.builder
    types = pairs.real_types(carried.types)
    blocks = [builder.block(types, carried.holds), builder.block(types, carried.following, is_loop=True)]
    last = repeated(builder, blocks, carried.initial, lambda: _while_any(carried))
    return carried.with_unchanged(pairs.join(builder, carried.types, last))


def _while_any(carried: _Carried) -> Sequence[int]:
    """The loop, as long as it goes on for any element of the mask."""
    builder = carried.builder
    mask = _both(builder, carried.walk.mask, carried.holds(carried.initial)[0])

    def any_left(parameters: Sequence[int]) -> list[int]:
        dimensions = range(len(builder.types[mask].shape))
        return [reductions.reduce(builder, parameters[0], dimensions, "or")]

    types = [builder.types[mask], *pairs.real_types(carried.types)]
    blocks = [builder.block(types, any_left), builder.block(types, carried.masked, is_loop=True)]
    return builder.add("while", [mask, *carried.initial], types, blocks=blocks)[1:]


@contextmanager
def _among(walk: Walk, mask: int) -> Iterator[None]:
    """Inside a branch or loop that is for these elements."""
    outer, walk.mask = walk.mask, mask
    try:
        yield
    finally:
        walk.mask = outer


def _both(builder: Builder, mask: int | None, condition: int) -> int:
    return condition if mask is None else elementwise.binary(builder, "and", mask, condition)
