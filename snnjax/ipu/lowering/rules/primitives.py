"""How JAX lowers some of its primitives for the platform ipu: each to what the plan has one instruction for.

`snnjax_jax_plugin` registers them, and imports them when JAX lowers the first.
"""

import functools
import math
from collections.abc import Sequence
from typing import Any

import jax

from snnjax import _jax_compat
from snnjax.ipu.lowering.rules.callbacks import Callback
from snnjax.ipu.lowering.rules.calls import CALLBACK, THREEFRY


def lower_threefry(context: Any, *operands: Any) -> Any:
    """One call of the cipher."""
    return jax.ffi.ffi_lowering(THREEFRY)(context, *operands)


def lower_unknown(primitive: Any, context: Any, *operands: Any) -> Any:
    """A call of a target of the primitive's name, without attributes, because none is needed: `calls` refuses it.

    One without results is there for its effect, and must not be taken for dead code.
    """
    return jax.ffi.ffi_lowering(primitive.name, has_side_effect=not context.avals_out)(context, *operands)


def lower_check(*, debug: bool, **_: Any) -> list[Any]:
    """`checkify.debug_check` does nothing unless it is functionalised, and `checkify.check` cannot do without.

    Where checkify is imported after the platform was registered, JAX has no rule for either, and says so.
    """
    if debug:
        return []
    raise NotImplementedError(
        "checkify.check: `check` must be functionalised on platform ipu, got one that is not. "
        "Call the function through checkify.checkify."
    )


def lower_counters(context: Any, *, shape: Sequence[int]) -> Any:
    """0, 1, 2 ... in two words: no IPU holds 2^32 elements, so that the high one is 0 and none needs 64 bits."""
    return _jax_compat.lower_function(functools.partial(_counters, shape), context)


def _counters(shape: Sequence[int]) -> tuple[jax.Array, jax.Array]:
    low = jax.lax.iota("uint32", math.prod(shape)).reshape(shape)
    return jax.lax.full_like(low, 0), low


def lower_debug(primitive: Any, context: Any, *operands: Any, **parameters: Any) -> list[Any]:
    """A call to what the primitive does with arrays at hand; programs of an IPU run one after the other."""
    if parameters.get("ordered") or _jax_compat.is_ordered(parameters.get("effect")):
        raise NotImplementedError(
            f"{primitive.name}: `ordered` must be False on platform ipu, got True. "
            "Leave it out: the callbacks of one program run in order."
        )
    callback = Callback(functools.partial(primitive.impl, **parameters))
    context.module_context.add_keepalive(callback)
    jax.ffi.ffi_lowering(CALLBACK, has_side_effect=True)(context, *operands, number=callback.number)
    return []
