"""The second thresholds of layers: relative to the neurons' own thresholds, or given and then looked at."""

import functools
import warnings
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np
from jaxtyping import Array

from snnjax._check import message
from snnjax._jax_compat import Tracer
from snnjax.neurons import Neuron
from snnjax.ops.select_spikes import usual_second_threshold

# Neurons whose thresholds are drawn to look at, where those of the parameters cannot be known yet.
_DRAWN = 64


def second_thresholds(layers: Sequence[Any], params: Sequence[Any], given: Sequence[Any]) -> tuple[Any, ...]:
    """The second threshold of each layer that lists its spikes, from the one `given` or from its own threshold."""
    return tuple(
        usual_second_threshold(spec.neuron.threshold(own.neuron), spec.neuron.rest)
        if spec.capacity is not None and second is None
        else second
        for spec, own, second in zip(layers, params, given, strict=True)
    )


def warn_unless_below(op: str, second: Any, neuron: Neuron, threshold: Array | None = None) -> None:
    """Warn of a number that is not below the threshold: neurons that do not spike would have no gradient.

    A traced number cannot be known. `threshold` is that of the parameters; without it, or where it is traced, the
    thresholds count with which neurons start.
    """
    if isinstance(second, Tracer) or np.ndim(second) > 0:
        return
    if threshold is None or isinstance(threshold, Tracer):
        lowest = _lowest_threshold(neuron)
    else:
        lowest = float(np.min(np.asarray(threshold)))
    if not float(second) < lowest:
        way_out = "Leave it None to have nine tenths of the way from rest to the threshold"
        text = message(op, "second_threshold", f"lie below the threshold, {lowest:g}", float(second), way_out)
        warnings.warn(text, RuntimeWarning, stacklevel=3)


@functools.cache
def _lowest_threshold(neuron: Neuron) -> float:
    """The lowest of the thresholds with which neurons of this kind start."""
    with jax.ensure_compile_time_eval():
        thresholds = jax.jit(lambda: neuron.threshold(neuron.init(jax.random.key(0), _DRAWN)))()
        return float(np.min(thresholds))
