"""What the steps of neurons share: checks of their inputs, and aligned constants."""

import functools
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array

from snnjax._check import check_float_array, check_shape, check_size, fail
from snnjax._types import accumulation_dtype
from snnjax.ops._glif_step import align


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


def check_inputs(op: str, params: Any, v: Array, inputs: Array) -> None:
    """Check that `inputs` have the shape of the membrane `v` and the dtype of `params`, or the accumulation dtype."""
    check_float_array(op, "inputs", inputs)
    check_shape(op, "inputs", inputs, v.shape, "batch, neurons", "Give them the shape of the state")
    dtype = jax.tree.leaves(params)[0].dtype
    if inputs.dtype not in (dtype, accumulation_dtype(dtype)):
        hint = "Cast them, or call init with their dtype"
        fail(f"{op}: `inputs` must have dtype {dtype.name}, got {inputs.dtype.name}. {hint}.")


def at_zero(batch: int, like: Array) -> Array:
    """A state ``[batch, neurons]`` of zeros for the neurons of `like`, in the accumulation dtype.

    Each part of a state needs its own: JAX does not donate one buffer twice.
    """
    check_size("Neuron.initial_state", "batch", batch)
    return jnp.zeros((batch, *like.shape), accumulation_dtype(like.dtype))


def aligned(constants: Any, like: Array) -> Any:
    """Every array of `constants`, aligned."""
    return jax.tree.map(lambda constant: align(constant, like), constants)


def just_below(threshold: Array) -> Array:
    """The next smaller float, with the gradient of `threshold`: above it means at or above `threshold`."""
    fixed = jax.lax.stop_gradient(threshold)
    return threshold + (jnp.nextafter(fixed, jnp.full_like(fixed, -jnp.inf)) - fixed)
