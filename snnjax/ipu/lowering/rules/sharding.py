"""Programs for several IPUs: the body of `shard_map` is lowered as it is.

Inside `shard_map` (``sdy.manual_computation``) arrays belong to one IPU. Outside, an array that is sharded over IPUs is
only passed on; computing with it would need a partitioner, and is refused.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from snnjax import _jax_compat
from snnjax._jax_compat import ir, sdy
from snnjax.ipu.lowering import pairs
from snnjax.ipu.lowering.donation import attributes_of
from snnjax.ipu.lowering.errors import refusal
from snnjax.ipu.lowering.operation import Operation
from snnjax.ipu.lowering.rules import elementwise, rule
from snnjax.ipu.lowering.types import ArrayType

_SHARDING = "sdy.sharding"
WAY_OUT = "Write what each IPU computes with jax.shard_map, and all_gather or psum where it needs the others"


class Sharding(NamedTuple):
    """The mesh axes that each dimension is sharded over, and those that a sum is still pending over."""

    mesh: tuple[tuple[str, int], ...]  # names and sizes of the axes
    axes: tuple[tuple[str, ...], ...]  # of each dimension, major to minor
    unreduced: frozenset[str] = frozenset()

    def parts(self) -> tuple[int, ...]:
        """The number of parts of each dimension."""
        sizes = dict(self.mesh)
        return tuple(int(np.prod([sizes[axis] for axis in axes], dtype=np.int64)) for axes in self.axes)

    def is_whole(self) -> bool:
        """Whether every IPU holds the whole array."""
        return not self.unreduced and all(part == 1 for part in self.parts())

    def local(self, type_: ArrayType) -> ArrayType:
        """The type of one IPU's shard."""
        shape = tuple(n // part for n, part in zip(type_.shape, self.parts(), strict=True))
        return ArrayType(type_.dtype, shape)


@dataclass
class Layout:
    """The parameters and results of main on each IPU."""

    parameters: list[ArrayType]
    num_partitions: int
    devices: list[int]
    shardings: list[Sharding | None]  # of the parameters
    parameter_shardings: list[bytes]
    result_shardings: list[bytes]


def axes_of(walk: Any, name: str) -> tuple[tuple[str, int], ...]:
    """Names and sizes of the axes of a mesh, whose devices must be in order."""
    mesh = sdy.MeshAttr(walk.meshes[name])
    if list(mesh.device_ids):
        raise refusal("shard_map", (), "the devices of the mesh are not in order", "Sort them by id", "")
    axes = [sdy.MeshAxisAttr(axis) for axis in mesh.axes]
    return tuple((axis.name, axis.size) for axis in axes)


def sharding_of(walk: Any, attribute: Any) -> Sharding:
    """Parse an ``sdy.sharding``."""
    sharding = sdy.TensorShardingAttr(attribute)
    sizes = axes_of(walk, ir.FlatSymbolRefAttr(sharding.mesh_or_ref).value)

    def names(axes: Any) -> tuple[str, ...]:
        refs = [sdy.AxisRefAttr(axis) for axis in axes]
        if any(ref.sub_axis_info is not None for ref in refs):
            raise refusal("shard_map", (), f"{attribute} splits an axis of the mesh", WAY_OUT, "")
        return tuple(ref.name for ref in refs)

    axes = (names(sdy.DimensionShardingAttr(each).axes) for each in sharding.dimension_shardings)
    return Sharding(sizes, tuple(axes), frozenset(names(sharding.unreduced_axes)))


def _first_use(walk: Any, argument: Any) -> Sharding | None:
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


def localise(walk: Any, main: Any, options: Any) -> Layout:
    """The types of main on each IPU."""
    block = main.regions[0].blocks[0]
    types = [walk.array_type(argument.type) for argument in block.arguments]
    if options.num_replicas != 1:
        raise refusal(
            "compile",
            (),
            f"`num_replicas` must be 1, got {options.num_replicas}",
            "Compile for partitions, as jax.jit and jax.shard_map do",
            "",
        )
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


def lower_main(walk: Any, main: Any, layout: Layout, parameters: Sequence[int]) -> list[int]:
    """The results of main on each IPU; their shardings go into `layout`."""
    parameters = [_mark(walk, *each) for each in zip(parameters, layout.shardings, strict=True)]
    results = walk.block(main.regions[0].blocks[0], parameters)
    if layout.num_partitions == 1:
        return results
    returned = list(list(main.regions[0].blocks[0].operations)[-1].operands)
    attributes = attributes_of(main, "res_attrs", len(results))
    for position, (value, each, source) in enumerate(zip(results, attributes, returned, strict=True)):
        sharding = walk.shardings.get(value)
        if each is not None and _SHARDING in each:
            wanted = sharding_of(walk, each[_SHARDING])
            results[position] = _as_wanted(walk, value, wanted)
            sharding = wanted
        layout.result_shardings.append(_serialised(sharding, walk.array_type(source.type)))
    return results


def _serialised(sharding: Sharding | None, type_: ArrayType) -> bytes:
    """As an ``xla.OpSharding``."""
    if sharding is None or sharding.is_whole():
        return _jax_compat.op_sharding((), (), len(type_.shape))
    return _jax_compat.op_sharding(sharding.mesh, sharding.axes, len(type_.shape), sharding.unreduced)


def _mark(walk: Any, value: int, sharding: Sharding | None) -> int:
    """The value, marked as sharded; a new value if it already has a different sharding."""
    wanted = None if sharding is None or sharding.is_whole() else sharding
    known = walk.shardings.get(value)
    if known == wanted and (wanted is None or value not in walk.builder.constants):
        return value
    if value in walk.builder.parts:
        value = pairs.pair(walk.builder, *walk.builder.parts[value])
    elif value in walk.builder.definitions or known is not None or value in walk.builder.constants:
        value = walk.builder.one("identity", (value,), walk.builder.types[value], ((len(walk.shardings),),))
    if wanted is not None:
        walk.shardings[value] = wanted
    return value


def _as_wanted(walk: Any, value: int, wanted: Sharding) -> int:
    """The value with the sharding `wanted`: each IPU slices its shard from the whole array."""
    known = walk.shardings.get(value)
    if known is None and wanted.is_whole():
        return value
    if known is None and not wanted.unreduced:
        return _own_part(walk, value, wanted)
    if known is not None and known.parts() == wanted.parts() and known[1:] == wanted[1:]:
        return value
    raise walk.builder.refuse((value,), "an array would have to move from IPU to IPU", WAY_OUT)


def _own_part(walk: Any, value: int, sharding: Sharding) -> int:
    """This IPU's shard, from its partition id and the mesh."""
    builder = walk.builder
    scalar = ArrayType("u32", ())
    number = builder.one("partition_id", (), scalar)
    place: dict[str, int] = {}
    stride = 1
    for name, size in reversed(sharding.mesh):
        divided = elementwise.binary(builder, "divide", number, builder.splat(stride, scalar))
        place[name] = elementwise.binary(builder, "remainder", divided, builder.splat(size, scalar))
        stride *= size
    local = sharding.local(builder.types[value])
    sizes = dict(sharding.mesh)
    starts = []
    for axes, length in zip(sharding.axes, local.shape, strict=True):
        start = builder.splat(0, scalar)
        for axis in axes:
            scaled = elementwise.binary(builder, "multiply", start, builder.splat(sizes[axis], scalar))
            start = elementwise.binary(builder, "add", scaled, place[axis])
        starts.append(elementwise.binary(builder, "multiply", start, builder.splat(length, scalar)))

    def own(part: int) -> int:
        type_ = sharding.local(builder.types[part])
        return builder.one("dynamic_slice", (part, *starts), type_, (type_.shape,))

    return pairs.map_parts(builder, own, value)


def check_spread(walk: Any, operation: Operation, values: Iterable[int]) -> None:
    """Refuse to compute with arrays that are sharded over IPUs outside `shard_map`."""
    if walk.is_manual or operation.name in _HANDS_ON:
        return
    if any(value in walk.shardings for value in values):
        raise operation.refuse("an operand is sharded over several IPUs outside shard_map", WAY_OUT)


_HANDS_ON = frozenset(
    {"func.call", "sdy.manual_computation", "sdy.sharding_constraint", "stablehlo.optimization_barrier"}
)


@rule("sdy.manual_computation")
def _lower_manual_computation(operation: Operation) -> list[int]:
    """The body of `shard_map`, inlined."""
    walk = operation.walk
    ins, outs = (
        [
            sharding_of(walk, each)
            for each in sdy.TensorShardingPerValueAttr(operation.attributes[name]).shardings
        ]
        for name in ("in_shardings", "out_shardings")
    )
    manual = set(re.findall(r'"([^"]+)"', str(operation.attributes["manual_axes"])))
    meshes = {axis for sharding in (*ins, *outs) for axis, size in sharding.mesh if size > 1}
    if walk.is_manual or not meshes <= manual:
        raise operation.refuse("shard_map leaves axes of the mesh to a partitioner", "Pass all axis_names")
    inputs = [_as_wanted(walk, *pair) for pair in zip(operation.inputs, ins, strict=True)]
    walk.is_manual = True
    try:
        results = walk.block(operation.regions[0].blocks[0], inputs)
    finally:
        walk.is_manual = False
    return [_mark(walk, *pair) for pair in zip(results, outs, strict=True)]
