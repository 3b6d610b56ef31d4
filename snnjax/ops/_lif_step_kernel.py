"""How `lif_step` calls its compiled kernels, when it is told to (see xla_ext/cpu/lif_step.cpp)."""

from typing import Any

import numpy as np
from jaxtyping import Array

from snnjax import _dispatch, _targets
from snnjax.ops._kernel_operands import obstacle_of, result_like, surrogate_attributes

# The numbers of `Reset` in xla_ext/cpu/kernels.hpp and of `ResetTime` in xla_ext/cpu/lif_step.cpp.
_RESETS = {"subtract": 0, "zero": 1, "none": 2}
_RESET_TIMES = {"before_decay": 0, "after_decay": 1, "immediate": 2}


def _attributes(convention: Any) -> dict[str, Any]:
    return {
        **surrogate_attributes(convention.surrogate),
        "reset": np.int64(_RESETS[convention.reset]),
        "detach_reset": convention.detach_reset,
        "reset_time": np.int64(_RESET_TIMES[convention.reset_time]),
        "takes_old_spikes": convention.spike_from == "old",
        "inclusive": convention.inclusive,
    }


def _call(operands: tuple[Array, ...], convention: Any, groups: int) -> list[Array]:
    results = [result_like(groups, operands[0])] * 2
    return _targets.call("snnjax_lif_step", operands, results, **_attributes(convention))


def _call_backward(
    operands: tuple[tuple[Array, ...], tuple[Array, Array]], convention: Any, groups: int
) -> list[Array]:
    inputs, cotangents = operands
    results = [result_like(groups, operand) for operand in inputs]
    leaves = (*inputs, *cotangents)
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
