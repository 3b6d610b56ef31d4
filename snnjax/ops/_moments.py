"""`moments`: mean and variance of each channel, whose cotangents are added to the one that their rows already have."""

import functools
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
    rows = x.reshape(-1 if x.size else 0, x.shape[-1])
    operands = Operands(rows, None if is_inside is None else is_inside.reshape(-1))
    found: tuple[Array, Results] = _moments(operands, implementation)
    return found[0].reshape(x.shape), found[1].mean, found[1].variance


def _reference(operands: Operands, _: object) -> Results:
    x, count = operands.x, _count(operands)

    def mean_of(rows: Array) -> Array:
        return jnp.sum(rows if operands.is_inside is None else _inside(rows, operands), 0) / count

    mean = mean_of(x)
    return Results(mean, mean_of((x - mean[None]) ** 2))


def _reference_backward(operands: BackwardOperands, _: object) -> BackwardResults:
    added = operands.term[None] + operands.factor[None] * operands.x
    return BackwardResults(operands.g + (added if operands.is_inside is None else _inside(added, operands)))


def _inside(rows: Array, operands: Operands | BackwardOperands) -> Array:
    return jnp.where(operands.is_inside[:, None], rows, 0)


def _count(operands: Operands) -> Array:
    """How many rows count, at least 1."""
    rows, dtype = operands.x.shape[0], operands.x.dtype
    inside = operands.is_inside
    count = jnp.asarray(rows, dtype) if inside is None else jnp.sum(inside, dtype=dtype)
    return jnp.maximum(count, 1)


def _call(operands: Operands, _: object, results: Sequence[jax.ShapeDtypeStruct]) -> list[Array]:
    return call_by_records("snnjax_moments", operands, Results(*results))


def _call_backward(
    operands: BackwardOperands, _: object, results: Sequence[jax.ShapeDtypeStruct]
) -> list[Array]:
    return call_by_records("snnjax_moments_backward", operands, BackwardResults(*results))


def _obstacle(shapes: Operands | BackwardOperands, _: object) -> str | None:
    return None if shapes.x.dtype == jnp.float32 else f"{shapes.x.dtype.name} numbers"


_FORWARD = Target("snnjax_moments", "moments", _reference, {"cpu": Kernel(_call, _obstacle)})
_BACKWARD = Target(
    "snnjax_moments_backward", "moments", _reference_backward, {"cpu": Kernel(_call_backward, _obstacle)}
)


def _evaluate(target: Target, operands: PyTree, results: PyTree, implementation: str | None) -> PyTree:
    """A target whose sums are over all rows: none of its axes is one of a batch."""
    axes, of_results = (jax.tree.map(lambda _: SHARED, own) for own in (operands, results))
    return evaluate(target, operands, axes, of_results, results=results, implementation=implementation)


@functools.partial(jax.custom_vjp, nondiff_argnums=(1,))
def _moments(operands: Operands, implementation: str | None) -> tuple[Array, Results]:
    channel = jax.ShapeDtypeStruct(operands.x.shape[1:], operands.x.dtype)
    return operands.x, _evaluate(_FORWARD, operands, Results(channel, channel), implementation)


def _fwd(operands: Operands, implementation: str | None) -> tuple[PyTree, tuple[Operands, Array]]:
    found: PyTree = _moments(operands, implementation)
    return found, (operands, found[1].mean)


def _bwd(implementation: str | None, residuals: tuple[Operands, Array], g: PyTree) -> tuple[Operands]:
    """The mean does not move the variance."""
    (operands, mean), (g_x, g_moments) = residuals, g
    count = _count(operands)
    factor = 2 * g_moments.variance / count
    own = BackwardOperands(g_x, *operands, g_moments.mean / count - mean * factor, factor)
    results = BackwardResults(jax.ShapeDtypeStruct(g_x.shape, g_x.dtype))
    return (Operands(_evaluate(_BACKWARD, own, results, implementation).g_x, None),)


_moments.defvjp(_fwd, _bwd)
