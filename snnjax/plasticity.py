"""Local plasticity: presynaptic and postsynaptic spikes change weights, without a loss."""

import functools
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from snnjax._check import (
    check_float_array,
    check_integer,
    check_shape,
    concrete,
    fail,
    plural,
    short_repr,
    type_words,
)
from snnjax.sparse_spikes import SparseSpikes, in_range, values_of
from snnjax.synapses import Synapses, targets_or_beyond


class STDPTraces(NamedTuple):
    """The low-pass filtered spikes of neurons: ``trace = decay * trace' + s``."""

    before: Float[Array, " inputs"]
    after: Float[Array, " neurons"]


def stdp(
    weights: Float[Array, "*weights"],
    traces: STDPTraces,
    before: SparseSpikes,
    after: SparseSpikes,
    *,
    decay: float | tuple[float, float] = 0.95,
    rates: tuple[float, float] = (0.01, 0.012),
    bounds: tuple[float, float] = (0.0, 1.0),
    synapses: Synapses | None = None,
) -> tuple[Float[Array, "*weights"], STDPTraces]:
    r"""Do one step of pair-based spike-timing-dependent plasticity with all-to-all pairs.

    With the presynaptic spikes :math:`s` and the postsynaptic spikes :math:`z` of this step, `decay`
    :math:`(\alpha_s, \alpha_z)` and `rates` :math:`(\eta_+, \eta_-)`:

    .. math::

        x &= \alpha_s x' + s, \qquad y = \alpha_z y' + z \\
        W_{ij} &\leftarrow W_{ij} + \eta_+ x'_i z_j - \eta_- y'_j s_i, \quad \text{clipped to bounds}

    An input before a spike strengthens the weight, an input after it weakens it, and one in the same step does neither.
    Only the rows of inputs and the columns of neurons that spike are read and written: with few spikes, nearly all
    weights remain untouched. With `synapses` all of them are read. There is no derivative.

    Args:
        weights: dense weights ``[inputs, neurons]``, or one for each of `synapses`.
        traces: from the previous step; `stdp_traces` initially.
        before: the inputs that spike in this step, a list with ids ``[capacity]``.
        after: the neurons that spike, likewise. Entries with value 0 and unused slots have no effect.
        decay: decay of the traces, one value or a pair for `before` and `after`.
        rates: learning rates of strengthening and of weakening.
        bounds: smallest and largest value of the updated weights.
        synapses: which exist; None for dense weights. Their targets may be receptors of neurons, as those of
            `snnjax.simulate`.

    Raises:
        ValueError: if the lists or traces do not match the weights or synapses, or the weights not the synapses, the
            weights are no floating-point numbers, a decay is not between 0 and 1, or the bounds are in the wrong order.

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
    inputs, neurons = _sizes(weights, traces, synapses)
    _check_list("before", before, inputs)
    _check_list("after", after, neurons)
    decays = decay if isinstance(decay, tuple) else (decay, decay)
    _check_shares("stdp", "decay", *decays)
    known = [concrete(bound) for bound in bounds]
    if known[0] is not None and known[1] is not None and not np.all(known[0] <= known[1]):
        fail(f"stdp: `bounds` must be the smallest and the largest weight, got {bounds}. Swap them.")
    rows, columns = _ids(before), _ids(after)
    # Both changes use the traces before this step.
    change = _change_dense if synapses is None else functools.partial(_change_sparse, synapses)
    weights = change(weights, traces, rows, columns, rates, bounds)
    kept = STDPTraces(decays[0] * traces.before, decays[1] * traces.after)
    new = STDPTraces(kept.before.at[rows].add(1, mode="drop"), kept.after.at[columns].add(1, mode="drop"))
    return weights, new


def _change_dense(
    weights: Array, traces: STDPTraces, rows: Array, columns: Array, rates: Any, bounds: Any
) -> Array:
    """The weights after a step: only rows and columns of spikes are read; an id out of range reads 0 and is dropped."""
    rise, fall = rates
    stronger = jnp.broadcast_to(rise * traces.before[:, None], (weights.shape[0], len(columns)))
    weaker = -fall * jnp.broadcast_to(traces.after[None, :], (len(rows), weights.shape[1]))
    weights = weights.at[:, columns].add(stronger.astype(weights.dtype), mode="drop")
    weights = weights.at[rows].add(weaker.astype(weights.dtype), mode="drop")
    for axis, ids in ((1, columns), (0, rows)):
        at = weights.at[:, ids] if axis else weights.at[ids]
        weights = at.set(jnp.clip(at.get(mode="clip"), *bounds), mode="drop")
    return weights


def _change_sparse(
    synapses: Synapses,
    weights: Array,
    traces: STDPTraces,
    rows: Array,
    columns: Array,
    rates: Any,
    bounds: Any,
) -> Array:
    """The same for one weight a synapse."""
    inputs, neurons = (len(trace) for trace in traces)
    targets, sources = targets_or_beyond(synapses), synapses.sources()
    receivers = jnp.where(targets < synapses.num_targets, targets % max(neurons, 1), neurons)

    def at(values: Array, ids: Array) -> Array:
        return jnp.take(values, ids, mode="fill", fill_value=0)

    sends = at(jnp.zeros(inputs, bool).at[rows].set(True, mode="drop"), sources)
    fires = at(jnp.zeros(neurons, bool).at[columns].set(True, mode="drop"), receivers)
    stronger = jnp.where(fires, rates[0] * at(traces.before, sources), 0)
    weaker = jnp.where(sends, rates[1] * at(traces.after, receivers), 0)
    changed = jnp.clip(weights + (stronger - weaker).astype(weights.dtype), *bounds)
    return jnp.where(sends | fires, changed, weights)


def stdp_traces(
    weights: Float[Array, "*weights"], synapses: Synapses | None = None, *, receptors: int = 1
) -> STDPTraces:
    """Make the traces before the first spike, all 0.

    Args:
        weights: dense weights, or one for each of `synapses`.
        synapses: which exist; None for dense weights.
        receptors: how many each neuron has among the targets of the synapses.

    Raises:
        ValueError: if `receptors` is not an integer of at least 1, or does not divide the targets of the synapses.

    Example:
        >>> import jax.numpy as jnp
        >>> from snnjax.plasticity import stdp_traces
        >>> stdp_traces(jnp.ones((3, 2))).after.shape
        (2,)
    """
    check_integer("stdp_traces", "receptors", receptors, 1)
    if synapses is not None and synapses.num_targets % receptors != 0:
        fail(
            f"stdp_traces: `receptors` must divide the number of targets, {synapses.num_targets}, got {receptors}. "
            "Pass how many each neuron has."
        )
    shape = weights.shape if synapses is None else (synapses.num_neurons, synapses.num_targets // receptors)
    return STDPTraces(jnp.zeros(shape[0], weights.dtype), jnp.zeros(shape[1], weights.dtype))


def _sizes(weights: Array, traces: STDPTraces, synapses: Synapses | None) -> tuple[int, int]:
    """The number of inputs and of neurons."""
    check_float_array("stdp", "weights", weights)
    if synapses is None:
        check_shape("stdp", "weights", weights, (None, None), "inputs, neurons", "Or pass their synapses")
        hint = "Make them with stdp_traces of these weights"
        for name, trace, size in zip(("before", "after"), traces, weights.shape, strict=True):
            check_shape("stdp", f"traces.{name}", trace, (size,), "neurons", hint)
        return weights.shape[0], weights.shape[1]
    hint = "Pass one for each synapse"
    check_shape("stdp", "weights", weights, (synapses.num_synapses,), "synapses", hint)
    hint = "Make them with stdp_traces of these synapses"
    check_shape("stdp", "traces.before", traces.before, (synapses.num_neurons,), "neurons", hint)
    neurons = traces.after.shape[0]
    if neurons == 0 or synapses.num_targets % neurons != 0:
        fail(
            f"stdp: `traces.after` must be of neurons with all {synapses.num_targets} targets as their receptors, "
            f"got {neurons}. {hint}."
        )
    return synapses.num_neurons, neurons


class ShortTermState(NamedTuple):
    """The state of `short_term`."""

    used: Float[Array, " neurons"]  # `u`, the share of what is available that a spike would find in use
    available: Float[Array, " neurons"]  # `x`, from 0 to 1


def short_term(
    state: ShortTermState,
    spikes: SparseSpikes,
    *,
    use: float,
    decay: tuple[float, float],
) -> tuple[ShortTermState, Float[Array, " neurons"]]:
    r"""Do one step of short-term plasticity: depression and facilitation of all synapses of a neuron that sends.

    With the spikes :math:`s` of the step before, `use` :math:`U` and `decay` :math:`(\alpha_x, \alpha_u)`, which are
    ``exp(-dt / tau)`` of recovery and of facilitation:

    .. math::

        u^+ &= u + U (1 - u), \qquad x \leftarrow x - u^+ x s, \qquad u \leftarrow u + U (1 - u) s \\
        x &\leftarrow 1 - \alpha_x (1 - x), \qquad u \leftarrow \alpha_u u, \qquad
        r = (u + U (1 - u))\, x

    A spike of the next step acts with the release :math:`r` times its weight.

    Args:
        state: from the previous step; `short_term_state` initially.
        spikes: the neurons that spiked in the step before, a list with ids ``[capacity]``.
        use: what the first spike uses of what is available.
        decay: of what is not available, and of facilitation, in a step; 0 for no facilitation.

    Returns:
        The new state and the release ``[neurons]``.

    Raises:
        ValueError: if the list is not of as many neurons as the state, or `use` or a decay is not between 0 and 1.

    Example:
        >>> import jax.numpy as jnp
        >>> from snnjax import SparseSpikes
        >>> from snnjax.plasticity import short_term, short_term_state
        >>> spikes = SparseSpikes.from_ids(jnp.array([0]), num_neurons=2)
        >>> state, release = short_term(short_term_state(2), spikes, use=0.5, decay=(0.5, 0.0))
        >>> release  # half of 1 - 0.25, and half of 1
        Array([0.375, 0.5  ], dtype=float32)

    Reference:
        Tsodyks, Pawelzik and Markram 1998, doi:10.1162/089976698300017502.
    """
    _check_list("spikes", spikes, state.used.shape[0], "short_term")
    _check_shares("short_term", "use", use)
    _check_shares("short_term", "decay", *decay)
    fired = jnp.zeros(state.used.shape, bool).at[_ids(spikes)].set(True, mode="drop")
    raised = state.used + use * (1 - state.used)
    available = jnp.where(fired, state.available - raised * state.available, state.available)
    used = decay[1] * jnp.where(fired, raised, state.used)
    available = 1 - decay[0] * (1 - available)
    return ShortTermState(used, available), (used + use * (1 - used)) * available


def short_term_state(num_neurons: int, dtype: Any = jnp.float32) -> ShortTermState:
    """Make the state before the first spike: all is available, and none in use.

    Raises:
        ValueError: if `num_neurons` is not an integer of at least 0.

    Example:
        >>> from snnjax.plasticity import short_term_state
        >>> short_term_state(2).available
        Array([1., 1.], dtype=float32)
    """
    check_integer("short_term_state", "num_neurons", num_neurons, 0)
    return ShortTermState(jnp.zeros(num_neurons, dtype), jnp.ones(num_neurons, dtype))


def _check_list(argument: str, spikes: SparseSpikes, num_neurons: int, op: str = "stdp") -> None:
    if not isinstance(spikes, SparseSpikes):
        hint = "Build it with SparseSpikes.from_ids or from_dense"
        fail(f"{op}: `{argument}` must be SparseSpikes, got {type_words(spikes)}. {hint}.")
    hint = "Pass one step of one example, as in spikes[t, b], and vmap over a batch"
    check_shape(op, f"{argument}.ids", spikes.ids, (None,), "capacity", hint)
    if spikes.num_neurons != num_neurons:
        neurons = plural(num_neurons, "neuron")
        if op == "stdp":
            hint = "Pass one row of weights per input, and one column per neuron"
            fail(
                f"stdp: `{argument}` must hold {neurons}, like the weights, got {spikes.num_neurons}. {hint}."
            )
        fail(
            f"{op}: `{argument}` must hold {neurons}, like the state, got {spikes.num_neurons}. "
            "Pass those of the neurons that send."
        )


def _check_shares(op: str, argument: str, *shares: Any) -> None:
    """Check that numbers are between 0 and 1; traced ones cannot be checked."""
    for share in shares:
        known = concrete(share)
        if known is not None and not np.all((known >= 0) & (known <= 1)):
            hint = "Pass the share that is left after a step" if argument == "decay" else "Try 0.5"
            fail(f"{op}: `{argument}` must be between 0 and 1, got {short_repr(share)}. {hint}.")


def _ids(spikes: SparseSpikes) -> Int[Array, " capacity"]:
    """The ids of spikes, without repetition; all other slots hold ids above every neuron."""
    ids = spikes.ids.astype(jnp.int32)
    fires = in_range(ids, spikes.num_neurons) & (values_of(spikes) != 0)
    ids = jnp.sort(jnp.where(fires, ids, spikes.num_neurons))
    again = jnp.concatenate([jnp.zeros(min(1, ids.shape[0]), bool), ids[1:] == ids[:-1]])
    return jnp.where(again, spikes.num_neurons, ids)
