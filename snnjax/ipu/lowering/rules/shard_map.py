"""Programs for several IPUs: how arguments and results are sharded, and the body of `shard_map`, lowered as it is.

Inside `shard_map` (``sdy.manual_computation``) arrays belong to one IPU; outside, `partition` divides the work.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from snnjax import _jax_compat
from snnjax._jax_compat import CompileOptions, Value, func, ir, sdy
from snnjax.ipu.lowering.donation import attributes_of
from snnjax.ipu.lowering.errors import refusal
from snnjax.ipu.lowering.operation import Operation, Walk
from snnjax.ipu.lowering.rules import rule
from snnjax.ipu.lowering.rules.resharding import mark, place, shardings_of
from snnjax.ipu.lowering.sharding import Sharding
from snnjax.ipu.lowering.types import ArrayType

_SHARDING = "sdy.sharding"
HINT = "Write what each IPU computes with jax.shard_map, and all_gather or psum where it needs the others"


@dataclass
class Layout:
    """The parameters and results of main on each IPU."""

    parameters: list[ArrayType]
    num_partitions: int
    devices: list[int]
    shardings: list[Sharding | None]  # of the parameters
    parameter_shardings: list[bytes]
    result_shardings: list[bytes]


def axes_of(walk: Walk, name: str) -> tuple[tuple[str, int], ...]:
    """Names and sizes of the axes of a mesh, whose devices must be in order."""
    mesh = sdy.MeshAttr(walk.meshes[name])
    if list(mesh.device_ids):
        raise refusal("shard_map", (), "the devices of the mesh are not in order", "Sort them by id", "")
    axes = [sdy.MeshAxisAttr(axis) for axis in mesh.axes]
    return tuple((axis.name, axis.size) for axis in axes)


def sharding_of(walk: Walk, attribute: ir.Attribute) -> Sharding:
    """Parse an ``sdy.sharding``."""
    sharding = sdy.TensorShardingAttr(attribute)
    sizes = axes_of(walk, ir.FlatSymbolRefAttr(sharding.mesh_or_ref).value)

    def names(axes: Iterable[ir.Attribute]) -> tuple[str, ...]:
        refs = [sdy.AxisRefAttr(axis) for axis in axes]
        if any(ref.sub_axis_info is not None for ref in refs):
            raise refusal("shard_map", (), f"{attribute} splits an axis of the mesh", HINT, "")
        return tuple(ref.name for ref in refs)

    axes = (names(sdy.DimensionShardingAttr(each).axes) for each in sharding.dimension_shardings)
    return Sharding(sizes, tuple(axes), frozenset(names(sharding.unreduced_axes)))


def _first_use(walk: Walk, argument: Value) -> Sharding | None:
    """The sharding that the only `shard_map` using an argument requires."""
    wanted = set()
    for use in argument.uses:
        owner = use.owner.operation
        if owner.name == "func.call":
            callee = walk.functions[ir.FlatSymbolRefAttr(owner.attributes["callee"]).value]
            wanted.add(_first_use(walk, callee.regions[0].blocks[0].arguments[use.operand_number]))
        elif owner.name == "sdy.manual_computation":
            attributes = sdy.TensorShardingPerValueAttr(owner.attributes["in_shardings"]).shardings
            wanted.add(sharding_of(walk, attributes[use.operand_number]))
        else:
            wanted.add(None)
    return wanted.pop() if len(wanted) == 1 else None


def localise(walk: Walk, main: func.FuncOp, options: CompileOptions) -> Layout:
    """The types of main on each IPU."""
    block = main.regions[0].blocks[0]
    types = [walk.array_type(argument.type) for argument in block.arguments]
    if options.num_replicas != 1:
        what = f"`num_replicas` must be 1, got {options.num_replicas}"
        raise refusal("compile", (), what, "Compile for partitions, as jax.jit and jax.shard_map do", "")
    count = options.num_partitions
    devices = _jax_compat.device_ids(options) or list(range(count))
    walk.num_partitions = count
    if count == 1:
        return Layout(types, count, devices, [None for _ in types], [], [])
    attributes = attributes_of(main, "arg_attrs", len(types))
    shardings = [
        sharding_of(walk, each[_SHARDING])
        if each is not None and _SHARDING in each
        else _first_use(walk, argument)
        for argument, each in zip(block.arguments, attributes, strict=True)
    ]
    pairs = list(zip(shardings, types, strict=True))
    local = [type_ if sharding is None else sharding.local(type_) for sharding, type_ in pairs]
    return Layout(local, count, devices, shardings, [_serialised(*pair) for pair in pairs], [])


def lower_main(walk: Walk, main: func.FuncOp, layout: Layout, parameters: Sequence[int]) -> list[int]:
    """The results of main on each IPU; their shardings go into `layout`."""
    parameters = [mark(walk, *each) for each in zip(parameters, layout.shardings, strict=True)]
    results = walk.block(main.regions[0].blocks[0], parameters)
    if layout.num_partitions == 1:
        return results
    returned = list(list(main.regions[0].blocks[0].operations)[-1].operands)
    attributes = attributes_of(main, "res_attrs", len(results))
    for position, (value, each, source) in enumerate(zip(results, attributes, returned, strict=True)):
        sharding = walk.shardings.get(value)
        if each is not None and _SHARDING in each:
            sharding = _wanted(walk, value, each[_SHARDING])
            results[position] = place(walk, value, sharding)
        layout.result_shardings.append(_serialised(sharding, walk.array_type(source.type)))
    return results


def _serialised(sharding: Sharding | None, type_: ArrayType) -> bytes:
    """Serialise as an ``xla.OpSharding``."""
    if sharding is None or sharding.is_replicated():
        return _jax_compat.op_sharding((), (), len(type_.shape))
    return _jax_compat.op_sharding(sharding.mesh, sharding.axes, len(type_.shape), sharding.unreduced)


def _wanted(walk: Walk, value: int, attribute: ir.Attribute) -> Sharding:
    """The sharding that an ``sdy.sharding`` requires of a value; open dimensions keep theirs."""
    wanted, known = sharding_of(walk, attribute), walk.shardings.get(value)
    dimensions = map(sdy.DimensionShardingAttr, sdy.TensorShardingAttr(attribute).dimension_shardings)
    shape, axes = walk.builder.types[value].shape, wanted.axes
    if known is not None:
        shape = [n * part for n, part in zip(shape, known.parts(), strict=True)]
    if known is not None and known.mesh == wanted.mesh:
        taken = {axis for axes in wanted.axes for axis in axes}
        axes = tuple(
            wish if each.is_closed or wish or not taken.isdisjoint(old) else old
            for each, wish, old in zip(dimensions, wanted.axes, known.axes, strict=True)
        )
    each = zip(shape, axes, strict=True)
    return wanted._replace(axes=tuple(_that_divide(wanted, n, names) for n, names in each))


def _that_divide(sharding: Sharding, length: int, axes: tuple[str, ...]) -> tuple[str, ...]:
    """As many of a dimension's axes as cut it into equal parts."""
    counts = (n for n in range(len(axes), -1, -1) if length % sharding.count(axes[:n]) == 0)
    return axes[: next(counts)]


