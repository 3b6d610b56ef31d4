"""Running a network: segment by segment, in parts that may be cut into pieces of fewer steps."""

import dataclasses
import functools
from collections.abc import Mapping
from typing import Any, NamedTuple

import jax
from jax.typing import DTypeLike
from jaxtyping import Array

from snnjax._types import Signal, State, accumulation_dtype
from snnjax.blocks.block import BlockResult, Context, Shape, rounded
from snnjax.graph.alone import run_alone
from snnjax.graph.containers import Node
from snnjax.graph.fused import Arrays, run_fused
from snnjax.graph.loop import Held, Loop, run_loop
from snnjax.graph.segments import Fused, Looped, Segment
from snnjax.ops._chunks import in_chunks


class Running(NamedTuple):
    """The static parts of a run."""

    nodes: tuple[Node, ...]
    shapes: tuple[tuple[Shape, ...], ...]  # that each node receives
    segments: tuple[Segment, ...]
    read: frozenset[str]  # nodes whose signals leave the network
    dtype: DTypeLike  # of the results

    def sources(self, segment: Segment) -> tuple[str, ...]:
        """The signals that a segment receives."""
        own = [self.nodes[index] for index in segment.nodes]
        made = {node.name for node in own}
        return tuple(source for node in own for source in node.sources if source not in made)

    def parts(self, train: bool) -> list[tuple[bool, list[Segment]]]:
        """The segments in runs: whether a run can be cut into pieces of fewer steps, and its segments."""
        found: list[tuple[bool, list[Segment]]] = []
        for segment in self.segments:
            whole = any(self.nodes[index].block.needs_all_steps(train) for index in segment.nodes)
            if whole or not found or not found[-1][0]:
                found.append((not whole, [segment]))
            else:
                found[-1][1].append(segment)
        return found


class Part(NamedTuple):
    """The static side of segments that run together."""

    running: Running
    segments: tuple[Segment, ...]
    wanted: frozenset[str]  # nodes whose signals leave it


class Results(NamedTuple):
    """What a run returns, by the names of nodes."""

    signals: dict[str, Signal]
    membranes: dict[str, Array]
    counts: dict[str, Array]
    dropped: dict[str, Array]
    state: dict[str, Any]
    stats: dict[str, Any]


def run(
    running: Running, arrays: Arrays, inputs: Mapping[str, Signal], context: Context, chunk: int | None
) -> Results:
    """Run all segments in order."""
    total = Results(dict(inputs), {}, {}, {}, dict(arrays.state), dict(arrays.stats))
    parts = [(False, list(running.segments))] if chunk is None else running.parts(context.train)
    for place, (can_be_cut, segments) in enumerate(parts):
        later = [source for _, rest in parts[place + 1 :] for own in rest for source in running.sources(own)]
        part = Part(running, tuple(segments), frozenset(later) | running.read)
        made = {running.nodes[index].name for segment in segments for index in segment.nodes}
        needed = [source for segment in segments for source in running.sources(segment) if source not in made]
        given = {name: total.signals[name] for name in dict.fromkeys(needed)}
        state = {name: total.state[name] for name in made if name in total.state}
        held = Arrays(arrays.params, state, {name: own for name, own in total.stats.items() if name in made})
        if chunk is None or not can_be_cut:
            ran = _run_part(part, held, context, given, context.lengths)
        else:
            ran = _run_in_chunks(part, chunk, held, context, given)
        (signals, membranes), (counts, dropped), after, stats = ran
        for whole, new in zip(total, (signals, membranes, counts, dropped, after, stats), strict=True):
            whole.update(new)
    return total


