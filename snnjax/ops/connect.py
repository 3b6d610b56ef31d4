"""`connect`: the synapses of projections between populations, drawn in place."""

import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array

from snnjax._batching import SHARED
from snnjax._dispatch import Kernel, Target, evaluate
from snnjax.ops._kernel_operands import call_by_records
from snnjax.ops._product import shared
from snnjax.ops._random import hashed, permuted, threefry
from snnjax.ops._tables.connect import Operands, Results

_OP = "connect"
_Integer = Any  # an int, or an array of them
UNIFORM, DISTINCT, IN_DEGREE, ONE_TO_ONE = range(4)  # rules


class Projection(NamedTuple):
    """A row of the table of projections, int32; neurons are numbers among all."""

    first_source: _Integer
    sources: _Integer
    first_target: _Integer
    targets: _Integer
    receptor: _Integer
    rule: _Integer  # how the targets of the synapses of a sender in a block are drawn
    without_self: _Integer  # whether a neuron does not lead to itself
    first_quantile: _Integer  # of weights, equally likely
    quantiles: _Integer
    first_late: _Integer  # of delays in steps
    late: _Integer
    first_cell: _Integer  # in `firsts`


class Static(NamedTuple):
    """The static side of a call."""

    synapses: int
    segments: int
    is_packed: bool  # with weights in bfloat16, beside the places


def _shapes(static: Static) -> Results:
    word = jnp.int32 if static.is_packed else jnp.uint16
    each = functools.partial(jax.ShapeDtypeStruct, (static.synapses,))
    segments = jax.ShapeDtypeStruct((static.segments, 2), jnp.uint16)
    return Results(each(word), None if static.is_packed else each(jnp.float32), segments)


class _Cells(NamedTuple):
    """Of each synapse, in the order in which a row is drawn: its row, its place in that, and its cell."""

    row: Array
    place: Array  # in the row
    number: Array  # of the projection
    own: Array  # its place among the synapses of a projection in the block
    first: Array  # that of the first synapse of its sender
    all: Array  # synapses of the projection in the block

    @classmethod
    def of(cls, operands: Operands, synapses: int) -> "_Cells":
        """Those of all cells."""
        (blocks, neurons), count = operands.ends.shape[:2], operands.projections.shape[0]
        of = Projection(*operands.projections.T[:, None, None])
        source = jnp.arange(neurons)[None, :, None] - of.first_source
        sends = (source >= 0) & (source < of.sources)
        start = of.first_cell + jnp.arange(blocks)[:, None, None] * (of.sources + 1)
        at = jnp.where(sends, start + source, 0)
        first, end = (jnp.take(operands.firsts, at + k, mode="clip") for k in (0, 1))
        counts = jnp.where(sends, end - first, 0)
        total = jnp.broadcast_to(jnp.take(operands.firsts, start + of.sources, mode="clip"), counts.shape)
        cell = jnp.repeat(jnp.arange(counts.size), counts.reshape(-1), total_repeat_length=synapses)
        ends = jnp.cumsum(counts.reshape(-1))
        row = cell // max(count, 1)
        place = jnp.arange(synapses)
        before = (ends - counts.reshape(-1))[cell]
        row_first = jnp.concatenate([jnp.zeros(1, jnp.int32), operands.ends[..., 1].reshape(-1)])[row]
        own = place - before + first.reshape(-1)[cell]
        return cls(
            row,
            place - row_first,
            cell % max(count, 1),
            own,
            first.reshape(-1)[cell],
            total.reshape(-1)[cell],
        )


def _within(word: Array, count: Array) -> Array:
    """A number below `count`, which is at most 2**16: the upper half of the product with a word of 32 bits."""
    count = count.astype(jnp.uint32)
    upper = (word >> 16) * count + ((word & 0xFFFF) * count >> 16)
    return (upper >> 16).astype(jnp.int32)


def _permuted_if(those: Array, place: Array, count: Array, key: tuple[Array, Array]) -> Array:
    """Permuted places of those synapses, 0 of others: a place that is not within its count would never come to be."""
    return permuted(jnp.where(those, place, 0), jnp.where(those, count, 1), key)


