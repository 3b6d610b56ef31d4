"""`Quantised`: weights as 8-bit integers times one scale per output."""

from collections.abc import Iterable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import DTypeLike
from jaxtyping import Array, Float, Int8, PyTree

from snnjax._check import check_float_array, check_shape, fail
from snnjax._synapses import Synapses, targets_or_beyond
from snnjax._types import Unchecked, Weights, accumulation_dtype, upcast


class Quantised(NamedTuple):
    """Quantised weights, ``weights = scale * values``; 4-bit values are stored as int8 too.

    They replace weights where nothing is trained. Scales have the dtype of the weights, but float32 for float16, whose
    range is too small. Weights of synapses have one axis, and a scale for each target.
    """

    values: Int8[Array, "*inputs outputs"]
    scale: Float[Array, " outputs"]
    dtype: DTypeLike = np.dtype(
        np.float32
    )  # of the weights that they represent, and of products with them; static

    @property
    def shape(self) -> tuple[int, ...]:
        """As for the weights."""
        return self.values.shape

    @property
    def ndim(self) -> int:
        """As for the weights."""
        return self.values.ndim

    def astype(self, dtype: DTypeLike) -> "Quantised":
        """The same integers, as weights of this dtype."""
        return self._replace(scale=self.scale.astype(scale_dtype(dtype)), dtype=jnp.dtype(dtype))


def scale_dtype(dtype: DTypeLike) -> DTypeLike:
    """The dtype of the scales of weights; bfloat16 has the range of float32, and the kernels read it."""
    return dtype if dtype == jnp.bfloat16 else accumulation_dtype(dtype)


def _children(weights: Quantised) -> tuple[tuple[tuple[Any, Any], ...], np.dtype]:
    keyed = ((jax.tree_util.GetAttrKey(name), getattr(weights, name)) for name in ("values", "scale"))
    return tuple(keyed), jnp.dtype(weights.dtype)


def _made(dtype: np.dtype, children: Iterable[Any]) -> Quantised:
    values, scale = children
    return Quantised(values, scale, dtype)


jax.tree_util.register_pytree_with_keys(Quantised, _children, _made)


def dequantise(quantised: Quantised, synapses: Synapses | None = None) -> Float[Array, "*inputs outputs"]:
    """Reconstruct weights from quantised ones, ``scale * values``; those of `synapses` with the scale of their target.

    Example:
        >>> import jax.numpy as jnp
        >>> from snnjax.quantisation import Quantised, dequantise
        >>> dequantise(Quantised(jnp.array([[2, -1]], jnp.int8), jnp.array([0.5, 0.25])))
        Array([[ 1.  , -0.25]], dtype=float32)
    """
    scale = upcast(quantised.scale)
    values = quantised.values.astype(scale.dtype)
    weights = scaled(values, scale) if synapses is None else at_targets(scale, synapses) * values
    return weights.astype(quantised.dtype)


def at_targets(row: Float[Array, " targets"], synapses: Synapses, nowhere: float = 0.0) -> Array:
    """What a row holds of the target of each synapse, `nowhere` where that is out of range."""
    return jnp.take(row, targets_or_beyond(synapses), mode="fill", fill_value=nowhere)


def scaled(sums: Array, scale: Array) -> Array:
    """``scale * sums``, with the outputs on the last axis."""
    return scale.reshape((1,) * (sums.ndim - 1) + (-1,)) * sums


def unscaled(weights: Weights) -> Array:
    """The stored numbers of weights: for quantised ones, without their scale."""
    return weights.values if isinstance(weights, Quantised) else weights


def check_weights(op: str, argument: str, weights: Unchecked, num_targets: int | None = None) -> None:
    """Check that weights are a floating-point array, or quantised: those of synapses with a scale for each target."""
    if not isinstance(weights, Quantised):
        return check_float_array(op, argument, weights)
    given = "weights" if num_targets is None else "weights, synapses=synapses"
    hint, dtype = f"Make them with quantisation.quantise({given})", weights.values.dtype.name
    if dtype != "int8":
        fail(f"{op}: `{argument}.values` must have dtype int8, got {dtype}. {hint}.")
    wanted = jnp.dtype(scale_dtype(weights.dtype)).name
    check_float_array(op, f"{argument}.scale", weights.scale)
    if weights.scale.dtype != wanted:
        fail(f"{op}: `{argument}.scale` must have dtype {wanted}, got {weights.scale.dtype.name}. {hint}.")
    outputs = weights.shape[-1:] if num_targets is None else (num_targets,)
    axes = "outputs" if num_targets is None else "targets"
    return check_shape(op, f"{argument}.scale", weights.scale, outputs, axes, hint)


def any_quantised(tree: PyTree) -> bool:
    """Whether any weights in a tree are quantised."""
    leaves = jax.tree.leaves(tree, is_leaf=lambda leaf: isinstance(leaf, Quantised))
    return any(isinstance(leaf, Quantised) for leaf in leaves)


def refuse_gradient(op: str, tree: PyTree) -> None:
    """Raise an error for gradients through quantised weights, which have none."""
    if any_quantised(tree):
        fail(
            f"{op}: `weights` must be floating-point where a gradient is taken, got int8. "
            "Train with quantisation.fake_quantise(params)."
        )
