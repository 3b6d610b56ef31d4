"""Every op on the model equals its jnp reference, forward and backward, however many tiles and IPUs there are."""

import functools
from typing import Any

import numpy as np
import pytest

from snnjax.ipu import run_on_model
from tests.ipu import cases, references

pytestmark = pytest.mark.usefixtures("model")

# Surrogates are not dyadic, and products with them are rounded in another order: some ulp of the largest term.
ROUNDED = 2e-6

SINGLE_OPS: dict[str, tuple[str, dict[str, Any]]] = {
    "spike_matmul": ("spike_matmul", {}),
    "select_spikes": ("select_spikes", {"capacity": 8}),
    "lif_step": ("lif_step", {}),
    "lif_step-zero-after": ("lif_step", {"reset": "zero", "reset_time": "after_decay"}),
    "lif_step-immediate": ("lif_step", {"reset_time": "immediate", "surrogate": "arctan", "slope": 2.0}),
    "lif_step-attached": ("lif_step", {"detach_reset": False, "inclusive": True, "surrogate": "triangle"}),
    "lif_step-none-old": ("lif_step", {"reset": "none", "spike_from": "old", "surrogate": "gaussian"}),
}


def expect_equal(results: dict[str, Any], expected: dict[str, Any], tolerance: float) -> None:
    """Whole numbers and whatever has no surrogate in it to the bit."""
    for name in results.keys() & expected.keys():
        actual, wanted = results[name].astype(np.float64), expected[name].astype(np.float64)
        assert actual.shape == wanted.shape, name
        if name.startswith(("g_", "new_", "loss")):
            scale = max(np.abs(wanted).max(initial=0.0), 1.0)
            np.testing.assert_allclose(actual, wanted, rtol=tolerance, atol=tolerance * scale, err_msg=name)
        else:
            np.testing.assert_array_equal(actual, wanted, err_msg=name)


@functools.cache
def single_case(name: str) -> tuple[str, cases.Arrays, dict[str, Any], dict[str, np.ndarray]]:
    op, attributes = SINGLE_OPS[name]
    arrays = getattr(cases, op)(np.random.default_rng(len(name)))
    return op, arrays, attributes, references.run(op, arrays, **attributes)


@pytest.mark.parametrize("tiles, ipus", cases.DEVICES)
@pytest.mark.parametrize("name", SINGLE_OPS)
def test_single_op_equals_reference(name: str, tiles: int, ipus: int) -> None:
    op, arrays, attributes, expected = single_case(name)
    results, _ = run_on_model(op, arrays, num_tiles=tiles, num_ipus=ipus, **attributes)
    assert results.keys() == expected.keys()
    expect_equal(results, expected, ROUNDED)


@pytest.mark.parametrize("tiles, ipus", [(7, 1), (5, 2)])
@pytest.mark.parametrize("name", SINGLE_OPS)
def test_single_op_of_halves_equals_reference(name: str, tiles: int, ipus: int) -> None:
    """Sums are exact in halves too; what is not rounds once to 11 bits."""
    op, arrays, attributes, expected = single_case(name)
    results, _ = run_on_model(op, cases.as_half(arrays), num_tiles=tiles, num_ipus=ipus, **attributes)
    assert {results[name].dtype for name in ("out", "v_new", "values") if name in results} == {np.dtype("f2")}
    expect_equal(results, expected, 2.0**-10)


NETWORKS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "capped": ({}, {"capacity": 4}),
    "listed-fully": ({"values": True}, {"capacity": None}),
    "capacities": ({"lengths": True}, {"capacity": (3, None), "reset": "zero"}),
    "spiking-output": ({"readout": False, "lengths": True}, {"capacity": 5, "reset": "none", "surrogate": "boxcar"}),
    "attached": ({}, {"capacity": 6, "detach_reset": False, "learns_constants": True}),
    "one-layer": ({"widths": (8,)}, {"capacity": 3, "surrogate": "sigmoid", "slope": 4.0}),
    "three-layers": ({"widths": (7, 6, 10), "lengths": True}, {"capacity": 4, "surrogate": "triangle", "slope": 2.0}),
}  # fmt: skip


@functools.cache
def network_case(name: str) -> tuple[cases.Arrays, dict[str, Any], dict[str, np.ndarray]]:
    sizes, options = NETWORKS[name]
    arrays = cases.lif_network(np.random.default_rng(len(name)), **sizes)
    return arrays, options, references.run("lif_network", arrays, **options)


@pytest.mark.parametrize("tiles, ipus", cases.DEVICES)
@pytest.mark.parametrize("name", NETWORKS)
def test_lif_network_equals_reference(name: str, tiles: int, ipus: int) -> None:
    arrays, options, expected = network_case(name)
    results, _ = run_on_model("lif_network", arrays, num_tiles=tiles, num_ipus=ipus, **options)
    assert expected.keys() <= results.keys()
    assert sum(results[f"counts{layer}"].sum() for layer in range(references.num_layers(arrays))) > 10
    expect_equal(results, expected, ROUNDED)


@pytest.mark.parametrize("tiles, ipus", [(7, 1), (5, 2)])
def test_lif_network_of_halves_equals_reference(tiles: int, ipus: int) -> None:
    """Weights are halves; sums, membranes and gradients stay float on the device."""
    arrays, options, expected = network_case("capped")
    results, _ = run_on_model("lif_network", cases.as_half(arrays), num_tiles=tiles, num_ipus=ipus, **options)
    expect_equal(results, expected, ROUNDED)


def test_lif_network_without_cotangents_keeps_no_record() -> None:
    arrays, options, expected = network_case("capped")
    forward = {name: a for name, a in arrays.items() if not name.startswith("g_")}
    results, profile = run_on_model("lif_network", forward, num_tiles=7, **options)
    expect_equal(results, expected, ROUNDED)
    assert results.keys() == {
        *("output", "last_v0", "last_v1", "last_readout_v", "counts0", "counts1", "dropped0", "dropped1")
    }
    assert not [name for name in profile.codelets if "StoreStep" in name]


TRAINING: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "mean": ({}, {"capacity": 4, "pooling": "mean"}),
    "sum-lengths": ({"lengths": True}, {"capacity": None, "pooling": "sum", "reset": "zero"}),
    "max": ({"widths": (8,)}, {"capacity": 3, "pooling": "max"}),
}


@functools.cache
def training_case(name: str) -> tuple[cases.Arrays, dict[str, Any], dict[str, np.ndarray]]:
    sizes, options = TRAINING[name]
    options = {"num_updates": 3, "learning_rate": 0.01, **options}
    arrays = cases.training_step(np.random.default_rng(len(name)), **sizes)
    return arrays, options, references.run("training_step", arrays, **options)


@pytest.mark.parametrize("tiles, ipus", cases.DEVICES)
@pytest.mark.parametrize("name", TRAINING)
def test_training_step_equals_gradient_and_optax(name: str, tiles: int, ipus: int) -> None:
    """After the first update weights are no longer dyadic: 1e-5 of rounding is a thousandth of an update."""
    arrays, options, expected = training_case(name)
    given = {n: a for n, a in arrays.items() if not n.removeprefix("readout_").startswith("v")}
    results, _ = run_on_model("training_step", given, num_tiles=tiles, num_ipus=ipus, **options)
    assert results.keys() == expected.keys()
    assert expected["loss"][2] < expected["loss"][0]
    expect_equal(results, expected, 1e-5)
