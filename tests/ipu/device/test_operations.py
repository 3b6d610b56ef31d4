"""Operations that combine or move elements, on the modelled IPU against the CPU: products, reductions, sorts, windows.

Gradients of maxima and minima of windows are the CPU's, bit for bit. The last test has another oracle: the reference
interpreter of StableHLO, which computes by the specification and shares no code.
"""

from typing import Any

import hypothesis
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import strategies as st
from jax import lax
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo

from tests.ipu.device.on_device import ANY, NUMBERS, check, examples, numbers, on, seeds, shapes


@pytest.mark.parametrize("shape", [(48, 130, 77), (3, 500, 2), (300, 5, 300), (1, 1, 400), (64, 64, 64)])
def test_products_over_many_tiles_and_their_gradients(ipus, shape):
    m, k, n = shape

    def loss(a, b):
        return jnp.sum(jnp.sin(a @ b))

    operands = numbers((m, k), "float32", 1), numbers((k, n), "float32", 2) / 8
    check(ipus[0], jax.value_and_grad(loss, (0, 1)), *operands, rtol=1e-4, atol=1e-3)


def test_a_chain_of_products_that_share_sizes(ipus):
    def loss(weights, x):
        for w in weights:
            x = jnp.tanh(x @ w)
        return jnp.sum(x**2)

    weights = [numbers((a, b), "float32", a) / 32 for a, b in [(120, 90), (90, 90), (90, 10)]]
    check(ipus[0], jax.grad(loss), weights, numbers((24, 120), "float32", 0), rtol=1e-4, atol=1e-4)


def test_convolution_with_a_kernel_as_large_as_the_image(ipus):
    def everything(x, w):
        out, pull = jax.vjp(
            lambda x, w: lax.conv_general_dilated(x, w, (1, 1), "VALID", dimension_numbers=ORDER), x, w
        )
        return out, pull(out)

    check(ipus[0], everything, numbers((2, 12, 12, 2), "float32", 1), numbers((12, 12, 2, 20), "float32", 2))


@pytest.mark.parametrize("shape", [(2000,), (3, 1500), (40, 40, 3)])
def test_sums_over_all_tiles(ipus, shape):
    check(ipus[0], lambda x: (jnp.sum(x), jnp.max(x), jnp.sum(x, 0)), numbers(shape, "float32", 3))


def test_sums_of_halves_are_exact_within(ipus):
    x = jnp.full((4000,), 1.0, jnp.float16)
    (total,) = jax.tree.leaves(jax.jit(jnp.sum)(jax.device_put(x, ipus[0])))
    assert float(total) == 4000


def test_the_largest_of_a_long_row_comes_from_all_tiles(ipus):
    x = numbers((2, 3001), "float32", 5)
    check(ipus[0], lambda x: (jnp.argmax(x, 1), jnp.argmin(x, 1), jnp.argmax(x)), x)


ORDER = ("NHWC", "HWIO", "NHWC")
RUNNING = {"sum": lax.cumsum, "prod": lax.cumprod, "max": lax.cummax, "min": lax.cummin}


@pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0), (2, 0, 2)])
def test_nothing_is_combined_without_elements(ipus, shape):
    """Lines of no elements, and no lines."""

    def each(x):
        axes = range(len(shape))
        running = [function(x, axis) for function in RUNNING.values() for axis in axes]
        return running, [jnp.sort(x, axis) for axis in axes], [jnp.prod(x, axis) for axis in axes]

    check(ipus[0], each, jnp.zeros(shape))


@pytest.mark.parametrize("length", [64 * 12, 1021])
def test_running_sums_of_long_rows_go_over_tiles(ipus, length):
    x = numbers((length,), "int32", 1)
    check(ipus[0], lambda x: (lax.cumsum(x), lax.cumsum(x, reverse=True), lax.cummax(x)), x)


@examples(12)
@hypothesis.given(
    dtype=st.sampled_from(ANY), shape=shapes(max_rank=3, max_side=12), seed=seeds, data=st.data()
)
def test_sorts_with_infinities_both_zeros_and_nan(ipus, dtype, shape, seed, data):
    axis = data.draw(st.integers(0, len(shape) - 1))
    x = numbers(shape, dtype, seed, edges=True)

    def sorts(x):
        return [f(x, axis, descending=down) for f in (jnp.sort, jnp.argsort) for down in (False, True)]

    check(ipus[0], sorts, x)


