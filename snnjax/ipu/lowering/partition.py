"""Operations on sharded arrays outside `shard_map`: each IPU computes its part of the result.

Shardy's rule (``sdy.sharding_rule``) relates the dimensions of an operation through factors. A factor is sharded as in
an operand, the first operand taking precedence; the other operands are resharded to match, and if a factor is summed
over, the results are summed over the IPUs. The batch of a training step thus stays where it is, and so do columns or
rows of weights. Operations without a rule are gathered and computed by every IPU.
"""

from collections.abc import Sequence

from snnjax import _jax_compat
from snnjax._jax_compat import ShardingRule, ir, stablehlo
from snnjax.ipu.lowering import pairs
from snnjax.ipu.lowering.operation import Operation, Walk
from snnjax.ipu.lowering.rules import reductions
from snnjax.ipu.lowering.rules.calls import POINTWISE, is_decomposed
from snnjax.ipu.lowering.rules.regions import kind_of
from snnjax.ipu.lowering.rules.resharding import combined, mark, place
from snnjax.ipu.lowering.sharding import Sharding, groups_along
from snnjax.ipu.lowering.types import ArrayType

# These are inlined, or have rules that handle shards.
_INLINED = frozenset(
    {
        *("func.call", "sdy.manual_computation", "sdy.sharding_constraint", "sdy.sharding_group"),
        *("stablehlo.while", "stablehlo.case", "stablehlo.if", "stablehlo.optimization_barrier"),
    }
)
_RULE = "sdy.sharding_rule"
# Attributes with a size for each dimension of the operand.
_SIZES = ("limit_indices", "slice_sizes")


class _Local(Operation):
    """An operation on the shards of its first operand, whose attributes count elements of the whole."""

    __slots__ = ("whole",)

    def on(self, inputs: Sequence[int], types: Sequence[ArrayType]) -> "_Local":
        local = _Local(self.walk, self.name, list(inputs), list(types), self.source)
        local.whole = self.whole
        return local

    def ints(self, name: str, otherwise: Sequence[int] = ()) -> tuple[int, ...]:
        numbers = super().ints(name, otherwise)
        if name not in _SIZES:
            return numbers
        local = self.builder.types[self.inputs[0]].shape
        sizes = zip(numbers, local, self.whole, strict=True)
        return tuple(length if n == old else n for n, length, old in sizes)


def add_rules(module: ir.Module) -> None:
    """Let Shardy annotate each operation with its sharding rule."""
    _jax_compat.run_passes(module, "builtin.module(func.func(sdy-populate-op-sharding-rules))")


def lower(walk: Walk, operation: Operation) -> Sequence[int]:
    """The results of an operation on values that may be sharded, on each IPU."""
    shardings = [walk.shardings.get(value) for value in operation.inputs]
    if not any(shardings) or operation.name in _INLINED or is_decomposed(operation):
        return walk.lower(operation)
    rule = _rule_of(operation)
    split = {} if rule is None else _split(operation, rule, shardings)
    before = len(walk.builder.types)
    if rule is None or not split:
        gathered = [place(walk, value, None) for value in operation.inputs]
        return walk.lower(operation.on(gathered, operation.types))
    mesh = next(each.mesh for each in shardings if each is not None)

    def sharding(dimensions: Sequence[Sequence[int]]) -> Sharding:
        return Sharding(mesh, tuple(split.get(each[0], ()) if each else () for each in dimensions))

    inputs = [
        place(walk, value, sharding(dims))
        for value, dims in zip(operation.inputs, rule.operands, strict=True)
    ]
    wanted = [sharding(dims) for dims in rule.results]
    types = [each.local(type_) for each, type_ in zip(wanted, operation.types, strict=True)]
    local = _Local(walk, operation.name, inputs, types, operation.source)
    local.whole = walk.array_type(operation.source.operands[0].type).shape
    results = walk.lower(local)
    summed = [axis for factor in sorted(rule.reduced) for axis in split.get(factor, ())]
    if summed:
        kind, groups = _kind(operation), groups_along(mesh, summed)
        results = [
            pairs.map_parts(walk.builder, lambda part: combined(walk.builder, part, kind, groups), each)
            for each in results
        ]
    return [mark(walk, *each, before) for each in zip(results, wanted, strict=True)]


