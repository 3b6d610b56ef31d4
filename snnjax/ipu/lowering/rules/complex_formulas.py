"""Complex functions as formulas of real elementwise operations on both parts.

Sources of the forms that stay accurate at the extremes of the range: W. Kahan, "Branch cuts for complex elementary
functions", 1987 (square root, logarithm, tanh); R. L. Smith, "Algorithm 116: Complex division", 1962
(doi:10.1145/368637.368661).
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from snnjax.ipu.lowering.builder import Builder
from snnjax.ipu.lowering.rules import elementwise

Parts = tuple["Real", "Real"]
# Beyond it, tanh rounds to 1 in float32.
_TANH_IS_ONE = 15.0
# Below this |z|, log(1 + z) uses the real log_plus_one, which is accurate for small numbers.
_NEAR_ONE = 0.5


class Real:
    """A real value in a formula."""

    def __init__(self, builder: Builder, value: int) -> None:
        self.builder, self.value = builder, value

    def of(self, name: str) -> "Real":
        """A unary elementwise operation."""
        return Real(self.builder, elementwise.unary(self.builder, name, self.value))

    def with_(self, name: str, other: "Real | float") -> "Real":
        """A binary elementwise operation with `other`."""
        return Real(self.builder, elementwise.binary(self.builder, name, self.value, self.like(other).value))

    def like(self, other: "Real | float") -> "Real":
        """`other` as a value of the same type."""
        if isinstance(other, Real):
            return other
        return Real(self.builder, self.builder.splat(other, self.builder.types[self.value]))

    def where(self, direction: str, limit: float, x: "Real | float", y: "Real | float") -> "Real":
        """`x` where the comparison of this value with `limit` holds, else `y`."""
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


def multiply(x: Parts, y: Parts) -> Parts:
    """(a + bi) (c + di) = (ac - bd) + (ad + bc) i."""
    return x[0] * y[0] - x[1] * y[1], x[0] * y[1] + x[1] * y[0]


def _divide(x: Parts, y: Parts) -> Parts:
    """Divide with the divisor scaled to about 1, so that its square neither overflows nor underflows."""
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
    """|1 + z|^2 = 1 + a (2 + a) + b^2; log_plus_one of the part added to 1 is accurate for small numbers."""
    a, b = x
    near = (a * (a + 2.0) + b * b).of("log_plus_one") * 0.5
    far, angle = _log((a + 1.0, b))
    return _abs(x).where("LT", _NEAR_ONE, near, far), angle


def _sqrt(x: Parts) -> Parts:
    """One part is a sum of two positive numbers; the other follows from the product of both parts."""
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
    """The functions cosh and sinh, from e^|x| - 1 for small |x|."""
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
    powered = _exponential(multiply(_log(x), y))
    at_zero = _abs(y).where("EQ", 0.0, 1.0, 0.0)
    return size.where("EQ", 0.0, at_zero, powered[0]), size.where("EQ", 0.0, 0.0, powered[1])


def _sign(x: Parts) -> Parts:
    size = _abs(x)
    safe = size.where("EQ", 0.0, 1.0, size)
    return x[0] / safe, x[1] / safe


# By the name of the StableHLO operation.
FORMULAS: dict[str, Callable[..., Any]] = {
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
    "multiply": multiply,
    "power": _power,
    "real": lambda x: x[0],
    "rsqrt": _rsqrt,
    "sign": _sign,
    "sine": _sine,
    "sqrt": _sqrt,
    "tan": _tan,
    "tanh": _tanh,
}