@examples(6)
@hypothesis.given(shape=shapes(max_rank=2, max_side=30), seed=seeds, num_keys=st.integers(1, 3))
def test_sorts_by_several_keys_keep_the_order_of_equals(ipus, shape, seed, num_keys):
    dtypes = ("int32", "float32", "bool", "uint8", "float16")
    arrays = [numbers(shape, dtype, seed + i) for i, dtype in enumerate(dtypes)]
    check(ipus[0], lambda *arrays: lax.sort(arrays, dimension=-1, num_keys=num_keys), *arrays)


@pytest.mark.parametrize("length", [96, 97, 600])
def test_a_long_row_is_sorted_by_all_workers_of_its_tile(ipus, length):
    x = numbers((length,), "float32", 1) * 100
    check(ipus[0], lambda x: (jnp.sort(x), jnp.argsort(x), jnp.median(x)), x)


@examples(10)
@hypothesis.given(
    dtype=st.sampled_from(NUMBERS), shape=shapes(max_rank=3, max_side=12), seed=seeds, data=st.data()
)
def test_the_largest_of_each_row(ipus, dtype, shape, seed, data):
    k = data.draw(st.integers(1, shape[-1]))
    check(ipus[0], lambda x: lax.top_k(x, k), numbers(shape, dtype, seed, edges=True))


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


X = jnp.asarray(np.random.default_rng(0).normal(size=(4, 6)), jnp.float32)
IDS = jnp.array([3, 0, 7, -1, 2], jnp.int32)  # two of them out of range

FUNCTIONS: dict[str, tuple[Any, ...]] = {
    "elementwise": (lambda x: (jnp.tanh(x) * 2 + jnp.sqrt(jnp.abs(x)), x > 0, jnp.floor(x), jnp.sign(x)), X),
    "exponentials": (lambda x: (jnp.exp(x), jnp.log1p(jnp.abs(x)), jax.nn.sigmoid(x), jnp.expm1(x)), X),
    "integers": (lambda i: (i // 2, i % 3, i << 2, i & 5, -i, jnp.abs(i)), IDS),
    "conversions": (lambda x: (x.astype(jnp.int32), (x > 0).astype(jnp.float32), x.astype(jnp.float16)), X),
    "product": (lambda x: (x @ x.T, jnp.einsum("ij,ik->jk", x, x)), X),
    "reductions": (lambda x: (x.sum(0), x.max(1), x.min(), jnp.prod(x, 1), jnp.any(x > 1, 0)), X),
    "shapes": (lambda x: (x.T, x[::2, 1:5:3], jnp.concatenate([x, x], 1), x[:, ::-1], x.reshape(8, 3)), X),
    "padding": (lambda x: jax.lax.pad(x, 0.5, ((1, -1, 1), (0, 2, 2))), X),
    "gathered rows": (lambda x, i: x.at[i].get(mode="clip"), X, IDS),
    "added rows": (lambda x, i: x.at[i].add(x[:1], mode="drop"), X, IDS),
    "slices": (lambda x, i: jax.lax.dynamic_slice(x, (i[0], i[4]), (2, 3)), X, IDS),
    "updates": (lambda x, i: jax.lax.dynamic_update_slice(x, x[:2, :3], (i[0], i[4])), X, IDS),
    "sorted": (lambda x: (jnp.sort(x, 1), jnp.argsort(x, 0)), X),
    "a loop": (lambda x: jax.lax.fori_loop(0, 3, lambda i, c: c * 0.5 + i, x), X),
    "a loop by its data": (lambda x: jax.lax.while_loop(lambda c: c.sum() < 50, lambda c: c * 2 + 1, x), X),
    "branches": (lambda x, i: jax.lax.switch(i[0], [jnp.sin, jnp.cos, jnp.abs], x), X, IDS),
}


def interpreted(function, *arguments: jax.Array) -> list[np.ndarray]:
    """What the specification says."""
    module = jax.jit(function).lower(*arguments).compiler_ir("stablehlo")
    with module.context:
        constants = [ir.DenseElementsAttr.get(np.asarray(argument)) for argument in arguments]
        return [np.array(result) for result in stablehlo.eval_module(module, constants)]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_device_computes_what_the_specification_says(ipus, name):
    function, *arguments = FUNCTIONS[name]
    pairs = zip(on(ipus[0], function, *arguments), interpreted(function, *arguments), strict=True)
    for actual, expected in pairs:
        # Sums in another order; functions of the C library beside those of the interpreter.
        np.testing.assert_allclose(
            actual.astype(np.float64), expected.astype(np.float64), rtol=1e-5, atol=1e-6
        )
