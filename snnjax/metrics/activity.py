"""Activity of a network: how active it is, whether lists overflow, and whether a layer is silent.

`activity` is an output of a network: one array ``[batch, neurons]`` per layer, true mean rates in spikes per step.
"""

from collections.abc import Mapping, Sequence

import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Integer

from snnjax._check import check_shape, fail, plural, type_words
from snnjax._types import as_int32, upcast
from snnjax.metrics.decode import check_lengths

Activity = Mapping[str, Float[Array, "batch _"]] | Sequence[Float[Array, "batch _"]]


def mean_activity(activity: Activity) -> Float[Array, " layers"]:
    """Compute the mean rate of each layer over batch and neurons, in spikes per neuron and step.

    Errors: there is no layer, or the activity is not [batch, neurons].

    Example:
        >>> import jax.numpy as jnp
        >>> from snnjax.metrics import mean_activity
        >>> mean_activity([jnp.array([[0.0, 0.5]]), jnp.array([[0.125]])])
        Array([0.25 , 0.125], dtype=float32)
    """
    activity = rates_of("mean_activity", activity)
    return jnp.stack([jnp.mean(upcast(rates)) for rates in activity])


def silent_layers(activity: Activity) -> Float[Array, " layers"]:
    """Compute the fraction of each layer's neurons that never spike in the batch: 1 is a silent layer.

    Errors: those of `mean_activity`.

    Example:
        >>> import jax.numpy as jnp
        >>> from snnjax.metrics import silent_layers
        >>> silent_layers([jnp.array([[0.0, 0.5], [0.0, 0.0]]), jnp.zeros((2, 3))])
        Array([0.5, 1. ], dtype=float32)
    """
    activity = rates_of("silent_layers", activity)
    return jnp.stack([jnp.mean(jnp.all(rates == 0, axis=0), dtype=jnp.float32) for rates in activity])


def activation_sparsity(activity: Activity) -> Float[Array, ""]:
    """Compute NeuroBench's activation sparsity: the fraction of zero neuron outputs, over all layers, batch and steps.

    ``1 - sum_l sum_n mean_b min(activity[l][b, n], 1) / sum_l neurons[l]``

    Spikes of integers count as their magnitudes in the activity, so of these it is a lower bound. For the exact one,
    pass the share of steps with a spike in place of their activity:
    ``input_counts(output.recorded[name], lengths) / lengths[:, None]``.

    Errors: those of `mean_activity`.

    Example:
        >>> import jax.numpy as jnp
        >>> from snnjax.metrics import activation_sparsity
        >>> activation_sparsity([jnp.full((2, 3), 0.25), jnp.zeros((2, 1))])
        Array(0.8125, dtype=float32)

    Reference:
        Yik et al. 2025, doi:10.1038/s41467-025-56739-4.
    """
    activity = rates_of("activation_sparsity", activity)
    # A neuron has at most one output in a step, which is at least 1 if it is graded.
    shares = (jnp.minimum(upcast(rates), 1) for rates in activity)
    spikes = jnp.sum(jnp.stack([jnp.sum(jnp.mean(share, axis=0)) for share in shares]))
    return 1 - spikes / sum(rates.shape[1] for rates in activity)


def dropped_share(
    dropped: Mapping[str, Int[Array, " batch"]] | Sequence[Int[Array, " batch"]],
    activity: Activity,
    lengths: Integer[Array, " batch"],
) -> Float[Array, " layers"]:
    """Compute the fraction of each layer's spikes that did not fit into its lists; 0 for a layer without spikes.

    ``sum_b dropped[l][b] / sum_b (lengths[b] * sum_n activity[l][b, n])``

    Args:
        dropped: number of spikes beyond the capacity, one array per layer, as returned by networks.
        activity: true rates, including spikes beyond the capacity.
        lengths: number of steps of each sequence.

    Raises:
        ValueError: if these do not match.

    Example:
        >>> import jax.numpy as jnp
        >>> from snnjax.metrics import dropped_share
        >>> activity, lengths = [jnp.full((1, 8), 0.5)], jnp.array([10])  # 40 spikes
        >>> dropped_share([jnp.array([2])], activity, lengths)
        Array([0.05], dtype=float32)
    """
    # `jax.jit` may have sorted one of them.
    if isinstance(dropped, Mapping) and isinstance(activity, Mapping):
        dropped = [dropped[name] for name in activity if name in dropped]
    activity = rates_of("dropped_share", activity)
    dropped = list(dropped.values()) if isinstance(dropped, Mapping) else list(dropped)
    if len(dropped) != len(activity):
        layers, hint = plural(len(activity), "layer"), "Pass both as the network returned them"
        fail(f"dropped_share: `dropped` must hold {layers}, got {len(dropped)}. {hint}.")
    check_lengths("dropped_share", lengths, None, activity[0].shape[0])
    shares = []
    for layer, (lost, rates) in enumerate(zip(dropped, activity, strict=True)):
        hint = "Pass both as the network returned them"
        check_shape("dropped_share", f"dropped[{layer}]", lost, rates.shape[:1], "batch", hint)
        spikes = jnp.sum(upcast(rates), axis=1)
        spikes = jnp.sum(spikes * as_int32(lengths).astype(spikes.dtype))
        # Rates times steps are spike counts up to rounding: less than half a spike means none.
        shares.append(jnp.where(spikes > 0.5, jnp.sum(lost).astype(spikes.dtype) / jnp.maximum(spikes, 1), 0))
    return jnp.stack(shares)


def rates_of(op: str, activity: Activity) -> list[Float[Array, "batch _"]]:
    """The rates of each layer, in the order of `activity`, after checking them."""
    hint = "Pass the activity that a network returns, one array per layer"
    if hasattr(activity, "shape"):  # such as spikes, whose first axis is time
        fail(f"{op}: `activity` must be a dict or a list by layer, got {type_words(activity)}. {hint}.")
    rates_of_layers = list(activity.values()) if isinstance(activity, Mapping) else list(activity)
    if len(rates_of_layers) == 0:
        fail(f"{op}: `activity` must hold at least one layer, got none. {hint}.")
    for layer, rates in enumerate(rates_of_layers):
        check_shape(op, f"activity[{layer}]", rates, (None, None), "batch, neurons", hint)
    return rates_of_layers
