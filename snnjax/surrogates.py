r"""Surrogate derivatives of the spike function, each with its antiderivative.

A spike is ``s = [v > threshold]``. Its derivative is zero almost everywhere, so training replaces it by a named
surrogate, ``ds/dv = surrogate.derivative(v - threshold)``. The antiderivative of the surrogate, ``surrogate.relaxed``,
is a smooth spike: with `relaxed` as the forward pass, the surrogate gradient is the true gradient, which is how the
tests compare gradients with finite differences.

All functions take ``x = v - threshold`` of any shape and floating-point dtype and return the same shape and dtype.

Neurons whose derivative is 0 need no cotangent of their spike, and the compiled kernels skip them if they are the
majority: with `triangle` and `boxcar` the gradient is exact and yet sparse. The tails of the other surrogates are
infinite; `cutoff` ends them where the derivative falls below that fraction of its peak, which is then the largest error
of any derivative.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import erf
from jaxtyping import Array, Float

from snnjax._check import check_choice, check_switches, fail, short_repr
from snnjax._types import SURROGATES


@dataclass(frozen=True)
class Surrogate:
    """A named surrogate derivative with its slope; hashable, so it may be a static argument.

    Example:
        >>> import jax.numpy as jnp
        >>> from snnjax.surrogates import superspike
        >>> superspike(slope=1.0).derivative(jnp.array([0.0, 1.0]))
        Array([1.  , 0.25], dtype=float32)
    """

    name: str
    slope: float
    smooth: bool = False  # spikes are `relaxed` instead of steps, so the surrogate gradient is exact
    # Where the derivative would be less than this fraction of its peak, it is 0, and costs nothing in sparse kernels.
    cutoff: float = 0.0

    def __post_init__(self) -> None:
        if type(self) is Surrogate:
            check_choice("surrogates.Surrogate", "name", self.name, SURROGATES)
        check_switches(self.name, smooth=self.smooth)
        if not isinstance(self.slope, int | float) or not 0 < self.slope < math.inf:
            fail(f"{self.name}: `slope` must be a positive number, got {self.slope!r}. Try slope=10.0.")
        if not isinstance(self.cutoff, int | float) or not 0 <= self.cutoff < 1:
            fail(f"{self.name}: `cutoff` must be a number in [0, 1), got {self.cutoff!r}. Try cutoff=0.01.")

    def __init_subclass__(cls) -> None:
        if "fire" in vars(cls):
            hint = "Define `derivative`, and `relaxed` for smooth spikes"
            fail(f"surrogates.Surrogate: `fire` must not be overridden, got one of {cls.__name__}. {hint}.")

    def derivative(self, x: Float[Array, "..."]) -> Float[Array, "..."]:
        """``ds/dv`` at ``x = v - threshold``."""
        slope = _FORMS[self.name].derivative(x, self.slope)
        return slope if math.isinf(self.reach) else jnp.where(jnp.abs(x) > self.reach, 0, slope)

    @property
    def reach(self) -> float:
        """The distance from the threshold at which `cutoff` ends the derivative; infinite without a cutoff."""
        return _FORMS[self.name].reach(self.cutoff, self.slope) if self.cutoff > 0 else math.inf

    def relaxed(self, x: Float[Array, "..."]) -> Float[Array, "..."]:
        """The antiderivative of `derivative`: a smooth spike, up to a constant."""
        return _FORMS[self.name].relaxed(jnp.clip(x, -self.reach, self.reach), self.slope)

    @property
    def obstacle(self) -> str | None:
        """Why the compiled kernels, which know surrogates by name, do not support this one; None if they do."""
        if self.smooth:
            return "a smooth surrogate"
        return None if type(self) is Surrogate else "a surrogate with a custom derivative"

    def fire(self, x: Float[Array, "..."], inclusive: bool = False) -> Float[Array, "..."]:
        """The forward pass: ``[x > 0]`` (``[x >= 0]`` if `inclusive`), or `relaxed` if `smooth` is set.

        Infinitely far below the threshold, as in a refractory period, a smooth spike is 0.
        """
        if self.smooth:
            return jnp.where(x == -jnp.inf, jnp.zeros_like(x), self.relaxed(x))
        return (x >= 0 if inclusive else x > 0).astype(x.dtype)


@dataclass(frozen=True)
class CustomSurrogate(Surrogate):
    """A user-defined surrogate; made by `custom`."""

    own_derivative: Callable[[Any], Any] = jnp.ones_like
    own_relaxed: Callable[[Any], Any] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        for argument, value, usual in (("slope", self.slope, 1), ("cutoff", self.cutoff, 0)):
            if value != usual:
                hint = "Write it into the functions"
                fail(f"surrogates.custom: `{argument}` must be left at {usual}, got {value!r}. {hint}.")

    def derivative(self, x: Float[Array, "..."]) -> Float[Array, "..."]:
        """``ds/dv`` at ``x = v - threshold``."""
        return self.own_derivative(x)

    def relaxed(self, x: Float[Array, "..."]) -> Float[Array, "..."]:
        """The antiderivative of `derivative`."""
        if self.own_relaxed is None:
            hint = f"Pass that of {self.name}"
            fail(f"surrogates.custom: `antiderivative` must be given for smooth spikes, got None. {hint}.")
        return self.own_relaxed(x)


def custom(
    derivative: Callable[[Any], Any],
    antiderivative: Callable[[Any], Any] | None = None,
    *,
    name: str = "custom",
) -> Surrogate:
    """Make a custom surrogate: ``ds/dv = derivative(v - threshold)``.

    Both functions take and return a float array of any shape. They are static for `jax.jit`: define them once, at the
    top of a module, because a new lambda is a new surrogate and recompiles.

    The compiled kernels only support named surrogates: a network scans the neurons of a custom one, with its products
    in the kernels; `lif_network` and `select_spikes` run on the jnp reference, and ``implementation="cpu"`` raises.

    Args:
        derivative: the derivative; for second-order gradients it must be differentiable itself.
        antiderivative: the antiderivative, a smooth spike, up to a constant; only needed if ``smooth`` is set, for
            instance to compare gradients with finite differences.
        name: name for messages.

    Raises:
        ValueError: if a function changes shape or dtype, or the antiderivative does not match the derivative.

    Example:
        >>> import jax.numpy as jnp
        >>> from snnjax import surrogates
        >>> cosine = surrogates.custom(lambda x: 0.5 + 0.5 * jnp.cos(jnp.clip(x, -jnp.pi, jnp.pi)))
        >>> cosine.derivative(jnp.array([0.0, 4.0]))
        Array([1., 0.], dtype=float32)
    """
    _check_function("derivative", derivative)
    if antiderivative is not None:
        _check_function("antiderivative", antiderivative)
        _check_antiderivative(derivative, antiderivative)
    return CustomSurrogate(name, 1.0, own_derivative=derivative, own_relaxed=antiderivative)


def _check_function(argument: str, function: object) -> None:
    if not callable(function):
        actual, hint = short_repr(function), "Pass one of an array, such as lambda x: jnp.exp(-x * x)"
        fail(f"surrogates.custom: `{argument}` must be a function, got {actual}. {hint}.")
    given = jax.ShapeDtypeStruct((2, 3), jnp.float32)
    result = jax.eval_shape(function, given)
    if (getattr(result, "shape", None), getattr(result, "dtype", None)) != (given.shape, given.dtype):
        expected, hint = "return float32[2, 3] for float32[2, 3]", "Compute elementwise, with jnp only"
        fail(f"surrogates.custom: `{argument}` must {expected}, got {short_repr(result)}. {hint}.")


def _check_antiderivative(derivative: Callable[[Any], Any], antiderivative: Callable[[Any], Any]) -> None:
    """Check that its increments are the integrals of the derivative, by the trapezoidal rule."""
    with jax.ensure_compile_time_eval():
        x = jnp.linspace(-4, 4, 8001, dtype=jnp.float32)
        slopes, values = (np.asarray(f(x), np.float64) for f in (derivative, antiderivative))
    integrals = np.cumsum((slopes[1:] + slopes[:-1]) / 2) * (8 / 8000)
    worst = np.max(np.abs(values[1:] - values[0] - integrals))
    # An error of a thousandth comes from a kink or from float32 sums; a wrong factor or sign exceeds it.
    if not worst <= 0.01 * max(np.max(np.abs(integrals)), np.max(np.abs(values - values[0]))):
        expected, actual = "grow by the integral of `derivative`", f"a difference of {worst:.3g} on [-4, 4]"
        fail(f"surrogates.custom: `antiderivative` must {expected}, got {actual}. Check its factor and sign.")


def superspike(slope: float = 10.0, *, cutoff: float = 0.0) -> Surrogate:
    """``1 / (1 + slope |x|)^2`` (Zenke and Ganguli 2018, doi:10.1162/neco_a_01086).

    Example:
        >>> superspike().slope
        10.0
    """
    return Surrogate("superspike", slope, cutoff=cutoff)


def arctan(slope: float = 2.0, *, cutoff: float = 0.0) -> Surrogate:
    """``1 / (1 + (pi/2 slope x)^2)`` (Fang et al. 2021, arXiv:2007.05785, scaled to 1 at 0).

    Example:
        >>> arctan().name
        'arctan'
    """
    return Surrogate("arctan", slope, cutoff=cutoff)


def triangle(slope: float = 1.0) -> Surrogate:
    """``max(0, 1 - slope |x|)`` (Esser et al. 2016, doi:10.1073/pnas.1604850113).

    Example:
        >>> float(triangle().derivative(jnp.float32(0.25)))
        0.75
    """
    return Surrogate("triangle", slope)


def gaussian(slope: float = 2.0, *, cutoff: float = 0.0) -> Surrogate:
    """``exp(-(slope x)^2)`` (after Yin et al. 2021, doi:10.1038/s42256-021-00397-w).

    Example:
        >>> float(gaussian().derivative(jnp.float32(0.0)))
        1.0
    """
    return Surrogate("gaussian", slope, cutoff=cutoff)


def sigmoid(slope: float = 4.0, *, cutoff: float = 0.0) -> Surrogate:
    """``slope sigma(slope x) (1 - sigma(slope x))`` (Neftci et al. 2019, doi:10.1109/MSP.2019.2931595).

    Example:
        >>> float(sigmoid().derivative(jnp.float32(0.0)))
        1.0
    """
    return Surrogate("sigmoid", slope, cutoff=cutoff)


def boxcar(slope: float = 1.0) -> Surrogate:
    """``slope`` where ``|x| < 1 / (2 slope)``, else 0, a box (Kaiser et al. 2020, doi:10.3389/fnins.2020.00424).

    Example:
        >>> float(boxcar().derivative(jnp.float32(0.6)))
        0.0
    """
    return Surrogate("boxcar", slope)


def straight_through() -> Surrogate:
    """``1`` everywhere (Bengio et al. 2013, arXiv:1308.3432).

    Example:
        >>> float(straight_through().derivative(jnp.float32(7.0)))
        1.0
    """
    return Surrogate("straight_through", 1.0)


def as_surrogate(op: str, surrogate: str | Surrogate) -> Surrogate:
    """The surrogate itself, or the one with this name and its default slope."""
    if isinstance(surrogate, Surrogate):
        return surrogate
    check_choice(op, "surrogate", surrogate, SURROGATES)
    return _MAKERS[SURROGATES.index(surrogate)]()


def _superspike_relaxed(x: Array, k: float) -> Array:
    return x / (1 + k * jnp.abs(x)) + 0.5


def _arctan_relaxed(x: Array, k: float) -> Array:
    scale = jnp.pi / 2 * k
    return jnp.arctan(scale * x) / scale + 0.5


def _triangle_relaxed(x: Array, k: float) -> Array:
    # The ramp 1 - k|x| integrates to y - k y|y| / 2 on its support |y| <= 1/k and is flat outside.
    y = jnp.clip(x, -1 / k, 1 / k)
    return y - 0.5 * k * y * jnp.abs(y) + 0.5


def _gaussian_relaxed(x: Array, k: float) -> Array:
    return 0.5 * (jnp.pi**0.5 / k) * erf(k * x) + 0.5


def _sigmoid(x: Array, k: float) -> Array:
    return jax.nn.sigmoid(k * x)


class _Form(NamedTuple):
    """A surrogate's functions; functions of ``(x, slope)`` take arrays."""

    derivative: Callable[[Any, float], Any]
    relaxed: Callable[[Any, float], Any]  # antiderivative of `derivative`
    # (fraction of the peak, slope) -> distance at which the derivative has fallen to that fraction
    reach: Callable[[float, float], float]


