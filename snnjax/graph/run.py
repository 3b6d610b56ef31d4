"""Running a plan: segment by segment, in parts that may be cut into pieces of fewer steps."""

import dataclasses
import functools
import zlib
from collections.abc import Mapping
from typing import Any, NamedTuple

import jax
from jaxtyping import Array

from snnjax._types import accumulation_dtype
from snnjax.blocks._applied import applied
from snnjax.blocks.block import BlockResult, Context, Shape, Signal, rounded, shaped, within
from snnjax.graph.containers import Node
from snnjax.graph.fused import Arrays, run_fused
from snnjax.graph.plan import Fused, Segment
from snnjax.ops._chunks import in_chunks
from snnjax.sparse_spikes import SparseSpikes


class Running(NamedTuple):
    """The static parts of a run."""

    nodes: tuple[Node, ...]
    shapes: tuple[tuple[Shape, ...], ...]  # that each node receives
    segments: tuple[Segment, ...]
    read: frozenset[str]  # nodes whose signals leave the network
    dtype: Any  # of the results

    def sources(self, segment: Segment) -> tuple[str, ...]:
        """The signals that a segment receives."""
        return self.nodes[segment.nodes[0]].sources

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


def block_key(key: Array | None, name: str) -> Array | None:
    """The key of a node, which is the same wherever a node of this name stands."""
    return None if key is None else jax.random.fold_in(key, zlib.crc32(name.encode()))


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
    state: Any = dict(held.state)
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
    index = segment.nodes[0]
    node, shapes = running.nodes[index], running.shapes[index]
    received, dtype = [signals[source] for source in node.sources], accumulation_dtype(running.dtype)
    if isinstance(segment, Fused):
        (x,) = received
        x = rounded(x, dtype) if segment.layers[0].product is None else x
        return run_fused(segment, running.nodes, running.shapes, arrays, x, context)
    # Signals are 0 after the end of a sequence, and in the accumulation dtype of the weights, as is the state.
    valid = context.valid(received[0].shape[0])
    received = [
        rounded(within(_flat_or_shaped(x, own), valid), dtype)
        for x, own in zip(received, shapes, strict=True)
    ]
    context = dataclasses.replace(
        context,
        key=block_key(context.key, node.name),
        second_threshold=context.second_threshold.get(node.name),
        offsets=None if context.offsets is None else context.offsets.get(node.name),
    )
    held = (arrays.params.get(node.name), arrays.state.get(node.name), arrays.stats.get(node.name))
    return {index: applied(node.name, node.block, held, received, shapes, context)}


def _flat_or_shaped(x: Signal, shape: Shape) -> Signal:
    return x if isinstance(x, SparseSpikes) else shaped(x, shape)
