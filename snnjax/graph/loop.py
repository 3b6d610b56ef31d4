"""A loop of the graph, run step by step, or in pieces that end before any signal of theirs can return.

The backward pass goes through the steps without the params of connections. Their gradients need what these receive in
all steps, and the cotangents of what they return: one product behind the loop, as of a connection in no loop. It is
exact, as blocks that run step by step may be run on all steps at once.
"""

import dataclasses
import functools
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.typing import DTypeLike
from jaxtyping import Array

from snnjax._check import fail
from snnjax._sharding import vary_alike
from snnjax._sparse_spikes import SparseSpikes
from snnjax._types import Signal, State, accumulation_dtype, wide_floats
from snnjax.blocks._sparse import Sparse
from snnjax.blocks.block import BlockResult, Context, Shape, rounded, shaped
from snnjax.blocks.delay import DelayState
from snnjax.blocks.late import Late
from snnjax.graph.alone import run_alone
from snnjax.graph.containers import Node
from snnjax.ops._time_scan import platform_scan


class Loop(NamedTuple):
    """The static part of a loop."""

    nodes: tuple[Node, ...]  # in the order in which they run
    shapes: tuple[tuple[Shape, ...], ...]  # that each receives
    read: frozenset[str]  # the nodes whose signals are read outside of it
    dtype: DTypeLike  # of the network's results

    def lates(self) -> dict[str, Node]:
        """The nodes through which it is a loop."""
        names = {node.name for node in self.nodes}
        found = (node for node in self.nodes if node.is_late and node.sources[0] in names)
        return {node.name: node for node in found}

    def size(self, steps: Any) -> Any:
        """How many steps can run at once."""
        blocks: list[Any] = [node.block for node in self.lates().values()]
        return max(1, min(steps, *(block.steps for block in blocks))) if isinstance(steps, int) else 1

    def listed(self, steps: Any) -> tuple[str, ...]:
        """The late nodes that pass lists on from step to step: synapses are then read for listed neurons alone."""
        if not isinstance(steps, int) or steps < 2:
            return ()
        blocks = {node.name: node.block for node in self.nodes}
        found = []
        for name, node in self.lates().items():
            readers = [own.block for own in self.nodes if name in own.sources]
            is_sparse = all(isinstance(block, Sparse) for block in readers) and name not in self.read
            if (
                is_sparse
                and blocks[node.sources[0]].lists_spikes
                and _late(node).steps == self.size(steps) == 1
            ):
                found.append(name)
        return tuple(found)

    def hoisted(self, params: Mapping[str, Any], context: Context) -> tuple[str, ...]:
        """The nodes whose gradients are formed for all steps at once; none where forward mode is to work."""
        own = () if context.implementation == "composed" else self.nodes
        return tuple(node.name for node in own if node.name in params and not node.block.is_spiking)

    def tapped(self, names: Iterable[str], given: Mapping[str, Signal]) -> dict[str, str]:
        """Where the cotangent of the signal of each of these nodes is found: at the node itself, or at a sum.

        All that is added has one cotangent, so that of a signal from outside serves, which is known in any case.
        """
        readers: dict[str, list[Node]] = {}
        for node in self.nodes:
            for source in node.sources:
                readers.setdefault(source, []).append(node)
        found = {}
        for name in names:
            found[name], own = name, readers.get(name, [])
            if len(own) == 1 and name not in self.read and own[0].is_sum:
                arrays = (each for each in own[0].sources if isinstance(given.get(each), Array))
                found[name] = next((each for each in arrays if len(readers[each]) == 1), own[0].name)
        return found

    def kept(self, hoisted: tuple[str, ...], ends: bool) -> tuple[str, ...]:
        """The nodes whose signals of all steps are kept: `ends` is whether late nodes look for those at the ends."""
        lates, read = self.lates(), set(self.read)
        for node in self.nodes:
            if node.name in hoisted:
                read.update(*(lates[own].sources if own in lates else (own,) for own in node.sources))
            elif node.name in lates and (ends or node.name in self.read):
                read.update(node.sources)
        return tuple(node.name for node in self.nodes if node.name in read and node.name not in lates)


class Held(NamedTuple):
    """Params and stats by node."""

    params: dict[str, Any]
    stats: dict[str, Any]

    def split(self, names: tuple[str, ...]) -> tuple["Held", "Held"]:
        """Those of some nodes, and the others."""
        ours, others = (
            Held(*({name: own for name, own in part.items() if (name in names) is kind} for part in self))
            for kind in (True, False)
        )
        return ours, others

    def joined(self, other: "Held") -> "Held":
        """Both together."""
        return Held({**self.params, **other.params}, {**self.stats, **other.stats})


