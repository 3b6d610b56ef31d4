"""Elementwise operations as steps on 32-bit registers: float32, int32 or uint32, and bools as 0 and 1.

Narrower types are computed in these registers and converted back to the range of their type by `round` and `wrap`.
"""

import numpy as np

from snnjax.ipu.lowering.builder import Builder, Expression
from snnjax.ipu.lowering.operation import Operation
from snnjax.ipu.lowering.rules import rule
from snnjax.ipu.lowering.types import ArrayType, bits_of, is_floating, numpy_dtype, register_of

_UNARY = (
    *("abs", "cbrt", "ceil", "cosine", "count_leading_zeros", "exponential", "exponential_minus_one"),
    *("floor", "is_finite", "log", "log_plus_one", "logistic", "negate", "not", "popcnt", "sqrt", "tan"),
    *("round_nearest_afz", "round_nearest_even", "rsqrt", "sign", "sine", "tanh"),
)
_BINARY = (
    *("add", "and", "atan2", "divide", "maximum", "minimum", "multiply", "or", "power", "remainder"),
    *("shift_left", "shift_right_arithmetic", "shift_right_logical", "subtract", "xor"),
)
_OTHERS = ("select", "compare", "clamp", "convert", "bitcast_convert", "reduce_precision")
# All operations here, by their names in StableHLO.
NAMES = frozenset((*_UNARY, *_BINARY, *_OTHERS))
# Operations whose results are always representable in the dtype need no rounding.
_EXACT = frozenset(
    (
        *("abs", "and", "ceil", "floor", "is_finite", "maximum", "minimum", "negate", "not", "or"),
        *("round_nearest_afz", "round_nearest_even", "sign", "trunc", "xor"),
    )
)
# The bits of the exponent and of the mantissa.
_FORMATS = {"f32": (8, 23), "f16": (5, 10), "bf16": (8, 7)}
# The inverses of powers of two within these limits are not subnormal.
_MAX_EXPONENT = 100
# Bools are integers modulo 2.
_OF_BOOLS = {"add": "or", "maximum": "or", "multiply": "and", "minimum": "and"}
_OF_BITS = frozenset({"and", "or", "xor", "shift_left", "shift_right_logical"})


def settle(expression: Expression, node: int, dtype: str) -> int:
    """A register rounded or wrapped to an element of `dtype`."""
    if dtype in ("f16", "bf16"):
        return expression.step(f"round.{dtype}", node)
    return expression.step(f"wrap.{dtype}", node) if bits_of(dtype) < 32 and dtype != "bool" else node


def _mask(expression: Expression, node: int, dtype: str) -> int:
    """The bits of a narrow signed number, without its sign extension."""
    if not dtype.startswith("s") or bits_of(dtype) == 32:
        return node
    return expression.step("and.u32", node, expression.constant(np.uint32(2 ** bits_of(dtype) - 1)))


def _unary(expression: Expression, name: str, x: int, dtype: str) -> int:
    register = register_of(dtype)
    if name in ("popcnt", "count_leading_zeros"):
        counted = expression.step(f"{name}.u32", _mask(expression, x, dtype))
        above = 32 - bits_of(dtype)
        if name == "popcnt" or above == 0:
            return counted
        return expression.step("subtract.u32", counted, expression.constant(np.uint32(above)))
    if name == "not":
        return expression.step("not.bool" if dtype == "bool" else f"not.{register}", x)
    if register == "u32" and name in ("abs", "sign"):
        return x if name == "abs" else expression.step("minimum.u32", x, expression.constant(np.uint32(1)))
    return expression.step(f"{name}.{register}", x)


def _binary(expression: Expression, name: str, x: int, y: int, dtype: str) -> int:
    register = register_of(dtype)
    if dtype == "bool":
        name = _OF_BOOLS.get(name, name)
    if name == "shift_right_logical":
        x = _mask(expression, x, dtype)
    if name == "shift_right_arithmetic":  # the highest bit counts as a sign, even for unsigned types
        x = expression.step(f"wrap.s{bits_of(dtype)}", x) if bits_of(dtype) < 32 and register == "u32" else x
        register = "s32"
    if name.startswith("shift") and bits_of(dtype) < 32:
        y = _distance(expression, y, dtype)
    return expression.step(f"{name}.{'u32' if name in _OF_BITS else register}", x, y)


def _distance(expression: Expression, y: int, dtype: str) -> int:
    """The distance to shift 32 bits: the width of a narrow type shifts everything out."""
    width = expression.constant(np.uint32(bits_of(dtype)))
    all_bits = expression.constant(np.uint32(32))
    far = expression.step("ge.u32", y, width)  # true for negative distances as well
    return expression.step("select.u32", far, all_bits, y)


