"""Loops of a graph: which nodes they have, in which order nodes run, and which loops are those of a recurrent layer."""

import dataclasses
import functools
from typing import Any, NamedTuple, cast

from snnjax._check import fail
from snnjax.blocks._dense import Dense
from snnjax.blocks._sparse import Sparse
from snnjax.blocks._synaptic import Synaptic
from snnjax.blocks.block import Block
from snnjax.blocks.delay import Axonal, HasDelays
from snnjax.blocks.spiking import Spiking
from snnjax.graph.containers import Node


class Recurrence(NamedTuple):
    """Neurons whose spikes return to them alone: indices of nodes, all of the same loop."""

    late: int
    blocks: tuple[int, ...]  # that the late spikes pass, in order
    join: int  # adds what they make of them to the currents from outside
    neuron: int

    @property
    def before(self) -> tuple[int, ...]:
        """All of its nodes but the neurons."""
        return (self.late, *self.blocks, self.join)


@functools.lru_cache(maxsize=256)
def loops(nodes: tuple[Node, ...]) -> dict[int, tuple[int, ...]]:
    """For each node that receives its own signal, some steps later, the nodes of its loop in order.

    Loops that have a node in common are one: the strongly connected parts of the graph.
    """
    places = {node.name: index for index, node in enumerate(nodes)}
    before = [[places[source] for source in node.sources if source in places] for node in nodes]
    after: list[list[int]] = [[] for _ in nodes]
    for index, sources in enumerate(before):
        for source in sources:
            after[source].append(index)
    found: dict[int, tuple[int, ...]] = {}
    for index, node in enumerate(nodes):  # a signal returns through a late one alone
        if node.is_late and index not in found:
            loop = tuple(sorted(_reached(index, before) & _reached(index, after)))
            found |= dict.fromkeys(loop, loop)
    return found


def _reached(first: int, edges: list[list[int]]) -> set[int]:
    """What can be reached from a node by one edge or more."""
    found, waiting = set[int](), list(edges[first])
    while waiting:
        index = waiting.pop()
        if index not in found:
            found.add(index)
            waiting += edges[index]
    return found


@functools.lru_cache(maxsize=256)
def parts(nodes: tuple[Node, ...]) -> tuple[tuple[int, ...], ...]:
    """The loops, and the nodes outside of them, so that each receives nothing from those behind it."""
    places, found = {node.name: index for index, node in enumerate(nodes)}, list[tuple[int, ...]]()
    of_nodes, done = loops(nodes), set[int]()
    waiting = list(range(len(nodes)))[::-1]
    while waiting:
        part = of_nodes.get(waiting[-1], (waiting[-1],))
        sources = [places[source] for index in part for source in nodes[index].sources if source in places]
        missing = [source for source in sources if source not in done and source not in part]
        if missing and waiting[-1] not in done:
            waiting += missing[::-1]
            continue
        if waiting.pop() not in done:
            found.append(part)
            done.update(part)
    return tuple(found)


@functools.lru_cache(maxsize=256)
def recurrences(nodes: tuple[Node, ...]) -> dict[int, Recurrence]:
    """The loops of recurrent layers, by their neurons: what segments, NIR and online rules know of loops."""
    readers: dict[str, list[int]] = {}
    for index, node in enumerate(nodes):
        for source in node.sources:
            readers.setdefault(source, []).append(index)
    found = (_recurrence(nodes, loop, readers) for loop in dict.fromkeys(loops(nodes).values()))
    return {own.neuron: own for own in found if own is not None}


def _recurrence(
    nodes: tuple[Node, ...], loop: tuple[int, ...], readers: dict[str, list[int]]
) -> Recurrence | None:
    *_, neuron = loop
    lates = [index for index in loop if nodes[index].is_late]
    chain = [lates[0]]
    while chain[-1] != neuron:
        following = readers.get(nodes[chain[-1]].name, [])
        if len(following) != 1:
            return None
        chain += following
    if len(chain) < 3 or len(lates) > 1 or tuple(sorted(chain)) != loop:
        return None
    late, *blocks, join, _ = chain
    is_known = (
        nodes[join].is_sum and len(nodes[join].sources) == 2 and isinstance(nodes[neuron].block, Spiking)
    )
    return Recurrence(late, tuple(blocks), join, neuron) if is_known else None


def feedback_obstacle(nodes: tuple[Node, ...], own: Recurrence) -> str | None:
    """What the fused op does not compute of the way on which spikes return, None if it does."""
    blocks = [nodes[index].block for index in own.blocks]
    late: Any = nodes[own.late].block
    *first, last = blocks or [late]
    is_known = (isinstance(last, Dense | Sparse) and len(first) < 2) or (
        isinstance(last, Synaptic) and not first
    )
    is_known = is_known and all(isinstance(block, Axonal) for block in first) and late.steps == 1
    if is_known and not getattr(last, "bias", True):
        return None
    return "its recurrent connection is not dense or sparse without bias, with delays of one kind at most"


def settled(nodes: tuple[Node, ...]) -> tuple[Node, ...]:
    """The nodes in the order in which they run, checked, with loops that run as many steps at once as can be."""
    nodes = tuple(nodes[index] for part in parts(nodes) for index in part)
    for loop in dict.fromkeys(loops(nodes).values()):
        _check(nodes, loop)
    moved = list(nodes)
    for own in recurrences(nodes).values():
        if feedback_obstacle(nodes, own) is None and nodes[own.neuron].block.obstacle is None:
            continue  # the fused op has the delays as they are
        lead, blocks = _ahead([nodes[index].block for index in own.blocks])
        late: Any = nodes[own.late].block
        moved[own.late] = nodes[own.late]._replace(block=dataclasses.replace(late, steps=late.steps + lead))
        for index, block in zip(own.blocks, blocks, strict=True):
            moved[index] = nodes[index]._replace(block=block)
    return tuple(moved)


def _ahead(blocks: list[Block]) -> tuple[int, list[Block]]:
    """How many steps early the signal of blocks is known, and blocks that return it so many steps earlier."""
    found = [block.ahead() for block in blocks]
    known = [each for each in found if each is not None]
    if len(known) < len(found):
        return 0, blocks
    return sum(lead for lead, _ in known), [block for _, block in known]


def given_blocks(nodes: tuple[Node, ...], own: Recurrence) -> list[Block]:
    """The blocks of a recurrent connection as they were given, with the steps that all delays have."""
    late: Any = nodes[own.late].block
    blocks = [nodes[index].block for index in own.blocks]
    place = next((place for place, block in enumerate(blocks) if isinstance(block, HasDelays)), None)
    if place is not None and late.steps > 1:
        blocks[place] = cast(Any, blocks[place]).later(late.steps - 1)
    return blocks


def _check(nodes: tuple[Node, ...], loop: tuple[int, ...]) -> None:
    names = {nodes[index].name for index in loop}
    for index in loop:
        name, block, _ = nodes[index]
        if block.needs_all_steps(True):
            fail(
                f"network: `{name}` must run step by step, as a signal returns to it, got {block.kind}. "
                "Put it before or behind the loop, or return False from its needs_all_steps."
            )
    if all(source in names for index in loop for source in nodes[index].sources):
        name = nodes[loop[0]].name
        fail(
            f"network: `{name}` must be in a loop that receives a signal from outside, got none. "
            "Add one with blocks.join, such as that of an input."
        )
