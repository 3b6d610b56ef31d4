"""Every op's gradient: finite differences of its relaxed form, where it arrives and where there must be none."""

import jax
import jax.numpy as jnp
import numpy as np

from tests.cases import Case
from tests.ops.common import check_gradient, compiled, draws, each_case, each_op, generic, jit, with_gradient


@each_op
def test_gradient_equals_finite_differences_of_the_relaxed_form(case: Case) -> None:
    with jax.enable_x64(True):
        check_gradient(case.relaxed, generic(draws(case, 1, seed=5)[0]))


@each_case
def test_gradient_reaches_every_argument_but_second_thresholds(case: Case) -> None:
    *others, last = compiled(case)(*draws(case, 1)[0])[1]
    without = case.name in ("select_spikes", "lif_network", "lif_network of currents")
    assert bool(jnp.any(last != 0)) != without
    assert all(jnp.any(g != 0) for g in others)


@each_case
def test_gradient_of_no_rows_is_zero(case: Case) -> None:
    """A batch of 0: shared arguments get a gradient of 0, batched ones an empty one."""

    def empty(argument, axis: int | None):
        return (
            argument if axis is None else jax.tree.map(lambda leaf: leaf.take(jnp.arange(0), axis), argument)
        )

    arguments = [empty(*pair) for pair in zip(draws(case, 1)[0], case.batch_axes, strict=True)]
    _, gradients = jit(with_gradient(case.function))(*arguments)
    assert all(not np.any(g) for g in gradients)
    assert any(g.size == 0 for g in gradients)
