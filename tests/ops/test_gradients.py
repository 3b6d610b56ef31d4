"""Every op's gradient: finite differences of its relaxed form in float64, and what must have none."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.test_util import check_grads

from tests.cases import Case
from tests.ops.helpers import draws, each_case, gradient, is_float, of_floats

# Central differences in float64: the error is about STEP^2 times a third derivative (slope^2 = 9 of the surrogate, a few
# steps deep) plus 1e-16 / STEP.
STEP, TOLERANCE = 1e-5, 1e-6


def generic(tree: Any, seed: int = 0) -> Any:
    """`tree` in float64, moved off the dyadic grid so that no membrane meets a threshold within a step."""
    rng = np.random.default_rng(seed)

    def move(leaf: Any) -> Any:
        return jnp.asarray(leaf, jnp.float64) + rng.uniform(-0.02, 0.02, leaf.shape) if is_float(leaf) else leaf

    return jax.tree.map(move, tree)


@each_case
def test_gradient_equals_finite_differences_of_the_relaxed_form(case: Case) -> None:
    with jax.enable_x64(True):
        wrapped, floats = of_floats(case.relaxed, generic(case.arguments(np.random.default_rng(5))))
        check_grads(
            jax.jit(wrapped), (floats,), order=1, modes=["rev"], eps=STEP, atol=TOLERANCE, rtol=TOLERANCE
        )


@each_case
def test_gradient_reaches_every_argument_but_second_thresholds(case: Case) -> None:
    *others, last = gradient(case.function)(*draws(case, 1)[0])
    without = case.name in ("select_spikes", "lif_network")
    assert bool(jnp.any(last != 0)) != without
    assert all(jnp.any(g != 0) for g in others)


@each_case
def test_gradient_of_no_rows_is_zero(case: Case) -> None:
    """A batch of 0: shared arguments get a gradient of 0, batched ones an empty one."""

    def empty(argument: Any, axis: int | None) -> Any:
        return argument if axis is None else jax.tree.map(lambda leaf: leaf.take(jnp.arange(0), axis), argument)

    arguments = [empty(*pair) for pair in zip(draws(case, 1)[0], case.batch_axes, strict=True)]
    gradients = jax.tree.leaves(jax.jit(gradient(case.function))(*arguments))
    assert all(not np.any(g) for g in gradients)
    assert any(g.size == 0 for g in gradients)
