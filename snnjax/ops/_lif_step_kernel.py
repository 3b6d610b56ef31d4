"""How `lif_step` calls its compiled kernels, when it is told to (see xla_ext/cpu/lif_step.cpp)."""

from typing import Any

import numpy as np
from jaxtyping import Array

from snnjax import _dispatch, _targets
from snnjax._types import RESET_TIMES, RESETS
from snnjax.ops._kernel_operands import obstacle_of, surrogate_attributes


def _attributes(convention: Any) -> dict[str, Any]:
    return {
        **surrogate_attributes(convention.surrogate),
        "reset": np.int64(RESETS.index(convention.reset)),
        "detach_reset": convention.detach_reset,
        "reset_time": np.int64(RESET_TIMES.index(convention.reset_time)),
        "takes_old_spikes": convention.spike_from == "old",
        "inclusive": convention.inclusive,
    }


def _call(operands: tuple[Array, ...], convention: Any, results: Any) -> list[Array]:
    return _targets.call("snnjax_lif_step", operands, results, **_attributes(convention))


def _call_backward(
    operands: tuple[tuple[Array, ...], tuple[Array, Array]], convention: Any, results: Any
) -> list[Array]:
    leaves = (*operands[0], *operands[1])
    return _targets.call("snnjax_lif_step_backward", leaves, results, **_attributes(convention))


def _never_pays(shapes: Any, convention: Any) -> bool:
    """XLA fuses the few operations of a step with each other and with their surroundings.

    On two cores with AVX-512 the kernel took 1.2 to 10 times as long as the reference (1 x 128 to 128 x 4096 neurons,
    forward and with the gradient, alone and in a scan with a product): it is here to be held against the reference.
    """
    del shapes, convention
    return False


KERNEL = _dispatch.Kernel(
    _call,
    lambda shapes, convention: obstacle_of("membranes", shapes[0], convention.surrogate),
    _never_pays,
)
BACKWARD_KERNEL = _dispatch.Kernel(
    _call_backward,
    lambda shapes, convention: obstacle_of("membranes", shapes[0][0], convention.surrogate),
    _never_pays,
)
