"""`GLIF`: neuron models that the fused op `snnjax.lif_network` supports, and their functions for other callers."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
from jaxtyping import Array, Float

from snnjax._types import wide
from snnjax.neurons._neuron import Bound, Neuron, aligned, check_inputs, reset_membrane
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
    r"""A neuron model in the form that `snnjax.lif_network` supports, with one or two linear states ``v`` and ``w``.

    With the current :math:`I`, a prime for the previous step, and ``s' = [v' > threshold + threshold_coupling w']``:

    .. math::

        w &= \alpha_w w' + a v' + g_w I + b s' \\
        v &= \alpha\, \mathrm{reset}(v', s') + g I + c w \\
        s &= [v > \theta + \kappa w]

    The constants are `decay` :math:`\alpha`, `gain` :math:`g`, `threshold` :math:`\theta`, and of the `SecondState`
    `w_decay` :math:`\alpha_w`, `w_membrane` :math:`a`, `w_gain` :math:`g_w`, `w_jump` :math:`b`, `v_coupling`
    :math:`c` and `threshold_coupling` :math:`\kappa`.

    A reset subtracts the raised threshold. `detach_reset` stops only the gradient through the spikes in the reset; the
    gradient through the spikes that add to ``w`` always flows.

    Reference:
        Teeter et al. 2018, doi:10.1038/s41467-017-02717-4.
    """

    name: str
    constants: Callable[[Any], GLIFConstants]  # params -> constants, through which the gradients flow
    surrogate: Surrogate
    reset: str = "subtract"  # or "zero" or "none"
    detach_reset: bool = True


def glif_pieces(form: GLIF) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Make `integrate` and `fire` of a `Neuron` in this form; its state holds ``v``, or ``v`` and ``w`` in this order.

    A network runs a neuron with these functions in the fused op `snnjax.lif_network`.

    Example:
        >>> import jax.numpy as jnp
        >>> from snnjax import neurons
        >>> half = neurons.GLIFConstants(jnp.array(0.5), jnp.array(1.0), jnp.array(0.5))
        >>> form = neurons.GLIF("mine", lambda params: half, neurons.lif().surrogate)
        >>> integrate, fire = neurons.glif_pieces(form)
        >>> integrate((), neurons.LIFState(jnp.array([[1.5]])), jnp.array([[2.0]]))[0]
        Array([[1.25]], dtype=float32)
    """
    return Bound(glif_integrate, form=form), Bound(glif_fire, form=form)


def glif_of(neuron: Neuron) -> GLIF | None:
    """Return the form in which the fused op computes a neuron, or None if its functions are not those of a GLIF.

    Example:
        >>> from snnjax import neurons
        >>> neurons.glif_of(neurons.adlif(reset="zero")).reset
        'zero'
        >>> neurons.glif_of(neurons.adlif()._replace(fire=print)) is None
        True
    """
    own = neuron.integrate, neuron.fire
    functions = tuple(piece.func for piece in own if isinstance(piece, Bound))
    if functions != (glif_integrate, glif_fire):
        return None
    forms = [piece.keywords["form"] for piece in own if isinstance(piece, Bound)]
    return forms[0]._replace(surrogate=neuron.surrogate) if forms[0] == forms[1] else None


def glif_integrate(
    params: Any, state: Any, inputs: Float[Array, "*batch neurons"], *, form: GLIF
) -> tuple[Float[Array, "*batch neurons"], Float[Array, "..."]]:
    """The membrane whose spikes are ``[membrane > threshold]``, and that threshold."""
    resting = form.constants(params).threshold
    v, w, constants = _advance(params, state, inputs, form)
    coupling = None if constants.second_state is None else constants.second_state.threshold_coupling
    if coupling is None:
        return v, resting
    return v, constants.threshold + coupling * w


def glif_fire(
    params: Any,
    state: Any,
    inputs: Float[Array, "*batch neurons"],
    membrane: Float[Array, "*batch neurons"],
    spikes: Float[Array, "*batch neurons"],
    *,
    form: GLIF,
) -> Any:
    """The state after the step; `spikes` is unused, as the true spikes follow from the states."""
    del spikes
    if len(state) == 1:
        return state._replace(v=membrane)
    return type(state)(membrane, _advance(params, state, inputs, form)[1])


def _advance(params: Any, state: Any, inputs: Array, form: GLIF) -> tuple[Array, Any, GLIFConstants]:
    """Membrane and second state after the step, and the constants aligned to the inputs, in the accumulation dtype."""
    given = form.constants(params)
    check_inputs(form.name, given.threshold, state.v, inputs)
    constants = aligned(jax.tree.map(wide, given), inputs)
    v, current, second = state.v, wide(inputs), constants.second_state
    threshold = constants.threshold
    if second is None:
        switches = {"surrogate": form.surrogate, "reset": form.reset, "detach_reset": form.detach_reset}
        return lif_step(v, inputs, *given[:3], **switches, implementation="composed")[0], None, constants
    w = state[1]
    if second.threshold_coupling is not None:
        threshold = threshold + second.threshold_coupling * w
    before = spike(v - threshold, form.surrogate)
    sources = ((second.w_membrane, v), (second.w_gain, current), (second.w_jump, before))
    w = second.w_decay * w + sum(factor * source for factor, source in sources if factor is not None)
    u = reset_membrane(v, before, threshold, form.reset, form.detach_reset)
    new = constants.decay * u + constants.gain * current
    return new if second.v_coupling is None else new + second.v_coupling * w, w, constants
