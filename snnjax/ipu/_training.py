"""A training step for a `Session`: precision, loss scaling, gradient accumulation, and the mean over IPUs."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike, DTypeLike
from jaxtyping import Array, PyTree

from snnjax._check import fail
from snnjax._types import Optimiser, Params

# Mixed precision after Micikevicius et al. 2018, arXiv:1710.03740: an overflow halves the scale, and this many steps
# without one double it.
FIRST_SCALE = 2.0**15
GROWTH_STEPS = 2000
LARGEST_SCALE = 2.0**24

# The mesh axis of the replicas.
REPLICAS = "replicas"

Loss = Callable[..., Array]  # loss(params, *batch) -> []


class Precision(NamedTuple):
    """The dtypes of the weights that the optimiser updates, and of those that the program computes with."""

    master: DTypeLike
    compute: DTypeLike
    scaled: bool  # whether the loss is scaled, so that small gradients survive in float16


PRECISIONS = {
    "float32": Precision(jnp.float32, jnp.float32, False),
    "float16": Precision(jnp.float16, jnp.float16, False),
    "mixed": Precision(jnp.float32, jnp.float16, True),
}


class OptimiserState(NamedTuple):
    """The state that a step updates."""

    params: Params  # master weights
    optimiser: PyTree  # the state of the optax optimiser
    loss_scale: Array  # float32[]
    good_steps: Array  # int32[], steps since the scale changed


def cast_floats(tree: PyTree, dtype: DTypeLike) -> PyTree:
    """Cast the floating-point leaves of a pytree; integers, keys and booleans are unchanged."""

    def cast(leaf: Any) -> ArrayLike:
        return leaf.astype(dtype) if jnp.issubdtype(jnp.result_type(leaf), jnp.floating) else leaf

    return jax.tree.map(cast, tree)


def begin(params: Params, optimiser: Optimiser, precision: Precision) -> OptimiserState:
    """The state before the first step."""
    master = cast_floats(params, precision.master)
    scale = FIRST_SCALE if precision.scaled else 1.0
    return OptimiserState(master, optimiser.init(master), jnp.float32(scale), jnp.int32(0))


def make_step(
    loss: Loss,
    optimiser: Optimiser,
    precision: Precision,
    *,
    recompute: bool,
    micro_batches: int,
    replicas: int,
) -> Callable[..., tuple[OptimiserState, Array]]:
    """``step(state, *batch) -> (state, loss)``, for one of `replicas` IPUs.

    If a gradient is not finite on any of them, the step changes only the loss scale.
    """
    one = gradient_of(jax.checkpoint(loss) if recompute else loss, precision)
    many = one if micro_batches * replicas == 1 else accumulated(one, micro_batches)

    def step(state: OptimiserState, *batch: PyTree) -> tuple[OptimiserState, Array]:
        params = state.params
        if replicas > 1:  # gradients of varying values are per replica
            params = jax.tree.map(lambda leaf: jax.lax.pcast(leaf, REPLICAS, to="varying"), params)
        value, gradients = many(params, state.loss_scale, *batch)
        if replicas > 1:
            value, gradients = jax.lax.pmean((value, gradients), REPLICAS)
        return update(state, gradients, optimiser, precision), value

    return step


def gradient_of(loss: Loss, precision: Precision) -> Callable[..., tuple[Array, Any]]:
    """``gradient(params, scale, *batch) -> (loss, gradients)``, both in float32 and with the scale divided out."""

    def scaled(params: Params, scale: Array, *batch: PyTree) -> tuple[Array, Array]:
        value = loss(*cast_floats((params, *batch), precision.compute)).astype(jnp.float32)
        return value * scale, value

    def gradient(params: Params, scale: Array, *batch: PyTree) -> tuple[Array, Any]:
        (_, value), gradients = jax.value_and_grad(scaled, has_aux=True)(params, scale, *batch)
        return value, jax.tree.map(lambda leaf: leaf.astype(jnp.float32) / scale, gradients)

    return gradient


def accumulated(gradient: Callable[..., tuple[Array, Any]], count: int) -> Callable[..., tuple[Array, Any]]:
    """The mean over as many micro-batches along the first axis of each leaf of the batch, one after the other."""

    def mean(params: Params, scale: Array, *batch: PyTree) -> tuple[Array, Any]:
        for leaf in jax.tree.leaves(batch):
            if leaf.shape[:1] != (count,):  # time steps or samples would each be a micro-batch
                expected = f"have leaves with a leading axis of {count} (micro-batches)"
                hint = "Stack as many as IPUs times gradient_accumulation"
                fail(
                    f"Session.optimize: `batch` must {expected} for each IPU, got {list(leaf.shape)}. {hint}."
                )
        first = gradient(params, scale, *jax.tree.map(lambda leaf: leaf[0], batch))
        if count == 1:
            return first

        def add(sums: PyTree, one: PyTree) -> tuple[Any, None]:
            return jax.tree.map(jnp.add, sums, gradient(params, scale, *one)), None

        sums, _ = jax.lax.scan(add, first, jax.tree.map(lambda leaf: leaf[1:], batch))
        return jax.tree.map(lambda leaf: leaf / count, sums)

    return mean


def update(
    state: OptimiserState, gradients: Params, optimiser: Optimiser, precision: Precision
) -> OptimiserState:
    """Parameters, optimiser state and loss scale after a step."""
    import optax

    with jax.numpy_dtype_promotion("standard"):  # optax needs it, whatever the caller's setting
        updates, new_optimiser = optimiser.update(
            cast_floats(gradients, precision.master), state.optimiser, state.params
        )
        params = optax.apply_updates(state.params, updates)
    if not precision.scaled:
        return state._replace(params=params, optimiser=new_optimiser)
    finite = jnp.all(jnp.stack([jnp.all(jnp.isfinite(leaf)) for leaf in jax.tree.leaves(gradients)]))

    def keep(new: Array, old: Array) -> Array:
        return jnp.where(finite, new, old)

    params, new_optimiser = jax.tree.map(keep, (params, new_optimiser), (state.params, state.optimiser))
    return OptimiserState(params, new_optimiser, *next_scale(state.loss_scale, state.good_steps, finite))


def next_scale(scale: Array, good_steps: Array, finite: Array) -> tuple[Array, Array]:
    """The loss scale for the next step, and the number of steps without overflow."""
    grows = good_steps + 1 >= GROWTH_STEPS
    larger = jnp.where(grows, jnp.minimum(scale * 2, LARGEST_SCALE), scale)
    count = jnp.where(grows, 0, good_steps + 1)
    return jnp.where(finite, larger, jnp.maximum(scale / 2, 1.0)), jnp.where(finite, count, 0)