@rule("sdy.sharding_constraint")
def _lower_sharding_constraint(operation: Operation) -> list[int]:
    walk, (value,) = operation.walk, operation.inputs
    if walk.num_partitions == 1 or walk.is_manual:
        return [value]
    before = len(walk.builder.types)
    wanted = _wanted(walk, value, operation.attributes["sharding"])
    return [mark(walk, place(walk, value, wanted), wanted, before)]


@rule("sdy.manual_computation")
def _lower_manual_computation(operation: Operation) -> list[int]:
    """The body of `shard_map`, inlined. Over the axes that it leaves out, arrays stay sharded as they are."""
    walk = operation.walk
    ins, outs = (
        [
            sharding_of(walk, each)
            for each in sdy.TensorShardingPerValueAttr(operation.attributes[name]).shardings
        ]
        for name in ("in_shardings", "out_shardings")
    )
    manual = frozenset(re.findall(r'"([^"]+)"', str(operation.attributes["manual_axes"])))
    wanted = [_with_others(walk, *pair, manual) for pair in zip(operation.inputs, ins, strict=True)]
    inputs = [place(walk, *pair) for pair in zip(operation.inputs, wanted, strict=True)]
    axes = {axis for sharding in (*ins, *outs) for axis, size in sharding.mesh if size > 1}
    outer = walk.shardings, walk.manual, walk.is_manual
    walk.shardings, walk.manual = {}, walk.manual | manual  # shards are arrays like any other
    walk.is_manual = axes <= walk.manual
    try:
        inside = [each._replace(axes=_without(each.axes, manual)) for each in wanted]
        marked = [mark(walk, *pair) for pair in zip(inputs, inside, strict=True)]
        results = walk.block(operation.regions[0].blocks[0], marked)
        others = shardings_of(walk, results)
    finally:
        walk.shardings, walk.manual, walk.is_manual = outer
    outside = [_beside(*pair) for pair in zip(outs, others, strict=True)]
    return [mark(walk, *pair) for pair in zip(results, outside, strict=True)]


def _without(axes: Sequence[Sequence[str]], names: frozenset[str]) -> tuple[tuple[str, ...], ...]:
    return tuple(tuple(axis for axis in each if axis not in names) for each in axes)


def _beside(sharding: Sharding, other: Sharding | None) -> Sharding:
    """A sharding, and behind it that of each part."""
    if other is None:
        return sharding
    each = zip(sharding.axes, other.axes, strict=True)
    return sharding._replace(axes=tuple((*major, *minor) for major, minor in each))


def _with_others(walk: Walk, value: int, wanted: Sharding, manual: frozenset[str]) -> Sharding:
    """What a `shard_map` wants of a value, and how the value is sharded over the axes that it leaves out."""
    wanted = wanted._replace(axes=_without(wanted.axes, frozenset(dict(wanted.mesh)) - manual))
    known = walk.shardings.get(value)
    if known is None or known.mesh != wanted.mesh:
        return wanted
    both = _beside(wanted, known._replace(axes=_without(known.axes, manual)))
    shape = [n * part for n, part in zip(walk.builder.types[value].shape, known.parts(), strict=True)]
    fits = all(n % part == 0 for n, part in zip(shape, both.parts(), strict=True))
    return both if fits else wanted
