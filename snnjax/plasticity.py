"""Local plasticity: presynaptic and postsynaptic spikes change weights, without a loss."""

import jax.numpy as jnp
from jax.typing import DTypeLike
from jaxtyping import Array, Float, Int, PyTree

from snnjax._check import check_float_array, check_integer, check_shape, fail, plural, short_repr, type_words
from snnjax._plasticity import STDP as STDP
from snnjax._plasticity import ShortTerm as ShortTerm
from snnjax._plasticity import ShortTermState as ShortTermState
from snnjax._plasticity import STDPTraces as STDPTraces
from snnjax._plasticity import (
    changed_weights,
    changes,
    check_short_term,
    check_stdp,
    decayed,
    in_dtype,
    released,
    short_term_after,
    with_spikes,
)
from snnjax._sparse_spikes import SparseSpikes, in_range, values_of
from snnjax._synapses import Synapses, targets_or_beyond
from snnjax._types import as_int32


def stdp(
    weights: Float[Array, "*weights"],
    traces: STDPTraces,
    before: SparseSpikes,
    after: SparseSpikes,
    rule: STDP,
    *,
    synapses: Synapses | None = None,
) -> tuple[Float[Array, "*weights"], STDPTraces]:
    r"""Do one step of pair-based spike-timing-dependent plasticity with all-to-all pairs.

    With the presynaptic spikes :math:`s` and the postsynaptic spikes :math:`z` of this step, `rule.decay`
    :math:`(\alpha_s, \alpha_z)` and `rule.rates` :math:`(\eta_+, \eta_-)`:

    .. math::

        W_{ij} &\leftarrow W_{ij} + \eta_+ \alpha_s x'_i z_j - \eta_- \alpha_z y'_j s_i,
        \quad \text{clipped to } \mathtt{rule.bounds} \\
        x &= \alpha_s x' + s, \qquad y = \alpha_z y' + z

    A pair of spikes ``n`` steps apart changes a weight by a rate times ``decay ** n``, which is ``exp(-n dt / tau)``.
    An input before a spike strengthens the weight, an input after it weakens it, and one in the same step does neither.
    Only the rows of inputs and the columns of neurons that spike are read and written: with few spikes, nearly all
    weights remain untouched. With `synapses`, or where `rule.plastic` is given, all of them are read: in a recurrent
    network without other inputs, `snnjax.simulate` does the same with the spikes that arrive, in its kernel, and reads
    those of spikes alone. There
    is no derivative.

    Args:
        weights: dense weights ``[inputs, neurons]``, or one for each of `synapses`.
        traces: from the previous step; `stdp_traces` initially.
        before: the inputs that spike in this step, a list with ids ``[capacity]``.
        after: the neurons that spike, likewise. Entries with value 0 and unused slots have no effect.
        rule: decays of the traces, learning rates, bounds, and which weights are plastic.
        synapses: which exist; None for dense weights. Their targets may be receptors of neurons, as those of
            `snnjax.simulate`.

    Raises:
        ValueError: if the lists or traces do not match the weights or synapses, or the weights not the synapses, the
            weights or traces are neither float32 nor float64, a decay is not between 0 and 1, the bounds are in the
            wrong order, or known plastic weights are outside them.

    Example:
        >>> import jax.numpy as jnp
        >>> from snnjax import SparseSpikes
        >>> from snnjax.plasticity import STDP, stdp, stdp_traces
        >>> weights = jnp.full((2, 1), 0.5, "float32")
        >>> nobody = SparseSpikes.from_ids(jnp.array([1]), num_neurons=1)
        >>> first = SparseSpikes.from_ids(jnp.array([0]), num_neurons=2)
        >>> weights, traces = stdp(weights, stdp_traces(weights), first, nobody, STDP())  # input 0 spikes
        >>> fires, silence = (
        ...     SparseSpikes.from_ids(jnp.array([0]), 1),
        ...     SparseSpikes.from_ids(jnp.array([2]), 2),
        ... )
        >>> stdp(weights, traces, silence, fires, STDP())[0][:, 0]  # then the neuron
        Array([0.5095, 0.5   ], dtype=float32)

    Reference:
        Morrison, Diesmann and Gerstner 2008, doi:10.1007/s00422-008-0233-1.
    """
    inputs, neurons = _sizes(weights, traces, synapses)
    check_stdp("stdp", "rule", rule, weights)
    if rule.eligibility is not None:
        hint = "Modulate weights with snnjax.simulate"
        fail(f"stdp: `rule.eligibility` must be None, got {short_repr(rule.eligibility)}. {hint}.")
    _check_list("before", before, inputs)
    _check_list("after", after, neurons)
    rule, rows, columns = in_dtype(rule, traces.before.dtype), _ids(before), _ids(after)
    sends, fires = _mask(rows, inputs), _mask(columns, neurons)
    traces = decayed(traces, rule)
    if synapses is None:
        weights = _change_dense(weights, traces, rows, columns, rule)
    else:
        weights = _change_synapses(weights, traces, sends, fires, rule, synapses)
    return weights, with_spikes(traces, sends, fires)


