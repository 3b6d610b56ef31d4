"""Fusion of elementwise instructions of one shape, so that one pass over the elements computes them all.

Two are fused if one reads a result of the other, no instruction outside depends on the first and feeds the second, and
the combined program fits into the slots. Results that only the fused program reads are never written to memory.
"""

import heapq
from collections.abc import Iterable, Sequence

from snnjax.ipu.lowering.passes.slots import in_slots
from snnjax.ipu.lowering.plan import Block, Instruction, Step
from snnjax.ipu.lowering.types import ArrayType

MAX_SLOTS = 24
# Longer programs gain nothing and are slow to compile.
MAX_STEPS = 200
# Limit on the arrays that one program reads and writes: each takes a row in tile memory while it runs.
MAX_ARRAYS = 16


class _Cluster:
    """Instructions to fuse into one. Sets of instructions are bit masks in integers."""

    __slots__ = ("after", "before", "mask", "members", "shape", "steps")

    def __init__(self, position: int, shape: tuple[int, ...] | None, before: int, steps: int) -> None:
        self.members = [position]
        self.mask = 1 << position
        self.shape = shape  # None if not elementwise
        self.steps = steps
        self.before = before  # all instructions that must come before
        self.after = 0  # all that must come after


class _Fusion:
    """The fusion of one block."""

    def __init__(self, block: Block, types: Sequence[ArrayType]) -> None:
        self.block = block
        self.types = types
        self.instructions = block.instructions
        self.clusters: list[_Cluster] = []
        self.cluster_of: list[_Cluster] = []
        self.readers: dict[int, int] = {}  # value -> instructions that read it, as a bit mask
        self.sources: list[set[int]] = []  # of each instruction, those that must come before it
        self.kept = frozenset(block.results)

    def run(self) -> list[Instruction]:
        """The fused instructions, in order."""
        inputs = [set(instruction.reads()) for instruction in self.instructions]
        for position, values in enumerate(inputs):
            for value in values:
                self.readers[value] = self.readers.get(value, 0) | 1 << position
        producer: dict[int, int] = {}
        last_effect: set[int] = set()
        for position, instruction in enumerate(self.instructions):
            sources = {producer[value] for value in inputs[position] if value in producer}
            if instruction.has_effect():
                sources |= last_effect
                last_effect = {position}
            self.sources.append(sources)
            self._place(position, instruction, sources)
            producer.update(dict.fromkeys(instruction.outputs, position))
        return [self._fused(cluster) for cluster in self._ordered()]

    def _place(self, position: int, instruction: Instruction, sources: set[int]) -> None:
        """Put an instruction into a new cluster, or into that of an instruction it reads from."""
        before = 0
        neighbours = {id(self.cluster_of[source]): self.cluster_of[source] for source in sources}
        for neighbour in neighbours.values():
            before |= neighbour.before | neighbour.mask
        shape = self._shape(instruction)
        cluster = _Cluster(position, shape, before, len(instruction.steps))
        self.cluster_of.append(cluster)
        self.clusters.append(cluster)
        for earlier in self.clusters:
            if earlier.mask & before:
                earlier.after |= cluster.mask
        if shape is None:
            return
        for neighbour in sorted(neighbours.values(), key=lambda each: -each.members[-1]):
            if neighbour.shape == shape:
                cluster = self._merge(cluster, neighbour)
        for neighbour in self._beside(cluster, position):
            cluster = self._merge(cluster, neighbour)

    def _beside(self, cluster: _Cluster, position: int) -> list[_Cluster]:
        """Clusters that share an operand with an instruction, and can be delayed until it without using more memory."""
        arrays = [value for value in self.instructions[position].inputs if self.types[value].size > 1]
        readers = 0
        for value in arrays:
            readers |= self.readers[value]
        found = []
        for other in self.clusters:
            if other is not cluster and other.shape == cluster.shape and other.mask & readers:
                inputs, outputs = self._arrays(other.members)
                others = [value for value in inputs if self.types[value].size > 1 and value not in arrays]
                if len(others) <= len(outputs):
                    found.append(other)
        return found[::-1]

    def _shape(self, instruction: Instruction) -> tuple[int, ...] | None:
        if instruction.op != "elementwise":
            return None
        type_ = self.types[instruction.outputs[0]]
        return type_.shape if type_.size != 1 else ()

    def _merge(self, cluster: _Cluster, other: _Cluster) -> _Cluster:
        """The two clusters merged if possible, else the first one."""
        mask = cluster.mask | other.mask
        before = (cluster.before | other.before) & ~mask
        after = (cluster.after | other.after) & ~mask
        if before & after or cluster.steps + other.steps > MAX_STEPS:
            return cluster
        members = sorted(cluster.members + other.members)
        if not self._fits(members, cluster.steps + other.steps):
            return cluster
        other.members, other.mask, other.before, other.after = members, mask, before, after
        other.steps += cluster.steps
        self.clusters = [each for each in self.clusters if each is not cluster]
        for member in cluster.members:
            self.cluster_of[member] = other
        for each in self.clusters:
            if each.mask & before:
                each.after |= mask | after
            if each.mask & after:
                each.before |= mask | before
        return other

    def _fits(self, members: Sequence[int], steps: int) -> bool:
        inputs, outputs = self._arrays(members)
        arrays = sum(self.types[value].size > 1 for value in (*inputs, *outputs))
        if arrays > MAX_ARRAYS:
            return False
        if steps + len(inputs) <= MAX_SLOTS:  # even with a slot for each
            return True
        merged, results = self._program(members, inputs, outputs)
        return in_slots(merged, results, [self.types[value] for value in outputs])[2] <= MAX_SLOTS

    def _arrays(self, members: Sequence[int]) -> tuple[list[int], list[int]]:
        """The arrays that the instructions together read and yield."""
        mask = sum(1 << member for member in members)
        inputs: dict[int, None] = {}
        outputs: list[int] = []
        inner: set[int] = set()
        for member in members:
            instruction = self.instructions[member]
            inputs.update(dict.fromkeys(value for value in instruction.inputs if value not in inner))
            inner.update(instruction.outputs)
            outputs.extend(
                value
                for value in instruction.outputs
                if value in self.kept or self.readers.get(value, 0) & ~mask
            )
        return list(inputs), outputs

    def _program(
        self, members: Sequence[int], inputs: Sequence[int], outputs: Sequence[int]
    ) -> tuple[list[Step], list[int]]:
        """The combined steps of the instructions, without duplicates, and the positions of the outputs."""
        number = {value: position for position, value in enumerate(inputs)}
        known: dict[Step, int] = {}
        nodes: dict[int, int] = {}  # value -> position of its step
        for member in members:
            instruction = self.instructions[member]
            local: list[int] = []
            for step in instruction.steps:
                if step.operation.startswith("load"):
                    value = instruction.inputs[step.arguments[0]]
                    if value in nodes:
                        local.append(nodes[value])
                        continue
                    step = Step(step.operation, (number[value],))
                elif not step.operation.startswith("constant"):
                    step = Step(step.operation, tuple(local[argument] for argument in step.arguments))
                local.append(known.setdefault(step, len(known)))
            nodes.update(zip(instruction.outputs, (local[r] for r in instruction.results), strict=True))
        return list(known), [nodes[value] for value in outputs]

    def _fused(self, cluster: _Cluster) -> Instruction:
        last = self.instructions[cluster.members[-1]]
        if cluster.shape is None or len(cluster.members) == 1:
            return last
        inputs, outputs = self._arrays(cluster.members)
        steps, results = self._program(cluster.members, inputs, outputs)
        return Instruction(
            "elementwise",
            tuple(inputs),
            tuple(outputs),
            where=last.where,
            steps=tuple(steps),
            results=tuple(results),
        )

    def _ordered(self) -> Iterable[_Cluster]:
        """The clusters, each after those it reads from, otherwise in the order of their last instructions."""
        waiting = {id(cluster): self._direct_sources(cluster) for cluster in self.clusters}
        readers: dict[int, list[_Cluster]] = {}
        ready = []
        for cluster in self.clusters:
            for source in waiting[id(cluster)]:
                readers.setdefault(source, []).append(cluster)
            if not waiting[id(cluster)]:
                heapq.heappush(ready, (cluster.members[-1], id(cluster), cluster))
        while ready:
            _, number, cluster = heapq.heappop(ready)
            yield cluster
            for reader in readers.get(number, ()):
                waiting[id(reader)].discard(number)
                if not waiting[id(reader)]:
                    heapq.heappush(ready, (reader.members[-1], id(reader), reader))

    def _direct_sources(self, cluster: _Cluster) -> set[int]:
        """The clusters that must come before a cluster."""
        sources = {source for member in cluster.members for source in self.sources[member]}
        return {id(self.cluster_of[source]) for source in sources} - {id(cluster)}


def fuse(block: Block, types: Sequence[ArrayType]) -> None:
    """Fuse the elementwise instructions of a block and of its inner blocks."""
    for instruction in block.instructions:
        for inner in instruction.blocks:
            fuse(inner, types)
    block.instructions = _Fusion(block, types).run()
