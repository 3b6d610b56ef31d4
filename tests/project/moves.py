"""Numbers that move outside of `jit` do so in NumPy: JAX would compile a program for each move and shape.

Compiling takes longer than most of what is tested. The bits are those of programs, since nothing is computed.
"""

from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import Primitive, primitives
from jax.typing import ArrayLike, DTypeLike

from snnjax._jax_compat import default_device, stage_p

# From the operands and options of a primitive; None where it is no mere move.
Move = Callable[..., np.ndarray | None]


def _broadcast(
    operand: np.ndarray, *, shape: Sequence[int], broadcast_dimensions: Sequence[int], **_: object
) -> np.ndarray:
    lengths = [1] * len(shape)
    for axis, length in zip(broadcast_dimensions, operand.shape, strict=True):
        lengths[axis] = length
    return np.broadcast_to(operand.reshape(lengths), shape)


def _dynamic_slice(operand: np.ndarray, *starts: np.ndarray, slice_sizes: Sequence[int]) -> np.ndarray:
    sizes = zip(starts, operand.shape, slice_sizes, strict=True)
    firsts = [min(max(int(start), 0), length - size) for start, length, size in sizes]
    return operand[tuple(slice(first, first + size) for first, size in zip(firsts, slice_sizes, strict=True))]


def _slice(
    operand: np.ndarray,
    *,
    start_indices: Sequence[int],
    limit_indices: Sequence[int],
    strides: Sequence[int] | None,
) -> np.ndarray:
    return operand[tuple(map(slice, start_indices, limit_indices, strides or [1] * operand.ndim))]


def _iota(*, dtype: DTypeLike, shape: Sequence[int], dimension: int, **_: object) -> np.ndarray:
    lengths = [length if axis == dimension else 1 for axis, length in enumerate(shape)]
    return np.broadcast_to(np.arange(shape[dimension]).astype(dtype).reshape(lengths), shape)


def _convert(operand: np.ndarray, *, new_dtype: DTypeLike, weak_type: bool, **_: object) -> np.ndarray | None:
    # Integers wrap, and are rounded once to floats of 4 bytes and more, as XLA does it.
    is_integer = operand.dtype.kind in "biu"
    to = np.dtype(new_dtype)
    is_alike = np.can_cast(operand.dtype, to) or (
        is_integer and (to.kind in "biu" or (to.kind == "f" and to.itemsize >= 4))
    )
    return operand.astype(to) if is_alike and not weak_type else None


_MOVES: dict[Primitive, Move] = {
    stage_p: lambda operand: operand,
    primitives.broadcast_in_dim_p: _broadcast,
    primitives.concatenate_p: lambda *operands, dimension: np.concatenate(operands, dimension),
    primitives.convert_element_type_p: _convert,
    primitives.dynamic_slice_p: _dynamic_slice,
    primitives.iota_p: _iota,
    primitives.reshape_p: lambda operand, new_sizes, **_: operand.reshape(new_sizes),
    primitives.slice_p: _slice,
    primitives.squeeze_p: lambda operand, dimensions: operand.squeeze(dimensions),
    primitives.transpose_p: lambda operand, permutation: operand.transpose(permutation),
}


def _is_movable(operand: ArrayLike) -> bool:
    """Whether an operand holds plain numbers, and stands where JAX would put the result anyway."""
    aval = jax.typeof(operand)
    is_plain = jnp.issubdtype(aval.dtype, np.number) or aval.dtype == bool
    return is_plain and not aval.weak_type and not getattr(operand, "committed", False)


def in_numpy() -> None:
    """Let JAX move numbers in NumPy from now on; in versions whose primitives are not known, by programs as ever."""
    if not jax.lib.__version__.startswith("0.10."):
        return
    for primitive, move in _MOVES.items():
        primitive.def_impl(_moving(primitive.impl, move))


def _moving(compiled: Callable[..., jax.Array], move: Move) -> Callable[..., jax.Array]:
    """An implementation that moves what it can, and compiles a program for the rest."""

    def run(*operands: ArrayLike, **options: object) -> jax.Array:
        is_free = default_device.value is None and options.get("sharding") is None
        if not is_free or not all(map(_is_movable, operands)):
            return compiled(*operands, **options)
        # A number of NumPy has the dtype that JAX has for it.
        moved = move(*(np.asarray(each, jax.typeof(each).dtype) for each in operands), **options)
        return compiled(*operands, **options) if moved is None else jax.device_put(np.array(moved))

    return run
