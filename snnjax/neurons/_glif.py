"""`GLIF`: the generalised LIF equation, of which most neuron models are special cases, and its step."""

from collections.abc import Callable
from typing import Any, NamedTuple

from jaxtyping import Array

from snnjax._check import check_choice, check_per_neuron, check_switches, fail
from snnjax._neuron_table import RESETS, GLIFConstants
from snnjax._types import RESET_TIMES, SPIKE_SOURCES, Params, State, upcast
from snnjax.neurons._step import check_inputs, just_below
from snnjax.ops._glif_step import LIFConvention, glif_step
from snnjax.surrogates import Surrogate


class GLIF(NamedTuple):
    r"""A neuron of the equation in `snnjax.lif_network`, with one or two linear states ``v`` and ``w``.

    The inputs of the neuron are its current :math:`I`. The constants are `decay` :math:`\alpha`, `gain` :math:`g`,
    `threshold` :math:`\theta`, and those of the `SecondState`. The state of the neuron holds ``v``, or ``v`` and ``w``
    in this order.

    A reset subtracts the raised threshold. `detach_reset` stops only the gradient through the spikes in the reset; the
    gradient through the spikes that add to ``w`` always flows.

    The last three are conventions of other libraries, as in `snnjax.lif_step`. Those that equal this equation with
    other constants are part of the fused op; layers with others are scanned.

    Example:
        >>> import dataclasses
        >>> import jax.numpy as jnp
        >>> from snnjax import neurons
        >>> half = neurons.GLIFConstants(jnp.array(0.5), jnp.array(1.0), jnp.array(0.5))
        >>> neuron = dataclasses.replace(neurons.lif(), glif=neurons.GLIF(lambda params: half))
        >>> neuron.step(None, neurons.LIFState(jnp.array([[1.5]])), jnp.array([[2.0]]))[0].v
        Array([[1.25]], dtype=float32)

    Reference:
        Teeter et al. 2018, doi:10.1038/s41467-017-02717-4.
    """

    constants: Callable[[Any], GLIFConstants]  # params -> constants, through which the gradients flow
    reset: str = "subtract"  # or "zero" or "none"
    detach_reset: bool = True
    reset_time: str = "before_decay"
    spike_from: str = "new"
    inclusive: bool = False

    @property
    def conventions(self) -> dict[str, Any]:
        """The switches set to conventions of other libraries."""
        names = ("reset_time", "spike_from", "inclusive")
        return {n: getattr(self, n) for n in names if getattr(self, n) != self._field_defaults[n]}


def check_form(op: str, argument: str, form: GLIF) -> None:
    """Check the switches of an equation; `argument` is what stands before their names in errors."""
    choices = {"reset": RESETS, "reset_time": RESET_TIMES, "spike_from": SPIKE_SOURCES}
    for name, known in choices.items():
        check_choice(op, argument + name, getattr(form, name), known)
    check_switches(op, **{argument + name: getattr(form, name) for name in ("detach_reset", "inclusive")})
    if form.reset_time == "immediate" and form.spike_from == "old":
        hint = "Use reset_time='after_decay' with the old membrane's spikes"
        fail(f"{op}: `{argument}spike_from` must be 'new' if reset_time is 'immediate', got 'old'. {hint}.")


def advance(
    op: str, form: GLIF, surrogate: Surrogate, params: Params, state: State, inputs: Array
) -> tuple[Array, Array, Any]:
    """The membrane after the inputs, its threshold, and the state after the step.

    Listed spikes do not change the state: the true ones follow from the membrane.
    """
    given = form.constants(params)
    check_inputs(op, state.v, inputs)
    _check_constants(op, given, inputs.shape[-1])
    second, threshold = given.second_state, given.threshold
    v, w = (state.v, None) if second is None else state
    switches = {name: getattr(form, name) for name in LIFConvention._fields if name != "surrogate"}
    stepped = glif_step(given, LIFConvention(surrogate, **switches), v, w, upcast(inputs))
    after = state._replace(v=stepped.v) if w is None else type(state)(stepped.v, stepped.w)
    if second is not None and second.threshold_coupling is not None:
        threshold = stepped.threshold
    return stepped.membrane, just_below(upcast(threshold)) if form.inclusive else threshold, after


def _check_constants(op: str, given: GLIFConstants, neurons: int) -> None:
    """Check that the constants of a user's neuron are one for all, or one for each."""
    second = {} if given.second_state is None else given.second_state._asdict()
    for name, value in {**given._asdict(), **second}.items():
        if name != "second_state" and value is not None:
            check_per_neuron(op, name, value, neurons)
