"""Pieces of a batch, which pass from stage to stage in a pipeline."""

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, PyTree

from snnjax._check import fail
from snnjax._types import Signal

BATCH = 1  # time comes first


def cut(leaf: Array, pieces: int, axis: int = BATCH) -> Array:
    """Pieces of the batch, [pieces, time, samples of a piece, ...]."""
    before, size, after = leaf.shape[:axis], leaf.shape[axis], leaf.shape[axis + 1 :]
    return jnp.moveaxis(leaf.reshape(*before, pieces, size // pieces, *after), axis, 0)


def joined(leaf: Array) -> Array:
    """The whole batch, [time, batch, ...]: undoes `cut`."""
    pieces, steps, size, *others = leaf.shape
    return jnp.moveaxis(leaf, 0, 1).reshape(steps, pieces * size, *others)


def lengthened(leaf: Array, count: int) -> Array:
    """`leaf` padded with pieces of zeros to `count` pieces."""
    return jnp.concatenate([leaf, jnp.zeros_like(leaf, shape=(count - leaf.shape[0], *leaf.shape[1:]))])


def read(tree: PyTree, place: Any) -> PyTree:
    """What is at `place` of the leading axis."""
    return jax.tree.map(lambda leaf: lax.dynamic_index_in_dim(leaf, place, keepdims=False), tree)


def choose(condition: Array, if_true: PyTree, if_false: PyTree) -> PyTree:
    """One of two trees."""
    return jax.tree.map(lambda a, b: jnp.where(condition, a, b), if_true, if_false)


def batch_of(op: str, inputs: Signal) -> int:
    """The number of samples, after checking that all leaves have them."""
    shapes = [list(leaf.shape) for leaf in jax.tree.leaves(inputs)]
    sizes = {shape[BATCH] if len(shape) > BATCH else -1 for shape in shapes}
    if len(sizes) != 1 or min(sizes) < 0:
        expected, hint = "have leaves [time, batch, ...] of one batch", "Time comes first, then the batch"
        fail(f"{op}: `inputs` must {expected}, got {shapes}. {hint}.")
    return sizes.pop()


def check_stage(op: str, x: Signal, y: Signal) -> None:
    """Check that the output of a stage fits the next stage."""
    hint = "Put a layer of another width before or after the pipeline"
    before, after = jax.tree.structure(x), jax.tree.structure(y)
    if before != after:
        fail(f"{op}: `stage` must return a tree like its input, {before}, got {after}. {hint}.")
    forms, others = _forms(x), _forms(y)
    if forms != others:
        fail(f"{op}: `stage` must return arrays like its input, {forms}, got {others}. {hint}.")


def _forms(tree: PyTree) -> str:
    return ", ".join(f"{leaf.dtype}{list(leaf.shape)}" for leaf in jax.tree.leaves(tree))
