"""`Quantised`: weights as 8-bit integers times one scale per output."""

from typing import Any, NamedTuple

import jax
from jaxtyping import Array, Float, Int8

from snnjax._check import check_float_array, check_shape, fail


class Quantised(NamedTuple):
    """Quantised weights, ``weights = scale * values``; 4-bit values are stored as int8 too.

    They replace weights where nothing is trained. Their dtype is that of the scale.
    """

    values: Int8[Array, "*inputs outputs"]
    scale: Float[Array, " outputs"]

    @property
    def shape(self) -> tuple[int, ...]:
        """As for the weights."""
        return self.values.shape

    @property
    def ndim(self) -> int:
        """As for the weights."""
        return self.values.ndim

    @property
    def dtype(self) -> Any:
        """The dtype of the weights that they represent, and of products with them."""
        return self.scale.dtype

    def astype(self, dtype: Any) -> "Quantised":
        """The same integers, with a scale of this dtype."""
        return self._replace(scale=self.scale.astype(dtype))


def dequantise(quantised: Quantised) -> Float[Array, "*inputs outputs"]:
    """Reconstruct weights from quantised ones, ``scale * values``.

    Example:
        >>> import jax.numpy as jnp
        >>> from snnjax.quantisation import Quantised, dequantise
        >>> dequantise(Quantised(jnp.array([[2, -1]], jnp.int8), jnp.array([0.5, 0.25])))
        Array([[ 1.  , -0.25]], dtype=float32)
    """
    return scaled(quantised.values.astype(quantised.dtype), quantised.scale)


def scaled(sums: Array, scale: Array) -> Array:
    """``scale * sums``, with the outputs on the last axis."""
    return scale.reshape((1,) * (sums.ndim - 1) + (-1,)) * sums


def unscaled(weights: Any) -> Array:
    """The stored numbers of weights: for quantised ones, without their scale."""
    return weights.values if isinstance(weights, Quantised) else weights


def check_weights(op: str, argument: str, weights: Any) -> None:
    """Check that weights are a floating-point array, or quantised."""
    if not isinstance(weights, Quantised):
        return check_float_array(op, argument, weights)
    hint, dtype = "Make them with quantisation.quantise(weights)", weights.values.dtype.name
    if dtype != "int8":
        fail(f"{op}: `{argument}.values` must have dtype int8, got {dtype}. {hint}.")
    check_float_array(op, f"{argument}.scale", weights.scale)
    outputs = weights.shape[-1:]
    return check_shape(op, f"{argument}.scale", weights.scale, outputs, "outputs", hint)


def any_quantised(tree: Any) -> bool:
    """Whether any weights in a tree are quantised."""
    leaves = jax.tree.leaves(tree, is_leaf=lambda leaf: isinstance(leaf, Quantised))
    return any(isinstance(leaf, Quantised) for leaf in leaves)


def refuse_gradient(op: str, tree: Any) -> None:
    """Raise an error for gradients through quantised weights, which have none."""
    if any_quantised(tree):
        fail(
            f"{op}: `weights` must be floating-point where a gradient is taken, got int8. "
            "Train with quantisation.straight_through(params)."
        )
