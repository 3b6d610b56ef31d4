"""JAX's lowering rules for the platform ipu, each a function of a primitive, JAX's context, operands and parameters.

`snnjax_jax_plugin` registers them by name, and imports this module when JAX lowers the first one.
"""

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

from snnjax import _jax_compat
from snnjax._jax_compat import Lowered, LoweringContext, Primitive, Value
from snnjax.ipu.lowering.rules import pooling
from snnjax.ipu.lowering.rules.callbacks import Callback
from snnjax.ipu.lowering.rules.calls import CALLBACK, THREEFRY


def lower_threefry(primitive: Primitive, context: LoweringContext, *operands: Value) -> Lowered:
    """One call of the cipher."""
    del primitive
    return jax.ffi.ffi_lowering(THREEFRY)(context, *operands)


def lower_unknown(primitive: Primitive, context: LoweringContext, *operands: Value, **_: object) -> Lowered:
    """A call to a target with the primitive's name, which `calls` refuses; it needs no attributes.

    A primitive without results is there for its side effect and must not be removed as dead code.
    """
    return jax.ffi.ffi_lowering(primitive.name, has_side_effect=not context.avals_out)(context, *operands)


def lower_pooling(
    primitive: Primitive, context: LoweringContext, *operands: Value, **parameters: Any
) -> Lowered:
    """The gradient of pooling by maxima of small windows."""
    if not pooling.is_small(parameters["window_dimensions"]):
        return lower_unknown(primitive, context, *operands)

    def gradient(*arrays: jax.Array) -> tuple[jax.Array]:
        return (pooling.select_and_scatter_add(*arrays, **parameters),)

    return _jax_compat.lower_function(gradient, context, *operands)


def lower_check(*_: object, debug: bool, **__: object) -> Lowered:
    """`checkify.debug_check` does nothing unless it is functionalised; `checkify.check` must be.

    If checkify is imported after the platform is registered, JAX has no rule for either, and says so.
    """
    if debug:
        return []
    raise NotImplementedError(
        "checkify.check: `check` must be functionalised on platform ipu, got one that is not. "
        "Call the function through checkify.checkify."
    )


def lower_counters(primitive: Primitive, context: LoweringContext, *, shape: Sequence[int]) -> Lowered:
    """0, 1, 2 ... as two words: no IPU holds 2^32 elements, so the high word is 0 and 64 bits are not needed."""
    del primitive
    return _jax_compat.lower_function(functools.partial(_counters, shape), context)


def _counters(shape: Sequence[int]) -> tuple[jax.Array, jax.Array]:
    low = jax.lax.iota("uint32", math.prod(shape)).reshape(shape)
    return jax.lax.full_like(low, 0), low


def lower_debug(
    primitive: Primitive, context: LoweringContext, *operands: Value, **parameters: object
) -> Lowered:
    """A call to the primitive's implementation on the host."""
    call = functools.partial(primitive.impl, **parameters)
    return _call_host(context, call, operands, has_side_effect=True)


def lower_callback(
    primitive: Primitive,
    context: LoweringContext,
    *operands: Value,
    implementation: Callable[..., Any],
    **parameters: object,
) -> Lowered:
    """A call of a function on the host whose results the program goes on with, checked for their types."""
    call = functools.partial(implementation, **parameters)
    expected = [(each.shape, each.dtype) for each in context.avals_out]

    def checked(*arrays: np.ndarray) -> list[np.ndarray]:
        results = [_jax_compat.canonical(each) for each in call(*arrays)]
        actual = [(each.shape, each.dtype) for each in results]
        if actual != expected:
            raise ValueError(
                f"{primitive.name}: `callback` must return {_described(expected)}, got {_described(actual)}. "
                "Give `result_shape_dtypes` what it returns."
            )
        return results

    return _call_host(context, checked, operands, has_side_effect=primitive.name != "pure_callback")


def _described(types: Sequence[tuple[tuple[int, ...], Any]]) -> str:
    return ", ".join(f"{dtype}{list(shape)}" for shape, dtype in types) or "nothing"


def _call_host(
    context: LoweringContext,
    function: Callable[..., Any],
    operands: Sequence[Value],
    *,
    has_side_effect: bool,
) -> Lowered:
    """A call by number. Programs of an IPU run one after another, and their calls in order: tokens add nothing."""
    callback = Callback(function)
    context.module_context.add_keepalive(callback)
    rule = jax.ffi.ffi_lowering(CALLBACK, has_side_effect=has_side_effect)
    results = rule(context, *operands, number=callback.number)
    context.set_tokens_out(context.tokens_in)
    return list(results)
