"""Leaky integrators without reset, computed for all time steps at once by an associative scan."""

import dataclasses
from collections.abc import Iterable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array

from snnjax._check import fail, short_repr
from snnjax._types import Params, State, upcast
from snnjax.neurons._glif import GLIF
from snnjax.neurons._neuron import Neuron, drawn
from snnjax.neurons._step import Bound
from snnjax.ops._glif_step import align, raised

# The transition of a state [v] or [v, w], by rows: each entry is an array that broadcasts to [time, batch, neurons].
_Matrix = list[list[Array]]


def parallel_in_time(neuron: Neuron) -> Neuron:
    """Make neurons without reset compute all time steps at once, by an associative scan.

    Their state is a linear function of the one before it, so ``log2(steps)`` sweeps over all steps replace the steps.
    That is faster on GPUs with long sequences. On a CPU it is slower: the same neurons without this function are part
    of a fused network, which is faster still. Results are equal up to rounding.

    Args:
        neuron: one without spikes, such as ``leaky_integrator()``, or with ``reset="none"``, such as
            ``lif(reset="none")`` or ``current_lif(reset="none")``; one whose spikes change no state.

    Raises:
        ValueError: if the spikes of the neuron change its state, or it is no generalised LIF neuron.

    Example:
        >>> from snnjax import neurons
        >>> neuron = neurons.parallel_in_time(neurons.lif(decay=0.5, normalize=False, reset="none"))
        >>> params = neuron.init(jax.random.key(0), 1)
        >>> neuron.sequence(params, neuron.initial_state(params, 1, 1), jnp.ones((4, 1, 1)), None)[0].ravel()
        Array([1.   , 1.5  , 1.75 , 1.875], dtype=float32)

    References:
        Blelloch 1990, Prefix sums and their applications; Martin and Cundy 2018, arXiv:1709.04057.
    """
    if not isinstance(neuron, Neuron):
        got = short_repr(neuron)
        fail(f"parallel_in_time: `neuron` must be a Neuron, got {got}. Try neurons.lif(reset='none').")
    if neuron.fused is None:
        fail(
            f"parallel_in_time: `neuron` must be a generalised LIF neuron, got {neuron.name}. "
            "Try neurons.lif(reset='none')."
        )
    if neuron.fused.reset != "none" or _jumps(neuron):
        fail(
            f"parallel_in_time: `neuron` must have a state that its spikes do not change, got {neuron.name}. "
            "Pass reset='none' to a neuron without adaptation."
        )
    return dataclasses.replace(neuron, sequence=Bound(_scan, form=neuron.fused))


def _jumps(neuron: Neuron) -> bool:
    form = neuron.fused
    assert form is not None
    second = jax.eval_shape(lambda: form.constants(drawn(neuron, jax.random.key(0), 1))).second_state
    return second is not None and second.w_jump is not None


def _scan(
    params: Params, state: State, currents: Array, valid: Array | None, *, form: GLIF
) -> tuple[Array, Array, Any]:
    currents = upcast(currents)
    matrix, gains, constants = _transition(params, currents, form)
    given = [gain * currents for gain in gains]
    if valid is not None:  # the state stays as it is after the end of a sequence
        inside = valid[:, :, None]
        rows = enumerate(matrix)
        matrix = [[jnp.where(inside, own, float(i == j)) for j, own in enumerate(row)] for i, row in rows]
        given = [jnp.where(inside, each, 0) for each in given]
    # Without lengths a matrix is the same for the whole batch.
    entries, form_of = jax.tree.flatten(matrix)
    common = jnp.broadcast_shapes((currents.shape[0], 1, 1), *(own.shape for own in entries))
    matrix = form_of.unflatten([jnp.broadcast_to(own, common) for own in entries])
    powers, sums = jax.lax.associative_scan(_then, (matrix, given))
    start = [own[None] for own in state]
    states = [_of_row(row, start, added) for row, added in zip(powers, sums, strict=True)]
    end = type(state)(*(each[-1] if each.shape[0] else old for each, old in zip(states, state, strict=True)))
    v, w = states[0], states[1] if len(states) > 1 else None
    return v, raised(constants.threshold, constants.second_state, v, w), end


def _transition(params: Params, like: Array, form: GLIF) -> tuple[_Matrix, list[Array], Any]:
    """The matrix of a step, the gain of the current for each state, and the constants."""
    constants = form.constants(params)

    def value(constant: Array | None) -> Array:
        own = jnp.zeros((), like.dtype) if constant is None else constant.astype(like.dtype)
        own = align(own, like)
        return own.reshape((1,) * (like.ndim - own.ndim) + own.shape)

    decay, gain, second = value(constants.decay), value(constants.gain), constants.second_state
    if second is None:
        return [[decay]], [gain], constants
    coupling, row = value(second.v_coupling), [value(second.w_membrane), value(second.w_decay)]
    into_w = value(second.w_gain)
    first = [decay + coupling * row[0], coupling * row[1]]
    return [first, row], [gain + coupling * into_w, into_w], constants


def _then(first: tuple[_Matrix, list[Array]], second: tuple[_Matrix, list[Array]]) -> tuple[Any, Any]:
    """Two transitions of states, one after the other."""
    (before, given), (after, more) = first, second
    size = range(len(given))
    matrix = [[_sum(after[i][k] * before[k][j] for k in size) for j in size] for i in size]
    return matrix, [_of_row(after[i], given, more[i]) for i in size]


def _of_row(row: list[Array], state: State, added: Array) -> Array:
    return _sum(factor * own for factor, own in zip(row, state, strict=True)) + added


def _sum(terms: Iterable[Array]) -> Array:
    first, *others = terms
    for other in others:
        first = first + other
    return first