def _change_dense(weights: Array, traces: STDPTraces, rows: Array, columns: Array, rule: PyTree) -> Array:
    """The weights after a step: only rows and columns of spikes are read; an id out of range reads 0 and is dropped."""
    (rise, fall), unchanged = rule.rates, weights
    stronger = jnp.broadcast_to(rise * traces.before[:, None], (weights.shape[0], len(columns)))
    weaker = -fall * jnp.broadcast_to(traces.after[None, :], (len(rows), weights.shape[1]))
    weights = weights.at[:, columns].add(stronger.astype(weights.dtype), mode="drop")
    weights = weights.at[rows].add(weaker.astype(weights.dtype), mode="drop")
    for axis, ids in ((1, columns), (0, rows)):
        at = weights.at[:, ids] if axis else weights.at[ids]
        weights = at.set(jnp.clip(at.get(mode="clip"), *rule.bounds), mode="drop")
    return weights if rule.plastic is None else jnp.where(rule.plastic, weights, unchanged)


def _change_synapses(
    weights: Array, traces: STDPTraces, sends: Array, fires: Array, rule: STDP, synapses: Synapses
) -> Array:
    """The weight of each synapse after a step, in which the neurons of two masks spike."""
    neurons, targets = fires.shape[0], targets_or_beyond(synapses)
    sources = synapses.sources()
    receivers = jnp.where(targets < synapses.num_targets, targets % neurons, neurons)

    def at(values: Array, ids: Array) -> Array:
        return jnp.take(values, ids, mode="fill", fill_value=0)

    before, after = at(traces.before, sources), at(traces.after, receivers)
    return changed_weights(
        weights, *changes(before, after, at(sends, sources), at(fires, receivers), rule), rule
    )


