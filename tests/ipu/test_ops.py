"""Every op on the model equals its jnp reference, forward and backward, however many tiles and IPUs there are."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from snnjax.ipu import run_on_model
from tests.ipu import cases, references

pytestmark = pytest.mark.usefixtures("model")

# Surrogates are not dyadic, and products with them are rounded in another order: some ulp of the largest term.
ROUNDED = 2e-6
HALF_ROUNDED = 2.0**-10

SINGLE_OPS: dict[str, tuple[str, dict[str, Any]]] = {
    "spike_matmul": ("spike_matmul", {}),
    "select_spikes": ("select_spikes", {"capacity": 8}),
    "lif_step": ("lif_step", {}),
    "lif_step-zero-after": ("lif_step", {"reset": "zero", "reset_time": "after_decay"}),
    "lif_step-immediate": ("lif_step", {"reset_time": "immediate", "surrogate": "arctan", "slope": 2.0}),
    "lif_step-attached": ("lif_step", {"detach_reset": False, "inclusive": True, "surrogate": "triangle"}),
    "lif_step-none-old": ("lif_step", {"reset": "none", "spike_from": "old", "surrogate": "gaussian"}),
}


def expect_equal(
    results: dict[str, Any], expected: dict[str, Any], tolerance: float, device: object = ""
) -> None:
    """Whole numbers and whatever has no surrogate in it to the bit."""
    for name in results.keys() & expected.keys():
        actual, wanted = results[name].astype(np.float64), expected[name].astype(np.float64)
        assert actual.shape == wanted.shape, name
        if name.startswith(("g_", "new_", "loss")):
            scale = max(np.abs(wanted).max(initial=0.0), 1.0)
            np.testing.assert_allclose(
                actual, wanted, rtol=tolerance, atol=tolerance * scale, err_msg=f"{name} {device}"
            )
        else:
            np.testing.assert_array_equal(actual, wanted, err_msg=f"{name} {device}")


def on_devices(
    op: str, arrays: cases.Arrays, **attributes: Any
) -> Iterator[tuple[tuple[int, int], dict[str, np.ndarray]]]:
    """Each device with the results on it."""
    for tiles, ipus in cases.DEVICES:
        yield (tiles, ipus), run_on_model(op, arrays, num_tiles=tiles, num_ipus=ipus, **attributes)[0]


@pytest.mark.parametrize("name", SINGLE_OPS)
def test_single_op_equals_reference(name: str) -> None:
    """In halves sums are exact too, and what is not rounds once to 11 bits."""
    op, attributes = SINGLE_OPS[name]
    arrays = getattr(cases, op)(np.random.default_rng(len(name)))
    expected = references.run(op, arrays, **attributes)
    for device, results in on_devices(op, arrays, **attributes):
        assert results.keys() == expected.keys()
        expect_equal(results, expected, ROUNDED, device)
    for device, results in on_devices(op, cases.as_half(arrays), **attributes):
        kinds = {results[part].dtype for part in ("out", "v_new", "values", "g_v") if part in results}
        assert kinds == {np.dtype("f2")}
        expect_equal(results, expected, HALF_ROUNDED, device)


NETWORKS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "capped": ({}, {"capacity": 4}),
    "listed-fully": ({"values": True, "widths": (8,)}, {"capacity": None}),
    "capacities": ({"lengths": True}, {"capacity": (3, None), "reset": "zero"}),
    "spiking-output": ({"readout": False, "lengths": True}, {"capacity": 5, "reset": "none", "surrogate": "boxcar"}),
    "attached": ({}, {"capacity": 6, "detach_reset": False, "learns_constants": True}),
    "recurrent": ({"recurrent": (0, 1)}, {"capacity": 4}),
    "recurrent-below": (
        {"recurrent": (0,), "lengths": True, "first_spikes": True},
        {"capacity": (3, None), "learns_constants": True, "detach_reset": False},
    ),
    "recurrent-above": ({"recurrent": (1,), "first_spikes": True}, {"capacity": None}),
    "recurrent-output": (
        {"recurrent": (0, 1), "readout": False, "lengths": True, "first_spikes": True},
        {"capacity": 5, "reset": "zero", "learns_constants": True},
    ),
    "events": ({"any_values": True, "lengths": True}, {"capacity": 4, "inputs_gradient": True}),
    "dense": ({"dense": True, "lengths": True}, {"capacity": 4, "inputs_gradient": True}),
    "recurrent-events": ({"any_values": True, "recurrent": (1,), "widths": (7, 6, 10)}, {"capacity": 4}),
    "recurrent-dense": (
        {"dense": True, "recurrent": (0,), "lengths": True, "widths": (8,)},
        {"capacity": 4, "inputs_gradient": True, "surrogate": "arctan"},
    ),
    "one-step": ({"recurrent": (0,), "steps": 1, "first_spikes": True}, {"capacity": 4}),
    "three-layers": ({"widths": (7, 6, 10), "lengths": True}, {"capacity": 4, "surrogate": "triangle", "slope": 2.0}),
}  # fmt: skip


@pytest.mark.parametrize("name", NETWORKS)
def test_lif_network_equals_reference(name: str) -> None:
    """With weights of halves sums, membranes and gradients stay float on the device."""
    sizes, options = NETWORKS[name]
    arrays = cases.lif_network(np.random.default_rng(len(name)), **sizes)
    expected = references.run("lif_network", arrays, **options)
    assert sum(expected[f"counts{layer}"].sum() for layer in range(references.num_layers(arrays))) > 10
    for layer in sizes.get("recurrent", ()):  # what is compared is there
        assert expected[f"last_spikes{layer}"].any()
        assert expected[f"g_recurrent{layer}"].any()
    for given in (arrays, cases.as_half(arrays)):
        for device, results in on_devices("lif_network", given, **options):
            assert expected.keys() <= results.keys()
            expect_equal(results, expected, ROUNDED, device)


def test_first_spikes_of_many_neurons_are_read_in_pieces() -> None:
    """More samples than a tile takes at a time."""
    sizes: dict[str, Any] = {
        "recurrent": (0,),
        "first_spikes": True,
        "widths": (301,),
        "batch": 30,
        "steps": 2,
    }
    arrays = cases.lif_network(np.random.default_rng(13), **sizes)
    expected = references.run("lif_network", arrays, capacity=40)
    results, profile = run_on_model("lif_network", arrays, num_tiles=90, num_ipus=2, capacity=40)
    expect_equal(results, expected, ROUNDED)
    pieces = [each for each in profile.data["compute_sets"] if each["name"] == "layer0/first_current"]
    assert sum(each["executions"] for each in pieces) == 2


@pytest.mark.parametrize("dense", [False, True])
def test_lif_network_in_pieces_equals_whole(dense: bool) -> None:
    """Membranes and spikes go from call to call, and so do their gradients back; sequences may end in the first."""
    sizes: dict[str, Any] = {"recurrent": (0, 1), "steps": 6, "dense": dense}
    arrays = cases.lif_network(np.random.default_rng(11), **sizes)
    arrays["lengths"] = np.array([6, 2, 4], np.int32)
    options: dict[str, Any] = {"num_tiles": 9, "capacity": 4}
    whole, _ = run_on_model("lif_network", arrays, **options)
    source, state = "inputs" if dense else "ids", ("v0", "v1", "readout_v", "spikes0", "spikes1")
    pieces = []
    for steps in (slice(0, 3), slice(3, 6)):
        piece = {**arrays, source: arrays[source][steps], "g_output": arrays["g_output"][steps]}
        piece["lengths"] = np.clip(arrays["lengths"] - steps.start, 0, 3)
        pieces.append(piece)
    first, _ = run_on_model("lif_network", pieces[0], **options)
    pieces[1] |= {name: first[f"last_{name}"] for name in state}
    second, _ = run_on_model("lif_network", pieces[1], **options)
    for name in state:
        np.testing.assert_array_equal(second[f"last_{name}"], whole[f"last_{name}"], err_msg=name)
    pieces[0] |= {f"g_last_{name}": second[f"g_{name}"] for name in state}
    first, _ = run_on_model("lif_network", pieces[0], **options)
    for name in ("weights0", "recurrent0", "weights1", "recurrent1", "readout_weights"):
        together = first[f"g_{name}"] + second[f"g_{name}"]
        np.testing.assert_allclose(together, whole[f"g_{name}"], rtol=0, atol=1e-5, err_msg=name)


def test_lif_network_without_cotangents_keeps_no_record() -> None:
    arrays = cases.lif_network(np.random.default_rng(2))
    expected, _ = run_on_model("lif_network", arrays, num_tiles=7, capacity=4)
    forward = {name: a for name, a in arrays.items() if not name.startswith("g_")}
    results, profile = run_on_model("lif_network", forward, num_tiles=7, capacity=4)
    expect_equal(results, expected, 0.0)
    assert results.keys() == {
        *("output", "last_v0", "last_v1", "last_readout_v", "counts0", "counts1", "dropped0", "dropped1")
    }
    assert not [name for name in profile.codelets if "StoreStep" in name]


TRAINING: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "mean": ({}, {"capacity": 4, "pooling": "mean"}),
    "sum-lengths": ({"lengths": True}, {"capacity": None, "pooling": "sum", "reset": "zero"}),
    "max": ({"widths": (8,)}, {"capacity": 3, "pooling": "max"}),
    "recurrent": ({"recurrent": (0,), "any_values": True}, {"capacity": 4, "pooling": "mean"}),
    "dense": ({"dense": True, "widths": (8,)}, {"capacity": 4, "pooling": "mean"}),
}


@pytest.mark.parametrize("name", TRAINING)
def test_training_step_equals_gradient_and_optax(name: str) -> None:
    """After the first update weights are no longer dyadic: 1e-5 of rounding is a thousandth of an update."""
    sizes, options = TRAINING[name]
    options = {"num_updates": 3, "learning_rate": 0.01, **options}
    arrays = cases.training_step(np.random.default_rng(len(name)), **sizes)
    expected = references.run("training_step", arrays, **options)
    assert expected["loss"][2] < expected["loss"][0]
    for device, results in on_devices("training_step", cases.without_membranes(arrays), **options):
        assert results.keys() == expected.keys()
        expect_equal(results, expected, 1e-5, device)


def test_training_step_of_halves_rounds_weights_once() -> None:
    """Weights round to 11 bits in the update; losses, gradients, moments and membranes stay float."""
    arrays = cases.without_membranes(cases.training_step(np.random.default_rng(4)))
    options: dict[str, Any] = {"num_tiles": 7, "learning_rate": 0.01}
    expected, _ = run_on_model("training_step", arrays, **options)
    results, _ = run_on_model("training_step", cases.as_half(arrays), **options)
    assert results["loss"] == expected["loss"]
    for name in ("new_weights0", "new_weights1", "new_readout_weights"):
        assert results[name].dtype == np.float16
        np.testing.assert_allclose(results[name], expected[name], rtol=HALF_ROUNDED, atol=1e-4, err_msg=name)
        assert not np.array_equal(results[name], arrays[name.removeprefix("new_")])
