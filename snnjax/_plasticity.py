"""Plastic synapses: the rules of both kinds of plasticity, what they carry from step to step, and a step of each."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import DTypeLike
from jaxtyping import Array, ArrayLike, Bool, Float, PyTree

from snnjax._arguments import explained
from snnjax._check import check_number, check_per_neuron, check_shape, concrete, fail, short_repr, type_words
from snnjax._types import Unchecked, Weights

_DECAY = "A decay is exp(-dt / tau)"


@explained
class STDP(NamedTuple):
    """The rule of pair-based spike-timing-dependent plasticity (`snnjax.plasticity.stdp` has its equation)."""

    # Of the traces in a step, ``exp(-dt / tau)``: one number, or that of presynaptic and of postsynaptic spikes
    decay: Float[ArrayLike, ""] | tuple[Float[ArrayLike, ""], Float[ArrayLike, ""]] = 0.95
    rates: tuple[Float[ArrayLike, ""], Float[ArrayLike, ""]] = (0.01, 0.012)  # of strengthening, of weakening
    bounds: tuple[Float[ArrayLike, ""], Float[ArrayLike, ""]] = (0.0, 1.0)  # of the changed weights
    plastic: Bool[Array, "*weights"] | None = None  # which weights change; None for all
    # Of `simulate`: the share of its eligibility that a synapse keeps in a step, ``exp(-dt / tau)``. Pairs change that,
    # and weights change by it times the modulation; None for pairs that change weights at once.
    eligibility: Float[ArrayLike, ""] | None = None


class STDPTraces(NamedTuple):
    """The low-pass filtered spikes of neurons: ``trace = decay * trace' + s``."""

    before: Float[Array, " inputs"]
    after: Float[Array, " neurons"]
    eligibility: Float[Array, " synapses"] | None = None  # of each synapse, in `simulate`


@explained
class ShortTerm(NamedTuple):
    """The rule of short-term plasticity (`snnjax.plasticity.short_term` has its equation).

    Each is one number, or one for each neuron that sends. One that uses 1 and recovers at once, with a decay of 0,
    always releases 1.
    """

    use: Float[ArrayLike, "..."]  # what the first spike uses of what is available
    # In a step, ``exp(-dt / tau)``: of what is not available, and of facilitation; 0 for no facilitation
    decay: tuple[Float[ArrayLike, "..."], Float[ArrayLike, "..."]]


class ShortTermState(NamedTuple):
    """The state of short-term plasticity."""

    used: Float[Array, " neurons"]  # `u`, the share of what is available that a spike would find in use
    available: Float[Array, " neurons"]  # `x`, from 0 to 1


def _pair_of(numbers: Unchecked) -> Any:
    """Both decays of a rule."""
    return numbers if isinstance(numbers, tuple) else (numbers, numbers)


def check_stdp(op: str, argument: str, rule: Unchecked, weights: Weights, called: str = "weights") -> None:
    """Check a rule for these weights, an argument of this name; traced numbers cannot be checked."""
    if not isinstance(rule, STDP):
        hint = "Make it with snnjax.plasticity.STDP"
        fail(f"{op}: `{argument}` must be an STDP, got {type_words(rule)}. {hint}.")
    decays = _pair_of(rule.decay)
    _check_finite(op, f"{argument}.decay", decays)
    _check_shares(op, f"{argument}.decay", decays, 1, _DECAY)
    if rule.eligibility is not None:
        check_number(op, f"{argument}.eligibility", rule.eligibility)
        _check_shares(op, f"{argument}.eligibility", (rule.eligibility,), 1, _DECAY)
    for name in ("rates", "bounds"):
        _check_finite(op, f"{argument}.{name}", getattr(rule, name))
    least, most = (concrete(each) for each in rule.bounds)
    if least is not None and most is not None and not least <= most:
        given = f"({float(least):g}, {float(most):g})"
        fail(f"{op}: `{argument}.bounds` must ascend, got {given}. Pass the smallest weight first.")
    if rule.plastic is None:
        _check_bounds(op, argument, rule, weights, called)
        return
    if getattr(rule.plastic, "dtype", None) != jnp.bool_:
        given = short_repr(rule.plastic)
        fail(f"{op}: `{argument}.plastic` must be an array of bool, got {given}. Compare something.")
    axes = "synapses" if weights.ndim == 1 else "inputs, neurons"
    check_shape(
        op, f"{argument}.plastic", rule.plastic, weights.shape, axes, "Give it the shape of the weights"
    )
    _check_bounds(op, argument, rule, weights, called)


