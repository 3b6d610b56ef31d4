"""Rules for complex numbers in terms of the real rules: part by part, or by a formula."""

from collections.abc import Sequence

import numpy as np

from snnjax.ipu.lowering import pairs
from snnjax.ipu.lowering.operation import Operation, from_text
from snnjax.ipu.lowering.rules import RULES, Rule, elementwise
from snnjax.ipu.lowering.rules.complex_formulas import FORMULAS, Parts, Real
from snnjax.ipu.lowering.rules.regions import is_overwriting, kind_of
from snnjax.ipu.lowering.types import COMPLEX


def _by_formula(operation: Operation) -> list[int]:
    builder = operation.builder

    def operand(value: int) -> Real | Parts:
        real, *imaginary = (Real(builder, part) for part in builder.parts.get(value, (value,)))
        return (real, imaginary[0]) if imaginary else real

    name = operation.name.rpartition(".")[2]
    result = FORMULAS[name](*map(operand, operation.inputs))
    return [
        pairs.pair(builder, result[0].value, result[1].value) if isinstance(result, tuple) else result.value
    ]


def _part_by_part(operation: Operation) -> list[int]:
    """The real rule on the real and on the imaginary parts; operands that are not complex go to both."""
    builder = operation.builder
    types = [pairs.part_type(type_) if type_.dtype == COMPLEX else type_ for type_ in operation.types]
    parts = zip(*(builder.parts.get(value, (value, value)) for value in operation.inputs), strict=True)
    halves = [operation.walk.lower(operation.on(each, types)) for each in parts]
    return [
        pairs.pair(builder, real, imaginary) if type_.dtype == COMPLEX else real
        for type_, real, imaginary in zip(operation.types, *halves, strict=True)
    ]


def _bilinear(operation: Operation) -> list[int]:
    """Four real products: three would lose accuracy if one part is much smaller than the other."""
    builder = operation.builder
    type_ = pairs.part_type(operation.types[0])
    x, y = (
        [elementwise.convert(builder, part, "f32") for part in builder.parts.get(value, (value,))]
        for value in operation.inputs
    )

    def product(a: int, b: int) -> Real:
        return Real(builder, operation.walk.lower(operation.on((a, b), (type_,)))[0])

    if len(x) == 1 or len(y) == 1:
        real, imaginary = (product(a, b) for a, b in zip(x * (2 // len(x)), y * (2 // len(y)), strict=True))
    else:
        real = product(x[0], y[0]) - product(x[1], y[1])
        imaginary = product(x[0], y[1]) + product(x[1], y[0])
    return [pairs.pair(builder, real.value, imaginary.value)]


def _summed(operation: Operation) -> Sequence[int]:
    """Sums and what overwrites part by part; all else by its function of complex numbers."""
    real_kind = len(operation.types) == 1 and (
        kind_of(operation.regions[0], COMPLEX) == "add" or is_overwriting(operation.regions[0])
    )
    return _part_by_part(operation) if real_kind else RULES[operation.name](operation)


def _only_sums(operation: Operation) -> list[int]:
    """What IPUs combine: sums, part by part."""
    if kind_of(operation.regions[0], COMPLEX) != "add":
        raise operation.refuse("complex numbers can only be combined by sums", "Combine their parts")
    return _part_by_part(operation)


def _compare(operation: Operation) -> list[int]:
    """Equal if both parts are equal."""
    direction = operation.enumeration("comparison_direction")
    if direction not in ("EQ", "NE"):
        raise operation.refuse("complex numbers have no order", "Compare their parts")
    builder = operation.builder
    parts = zip(*(builder.parts[value] for value in operation.inputs), strict=True)
    real, imaginary = (elementwise.compare(builder, direction, x, y) for x, y in parts)
    return [elementwise.binary(builder, "and" if direction == "EQ" else "or", real, imaginary)]


def _convert(operation: Operation) -> list[int]:
    builder, (x,), (type_,) = operation.builder, operation.inputs, operation.types
    if type_.dtype != COMPLEX:
        return [elementwise.convert(builder, builder.parts[x][0], type_.dtype)]
    if x in builder.parts:
        return [x]
    real = elementwise.convert(builder, x, "f32")
    return [pairs.pair(builder, real, builder.splat(0, builder.types[real]))]


def _iota(operation: Operation) -> list[int]:
    builder = operation.builder
    (real,) = operation.walk.lower(operation.on((), [pairs.part_type(operation.types[0])]))
    return [pairs.pair(builder, real, builder.splat(0, builder.types[real]))]


def _constant(operation: Operation) -> list[int]:
    (type_,) = operation.types
    array = from_text(str(operation.source.get_asm()), type_)
    return [pairs.pair(operation.builder, *map(operation.builder.constant, (np.real(array), np.imag(array))))]


def _composite(operation: Operation) -> Sequence[int]:
    if operation.text("name") == "chlo.tan":
        return _by_formula(operation.on(operation.inputs, operation.types))
    return RULES[operation.name](operation)


def _refuse(operation: Operation) -> Sequence[int]:
    raise operation.refuse("the IPU does not do this with complex numbers", "Do it with their parts")


_RULES: dict[str, Rule] = {
    **{f"stablehlo.{name}": _by_formula for name in FORMULAS},
    **{
        f"stablehlo.{name}": _part_by_part
        for name in (
            *("add", "subtract", "negate", "select", "broadcast_in_dim", "reshape", "transpose", "slice"),
            *("reverse", "concatenate", "pad", "gather", "dynamic_slice", "dynamic_update_slice"),
            *("all_gather", "all_to_all", "collective_permute"),
        )
    },
    **dict.fromkeys(("stablehlo.dot_general", "stablehlo.convolution"), _bilinear),
    **{f"stablehlo.{name}": _summed for name in ("reduce", "reduce_window", "scatter")},
    **{f"stablehlo.{name}": _only_sums for name in ("all_reduce", "reduce_scatter")},
    "stablehlo.compare": _compare,
    "stablehlo.convert": _convert,
    "stablehlo.iota": _iota,
    "stablehlo.constant": _constant,
    "stablehlo.composite": _composite,
}
# They pass values on unchanged, whatever their type, or in another order.
_HANDS_ON = frozenset(
    {
        *("func.call", "stablehlo.while", "stablehlo.case", "stablehlo.if", "stablehlo.optimization_barrier"),
        "stablehlo.sort",
        *("sdy.manual_computation", "sdy.sharding_constraint", "sdy.sharding_group"),
    }
)


def is_complex(operation: Operation) -> bool:
    """Whether an operation needs a complex rule."""
    types = (*operation.types, *operation.input_types())
    return operation.name not in _HANDS_ON and any(type_.dtype == COMPLEX for type_ in types)


def rule_of(operation: Operation) -> Rule:
    """The rule of an operation on complex numbers."""
    return _RULES.get(operation.name, _refuse)


# Operations without a real meaning have a complex rule only.
for _name in ("complex", "real", "imag"):
    RULES[f"stablehlo.{_name}"] = _by_formula