def unary(builder: Builder, name: str, x: int) -> int:
    """An operation on one array."""
    type_ = builder.types[x]
    expression = Expression(builder)
    node = _unary(expression, name, expression.load(x), type_.dtype)
    if name == "is_finite":
        return expression.finish(type_._replace(dtype="bool"))
    if name not in _EXACT or (name in ("abs", "negate", "not") and not is_floating(type_.dtype)):
        settle(expression, node, type_.dtype)
    return expression.finish(type_)


def binary(builder: Builder, name: str, x: int, y: int) -> int:
    """An operation on two arrays of one type, or single elements."""
    type_ = max(builder.types[x], builder.types[y], key=lambda each: each.size)
    name, y = _cheaper(builder, name, y)
    expression = Expression(builder)
    if name == "multiply" and x == y and is_floating(type_.dtype):
        node = expression.step("square.f32", expression.load(x))
    else:
        node = _binary(expression, name, expression.load(x), expression.load(y), type_.dtype)
    if name not in _EXACT:
        settle(expression, node, type_.dtype)
    return expression.finish(type_)


def _cheaper(builder: Builder, name: str, y: int) -> tuple[str, int]:
    """The product that equals a division by a power of two bit for bit, if there is one."""
    number = builder.number(y)
    if name != "divide" or number is None or builder.types[y].dtype != "f32" or not np.isfinite(number):
        return name, y
    fraction, exponent = np.frexp(number)
    if abs(fraction) != 0.5 or abs(exponent) > _MAX_EXPONENT:
        return name, y
    return "multiply", builder.splat(np.float32(1) / number, builder.types[y])


def select(builder: Builder, condition: int, x: int, y: int) -> int:
    """Elements of `x` where the condition holds, else of `y`."""
    if x == y:
        return x
    type_ = max(builder.types[x], builder.types[y], key=lambda each: each.size)
    type_ = max(type_, ArrayType(type_.dtype, builder.types[condition].shape), key=lambda each: each.size)
    known = builder.number(condition)
    if known is not None and builder.types[x].shape == builder.types[y].shape:
        return x if known else y
    expression = Expression(builder)
    expression.step("select.u32", *map(expression.load, (condition, x, y)))
    return expression.finish(type_)


def compare(builder: Builder, direction: str, x: int, y: int, *, total: bool = False) -> int:
    """A bool for each pair of elements; `total`: in the total order of IEEE 754."""
    type_ = max(builder.types[x], builder.types[y], key=lambda each: each.size)
    suffix = "_total" if total and is_floating(type_.dtype) else ""
    expression = Expression(builder)
    name = f"{direction.lower()}{suffix}.{register_of(type_.dtype)}"
    expression.step(name, expression.load(x), expression.load(y))
    return expression.finish(type_._replace(dtype="bool"))


def convert(builder: Builder, x: int, dtype: str) -> int:
    """Convert to `dtype`: towards zero and saturating from floating point, modulo 2^n between integers."""
    old = builder.types[x]
    if old.dtype == dtype:
        return x
    expression = Expression(builder)
    node = expression.load(x)
    if is_floating(old.dtype):
        node = _from_float(expression, node, dtype)
    elif is_floating(dtype):
        signed = "u32" if old.dtype == "u32" else "s32"
        node = expression.step(f"convert_{signed}_f32", node)
    elif dtype == "bool":
        node = expression.step("convert_s32_bool", node)
    wider = old.dtype == "bool" or (
        not is_floating(dtype) and bits_of(old.dtype) < bits_of(dtype) and old.dtype[0] == dtype[0]
    )
    exact = (is_floating(old.dtype) and not is_floating(dtype)) or dtype in ("f32", "bool") or wider
    node = node if exact else settle(expression, node, dtype)
    return expression.finish(ArrayType(dtype, old.shape))


def _from_float(expression: Expression, node: int, dtype: str) -> int:
    if is_floating(dtype):
        return node
    if dtype == "bool":
        return expression.step("convert_f32_bool", node)
    if bits_of(dtype) < 32:
        limits = np.iinfo(numpy_dtype(dtype))
        node = expression.step("maximum.f32", node, expression.constant(np.float32(limits.min)))
        node = expression.step("minimum.f32", node, expression.constant(np.float32(limits.max)))
        return expression.step("convert_f32_s32", node)
    return expression.step(f"convert_f32_{dtype}", node)


