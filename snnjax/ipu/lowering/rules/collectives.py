"""Rules for collectives between IPUs."""

import re
from collections.abc import Sequence

import numpy as np

from snnjax._jax_compat import ir
from snnjax.ipu.lowering.operation import Operation
from snnjax.ipu.lowering.rules import elementwise, reductions, rule
from snnjax.ipu.lowering.rules.regions import kind_of
from snnjax.ipu.lowering.rules.shard_map import axes_of
from snnjax.ipu.lowering.sharding import Groups, groups_along

# The attributes of each collective that name dimensions.
_DIMENSIONS = {
    "stablehlo.all_gather": ("all_gather_dim",),
    "stablehlo.all_reduce": (),
    "stablehlo.all_to_all": ("split_dimension", "concat_dimension"),
    "stablehlo.reduce_scatter": ("scatter_dimension",),
}


def _groups(operation: Operation) -> Groups:
    """The partitions of each group, flat, with the number of groups and their size."""
    attribute = operation.attributes["replica_groups"]
    # ``#stablehlo.replica_group_mesh_axes<mesh = @mesh, axes = [#stablehlo.axis_ref<name = "d">]>``
    if mesh := re.search(r"mesh = @(\w+)", str(attribute)):
        names = re.findall(r'axis_ref<name = "([^"]+)">', str(attribute))
        return groups_along(axes_of(operation.walk, mesh[1]), names)
    array = np.array(ir.DenseIntElementsAttr(attribute))
    if array.size == 0:
        array = np.arange(operation.walk.num_partitions)[None]
    if (array < 0).any():  # padding of shorter groups
        raise operation.refuse("its groups of IPUs differ in size", "Pass axis_index_groups of one size")
    return tuple(map(int, array.ravel())), (array.shape[0], array.shape[1])


def _kind(operation: Operation) -> str:
    kind = kind_of(operation.regions[0], operation.types[0].dtype)
    if kind is None:
        raise operation.refuse(
            "IPUs combine elements with a single operation, not a function", "Use psum, pmax or pmin"
        )
    return kind


@rule(*_DIMENSIONS)
def _lower_collective(operation: Operation) -> Sequence[int]:
    """A collective of each array; those that combine elements compute in a dtype that they support."""
    groups = _groups(operation)
    if groups[1][1] == 1:
        return operation.inputs
    builder, dimensions = operation.builder, tuple(map(operation.integer, _DIMENSIONS[operation.name]))
    ints = (*groups, dimensions) if dimensions else groups

    def lowered(x: int, shape: tuple[int, ...]) -> int:
        type_, name = builder.types[x]._replace(shape=shape), operation.name.removeprefix("stablehlo.")
        if "reduce" not in name:
            return builder.one(name, (x,), type_, ints)
        native = elementwise.convert(builder, x, reductions.native(type_.dtype))
        type_of_result = type_._replace(dtype=builder.types[native].dtype)
        result = builder.one(name, (native,), type_of_result, ints, (_kind(operation),))
        return elementwise.convert(builder, result, type_.dtype)

    return [lowered(x, type_.shape) for x, type_ in zip(operation.inputs, operation.types, strict=True)]


@rule("stablehlo.collective_permute")
def _lower_collective_permute(operation: Operation) -> list[int]:
    pairs = operation.ints("source_target_pairs")
    inputs = zip(operation.inputs, operation.types, strict=True)
    return [operation.builder.one("collective_permute", (x,), type_, (pairs,)) for x, type_ in inputs]


@rule("stablehlo.partition_id")
def _lower_partition_id(operation: Operation) -> list[int]:
    builder = operation.builder
    if operation.walk.num_partitions == 1:
        return [builder.splat(0, operation.types[0])]
    return [builder.one("partition_id", (), operation.types[0])]


@rule("stablehlo.replica_id")
def _lower_replica_id(operation: Operation) -> list[int]:
    """Always 0: there is one replica."""
    return [operation.builder.splat(0, operation.types[0])]
