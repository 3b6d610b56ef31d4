"""Operations that combine elements, on the modelled IPU against the CPU: products, reductions, running results."""

import hypothesis
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import strategies as st
from jax import lax

from tests.ipu.device.on_device import NUMBERS, check, examples, numbers, seeds, shapes, tolerance


@st.composite
def products(draw):
    """Shapes and dimension numbers of a dot_general, dimensions in any order."""
    sizes = st.integers(1, 7)
    batch, depth = draw(st.lists(sizes, max_size=2)), draw(st.lists(sizes, max_size=2))
    operands = []
    for _ in range(2):
        free = draw(st.lists(sizes, max_size=2))
        dims = draw(st.permutations(range(len(batch) + len(depth) + len(free))))
        shape = [0] * len(dims)
        for dim, size in zip(dims, (*batch, *depth, *free), strict=True):
            shape[dim] = size
        operands.append(
            (tuple(shape), tuple(dims[len(batch) : len(batch) + len(depth)]), tuple(dims[: len(batch)]))
        )
    (lhs, lhs_depth, lhs_batch), (rhs, rhs_depth, rhs_batch) = operands
    return lhs, rhs, ((lhs_depth, rhs_depth), (lhs_batch, rhs_batch))


@examples(20)
@hypothesis.given(product=products(), dtype=st.sampled_from(["float32", "float16", "bfloat16"]), seed=seeds)
def test_products(ipus, product, dtype, seed):
    lhs, rhs, dims = product
    operands = numbers(lhs, dtype, seed), numbers(rhs, dtype, seed + 1)
    check(ipus[0], lambda a, b: lax.dot_general(a, b, dims), *operands, **tolerance(dtype))


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


# Shapes of images, [batch, *space, channels], and kernel, [*kernel, channels, outputs]; what the convolution says.
CONVOLUTIONS = {
    "same": ((2, 7, 6, 3), (3, 3, 3, 4), {"padding": "SAME"}),
    "valid": ((2, 7, 6, 3), (3, 2, 3, 4), {"padding": "VALID"}),
    "strides": ((2, 9, 8, 3), (3, 4, 3, 4), {"padding": "SAME", "window_strides": (2, 3)}),
    "groups": ((2, 6, 6, 6), (3, 3, 2, 9), {"padding": "SAME", "feature_group_count": 3}),
    "each channel": ((3, 6, 6, 5), (3, 3, 1, 5), {"padding": "VALID", "feature_group_count": 5}),
    "groups of the batch": ((4, 6, 5, 3), (3, 3, 3, 8), {"padding": "SAME", "batch_group_count": 2}),
    "padding below 0": ((2, 7, 6, 3), (3, 3, 3, 4), {"padding": ((-1, 3), (2, -2))}),
    "dilation": (
        (2, 6, 9, 3),
        (2, 3, 3, 4),
        {"padding": ((1, 0), (2, 2)), "lhs_dilation": (2, 1), "rhs_dilation": (1, 3)},
    ),
    "one dimension": ((3, 12, 4), (5, 4, 6), {"padding": "SAME", "window_strides": (2,)}),
    "three dimensions": ((1, 4, 5, 3, 2), (2, 3, 2, 2, 3), {"padding": "VALID"}),
    "a kernel as large as the image": ((2, 12, 12, 2), (12, 12, 2, 20), {"padding": "VALID"}),
}


def convolution(name):
    """Images, a kernel, and their convolution."""
    images, kernel, options = CONVOLUTIONS[name]
    space = "xyz"[: len(images) - 2]
    orders = (f"N{space}C", f"{space}IO", f"N{space}C")
    options = {"window_strides": (1,) * len(space), **options}
    return lambda x, w: lax.conv_general_dilated(x, w, dimension_numbers=orders, **options), images, kernel


