"""Argument checks, and the only place that raises their errors.

Every error is one sentence about what is wrong and where, and one about what to do,
``op: `argument` must <expected>, got <actual>. <hint>.``: a check has it in its source as it reads.
`tests/errors/messages.py` lists all of them, and every test checks the form of those that it provokes.
"""

from collections.abc import Sequence
from typing import Any, NoReturn

import jax
import jax.export
import jax.numpy as jnp
import numpy as np

from snnjax._jax_compat import Tracer
from snnjax._types import Unchecked, as_int32

# The largest size: ids, lengths and counts are int32, and so is the id that pads a list, the number of neurons.
MAX_SIZE = 2**31 - 1
_LONGEST = 60  # characters of a value in a message


def fail(message: str) -> NoReturn:
    """Raise a `ValueError` with this message."""
    raise ValueError(message)


def short_repr(value: Unchecked) -> str:
    """A value in a message: its repr, cut if it is long, its type if that has lines; dtype and shape of an array."""
    shape, dtype = getattr(value, "shape", None), getattr(value, "dtype", None)
    if shape and dtype is not None:
        return f"{dtype}{list(shape)}"
    text = repr(value)
    if "\n" in text:  # such as a network
        return type_words(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def type_words(value: Unchecked) -> str:
    """The type of a value in a message: "a list", "an int", "an array", "None"."""
    if value is None:
        return "None"
    name = "array" if isinstance(value, jax.Array | np.ndarray) else type(value).__name__
    return f"{'an' if name[0] in 'aeioAEIO' else 'a'} {name}"


def plural(count: int, noun: str) -> str:
    """A number of things: "1 layer", "2 layers"."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def alternatives(choices: Sequence[str]) -> str:
    """Some words as alternatives: "a, b or c"."""
    *first, last = choices
    return f"{', '.join(first)} or {last}" if first else last


def check_choice(op: str, argument: str, value: Unchecked, choices: Sequence[Any]) -> None:
    """Check that `value` is one of `choices`."""
    if value not in choices:
        known = alternatives([repr(choice) for choice in choices])
        fail(f"{op}: `{argument}` must be {known}, got {short_repr(value)}. Choose one of these.")


def check_rounding(op: str, argument: str, dtype: Unchecked) -> bool:
    """Whether `dtype` asks for rounding to bfloat16; None does not, and no other is known."""
    if dtype is not None and dtype not in (jnp.bfloat16, "bfloat16"):
        given = getattr(dtype, "__name__", short_repr(dtype))  # of a type, such as jnp.float16
        fail(f"{op}: `{argument}` must be bfloat16 or None, got {given}. Omit it for float32.")
    return dtype is not None


def check_switches(op: str, **switches: object) -> None:
    """Check that every keyword argument is True or False: anything else would be read as one of them."""
    for argument, value in switches.items():
        if not isinstance(value, bool | np.bool_):
            fail(f"{op}: `{argument}` must be True or False, got {short_repr(value)}. Choose one of these.")


def check_integer(op: str, argument: str, value: Unchecked, least: int, bits: int = 31) -> int:
    """Check that `value` is a Python or NumPy integer of at least `least` that fits into this many bits.

    It is returned as a Python integer: sums and products of NumPy's, such as ``np.uint8(200)``, would overflow.
    """
    is_integer = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not is_integer or value < least:
        hint = f"Pass {least} or more" if is_integer else f"Pass an int, such as {max(least, 1)}"
        fail(f"{op}: `{argument}` must be an integer of at least {least}, got {short_repr(value)}. {hint}.")
    if int(value) >= 2**bits:
        fail(f"{op}: `{argument}` must be below 2**{bits}, got {short_repr(value)}. Pass a smaller integer.")
    return int(value)


def check_size(op: str, argument: str, value: Unchecked) -> Any:
    """Check that `value` is the length of an axis, which may be symbolic for `jax.export`; see `check_integer`."""
    return value if jax.export.is_symbolic_dim(value) else check_integer(op, argument, value, 0)


def check_key(op: str, key: Unchecked) -> None:
    """Check that `key` is a PRNG key of either kind, or an array of keys."""
    dtype = getattr(key, "dtype", None)
    if dtype is None or not (jnp.issubdtype(dtype, jax.dtypes.prng_key) or dtype == jnp.uint32):
        fail(f"{op}: `key` must be a PRNG key, got {short_repr(key)}. Make one with jax.random.key(0).")


def check_array(op: str, argument: str, value: Unchecked) -> None:
    """Check that `value` is an array, traced or not; Python lists and numbers are not arrays."""
    # Neither the shape of an array (`jax.ShapeDtypeStruct`) nor the tensor of another library has `astype`.
    good = all(hasattr(value, attribute) for attribute in ("shape", "dtype", "ndim", "astype"))
    if not good or isinstance(value, tuple):  # such as weights of 8 bits with their scale
        fail(f"{op}: `{argument}` must be an array, got {type_words(value)}. Pass a JAX or NumPy array.")
    if np.ma.is_masked(value):  # JAX would read what the mask hides
        fail(f"{op}: `{argument}` must have no masked entries, got a MaskedArray. Leave them out.")


def check_number(op: str, argument: str, value: Unchecked) -> None:
    """Check that `value` is a Python number or an array."""
    if not isinstance(value, float | int):
        check_array(op, argument, value)


def check_per_neuron(op: str, argument: str, value: Unchecked, neurons: int) -> None:
    """Check that `value` is one number, or one for each neuron."""
    check_number(op, argument, value)
    shape = np.shape(value)
    if shape not in ((), (1,), (neurons,)):
        expected, actual = f"be a scalar or have shape [neurons] = [{neurons}]", list(shape)
        fail(f"{op}: `{argument}` must {expected}, got {actual}. Pass one value, or one per neuron.")


def check_real_array(op: str, argument: str, value: Unchecked) -> None:
    """Check that `value` is an array whose dtype is not complex."""
    check_array(op, argument, value)
    if jnp.issubdtype(value.dtype, jnp.complexfloating):
        dtype = value.dtype.name
        fail(f"{op}: `{argument}` must hold real numbers, got {dtype}. Pass its real part or absolute value.")


def check_float(op: str, argument: str, value: Unchecked) -> None:
    """Check that `value` is a Python float or a floating-point array."""
    check_number(op, argument, value)
    dtype = jnp.result_type(value)
    if not jnp.issubdtype(dtype, jnp.floating):
        hint = f"Cast it with {argument}.astype(jnp.float32)" if hasattr(value, "astype") else "Pass a float"
        fail(f"{op}: `{argument}` must have a floating-point dtype, got {dtype.name}. {hint}.")


def check_float_array(op: str, argument: str, value: Unchecked) -> None:
    """Check that `value` is a floating-point array."""
    check_array(op, argument, value)
    check_float(op, argument, value)


def check_integers(op: str, argument: str, value: Unchecked) -> None:
    """Check that `value` is an array of integers; an empty one may have any dtype, as that of an empty list has."""
    check_array(op, argument, value)
    if not jnp.issubdtype(value.dtype, jnp.integer) and value.size > 0:
        name = argument.split()[0]  # without what it is of
        hint = f"Cast it with {name}.astype(int)"
        if np.dtype(value.dtype).kind in "SU":
            hint = f"Number words with np.unique({name}, return_inverse=True)"
        fail(f"{op}: `{argument}` must hold integers, got {value.dtype.name}. {hint}.")


def check_shape(
    op: str, argument: str, value: Unchecked, shape: Sequence[int | None], axes: str, hint: str
) -> None:
    """Check that `value` has `shape`, in which None allows any length; `axes` names the axes."""
    actual = value.shape if hasattr(value, "shape") else np.shape(value)
    good = len(actual) == len(shape) and all(
        want in (None, have) for want, have in zip(shape, actual, strict=True)
    )
    if not good:
        lengths = ", ".join("any" if length is None else str(length) for length in shape)
        wanted = f"[{axes}]" if set(shape) == {None} else f"[{axes}] = [{lengths}]"
        fail(f"{op}: `{argument}` must have shape {wanted}, got {list(actual)}. {hint}.")


def concrete(value: Unchecked) -> np.ndarray | None:
    """The numbers of an array; None while it is traced, or if other processes hold a part of it."""
    if isinstance(value, Tracer) or not getattr(value, "is_fully_addressable", True):
        return None
    return np.asarray(value)


def check_within(op: str, argument: str, value: Unchecked, most: int, hint: str, least: int = 0) -> None:
    """Check that integers are between `least` and `most`; traced ones cannot be checked."""
    known = concrete(value)
    if known is None or known.size == 0:
        return
    low, high = int(known.min()), int(known.max())
    if low < least or high > most:
        wrong = low if low < least else high
        fail(f"{op}: `{argument}` must be between {least} and {most}, got {wrong}. {hint}.")


def check_no_nan(op: str, argument: str, value: Unchecked, hint: str) -> None:
    """Check that no number is NaN, which compares as false with all others; traced ones cannot be checked."""
    known = concrete(value)
    if known is not None and jnp.issubdtype(known.dtype, jnp.floating) and np.isnan(known).any():
        fail(f"{op}: `{argument}` must hold numbers, got NaN. {hint}.")


def check_kept(op: str, argument: str, value: Unchecked) -> None:
    """Check that decays, the shares of a membrane that a step keeps, are between 0 and 1.

    Traced ones cannot be checked, and what is no number is for other checks.
    """
    known = concrete(value)
    if known is None or not jnp.issubdtype(known.dtype, jnp.number):
        return
    wrong = known[~((known >= 0) & (known <= 1))]
    if wrong.size > 0:
        hint = "From a time constant it is exp(-dt / time_constant)"
        fail(f"{op}: `{argument}` must be between 0 and 1, got {float(wrong[0]):g}. {hint}.")


def batch_hint(actual: Sequence[int], steps: int, batch: int, hint: str) -> str:
    """The hint for a value that should have one entry for each sequence: another one if it has one for each step."""
    if steps != batch and len(actual) == 1 and actual[0] == steps:
        return "Is the batch axis first? Time comes first: swap the two with jnp.swapaxes(x, 0, 1)"
    return hint


def as_lengths(op: str, lengths: Unchecked, steps: int, batch: int) -> jax.Array:
    """The number of steps of each sequence as int32 ``[batch]``, after checking its shape, dtype and values.

    Traced values cannot be checked: those beyond the steps count as all steps, and negative ones as none.
    """
    given, lengths = lengths, jnp.asarray(lengths)
    hint = "Pass the number of steps of each sequence"
    check_shape(op, "lengths", lengths, (batch,), "batch", batch_hint(lengths.shape, steps, batch, hint))
    check_integers(op, "lengths", lengths)
    # JAX may wrap NumPy's integers of 64 bits.
    check_within(op, "lengths", given if isinstance(given, np.ndarray) else lengths, steps, hint)
    lengths = as_int32(lengths)
    return jnp.clip(lengths, 0, steps) if isinstance(lengths, Tracer) else lengths
