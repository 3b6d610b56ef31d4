"""`dot_general`: every arrangement of dimensions, every dtype, and no transposed operands."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jax import lax

from tests.ipu.lowering.arrays import DTYPES, FLOATS, numbers, seeds
from tests.ipu.lowering.checks import check, plan_of

lengths = st.lists(st.integers(0, 7), max_size=2)


@given(lengths, lengths, lengths, lengths, st.sampled_from(FLOATS), st.randoms(), seeds)
def test_product_of_any_arrangement_equals_cpu(batch, contracted, own_a, own_b, dtype, random, seed):
    def arranged(own):
        dims = [("batch", k) for k in range(len(batch))] + [("sum", k) for k in range(len(contracted))]
        dims += [("own", k) for k in range(len(own))]
        random.shuffle(dims)
        lengths = {"batch": batch, "sum": contracted, "own": own}
        places = {
            name: [dims.index((name, k)) for k in range(len(lengths[name]))] for name in ("batch", "sum")
        }
        return numbers(dtype, tuple(lengths[name][k] for name, k in dims), seed), places

    (a, in_a), (b, in_b) = arranged(own_a), arranged(own_b)
    numbers_ = ((in_a["sum"], in_b["sum"]), (in_a["batch"], in_b["batch"]))
    check(lambda a, b: lax.dot_general(a, b, numbers_), a, b)


@pytest.mark.parametrize(
    "dtype", [d for d in DTYPES if d != np.bool_], ids=lambda dtype: np.dtype(dtype).name
)
def test_product_of_dtype_equals_cpu(dtype):
    a, b = numbers(dtype, (5, 7)), numbers(dtype, (7, 3), 1)
    check(jnp.matmul, a, b)
    if np.dtype(dtype).kind in "fV":
        check(lambda a, b: lax.dot(a, b, preferred_element_type=jnp.float32), a, b)
    else:
        check(lambda a, b: lax.dot(a, b, preferred_element_type=jnp.int32), a, b)


def test_large_integers_are_multiplied_exactly():
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-(2**31), 2**31, shape).astype(np.int32) for shape in ((2, 4, 5), (2, 5, 3)))
    check(jnp.matmul, a, b)


def test_gradients_of_a_product_have_no_transposes():
    w, x = numbers(np.float32, (7, 3)), numbers(np.float32, (5, 7))

    def loss(w, x):
        return jnp.sum(jnp.tanh(x @ w) ** 2)

    check(jax.grad(loss, (0, 1)), w, x, rtol=1e-4, atol=1e-5)
    ops = [instruction.op for instruction in plan_of(jax.grad(loss, (0, 1)), w, x).main.instructions]
    assert "transpose" not in ops
    assert ops.count("dot") == 3
    assert "transpose" not in [i.op for i in plan_of(lambda w, x: w.T @ x.T, w, x).main.instructions]
