"""The spikes of steps that ran before, of which reverse mode needs the derivatives at the recorded states."""

import functools

import jax
import jax.numpy as jnp
from jaxtyping import Array

from snnjax.ops._glif_step import LIFConvention


def masked(mask: Array | None, spikes: Array) -> Array:
    """The spikes where the mask is true, 0 elsewhere."""
    return spikes if mask is None else jnp.where(mask, spikes, 0)


@functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
def replayed_fire(convention: LIFConvention, distance: Array) -> Array:
    """The spikes, which pass nothing back where nothing arrives: the slope of a NaN is one, and times 0 too."""
    return convention.fire(distance)


def _replayed_fire_backward(convention: LIFConvention, distance: Array, g: Array) -> tuple[Array]:
    return (jnp.where(g == 0, 0, jax.vjp(convention.fire, distance)[1](g)[0]),)


replayed_fire.defvjp(
    lambda convention, distance: (convention.fire(distance), distance), _replayed_fire_backward
)


@functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
def fire_with_slopes(convention: LIFConvention, distance: Array, slopes: Array, mask: Array | None) -> Array:
    """The masked spikes, whose derivative is one product: the slopes are known, and 0 where the mask is false."""
    del slopes
    return masked(mask, convention.fire(distance))


def _fire_with_slopes_forward(
    convention: LIFConvention, distance: Array, slopes: Array, mask: Array | None
) -> tuple[Array, Array]:
    return fire_with_slopes(convention, distance, slopes, mask), slopes


def _fire_with_slopes_backward(
    convention: LIFConvention, slopes: Array, g: Array
) -> tuple[Array, None, None]:
    del convention
    return jnp.where((g == 0) | (slopes == 0), 0, g * slopes), None, None


fire_with_slopes.defvjp(_fire_with_slopes_forward, _fire_with_slopes_backward)