class LoopResults(NamedTuple):
    """What a loop returns, by the names of its nodes."""

    signals: dict[str, Signal]
    membranes: dict[str, Any]
    counts: dict[str, Any]  # of all steps, like the following
    dropped: dict[str, Any]
    state: dict[str, Any]


# As of neurons alone: without `jit`, each call outside of one would compile the scan again.
@functools.partial(jax.jit, static_argnames=("loop",))
def run_loop(
    loop: Loop, held: Held, state: Mapping[str, Any], given: Mapping[str, Signal], context: Context
) -> LoopResults:
    """A loop over all steps; `given` are the signals from outside."""
    held = held._replace(params=jax.tree.map(wide_floats, held.params))
    signals = {name: rounded(x, accumulation_dtype(loop.dtype)) for name, x in given.items()}
    names = loop.hoisted(held.params, context)
    if not names:
        return _steps(loop, (), held, dict(state), signals, context, {})
    held, own_state, signals, context = vary_alike((held, dict(state), signals, context))
    return _hoisting(loop, *held.split(names), own_state, signals, context)


@functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
def _hoisting(loop: Loop, own: Held, others: Held, state: State, given: Any, context: Context) -> LoopResults:
    return _steps(loop, tuple(own.params), own.joined(others), state, given, context, {})


def _forward(loop: Loop, own: Held, others: Held, state: State, given: Any, context: Context) -> Any:
    steps, batch = jax.tree.leaves(given)[0].shape[:2]
    dtype, taps = accumulation_dtype(loop.dtype), {}
    tapped = set(loop.tapped(own.params, given).values())
    for node, shapes in zip(loop.nodes, loop.shapes, strict=True):
        if node.name in tapped:
            taps[node.name] = jnp.zeros((steps, batch, *node.block.out_shape(*shapes)), dtype)

    taps, _ = vary_alike((taps, given))

    def run(others: Held, *rest: Any) -> LoopResults:
        return _steps(loop, tuple(own.params), own.joined(others), *rest)

    results, back = jax.vjp(run, others, state, given, context, taps)
    return results, (own, others, state, given, context, results.signals, back)


def _backward(loop: Loop, kept: Any, g: LoopResults) -> Any:
    own, others, state, given, context, signals, back = kept
    *g_others, g_taps = back(g)
    g_signals = {**g_others[2], **g_taps}
    known = {**given, **signals}
    for name, node in loop.lates().items():
        if node.sources[0] in known:
            known[name] = _late(node).arriving(state[name], known[node.sources[0]])
    each = [pair for pair in zip(loop.nodes, loop.shapes, strict=True) if pair[0].name in own.params]

    def again(own: Held) -> dict[str, Any]:
        """The signals and states of these nodes, each run on all steps at once."""
        found = {}
        for node, shapes in each:
            arrays = own.joined(others), state, known
            ran = _run(loop, node, shapes, *arrays, context)
            found[node.name] = ran.signal, ran.state
        return found

    results, through = jax.vjp(again, own)
    tapped = loop.tapped(own.params, given)
    g_again = {
        name: (g_signals[tapped[name]].reshape(signal.shape), g.state.get(name))
        for name, (signal, _) in results.items()
    }
    return through(g_again)[0], *g_others


_hoisting.defvjp(_forward, _backward)


@jax.custom_vjp
def _tapped(signal: Array, tap: Array) -> Array:
    """A signal whose cotangent is that of `tap` too."""
    del tap
    return signal


_tapped.defvjp(lambda signal, tap: (signal, None), lambda _, g: (g, g))