def stdp_traces(
    weights: Float[Array, "*weights"], synapses: Synapses | None = None, *, receptors: int = 1
) -> STDPTraces:
    """Make the traces before the first spike, all 0.

    Args:
        weights: dense weights, or one for each of `synapses`.
        synapses: which exist; None for dense weights.
        receptors: how many each neuron has among the targets of the synapses.

    Raises:
        ValueError: if `receptors` is not an integer of at least 1, does not divide the targets of the synapses, or is
            not 1 for dense weights.

    Example:
        >>> import jax.numpy as jnp
        >>> from snnjax.plasticity import stdp_traces
        >>> stdp_traces(jnp.ones((3, 2))).after.shape
        (2,)
    """
    receptors = check_integer("stdp_traces", "receptors", receptors, 1)
    if synapses is None and receptors != 1:
        fail(f"stdp_traces: `receptors` must be 1 for dense weights, got {receptors}. Pass their synapses.")
    if synapses is not None and synapses.num_targets % receptors != 0:
        fail(
            f"stdp_traces: `receptors` must divide the number of targets, {synapses.num_targets}, got {receptors}. "
            "Pass how many each neuron has."
        )
    shape = weights.shape if synapses is None else (synapses.num_neurons, synapses.num_targets // receptors)
    return STDPTraces(jnp.zeros(shape[0], weights.dtype), jnp.zeros(shape[1], weights.dtype))


def _sizes(weights: Array, traces: STDPTraces, synapses: Synapses | None) -> tuple[int, int]:
    """The number of inputs and of neurons."""
    _check_precise("stdp", "weights", weights)
    for name in ("before", "after"):
        _check_precise("stdp", f"traces.{name}", getattr(traces, name))
    if synapses is None:
        check_shape("stdp", "weights", weights, (None, None), "inputs, neurons", "Or pass their synapses")
        hint = "Make them with stdp_traces of these weights"
        for name, size in zip(("before", "after"), weights.shape, strict=True):
            check_shape("stdp", f"traces.{name}", getattr(traces, name), (size,), "neurons", hint)
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


def short_term(
    state: ShortTermState,
    spikes: SparseSpikes,
    rule: ShortTerm,
) -> tuple[ShortTermState, Float[Array, " neurons"]]:
    r"""Do one step of short-term plasticity: depression and facilitation of all synapses of a neuron that sends.

    With the spikes :math:`s` of the step before, `rule.use` :math:`U` and `rule.decay` :math:`(\alpha_x, \alpha_u)`,
    which are ``exp(-dt / tau)`` of recovery and of facilitation:

    .. math::

        u^+ &= u + U (1 - u), \qquad x \leftarrow x - u^+ x s, \qquad u \leftarrow u + U (1 - u) s \\
        x &\leftarrow 1 - \alpha_x (1 - x), \qquad u \leftarrow \alpha_u u, \qquad
        r = (u + U (1 - u))\, x

    A spike of the next step acts with the release :math:`r` times its weight. `snnjax.simulate` does the same in its
    kernel.

    Args:
        state: from the previous step; `short_term_state` initially.
        spikes: the neurons that spiked in the step before, a list with ids ``[capacity]``.
        rule: what a spike uses, and both decays.

    Returns:
        The new state and the release ``[neurons]``.

    Raises:
        ValueError: if the list is not of as many neurons as the state, a number of the rule is not between 0 and 1, or
            the state is neither float32 nor float64.

    Example:
        >>> import jax.numpy as jnp
        >>> from snnjax import SparseSpikes
        >>> from snnjax.plasticity import ShortTerm, short_term, short_term_state
        >>> spikes = SparseSpikes.from_ids(jnp.array([0]), num_neurons=2)
        >>> state, release = short_term(short_term_state(2), spikes, ShortTerm(0.5, (0.5, 0.0)))
        >>> release  # half of 1 - 0.25, and half of 1
        Array([0.375, 0.5  ], dtype=float32)

    Reference:
        Tsodyks, Pawelzik and Markram 1998, doi:10.1162/089976698300017502.
    """
    for name, each in zip(ShortTermState._fields, state, strict=True):
        _check_precise("short_term", f"state.{name}", each)
    neurons, dtype = state.used.shape[0], state.used.dtype
    _check_list("spikes", spikes, neurons, "short_term")
    check_short_term("short_term", "rule", rule, neurons)
    rule = in_dtype(rule, dtype)
    state = short_term_after(state, _mask(_ids(spikes), neurons), rule)
    return state, released(state, rule)


def short_term_state(num_neurons: int, dtype: DTypeLike = jnp.float32) -> ShortTermState:
    """Make the state before the first spike: all is available, and none in use.

    Raises:
        ValueError: if `num_neurons` is not an integer of at least 0.

    Example:
        >>> from snnjax.plasticity import short_term_state
        >>> short_term_state(2).available
        Array([1., 1.], dtype=float32)
    """
    num_neurons = check_integer("short_term_state", "num_neurons", num_neurons, 0)
    return ShortTermState(jnp.zeros(num_neurons, dtype), jnp.ones(num_neurons, dtype))


def _check_precise(op: str, argument: str, array: Array) -> None:
    """Check that an array holds small changes: in integers rates are 0, and half precision rounds them off."""
    check_float_array(op, argument, array)
    if array.dtype not in (jnp.float32, jnp.float64):
        given = array.dtype.name
        fail(
            f"{op}: `{argument}` must be float32 or float64, got {given}: small changes would be lost. Cast them."
        )


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


def _mask(ids: Array, num_neurons: int) -> Array:
    return jnp.zeros(num_neurons, bool).at[ids].set(True, mode="drop")


def _ids(spikes: SparseSpikes) -> Int[Array, " capacity"]:
    """The ids of spikes, without repetition; all other slots hold ids above every neuron."""
    ids = as_int32(spikes.ids)
    fires = in_range(ids, spikes.num_neurons) & (values_of(spikes) != 0)
    ids = jnp.sort(jnp.where(fires, ids, spikes.num_neurons))
    again = jnp.concatenate([jnp.zeros(min(1, ids.shape[0]), bool), ids[1:] == ids[:-1]])
    return jnp.where(again, spikes.num_neurons, ids)
