"""Pooling and functions of elements on the modelled IPU; gradients of maxima and minima are the CPU's, bit for bit."""

import hypothesis
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import strategies as st
from jax import lax

from tests.ipu.device.on_device import check, examples, on


@examples(8)
@hypothesis.given(
    seed=st.integers(0, 2**16),
    sizes=st.tuples(st.integers(1, 7), st.integers(1, 7)),
    windows=st.tuples(st.integers(1, 3), st.integers(1, 3)),
    strides=st.tuples(st.integers(1, 3), st.integers(1, 3)),
    padding=st.sampled_from(["SAME", "VALID", ((0, 1), (2, 0))]),
    smallest=st.booleans(),
)
def test_gradient_goes_where_the_cpu_s_does(ipus, seed, sizes, windows, strides, padding, smallest) -> None:
    generator = np.random.default_rng(seed)
    # Few different values, so that windows have ties.
    x = generator.integers(-2, 3, (2, *sizes, 3)).astype(np.float32)
    function, worst = (lax.min, jnp.inf) if smallest else (lax.max, -jnp.inf)
    edges = padding if isinstance(padding, str) else ((0, 0), *padding, (0, 0))

    def pool(x: jax.Array) -> jax.Array:
        return lax.reduce_window(x, worst, function, (1, *windows, 1), (1, *strides, 1), edges)

    def gradient(x: jax.Array) -> jax.Array:
        pooled, pull_back = jax.vjp(pool, x)
        return pull_back(jnp.arange(pooled.size, dtype=jnp.float32).reshape(pooled.shape))[0]

    check(ipus[0], gradient, x, rtol=0, atol=0)


def test_not_a_number_and_infinity_are_selected_as_on_the_cpu(ipus) -> None:
    x = np.array([[1, np.nan, 2, 0], [5, -np.inf, -np.inf, np.inf]], np.float32)
    pool = lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (1, 2), (1, 2), ((0, 0), (1, 1)))  # noqa: E731
    check(ipus[0], lambda x: jax.vjp(pool, x)[1](jnp.ones((2, 3)))[0], x)


def test_an_infinite_element_is_selected_before_the_padding(ipus) -> None:
    pool = lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (2,), (2,), ((1, 1),))  # noqa: E731
    (gradient,) = on(
        ipus[0], jax.grad(lambda x: jnp.exp(pool(x)).sum() + pool(x)[0]), np.full(2, -np.inf, np.float32)
    )
    np.testing.assert_array_equal(gradient, [1, 0])


def test_gradients_of_sums_of_large_windows_equal_the_cpu_s(ipus) -> None:
    x = np.random.default_rng(0).integers(-32, 33, (2, 20, 26, 3)).astype(np.float32)

    def pooled(x: jax.Array) -> jax.Array:
        overlapping = lax.reduce_window(x, 0.0, lax.add, (1, 9, 11, 1), (1, 2, 1, 1), "SAME")
        return (
            overlapping.sum()
            + (lax.reduce_window(x, 0.0, lax.add, (1, 10, 13, 1), (1, 10, 13, 1), "VALID") ** 2).sum()
        )

    check(ipus[0], jax.grad(pooled), x, rtol=0, atol=0)


def test_gradients_of_large_windows_are_refused(ipus) -> None:
    pool = lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (9, 9), (1, 1), "SAME")  # noqa: E731
    with pytest.raises(Exception, match=r"no target 'select_and_scatter_add'"):
        check(ipus[0], jax.grad(lambda x: pool(x).sum()), np.ones((9, 9), np.float32))
