"""Rounded weights, their straight-through gradient, products with rows of int8, and states in fixed point."""

import functools
import re
from typing import Any

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.typing import DTypeLike

import snnjax
from snnjax import (
    DelayedSynapses,
    LIFLayer,
    SparseSpikes,
    Synapses,
    axonal,
    blocks,
    conv2d,
    dense,
    layer,
    leaky_readout,
    lif_network,
    network,
    neurons,
    simulate,
    simulation_state,
    spike_matmul,
    spike_sparse_matmul,
)
from snnjax.quantisation import (
    Quantised,
    dequantise,
    fake_quantise,
    quantise,
    quantise_network,
)
from tests.graph.helpers import INPUTS, initial, louder, random_spikes
from tests.numbers import array, assert_close
from tests.ops.common import jit
from tests.ops.kernel_checks import needs_kernels


@pytest.mark.parametrize("bits, most", [(8, 127), (4, 7)])
def test_error_is_half_a_step_of_each_channel(bits: int, most: int) -> None:
    weights = jax.random.normal(jax.random.key(0), (3, 5, 4)) * jnp.array([[[1.0, 10.0, 0.0, 1e-6]]])
    stored = quantise(weights, bits)
    assert stored.values.dtype == jnp.int8
    largest = np.max(np.abs(weights), axis=(0, 1))
    np.testing.assert_array_equal(np.max(np.abs(stored.values), axis=(0, 1)), [most, most, 0, most])
    error = np.max(np.abs(dequantise(stored) - weights), axis=(0, 1))
    assert np.all(error <= 0.5001 * largest / most)
    again = quantise(dequantise(stored), bits)
    np.testing.assert_array_equal(again.values, stored.values)


RANGES = {"float16": (65504.0, 1.0, 1e-5, 3e-6, 6e-8), "float32": (3e38, 1e-30, 1e-36, 1.3e-38)}


@pytest.mark.parametrize("bits, most", [(8, 127), (4, 7)])
@pytest.mark.parametrize("dtype", RANGES)
def test_scales_neither_overflow_nor_vanish(dtype: str, bits: int, most: int) -> None:
    """At both ends of a dtype; numbers below the normal ones of float32 are 0 to XLA, and so are not scales."""
    sizes, tiny = np.array(RANGES[dtype]), float(jnp.finfo(jnp.float32).tiny)
    shares = np.random.default_rng(0).uniform(-1, 1, (50, len(sizes)))
    shares[0] = 1.0
    weights = jnp.asarray(sizes * shares, dtype)
    stored = quantise(weights, bits)
    assert (stored.scale.dtype, stored.dtype) == (jnp.float32, dtype)
    given, made = (np.asarray(each, np.float64) for each in (weights, dequantise(stored)))
    rounding = jnp.finfo(dtype).eps * abs(given) + float(jnp.finfo(dtype).smallest_subnormal)
    largest = np.maximum(0.5001 * abs(given).max(axis=0) / most, tiny)
    assert np.all(abs(made - given) <= largest + rounding)
    assert jax.tree.map(jnp.shape, stored) == stored._replace(values=(50, len(sizes)), scale=(len(sizes),))


@pytest.mark.parametrize("bits", [8, 4])
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_quotients_of_short_dtypes_are_rounded_once(dtype: str, bits: int) -> None:
    weights = jax.random.normal(jax.random.key(1), (200, 7)).astype(dtype)
    stored = quantise(weights, bits)
    exact = np.asarray(weights, np.float64) / np.asarray(stored.scale, np.float64)
    np.testing.assert_array_equal(stored.values, np.rint(exact))


def test_gradient_passes_straight_through() -> None:
    """It is the gradient with respect to the rounded weights, with which the network computes."""
    net = network(INPUTS, [layer(8, recurrent=True)], leaky_readout(3))
    params, inputs = initial(net), random_spikes(0.3)
    apply = functools.partial(net.apply, implementation="composed")
    loss = lambda params: jnp.sum(apply(params, None, inputs)[0].output ** 2)  # noqa: E731
    through = jit(jax.value_and_grad(lambda params: loss(fake_quantise(params, 4))))(params)
    at_rounded = jit(jax.value_and_grad(loss))(fake_quantise(params, 4))
    chex.assert_trees_all_close(through, at_rounded, rtol=1e-5, atol=1e-6, strict=True)
    assert float(through[0]) != float(jit(loss)(params))


def test_other_numbers_of_bits_are_refused() -> None:
    with pytest.raises(ValueError) as caught:
        quantise(jnp.ones((2, 2)), 3)
    assert str(caught.value) == "quantise: `bits` must be 8 or 4, got 3. Choose one of these."


# Rows, inputs, outputs, density: in place and packed, outputs that fill no vector, one and several tiles with a rest,
# more rows than 16 bits can sum, and none.
PRODUCTS = [
    (1, 300, 700, 0.02),
    (3, 700, 33, 1.0),
    (70, 40, 130, 0.3),
    (9, 600, 5, 0.5),
    (20, 300, 256, 0.05),
    (4, 0, 3, 0.5),
    (4, 5, 0, 0.5),
]