def bitcast(builder: Builder, x: int, type_: ArrayType) -> int:
    """The same bits as another type of the same size."""
    if builder.types[x].dtype == type_.dtype:
        return x
    array = builder.constants.get(x)
    if array is not None:
        return builder.constant(np.asarray(array, order="C").view(numpy_dtype(type_.dtype)))
    if {bits_of(type_.dtype), bits_of(builder.types[x].dtype)} == {32}:
        expression = Expression(builder)
        expression.load(x)
        return expression.finish(type_)
    return builder.one("bitcast", (x,), type_)


@rule(*(f"stablehlo.{name}" for name in _UNARY))
def _lower_unary(operation: Operation) -> list[int]:
    return [unary(operation.builder, operation.name.removeprefix("stablehlo."), operation.inputs[0])]


@rule(*(f"stablehlo.{name}" for name in _BINARY))
def _lower_binary(operation: Operation) -> list[int]:
    name = operation.name.removeprefix("stablehlo.")
    x, y = operation.inputs
    same = _without_identity(operation.builder, name, x, y)
    return [binary(operation.builder, name, x, y) if same is None else same]


def _without_identity(builder: Builder, name: str, x: int, y: int) -> int | None:
    """The operand that already is the result: x * 1, x - 0, x & true (but not x + 0, which differs for -0)."""
    x_number, y_number = builder.number(x), builder.number(y)
    neutral = {"multiply": 1, "divide": 1, "subtract": 0}.get(name)
    if y_number is not None and y_number == neutral and not np.signbit(np.float32(y_number)):
        return x
    if x_number is not None and name == "multiply" and x_number == 1:
        return y
    integer = not is_floating(builder.types[x].dtype)
    for number, other in ((x_number, y), (y_number, x)):
        if number is None or not integer:
            continue
        if name in ("add", "or", "xor") and number == 0:
            return other
        if name == "and" and builder.types[x].dtype == "bool" and number:
            return other
    return None


@rule("stablehlo.select")
def _lower_select(operation: Operation) -> list[int]:
    return [select(operation.builder, *operation.inputs)]


@rule("stablehlo.compare")
def _lower_compare(operation: Operation) -> list[int]:
    direction = operation.enumeration("comparison_direction")
    total = operation.enumeration("compare_type") == "TOTALORDER"
    return [compare(operation.builder, direction, *operation.inputs, total=total)]


@rule("stablehlo.clamp")
def _lower_clamp(operation: Operation) -> list[int]:
    low, x, high = operation.inputs
    return [binary(operation.builder, "minimum", binary(operation.builder, "maximum", x, low), high)]


@rule("stablehlo.convert")
def _lower_convert(operation: Operation) -> list[int]:
    return [convert(operation.builder, operation.inputs[0], operation.types[0].dtype)]


@rule("stablehlo.reduce_precision")
def _lower_reduce_precision(operation: Operation) -> list[int]:
    """XLA's steps on the bits: the mantissa is rounded to even, and what then is too small to be normal is 0."""
    builder, (x,), (type_,) = operation.builder, operation.inputs, operation.types
    exponent, mantissa = _FORMATS[type_.dtype]
    kept_exponent, kept_mantissa = operation.integer("exponent_bits"), operation.integer("mantissa_bits")
    if kept_exponent >= exponent and kept_mantissa >= mantissa:
        return [x]
    unsigned = type_._replace(dtype=f"u{bits_of(type_.dtype)}")
    number = numpy_dtype(unsigned.dtype).type

    def constant(bits: int) -> int:
        return builder.splat(number(bits), unsigned)

    def step(name: str, x: int, bits: int) -> int:
        return binary(builder, name, x, constant(bits))

    sign, infinity = 1 << (exponent + mantissa), ((1 << exponent) - 1) << mantissa
    given = bits = bitcast(builder, x, unsigned)
    dropped = mantissa - kept_mantissa
    if dropped > 0:
        is_odd = step("and", step("shift_right_logical", bits, dropped), 1)
        rounded = binary(builder, "add", step("add", bits, (1 << (dropped - 1)) - 1), is_odd)
        bits = step("and", rounded, (sign | (sign - 1)) >> dropped << dropped)
    if kept_exponent < exponent:
        own = step("and", bits, infinity)
        bias, reach = (1 << (exponent - 1)) - 1, (1 << (kept_exponent - 1)) - 1
        zero = step("and", bits, sign)
        is_large = compare(builder, "GT", own, constant((bias + reach) << mantissa))
        is_small = compare(builder, "LE", own, constant((bias - reach) << mantissa))
        bits = select(builder, is_large, step("or", zero, infinity), select(builder, is_small, zero, bits))
    is_nan = compare(builder, "GT", step("and", given, sign - 1), constant(infinity))
    bits = select(builder, is_nan, given, bits)
    return [bitcast(builder, bits, type_)]
