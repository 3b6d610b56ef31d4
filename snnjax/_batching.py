"""The `vmap` rule of all targets: a new axis folds into the batch if it can, else into the groups; neither loops.

Operands of a target have a leading ``groups`` axis of length 1 (shared) or G, and may have a batch axis after it.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array

# Marks an operand or a result without a batch axis, such as weights or their gradient.
SHARED = -1


@jax.custom_batching.custom_vmap
def any_group(condition: jax.Array) -> jax.Array:
    """True for every group if `condition` holds in one, so that `vmap` keeps a `lax.cond` in a reference a branch."""
    return jnp.any(condition)


@any_group.def_vmap
def _any_of_all_groups(
    axis_size: int, in_batched: Sequence[bool], condition: jax.Array
) -> tuple[jax.Array, bool]:
    del axis_size, in_batched
    return any_group(condition), False


class Folded(NamedTuple):
    """Operands whose mapped axis is folded into another."""

    operands: list[Any]
    into_batch: bool  # else into the groups
    unfold: Callable[
        [Any, int], Any
    ]  # (a result, the position of its batch axis) -> with the mapped axis in front


def fold(
    operands: Sequence[Any],
    dims: Sequence[int | None],
    operand_axes: Sequence[int],
    result_axes: Sequence[int],
    size: int,
) -> Folded:
    """Fold the mapped axes `dims`, of length `size`, of operands whose batch axes are `operand_axes`.

    They fold into the batch if all mapped operands and all results have one.
    """
    each = list(zip(operands, dims, operand_axes, strict=True))
    into_batch = SHARED not in result_axes and all(dim is None or axis != SHARED for _, dim, axis in each)
    if into_batch:
        folded = [_into_batch(operand, dim, axis, size) for operand, dim, axis in each]
        return Folded(folded, True, lambda result, axis: _out_of_batch(result, axis, size))
    groups = max(operand.shape[0 if dim is None else int(dim == 0)] for operand, dim, _ in each)
    folded = [_into_groups(operand, dim, size, groups) for operand, dim, _ in each]
    return Folded(folded, False, lambda result, _: _out_of_groups(result, size))


def without_axis(operand: Any, dim: int | None) -> jax.ShapeDtypeStruct:
    """The shape of one example."""
    shape = tuple(length for place, length in enumerate(operand.shape) if place != dim)
    return jax.ShapeDtypeStruct(shape, operand.dtype)


def with_batch(shape: tuple[int, ...], axis: int, size: int) -> tuple[int, ...]:
    """The shape of a result whose batch is `size` times as large."""
    return (*shape[:axis], size * shape[axis], *shape[axis + 1 :])


def _into_batch(operand: Array, dim: int | None, axis: int, size: int) -> Array:
    if axis == SHARED:
        return operand
    # Just before the batch axis, after the groups axis.
    operand = jnp.moveaxis(*_mapped(operand, dim, size), axis + 1)
    shape = operand.shape
    return operand.reshape(*shape[: axis + 1], size * shape[axis + 2], *shape[axis + 3 :])


def _out_of_batch(result: Array, axis: int, size: int) -> Array:
    shape = result.shape
    split = result.reshape(*shape[: axis + 1], size, shape[axis + 1] // size, *shape[axis + 2 :])
    return jnp.moveaxis(split, axis + 1, 0)


def _into_groups(operand: Array, dim: int | None, size: int, groups: int) -> Array:
    if dim is None and operand.shape[0] == 1:
        return operand
    operand = jnp.moveaxis(*_mapped(operand, dim, size), 0)
    operand = jnp.broadcast_to(operand, (size, groups, *operand.shape[2:]))
    return operand.reshape(size * groups, *operand.shape[2:])


def _out_of_groups(result: Array, size: int) -> Array:
    return result.reshape(size, result.shape[0] // size, *result.shape[1:])


def _mapped(operand: Array, dim: int | None, size: int) -> tuple[Any, int]:
    """The operand with a mapped axis, and its position."""
    if dim is None:
        return jnp.broadcast_to(operand[None], (size, *operand.shape)), 0
    return operand, dim
