"""Operations that combine elements, on the modelled IPU against the CPU: products, reductions, running results."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from tests.ipu.device.on_device import check, numbers


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


def test_an_empty_reduction_is_its_neutral_element(ipus):
    x = jnp.zeros((3, 0), np.float32)
    check(ipus[0], lambda x: (jnp.sum(x, 1), jnp.prod(x, 1), jnp.max(x, 1, initial=-5.0)), x)
