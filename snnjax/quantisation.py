"""Quantised weights of 8 or 4 bits.

Quantisation is symmetric and per channel: each output has its own scale, and 0 stays 0. `fake_quantise` rounds the
weights of a network during training; `quantise_network` then makes the network to run, on rows of int8; `quantise`
computes what hardware stores.
"""

import functools
from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from snnjax._check import check_choice, check_float_array, check_shape, fail, type_words
from snnjax._quantised import Quantised as Quantised
from snnjax._quantised import at_targets, scale_dtype
from snnjax._quantised import dequantise as dequantise
from snnjax._synapses import Synapses, targets_or_beyond
from snnjax._types import upcast
from snnjax.blocks._sparse import SparseParams
from snnjax.blocks.linear import LinearParams
from snnjax.graph.network import Params, Stats

BITS = (8, 4)


def quantise(
    weights: Float[Array, "*inputs outputs"], bits: int = 8, synapses: Synapses | None = None
) -> Quantised:
    """Round weights to integers of `bits` bits, symmetric, with one scale per output.

    With ``most = 2^(bits - 1) - 1`` and ``scale[j] = max_i |weights[i, j]| / most``,
    ``values = round(weights / scale)`` lies in ``[-most, most]``. Scales have the dtype of the weights, float32 for
    float16, and are normal numbers. A channel of zeros has scale 1, and one with a non-finite entry has the scale inf
    or NaN, so that it is not mistaken for numbers.

    Args:
        weights: weights with the outputs, or the channels of a convolution, on the last axis.
        bits: 8 or 4.
        synapses: those that weights with one axis belong to: each target then has a scale.

    Raises:
        ValueError: if the weights are not floating-point, or not one for each synapse, or `bits` is neither 8 nor 4.

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
    most, precise = 2 ** (bits - 1) - 1, upcast(weights)
    sizes = jnp.abs(precise)
    if synapses is None:
        largest = jnp.max(sizes, axis=tuple(range(weights.ndim - 1)), initial=0)
    else:
        check_shape(
            "quantise", "weights", weights, (synapses.num_synapses,), "synapses", "Pass one for each synapse"
        )
        none = jnp.zeros(synapses.num_targets, precise.dtype)
        largest = none.at[targets_or_beyond(synapses)].max(sizes, mode="drop")
    # XLA takes smaller numbers for 0, by which nothing is divided.
    scale = jnp.maximum(largest / most, jnp.finfo(largest.dtype).tiny)
    scale = jnp.where(largest == 0, jnp.ones_like(largest), scale)
    scale = scale.astype(scale_dtype(weights.dtype))
    steps = (
        scale.reshape((1,) * (weights.ndim - 1) + (-1,))
        if synapses is None
        else at_targets(scale, synapses, 1.0)
    )
    rounded = jnp.round(precise / upcast(steps))
    return Quantised(jnp.clip(rounded, -most, most).astype(jnp.int8), scale, jnp.dtype(weights.dtype))


def quantise_network(params: Params, bits: int = 8, stats: Stats | None = None) -> Params:
    """Quantise the weights of all connections of a network, to run it: `Network.apply` reads rows of int8.

    The result is that of ``fake_quantise(params, bits)`` up to rounding: rows of spikes are summed as integers,
    which is exact, and scaled once. The CPU kernels read int8, and the references elsewhere convert it; a convolution,
    which has few weights, converts them first. Biases, neuron parameters, connections with synaptic delays, and arrays
    of one's own blocks that are no `blocks.LinearParams` are unchanged. Gradients raise an error.

    Args:
        params: of a network.
        bits: 8 or 4.
        stats: of the network; those of `sparse` connections hold the synapses, each target of which has a scale.

    Raises:
        ValueError: if `bits` is neither 8 nor 4, or the synapses of a sparse connection are missing.

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
    return _with_weights("quantise_network", params, stats, functools.partial(quantise, bits=bits))


def fake_quantise(params: Params, bits: int = 8, stats: Stats | None = None) -> Params:
    """Round the weights of all connections of a network, with the gradient of the identity.

    Call it inside the loss: ``network.apply(fake_quantise(params), ...)`` computes with rounded weights, and the
    gradient reaches the full-precision weights of the optimiser. What `quantise_network` leaves alone is unchanged; the
    arguments are the same.

    Raises:
        ValueError: if `bits` is neither 8 nor 4, or the synapses of a sparse connection are missing.

    Example:
        >>> import jax
        >>> import snnjax
        >>> from snnjax.quantisation import fake_quantise
        >>> net = snnjax.network(4, [snnjax.layer(3)], snnjax.leaky_readout(2))
        >>> params = net.init(jax.random.key(0))
        >>> rounded = fake_quantise(params, bits=4)["layer_0/connection"].weights
        >>> len(set((rounded[:, 0] / abs(rounded[:, 0]).max() * 7).round().tolist())) <= 15
        True

    Reference:
        Bengio et al. 2013, arXiv:1308.3432 (straight-through); Krishnamoorthi 2018, arXiv:1806.08342.
    """
    check_choice("fake_quantise", "bits", bits, BITS)

    def rounded(weights: Array, *, synapses: Synapses | None = None) -> Array:
        stored = quantise(weights, bits, synapses)
        change = dequantise(stored, synapses).astype(weights.dtype) - weights
        return weights + jax.lax.stop_gradient(change)

    return _with_weights("fake_quantise", params, stats, rounded)


def _with_weights(op: str, params: Params, stats: Stats | None, change: Callable[..., Any]) -> Params:
    """The parameters with the weights of all connections changed, those of recurrent ones too."""
    if not isinstance(params, Mapping):
        fail(
            f"{op}: `params` must be a dict by block, got {type_words(params)}. Make them with network.init(key)."
        )

    held = dict(jax.tree_util.tree_leaves_with_path(stats, is_leaf=lambda part: isinstance(part, Synapses)))

    def changed(path: Any, part: Any) -> Any:
        if isinstance(part, LinearParams):
            return part._replace(weights=change(part.weights))
        if not isinstance(part, SparseParams):
            return part
        synapses = held.get(path)
        if not isinstance(synapses, Synapses):
            name = jax.tree_util.keystr(path)
            fail(f"{op}: `stats{name}` must be Synapses, got none. Pass stats=network.initial_stats(key).")
        return part._replace(weights=change(part.weights, synapses=synapses))

    is_connection = lambda part: isinstance(part, LinearParams | SparseParams)  # noqa: E731
    return jax.tree_util.tree_map_with_path(changed, params, is_leaf=is_connection)