def _rule_of(operation: Operation) -> ShardingRule | None:
    """Shardy's rule, or None for a grouped convolution, whose groups count channels of the whole array."""
    if operation.name == "stablehlo.composite" and operation.text("name") in POINTWISE:
        (shape,) = {type_.shape for type_ in operation.types}
        dimensions = tuple((d,) for d in range(len(shape)))
        return ShardingRule((dimensions,), (dimensions,), shape, frozenset(), frozenset())
    groups = [operation.integer(f"{which}_group_count", 1) for which in ("feature", "batch")]
    if _RULE not in operation.attributes or groups != [1, 1]:
        return None
    return _jax_compat.sharding_rule(operation.attributes[_RULE])


def _kind(operation: Operation) -> str:
    """The reduction that combines the results of the parts of a summed factor."""
    regions = operation.regions
    return (kind_of(regions[0], operation.types[0].dtype) or "add") if len(regions) else "add"


def _indexed(operation: Operation, rule: ShardingRule) -> frozenset[int]:
    """The factors along which an update may start anywhere, which cannot be sharded."""
    shapes = [operation.walk.array_type(each.type).shape for each in operation.source.operands]
    if operation.name == "stablehlo.dynamic_update_slice":
        starts = {d for d, (n, update) in enumerate(zip(*shapes[:2], strict=True)) if n != update}
    elif operation.name == "stablehlo.scatter":
        numbers = stablehlo.ScatterDimensionNumbers(operation.attributes["scatter_dimension_numbers"])
        single = {*numbers.inserted_window_dims, *numbers.input_batching_dims}
        free = [d for d in range(len(shapes[0])) if d not in single]
        windows = zip(free, numbers.update_window_dims, strict=True)
        starts = {d for d, window in windows if shapes[0][d] != shapes[-1][window]}
        starts.update(numbers.scattered_dims_to_operand_dims)
    else:
        return frozenset()
    return frozenset(factor for d in starts for factor in rule.operands[0][d])


def _may_be_summed(operation: Operation) -> bool:
    """Whether the parts of a summed factor can be computed separately and then combined."""
    if operation.name in ("stablehlo.dot_general", "stablehlo.convolution"):
        return True
    if operation.name != "stablehlo.reduce" or len(operation.types) != 1:
        return False
    kind = kind_of(operation.regions[0], operation.types[0].dtype)
    return kind is not None and reductions.is_zero(
        operation.builder, operation.inputs[1], kind, operation.types[0].dtype
    )


def _split(
    operation: Operation, rule: ShardingRule, shardings: Sequence[Sharding | None]
) -> dict[int, tuple[str, ...]]:
    """The mesh axes of each factor that stays or becomes sharded."""
    unsplit = rule.whole | _indexed(operation, rule)
    if not _may_be_summed(operation):
        unsplit |= rule.reduced
    minor = {factor for dims in (*rule.operands, *rule.results) for each in dims for factor in each[1:]}
    mesh = next(each.mesh for each in shardings if each is not None)
    split: dict[int, tuple[str, ...]] = {}
    wishes = [
        (each[0], axes)
        for sharding, dims in zip(shardings, rule.operands, strict=True)
        if sharding is not None and sharding.mesh == mesh
        for axes, each in zip(sharding.axes, dims, strict=True)
        if axes and each and each[0] not in unsplit | minor
    ]
    for factor, axes in sorted(wishes, key=lambda wish: wish[0] in rule.reduced):
        taken = {axis for each in split.values() for axis in each}
        count = Sharding(mesh, ()).count(axes)
        if factor not in split and taken.isdisjoint(axes) and rule.sizes[factor] % count == 0:
            split[factor] = axes
    return split
