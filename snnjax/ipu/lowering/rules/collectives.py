"""Rules for collectives between IPUs."""

import re
from collections.abc import Sequence

import numpy as np

from snnjax._jax_compat import ir
from snnjax.ipu.lowering.operation import Operation
from snnjax.ipu.lowering.rules import elementwise, reductions, rule
from snnjax.ipu.lowering.rules.regions import kind_of
from snnjax.ipu.lowering.rules.sharding import axes_of
from snnjax.ipu.lowering.shards import Groups, groups_along
from snnjax.ipu.lowering.types import ArrayType


def _groups(operation: Operation) -> Groups:
    """The partitions of each group, flat, with the number of groups and their size."""
    attribute = operation.attributes["replica_groups"]
    along = _along_axes(operation, str(attribute))
    if along is not None:
        return along
    array = np.array(ir.DenseIntElementsAttr(attribute))
    if array.size == 0:
        array = np.arange(operation.walk.num_partitions)[None]
    if (array < 0).any():  # padding of shorter groups
        raise operation.refuse("its groups of IPUs differ in size", "Pass axis_index_groups of one size")
    return tuple(map(int, array.ravel())), (array.shape[0], array.shape[1])


def _along_axes(operation: Operation, text: str) -> Groups | None:
    """The groups in ``#stablehlo.replica_group_mesh_axes<mesh = @mesh, axes = [#stablehlo.axis_ref<name = "d">]>``."""
    mesh = re.search(r"mesh = @(\w+)", text)
    if mesh is None:
        return None
    return groups_along(axes_of(operation.walk, mesh[1]), re.findall(r'axis_ref<name = "([^"]+)">', text))


def _are_alone(groups: Groups) -> bool:
    return groups[1][1] == 1


def _kind(operation: Operation) -> str:
    kind = kind_of(operation.regions[0], operation.types[0].dtype)
    if kind is None:
        raise operation.refuse(
            "IPUs combine elements with a single operation, not a function", "Use psum, pmax or pmin"
        )
    return kind


def _computed(operation: Operation, x: int, op: str, type_: ArrayType, ints: Sequence[Sequence[int]]) -> int:
    """A collective that computes, in a dtype that it supports."""
    builder, dtype = operation.builder, reductions.native(type_.dtype)
    wide = elementwise.convert(builder, x, dtype)
    result = builder.one(op, (wide,), type_._replace(dtype=dtype), ints, (_kind(operation),))
    return elementwise.convert(builder, result, type_.dtype)


@rule("stablehlo.all_reduce")
def _lower_all_reduce(operation: Operation) -> list[int]:
    groups = _groups(operation)
    if _are_alone(groups):
        return operation.inputs
    pairs = zip(operation.inputs, operation.types, strict=True)
    return [_computed(operation, x, "all_reduce", type_, groups) for x, type_ in pairs]


@rule("stablehlo.reduce_scatter")
def _lower_reduce_scatter(operation: Operation) -> list[int]:
    (x,), (type_,), groups = operation.inputs, operation.types, _groups(operation)
    if _are_alone(groups):
        return [x]
    return [
        _computed(operation, x, "reduce_scatter", type_, (*groups, (operation.integer("scatter_dimension"),)))
    ]


@rule("stablehlo.all_gather")
def _lower_all_gather(operation: Operation) -> list[int]:
    groups = _groups(operation)
    if _are_alone(groups):
        return operation.inputs
    ints = (*groups, (operation.integer("all_gather_dim"),))
    pairs = zip(operation.inputs, operation.types, strict=True)
    return [operation.builder.one("all_gather", (x,), type_, ints) for x, type_ in pairs]


@rule("stablehlo.all_to_all")
def _lower_all_to_all(operation: Operation) -> list[int]:
    groups = _groups(operation)
    if _are_alone(groups):
        return operation.inputs
    ints = (*groups, (operation.integer("split_dimension"), operation.integer("concat_dimension")))
    pairs = zip(operation.inputs, operation.types, strict=True)
    return [operation.builder.one("all_to_all", (x,), type_, ints) for x, type_ in pairs]


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