def _check_bounds(op: str, argument: str, rule: STDP, weights: Weights, called: str) -> None:
    """Check that known weights that change are within the bounds, to which their first change would clip them."""
    known, least, most = (concrete(each) for each in (weights, *rule.bounds))
    plastic = np.bool_(True) if rule.plastic is None else concrete(rule.plastic)
    if known is None or least is None or most is None or plastic is None:
        return
    # In the dtype of the weights, in which those of an earlier step may be at a bound.
    outside = (known < least.astype(known.dtype)) | (known > most.astype(known.dtype))
    if np.any(outside & plastic):
        wrong, given = float(known[outside & plastic][0]), f"({float(least):g}, {float(most):g})"
        hint = f"Pass others, or {argument}.plastic without these weights"
        fail(
            f"{op}: `{called}` must be within `{argument}.bounds`, {given}, if they are plastic, got {wrong:g}. {hint}."
        )


def check_short_term(op: str, argument: str, rule: Unchecked, neurons: int) -> None:
    """Check a rule for so many neurons that send."""
    if not isinstance(rule, ShortTerm):
        hint = "Make it with snnjax.plasticity.ShortTerm"
        fail(f"{op}: `{argument}` must be a ShortTerm, got {type_words(rule)}. {hint}.")
    _check_shares(op, f"{argument}.use", (rule.use,), neurons, "It is a share")
    _check_pair(op, f"{argument}.decay", rule.decay)
    _check_shares(op, f"{argument}.decay", rule.decay, neurons, _DECAY)


def in_dtype(rule: PyTree, dtype: DTypeLike) -> PyTree:
    """A rule with its numbers as arrays of this dtype, and both decays of `STDP`."""
    if isinstance(rule, STDP):
        numbers = _pair_of(rule.decay), rule.rates, rule.bounds, rule.eligibility
        decay, rates, bounds, eligibility = in_dtype(numbers, dtype)
        return STDP(decay, rates, bounds, rule.plastic, eligibility)
    return jax.tree.map(lambda number: jnp.asarray(number, dtype), rule)


def _check_pair(op: str, argument: str, numbers: Unchecked) -> None:
    if not isinstance(numbers, tuple) or len(numbers) != 2:
        fail(f"{op}: `{argument}` must be a pair of numbers, got {short_repr(numbers)}. Pass both.")


def _check_finite(op: str, argument: str, numbers: Unchecked) -> None:
    _check_pair(op, argument, numbers)
    for number in numbers:
        check_number(op, argument, number)
        known = concrete(number)
        if np.shape(number) != () or (known is not None and not np.isfinite(known)):
            fail(f"{op}: `{argument}` must hold finite numbers, got {short_repr(number)}. Pass floats.")


def _check_shares(op: str, argument: str, numbers: Unchecked, neurons: int, hint: str) -> None:
    """Check that numbers are from 0 to 1: a time constant in place of a decay is a common mistake."""
    for number in numbers:
        check_per_neuron(op, argument, number, neurons)
        known = concrete(number)
        if known is not None and not np.all((known >= 0) & (known <= 1)):
            fail(f"{op}: `{argument}` must be between 0 and 1, got {short_repr(number)}. {hint}.")


def changes(before: Array, after: Array, sent: Array, fired: Array, rule: STDP) -> tuple[Array, Array]:
    """What weights gain in a step, and whether they do.

    Of each are given the traces, decayed, and whether a spike arrived and its neuron spiked.
    """
    stronger = jnp.where(fired, rule.rates[0] * before, 0)
    weaker = jnp.where(sent, rule.rates[1] * after, 0)
    moves = sent | fired if rule.plastic is None else (sent | fired) & rule.plastic
    return jnp.where(moves, stronger - weaker, 0), moves


def changed_weights(weights: Array, gain: Array, moves: Array, rule: STDP) -> Array:
    """Weights that have gained something, within their bounds."""
    return jnp.where(moves, jnp.clip(weights + gain.astype(weights.dtype), *rule.bounds), weights)


def decayed(traces: STDPTraces, rule: STDP) -> STDPTraces:
    """The traces that the spikes of a step find, from those after the step before."""
    decays = _pair_of(rule.decay)
    return STDPTraces(decays[0] * traces.before, decays[1] * traces.after)


def with_spikes(traces: STDPTraces, sends: Array, fires: Array) -> STDPTraces:
    """The traces after a step."""
    before, after = traces.before, traces.after
    return STDPTraces(before + sends.astype(before.dtype), after + fires.astype(after.dtype))


def short_term_after(state: ShortTermState, sends: Array, rule: PyTree) -> ShortTermState:
    """The state after a step."""
    raised = state.used + rule.use * (1 - state.used)
    available = jnp.where(sends, state.available - raised * state.available, state.available)
    used = rule.decay[1] * jnp.where(sends, raised, state.used)
    return ShortTermState(used, 1 - rule.decay[0] * (1 - available))


def released(state: ShortTermState, rule: PyTree) -> Array:
    """What a spike of the next step releases."""
    return (state.used + rule.use * (1 - state.used)) * state.available
