"""Which synapses exist changes during training: the weakest are pruned, and as many grow elsewhere."""

import functools
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PyTree

from snnjax._check import MAX_SIZE, check_array, check_float_array, check_shape, fail, short_repr
from snnjax._synapses import Synapses, targets_or_beyond
from snnjax._types import Unchecked


def prune(weights: Float[Array, " synapses"], fraction: float) -> Bool[Array, " synapses"]:
    """Choose the synapses that remain: all but those with the smallest absolute weights.

    Args:
        weights: one for each synapse.
        fraction: the share that is pruned, rounded to a number of synapses.

    Raises:
        ValueError: if the weights are not a floating-point vector, or the fraction is not between 0 and 1.

    Example:
        >>> import jax.numpy as jnp
        >>> from snnjax import prune
        >>> prune(jnp.array([0.1, -2.0, 0.5, -0.3]), 0.5)
        Array([False,  True,  True, False], dtype=bool)
    """
    check_float_array("prune", "weights", weights)
    check_shape("prune", "weights", weights, (None,), "synapses", "Pass those of one connection")
    if not isinstance(fraction, float | int) or not 0 <= fraction <= 1:
        hint = "Pass the share of synapses to prune, such as 0.3"
        fail(f"prune: `fraction` must be between 0 and 1, got {short_repr(fraction)}. {hint}.")
    return _all_but_smallest(weights, round(fraction * len(weights)))


def regrow(
    synapses: Synapses,
    arrays: PyTree,
    kept: Bool[Array, " synapses"],
    scores: Float[Array, "neurons targets"],
) -> tuple[Synapses, Any]:
    """Let as many synapses grow as are not kept, where `scores` are largest and no kept synapse is.

    With the absolute gradients of a dense matrix as scores, and `prune`, this is "rigging the lottery"; with random
    numbers it is sparse evolutionary training. The number of synapses, and thereby every shape, stays the same. It is a
    pure function, also under `jit`, and its cost is that of sorting `scores`.

    Args:
        synapses: which exist.
        arrays: a tree of arrays with one number for each synapse: the weights, and moments of the optimiser. New
            synapses have 0 in each.
        kept: which remain.
        scores: of all pairs; there may be several synapses between the same neurons, but none grows beside one, nor
            where the score is -inf. A synapse that then finds no place has a target out of range.

    Returns:
        The new synapses, sorted by the neurons that send and then by targets, and the arrays in their order.

    Raises:
        ValueError: if a shape or dtype does not fit the synapses, or there are 2**31 pairs or more.

    Example:
        >>> import jax.numpy as jnp
        >>> from snnjax import Synapses, prune, regrow
        >>> synapses = Synapses.from_mask(jnp.array([[True, False, True], [False, False, True]]))
        >>> weights = jnp.array([0.1, 2.0, 3.0])
        >>> scores = jnp.array([[0.0, 1.0, 9.0], [5.0, 0.0, 0.0]])
        >>> synapses, weights = regrow(synapses, weights, prune(weights, 0.3), scores)
        >>> synapses.to_dense(weights + 1)
        Array([[0., 0., 3.],
               [1., 0., 4.]], dtype=float32)

    Reference:
        Evci et al. 2020, arXiv:1911.11134; Mocanu et al. 2018, doi:10.1038/s41467-018-04316-3.
    """
    _check_regrow(synapses, arrays, kept, scores)
    return _regrown(synapses, arrays, kept, scores)


# Outside of `jax.jit`, these compile one program for each size, not one for each operation.
@functools.partial(jax.jit, static_argnums=1, inline=True)
def _all_but_smallest(weights: Array, count: int) -> Bool[Array, " synapses"]:
    order = jnp.argsort(jnp.abs(weights), stable=True)
    return jnp.ones(weights.shape, bool).at[order[:count]].set(False)


@functools.partial(jax.jit, inline=True)
def _regrown(synapses: Synapses, arrays: PyTree, kept: Array, scores: Array) -> tuple[Synapses, PyTree]:
    width, pairs = synapses.num_targets, scores.size
    targets = targets_or_beyond(synapses)
    place = jnp.where(targets < width, synapses.sources() * width + targets, pairs)
    occupied = jnp.zeros(pairs, bool).at[jnp.where(kept, place, pairs)].set(True, mode="drop")
    free = jnp.where(occupied, -jnp.inf, scores.reshape(-1))
    score, best = jax.lax.top_k(free, min(synapses.num_synapses, pairs))
    best = jnp.where(score == -jnp.inf, pairs, best.astype(jnp.int32))
    grown = jnp.cumsum(~kept, dtype=jnp.int32) - 1
    place = jnp.where(kept, place, jnp.take(best, grown, mode="fill", fill_value=pairs))
    order = jnp.argsort(place, stable=True)
    place = place[order]
    ends = jnp.cumsum(jnp.bincount(place // max(width, 1), length=synapses.num_neurons), dtype=jnp.int32)
    dtype = synapses.targets.dtype if width <= jnp.iinfo(synapses.targets.dtype).max else jnp.int32
    targets = jnp.where(place < pairs, place % max(width, 1), width).astype(dtype)

    def moved(array: Array) -> Array:
        return jnp.where(kept, array, jnp.zeros_like(array))[order]

    return Synapses(ends, targets, width), jax.tree.map(moved, arrays)


def _check_regrow(synapses: Any, arrays: PyTree, kept: Unchecked, scores: Unchecked) -> None:
    if not isinstance(synapses, Synapses):
        fail(
            f"regrow: `synapses` must be Synapses, got {short_repr(synapses)}. Pass those of the connection."
        )
    each = (synapses.num_synapses,)
    hint = "Pass one for each synapse"
    for array in jax.tree.leaves(arrays):
        check_array("regrow", "arrays", array)
        check_shape("regrow", "arrays", array, each, "synapses", hint)
    check_array("regrow", "kept", kept)
    check_shape("regrow", "kept", kept, each, "synapses", hint)
    if kept.dtype != bool:
        fail(f"regrow: `kept` must be bool, got {kept.dtype.name}. Use prune.")
    check_float_array("regrow", "scores", scores)
    shape = synapses.num_neurons, synapses.num_targets
    check_shape("regrow", "scores", scores, shape, "neurons, targets", "Pass one for each pair")
    if scores.size > MAX_SIZE:
        fail(
            f"regrow: `scores` must be at most {MAX_SIZE} numbers, got {scores.size}. Use several connections."
        )
