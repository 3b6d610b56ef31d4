"""The only module that uses JAX's private API: adapt to new versions of JAX here.

The platform ``ipu`` is registered by `snnjax_jax_plugin`, which does not import snnjax.
``tests/ipu/device/test_jax_private.py`` checks that all of it exists.
"""

import re
import types
import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, cast

import numpy as np
from jax import dtypes
from jax._src.core import DropVar as DropVar  # an unused result of a primitive
from jax._src.core import ShapedArray as ShapedArray  # results of a primitive carry their shard_map axes
from jax._src.interpreters import mlir as _mlir
from jax._src.util import cache as cache  # also keyed by JAX's trace context (x64, for instance)
from jax.core import Tracer as Tracer
from jax.extend.core import JaxprEqn as JaxprEqn
from jax.extend.core import Primitive as Primitive
from jax.extend.mlir import ir as ir
from jax.extend.mlir.dialects import func as func
from jax.extend.mlir.dialects import sdy as sdy
from jax.extend.mlir.dialects import stablehlo as stablehlo
from jax.extend.random import threefry_2x32 as threefry_2x32
from jax.interpreters import ad as ad
from jax.interpreters import batching as batching
from jax.interpreters import mlir as mlir
from jax.interpreters.partial_eval import dce_rules
from jax.sharding import AbstractMesh, AxisType, NamedSharding, PartitionSpec
from jaxlib import version as _jaxlib_version
from jaxlib import xla_client
from jaxlib.mlir.passmanager import PassManager

CompileOptions = Any  # an ``xla_client.CompileOptions``, for which jaxlib has no types
Value = Any  # an ``ir.Value``, which is generic in some versions only
LoweringContext = mlir.LoweringRuleContext
Lowered = Sequence[Value]  # what a lowering rule returns

# Versions of jaxlib whose CPU back end computes wrong numbers, and the report. `pyproject.toml` excludes them, but an
# environment may have been made otherwise.
WRONG_NUMBERS = {"0.10.2": "jax-ml/jax 39103"}


def warn_of_wrong_numbers(version: str) -> None:
    """Warn if this version of jaxlib computes wrong numbers."""
    if version in WRONG_NUMBERS:
        warnings.warn(
            f"jaxlib {version} computes wrong numbers on CPUs ({WRONG_NUMBERS[version]}): "
            f"install another version, such as with pip install 'jax!={version}'.",
            RuntimeWarning,
            stacklevel=2,
        )


# Once a process, when snnjax is imported.
warn_of_wrong_numbers(_jaxlib_version.__version__)


def set_dce_rule(primitive: Primitive, rule: Callable[[Sequence[bool], Any], tuple[list[bool], Any]]) -> None:
    """Set the dead-code rule of a primitive: `rule` takes which results are used, and the equation.

    Since 0.12.0.1, JAX passes the live inputs between the two, which only matters for mutable arrays.
    """
    dce_rules[primitive] = lambda used, *arguments: rule(used, arguments[-1])


def make_ir_context() -> ir.Context:
    """An MLIR context with all dialects of JAX."""
    return _mlir.make_ir_context()


def lower_with_few_dialects() -> None:
    """Let JAX lower each program with the dialects that it may use, for tests: loading all takes longer than that.

    A program that uses another is refused by MLIR, which names it; what MLIR reads loads its dialects by itself. Only
    in versions whose contexts are known, where ``test_jax_private.py`` holds that it has an effect; others keep all.
    """
    if not _jaxlib_version.__version__.startswith("0.10."):
        return

    class Context(_mlir.JaxIrContext):
        def load_all_available_dialects(self) -> None:
            self.get_dialect_descriptor("func")

    # JAX's own function, with this class: other callers of the class keep all dialects.
    names = {**vars(_mlir), "JaxIrContext": Context}
    _mlir.make_ir_context = types.FunctionType(_mlir.make_ir_context.__code__, names)


def compile_options(serialised: bytes) -> CompileOptions:
    """Parse an ``xla.CompileOptionsProto``."""
    return xla_client.CompileOptions.ParseFromString(serialised)


def default_compile_options() -> bytes:
    """The ``xla.CompileOptionsProto`` of a program for one device."""
    return xla_client.CompileOptions().SerializeAsString()


def canonical(value: object) -> np.ndarray:
    """A value as an array of the dtype that JAX has for it."""
    array = np.asarray(value)
    return np.ascontiguousarray(array, dtypes.canonicalize_dtype(array.dtype)).reshape(array.shape)


def lower_function(function: Callable[..., Any], context: LoweringContext, *operands: Value) -> Lowered:
    """Lower a `jax.numpy` function that returns a tuple to the results of a lowering rule.

    It does not see over which axes of a `shard_map` its operands vary, so its loops need not begin with arrays that do.
    """
    avals = cast(Sequence[ShapedArray], context.avals_in)
    types = [ShapedArray(aval.shape, aval.dtype) for aval in avals]
    return _mlir.lower_fun(function, multiple_results=True)(context.replace(avals_in=types), *operands)


def device_ids(compile_options: CompileOptions) -> list[int]:
    """The devices of a program, by partition; empty if the options do not specify them."""
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
    """An ``xla.OpSharding`` from the mesh axes that each dimension is sharded over; replicated without a mesh.

    Sums over `unreduced` axes are still pending.
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


def sharding_rule(attribute: ir.Attribute) -> ShardingRule:
    """An ``sdy.op_sharding_rule``, read."""
    rule = sdy.OpShardingRuleAttr(attribute)

    def factors(mappings: Iterable[ir.Attribute]) -> tuple[tuple[tuple[int, ...], ...], ...]:
        tensors = (sdy.TensorMappingAttr(each).dim_mappings for each in mappings)
        return tuple(tuple(tuple(sdy.DimMappingAttr(dim).factor_indices) for dim in dims) for dims in tensors)

    return ShardingRule(
        factors(rule.operand_mappings),
        factors(rule.result_mappings),
        tuple(rule.factor_sizes),
        frozenset(rule.reduction_factors),
        frozenset((*rule.need_replication_factors, *rule.permutation_factors)),
    )


def run_passes(module: ir.Module, pipeline: str) -> None:
    """Run passes of MLIR over a module, in its context."""
    with module.context:
        PassManager.parse(pipeline).run(module.operation)
