"""Rules of complex numbers, by the real rules: part by part, or by the formula of the operation.

Sources of what keeps its accuracy at either end of the range: W. Kahan, "Branch cuts for complex elementary functions",
1987 (square root, logarithm, tanh); R. L. Smith, "Algorithm 116: Complex division", 1962 (doi:10.1145/368637.368661).
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from snnjax.ipu.lowering import pairs, views
from snnjax.ipu.lowering.builder import Builder
from snnjax.ipu.lowering.operation import Operation, complex_array
from snnjax.ipu.lowering.rules import RULES, Rule, elementwise
from snnjax.ipu.lowering.rules.regions import kind_of
from snnjax.ipu.lowering.types import COMPLEX, ArrayType

Parts = tuple["Real", "Real"]
# tanh is 1 to the last bit of float32 beyond it.
_TANH_IS_ONE = 15.0
# In units of the real part's own axis: below it, log(1 + z) takes the real logarithm that keeps small numbers.
_NEAR_ONE = 0.5


class Real:
    """A real value in a formula."""

    def __init__(self, builder: Builder, value: int) -> None:
        self.builder, self.value = builder, value

    def of(self, name: str) -> "Real":
        """An elementwise operation of it alone."""
        return Real(self.builder, elementwise.unary(self.builder, name, self.value))

    def with_(self, name: str, other: "Real | float") -> "Real":
        """An elementwise operation of it and another."""
        return Real(self.builder, elementwise.binary(self.builder, name, self.value, self.like(other).value))

    def like(self, other: "Real | float") -> "Real":
        """A number as a value of the same type."""
        if isinstance(other, Real):
            return other
        return Real(self.builder, self.builder.splat(other, self.builder.types[self.value]))

    def where(self, direction: str, limit: float, x: "Real | float", y: "Real | float") -> "Real":
        """`x` where this compares so with `limit`, else `y`."""
        condition = elementwise.compare(self.builder, direction, self.value, self.like(limit).value)
        chosen = elementwise.select(self.builder, condition, self.like(x).value, self.like(y).value)
        return Real(self.builder, chosen)

    def __add__(self, other: "Real | float") -> "Real":
        return self.with_("add", other)

    def __sub__(self, other: "Real | float") -> "Real":
        return self.with_("subtract", other)

    def __mul__(self, other: "Real | float") -> "Real":
        return self.with_("multiply", other)

    def __truediv__(self, other: "Real | float") -> "Real":
        return self.with_("divide", other)

    def __neg__(self) -> "Real":
        return self.of("negate")


def _multiply(x: Parts, y: Parts) -> Parts:
    return x[0] * y[0] - x[1] * y[1], x[0] * y[1] + x[1] * y[0]


def _divide(x: Parts, y: Parts) -> Parts:
    """By the divisor scaled to 1, so that its square neither overflows nor vanishes."""
    scale = y[0].of("abs").with_("maximum", y[1].of("abs"))
    scale = scale.where("EQ", 0.0, 1.0, scale.where("EQ", np.inf, 1.0, scale))
    a, b = y[0] / scale, y[1] / scale
    squared = a * a + b * b
    return (x[0] * a + x[1] * b) / squared / scale, (x[1] * a - x[0] * b) / squared / scale


def _abs(x: Parts) -> Real:
    a, b = (part.of("abs") for part in x)
    high, low = a.with_("maximum", b), a.with_("minimum", b)
    ratio = low / high.where("EQ", 0.0, 1.0, high)
    length = high * (ratio * ratio + 1.0).of("sqrt")
    return a.where("EQ", np.inf, np.inf, b.where("EQ", np.inf, np.inf, length))


def _exponential(x: Parts) -> Parts:
    size = x[0].of("exponential")
    return size * x[1].of("cosine"), x[1].where("EQ", 0.0, x[1], size * x[1].of("sine"))


def _exponential_minus_one(x: Parts) -> Parts:
    """e^a cos b - 1 = (e^a - 1) cos b - 2 sin^2 (b / 2)."""
    half = (x[1] * 0.5).of("sine")
    real = x[0].of("exponential_minus_one") * x[1].of("cosine") - half * half * 2.0
    return real, _exponential(x)[1]


def _log(x: Parts) -> Parts:
    return _abs(x).of("log"), x[1].with_("atan2", x[0])


def _log_plus_one(x: Parts) -> Parts:
    """|1 + z|^2 = 1 + a (2 + a) + b^2, of which the logarithm of what is added to 1 keeps small numbers."""
    a, b = x
    near = (a * (a + 2.0) + b * b).of("log_plus_one") * 0.5
    far, angle = _log((a + 1.0, b))
    return _abs(x).where("LT", _NEAR_ONE, near, far), angle


def _sqrt(x: Parts) -> Parts:
    """The part that is a sum of two positive numbers, and the other from the product of both."""
    a, b = x
    scale = a.of("abs").with_("maximum", b.of("abs"))
    safe = scale.where("EQ", 0.0, 1.0, scale.where("EQ", np.inf, 1.0, scale))
    scaled = (a / safe, b / safe)
    root = ((scaled[0].of("abs") + _abs(scaled)) * 0.5).of("sqrt") * safe.of("sqrt")
    other = b / (root.where("EQ", 0.0, 1.0, root) * 2.0)
    signed = b.with_("atan2", -1.0).where("LT", 0.0, -root, root)  # of -0 as well
    return a.where("LT", 0.0, other.of("abs"), root), a.where("LT", 0.0, signed, other)


def _rsqrt(x: Parts) -> Parts:
    one = x[0].like(1.0)
    return _divide((one, x[0].like(0.0)), _sqrt(x))


def _hyperbolic(x: Real) -> Parts:
    """The functions cosh and sinh, from e^|x| - 1 where that is small."""
    size = x.of("abs")
    grown = size.of("exponential_minus_one")
    rest = grown / (grown + 1.0)  # 1 - e^-|x|
    sinh = size.where("GT", _TANH_IS_ONE, grown, grown + rest) * 0.5
    cosh = (size.of("exponential") + (-size).of("exponential")) * 0.5
    return cosh, x.where("LT", 0.0, -sinh, sinh)


def _sine(x: Parts) -> Parts:
    cosh, sinh = _hyperbolic(x[1])
    return x[0].of("sine") * cosh, x[0].of("cosine") * sinh


def _cosine(x: Parts) -> Parts:
    cosh, sinh = _hyperbolic(x[1])
    return x[0].of("cosine") * cosh, -(x[0].of("sine") * sinh)


def _tanh(x: Parts) -> Parts:
    a, b = x
    near = a.with_("minimum", _TANH_IS_ONE).with_("maximum", -_TANH_IS_ONE)
    cosh, sinh = _hyperbolic(near)
    sine, cosine = b.of("sine"), b.of("cosine")
    below = sinh * sinh + cosine * cosine
    return sinh * cosh / below, sine * cosine / below


def _tan(x: Parts) -> Parts:
    imaginary, real = _tanh((-x[1], x[0]))
    return real, -imaginary


def _logistic(x: Parts) -> Parts:
    one = x[0].like(1.0)
    real, imaginary = _exponential((-x[0], -x[1]))
    return _divide((one, x[0].like(0.0)), (real + 1.0, imaginary))


def _power(x: Parts, y: Parts) -> Parts:
    """e^(y log x); 0^y is 0, and 0^0 is 1."""
    size = _abs(x)
    powered = _exponential(_multiply(_log(x), y))
    at_zero = _abs(y).where("EQ", 0.0, 1.0, 0.0)
    return size.where("EQ", 0.0, at_zero, powered[0]), size.where("EQ", 0.0, 0.0, powered[1])


def _sign(x: Parts) -> Parts:
    size = _abs(x)
    safe = size.where("EQ", 0.0, 1.0, size)
    return x[0] / safe, x[1] / safe


_FORMULAS: dict[str, Callable[..., Any]] = {
    "abs": _abs,
    "complex": lambda real, imaginary: (real, imaginary),
    "cosine": _cosine,
    "divide": _divide,
    "exponential": _exponential,
    "exponential_minus_one": _exponential_minus_one,
    "imag": lambda x: x[1],
    "log": _log,
    "log_plus_one": _log_plus_one,
    "logistic": _logistic,
    "multiply": _multiply,
    "power": _power,
    "real": lambda x: x[0],
    "rsqrt": _rsqrt,
    "sign": _sign,
    "sine": _sine,
    "sqrt": _sqrt,
    "tan": _tan,
    "tanh": _tanh,
}


def _by_formula(operation: Operation) -> list[int]:
    builder = operation.builder

    def operand(value: int) -> Real | Parts:
        real, *imaginary = (Real(builder, part) for part in builder.parts.get(value, (value,)))
        return (real, imaginary[0]) if imaginary else real

    name = operation.name.rpartition(".")[2]
    result = _FORMULAS[name](*map(operand, operation.inputs))
    return [
        pairs.pair(builder, result[0].value, result[1].value) if isinstance(result, tuple) else result.value
    ]


def _part_by_part(operation: Operation) -> list[int]:
    """The real rule on the real parts, and on the imaginary ones; what is no complex number is for both."""
    builder = operation.builder
    types = [pairs.part_type(type_) if type_.dtype == COMPLEX else type_ for type_ in operation.types]
    halves = [
        operation.walk.lower(
            operation.on(
                [builder.parts.get(value, (value, value))[place] for value in operation.inputs], types
            )
        )
        for place in (0, 1)
    ]
    return [
        pairs.pair(builder, real, imaginary) if type_.dtype == COMPLEX else real
        for type_, real, imaginary in zip(operation.types, *halves, strict=True)
    ]


def _bilinear(operation: Operation) -> list[int]:
    """Four real products: three would lose small parts beside large ones."""
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


def _reduce(operation: Operation) -> list[int]:
    """A sum part by part; a product by halves, each a product of elements."""
    kind = kind_of(operation.regions[0], COMPLEX) if len(operation.types) == 1 else None
    if kind == "add":
        return _part_by_part(operation)
    if kind != "multiply":
        raise operation.refuse("complex numbers are reduced by sum and prod alone", "Reduce their parts")
    builder, (x, start) = operation.builder, operation.inputs
    for dimension in operation.ints("dimensions"):
        x = _product_along(builder, x, dimension)
    shape = operation.types[0].shape
    reduced = pairs.map_parts(builder, lambda part: views.reshape(builder, part, shape), x)
    whole = pairs.map_parts(builder, lambda part: views.splat_like(builder, part, shape), start)
    return [_product(builder, reduced, whole)]


def _product(builder: Builder, x: int, y: int) -> int:
    parts = [[Real(builder, part) for part in builder.parts[value]] for value in (x, y)]
    real, imaginary = _multiply((parts[0][0], parts[0][1]), (parts[1][0], parts[1][1]))
    return pairs.pair(builder, real.value, imaginary.value)


def _product_along(builder: Builder, x: int, dimension: int) -> int:
    shape = builder.types[x].shape

    def cut(start: int, limit: int) -> int:
        starts, limits = [0] * len(shape), list(shape)
        starts[dimension], limits[dimension] = start, limit
        return pairs.map_parts(
            builder, lambda part: views.cut(builder, part, starts, limits, [1] * len(shape)), x
        )

    length = shape[dimension]
    if length == 0:
        type_ = ArrayType("f32", (*shape[:dimension], 1, *shape[dimension + 1 :]))
        return pairs.pair(builder, builder.splat(1, type_), builder.splat(0, type_))
    if length == 1:
        return x
    half = length // 2
    product = _product(builder, cut(0, half), cut(half, 2 * half))
    reduced = _product_along(builder, product, dimension)
    return reduced if length % 2 == 0 else _product(builder, reduced, cut(length - 1, length))


def _only_sums(operation: Operation) -> list[int]:
    """What combines elements: those that it adds or overwrites, part by part."""
    for region in operation.regions:
        operations = [view.operation.name for view in region.blocks[0].operations]
        if operations not in (["stablehlo.add", "stablehlo.return"], ["stablehlo.return"]):
            raise operation.refuse("complex numbers are combined by sums alone", "Combine their parts")
    return _part_by_part(operation)


def _compare(operation: Operation) -> list[int]:
    """Equal where both parts are."""
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


def _constant(operation: Operation) -> list[int]:
    (type_,) = operation.types
    array = complex_array(operation.source.get_asm(), type_)
    return [pairs.pair(operation.builder, *map(operation.builder.constant, (np.real(array), np.imag(array))))]


def _composite(operation: Operation) -> Sequence[int]:
    if operation.text("name") == "chlo.tan":
        return _by_formula(operation.on(operation.inputs, operation.types))
    return RULES[operation.name](operation)


def _refuse(operation: Operation) -> Sequence[int]:
    raise operation.refuse("the IPU does not do this with complex numbers", "Do it with their parts")


_RULES: dict[str, Rule] = {
    **{f"stablehlo.{name}": _by_formula for name in _FORMULAS},
    **{
        f"stablehlo.{name}": _part_by_part
        for name in (
            *("add", "subtract", "negate", "select", "broadcast_in_dim", "reshape", "transpose", "slice"),
            *("reverse", "concatenate", "pad", "gather", "dynamic_slice", "dynamic_update_slice"),
            *("all_gather", "all_to_all", "collective_permute"),
        )
    },
    **dict.fromkeys(("stablehlo.dot_general", "stablehlo.convolution"), _bilinear),
    **{
        f"stablehlo.{name}": _only_sums
        for name in ("all_reduce", "reduce_scatter", "reduce_window", "scatter")
    },
    "stablehlo.reduce": _reduce,
    "stablehlo.compare": _compare,
    "stablehlo.convert": _convert,
    "stablehlo.constant": _constant,
    "stablehlo.composite": _composite,
}
# They hand values on, whatever these are.
_HANDS_ON = frozenset(
    {
        *("func.call", "stablehlo.while", "stablehlo.case", "stablehlo.if", "stablehlo.optimization_barrier"),
        *("sdy.manual_computation", "sdy.sharding_constraint", "sdy.sharding_group"),
    }
)


def is_complex(operation: Operation) -> bool:
    """Whether an operation needs a rule of complex numbers."""
    types = (*operation.types, *operation.input_types())
    return operation.name not in _HANDS_ON and any(type_.dtype == COMPLEX for type_ in types)


def rule_of(operation: Operation) -> Rule:
    """The rule of an operation on complex numbers."""
    return _RULES.get(operation.name, _refuse)


# What has no meaning without complex numbers is known by its complex rule alone.
for _name in ("complex", "real", "imag"):
    RULES[f"stablehlo.{_name}"] = _by_formula