def _steps(
    loop: Loop, hoisted: tuple[str, ...], held: Held, state: State, given: Any, context: Context, taps: Any
) -> LoopResults:
    """All steps, in pieces of `Loop.size`."""
    steps, batch = jax.tree.leaves(given)[0].shape[:2]
    size, lates = loop.size(steps), loop.lates()
    count, ends = -(-steps // size), context.lengths
    if ends is None and size > 1 and count * size != steps:
        ends = jnp.full(batch, steps, jnp.int32)
    left = None
    if ends is not None:
        first = size * jnp.arange(count, dtype=jnp.int32)
        left = jnp.clip(ends[None] - first[:, None], 0, size)
    kept = loop.kept(hoisted, ends is not None)

    def cut(leaf: Array) -> Array:
        behind = ((0, count * size - steps), *((0, 0),) * (leaf.ndim - 1)) if size > 1 else ()
        return (jnp.pad(leaf, behind) if behind else leaf).reshape(count, size, *leaf.shape[1:])

    def piece(held: Held, state: State, xs: Any) -> Any:
        given, left, taps = xs
        own = dataclasses.replace(context, lengths=left)
        return _piece(loop, held, state, given, own, taps, kept, size, loop.listed(steps))

    cuts = jax.tree.map(cut, (given, taps))
    first = _first_state(loop, state)
    leaves, form = jax.tree.flatten(first)
    first = form.unflatten(vary_alike([*leaves, *jax.tree.leaves((held, cuts, left))])[: len(leaves)])
    last, ran = _scanned(piece, held, first, (cuts[0], left, *cuts[1:]), is_apart=bool(loop.listed(steps)))
    last |= {name: _late(lates[name]).after(state[name], last[name], None) for name in loop.listed(steps)}

    def whole(leaf: Array) -> Array:
        return leaf.reshape(count * size, *leaf.shape[2:])[:steps]

    signals, membranes = jax.tree.map(whole, (ran.signals, ran.membranes))
    counts, dropped = jax.tree.map(lambda leaf: jnp.sum(leaf, axis=0), (ran.counts, ran.dropped))
    if ends is not None:
        last |= {
            name: _late(own).after(state[name], signals[own.sources[0]], ends) for name, own in lates.items()
        }
    for name in loop.read & lates.keys():
        signals[name] = _late(lates[name]).arriving(state[name], signals[lates[name].sources[0]])
    return LoopResults(signals, membranes, counts, dropped, last)


def _scanned(piece: Any, held: Held, first: Any, xs: Any, *, is_apart: bool) -> tuple[Any, LoopResults]:
    """A scan of pieces; `is_apart` is whether the first one runs apart, as what a state has sent may be in no list."""
    if not is_apart:
        return platform_scan(piece, held, first, xs)
    head, rest = (jax.tree.map(lambda leaf, own=own: leaf[own], xs) for own in (0, slice(1, None)))
    first, begun = piece(held, first, head)
    last, ran = platform_scan(piece, held, first, rest)
    return last, jax.tree.map(lambda one, more: jnp.concatenate([one[None], more]), begun, ran)


def _piece(
    loop: Loop,
    held: Held,
    state: State,
    given: Any,
    context: Context,
    taps: Any,
    kept: tuple[str, ...],
    size: Any,
    listed: tuple[str, ...],
) -> tuple[dict[str, Any], LoopResults]:
    """As many steps as run at once: the state after them, and the results."""
    lates, after, found = loop.lates(), dict(state), LoopResults({}, {}, {}, {}, {})
    signals = dict(given)
    for name, node in lates.items():
        sent = state[name]
        is_list = isinstance(sent, SparseSpikes)
        signals[name] = sent if is_list else shaped(sent.sent[:size], _late(node).shape)
    for node, shapes in zip(loop.nodes, loop.shapes, strict=True):
        name = node.name
        if name in lates:
            continue
        result = _run(loop, node, shapes, held, state, signals, context)
        if result.stats is not None:
            fail(
                f"network: `{name}` must keep its stats as they are, as a signal returns to it, got "
                f"{node.block.kind}. Put it before or behind the loop."
            )
        signals[name] = _tapped(result.signal, taps[name]) if name in taps else result.signal
        if result.state is not None:
            after[name] = result.state
        for into, value in zip(found[1:], (result.membranes, result.counts, result.dropped), strict=False):
            if value is not None:
                into[name] = value
    for name, node in lates.items():  # the ends of sequences are looked for behind the loop
        sent = signals[node.sources[0]]
        after[name] = sent if name in listed else _late(node).after(state[name], sent, None)
    return after, found._replace(signals={name: signals[name] for name in kept})


def _run(
    loop: Loop,
    node: Node,
    shapes: tuple[Shape, ...],
    held: Held,
    state: Mapping[str, Any],
    signals: Mapping[str, Signal],
    context: Context,
) -> BlockResult:
    arrays = held.params.get(node.name), state.get(node.name), held.stats.get(node.name)
    return run_alone(node, shapes, loop.dtype, arrays, signals, context)


def _first_state(loop: Loop, state: Mapping[str, Any]) -> dict[str, Any]:
    """A state whose delays have the rows for which none stand."""
    found = dict(state)
    for node in loop.nodes:
        own, block = state.get(node.name), node.block
        if isinstance(own, DelayState) and own.pending.shape[0] == 0:
            rows: Any = block.max_delay + 1  # type: ignore[attr-defined]
            found[node.name] = DelayState(jnp.zeros((rows, *own.pending.shape[1:]), own.pending.dtype))
    return found


def _late(node: Node) -> Late:
    assert isinstance(node.block, Late)
    return node.block
