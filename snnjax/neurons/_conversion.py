"""`converted`: conventions of other libraries as a generalised LIF neuron with other constants, where they agree."""

import functools
from typing import Any, NamedTuple

import jax
from jaxtyping import Array

from snnjax._neuron_table import GLIFConstants
from snnjax._types import State
from snnjax.neurons._glif import GLIF
from snnjax.neurons._neuron import Neuron, drawn
from snnjax.neurons.refractory import RefractoryState, refractory_constants, wrapped_by
from snnjax.ops._glif_step import align
from snnjax.ops._lif_network.checks import LONGEST_PERIOD
from snnjax.ops.spike import spike


class Converted(NamedTuple):
    """A neuron as `snnjax.lif_network` computes it."""

    form: GLIF  # without conventions
    # Of an immediate reset, the membrane of the op is the one before it. Both are equal from rest alone: a membrane
    # above the threshold in a given state has been reset already, for the op it has not.
    is_immediate: bool
    is_inclusive: bool  # whether its threshold is one float lower


@functools.cache
def converted(neuron: Neuron) -> Converted | str:
    """The neuron without its conventions, or what differs."""
    if neuron.fused is not None:
        return Converted(neuron.fused, False, False)
    if (wrapped := wrapped_by(neuron)) is not None:
        return _refractory(*wrapped)
    form = neuron.glif
    is_replaced = any(own is not None for own in (neuron.integrate, neuron.fire, neuron.sequence))
    if form is None or is_replaced or neuron.is_graded:
        return "it is not a generalised LIF neuron"
    second = jax.eval_shape(lambda: form.constants(drawn(neuron, jax.random.key(0), 1))).second_state
    is_immediate = form.reset_time == "immediate" and form.reset != "none"
    if form.spike_from == "old":
        return "it spikes from the membrane of the step before"
    if form.reset_time == "after_decay" and form.reset != "none":
        return "its reset follows the decay"
    if second is not None and second.threshold_coupling is not None:
        return "its threshold moves"
    if is_immediate and second is not None and (second.w_jump is not None or second.w_membrane is not None):
        return "its second state follows the membrane after the reset"
    if form.inclusive and form.reset == "subtract":
        return "it subtracts the threshold, which is not the one that its membrane must exceed"
    if is_immediate and form.reset == "subtract" and not form.detach_reset:
        return "the gradient of its threshold flows through the reset of the first step"
    if is_immediate and _may_start_above(neuron, form):
        return "it may start above its threshold, which the op would reset"
    return Converted(GLIF(form.constants, form.reset, form.detach_reset), is_immediate, form.inclusive)


def _refractory(neuron: Neuron, steps: int) -> Converted | str:
    """A neuron with a refractory period."""
    found = converted(neuron)
    if isinstance(found, str):
        return found
    if found.is_immediate or wrapped_by(neuron) is not None or steps > LONGEST_PERIOD:
        return "its refractory period is not that of the op"
    constants = refractory_constants(found.form.constants, steps)
    return found._replace(form=found.form._replace(constants=constants))


def carried(state: State) -> dict[str, Any]:
    """The state of a neuron by the names of `lif_network`'s, in the accumulation dtype."""
    if isinstance(state, RefractoryState):
        own = carried(state.neuron)
        return {**own, "remaining": state.remaining.astype(own["v"].dtype)}
    v, *second = state
    return {"v": v, "w": second[0] if second else None}


def restored(before: State, after: State) -> State:
    """The state of a neuron in the form of the one `before`, from that of `lif_network`."""
    if isinstance(before, RefractoryState):
        return RefractoryState(restored(before.neuron, after), after.remaining.astype(before.remaining.dtype))
    return type(before)(*(each for each in (after.v, after.w) if each is not None))


def _may_start_above(neuron: Neuron, form: GLIF) -> bool:
    """Whether the reset of a first membrane could matter: at 0 it does not if it is a reset to 0."""
    given = dict(neuron.arguments)
    threshold, initial = given.get("threshold"), given.get("initial", 0)
    if form.reset == "zero" and initial == 0:
        return False
    lowest = min(threshold) if isinstance(threshold, tuple) else threshold
    return lowest is None or given.get("learn_threshold", True) or lowest <= 0 or initial == 1


def after_reset(neuron: Neuron, constants: GLIFConstants, v: Array) -> Array:
    """The membrane after an immediate reset, from the one before it."""
    form: Any = neuron.glif
    threshold = align(constants.threshold, v)
    spikes = spike(v - threshold, neuron.surrogate, inclusive=form.inclusive)
    spikes = jax.lax.stop_gradient(spikes) if form.detach_reset else spikes
    return v - threshold * spikes if form.reset == "subtract" else v * (1 - spikes)