_FORMS = {
    "superspike": _Form(
        lambda x, k: 1 / (1 + k * jnp.abs(x)) ** 2,
        _superspike_relaxed,
        lambda share, k: (share**-0.5 - 1) / k,
    ),
    "arctan": _Form(
        lambda x, k: 1 / (1 + (jnp.pi / 2 * k * x) ** 2),
        _arctan_relaxed,
        lambda share, k: (1 / share - 1) ** 0.5 / (math.pi / 2 * k),
    ),
    "triangle": _Form(
        lambda x, k: jnp.maximum(1 - k * jnp.abs(x), 0), _triangle_relaxed, lambda share, k: (1 - share) / k
    ),
    "gaussian": _Form(
        lambda x, k: jnp.exp(-((k * x) ** 2)),
        _gaussian_relaxed,
        lambda share, k: (-math.log(share)) ** 0.5 / k,
    ),
    "sigmoid": _Form(
        lambda x, k: k * _sigmoid(x, k) * _sigmoid(-x, k),
        _sigmoid,
        lambda share, k: 2 * math.atanh((1 - share) ** 0.5) / k,
    ),
    "boxcar": _Form(
        lambda x, k: jnp.where(jnp.abs(x) < 0.5 / k, k, 0).astype(x.dtype),
        lambda x, k: jnp.clip(k * x, -0.5, 0.5) + 0.5,
        lambda _, k: 0.5 / k,
    ),
    "straight_through": _Form(lambda x, k: jnp.ones_like(x), lambda x, k: x, lambda _, k: math.inf),
}

# By the names in `SURROGATES`.
_MAKERS = (superspike, arctan, triangle, gaussian, sigmoid, boxcar, straight_through)
