"""The signals that enter a network, checked."""

import math
import warnings
from collections.abc import Mapping

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from snnjax._check import check_real_array, check_shape, concrete, fail, short_repr
from snnjax._sparse_spikes import SparseSpikes, check_spikes
from snnjax._types import Signal
from snnjax.blocks.block import Shape

# Above it, inputs are taken for the bytes of images: counts of events in a step are smaller, and so are currents.
_LARGEST_INPUT = 64


def checked_signals(op: str, shapes: tuple[tuple[str, Shape], ...], inputs: Signal) -> dict[str, Signal]:
    """The inputs by name; `shapes` are those of each input, one of which may be given without its name."""
    wanted = [name for name, _ in shapes]
    if not isinstance(inputs, Mapping):
        if len(wanted) > 1:
            names = ", ".join(map(repr, wanted))
            fail(
                f"{op}: `inputs` must be a dict of {names}, got {short_repr(inputs)}. Pass one array for each."
            )
        inputs = {wanted[0]: inputs}
    if sorted(inputs) != sorted(wanted):
        fail(
            f"{op}: `inputs` must be a dict of {', '.join(map(repr, wanted))}, "
            f"got {', '.join(map(repr, inputs)) or 'none'}. Rename them."
        )
    found = {name: _checked(op, inputs[name], shape) for name, shape in shapes}
    sizes = {signal.shape[:2] for signal in found.values()}
    if len(sizes) > 1:
        fail(f"{op}: `inputs` must have the same time and batch axes, got {sorted(sizes)}. Pad them.")
    return found


def _checked(op: str, signal: Signal, shape: Shape) -> Signal:
    """An input ``[time, batch, *shape]``, or with flat neurons; integers and booleans stay what they are."""
    hint = "Time comes first; add a missing batch axis with inputs[:, None]"
    flat = (math.prod(shape),)
    if isinstance(signal, SparseSpikes):
        check_spikes(op, "inputs", signal)
        check_shape(op, "inputs", signal, (None, None, *flat), "time, batch, inputs", hint)
        return signal
    check_real_array(op, "inputs", signal)
    if len(shape) == 1 or signal.ndim == 3:
        check_shape(op, "inputs", signal, (None, None, *flat), "time, batch, inputs", hint)
    else:
        check_shape(op, "inputs", signal, (None, None, *shape), "time, batch, *shape", hint)
    return _as_array(signal)


def _as_array(signal: Array | np.ndarray) -> Array:
    """An array of JAX, in floating point if its integers have 64 bits that those of JAX do not hold."""
    kept = jax.dtypes.canonicalize_dtype(signal.dtype)
    if kept != signal.dtype and jnp.issubdtype(kept, jnp.integer):
        limits = jnp.iinfo(kept)
        if np.any(signal < limits.min) or np.any(signal > limits.max):
            return jnp.asarray(signal, jnp.float32)
    return jnp.asarray(signal)


def warn_of_bytes(inputs: Signal) -> None:
    """Warn about inputs that are the bytes of an image: they would drive all neurons at once."""
    if isinstance(inputs, SparseSpikes) and inputs.values is None:
        return
    known = concrete(inputs.values if isinstance(inputs, SparseSpikes) else inputs)
    if known is not None and known.size > 0 and known.max() > _LARGEST_INPUT:
        warnings.warn(
            f"network.init: `inputs` must be spikes or currents of at most {_LARGEST_INPUT}, got values up to "
            f"{known.max():g}. Divide the bytes of images by 255, and clip counts of events.",
            RuntimeWarning,
            stacklevel=4,
        )