@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_convolutions_and_their_transposes(ipus, name):
    convolve, images, kernel = convolution(name)

    def everything(x, w):
        out, pull = jax.vjp(convolve, x, w)
        return out, pull(out)

    check(
        ipus[0],
        everything,
        numbers(images, "float32", 1),
        numbers(kernel, "float32", 2),
        **tolerance("float32"),
    )


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "int32"])
def test_convolutions_of_other_types(ipus, dtype):
    convolve, images, kernel = convolution("strides")
    check(ipus[0], convolve, numbers(images, dtype, 1), numbers(kernel, dtype, 2), **tolerance(dtype))


REDUCTIONS = {"sum": jnp.sum, "prod": jnp.prod, "max": jnp.max, "min": jnp.min}


@pytest.mark.parametrize("kind", REDUCTIONS)
@examples(10)
@hypothesis.given(dtype=st.sampled_from(NUMBERS), shape=shapes(max_side=6), seed=seeds, data=st.data())
def test_reductions(ipus, kind, dtype, shape, seed, data):
    axes = tuple(data.draw(st.sets(st.integers(0, len(shape) - 1), min_size=1)))
    x = numbers(shape, dtype, seed, edges=kind in ("max", "min"))
    check(ipus[0], lambda x: REDUCTIONS[kind](x, axes), x, **tolerance(dtype))


@examples(6)
@hypothesis.given(shape=shapes(), seed=seeds, data=st.data())
def test_reductions_of_booleans_and_bits(ipus, shape, seed, data):
    axes = tuple(data.draw(st.sets(st.integers(0, len(shape) - 1), min_size=1)))
    bools, bits = numbers(shape, "bool", seed), numbers(shape, "int32", seed)

    def reduce(bools, bits):
        kinds = {"and": lax.reduce_and, "or": lax.reduce_or, "xor": lax.reduce_xor}
        return {kind: (f(bools, axes), f(bits, axes)) for kind, f in kinds.items()}

    check(ipus[0], reduce, bools, bits)


@pytest.mark.parametrize("shape", [(2000,), (3, 1500), (40, 40, 3)])
def test_sums_over_all_tiles(ipus, shape):
    check(ipus[0], lambda x: (jnp.sum(x), jnp.max(x), jnp.sum(x, 0)), numbers(shape, "float32", 3))


def test_sums_of_halves_are_exact_within(ipus):
    x = jnp.full((4000,), 1.0, jnp.float16)
    (total,) = jax.tree.leaves(jax.jit(jnp.sum)(jax.device_put(x, ipus[0])))
    assert float(total) == 4000


@pytest.mark.parametrize("largest", [True, False])
@examples(8)
@hypothesis.given(dtype=st.sampled_from(NUMBERS), shape=shapes(max_rank=3), seed=seeds, data=st.data())
def test_first_of_the_largest_and_smallest(ipus, largest, dtype, shape, seed, data):
    axis = data.draw(st.integers(0, len(shape) - 1))
    x = numbers(shape, dtype, seed, edges=True)
    check(ipus[0], lambda x: (jnp.argmax if largest else jnp.argmin)(x, axis), x)


def test_the_largest_of_a_long_row_comes_from_all_tiles(ipus):
    x = numbers((2, 3001), "float32", 5)
    check(ipus[0], lambda x: (jnp.argmax(x, 1), jnp.argmin(x, 1), jnp.argmax(x)), x)


RUNNING = {"sum": lax.cumsum, "prod": lax.cumprod, "max": lax.cummax, "min": lax.cummin}


@pytest.mark.parametrize("kind", RUNNING)
@examples(6)
@hypothesis.given(shape=shapes(max_rank=3, max_side=8), seed=seeds, data=st.data())
def test_running_results(ipus, kind, shape, seed, data):
    dtype, reverse = (
        data.draw(st.sampled_from(["float32", "float16", "int32", "uint32"])),
        data.draw(st.booleans()),
    )
    axis = data.draw(st.integers(0, len(shape) - 1))
    x = numbers(shape, dtype, seed)
    check(ipus[0], lambda x: RUNNING[kind](x, axis, reverse), x, **tolerance(dtype))


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
