"""What the steps of neurons share: functions with arguments, checks of their inputs, and first states."""

import functools
from typing import Any

import jax
import jax.numpy as jnp
from jax.typing import DTypeLike
from jaxtyping import Array

from snnjax._check import check_float_array, check_shape, check_size, fail
from snnjax._types import accumulation_dtype


class Bound(functools.partial[Any]):
    """A `functools.partial` that equals any other of the same function and arguments.

    Networks made by equal calls are thereby equal, in another process too, and JAX compiles for one static argument
    what it has compiled for the other.
    """

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Bound):
            return NotImplemented
        return (self.func, self.args, self.keywords) == (other.func, other.args, other.keywords)

    def __hash__(self) -> int:
        return hash((self.func, len(self.args), *sorted(self.keywords)))


def check_inputs(op: str, v: Array, inputs: Array) -> None:
    """Check that `inputs` have the shape of the membrane `v`, which is in their accumulation dtype."""
    check_float_array(op, "inputs", inputs)
    check_shape(op, "inputs", inputs, v.shape, "batch, neurons", "Give them the shape of the state")
    if v.dtype != accumulation_dtype(inputs.dtype):
        hint = "Cast them, or call initial_state with their dtype"
        fail(f"{op}: `inputs` must have dtype {v.dtype.name}, got {inputs.dtype.name}. {hint}.")


def at_zero(batch: int, num_neurons: int, dtype: DTypeLike) -> Array:
    """A state ``[batch, neurons]`` of zeros, in the accumulation dtype of `dtype`.

    Each part of a state needs its own: JAX does not donate one buffer twice.
    """
    batch = check_size("Neuron.initial_state", "batch", batch)
    return jnp.zeros((batch, num_neurons), accumulation_dtype(dtype))


def just_below(threshold: Array) -> Array:
    """The next smaller float, with the gradient of `threshold`: above it means at or above `threshold`.

    Below 0 it is the next normal one, as processors may count the others as 0.
    """
    fixed = jax.lax.stop_gradient(threshold)
    below = jnp.nextafter(fixed, jnp.full_like(fixed, -jnp.inf))
    below = jnp.where(fixed == 0, -jnp.finfo(fixed.dtype).tiny, below)
    return threshold + (below - fixed)