def random_weights(rng: np.random.Generator, inputs: int, outputs: int, dtype: DTypeLike) -> Quantised:
    values = rng.integers(-128, 128, (inputs, outputs)).astype(np.int8)
    values[:, :1] = 127  # whose sums are as large as they can be
    return Quantised(jnp.asarray(values), array(rng.random(outputs), dtype), dtype)


@needs_kernels
@pytest.mark.parametrize("dtype", [jnp.float32, jnp.bfloat16])
@pytest.mark.parametrize("rows, inputs, outputs, density", PRODUCTS)
def test_kernel_sums_rows_of_int8_as_the_reference(
    rows: int, inputs: int, outputs: int, density: float, dtype: DTypeLike
) -> None:
    """Bit for bit: the sums of integers, and of their products with eighths, are exact, and are scaled once."""
    rng = np.random.default_rng(rows)
    weights = random_weights(rng, inputs, outputs, dtype)
    spikes = (rng.random((rows, inputs)) < density) * 1.0

    @jit
    def of_both(dense: jax.Array, weights: Quantised):
        given = dense, SparseSpikes.from_dense(dense, capacity=inputs)
        return [
            [spike_matmul(x, weights, implementation=which) for x in given] for which in ("cpu", "reference")
        ]

    for factor in (1.0, rng.integers(-8, 9, spikes.shape) / 8):
        dense = jnp.asarray(spikes * factor, jnp.float32)
        ours, theirs = of_both(dense, weights)
        assert ours[0].dtype == dtype
        chex.assert_trees_all_equal(ours, theirs, strict=True)
        rounding = 1e-5 if dtype == jnp.float32 else 0.02
        floats = np.asarray(dense) @ np.asarray(dequantise(weights.astype(jnp.float32)))
        assert_close(ours, [floats, floats], of_largest=rounding)


@needs_kernels
@pytest.mark.parametrize("dtype", [jnp.float32, jnp.bfloat16])
def test_synapses_of_int8_sum_as_the_dense_matrix(dtype: DTypeLike) -> None:
    """Bit for bit, with the scale of each target."""
    rng = np.random.default_rng(0)
    dense = random_weights(rng, 30, 17, dtype)
    exist = rng.random((30, 17)) < 0.3
    synapses = Synapses.from_mask(exist)
    dense = dense._replace(values=jnp.where(exist, dense.values, 0))
    weights = dense._replace(values=dense.values[exist])
    rows = jnp.asarray((rng.random((9, 30)) < 0.3) * rng.integers(-8, 9, (9, 30)) / 8, jnp.float32)
    for x in (rows, SparseSpikes.from_dense(rows, capacity=30)):
        want = spike_matmul(x, dense)
        for which in ("cpu", "reference"):
            got = spike_sparse_matmul(x, weights, synapses, implementation=which)
            chex.assert_trees_all_equal(got, want, strict=True)
    again = quantise(dequantise(weights.astype(jnp.float32), synapses), synapses=synapses)
    np.testing.assert_array_equal(again.values, quantise(dequantise(dense.astype(jnp.float32))).values[exist])


@needs_kernels
def test_simulation_sends_int8_as_their_floats() -> None:
    """Numbers of eighths, to two receptors of each neuron; up to rounding of potentials of about 50 mV."""
    rng = np.random.default_rng(0)
    taus = {"tau": 20.0, "synaptic_taus": (5.0, 10.0), "rest": -49.0, "threshold": -50.0, "reset": -60.0}
    cells = neurons.cuba_lif(**taus, refractory=1.0, dt=0.5)
    synapses = Synapses.fixed_fan_out(jax.random.key(0), 20, 40, fan_out=6)
    values = array(rng.integers(-128, 128, 120), jnp.int8)
    weights = Quantised(values, array(rng.integers(1, 9, 40) / 64, jnp.float32))

    def run(weights, **options):
        delayed = DelayedSynapses.of(synapses, weights)
        return simulate(cells, delayed, simulation_state(cells, delayed), steps=40, **options)

    want = run(dequantise(weights, synapses))
    assert want[0].counts.sum() > 20
    for which in ("cpu", "reference"):
        # What is rounded off from 50 mV is as wrong as they are: an ulp.
        found = run(weights, implementation=which)
        chex.assert_trees_all_close(found, want, rtol=1e-5, atol=2.0**-18, strict=True)
    with pytest.raises(ValueError, match=r"`weights.scale` must have shape \[targets\] = \[40\], got \[20\]"):
        run(weights._replace(scale=jnp.ones(20)))


NETWORKS = {
    "masked and recurrent": [
        layer(dense(12, mask=np.arange(36 * 12).reshape(36, 12) % 3 > 0)),
        layer(70, recurrent=True),
        layer(33, neurons.adlif(), capacity=9, recurrent=snnjax.sparse(33, fan_out=3, bias=False)),
    ],
    "delays, convolutions and pools": [
        axonal(3),
        layer(conv2d(3, 3), recurrent=conv2d(3, 3)),
        snnjax.mean_pool(2),
        layer(17, recurrent=[axonal(2), dense(17)]),
    ],
    "scanned, few synapses": [
        layer(snnjax.sparse(9, fan_in=9), neurons.izhikevich(), recurrent=snnjax.sparse(9, fan_out=3))
    ],
    "normalised, two ways": [
        layer(dense(9, bias=False), norm=blocks.batch_norm()),
        snnjax.residual(layer(9)),
    ],
}


