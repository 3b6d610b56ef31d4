"""`spike`: the step function with a surrogate derivative, the basis of every gradient in snnjax."""

import functools

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from snnjax._arguments import explained
from snnjax._check import check_float, check_switches
from snnjax.surrogates import Surrogate, as_surrogate


@explained
def spike(
    x: Float[Array, "..."], surrogate: str | Surrogate = "superspike", *, inclusive: bool = False
) -> Float[Array, "..."]:
    """Spike where `x` is positive: ``s = [x > 0]``, with ``ds/dx = surrogate.derivative(x)``.

    It has derivatives in both modes and of any order: the second is the derivative of ``surrogate.derivative``.

    Args:
        x: membrane minus threshold, of any shape and floating-point dtype.
        surrogate: a name or a `Surrogate`; a smooth one (`Surrogate.smooth`) returns its relaxed form, not a step.
        inclusive: spike at ``x >= 0`` instead.

    Returns:
        0 or 1 in the shape and dtype of `x`; a NaN does not spike.

    Raises:
        ValueError: if `x` is not floating-point, or the surrogate is unknown.

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
    check_float("spike", "x", x)
    check_switches("spike", inclusive=inclusive)
    x = jnp.asarray(x)
    return _spike(x, as_surrogate("spike", surrogate), inclusive)


@functools.partial(jax.custom_jvp, nondiff_argnums=(1, 2))
def _spike(x: Array, surrogate: Surrogate, inclusive: bool) -> Array:
    return surrogate.fire(x, inclusive)


@_spike.defjvp
def _jvp(
    surrogate: Surrogate, inclusive: bool, primals: tuple[Array], tangents: tuple[Array]
) -> tuple[Array, Array]:
    """Linear in the tangent, so JAX can transpose it, and differentiates the surrogate for higher orders."""
    ((x,), (tangent,)) = primals, tangents
    return _spike(x, surrogate, inclusive), tangent * surrogate.derivative(x)
