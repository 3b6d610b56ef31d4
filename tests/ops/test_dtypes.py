"""dtype in = dtype out, nothing is promoted on the way, and membranes are carried in the accumulation dtype."""

from typing import Any

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.typing import DTypeLike

from snnjax import (
    LIFLayer,
    LIFReadout,
    SparseSpikes,
    _targets,
    lif_network,
    lif_network_state,
    lif_step,
    spike_matmul,
)
from snnjax.neurons import GLIFConstants
from snnjax.ops._lif_network.recorded import membranes_of, recorded_membranes
from snnjax.ops._lif_network.records import LayerConstants
from tests.cases import CASES, Case, as_numpy
from tests.numbers import array, assert_close
from tests.ops.common import draws, float_leaves, is_float, jit, of_floats, with_gradient
from tests.project.sampling import sampled
from tests.soak import integers

# The kernels compute in float32.
EACH_DTYPE = sampled(
    [
        (case, dtype)
        for case in CASES
        for dtype in (jnp.bfloat16, jnp.float64)
        if case.implementation != "cpu" or dtype == jnp.bfloat16
    ],
    lambda row: {"op": row[0].name, "implementation": row[0].implementation, "dtype": row[1]},
)


# Float results in the accumulation dtype: membranes, and the activity, which is a mean over time.
WIDE = {
    "lif_step": (0,),
    "delayed_spike_matmul": (1,),
    "lif_network": (1, 3, 5),
    "lif_network of currents": (1, 3, 5),
}


def cast(tree, dtype: DTypeLike):
    return jax.tree.map(lambda leaf: leaf.astype(dtype) if is_float(leaf) else leaf, tree)


def cast_arguments(case: Case, arguments: tuple[Any, ...], dtype: DTypeLike, wide) -> tuple[Any, ...]:
    """Everything in `dtype`, except membranes."""
    narrow = list(cast(arguments, dtype))
    if case.name == "lif_step":
        narrow[0] = cast(arguments[0], wide)
    if case.name.startswith("lif_network"):
        wide_state, state = cast(arguments[3], wide), narrow[3]
        each = zip(state.layers, wide_state.layers, strict=True)
        layers = tuple(layer._replace(v=wide_layer.v) for layer, wide_layer in each)
        narrow[3] = state._replace(layers=layers, readout=wide_state.readout)
    return tuple(narrow)


@pytest.mark.parametrize(
    "case, dtype", EACH_DTYPE, ids=lambda each: each.id if isinstance(each, Case) else jnp.dtype(each).name
)
def test_op_keeps_its_dtype(case: Case, dtype: DTypeLike) -> None:
    """Values bit for bit: sums are exact in float32, and only results are rounded."""
    with jax.enable_x64(dtype == jnp.float64):
        wide = jnp.float64 if dtype == jnp.float64 else jnp.float32
        arguments = cast_arguments(case, draws(case, 1, seed=3)[0], dtype, wide)
        values, gradients = jit(with_gradient(case.function))(*arguments)
        expected = float_leaves(case.reference(*as_numpy(arguments)))
        chex.assert_trees_all_equal(
            values, [e.astype(v.dtype) for v, e in zip(values, expected, strict=True)], strict=True
        )
        wide_ones = WIDE.get(case.name, ())
        assert [v.dtype for v in values] == [wide if i in wide_ones else dtype for i in range(len(values))]
        _, floats = of_floats(case.function, arguments)
        assert [g.dtype for g in gradients] == [leaf.dtype for leaf in floats]
        chex.assert_tree_all_finite(gradients)


def test_many_small_terms_add_up_in_bfloat16() -> None:
    """1 + 512 / 256 = 3: a bfloat16 sum would stay at 1, as 1 + 1/256 rounds to 1."""
    values = jnp.asarray([[1.0] + [1 / 256] * 512], jnp.bfloat16)
    count = jnp.array([513])
    spikes = SparseSpikes(jnp.arange(513, dtype=jnp.uint16)[None], values, count, count, 0 * count, 513)
    assert spike_matmul(spikes, jnp.ones((513, 1), jnp.bfloat16)).tolist() == [[3.0]]


