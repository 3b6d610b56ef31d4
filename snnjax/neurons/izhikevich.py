"""Izhikevich neurons: two equations that reproduce the firing patterns of most cortical cells."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.typing import DTypeLike
from jaxtyping import Array

from snnjax._arguments import explained
from snnjax._check import check_choice, check_switches
from snnjax._types import Params, upcast
from snnjax.neurons._constants import Constant
from snnjax.neurons._model import Given, Parameter, draws_of, given_of, values_of
from snnjax.neurons._neuron import Neuron
from snnjax.neurons._step import Bound, at_zero, check_inputs
from snnjax.ops._glif_step import align
from snnjax.surrogates import Surrogate, as_surrogate, superspike

PEAK = 30.0  # mV, at which a spike is cut off
REST = -65.0  # mV, the initial membrane potential
HALF_STEP = 0.5  # ms; the membrane takes two of these per step of 1 ms
# The surrogate's distance to the peak is in mV, so it is wider than for membranes of order 1.
SURROGATE = superspike(slope=0.1)

# (recovery_rate, sensitivity, reset_voltage, reset_recovery), a to d of the paper's figure 2.
PRESETS = {
    "regular_spiking": (0.02, 0.2, -65.0, 8.0),
    "intrinsically_bursting": (0.02, 0.2, -55.0, 4.0),
    "chattering": (0.02, 0.2, -50.0, 2.0),
    "fast_spiking": (0.1, 0.2, -65.0, 2.0),
    "low_threshold_spiking": (0.02, 0.25, -65.0, 2.0),
    "thalamo_cortical": (0.02, 0.25, -65.0, 0.05),
    "resonator": (0.1, 0.26, -65.0, 2.0),
}


class IzhikevichParams(NamedTuple):
    """The parameters of `izhikevich`; None for constants that are not learned."""

    recovery_rate: Array | None = None  # [neurons] `a`, 1/ms
    sensitivity: Array | None = None  # [neurons] `b`, sensitivity of the recovery to the membrane
    reset_voltage: Array | None = None  # [neurons] `c`, mV
    reset_recovery: Array | None = None  # [neurons] `d`


class IzhikevichState(NamedTuple):
    """The state of `izhikevich`."""

    v: Array  # [batch, neurons] membrane, mV
    recovery: Array  # [batch, neurons] `u`
    spikes: Array  # [batch, neurons] of the last step


_PARAMETERS = tuple(Parameter(name, "learn") for name in IzhikevichParams._fields)


@explained
def izhikevich(
    preset: str = "regular_spiking",
    *,
    recovery_rate: Constant | None = None,
    sensitivity: Constant | None = None,
    reset_voltage: Constant | None = None,
    reset_recovery: Constant | None = None,
    per: str = "channel",
    surrogate: str | Surrogate = SURROGATE,
    detach_reset: bool = True,
    learn: bool = False,
) -> Neuron:
    r"""Make Izhikevich neurons, with steps of 1 ms and membranes in mV.

    With the spikes ``s'`` of the previous step, the inputs :math:`x`, and `recovery_rate` :math:`a`, `sensitivity`
    :math:`b`, `reset_voltage` :math:`c` and `reset_recovery` :math:`d`; the membrane takes two half steps, as in the
    paper:

    .. math::

        v &= v' + (c - v') s', \qquad u = u' + d s' \\
        v &\leftarrow v + 0.5\, (0.04 v^2 + 5 v + 140 - u + x) \quad \text{twice} \\
        u &\leftarrow u + a (b v - u) \\
        s &= [v > 30]

    Before the first step, :math:`v` is -65 mV and :math:`u = b v`, through which `b` has no gradient. The presets fire
    for inputs above about 4. Precision below float32 is too coarse for membranes in mV.

    Args:
        preset: "regular_spiking", "intrinsically_bursting", "chattering", "fast_spiking", "low_threshold_spiking",
            "thalamo_cortical" or "resonator".
        recovery_rate: `a` in the paper, instead of the preset's value; a number, or a range (low, high) from which
            it is drawn. The same holds for `sensitivity` (`b`), `reset_voltage` (`c`) and `reset_recovery` (`d`).
        per: as for `lif`.
        surrogate: surrogate of the spikes, a function of the distance to the peak in mV.
        detach_reset: no gradient through the spikes in the reset.
        learn: whether the four constants are learned. Nothing bounds them: the model is stable near its presets.

    Raises:
        ValueError: if the preset or the surrogate is unknown.

    Example:
        >>> from snnjax import neurons
        >>> neurons.izhikevich("chattering", learn=True).init(jax.random.key(0), 1).reset_voltage
        Array([-50.], dtype=float32)
        >>> neuron = neurons.izhikevich()
        >>> params = neuron.init(jax.random.key(0), 1)
        >>> state, count = neuron.initial_state(params, 1, 1), 0
        >>> for _ in range(100):
        ...     state, spikes = neuron.step(params, state, jnp.array([[10.0]]))
        ...     count += int(spikes[0, 0])
        >>> count
        3

    Reference:
        Izhikevich 2003, doi:10.1109/TNN.2003.820440.
    """
    check_choice("izhikevich", "preset", preset, tuple(PRESETS))
    given = (recovery_rate, sensitivity, reset_voltage, reset_recovery)
    values = (usual if value is None else value for value, usual in zip(given, PRESETS[preset], strict=True))
    arguments = dict(zip(IzhikevichParams._fields, values, strict=True), learn=learn, per=per)
    own = given_of("izhikevich", IzhikevichParams, _PARAMETERS, arguments)
    check_switches("izhikevich", detach_reset=detach_reset)
    return Neuron(
        "izhikevich",
        **draws_of(own),
        initial_state=Bound(_initial_state, given=own),
        integrate=Bound(_integrate, given=own, detach_reset=detach_reset),
        fire=_fire,
        threshold=_threshold,
        surrogate=as_surrogate("izhikevich", surrogate),
        rest=REST,
    )


def _initial_state(
    params: IzhikevichParams, batch: int, num_neurons: int, dtype: DTypeLike = jnp.float32, *, given: Given
) -> IzhikevichState:
    """As in the paper: membrane at -65 mV, recovery at ``sensitivity v``, no spikes."""
    silent = at_zero(batch, num_neurons, dtype)
    v = jnp.full_like(silent, REST)
    sensitivity = jax.lax.stop_gradient(values_of(params, given)[1])
    return IzhikevichState(v, align(sensitivity, v) * v, silent)


def _threshold(params: Params) -> Array:
    """The peak of 30 mV at which a spike is cut off."""
    del params
    return jnp.asarray(PEAK)


def _integrate(
    params: IzhikevichParams, state: IzhikevichState, inputs: Array, *, given: Given, detach_reset: bool
) -> tuple[Array, Array, IzhikevichState]:
    """Reset and 1 ms, in at least float32."""
    check_inputs("izhikevich.step", state.v, inputs)
    inputs = upcast(inputs)
    rate, sensitivity, reset_voltage, reset_recovery = (
        align(value, inputs) for value in values_of(params, given)
    )
    before = jax.lax.stop_gradient(state.spikes) if detach_reset else state.spikes
    v = state.v + (reset_voltage - state.v) * before
    recovery = state.recovery + reset_recovery * before
    for _ in range(2):
        v = v + HALF_STEP * (0.04 * v**2 + 5 * v + 140 - recovery + inputs)
    recovery = recovery + rate * (sensitivity * v - recovery)
    return v, _threshold(params), IzhikevichState(v, recovery, before)


def _fire(state: IzhikevichState, spikes: Array) -> IzhikevichState:
    return state._replace(spikes=spikes.astype(state.spikes.dtype))
