"""The gradient of pooling by maxima or minima: each window's cotangent goes to the element that it selected."""

import itertools
import math
from collections.abc import Sequence

import jax
import jax.numpy as jnp
from jax import lax

from snnjax._jax_compat import Primitive

# Larger windows are refused: each of their elements is a slice of its own.
MAX_WINDOW = 64


def is_small(window_dimensions: Sequence[int]) -> bool:
    """Whether a window can be gone through element by element."""
    return math.prod(window_dimensions) <= MAX_WINDOW


def select_and_scatter_add(
    source: jax.Array,
    operand: jax.Array,
    *,
    select_prim: Primitive,
    window_dimensions: Sequence[int],
    window_strides: Sequence[int],
    padding: Sequence[tuple[int, int]],
) -> jax.Array:
    """Add each element of `source` where `operand` is largest or smallest in its window.

    `select_prim` is ``ge`` or ``le``. Of equal elements the first is selected, and none of the padding.
    """
    edges = [(low, high, 0) for low, high in padding]
    padded = lax.pad(operand, jnp.zeros((), operand.dtype), edges)
    inside = lax.pad(jnp.ones(operand.shape, bool), jnp.array(False), edges)
    extents = [(count - 1) * stride + 1 for count, stride in zip(source.shape, window_strides, strict=True)]
    offsets = list(itertools.product(*map(range, window_dimensions)))

    def elements(x: jax.Array, offset: Sequence[int]) -> jax.Array:
        """Those at one offset in all windows."""
        ends = [start + extent for start, extent in zip(offset, extents, strict=True)]
        return lax.slice(x, offset, ends, window_strides)

    best, chosen = jnp.zeros(source.shape, operand.dtype), jnp.full(source.shape, -1, jnp.int32)
    for number, offset in enumerate(offsets):
        new = elements(padded, offset)
        better = elements(inside, offset) & ((chosen < 0) | ~select_prim.bind(best, new))
        best, chosen = jnp.where(better, new, best), jnp.where(better, jnp.int32(number), chosen)

    zero = jnp.zeros((), source.dtype)
    total = jnp.zeros(padded.shape, source.dtype)
    for number, offset in enumerate(offsets):
        ends = [
            size - start - extent for size, start, extent in zip(padded.shape, offset, extents, strict=True)
        ]
        dilation = [
            (start, end, stride - 1) for start, end, stride in zip(offset, ends, window_strides, strict=True)
        ]
        total = total + lax.pad(jnp.where(chosen == number, source, zero), zero, dilation)
    return lax.pad(total, zero, [(-low, -high, 0) for low, high in padding])
