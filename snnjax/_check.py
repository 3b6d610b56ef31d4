"""Argument checks with uniform messages.

Every message has the form ``op: `argument` must <expected>, got <actual>. <one way out>.`` so that one line says what
is wrong, where, and what to do.
"""

from collections.abc import Sequence
from typing import Any, NoReturn

import jax
import jax.export
import jax.numpy as jnp
import numpy as np

from snnjax._jax_compat import Tracer

# The largest size: ids, lengths and counts are int32, and so is the id that pads a list, the number of neurons.
MAX_SIZE = 2**31 - 1
_LONGEST = 60  # characters of a value in a message


def message(op: str, argument: str, expected: str, actual: object, hint: str) -> str:
    """Format the text of an error, ``op: `argument` must <expected>, got <actual>. <hint>.``."""
    return f"{op}: `{argument}` must {expected}, got {actual}. {hint}."


def shown(value: object) -> str:
    """A short text for a value in a message, however large the value is."""
    shape, dtype = getattr(value, "shape", None), getattr(value, "dtype", None)
    if shape and dtype is not None:
        return f"{dtype}{list(shape)}"
    text = repr(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def fail(op: str, argument: str, expected: str, actual: object, hint: str) -> NoReturn:
    """Raise a `ValueError` with the text of `message`."""
    raise ValueError(message(op, argument, expected, actual, hint))


def check_rounding(op: str, argument: str, dtype: Any) -> bool:
    """Whether `dtype` asks for rounding to bfloat16; None does not, and no other is known."""
    good = dtype is None or dtype in (jnp.bfloat16, "bfloat16")
    check(good, op, argument, "be bfloat16 or None", repr(dtype), "Omit it for float32")
    return dtype is not None


def check(condition: bool, op: str, argument: str, expected: str, actual: object, hint: str) -> None:
    """Raise a `ValueError` with the text of `message` unless `condition` holds."""
    if not condition:
        fail(op, argument, expected, actual, hint)


def check_choice(op: str, argument: str, value: object, choices: Sequence[Any]) -> None:
    """Check that `value` is one of `choices`."""
    check(
        value in choices,
        op,
        argument,
        "be one of " + ", ".join(repr(c) for c in choices),
        shown(value),
        "Choose one of these",
    )


def check_switches(op: str, **switches: Any) -> None:
    """Check that every keyword argument is True or False: anything else would be read as one of them."""
    for argument, value in switches.items():
        good = isinstance(value, bool | np.bool_)
        check(good, op, argument, "be True or False", shown(value), "Choose one of these")


def check_integer(op: str, argument: str, value: Any, least: int, bits: int = 31) -> None:
    """Check that `value` is a Python or NumPy integer of at least `least` that fits into this many bits."""
    is_integer = isinstance(value, int | np.integer) and not isinstance(value, bool)
    hint = "Pass a larger integer" if is_integer else "Pass an int"
    good = is_integer and bool(value >= least)
    check(good, op, argument, f"be an integer of at least {least}", shown(value), hint)
    check(int(value) < 2**bits, op, argument, f"be below 2**{bits}", shown(value), "Pass a smaller integer")


def check_size(op: str, argument: str, value: Any) -> None:
    """Check that `value` is the length of an axis, which may be symbolic for `jax.export`."""
    if not jax.export.is_symbolic_dim(value):
        check_integer(op, argument, value, 0)


def check_key(op: str, key: Any) -> None:
    """Check that `key` is a PRNG key of either kind, or an array of keys."""
    dtype = getattr(key, "dtype", None)
    good = dtype is not None and (jnp.issubdtype(dtype, jax.dtypes.prng_key) or dtype == jnp.uint32)
    check(good, op, "key", "be a PRNG key", shown(key), "Make one with jax.random.key(0)")


def check_array(op: str, argument: str, value: Any) -> None:
    """Check that `value` is an array, traced or not; Python lists and numbers are not arrays."""
    # Neither the shape of an array (`jax.ShapeDtypeStruct`) nor the tensor of another library has `astype`.
    good = all(hasattr(value, attribute) for attribute in ("shape", "dtype", "ndim", "astype"))
    good = good and not isinstance(value, tuple)  # such as weights of 8 bits with their scale
    check(good, op, argument, "be an array", type(value).__name__, "Pass a JAX or NumPy array")


def check_number(op: str, argument: str, value: Any) -> None:
    """Check that `value` is a Python number or an array."""
    if not isinstance(value, float | int):
        check_array(op, argument, value)


def check_real_array(op: str, argument: str, value: Any) -> None:
    """Check that `value` is an array whose dtype is not complex."""
    check_array(op, argument, value)
    hint = f"Pass {argument}.real, or its absolute value"
    is_complex = jnp.issubdtype(value.dtype, jnp.complexfloating)
    check(not is_complex, op, argument, "be real numbers", value.dtype.name, hint)


def check_dtype(op: str, dtype: Any) -> None:
    """Check that `dtype` is floating-point."""
    good = jnp.issubdtype(dtype, jnp.floating)
    check(
        good,
        op,
        "dtype",
        "be a floating-point dtype",
        jnp.dtype(dtype).name,
        "Pass jnp.float32 or jnp.bfloat16",
    )


def check_float(op: str, argument: str, value: Any) -> None:
    """Check that `value` is a Python float or a floating-point array."""
    check_number(op, argument, value)
    dtype = jnp.result_type(value)
    check(
        jnp.issubdtype(dtype, jnp.floating),
        op,
        argument,
        "have a floating-point dtype",
        dtype.name,
        f"Cast it, for instance {argument}.astype(jnp.float32)",
    )


def check_float_array(op: str, argument: str, value: Any) -> None:
    """Check that `value` is a floating-point array."""
    check_array(op, argument, value)
    check_float(op, argument, value)


def check_shape(
    op: str, argument: str, value: Any, shape: Sequence[int | None], axes: str, hint: str
) -> None:
    """Check that `value` has `shape`, in which None allows any length; `axes` names the axes."""
    actual = value.shape if hasattr(value, "shape") else np.shape(value)
    good = len(actual) == len(shape) and all(
        want in (None, have) for want, have in zip(shape, actual, strict=True)
    )
    wanted = ", ".join("any" if n is None else str(n) for n in shape)
    check(good, op, argument, f"have shape [{axes}] = [{wanted}]", list(actual), hint)


def concrete(value: Any) -> np.ndarray | None:
    """The numbers of an array; None while it is traced, or if other processes hold a part of it."""
    if isinstance(value, Tracer) or not getattr(value, "is_fully_addressable", True):
        return None
    return np.asarray(value)


def check_within(op: str, argument: str, value: Any, most: int, hint: str, least: int = 0) -> None:
    """Check that integers are between `least` and `most`; traced ones cannot be checked."""
    known = concrete(value)
    if known is None or known.size == 0:
        return
    low, high = int(known.min()), int(known.max())
    expected, actual = f"be between {least} and {most}", low if low < least else high
    check(least <= low and high <= most, op, argument, expected, actual, hint)


def batch_hint(actual: Sequence[int], steps: int, batch: int, hint: str) -> str:
    """The way out for a value that should have one entry for each sequence: another one if it has one for each step."""
    if steps != batch and len(actual) == 1 and actual[0] == steps:
        return "Is the batch axis first? Time comes first: swap the two with jnp.swapaxes(x, 0, 1)"
    return hint


def as_lengths(op: str, lengths: Any, steps: int, batch: int) -> jax.Array:
    """The number of steps of each sequence as int32 ``[batch]``, after checking its shape, dtype and values.

    Traced values cannot be checked: those beyond the steps count as all steps, and negative ones as none.
    """
    lengths = jnp.asarray(lengths)
    hint = batch_hint(lengths.shape, steps, batch, "Pass the number of steps of each sequence")
    check_shape(op, "lengths", lengths, (batch,), "batch", hint)
    whole = jnp.issubdtype(lengths.dtype, jnp.integer)
    check(whole, op, "lengths", "be integers", lengths.dtype.name, "Cast with lengths.astype(jnp.int32)")
    check_within(op, "lengths", lengths, steps, "Pass the number of steps of each sequence")
    lengths = lengths.astype(jnp.int32)
    return jnp.clip(lengths, 0, steps) if isinstance(lengths, Tracer) else lengths
