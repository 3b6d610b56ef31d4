"""How `select_spikes` calls its compiled kernels (see xla_ext/cpu/select_spikes.cpp)."""

from typing import Any

import jax.numpy as jnp
from jaxtyping import Array

from snnjax import _dispatch, _targets
from snnjax._types import id_dtype
from snnjax.ops._kernel_operands import obstacle_of, result, result_like, surrogate_attributes


def _call(operands: tuple[Array, ...], selection: Any, groups: int) -> list[Array]:
    _, rows, neurons = operands[0].shape
    lists = (groups, rows, selection.capacity)
    results = [
        result(*lists, dtype=id_dtype(neurons)),
        result(*lists, dtype=operands[0].dtype),
        result(groups, rows, dtype=jnp.int32),
        result(groups, rows, dtype=jnp.int32),
    ]
    return _targets.call("snnjax_select_spikes", operands, results)


def _call_backward(operands: tuple[Array, ...], selection: Any, groups: int) -> list[Array]:
    results = [result_like(groups, operand) for operand in operands[:2]]
    attributes = surrogate_attributes(selection.surrogate)
    return _targets.call("snnjax_select_spikes_backward", operands, results, **attributes)


def _obstacle(shapes: tuple[Any, ...], selection: Any) -> str | None:
    return obstacle_of("membranes", shapes[0], selection.surrogate)


KERNEL = _dispatch.Kernel(_call, _obstacle)
BACKWARD_KERNEL = _dispatch.Kernel(_call_backward, _obstacle)
