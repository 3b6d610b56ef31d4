"""What neurons with synaptic currents and with conductances share: their constants in steps of `dt`."""

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array

from snnjax._check import fail, short_repr
from snnjax._types import Unchecked
from snnjax.neurons._step import Bound
from snnjax.ops._simulation.records import constants, known, positive, scalar
from snnjax.surrogates import CustomSurrogate, Surrogate, as_surrogate

_MOST_STEPS = 2**24  # that the kernels count
# A time constant is taken for another one if they differ by less: their exact solution divides by the difference.
_SAME = 1e-9


def in_steps(op: str, refractory: ArrayLike, dt: float) -> Array:
    """A refractory period in ms as the nearest number of steps, int32."""
    time = positive(op, "refractory", refractory, or_zero=True)
    steps = np.rint(time / dt)
    for lost in time[(time > 0) & (steps == 0)]:
        hint = "Use a smaller dt, or 0 for none"
        fail(f"{op}: `refractory` must be 0 or round to a step of {dt:g} ms, got {lost:g}. {hint}.")
    if np.any(steps >= _MOST_STEPS):
        most = float(np.max(steps))
        fail(f"{op}: `refractory` must be below {_MOST_STEPS} steps of dt, got {most:g}. Use a larger dt.")
    return jnp.asarray(steps, jnp.int32)


def voltages(op: str, **values: ArrayLike) -> dict[str, Array]:
    """Potentials in mV by name."""
    found = {name: known(op, name, value) for name, value in values.items()}
    _check_reset(op, found["reset"], found["threshold"])
    return {name: constants(value) for name, value in found.items()}


def _check_reset(op: str, reset: np.ndarray, threshold: np.ndarray) -> None:
    """Check that a neuron is below its threshold after a spike: else it would spike again whenever it is free."""
    if len({len(reset), len(threshold)} - {1}) > 1:
        return  # constants of unlike numbers of neurons, which `simulate` refuses
    reset, threshold = np.broadcast_arrays(reset, threshold)
    for own, most in zip(reset[reset > threshold], threshold[reset > threshold], strict=True):
        fail(f"{op}: `reset` must be at most the threshold, {most:g}, got {own:g}. Do not swap the two.")


def sequence(op: str, name: str, values: Unchecked) -> Sequence[Any]:
    """One value for each receptor, of which there is at least one."""
    if not isinstance(values, tuple | list) or not values:
        hint = "Pass one for each receptor, such as (5.0, 10.0)"
        fail(f"{op}: `{name}` must be a tuple of at least one entry, got {short_repr(values)}. {hint}.")
    return values


def stacked(op: str, name: str, rows: Sequence[np.ndarray]) -> Array:
    """Rows ``[receptors, neurons or 1]``."""
    lengths = {len(row) for row in rows} - {1}
    if len(lengths) > 1:
        found = " and ".join(map(str, sorted(lengths)))
        fail(
            f"{op}: `{name}` must be of one number of neurons, got {found}. Pass one number or one a neuron."
        )
    width = max([*lengths, 1])
    return constants(np.array([np.broadcast_to(row, width) for row in rows]))


def in_millivolts(op: str, surrogate: str | Surrogate, width: Unchecked) -> Surrogate:
    """A surrogate for distances in mV, of which `width` counts as 1."""
    base, unit = as_surrogate(op, surrogate), scalar(op, "width", width, "All neurons have one surrogate")
    functions = (Bound(function, base=base, width=unit) for function in (_derivative, _relaxed))
    return CustomSurrogate(base.name, 1.0, base.smooth, 0.0, *functions)


def _derivative(x: Array, *, base: Surrogate, width: float) -> Array:
    return base.derivative(x / width) / width


def _relaxed(x: Array, *, base: Surrogate, width: float) -> Array:
    return base.relaxed(x / width)


def decays(step: float, taus: Sequence[np.ndarray]) -> list[np.ndarray]:
    """``exp(-dt / tau)``; 0 for a time constant of 0."""
    return [np.where(tau > 0, np.exp(-step / np.where(tau > 0, tau, 1.0)), 0.0) for tau in taus]


def effect_on_membrane(step: float, tau: np.ndarray, synaptic_tau: np.ndarray) -> np.ndarray:
    """What a current of 1 mV that decays adds in a step, exactly; a current of no duration adds itself."""
    own, other = np.exp(-step / tau), decays(step, [synaptic_tau])[0]
    difference = synaptic_tau - tau
    same = np.abs(difference) <= _SAME * tau
    exact = synaptic_tau * (other - own) / np.where(same, 1.0, difference)
    return np.where(synaptic_tau == 0, 1.0, np.where(same, step / tau * own, exact))
