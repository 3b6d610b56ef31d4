"""Bit casts, also between elements of different sizes, which shifts take apart and put together."""

import numpy as np

from snnjax.ipu.lowering import views
from snnjax.ipu.lowering.builder import Builder
from snnjax.ipu.lowering.operation import Operation
from snnjax.ipu.lowering.rules import elementwise, rule
from snnjax.ipu.lowering.types import WIDE, ArrayType, bits_of


@rule("stablehlo.bitcast_convert")
def _lower_bitcast(operation: Operation) -> list[int]:
    (x,), (old,), (new,) = operation.inputs, operation.input_types(), operation.types
    if new.dtype in WIDE:
        raise operation.refuse(
            f"the IPU has no {new.dtype}",
            "Use threefry random keys, JAX's default, and leave jax_enable_x64 off",
        )
    if len(new.shape) > len(old.shape):
        return [_parts(operation.builder, x, new)]
    if len(new.shape) < len(old.shape):
        return [_joined(operation.builder, x, new)]
    return [elementwise.bitcast(operation.builder, x, new)]


def _unsigned(builder: Builder, x: int) -> int:
    """The bits of elements of any size as the lowest ones of uint32."""
    type_ = builder.types[x]
    bits = elementwise.bitcast(builder, x, type_._replace(dtype=f"u{bits_of(type_.dtype)}"))
    return elementwise.convert(builder, bits, "u32")


def _shifted(builder: Builder, direction: str, x: int, distance: int) -> int:
    return elementwise.binary(
        builder, f"shift_{direction}", x, builder.constant(np.array(distance, np.uint32))
    )


def _parts(builder: Builder, x: int, new: ArrayType) -> int:
    """``parts[..., i] = x >> i * bits``: a new last dimension, the lowest bits first."""
    bits, unsigned = bits_of(new.dtype), _unsigned(builder, x)
    shifted = [_shifted(builder, "right_logical", unsigned, bits * i) for i in range(new.shape[-1])]
    parts = [elementwise.convert(builder, part, f"u{bits}") for part in shifted]
    columns = [views.reshape(builder, part, (*new.shape[:-1], 1)) for part in parts]
    return elementwise.bitcast(builder, views.concatenate(builder, columns, len(new.shape) - 1), new)


def _joined(builder: Builder, x: int, new: ArrayType) -> int:
    """``sum_i x[..., i] << i * bits``."""
    old, columns = builder.types[x], _unsigned(builder, x)
    joined = builder.constant(np.array(0, np.uint32))
    for i in range(old.shape[-1]):
        column = views.cut_along(builder, columns, len(new.shape), i, i + 1)
        part = views.reshape(builder, column, new.shape)
        shifted = _shifted(builder, "left", part, bits_of(old.dtype) * i)
        joined = shifted if i == 0 else elementwise.binary(builder, "or", joined, shifted)
    bits = elementwise.convert(builder, joined, f"u{bits_of(new.dtype)}")
    return elementwise.bitcast(builder, bits, new)
