"""Quantised weights of 8 or 4 bits.

Quantisation is symmetric and per channel: each output has its own scale, and 0 stays 0. `straight_through` rounds the
weights of a network during training; `quantise_network` then makes the network to run, on rows of int8; `quantise`
computes what hardware stores.
"""

from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from snnjax._check import check_choice, check_float_array, fail, type_words
from snnjax._quantised import Quantised as Quantised
from snnjax._quantised import dequantise as dequantise
from snnjax.blocks.linear import LinearParams
from snnjax.graph.network import Params

BITS = (8, 4)


def quantise(weights: Float[Array, "*inputs outputs"], bits: int = 8) -> Quantised:
    """Round weights to integers of `bits` bits, symmetric, with one scale per output.

    With ``most = 2^(bits - 1) - 1`` and ``scale[j] = max_i |weights[i, j]| / most``,
    ``values = round(weights / scale)`` lies in ``[-most, most]``. A channel of zeros has scale 1,
    and one with a non-finite entry has the scale inf or NaN, so that it is not mistaken for numbers.

    Args:
        weights: weights with the outputs, or the channels of a convolution, on the last axis.
        bits: 8 or 4.

    Raises:
        ValueError: if the weights are not floating-point, or `bits` is neither 8 nor 4.

    Example:
        >>> import jax.numpy as jnp
        >>> from snnjax.quantisation import dequantise, quantise
        >>> stored = quantise(jnp.array([[1.27, 0.0], [-0.5, 0.0]]))
        >>> stored.values
        Array([[127,   0],
               [-50,   0]], dtype=int8)
        >>> dequantise(stored)[1, 0]
        Array(-0.5, dtype=float32)

    Reference:
        Krishnamoorthi 2018, arXiv:1806.08342.
    """
    check_float_array("quantise", "weights", weights)
    check_choice("quantise", "bits", bits, BITS)
    if weights.ndim == 0:
        fail(
            "quantise: `weights` must have an output axis, got a number. Add it, for instance weights[None]."
        )
    most = 2 ** (bits - 1) - 1
    largest = jnp.max(jnp.abs(weights), axis=tuple(range(weights.ndim - 1)), initial=0)
    scale = jnp.where(largest == 0, jnp.ones_like(largest), largest / most)
    rows = jnp.round(weights / scale.reshape((1,) * (weights.ndim - 1) + (-1,)))
    return Quantised(jnp.clip(rows, -most, most).astype(jnp.int8), scale)


def quantise_network(params: Params, bits: int = 8) -> Params:
    """Quantise the weights of all connections of a network, to run it: `Network.apply` reads rows of int8.

    The result is that of ``straight_through(params, bits)`` up to rounding: rows of spikes are summed as integers,
    which is exact, and scaled once. The CPU kernels read int8, and the references elsewhere convert it; a convolution,
    which has few weights, converts them first. Biases, neuron parameters, connections with synaptic delays, and arrays
    of one's own blocks that are no `blocks.LinearParams` are unchanged. Gradients raise an error.

    Raises:
        ValueError: if `bits` is neither 8 nor 4.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> import snnjax
        >>> from snnjax.quantisation import quantise_network
        >>> net = snnjax.network(4, [snnjax.layer(3)], snnjax.leaky_readout(2))
        >>> params = quantise_network(net.init(jax.random.key(0)))
        >>> params["layer_0/connection"].weights.values.dtype
        dtype('int8')
        >>> net.apply(params, None, jnp.ones((5, 1, 4)))[0].output.shape
        (5, 1, 2)

    Reference:
        Krishnamoorthi 2018, arXiv:1806.08342.
    """
    check_choice("quantise_network", "bits", bits, BITS)
    return _with_weights("quantise_network", params, lambda weights: quantise(weights, bits))


def straight_through(params: Params, bits: int = 8) -> Params:
    """Round the weights of all connections of a network, with the gradient of the identity.

    Call it inside the loss: ``network.apply(straight_through(params), ...)`` computes with rounded weights, and the
    gradient reaches the full-precision weights of the optimiser. What `quantise_network` leaves alone is unchanged.

    Raises:
        ValueError: if `bits` is neither 8 nor 4.

    Example:
        >>> import jax
        >>> import snnjax
        >>> from snnjax.quantisation import straight_through
        >>> net = snnjax.network(4, [snnjax.layer(3)], snnjax.leaky_readout(2))
        >>> params = net.init(jax.random.key(0))
        >>> rounded = straight_through(params, bits=4)["layer_0/connection"].weights
        >>> len(set((rounded[:, 0] / abs(rounded[:, 0]).max() * 7).round().tolist())) <= 15
        True

    Reference:
        Bengio et al. 2013, arXiv:1308.3432 (straight-through); Krishnamoorthi 2018, arXiv:1806.08342.
    """
    check_choice("straight_through", "bits", bits, BITS)

    def rounded(weights: Array) -> Array:
        change = dequantise(quantise(weights, bits)).astype(weights.dtype) - weights
        return weights + jax.lax.stop_gradient(change)

    return _with_weights("straight_through", params, rounded)


def _with_weights(op: str, params: Params, change: Callable[[Any], Any]) -> Params:
    """The parameters with the weights of all connections changed, those of recurrent ones too."""
    if not isinstance(params, Mapping):
        fail(
            f"{op}: `params` must be a dict by block, got {type_words(params)}. Make them with network.init(key)."
        )

    def changed(part: Any) -> Any:
        return part._replace(weights=change(part.weights)) if isinstance(part, LinearParams) else part

    return jax.tree.map(changed, params, is_leaf=lambda part: isinstance(part, LinearParams))