def _places(operands: Operands, cells: _Cells, key: tuple[Array, Array], of: Projection) -> Array:
    """The place of the target of each synapse in its block."""
    blocks, neurons = operands.ends.shape[:2]
    block, source = cells.row // neurons, cells.row % neurons
    local = lambda neuron: (neuron - block + blocks - 1) // blocks  # noqa: E731
    start = local(of.first_target)
    targets = local(of.first_target + of.targets) - start
    own = source // blocks - start
    skips = (of.without_self != 0) & (source % blocks == block) & (own >= 0) & (own < targets)
    choices = targets - skips.astype(jnp.int32)
    number, row_number = cells.number.astype(jnp.uint32), cells.place.astype(jnp.uint32)
    uniform = _within(hashed(2 * row_number, key), choices)
    among = _permuted_if(
        of.rule == DISTINCT, cells.own - cells.first, choices, (hashed(~number, key), key[1])
    )
    each = jnp.maximum(cells.all // jnp.maximum(targets, 1), 1)
    words = threefry(operands.key, number + jnp.uint32(1 << 31), block)
    spread = _permuted_if(of.rule == IN_DEGREE, cells.own, each * targets, words)
    one = jnp.clip(local(of.first_target + source - of.first_source) - start, 0, targets - 1)
    in_degree = spread.astype(jnp.int32) // each
    rules = [uniform, among.astype(jnp.int32), in_degree, one]
    target = jnp.select([of.rule == rule for rule in range(len(rules))], rules)
    return of.receptor * -(-neurons // blocks) + start + target + (skips & (target >= own)).astype(jnp.int32)


def reference(operands: Operands, static: Static) -> Results:
    """The jnp reference: all synapses are drawn, and then sorted."""
    blocks, neurons = operands.ends.shape[:2]
    cells = _Cells.of(operands, static.synapses)
    of = Projection(*operands.projections[cells.number].T)
    key = threefry(operands.key, cells.row % neurons, cells.row // neurons)
    places = _places(operands, cells, key, of)
    bits = hashed(2 * cells.place.astype(jnp.uint32) + 1, key)
    weights = operands.quantiles[of.first_quantile + _within(bits, of.quantiles)]
    late = operands.late[of.first_late + _within(bits << 16, of.late)].astype(jnp.int32)
    order = jnp.lexsort((late, cells.row))
    places, weights, row, late = places[order], weights[order], cells.row[order], late[order]
    first = jnp.concatenate(
        [jnp.ones(min(1, static.synapses), bool), (jnp.diff(row) != 0) | (jnp.diff(late) != 0)]
    )
    run = jnp.cumsum(first) - 1
    firsts = jnp.concatenate([jnp.zeros(1, jnp.int32), operands.ends[..., 0].reshape(-1)])
    of_row = run - jax.ops.segment_min(run, row, blocks * neurons)[row]
    slot = firsts[row] + of_row
    segments = jnp.zeros((static.segments, 2), jnp.int32)
    segments = segments.at[slot, 0].set(late, mode="drop").at[slot, 1].add(1, mode="drop").astype(jnp.uint16)
    if not static.is_packed:
        return Results(places.astype(jnp.uint16), weights, segments)
    upper = jax.lax.bitcast_convert_type(weights.astype(jnp.bfloat16), jnp.uint16).astype(jnp.uint32)
    words = jax.lax.bitcast_convert_type(upper << 16 | places.astype(jnp.uint32), jnp.int32)
    return Results(words, None, segments)


def _call(operands: Operands, static: Static, results: Sequence[jax.ShapeDtypeStruct]) -> list[Array]:
    tree = jax.tree.structure(_shapes(static))
    return call_by_records("snnjax_connect", operands, jax.tree.unflatten(tree, results))


_TARGET = Target("snnjax_connect", _OP, reference, {"cpu": Kernel(_call, lambda *_: None)})


@functools.partial(jax.jit, static_argnames=("static", "implementation"))  # so that no result is copied
def connect(operands: Operands, static: Static, implementation: str | None = None) -> Results:
    """Draw the synapses that `firsts` counts: in one call, and by the kernel in place."""
    shapes = _shapes(static)
    results = jax.tree.map(lambda _: SHARED, shapes)
    return evaluate(
        _TARGET, operands, shared(operands), results, static, results=shapes, implementation=implementation
    )
