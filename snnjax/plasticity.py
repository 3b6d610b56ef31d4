"""Local plasticity: presynaptic and postsynaptic spikes change weights, without a loss."""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from snnjax._check import check_shape, fail, plural, type_words
from snnjax.sparse_spikes import SparseSpikes, in_range, values_of


class STDPTraces(NamedTuple):
    """The low-pass filtered spikes of neurons: ``trace = decay * trace' + s``."""

    before: Float[Array, " inputs"]
    after: Float[Array, " neurons"]


def stdp(
    weights: Float[Array, "inputs neurons"],
    traces: STDPTraces,
    before: SparseSpikes,
    after: SparseSpikes,
    *,
    decay: float | tuple[float, float] = 0.95,
    rates: tuple[float, float] = (0.01, 0.012),
    bounds: tuple[float, float] = (0.0, 1.0),
) -> tuple[Float[Array, "inputs neurons"], STDPTraces]:
    r"""Do one step of pair-based spike-timing-dependent plasticity with all-to-all pairs.

    With the presynaptic spikes :math:`s` and the postsynaptic spikes :math:`z` of this step, `decay`
    :math:`(\alpha_s, \alpha_z)` and `rates` :math:`(\eta_+, \eta_-)`:

    .. math::

        x &= \alpha_s x' + s, \qquad y = \alpha_z y' + z \\
        W_{ij} &\leftarrow W_{ij} + \eta_+ x'_i z_j - \eta_- y'_j s_i, \quad \text{clipped to bounds}

    An input before a spike strengthens the weight, an input after it weakens it, and one in the same step does neither.
    Only the rows of inputs and the columns of neurons that spike are read and written: with few spikes, nearly all
    weights remain untouched. There is no derivative.

    Args:
        weights: dense weights.
        traces: from the previous step; `stdp_traces` initially.
        before: the inputs that spike in this step, a list with ids ``[capacity]``.
        after: the neurons that spike, likewise. Entries with value 0 and unused slots have no effect.
        decay: decay of the traces, one value or a pair for `before` and `after`.
        rates: learning rates of strengthening and of weakening.
        bounds: smallest and largest value of the updated weights.

    Raises:
        ValueError: if the lists do not match the weights.

    Example:
        >>> import jax.numpy as jnp
        >>> from snnjax import SparseSpikes
        >>> from snnjax.plasticity import stdp, stdp_traces
        >>> weights = jnp.full((2, 1), 0.5, "float32")
        >>> nobody = SparseSpikes.from_ids(jnp.array([1]), num_neurons=1)
        >>> first = SparseSpikes.from_ids(jnp.array([0]), num_neurons=2)
        >>> weights, traces = stdp(weights, stdp_traces(weights), first, nobody)  # input 0 spikes
        >>> fires, silence = (
        ...     SparseSpikes.from_ids(jnp.array([0]), 1),
        ...     SparseSpikes.from_ids(jnp.array([2]), 2),
        ... )
        >>> stdp(weights, traces, silence, fires)[0][:, 0]  # then the neuron
        Array([0.51, 0.5 ], dtype=float32)

    Reference:
        Morrison, Diesmann and Gerstner 2008, doi:10.1007/s00422-008-0233-1.
    """
    _check_list("before", before, weights.shape[0])
    _check_list("after", after, weights.shape[1])
    decays = decay if isinstance(decay, tuple) else (decay, decay)
    rows, columns = _ids(before), _ids(after)
    rise, fall = rates
    # Both changes use the traces before this step; an id out of range reads 0 and is dropped.
    stronger = jnp.broadcast_to(rise * traces.before[:, None], (weights.shape[0], len(columns)))
    weaker = -fall * jnp.broadcast_to(traces.after[None, :], (len(rows), weights.shape[1]))
    weights = weights.at[:, columns].add(stronger.astype(weights.dtype), mode="drop")
    weights = weights.at[rows].add(weaker.astype(weights.dtype), mode="drop")
    for axis, ids in ((1, columns), (0, rows)):
        at = weights.at[:, ids] if axis else weights.at[ids]
        weights = at.set(jnp.clip(at.get(mode="clip"), *bounds), mode="drop")
    kept = STDPTraces(decays[0] * traces.before, decays[1] * traces.after)
    new = STDPTraces(kept.before.at[rows].add(1, mode="drop"), kept.after.at[columns].add(1, mode="drop"))
    return weights, new


def stdp_traces(weights: Float[Array, "inputs neurons"]) -> STDPTraces:
    """Make the traces before the first spike, all 0.

    Example:
        >>> import jax.numpy as jnp
        >>> from snnjax.plasticity import stdp_traces
        >>> stdp_traces(jnp.ones((3, 2))).after.shape
        (2,)
    """
    return STDPTraces(jnp.zeros(weights.shape[0], weights.dtype), jnp.zeros(weights.shape[1], weights.dtype))


def _check_list(argument: str, spikes: SparseSpikes, num_neurons: int) -> None:
    if not isinstance(spikes, SparseSpikes):
        hint = "Build it with SparseSpikes.from_ids or from_dense"
        fail(f"stdp: `{argument}` must be SparseSpikes, got {type_words(spikes)}. {hint}.")
    hint = "Pass one step of one example, as in spikes[t, b], and vmap over a batch"
    check_shape("stdp", f"{argument}.ids", spikes.ids, (None,), "capacity", hint)
    if spikes.num_neurons != num_neurons:
        neurons = plural(num_neurons, "neuron")
        hint = "Pass one row of weights per input, and one column per neuron"
        fail(f"stdp: `{argument}` must hold {neurons}, like the weights, got {spikes.num_neurons}. {hint}.")


def _ids(spikes: SparseSpikes) -> Int[Array, " capacity"]:
    """The ids of spikes, without repetition; all other slots hold ids above every neuron."""
    ids = spikes.ids.astype(jnp.int32)
    fires = in_range(ids, spikes.num_neurons) & (values_of(spikes) != 0)
    ids = jnp.sort(jnp.where(fires, ids, spikes.num_neurons))
    again = jnp.concatenate([jnp.zeros(min(1, ids.shape[0]), bool), ids[1:] == ids[:-1]])
    return jnp.where(again, spikes.num_neurons, ids)
