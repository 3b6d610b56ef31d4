"""Dtypes and names shared by several layers."""

from typing import Any, overload

import jax.numpy as jnp
import numpy as np
from jax.typing import DTypeLike
from jaxtyping import Array

# Names for a reader of what a checker cannot follow: pytrees, and whatever flows between blocks.
Params = Any  # of a block or a network: what learns
State = Any  # per sample: membranes, spikes under way
Stats = Any  # per training run: running means, constants that were drawn and do not learn
Optimiser = Any  # an `optax.GradientTransformation`; optax is imported when something is trained
Unchecked = Any  # what a user passed, whatever it is: a check's argument
Weights = Any  # an array, or `Quantised`
Signal = Any  # an array [time, batch, *shape], or lists of [time, batch] over the flat neurons

RESET_TIMES = ("before_decay", "after_decay", "immediate")
SPIKE_SOURCES = ("new", "old")

# uint16 ids halve the memory of a list; the pad id, which is the number of neurons, must fit as well.
MAX_UINT16_NEURONS = 65_535


def id_dtype(num_neurons: int) -> np.dtype:
    """The dtype of the ids of `num_neurons` neurons: uint16 if the pad id fits, else int32."""
    return np.dtype(np.uint16 if num_neurons <= MAX_UINT16_NEURONS else np.int32)


def as_int32(integers: Array | np.ndarray) -> Array:
    """Integers of any dtype as int32, in which bounds are compared; those beyond it are its ends.

    In a small dtype a bound wraps, and in a large one a number; no size is beyond 2**31 - 1, so that none out of range
    becomes another one that is not.
    """
    if jnp.issubdtype(integers.dtype, jnp.integer):  # an empty array may have any dtype
        least, most = np.iinfo(np.int32).min, np.iinfo(np.int32).max
        limits = jnp.iinfo(integers.dtype)
        if limits.max > most:
            integers = integers.clip(max(int(limits.min), least), most)
    return jnp.asarray(integers.astype(np.int32))


def uint16_or_int32(integers: Array | np.ndarray) -> Array:
    """Integers in a dtype that the kernels read: uint16, which halves their memory, as they are."""
    return jnp.asarray(integers) if integers.dtype == np.uint16 else as_int32(integers)


def accumulation_dtype(dtype: DTypeLike) -> Any:
    """The dtype in which sums and membranes of `dtype` accumulate: float64 for float64, else float32."""
    return jnp.float64 if dtype == jnp.float64 else jnp.float32


def upcast(array: Any) -> Any:
    """`array` in its accumulation dtype."""
    return array.astype(accumulation_dtype(array.dtype))


def wide_floats(array: Array) -> Array:
    """`array` in its accumulation dtype if it holds floats: a scan adds up cotangents in the dtype of what it reads."""
    return upcast(array) if jnp.issubdtype(array.dtype, jnp.floating) else array


@overload
def steps_within(num_steps: int, lengths: None) -> None: ...
@overload
def steps_within(num_steps: int, lengths: Array) -> Array: ...
def steps_within(num_steps: int, lengths: Array | None) -> Array | None:
    """True where a sequence has not ended yet, bool ``[time, batch]``; None without lengths."""
    if lengths is None:
        return None
    return jnp.arange(num_steps, dtype=jnp.int32)[:, None] < as_int32(lengths)[None, :]


def hash_of(codes: np.ndarray) -> np.ndarray:
    """The 32-bit finaliser of MurmurHash3 (Appleby 2011) of uint32 codes: a bijection, so that no two of them tie."""
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35), (16, 1)):
        codes = (codes ^ (codes >> np.uint32(shift))) * np.uint32(factor)
    return codes
