"""The capacity of spike lists and the second threshold, as they are given for spiking neurons."""

import functools
import numbers
import warnings

import jax
import numpy as np
from jaxtyping import Array

from snnjax._check import check_integer, check_no_nan, fail, short_repr
from snnjax._jax_compat import Tracer
from snnjax._types import Unchecked
from snnjax.neurons import Neuron
from snnjax.neurons._neuron import drawn

# Number of neurons whose thresholds are drawn for a check when those of the parameters are not known yet.
_DRAWN = 64


def checked_capacity(op: str, capacity: Unchecked) -> int | float | None:
    """A capacity, as a number of Python."""
    if capacity is None:
        return None
    if isinstance(capacity, float | np.floating):
        if not 0 < capacity < 1:
            fail(
                f"{op}: `capacity` must be a fraction between 0 and 1 or an integer, got {capacity}. "
                "Pass a whole number of slots, or None for the full gradient."
            )
        return float(str(capacity))  # 0.1 in float32 means 0.1, not the next larger number of float64
    return check_integer(op, "capacity", capacity, 1)


def checked_second(op: str, second: Unchecked) -> float | None:
    """A second threshold, as a number of Python."""
    if second is None:
        return None
    if isinstance(second, bool) or not isinstance(second, numbers.Real):
        fail(
            f"{op}: `second_threshold` must be a number or None, got {short_repr(second)}. "
            "Pass arrays to network.apply."
        )
    check_second_number(op, second)
    return float(second)


def check_second_number(op: str, second: Unchecked) -> None:
    """Check that a second threshold is not NaN: nothing is above it, so that silent neurons would have no gradient."""
    check_no_nan(
        op, "second_threshold", second, "Leave it None for nine tenths of the way from rest to the threshold"
    )


def warn_unless_below(op: str, second: Unchecked, neuron: Neuron, threshold: Array | None = None) -> None:
    """Warn about a number that is not below the threshold: neurons that do not spike would have no gradient.

    A traced number cannot be checked. `threshold` is that of the parameters; without it, or if it is traced, the
    initial thresholds of the neurons are used.
    """
    if isinstance(second, Tracer) or np.ndim(second) > 0:
        return
    if threshold is None or isinstance(threshold, Tracer):
        lowest = _lowest_threshold(neuron)
    else:
        lowest = float(np.min(np.asarray(threshold)))
    if not float(second) < lowest:
        warnings.warn(
            f"{op}: `second_threshold` must be below the threshold, {lowest:g}, got {float(second)}. "
            "Leave it None for nine tenths of the way from rest to the threshold.",
            RuntimeWarning,
            stacklevel=5,
        )


def warn_if_at_rest(op: str, neuron: Neuron) -> None:
    """Warn about a threshold given as the membrane at rest, where the default second threshold is the threshold."""
    given = dict(neuron.arguments).get("threshold")
    if isinstance(given, numbers.Real) and given == neuron.rest:
        warnings.warn(
            f"{op}: `second_threshold` must be given for neurons whose threshold is the membrane at rest, "
            f"{neuron.rest:g}, got None. Pass one below it, or neurons that do not spike have no gradient.",
            RuntimeWarning,
            stacklevel=5,
        )


@functools.cache
def _lowest_threshold(neuron: Neuron) -> float:
    """The lowest initial threshold of neurons of this kind."""
    thresholds = jax.jit(lambda: neuron.threshold(drawn(neuron, jax.random.key(0), _DRAWN)))
    return float(np.min(np.asarray(thresholds.lower().compile()())))
