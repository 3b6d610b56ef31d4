"""Fourier transforms as products with a matrix of roots of unity, which the tiles compute.

A line of n elements takes n^2 products on the matrix unit, and two matrices of n^2 elements in tile memory.
"""

import math
from collections.abc import Sequence

from snnjax.ipu.lowering import pairs, views
from snnjax.ipu.lowering.builder import Builder
from snnjax.ipu.lowering.operation import Operation
from snnjax.ipu.lowering.rules import elementwise, rule
from snnjax.ipu.lowering.rules.complex_formulas import Parts, Real
from snnjax.ipu.lowering.rules.products import dot
from snnjax.ipu.lowering.types import ArrayType

# The two matrices of a longer transform fill the tiles.
MAX_LENGTH = 2048


@rule("stablehlo.fft")
def lower_fft(operation: Operation) -> Sequence[int]:
    """A transform along the last dimensions; a real one is real along the last of them and complex along the others."""
    builder, (x,), (type_,) = operation.builder, operation.inputs, operation.types
    lengths, kind = operation.ints("fft_length"), operation.enumeration("fft_type")
    if max(lengths) > MAX_LENGTH:
        what = f"a transform of {max(lengths)} elements exceeds the limit of {MAX_LENGTH}"
        raise operation.refuse(what, "Transform shorter pieces, or run this part on the CPU")
    if type_.size == 0:
        return [pairs.empty(builder, type_)]
    first = len(type_.shape) - len(lengths)
    others = list(enumerate(lengths[:-1], first))
    inverse = kind.startswith("I")
    if kind == "RFFT":
        parts = _from_real(operation, x, lengths[-1])
    else:
        parts = (Real(builder, builder.parts[x][0]), Real(builder, builder.parts[x][1]))
    for dimension, n in others if "R" in kind else [*others, (first + len(others), lengths[-1])]:
        parts = _complex(operation, parts, dimension, n, inverse)
    if kind == "IRFFT":
        return [_to_real(operation, parts, lengths[-1])]
    return [pairs.pair(builder, parts[0].value, parts[1].value)]


def _roots(builder: Builder, rows: int, columns: int, n: int, scale: float = 1.0) -> Parts:
    """Cosine and sine of ``2 pi j k / n``, scaled, from the angle between -pi and pi."""
    type_ = ArrayType("s32", (rows, columns))
    j, k = (Real(builder, views.iota(builder, type_, d)) for d in (0, 1))
    turns = (j * k).with_("remainder", n)
    nearest = turns.where("GT", n // 2, turns - n, turns)
    angle = Real(builder, elementwise.convert(builder, nearest.value, "f32")) * (2 * math.pi / n)
    return angle.of("cosine") * scale, angle.of("sine") * scale


def _product(operation: Operation, x: Real, matrix: Real, dimension: int) -> Real:
    """Each line of `x` along a dimension as a row times a matrix."""
    builder = operation.builder
    shape, (_, columns) = builder.types[x.value].shape, builder.types[matrix.value].shape
    rest = tuple(n for d, n in enumerate(shape) if d != dimension)
    type_ = ArrayType("f32", (*rest, columns))
    product = dot(builder, operation, x.value, matrix.value, ((), (), (dimension,), (0,)), type_)
    order = [*range(dimension), len(rest), *range(dimension, len(rest))]
    return Real(builder, views.transpose(builder, product, order))


def _complex(operation: Operation, x: Parts, dimension: int, n: int, inverse: bool) -> Parts:
    cosine, sine = _roots(operation.builder, n, n, n, 1 / n if inverse else 1.0)
    real, imaginary = ([_product(operation, part, root, dimension) for root in (cosine, sine)] for part in x)
    if inverse:
        return real[0] - imaginary[1], imaginary[0] + real[1]
    return real[0] + imaginary[1], imaginary[0] - real[1]


def _from_real(operation: Operation, x: int, n: int) -> Parts:
    """The non-redundant frequencies of a real transform."""
    builder = operation.builder
    cosine, sine = _roots(builder, n, n // 2 + 1, n)
    last, real = len(builder.types[x].shape) - 1, Real(builder, x)
    return _product(operation, real, cosine, last), _product(operation, real, sine * -1.0, last)


def _to_real(operation: Operation, x: Parts, n: int) -> int:
    """The elements, from frequencies of which all but the first, and the last of an even `n`, count twice."""
    builder, count = operation.builder, n // 2 + 1
    place = Real(builder, views.iota(builder, ArrayType("s32", (count, n)), 0))
    twice = (place * 2 if n % 2 == 0 else place).with_("remainder", n)  # 0 at both ends
    weights = elementwise.select(
        builder,
        elementwise.compare(builder, "NE", twice.value, twice.like(0).value),
        *(builder.splat(number, ArrayType("f32", (count, n))) for number in (2.0, 1.0)),
    )
    cosine, sine = (root * Real(builder, weights) for root in _roots(builder, count, n, n, 1 / n))
    last = len(builder.types[x[0].value].shape) - 1
    real, imaginary = (_product(operation, *each, last) for each in zip(x, (cosine, sine), strict=True))
    return (real - imaginary).value
