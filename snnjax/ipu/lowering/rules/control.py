"""Rules for loops and branches."""

import functools
from collections.abc import Sequence

from snnjax._jax_compat import ir
from snnjax.ipu.lowering import pairs
from snnjax.ipu.lowering.operation import Operation
from snnjax.ipu.lowering.rules import control_of_elements, elementwise, rule
from snnjax.ipu.lowering.rules.loops import Loop, repeated
from snnjax.ipu.lowering.rules.resharding import (
    Shardings,
    carried,
    local_types,
    mark,
    place,
    shardings_of,
    yielded,
)
from snnjax.ipu.lowering.types import ArrayType


class _Carried(Loop):
    """The carried values of a loop, without those that never change or are empty, and how each is sharded."""

    def __init__(self, operation: Operation) -> None:
        super().__init__(operation)
        self.places = [place for place in self.places if operation.types[place].size]
        self.initial = [operation.inputs[place] for place in self.places]
        self.shardings = carried(self.walk, self.initial, self._trial)
        self.types = self._types(self.shardings)

    def _types(self, shardings: Shardings) -> list[ArrayType]:
        return local_types([self.operation.types[place] for place in self.places], shardings)

    def _trial(self, shardings: Shardings) -> Shardings:
        """How the body yields its values, given how it gets them."""
        ends: list[int] = []

        def trial(parameters: Sequence[int]) -> list[int]:
            ends.extend(self._inside(self.body, shardings, parameters))
            return []

        self.builder.block(pairs.real_types(self._types(shardings)), trial, is_loop=True)
        return shardings_of(self.walk, [ends[place] for place in self.places])

    def _inside(self, source: ir.Block, shardings: Shardings, parameters: Sequence[int]) -> list[int]:
        values = pairs.join(self.builder, self._types(shardings), parameters)
        marked = [mark(self.walk, *each, 0) for each in zip(values, shardings, strict=True)]
        return self.results_of(source, marked)

    def holds(self, parameters: Sequence[int]) -> list[int]:
        """The condition."""
        return [place(self.walk, self._inside(self.condition, self.shardings, parameters)[0], None)]

    def following(self, parameters: Sequence[int]) -> list[int]:
        """What the body yields."""
        results = self._inside(self.body, self.shardings, parameters)
        return self.placed([results[place] for place in self.places])

    def placed(self, values: Sequence[int]) -> list[int]:
        """Values as the loop carries them."""
        pairs_ = zip(values, self.shardings, strict=True)
        return pairs.split(self.builder, [place(self.walk, *each) for each in pairs_])


@rule("stablehlo.while")
def _lower_while(operation: Operation) -> Sequence[int]:
    """A loop; a loop with a known count is a `repeat`."""
    if operation.walk.shape is not None:
        return control_of_elements.loop(operation)
    loop, builder = _Carried(operation), operation.builder
    types = pairs.real_types(loop.types)
    initial = loop.placed(loop.initial)
    blocks = [builder.block(types, loop.holds), builder.block(types, loop.following, is_loop=True)]
    before = len(builder.types)
    outputs = repeated(builder, blocks, initial, lambda: builder.add("while", initial, types, blocks=blocks))
    last = zip(pairs.join(builder, loop.types, outputs), loop.shardings, strict=True)
    return loop.with_unchanged([mark(operation.walk, *each, before) for each in last])


@rule("stablehlo.case")
def _lower_case(operation: Operation) -> Sequence[int]:
    return _case(operation, operation.inputs[0], operation.regions)


@rule("stablehlo.if")
def _lower_if(operation: Operation) -> Sequence[int]:
    index = elementwise.convert(operation.builder, operation.inputs[0], "s32")
    return _case(operation, index, list(operation.regions)[::-1])


def _case(operation: Operation, index: int, regions: Sequence[ir.Region]) -> Sequence[int]:
    """The branch selected by the index, or the last branch if the index is out of range."""
    walk, builder = operation.walk, operation.builder
    branches = [region.blocks[0] for region in regions]
    known = builder.number(index)
    if known is not None and not 0 <= known < len(branches):
        known = len(branches) - 1
    if known is not None or len(branches) == 1:
        return walk.block(branches[int(known or 0)], ())
    if walk.shape is not None:
        return control_of_elements.case(operation, index, branches)

    kept = [place for place, type_ in enumerate(operation.types) if type_.size > 0]

    def results_of(source: ir.Block) -> list[int]:
        results = walk.block(source, ())
        return [results[place] for place in kept]

    shardings = yielded(walk, [functools.partial(results_of, source) for source in branches], len(kept))

    def placed(source: ir.Block, _: list[int]) -> list[int]:
        each = zip(results_of(source), shardings, strict=True)
        return pairs.split(builder, [place(walk, *pair) for pair in each])

    blocks = [builder.block((), functools.partial(placed, source)) for source in branches]
    types = local_types([operation.types[place] for place in kept], shardings)
    before = len(builder.types)
    outputs = builder.add("case", (index,), pairs.real_types(types), blocks=blocks)
    values = zip(pairs.join(builder, types, outputs), shardings, strict=True)
    results = dict(zip(kept, [mark(walk, *each, before) for each in values], strict=True))
    return [
        results[place] if place in results else pairs.empty(builder, type_)
        for place, type_ in enumerate(operation.types)
    ]
