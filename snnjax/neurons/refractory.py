"""An absolute refractory period for any neuron."""

from collections.abc import Callable
from typing import Any, NamedTuple, cast

import jax
import jax.numpy as jnp
from jax.typing import DTypeLike
from jaxtyping import Array, Int

from snnjax._check import check_integer, fail
from snnjax._neuron_table import GLIFConstants
from snnjax._types import Params, State
from snnjax.neurons._neuron import Neuron, check_spiking, drawn, no_stats
from snnjax.neurons._step import Bound
from snnjax.ops._glif_step import align
from snnjax.surrogates import Surrogate


class RefractoryParams(NamedTuple):
    """The parameters of `refractory`."""

    neuron: Params  # the parameters of the wrapped neuron


class RefractoryState(NamedTuple):
    """The state of `refractory`."""

    neuron: State  # the state of the wrapped neuron
    remaining: Int[Array, "batch neurons"]  # int32, steps until the neuron may spike again


def refractory(neuron: Neuron, steps: int) -> Neuron:
    """Make a neuron that is silent for `steps` steps after each of its spikes.

    During the refractory period the neuron ignores its inputs, and its state does not change. Its reset, which belongs
    to the step after the spike, therefore happens when the period is over. Layers of generalised LIF neurons
    stay fused.

    Args:
        neuron: any spiking neuron.
        steps: length of the period, at least 0; the shortest interval between two spikes is ``steps + 1``.

    Raises:
        ValueError: if `steps` is not an integer of at least 0, or the neuron does not spike, or its spike times have
            derivatives.

    Example:
        >>> from snnjax import neurons
        >>> neuron = neurons.refractory(neurons.integrate_and_fire(threshold=0.5), steps=2)
        >>> params = neuron.init(jax.random.key(0), 1)
        >>> state, spikes = neuron.initial_state(params, 1, 1), []
        >>> for _ in range(5):
        ...     state, s = neuron.step(params, state, jnp.array([[1.0]]))
        ...     spikes.append(int(s[0, 0]))
        >>> spikes
        [1, 0, 0, 1, 0]
    """
    steps = check_integer("refractory", "steps", steps, 0)
    check_spiking("refractory", neuron)
    if neuron.sent is not None:
        hint = "Make it with gradient='surrogate'"
        fail(f"refractory: `neuron` must have spikes with a surrogate, got times with derivatives. {hint}.")

    bound = {"neuron": neuron}
    return Neuron(
        f"refractory {neuron.name}",
        Bound(_init, **bound),
        Bound(_initial_state, **bound),
        Bound(_integrate, **bound),
        Bound(_fire, **bound, steps=steps),
        Bound(_threshold, **bound),
        neuron.surrogate,
        neuron.rest,
        inner_surrogate=_inner_surrogate(neuron),
        initial_stats=no_stats if neuron.initial_stats is no_stats else Bound(_init_stats, **bound),
        per=neuron.per,
        levels=neuron.levels,
    )


def wrapped_by(neuron: Neuron) -> tuple[Neuron, int] | None:
    """The neuron that was made refractory, and its steps; None of one that was not, or was changed since."""
    own = neuron.integrate, neuron.fire
    if not all(isinstance(each, Bound) for each in own) or neuron.sequence is not None:
        return None
    integrate, fire = cast(tuple[Bound, Bound], own)
    if (integrate.func, fire.func) != (_integrate, _fire):
        return None
    return integrate.keywords["neuron"], fire.keywords["steps"]


def refractory_constants(inner: Callable[[Any], GLIFConstants], steps: int) -> Callable[..., GLIFConstants]:
    """What makes the constants of a generalised LIF neuron, with a refractory period."""
    return Bound(_constants, inner=inner, steps=steps)


def _constants(
    params: RefractoryParams, *, inner: Callable[[Any], GLIFConstants], steps: int
) -> GLIFConstants:
    return inner(params.neuron)._replace(refractory=jnp.asarray(steps, jnp.int32))


def _inner_surrogate(neuron: Neuron) -> Surrogate | None:
    """The surrogate of the spikes by which the wrapped neuron resets or adapts, if gradients flow through them."""
    form = neuron.glif
    if neuron.integrate is not None or form is None:
        return neuron.inner_surrogate
    second = jax.eval_shape(lambda: form.constants(drawn(neuron, jax.random.key(0), 1))).second_state
    resets = form.reset != "none" and not form.detach_reset
    adapts = second is not None and second.w_jump is not None
    return neuron.surrogate if resets or adapts else None


class _UnfinishedState(NamedTuple):
    """The state of a step before its spikes are known."""

    before: RefractoryState
    after: State  # of the wrapped neuron, without regard to the period


def _init(
    key: Array, num_neurons: int, dtype: DTypeLike = jnp.float32, *, neuron: Neuron
) -> RefractoryParams:
    return RefractoryParams(neuron.init(key, num_neurons, dtype))


def _init_stats(key: Array, num_neurons: int, *, neuron: Neuron) -> RefractoryParams:
    return RefractoryParams(neuron.initial_stats(key, num_neurons))


def _threshold(params: RefractoryParams, *, neuron: Neuron) -> Array:
    return neuron.threshold(params.neuron)


def _initial_state(
    params: RefractoryParams, batch: int, num_neurons: int, dtype: DTypeLike = jnp.float32, *, neuron: Neuron
) -> RefractoryState:
    own = neuron.initial_state(params.neuron, batch, num_neurons, dtype)
    return RefractoryState(own, jnp.zeros((batch, num_neurons), jnp.int32))


def _integrate(
    params: RefractoryParams, state: RefractoryState, inputs: Array, *, neuron: Neuron
) -> tuple[Array, Array, _UnfinishedState]:
    free = state.remaining == 0
    membrane, threshold, after = neuron.advance(params.neuron, state.neuron, inputs)
    threshold = jnp.broadcast_to(align(threshold, membrane), membrane.shape)
    # Infinite, so that ignored inputs have no gradient, whatever the surrogate.
    membrane = jnp.where(free, membrane, jax.lax.stop_gradient(membrane))
    return membrane, jnp.where(free, threshold, jnp.inf), _UnfinishedState(state, after)


def _fire(state: _UnfinishedState, spikes: Array, *, neuron: Neuron, steps: int) -> RefractoryState:
    before, after = state.before, neuron.finish(state.after, spikes)
    free = before.remaining == 0
    after = jax.tree.map(lambda new, old: jnp.where(free, new, old), after, before.neuron)
    # A smooth spike counts if it is above one half, its value at the threshold.
    spiked = jnp.abs(spikes) > 0.5
    return RefractoryState(after, jnp.where(spiked, steps, jnp.maximum(before.remaining - 1, 0)))
