"""`spike`: the step function with a surrogate derivative, the seed of every gradient here."""

import functools

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from snnjax._check import check_float_array
from snnjax.surrogates import Surrogate, as_surrogate


def spike(
    x: Float[Array, "..."], surrogate: str | Surrogate = "superspike", *, inclusive: bool = False
) -> Float[Array, "..."]:
    """Spike where `x` is positive: ``s = [x > 0]``, with ``ds/dx = surrogate.derivative(x)``.

    Args:
        x: membrane minus threshold, any shape, floating dtype.
        surrogate: a name or a `Surrogate`; a smooth one (`Surrogate.smooth`) returns its relaxed form, not a step.
        inclusive: spike at ``x >= 0`` instead.

    Returns:
        0 or 1 in the shape and dtype of `x`; a NaN does not spike.

    Raises:
        ValueError: if `x` is not of a floating dtype, or the surrogate is unknown.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> from snnjax import spike
        >>> spike(jnp.array([-0.5, 0.5]))
        Array([0., 1.], dtype=float32)
        >>> jax.grad(lambda x: spike(x, "triangle"))(0.25)
        Array(0.75, dtype=float32)

    Reference:
        Neftci, Mostafa and Zenke 2019, doi:10.1109/MSP.2019.2931595.
    """
    check_float_array("spike", "x", x)
    x = jnp.asarray(x)
    return _spike(x, as_surrogate("spike", surrogate), inclusive)


@functools.partial(jax.custom_vjp, nondiff_argnums=(1, 2))
def _spike(x: Array, surrogate: Surrogate, inclusive: bool) -> Array:
    return surrogate.fire(x, inclusive)


def _fwd(x: Array, surrogate: Surrogate, inclusive: bool) -> tuple[Array, Array]:
    return _spike(x, surrogate, inclusive), x


def _bwd(surrogate: Surrogate, inclusive: bool, x: Array, g: Array) -> tuple[Array]:
    del inclusive
    return (g * surrogate.derivative(x),)


_spike.defvjp(_fwd, _bwd)
