"""How arrays are resharded for an operation."""

import math
from collections.abc import Callable, Sequence

from snnjax.ipu.lowering import pairs, views
from snnjax.ipu.lowering.builder import Builder
from snnjax.ipu.lowering.operation import Walk
from snnjax.ipu.lowering.rules import elementwise
from snnjax.ipu.lowering.rules.reductions import native
from snnjax.ipu.lowering.sharding import Groups, Sharding, groups_along
from snnjax.ipu.lowering.types import ArrayType


def mark(walk: Walk, value: int, sharding: Sharding | None, new_from: float = math.inf) -> int:
    """The value, marked as sharded; a copy if it is already used with a different sharding.

    Values from `new_from` on have no other use yet.
    """
    builder, known = walk.builder, walk.shardings.get(value)
    wanted = None if sharding is None or sharding.is_replicated() else sharding
    is_new = value >= new_from and value not in builder.constants
    if known == wanted and (wanted is None or value not in builder.constants):
        return value
    if wanted is None or not is_new:
        if value in builder.parts:
            value = pairs.pair(builder, *builder.parts[value])
        elif value in builder.definitions or known is not None or value in builder.constants:
            value = builder.one("identity", (value,), builder.types[value], ((len(walk.shardings),),))
    if wanted is not None:
        walk.shardings[value] = wanted
    return value


def place(walk: Walk, value: int, wanted: Sharding | None) -> int:
    """The shard of a value that each IPU needs: pending sums are computed, parts gathered, the rest sliced off."""
    known = walk.shardings.get(value)
    rank = len(walk.builder.types[value].shape)
    if known is None:
        if wanted is None or wanted.is_replicated():
            return value
        known = Sharding(wanted.mesh, ((),) * rank)
    if wanted is None:
        wanted = Sharding(known.mesh, ((),) * rank)
    if wanted.unreduced != known.unreduced and wanted.unreduced:
        hint = "Compute it with lax.psum in jax.shard_map"
        raise walk.builder.refuse((value,), "a sum over IPUs would have to be undone", hint)
    if known.unreduced and not wanted.unreduced:
        groups = groups_along(known.mesh, _in_order(known.mesh, known.unreduced))
        value = pairs.map_parts(walk.builder, lambda part: combined(walk.builder, part, "add", groups), value)
    if known.mesh != wanted.mesh:  # another mesh over the same IPUs
        value = _gathered(walk, value, known, [0] * rank)
        known = Sharding(wanted.mesh, ((),) * rank)
    kept = [_common(*each) for each in zip(known.axes, wanted.axes, strict=True)]
    value = _gathered(walk, value, known, kept)
    rest = tuple(axes[n:] for axes, n in zip(wanted.axes, kept, strict=True))
    return _cut(walk, value, Sharding(wanted.mesh, rest))


def _in_order(mesh: Sequence[tuple[str, int]], names: frozenset[str]) -> list[str]:
    return [name for name, _ in mesh if name in names]


def _common(first: Sequence[str], second: Sequence[str]) -> int:
    """The number of major axes that two dimensions share."""
    pairs_ = zip(first, second, strict=False)
    return next((n for n, (a, b) in enumerate(pairs_) if a != b), min(len(first), len(second)))


def combined(builder: Builder, x: int, kind: str, groups: Groups) -> int:
    """The elementwise combination over the partitions of each group."""
    type_ = builder.types[x]
    converted = elementwise.convert(builder, x, native(type_.dtype))
    result = builder.one("all_reduce", (converted,), builder.types[converted], groups, (kind,))
    return elementwise.convert(builder, result, type_.dtype)


def _gathered(walk: Walk, value: int, known: Sharding, kept: Sequence[int]) -> int:
    """The array with only `kept` major axes of each dimension left, and the others gathered."""
    builder = walk.builder

    def gather(part: int) -> int:
        for d, (axes, n) in enumerate(zip(known.axes, kept, strict=True)):
            groups = groups_along(known.mesh, axes[n:])
            count = groups[1][1]
            if count > 1:
                type_ = builder.types[part]
                shape = (*type_.shape[:d], type_.shape[d] * count, *type_.shape[d + 1 :])
                gathered = ArrayType(type_.dtype, shape)
                if gathered.size:
                    part = builder.one("all_gather", (part,), gathered, (*groups, (d,)))
                else:
                    part = views.empty(builder, gathered)
        return part

    return pairs.map_parts(builder, gather, value)


