"""Running a plan: segment by segment, in parts that may be cut into pieces of fewer steps."""

import dataclasses
import functools
import zlib
from collections.abc import Mapping
from typing import Any, NamedTuple

import jax
from jaxtyping import Array

from snnjax._types import accumulation_dtype
from snnjax.blocks.block import BlockResult, Context, Shape, Signal, rounded, shaped, with_counts, within
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
        wanted = frozenset(later) | running.read
        own = functools.partial(
            _run_part, running, segments, wanted, arrays._replace(stats=total.stats), context
        )
        made = {running.nodes[index].name for segment in segments for index in segment.nodes}
        needed = [source for segment in segments for source in running.sources(segment) if source not in made]
        given = {name: total.signals[name] for name in dict.fromkeys(needed)}
        state = {name: total.state[name] for name in made if name in total.state}
        if chunk is None or not can_be_cut:
            (signals, membranes), (counts, dropped), state, stats = own(given, state, context.lengths)
            total.stats.update(stats)
        else:

            def piece(inputs: Any, state: Any, lengths: Any, own: Any = own) -> Any:
                return own(inputs, state, lengths)[:3]

            ran = in_chunks(piece, given, state, context.lengths, chunk)
            (signals, membranes), (counts, dropped), state = ran
        for whole, new in zip(total, (signals, membranes, counts, dropped, state), strict=False):
            whole.update(new)
    return total


def _run_part(
    running: Running,
    segments: list[Segment],
    wanted: frozenset[str],
    arrays: Arrays,
    context: Context,
    given: Mapping[str, Signal],
    state: Mapping[str, Any],
    lengths: Array | None,
) -> tuple[Any, Any, dict[str, Any], dict[str, Any]]:
    """Segments over some steps: results per step, results summed over steps, the new state and the new stats."""
    signals, (membranes, counts, dropped, stats), after = dict(given), ({}, {}, {}, {}), dict(state)
    arrays = arrays._replace(state=state)
    for segment in segments:
        own = dataclasses.replace(context, lengths=lengths)
        for index, result in _run_segment(running, segment, arrays, signals, own).items():
            name = running.nodes[index].name
            signals[name] = result.signal
            if result.state is not None:
                after[name] = result.state
            found = (result.membranes, result.counts, result.dropped, result.stats)
            for into, value in zip((membranes, counts, dropped, stats), found, strict=True):
                if value is not None:
                    into[name] = value
    kept = {name: signals[name] for name in signals if name in wanted and name not in given}
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
    result = node.block.apply(*held, *received, shapes=shapes, context=context)
    return {index: with_counts(node.block, result, node.block.out_shape(*shapes), valid)}


def _flat_or_shaped(x: Signal, shape: Shape) -> Signal:
    return x if isinstance(x, SparseSpikes) else shaped(x, shape)
