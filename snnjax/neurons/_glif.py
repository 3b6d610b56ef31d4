"""`GLIF`: the generalised LIF equation, of which most neuron models are special cases, and its step."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
from jaxtyping import Array

from snnjax._types import wide
from snnjax.neurons._step import align, aligned, check_inputs, just_below, reset_membrane
from snnjax.ops import SecondState, lif_step
from snnjax.ops.spike import spike
from snnjax.surrogates import Surrogate


class GLIFConstants(NamedTuple):
    """The constants of a generalised LIF neuron, each ``[]`` or ``[neurons]``; `GLIF` has the equation."""

    decay: Array
    threshold: Array
    gain: Array
    second_state: SecondState | None = None


class GLIF(NamedTuple):
    r"""The equation that `snnjax.lif_network` supports, with one or two linear states ``v`` and ``w``.

    With the current :math:`I`, a prime for the previous step, and ``s' = [v' > threshold + threshold_coupling w']``:

    .. math::

        w &= \alpha_w w' + a v' + g_w I + b s' \\
        v &= \alpha\, \mathrm{reset}(v', s') + g I + c w \\
        s &= [v > \theta + \kappa w]

    The constants are `decay` :math:`\alpha`, `gain` :math:`g`, `threshold` :math:`\theta`, and of the `SecondState`
    `w_decay` :math:`\alpha_w`, `w_membrane` :math:`a`, `w_gain` :math:`g_w`, `w_jump` :math:`b`, `v_coupling`
    :math:`c` and `threshold_coupling` :math:`\kappa`. The state of the neuron holds ``v``, or ``v`` and ``w`` in this
    order.

    A reset subtracts the raised threshold. `detach_reset` stops only the gradient through the spikes in the reset; the
    gradient through the spikes that add to ``w`` always flows.

    The last three are conventions of other libraries, as in `snnjax.lif_step`. The fused op does not support them: a
    layer with one of them is scanned.

    Example:
        >>> import jax.numpy as jnp
        >>> from snnjax import neurons
        >>> half = neurons.GLIFConstants(jnp.array(0.5), jnp.array(1.0), jnp.array(0.5))
        >>> neuron = neurons.lif()._replace(glif=neurons.GLIF(lambda params: half))
        >>> neuron.step((), neurons.LIFState(jnp.array([[1.5]])), jnp.array([[2.0]]))[0].v
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


def advance(
    op: str, form: GLIF, surrogate: Surrogate, params: Any, state: Any, inputs: Array
) -> tuple[Array, Array, Any]:
    """The membrane after the inputs, its threshold, and the state after the step.

    Listed spikes do not change the state: the true ones follow from the membrane.
    """
    given = form.constants(params)
    check_inputs(op, (params, given.threshold), state.v, inputs)
    if given.second_state is None:
        membrane, v = _one_state(form, surrogate, state.v, inputs, given)
        threshold, after = given.threshold, state._replace(v=v)
    else:
        constants = aligned(jax.tree.map(wide, given), inputs)
        membrane, threshold, after = _two_states(form, surrogate, state, wide(inputs), constants)
        threshold = given.threshold if threshold is None else threshold
    return membrane, just_below(wide(threshold)) if form.inclusive else threshold, after


def _one_state(
    form: GLIF, surrogate: Surrogate, v: Array, inputs: Array, given: GLIFConstants
) -> tuple[Array, Array]:
    """The membrane whose spikes are those of the op `snnjax.lif_step`, and its new membrane.

    The op is composed of plain JAX here: as fast as our own kernel was, and with derivatives in any mode.
    """
    switches: Any = form._asdict() | {"surrogate": surrogate, "implementation": "composed"}
    del switches["constants"]
    if form.reset_time != "immediate":
        new, _ = lif_step(v, inputs, *given[:3], **switches)
        return v if form.spike_from == "old" else new, new
    charged, _ = lif_step(v, inputs, *given[:3], **switches | {"reset": "none"})
    threshold = align(wide(given.threshold), v)
    spikes = spike(charged - threshold, surrogate, inclusive=form.inclusive)
    return charged, reset_membrane(charged, spikes, threshold, form.reset, form.detach_reset)


def _two_states(
    form: GLIF, surrogate: Surrogate, state: Any, inputs: Array, constants: GLIFConstants
) -> tuple[Array, Array | None, Any]:
    """The same in two states; the threshold is None unless it is raised. All arrays are wide and aligned."""
    second, (v, w) = constants.second_state, state
    assert second is not None

    def raised(w: Array) -> Array:
        coupling = second.threshold_coupling
        return constants.threshold if coupling is None else constants.threshold + coupling * w

    def fired(membrane: Array, threshold: Array) -> Array:
        return spike(membrane - threshold, surrogate, inclusive=form.inclusive)

    def reset(membrane: Array, spikes: Array, threshold: Array) -> Array:
        return reset_membrane(membrane, spikes, threshold, form.reset, form.detach_reset)

    threshold = raised(w)
    before = fired(v, threshold)
    sources = ((second.w_membrane, v), (second.w_gain, inputs), (second.w_jump, before))
    w = second.w_decay * w + sum(factor * source for factor, source in sources if factor is not None)
    u = reset(v, before, threshold) if form.reset_time == "before_decay" else v
    new = constants.decay * u + constants.gain * inputs
    new = new if second.v_coupling is None else new + second.v_coupling * w
    membrane = new
    if form.reset_time == "after_decay":
        membrane = new = reset(new, before, threshold)
    elif form.reset_time == "immediate":
        new = reset(new, fired(new, raised(w)), raised(w))
    if form.spike_from == "old":
        membrane = v
    else:
        threshold = raised(w)
    return membrane, None if second.threshold_coupling is None else threshold, type(state)(new, w)
