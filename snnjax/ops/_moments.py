"""`moments`: mean and variance of each channel, whose cotangents are added to the one that their rows already have."""

import functools
import math
from collections.abc import Sequence

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PyTree

from snnjax._batching import SHARED
from snnjax._dispatch import Kernel, Target, evaluate
from snnjax._sharding import gathered
from snnjax.ops._kernel_operands import call_by_records
from snnjax.ops._tables.moments import BackwardOperands, BackwardResults, Operands, Results


def moments(
    x: Float[Array, "*axes channels"],
    is_inside: Bool[Array, "*axes"] | None = None,
    *,
    implementation: str | None = None,
) -> tuple[Float[Array, "*axes channels"], Float[Array, " channels"], Float[Array, " channels"]]:
    """Return `x` as it is, and the mean and the variance of each channel over the rows that are inside.

    ``mean = sum of x / count``, ``variance = sum of (x - mean)^2 / count``; 0 without any row. Whoever needs `x` as
    well takes the one returned: its cotangent and those of mean and variance become one array, in one pass over it.

    Args:
        x: the numbers, in at least float32.
        is_inside: which rows count; None for all.
        implementation: None chooses; "reference" or "cpu" forces.

    Example:
        >>> import jax.numpy as jnp
        >>> from snnjax.ops._moments import moments
        >>> moments(jnp.array([[1.0], [3.0]]))[1:]
        (Array([2.], dtype=float32), Array([1.], dtype=float32))
    """
    x, is_inside = gathered((x, is_inside))
    *axes, channels = (1,) * (3 - x.ndim) + x.shape
    # In this shape the cotangents of neurons arrive: a reshape in between would copy what is written over.
    operands = Operands(x.reshape(*axes[:2], math.prod(axes[2:]) * channels), None)
    if is_inside is not None:
        operands = operands._replace(is_inside=is_inside.reshape(*axes[:2], math.prod(axes[2:])))
    found: tuple[Array, Results] = _moments(operands, channels, implementation)
    return found[0].reshape(x.shape), found[1].mean, found[1].variance


def _reference(operands: Operands, channels: int) -> Results:
    x, count = _rows(operands.x, channels), _count(operands, channels)

    def mean_of(rows: Array) -> Array:
        return jnp.sum(_inside(rows, operands), 0) / count

    mean = mean_of(x)
    return Results(mean, mean_of((x - mean[None]) ** 2))


def _reference_backward(operands: BackwardOperands, channels: int) -> BackwardResults:
    added = operands.term[None] + operands.factor[None] * _rows(operands.x, channels)
    return BackwardResults(operands.g + _inside(added, operands).reshape(operands.g.shape))


def _rows(x: Array, channels: int) -> Array:
    """A row of channels for each pixel."""
    return x.reshape(x.size // max(channels, 1), channels)


def _inside(rows: Array, operands: Operands | BackwardOperands) -> Array:
    return rows if operands.is_inside is None else jnp.where(operands.is_inside.reshape(-1)[:, None], rows, 0)


def _count(operands: Operands, channels: int) -> Array:
    """How many rows count, at least 1."""
    dtype, inside = operands.x.dtype, operands.is_inside
    rows = len(_rows(operands.x, channels))
    return jnp.maximum(jnp.asarray(rows, dtype) if inside is None else jnp.sum(inside, dtype=dtype), 1)


def _call(operands: Operands, _: object, results: Sequence[jax.ShapeDtypeStruct]) -> list[Array]:
    return call_by_records("snnjax_moments", operands, Results(*results))


def _call_backward(
    operands: BackwardOperands, _: object, results: Sequence[jax.ShapeDtypeStruct]
) -> list[Array]:
    # The sums take the place of the cotangents, unless groups share these.
    aliases = {"g": "g_x"} if operands.g.shape == results[0].shape else {}
    return call_by_records("snnjax_moments_backward", operands, BackwardResults(*results), aliases=aliases)


def _obstacle(shapes: Operands | BackwardOperands, _: object) -> str | None:
    return None if shapes.x.dtype == jnp.float32 else f"{shapes.x.dtype.name} numbers"


_FORWARD = Target("snnjax_moments", "moments", _reference, {"cpu": Kernel(_call, _obstacle)})
_BACKWARD = Target(
    "snnjax_moments_backward", "moments", _reference_backward, {"cpu": Kernel(_call_backward, _obstacle)}
)


def _evaluate(
    target: Target, operands: PyTree, channels: int, results: PyTree, implementation: str | None
) -> PyTree:
    """A target whose sums are over all rows: none of its axes is one of a batch."""
    axes, of_results = (jax.tree.map(lambda _: SHARED, own) for own in (operands, results))
    return evaluate(
        target, operands, axes, of_results, channels, results=results, implementation=implementation
    )


@functools.partial(jax.custom_vjp, nondiff_argnums=(1, 2))
def _moments(operands: Operands, channels: int, implementation: str | None) -> tuple[Array, Results]:
    channel = jax.ShapeDtypeStruct((channels,), operands.x.dtype)
    return operands.x, _evaluate(_FORWARD, operands, channels, Results(channel, channel), implementation)


def _fwd(
    operands: Operands, channels: int, implementation: str | None
) -> tuple[PyTree, tuple[Operands, Array]]:
    found: PyTree = _moments(operands, channels, implementation)
    return found, (operands, found[1].mean)


def _bwd(
    channels: int, implementation: str | None, residuals: tuple[Operands, Array], g: PyTree
) -> tuple[Operands]:
    """The mean does not move the variance."""
    (operands, mean), (g_x, g_moments) = residuals, g
    count = _count(operands, channels)
    factor = 2 * g_moments.variance / count
    own = BackwardOperands(g_x, *operands, g_moments.mean / count - mean * factor, factor)
    results = BackwardResults(jax.ShapeDtypeStruct(g_x.shape, g_x.dtype))
    return (Operands(_evaluate(_BACKWARD, own, channels, results, implementation).g_x, None),)


_moments.defvjp(_fwd, _bwd)