def _cut(walk: Walk, value: int, sharding: Sharding) -> int:
    """This IPU's shard, from its partition id and the mesh."""
    if sharding.is_replicated():
        return value
    builder = walk.builder

    def cut(part: int) -> int:
        type_ = sharding.local(builder.types[part])
        known = _cut_at_once(builder, part, type_)
        if known is not None:
            return known
        return builder.one("dynamic_slice", (part, *_starts(builder, sharding, type_)), type_, (type_.shape,))

    return pairs.map_parts(builder, cut, value)


def _cut_at_once(builder: Builder, x: int, type_: ArrayType) -> int | None:
    """The shard if all shards are equal: equal elements, or values repeated or counted along other dimensions."""
    if type_.size == 0:
        return views.empty(builder, type_)
    number = builder.number(x)
    if number is not None:
        return builder.splat(number, type_)
    definition = builder.definitions.get(x)
    if definition is None or definition.op not in ("iota", "broadcast_in_dim"):
        return None
    cut = [d for d, (n, old) in enumerate(zip(type_.shape, builder.types[x].shape, strict=True)) if n != old]
    if any(d in definition.ints[0] for d in cut):
        return None
    if definition.op == "iota":
        return views.iota(builder, type_, definition.ints[0][0])
    return views.broadcast(builder, definition.inputs[0], type_.shape, definition.ints[0])


def _starts(builder: Builder, sharding: Sharding, local: ArrayType) -> list[int]:
    """The start of this IPU's shard along each dimension."""
    scalar = ArrayType("u32", ())
    number = builder.one("partition_id", (), scalar)
    place_: dict[str, int] = {}
    stride = 1
    for name, size in reversed(sharding.mesh):
        divided = elementwise.binary(builder, "divide", number, builder.splat(stride, scalar))
        place_[name] = elementwise.binary(builder, "remainder", divided, builder.splat(size, scalar))
        stride *= size
    sizes = dict(sharding.mesh)
    starts = []
    for axes, length in zip(sharding.axes, local.shape, strict=True):
        start = builder.splat(0, scalar)
        for axis in axes:
            scaled = elementwise.binary(builder, "multiply", start, builder.splat(sizes[axis], scalar))
            start = elementwise.binary(builder, "add", scaled, place_[axis])
        starts.append(elementwise.binary(builder, "multiply", start, builder.splat(length, scalar)))
    return starts


Shardings = list[Sharding | None]


def carried(walk: Walk, values: Sequence[int], trial: Callable[[Shardings], Shardings]) -> Shardings:
    """The shardings of a loop's values: the initial ones, or those that its body yields if they begin whole.

    `trial` returns the shardings that the body yields. A value whose sharding changes again is carried whole.
    """
    now = shardings_of(walk, values)
    settled: set[int] = set()
    while walk.num_partitions > 1 and not walk.is_manual:
        following = list(now)
        for position, (before, after) in enumerate(zip(now, trial(now), strict=True)):
            if before != after:
                following[position] = after if before is None and position not in settled else None
                settled.add(position)
        if following == now:
            break
        now = following
    return now


def shardings_of(walk: Walk, values: Sequence[int]) -> Shardings:
    """The shardings of values."""
    return [walk.shardings.get(value) for value in values]


def local_types(types: Sequence[ArrayType], shardings: Shardings) -> list[ArrayType]:
    """The types of one IPU's shards."""
    pairs_ = zip(types, shardings, strict=True)
    return [type_ if sharding is None else sharding.local(type_) for type_, sharding in pairs_]


def yielded(walk: Walk, branches: Sequence[Callable[[], Sequence[int]]], count: int) -> Shardings:
    """The shardings of the results of branches: the common one, else whole."""
    if walk.num_partitions == 1 or walk.is_manual:
        return [None] * count
    ends: list[Shardings] = []

    def trial(branch: Callable[[], Sequence[int]]) -> list[int]:
        ends.append(shardings_of(walk, branch()))
        return []

    for branch in branches:
        walk.builder.block((), lambda _, branch=branch: trial(branch))
    return [each[0] if len(set(each)) == 1 else None for each in zip(*ends, strict=True)]