# Cut into pieces it is a loop, and outside of `jit` each loop of a new function would be compiled again.
@functools.partial(jax.jit, static_argnames=("part", "chunk"))
def _run_in_chunks(
    part: Part, chunk: int, held: Arrays, context: Context, given: Mapping[str, Signal]
) -> tuple[Any, Any, dict[str, Any], dict[str, Any]]:
    """A part in pieces of some steps, which carry their state and the stats that change from one to the next."""

    def piece(given: Any, carried: Any, lengths: Any) -> Any:
        own = Arrays(held.params, carried[0], {**held.stats, **carried[1]})
        timed, summed, state, stats = _run_part(part, own, context, given, lengths)
        return timed, summed, (state, {**carried[1], **stats})

    # What is carried is stored for each piece: stats that stay as they are, such as synapses, are no part of it.
    state: State = dict(held.state)
    changed = jax.eval_shape(piece, given, (state, {}), context.lengths)[2][1] if held.stats else {}
    stats = {name: held.stats[name] for name in changed}
    timed, summed, (state, stats) = in_chunks(piece, given, (state, stats), context.lengths, chunk)
    return timed, summed, state, stats


def _run_part(
    part: Part, held: Arrays, context: Context, given: Mapping[str, Signal], lengths: Array | None
) -> tuple[Any, Any, dict[str, Any], dict[str, Any]]:
    """A part over some steps: results per step, results summed over steps, the state after them and new stats."""
    signals, (membranes, counts, dropped, stats), after = dict(given), ({}, {}, {}, {}), dict(held.state)
    own = dataclasses.replace(context, lengths=lengths)
    for segment in part.segments:
        for index, result in _run_segment(part.running, segment, held, signals, own).items():
            name = part.running.nodes[index].name
            signals[name] = result.signal
            found = (result.membranes, result.counts, result.dropped, result.state, result.stats)
            for into, value in zip((membranes, counts, dropped, after, stats), found, strict=True):
                if value is not None:
                    into[name] = value
    kept = {name: signals[name] for name in signals if name in part.wanted and name not in given}
    return (kept, membranes), (counts, dropped), after, stats


def _run_segment(
    running: Running, segment: Segment, arrays: Arrays, signals: Mapping[str, Signal], context: Context
) -> dict[int, BlockResult]:
    if isinstance(segment, Looped):
        return _run_loop(running, segment, arrays, signals, context)
    if isinstance(segment, Fused):
        (x,) = (signals[source] for source in running.sources(segment))
        x = rounded(x, accumulation_dtype(running.dtype)) if segment.layers[0].product is None else x
        return run_fused(segment, running.nodes, running.shapes, arrays, x, context)
    node, shapes = running.nodes[segment.node], running.shapes[segment.node]
    held = (arrays.params.get(node.name), arrays.state.get(node.name), arrays.stats.get(node.name))
    return {segment.node: run_alone(node, shapes, running.dtype, held, signals, context)}


def _run_loop(
    running: Running, segment: Looped, arrays: Arrays, signals: Mapping[str, Signal], context: Context
) -> dict[int, BlockResult]:
    nodes = tuple(running.nodes[index] for index in segment.nodes)
    names = {node.name for node in nodes}
    others = [node for node in running.nodes if node.name not in names]
    read = frozenset(source for node in others for source in node.sources) | running.read
    shapes = tuple(running.shapes[index] for index in segment.nodes)
    params, state, stats = ({name: own[name] for name in names if name in own} for own in arrays)
    given = {source: signals[source] for source in running.sources(segment)}
    context = dataclasses.replace(
        context,
        second_threshold={name: own for name, own in context.second_threshold.items() if name in names},
        offsets=None if context.offsets is None else {n: x for n, x in context.offsets.items() if n in names},
    )
    loop = Loop(nodes, shapes, read & names, running.dtype)
    ran = run_loop(loop, Held(params, stats), state, given, context)
    found = {}
    for index, node in zip(segment.nodes, nodes, strict=True):
        signal, membranes, counts, dropped, after = (own.get(node.name) for own in ran)
        found[index] = BlockResult(signal, after, None, counts, dropped, membranes)
    return found
