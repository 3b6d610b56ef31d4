"""`convolution`: every arrangement of dimensions, padding, dilation and groups, its transposes, every dtype."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from jax import lax
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo

from tests.ipu.lowering.arrays import DTYPES, numbers, seeds
from tests.ipu.lowering.checks import check, ipus, plan_of

small = st.integers(1, 3)


@st.composite
def convolutions(draw):
    """A convolution of 0 to 3 dimensions of space, and the shapes of its operands."""
    space = draw(st.integers(0, 3))
    groups, batch_groups = draw(st.sampled_from([(1, 1), (1, 1), (2, 1), (3, 1), (1, 2), (1, 3)]))

    def each(values):
        return [draw(values) for _ in range(space)]

    batch, inputs, outputs = draw(small) * batch_groups, draw(small), draw(small) * groups * batch_groups
    lengths, kernel = each(st.integers(1, 7)), each(st.integers(1, 4))
    strides, lhs_dilation, rhs_dilation = each(small), each(small), each(small)
    padding = each(st.tuples(st.integers(-1, 3), st.integers(-1, 3)))
    for length, before, k, (low, high), hole in zip(
        lengths, lhs_dilation, kernel, padding, rhs_dilation, strict=True
    ):
        assume((length - 1) * before + 1 + low + high >= max(1, (k - 1) * hole + 1))
    orders = [tuple(draw(st.permutations(range(space + 2)))) for _ in range(3)]
    shapes = [[0] * (space + 2) for _ in range(2)]
    for shape, order, sizes in zip(
        shapes,
        orders,
        ((batch, inputs * groups, *lengths), (outputs, inputs, *kernel)),
        strict=False,
    ):
        for d, size in zip(order, sizes, strict=True):
            shape[d] = size

    def convolve(x, w):
        return lax.conv_general_dilated(
            x,
            w,
            strides,
            padding,
            lhs_dilation,
            rhs_dilation,
            lax.ConvDimensionNumbers(*orders),
            feature_group_count=groups,
            batch_group_count=batch_groups,
        )

    return convolve, *map(tuple, shapes)


@given(convolutions(), seeds)
def test_convolution_of_any_arrangement_and_its_transposes_equal_cpu(convolution, seed):
    convolve, x, w = convolution

    def everything(x, w):
        out, pull = jax.vjp(convolve, x, w)
        return out, pull(jnp.cos(out))

    check(everything, numbers(np.float32, x, seed), numbers(np.float32, w, seed + 1), rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize(
    "dtype", [d for d in DTYPES if d != np.bool_], ids=lambda dtype: np.dtype(dtype).name
)
def test_convolution_of_dtype_equals_cpu(dtype):
    x, w = numbers(dtype, (2, 3, 6)), numbers(dtype, (4, 3, 3), 1)
    check(lambda x, w: lax.conv(x, w, (2,), "SAME"), x, w)


@pytest.mark.parametrize("shape", [(0, 3, 6), (2, 0, 6), (2, 3, 0)])
def test_convolution_without_elements_equals_cpu(shape):
    w = np.ones((4, shape[1], 3), np.float32)
    check(lambda x, w: lax.conv_general_dilated(x, w, (1,), ((2, 2),)), np.ones(shape, np.float32), w)


def test_reversed_windows_are_those_of_a_reversed_kernel():
    """Which JAX never asks for."""
    x, w = numbers(np.float32, (1, 2, 5, 6)), numbers(np.float32, (3, 2, 2, 3), 1)
    placed = jax.device_put((x, w), ipus(1)[0])
    lowered = jax.jit(lambda x, w: lax.conv(x, w, (1, 1), "SAME")).lower(*placed)
    module = lowered.compiler_ir("stablehlo")

    def turned(op):
        if op.name == "stablehlo.convolution":
            op.attributes["window_reversal"] = ir.DenseBoolArrayAttr.get([True, False])
        return ir.WalkResult.ADVANCE

    with module.context:
        module.operation.walk(turned)
        constants = [ir.DenseElementsAttr.get(each) for each in (x, w)]
        (expected,) = stablehlo.eval_module(module, constants)
    np.testing.assert_allclose(lowered.compile()(*placed), np.array(expected), rtol=1e-5)


def test_windows_are_views_and_the_convolution_one_product():
    """However large the kernel: that of the gradient of weights is as large as the image."""

    def loss(x, w):
        return jnp.sum(jnp.sin(lax.conv(x, w, (1, 1), "SAME")))

    plan = plan_of(
        jax.grad(loss, (0, 1)), np.ones((2, 3, 20, 20), np.float32), np.ones((4, 3, 5, 5), np.float32)
    )
    ops = [instruction.op for instruction in plan.main.instructions]
    assert ops.count("dot") == 3
    assert ops.count("slice") <= 3 * (5 + 5)
    assert set(ops) <= {
        "pad",
        "slice",
        "concatenate",
        "reshape",
        "transpose",
        "reverse",
        "dot",
        "elementwise",
    }
