"""The only module that uses unstable parts of JAX: adapt to a new version of JAX here.

What makes the platform ``ipu`` known stands in `snnjax_jax_plugin`, for which nothing of snnjax is imported.
``tests/ipu/device/test_jax_private.py`` checks that all of it exists.
"""

import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from jax._src import effects
from jax._src.core import DropVar as DropVar  # a result of a primitive that nobody uses
from jax._src.core import ShapedArray as ShapedArray  # results of a primitive carry their axes of shard_map
from jax._src.interpreters import mlir as _mlir
from jax._src.util import cache as cache  # keyed by what jax traces under, too (x64 for instance)
from jax.core import Tracer as Tracer
from jax.extend.core import Primitive as Primitive
from jax.extend.mlir import ir as ir
from jax.extend.mlir.dialects import sdy as sdy
from jax.extend.mlir.dialects import stablehlo as stablehlo
from jax.interpreters import ad as ad
from jax.interpreters import batching as batching
from jax.interpreters import mlir as mlir
from jax.interpreters.partial_eval import dce_rules
from jax.sharding import AbstractMesh, AxisType, NamedSharding, PartitionSpec
from jaxlib import xla_client
from jaxlib.mlir.passmanager import PassManager


def set_dce_rule(primitive: Primitive, rule: Callable[[Sequence[bool], Any], tuple[list[bool], Any]]) -> None:
    """Set the dead-code rule of a primitive: `rule` takes which results are used, and the equation.

    From 0.12.0.1 on, JAX says between the two which inputs are live, which matters for mutable arrays alone.
    """
    dce_rules[primitive] = lambda used, *arguments: rule(used, arguments[-1])


def make_ir_context() -> Any:
    """A context of MLIR that knows all dialects of JAX."""
    return _mlir.make_ir_context()


def compile_options(serialised: bytes) -> Any:
    """An ``xla.CompileOptionsProto``, read."""
    return xla_client.CompileOptions.ParseFromString(serialised)


def default_compile_options() -> bytes:
    """Those of a program for one device, as an ``xla.CompileOptionsProto``."""
    return xla_client.CompileOptions().SerializeAsString()


def is_ordered(effect: Any) -> bool:
    """Whether what has this effect happens in the order of the program, over several programs."""
    return effect is not None and effects.ordered_effects.contains(effect)


def lower_function(function: Callable[..., Any], context: Any) -> Any:
    """A function of no arguments in the words of `jax.numpy`, as the results of a rule."""
    return _mlir.lower_fun(function, multiple_results=True)(context)


def device_ids(compile_options: Any) -> list[int]:
    """The devices of a program, by partition; empty where the options do not say."""
    assignment = compile_options.device_assignment
    if assignment is None:
        return []
    # ``DeviceAssignment{replica_count=1, computation_count=2, Computation0{0} Computation1{1}}``
    return [int(device) for device in re.findall(r"Computation\d+\{(\d+)\}", repr(assignment))]


def op_sharding(
    mesh: Sequence[tuple[str, int]],
    axes: Sequence[tuple[str, ...]],
    rank: int,
    unreduced: frozenset[str] = frozenset(),
) -> bytes:
    """An ``xla.OpSharding``: the axes of the mesh over which each dimension is spread; of no mesh, everywhere.

    Over `unreduced` axes the sum is still to be taken.
    """
    if not mesh:
        return xla_client.HloSharding.replicate().to_proto().SerializeToString()
    names, sizes = zip(*mesh, strict=True)
    abstract = AbstractMesh(sizes, names, axis_types=(AxisType.Explicit,) * len(names))
    spec = PartitionSpec(*(each or None for each in axes), unreduced=unreduced)
    sharding = NamedSharding(abstract, spec)
    return sharding._to_xla_hlo_sharding(rank).to_proto().SerializeToString()


class ShardingRule(NamedTuple):
    """An ``sdy.op_sharding_rule``: the factors of each dimension of operands and results, major to minor."""

    operands: tuple[tuple[tuple[int, ...], ...], ...]
    results: tuple[tuple[tuple[int, ...], ...], ...]
    sizes: tuple[int, ...]  # of the factors
    reduced: frozenset[int]  # factors that the operation combines elements along
    whole: frozenset[int]  # factors that it cannot compute in parts


def sharding_rule(attribute: Any) -> ShardingRule:
    """An ``sdy.op_sharding_rule``, read."""
    rule = sdy.OpShardingRuleAttr(attribute)

    def factors(mappings: Any) -> tuple[tuple[tuple[int, ...], ...], ...]:
        tensors = (sdy.TensorMappingAttr(each).dim_mappings for each in mappings)
        return tuple(tuple(tuple(sdy.DimMappingAttr(dim).factor_indices) for dim in dims) for dims in tensors)

    return ShardingRule(
        factors(rule.operand_mappings),
        factors(rule.result_mappings),
        tuple(rule.factor_sizes),
        frozenset(rule.reduction_factors),
        frozenset((*rule.need_replication_factors, *rule.permutation_factors)),
    )


def run_passes(module: Any, pipeline: str) -> None:
    """Run passes of MLIR over a module, in its context."""
    with module.context:
        PassManager.parse(pipeline).run(module.operation)
