"""`Quantised`: weights as 8-bit integers times one scale per output."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int8

from snnjax._check import check_float_array, check_shape, fail
from snnjax.synapses import Synapses, targets_or_beyond


class Quantised(NamedTuple):
    """Quantised weights, ``weights = scale * values``; 4-bit values are stored as int8 too.

    They replace weights where nothing is trained. Their dtype is that of the scale. Weights of synapses have one axis,
    and a scale for each target.
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


def dequantise(quantised: Quantised, synapses: Synapses | None = None) -> Float[Array, "*inputs outputs"]:
    """Reconstruct weights from quantised ones, ``scale * values``; those of `synapses` with the scale of their target.

    Example:
        >>> import jax.numpy as jnp
        >>> from snnjax.quantisation import Quantised, dequantise
        >>> dequantise(Quantised(jnp.array([[2, -1]], jnp.int8), jnp.array([0.5, 0.25])))
        Array([[ 1.  , -0.25]], dtype=float32)
    """
    values = quantised.values.astype(quantised.dtype)
    return (
        scaled(values, quantised.scale)
        if synapses is None
        else at_targets(quantised.scale, synapses) * values
    )


def at_targets(row: Float[Array, " targets"], synapses: Synapses, nowhere: float = 0.0) -> Array:
    """What a row holds of the target of each synapse, `nowhere` where that is out of range."""
    return jnp.take(row, targets_or_beyond(synapses), mode="fill", fill_value=nowhere)


def scaled(sums: Array, scale: Array) -> Array:
    """``scale * sums``, with the outputs on the last axis."""
    return scale.reshape((1,) * (sums.ndim - 1) + (-1,)) * sums


def unscaled(weights: Any) -> Array:
    """The stored numbers of weights: for quantised ones, without their scale."""
    return weights.values if isinstance(weights, Quantised) else weights


def check_weights(op: str, argument: str, weights: Any, num_targets: int | None = None) -> None:
    """Check that weights are a floating-point array, or quantised: those of synapses with a scale for each target."""
    if not isinstance(weights, Quantised):
        return check_float_array(op, argument, weights)
    given = "weights" if num_targets is None else "weights, synapses=synapses"
    hint, dtype = f"Make them with quantisation.quantise({given})", weights.values.dtype.name
    if dtype != "int8":
        fail(f"{op}: `{argument}.values` must have dtype int8, got {dtype}. {hint}.")
    check_float_array(op, f"{argument}.scale", weights.scale)
    outputs = weights.shape[-1:] if num_targets is None else (num_targets,)
    axes = "outputs" if num_targets is None else "targets"
    return check_shape(op, f"{argument}.scale", weights.scale, outputs, axes, hint)


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
