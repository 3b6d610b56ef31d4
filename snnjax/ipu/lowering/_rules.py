"""How JAX lowers some of its primitives for the platform ipu: each to one custom call that the plan knows."""

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import jax

from snnjax.ipu import _jax_private as private
from snnjax.ipu import _own_ops
from snnjax.ipu.lowering._callbacks import Callback
from snnjax.ipu.lowering._calls import CALLBACK, THREEFRY

PLATFORM = "ipu"


@functools.cache
def register_rules() -> None:
    """Register the rules of the platform ipu, which JAX must know already; once, and light."""
    private.register_lowering(private.threefry2x32_p, _lower_threefry, PLATFORM)
    private.register_lowering(private.iota_2x32_shape_p, _lower_counters, PLATFORM)
    for primitive in private.DEBUG_PRIMITIVES:
        private.register_lowering(primitive, functools.partial(_lower_debug, primitive), PLATFORM)
    for primitive in private.primitives_of_others(PLATFORM):  # eigh and its like, for `_calls` to refuse
        private.register_lowering(primitive, _lower_unknown(primitive), PLATFORM)
    _own_ops.platform_is_there(PLATFORM)


def _lower_threefry(context: Any, *operands: Any) -> Any:
    return jax.ffi.ffi_lowering(THREEFRY)(context, *operands)


def _lower_unknown(primitive: Any) -> Callable[..., Any]:
    """A call of a target of that name, with no attributes, for none can be needed."""
    return lambda context, *operands, **_: jax.ffi.ffi_lowering(primitive.name)(context, *operands)


def _lower_counters(context: Any, *, shape: Sequence[int]) -> Any:
    """0, 1, 2 ... in two words: no IPU holds 2^32 elements, so that the high one is 0 and none needs 64 bits."""
    return private.lower_function(functools.partial(_counters, shape), context)


def _counters(shape: Sequence[int]) -> tuple[jax.Array, jax.Array]:
    low = jax.lax.iota("uint32", math.prod(shape)).reshape(shape)
    return jax.lax.full_like(low, 0), low


def _lower_debug(primitive: Any, context: Any, *operands: Any, **parameters: Any) -> list[Any]:
    """A call to what the primitive does with arrays at hand; programs of an IPU run one after the other."""
    if parameters.get("ordered") or private.is_ordered(parameters.get("effect")):
        raise NotImplementedError(
            f"{primitive.name}: `ordered` must be False on platform ipu, got True. "
            "Leave it out: the callbacks of one program run in order."
        )
    callback = Callback(functools.partial(primitive.impl, **parameters))
    context.module_context.add_keepalive(callback)
    jax.ffi.ffi_lowering(CALLBACK, has_side_effect=True)(context, *operands, number=callback.number)
    return []