IMPLEMENTATIONS = ("reference", "cpu") if _targets.missing() is None else ("reference",)


def slow_neuron(implementation: str, dtype: DTypeLike, **options):
    """A constant input of 1.5 to a neuron of decay 0.998 for 2,000 steps: `lif_network` with its spikes recorded."""
    layer = LIFLayer(jnp.full((1, 1), 1.5, dtype), decay=0.998)
    readout = LIFReadout(jnp.ones((1, 1), dtype), decay=0.999)
    inputs = jnp.ones((2000, 1, 1), dtype)
    options = {"record_spikes": True, "implementation": implementation, **options}
    return jit(lambda x, layer, readout, state: lif_network(x, [layer], readout, state, **options)), (
        inputs,
        layer,
        readout,
        lif_network_state(1, [layer], readout),
    )


@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
def test_slow_membranes_rise_in_bfloat16_as_in_float32(implementation: str) -> None:
    """In steps of 2^-8 the membrane would stick at 1, and a gain of 0.001 would be that of a decay rounded to 1."""
    run, given = slow_neuron(implementation, jnp.float32)
    expected, end = run(*given)
    run, given = slow_neuron(implementation, jnp.bfloat16)
    out, state = run(*given)
    assert np.flatnonzero(expected.spikes[0]).size == 3
    chex.assert_trees_all_equal(out.spikes, expected.spikes, strict=True)
    chex.assert_trees_all_equal(state, end, strict=True)
    assert (out.output.dtype, state.layers[0].v.dtype, state.readout.dtype) == (
        jnp.bfloat16,
        jnp.float32,
        jnp.float32,
    )
    chex.assert_trees_all_equal(out.output, expected.output.astype(jnp.bfloat16), strict=True)
    assert 0 < float(out.output[-1, 0, 0]) < 0.01


@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
def test_pieces_and_chunks_of_bfloat16_equal_the_whole(implementation: str) -> None:
    run, given = slow_neuron(implementation, jnp.bfloat16)
    whole, end = run(*given)
    in_chunks, _ = slow_neuron(implementation, jnp.bfloat16, chunk=300)
    chex.assert_trees_all_equal(
        (in_chunks(*given)[0].output, in_chunks(*given)[1]), (whole.output, end), strict=True
    )
    first, state = run(given[0][:700], *given[1:])
    second, last = run(given[0][700:], *given[1:3], state)
    chex.assert_trees_all_equal(
        (jnp.concatenate([first.output, second.output]), last), (whole.output, end), strict=True
    )


@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
def test_gradients_in_bfloat16_are_those_of_float32(implementation: str) -> None:
    """Decays near 1, an attached reset, dropped spikes: within the 8 bits of what is recorded and handed down."""
    options = {
        "capacity": 5,
        "second_threshold": 0.5,
        "detach_reset": False,
        "implementation": implementation,
    }
    rng = np.random.default_rng(0)

    def gradients(dtype: DTypeLike):
        draws = np.random.default_rng(1)
        layers = [
            LIFLayer(
                array(draws.normal(size=(20, 16)), jnp.bfloat16).astype(dtype),
                jnp.linspace(0.9, 0.995, 16),
                array(draws.uniform(0.02, 0.05, 16), jnp.float32),
            )
        ]
        readout = LIFReadout(array(draws.normal(size=(16, 3)), jnp.bfloat16).astype(dtype), 0.97)

        def loss(layers, readout) -> jax.Array:
            out, _ = lif_network(inputs.astype(dtype), layers, readout, surrogate="triangle", **options)
            return jnp.sum(out.output.astype(jnp.float32)) + jnp.sum(out.activity[0])

        return jit(jax.grad(loss, (0, 1)))(layers, readout)

    inputs = array(rng.random((60, 4, 20)) < 0.3, jnp.float32)
    assert_close(gradients(jnp.bfloat16), gradients(jnp.float32), of_largest=0.02)


