"""Comparing trees of arrays, such as states: their structure, shapes and dtypes."""

from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree

from snnjax._check import fail, short_repr, type_words
from snnjax._quantised import Quantised
from snnjax._types import Unchecked

# Whether an array fits the one that it should be like.
Fits = Callable[[jax.ShapeDtypeStruct, Any], bool]


def same_array(like: jax.ShapeDtypeStruct, array: Unchecked) -> bool:
    """Whether an array of a state has the shape and dtype of `like`. No rows stand for spikes in transit that are 0."""
    shape = np.shape(array)
    is_same = shape == like.shape or (len(shape) == 3 and shape == (0, *like.shape[1:]))
    return is_same and dtype_of(array) == like.dtype


def same_shape(like: jax.ShapeDtypeStruct, array: Unchecked) -> bool:
    """Whether a parameter has the shape of `like`, and is floating-point if that is."""
    if isinstance(array, Quantised):
        return len(like.shape) > 1 and array.shape == like.shape and array.scale.shape == like.shape[-1:]
    dtype = dtype_of(array)
    kind = jnp.floating if jnp.issubdtype(like.dtype, jnp.floating) else like.dtype
    return np.shape(array) == like.shape and (dtype == like.dtype or jnp.issubdtype(dtype, kind))


def dtype_of(array: Unchecked) -> Unchecked:
    """The dtype that JAX gives an array or a Python number."""
    dtype = array.dtype if hasattr(array, "dtype") else jnp.result_type(array)
    return jax.dtypes.canonicalize_dtype(dtype, allow_extended_dtype=True)


def check_like(op: str, name: str, tree: PyTree, like: PyTree, fits: Fits, hint: str) -> None:
    """Check that a tree has the structure of `like`, and arrays that fit, or name the first that does not."""
    wanted, form = jax.tree.flatten(like)
    leaves, actual = jax.tree.flatten(tree, is_leaf=_is_quantised)
    if form == actual and all(map(fits, wanted, leaves)):
        return
    path, expected, got = _first_difference(name, like, tree, fits) or (name, f"be like {form}", actual)
    fail(f"{op}: `{path}` must {expected}, got {got}. {hint}.")


def _is_quantised(leaf: Unchecked) -> bool:
    return isinstance(leaf, Quantised)


def _first_difference(path: str, like: PyTree, tree: PyTree, fits: Fits) -> tuple[str, str, str] | None:
    """The path, what is expected there, and what is there instead; None if nothing differs."""
    if isinstance(like, jax.ShapeDtypeStruct):
        if _is_array(tree) and fits(like, tree):
            return None
        is_floating = fits is same_shape and jnp.issubdtype(like.dtype, jnp.floating)
        dtype = "floating-point " if is_floating else like.dtype.name
        return path, f"be {dtype}{list(like.shape)}", _words(tree)
    if type(like) is not type(tree):
        return path, f"be {_words(like)}", _words(tree)
    if isinstance(like, Mapping) and like.keys() != tree.keys():
        missing = [name for name in like if name not in tree]
        extra = [name for name in tree if name not in like]
        if missing:
            return path, f"hold {missing[0]}", "none of it"
        return path, "hold only blocks of this network", str(extra[0])
    children, others = _children(like), _children(tree)
    if len(children) != len(others) or [key for key, _ in children] != [key for key, _ in others]:
        return path, f"have {_count(children)}", _count(others)
    for (key, child), (_, other) in zip(children, others, strict=True):
        found = _first_difference(path + jax.tree_util.keystr(key), child, other, fits)
        if found is not None:
            return found
    return None


def _children(tree: PyTree) -> list[tuple[Any, Any]]:
    return jax.tree_util.tree_flatten_with_path(tree, is_leaf=lambda leaf: leaf is not tree)[0]


def _count(children: list[Any]) -> str:
    return "1 entry" if len(children) == 1 else f"{len(children)} entries"


def _is_array(value: Unchecked) -> bool:
    return isinstance(value, Quantised) or hasattr(value, "dtype") or isinstance(value, float | int)


def _words(value: Unchecked) -> str:
    if isinstance(value, Quantised):
        return f"int8{list(value.shape)} of quantised weights"
    if hasattr(value, "dtype"):
        return f"{value.dtype.name}{list(np.shape(value))}"
    return short_repr(value) if isinstance(value, float | int) else type_words(value)
