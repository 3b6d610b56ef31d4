"""How JAX lowers some of its primitives for the platform ipu: each to one custom call that the plan knows."""

import functools
from collections.abc import Callable
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