def test_recorded_membranes_keep_their_side_of_the_threshold() -> None:
    """Of all membranes around a threshold, those next to it and infinite ones too; they keep 8 bits of distance."""
    steps = np.arange(-300, 301, dtype=np.int32)
    for number in (1.0, -1.0, 0.3, 1e-3, 30.0, np.inf, -np.inf):
        threshold = np.float32(number)
        near = (np.abs(threshold).view(np.int32) + steps).view(np.float32) if np.isfinite(number) else steps
        far = np.linspace(-50, 50, 1001, dtype=np.float32)
        v = np.concatenate([np.copysign(near, threshold), far, [np.inf, -np.inf]]).astype(np.float32)
        constants = LayerConstants(GLIFConstants(*(jnp.asarray(threshold),) * 3))
        record = recorded_membranes(jnp.asarray(v), constants, jnp.bfloat16)
        ours = np.asarray(membranes_of(record, jnp.asarray(threshold)))
        np.testing.assert_array_equal(ours > threshold, v > threshold)
        finite = np.isfinite(v)
        origin = threshold if np.isfinite(threshold) else np.float32(0)
        np.testing.assert_allclose(ours[finite] - origin, v[finite] - origin, rtol=2**-8, atol=1e-6)


def test_one_step_of_bfloat16_carries_float32() -> None:
    def run(dtype: DTypeLike):
        current = jnp.full((1, 1), 1.5, dtype)
        return jax.lax.scan(lambda v, _: lif_step(v, current, 0.998, 1.0), jnp.zeros((1, 1)), length=2000)

    v, spikes = run(jnp.bfloat16)
    assert (v.dtype, spikes.dtype, int(jnp.sum(spikes))) == (jnp.float32, jnp.bfloat16, 3)
    chex.assert_trees_all_equal((v, spikes), run(jnp.float32), strict=True)


@pytest.mark.parametrize("name", integers.CASES)
def test_integers_of_small_dtypes_are_the_same_numbers(name: str) -> None:
    """Neither does a bound that the dtype does not hold wrap, nor do kernels read other numbers."""
    for dtype in ("uint8", "int8"):
        form = integers.Form(name, 300, dtype, IMPLEMENTATIONS[-1])
        for seed in range(10):
            integers.check(form, seed)


@pytest.mark.parametrize("dtype", [jnp.uint8, jnp.int32, bool, jnp.bfloat16], ids=lambda d: jnp.dtype(d).name)
def test_lif_network_takes_inputs_of_any_dtype(dtype: DTypeLike) -> None:
    inputs = jnp.array([[[1, 0]], [[1, 1]], [[0, 1]]])
    layer = LIFLayer(jnp.array([[0.5, 2.0], [1.0, -1.0]]), decay=0.5, gain=1.0)

    def loss(weights: jax.Array, inputs: jax.Array):
        output = lif_network(inputs, [layer._replace(weights=weights)])[0].output
        return jnp.sum(output), output

    run = jit(jax.grad(loss, has_aux=True))
    gradient, output = run(layer.weights, inputs.astype(dtype))
    expected_gradient, expected = run(layer.weights, inputs.astype(jnp.float32))
    assert output.dtype == jnp.float32
    chex.assert_trees_all_equal([gradient, output], [expected_gradient, expected], strict=True)
    assert np.any(expected)


def test_lists_of_another_dtype_give_way_to_the_weights() -> None:
    spikes = SparseSpikes.from_ids(jnp.array([[0, 2]]), 3).with_values(jnp.bfloat16)
    weights = jnp.arange(6, dtype=jnp.float32).reshape(3, 2)
    out, pull_back = jax.vjp(spike_matmul, spikes, weights)
    d_spikes, d_weights = pull_back(jnp.ones_like(out))
    assert (out.dtype, d_spikes.values.dtype, d_weights.dtype) == (jnp.float32, jnp.bfloat16, jnp.float32)
    assert out.tolist() == [[4.0, 6.0]]
    assert d_spikes.values.tolist() == [[1.0, 9.0]]
