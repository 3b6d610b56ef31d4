"""dtype in = dtype out, nothing is promoted on the way, and a step rounds once."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from snnjax import LIFLayer, SparseSpikes, lif_network, spike_matmul
from tests.cases import CASES, Case, as_numpy
from tests.ops.common import (
    assert_same,
    draws,
    float_leaves,
    is_float,
    jit,
    of_floats,
    with_gradient,
)

# The kernels compute in float32.
EACH_DTYPE = [
    pytest.param(case, dtype, id=f"{case.id}-{jnp.dtype(dtype).name}")
    for case in CASES
    for dtype in (jnp.bfloat16, jnp.float64)
    if case.implementation != "cpu" or dtype == jnp.bfloat16
]


def cast(tree: Any, dtype: Any) -> Any:
    return jax.tree.map(lambda leaf: leaf.astype(dtype) if is_float(leaf) else leaf, tree)


@pytest.mark.parametrize("case, dtype", EACH_DTYPE)
def test_op_keeps_its_dtype(case: Case, dtype: Any) -> None:
    """Values to the bit: sums are exact in float32, and the reference rounds where a membrane is stored."""
    with jax.enable_x64(dtype == jnp.float64):
        arguments = cast(draws(case, 1, seed=3)[0], dtype)
        values, gradients = jit(with_gradient(case.function))(*arguments)
        expected = float_leaves(case.reference(*as_numpy(arguments)))
        assert_same(values, expected)
        # Activity is a mean over time, in the dtype of sums: the one float result of [batch, neurons] of lif_network.
        wide = jnp.float64 if dtype == jnp.float64 else jnp.float32
        activity = 1 if case.name == "lif_network" else None
        assert [v.dtype for v in values] == [wide if i == activity else dtype for i in range(len(values))]
        _, floats = of_floats(case.function, arguments)
        assert [g.dtype for g in gradients] == [leaf.dtype for leaf in floats]
        assert all(np.isfinite(g.astype(jnp.float32)).all() for g in gradients)


def test_many_small_terms_add_up_in_bfloat16() -> None:
    """1 + 512 / 256 = 3: a bfloat16 sum would stay at 1, as 1 + 1/256 rounds to 1."""
    values = jnp.asarray([[1.0] + [1 / 256] * 512], jnp.bfloat16)
    count = jnp.array([513])
    spikes = SparseSpikes(jnp.arange(513, dtype=jnp.uint16)[None], values, count, count, 513)
    assert spike_matmul(spikes, jnp.ones((513, 1), jnp.bfloat16)).tolist() == [[3.0]]


@pytest.mark.parametrize("dtype", [jnp.uint8, jnp.int32, bool, jnp.bfloat16], ids=lambda d: jnp.dtype(d).name)
def test_lif_network_takes_inputs_of_any_dtype(dtype: Any) -> None:
    inputs = jnp.array([[[1, 0]], [[1, 1]], [[0, 1]]])
    layer = LIFLayer(jnp.array([[0.5, 2.0], [1.0, -1.0]]), decay=0.5, gain=1.0)

    def loss(weights: jax.Array, inputs: jax.Array) -> Any:
        output = lif_network(inputs, [layer._replace(weights=weights)])[0].output
        return jnp.sum(output), output

    run = jit(jax.grad(loss, has_aux=True))
    gradient, output = run(layer.weights, inputs.astype(dtype))
    expected_gradient, expected = run(layer.weights, inputs.astype(jnp.float32))
    assert output.dtype == jnp.float32
    assert_same([gradient, output], [expected_gradient, expected])
    assert np.any(expected)


def test_lists_of_another_dtype_give_way_to_the_weights() -> None:
    spikes = SparseSpikes.from_ids(jnp.array([[0, 2]]), 3, dtype=jnp.bfloat16)
    weights = jnp.arange(6, dtype=jnp.float32).reshape(3, 2)
    out, pull_back = jax.vjp(spike_matmul, spikes, weights)
    d_spikes, d_weights = pull_back(jnp.ones_like(out))
    assert (out.dtype, d_spikes.values.dtype, d_weights.dtype) == (jnp.float32, jnp.bfloat16, jnp.float32)
    assert out.tolist() == [[4.0, 6.0]]
    assert d_spikes.values.tolist() == [[1.0, 9.0]]
