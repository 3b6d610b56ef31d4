"""``implementation="composed"``: every op in plain jnp, whose forward mode equals the reverse mode of its kernel."""

import functools
from typing import Any

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from snnjax import lif_step, spike_matmul
from tests.cases import Case
from tests.numbers import array, assert_close
from tests.ops.common import compiled, draws, each_op, jit, of_floats, weighted_sum

# They are plain jnp in any case.
WITHOUT = ("spike", "pool_spikes")


@each_op
def test_forward_mode_of_an_op_equals_its_gradient(case: Case) -> None:
    arguments = draws(case, 1)[0]
    values, gradients = compiled(case)(*arguments)
    options = {} if case.name in WITHOUT else {"implementation": "composed"}
    wrapped, floats = of_floats(functools.partial(case.function, **options), arguments)
    tangents = [array(np.sin(np.arange(leaf.size)).reshape(leaf.shape), leaf.dtype) for leaf in floats]

    def loss(leaves: list[Any]):
        composed = wrapped(leaves)
        return weighted_sum(composed), composed

    _, forward, composed = jit(lambda f, t: jax.jvp(loss, (f,), (t,), has_aux=True))(floats, tangents)
    chex.assert_trees_all_close(composed, values, rtol=1e-6, atol=1e-6, strict=True)
    expected = sum(np.vdot(g, t) for g, t in zip(gradients, tangents, strict=True))
    # A sum over all entries, in another order.
    assert_close(forward, expected, rtol=1e-4, of_largest=1e-5)


def test_kernels_refuse_second_derivatives_and_say_what_to_do() -> None:
    weights = jnp.ones((3, 2))

    def slope(weights):
        return jnp.sum(jax.grad(lambda w: jnp.sum(spike_matmul(jnp.ones((1, 3)), w) ** 2))(weights))

    text = (
        "spike_matmul: `implementation` must be 'composed' for second derivatives and forward mode, got a "
        "kernel or its reference. Pass implementation='composed'."
    )
    with pytest.raises(ValueError) as caught:
        jax.grad(slope)(weights)
    assert str(caught.value) == text


def test_second_derivative_of_a_step_is_that_of_the_surrogate() -> None:
    """d/dx of ``slope(x) = 1 / (1 + 10 |x|)^2`` at 0.1 is ``-20 / 2^3``."""

    def fire(current):
        v = jnp.zeros(1)
        return lif_step(v, current, 0.0, 1.0, 1.0, implementation="composed")[1][0]

    second = jax.hessian(fire)(jnp.array([1.1], jnp.float32))
    chex.assert_trees_all_close(second, jnp.array([[-2.5]]), rtol=1e-5, strict=True)