@needs_kernels
@pytest.mark.parametrize("name", NETWORKS)
def test_quantised_network_runs_as_the_rounded_one(name: str) -> None:
    net = network((6, 6, 1), NETWORKS[name], leaky_readout(3))
    inputs = random_spikes(0.3, inputs=36)
    params, stats = louder(initial(net), 3.0), net.initial_stats(jax.random.key(0))
    fake, whole = jit(lambda own: (fake_quantise(own, stats=stats), quantise_network(own, stats=stats)))(
        params
    )
    options = {"state": None, "inputs": inputs, "lengths": jnp.array([20, 7, 0]), "stats": stats}
    apply = jit(functools.partial(net.apply, **options), static_argnames="implementation")
    want = apply(fake)[0]
    assert all(float(rates[0].mean()) > 0 for rates in want.activity.values())
    for implementation in (None, "composed"):
        got = apply(whole, implementation=implementation)[0]
        chex.assert_trees_all_close(
            (got.output, got.activity), (want.output, want.activity), rtol=1e-4, atol=1e-5, strict=True
        )


def test_rows_too_full_for_a_list_are_summed_likewise() -> None:
    """From a copy in float32, which holds the sums of integers exactly."""
    rng = np.random.default_rng(0)
    weights = random_weights(rng, 50, 20, jnp.float32)
    inputs = array(rng.random((4, 16, 50)) < np.linspace(0, 1, 16)[None, :, None], jnp.float32)
    layers = [LIFLayer(weights, decay=0.5, threshold=40.0, gain=1.0)]
    run = jit(functools.partial(lif_network, inputs, layers), static_argnames="implementation")
    outputs = [run(implementation=which)[1].layers[0].v for which in (None, "reference")]
    assert_close(outputs[0], outputs[1], of_largest=1e-6)


def test_gradient_with_int8_weights_is_refused() -> None:
    weights, rows = quantise(jnp.ones((3, 2))), jnp.ones((1, 3))
    lists = SparseSpikes.from_dense(rows, capacity=2)
    spiking = functools.partial(lif_network, layers=[LIFLayer(weights, decay=0.5)])
    synapses = Synapses.from_mask(np.eye(3, dtype=bool))
    few = quantise(jnp.ones(3), synapses=synapses)
    for op, function, at in (
        ("spike_matmul", lambda rows: spike_matmul(rows, weights).sum(), rows),
        ("spike_matmul", lambda lists: spike_matmul(lists, weights).sum(), lists),
        ("lif_network", lambda inputs: spiking(inputs)[0].output.sum(), rows[None]),
        ("spike_sparse_matmul", lambda rows: spike_sparse_matmul(rows, few, synapses).sum(), rows),
    ):
        with pytest.raises(ValueError) as caught:
            jax.grad(function, allow_int=True)(at)
        assert str(caught.value) == (
            f"{op}: `weights` must be floating-point where a gradient is taken, got int8. Train with "
            "quantisation.fake_quantise(params)."
        )


def test_weights_that_are_not_quantised_well_are_refused() -> None:
    good = quantise(jnp.ones((3, 2)))
    for bad, message in (
        (good._replace(scale=jnp.ones(3)), "weights.scale` must have shape [outputs] = [2], got [3]"),
        (good._replace(values=jnp.ones((3, 2))), "weights.values` must have dtype int8, got float32"),
        (good._replace(dtype=jnp.bfloat16), "weights.scale` must have dtype bfloat16, got float32"),
    ):
        with pytest.raises(ValueError) as caught:
            spike_matmul(jnp.ones((1, 3)), bad)
        hint = "Make them with quantisation.quantise(weights)"
        assert str(caught.value) == f"spike_matmul: `{message}. {hint}."


def test_a_channel_that_is_not_finite_stays_so() -> None:
    weights = jnp.array([[jnp.nan, 1.0, jnp.inf], [1.0, 2.0, 1.0]])
    found = np.isfinite(dequantise(quantise(weights)))
    np.testing.assert_array_equal(found.all(0), [False, True, False])


def test_what_has_no_weights_to_quantise_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^quantise: `weights` must have an output axis, got a number\."):
        quantise(jnp.float32(3))
    change: Any
    for change in (quantise_network, fake_quantise):
        text = f"{change.__name__}: `params` must be a dict by block, got a list. Make them with network.init(key)."
        with pytest.raises(ValueError, match=f"^{re.escape(text)}$"):
            change([])
        params = network(3, [layer(snnjax.sparse(2, fan_in=1))], leaky_readout(1)).init(jax.random.key(0))
        text = f"{change.__name__}: `stats['layer_0/connection']` must be Synapses, got none. "
        with pytest.raises(ValueError, match=re.escape(text + "Pass stats=network.initial_stats(key).")):
            change(params)
