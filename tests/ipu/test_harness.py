"""The harness: what it refuses, what becomes of strange input, what does not change a result, and what it reports."""

import itertools
import json
import re
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from snnjax.ipu import Codelet, run_on_model
from tests.ipu import cases, references

pytestmark = pytest.mark.usefixtures("model")

REFUSED: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "unknown op": ({}, {"op": "lif_net"}, r"run_on_model: `op` must be one of spike_matmul, .*, got 'lif_net'.*"),
    "unknown chip": ({}, {"chip": "mk3"}, r"run_on_model: `chip` must be one of mk1, mk2, bow, c600, got 'mk3'.*"),
    "no tiles": ({}, {"num_tiles": 0}, r"run_on_model: `num_tiles` must be at least 1, got 0. Pass a larger number."),
    "too many tiles": ({}, {"num_tiles": 1473}, r".* `num_tiles` must be at most 1472 on mk2, got 1473\..*"),
    "misspelt": ({"weight": 1.0}, {}, r"spike_matmul: `weight` must be one of ids, values, weights, got .*"),
    "integer weights": ({"weights": np.ones((3, 2), int)}, {}, r".* `weights` must be float32 or float16, got int64.*"),
    "float ids": ({"ids": np.ones((2, 3))}, {}, r".* `ids` must hold whole numbers, got float64. Cast it to int32."),
    "no rows": ({"ids": np.ones((0, 3), int)}, {}, r".* `ids` must hold something, got shape \[0, 3\].*"),
    "no inputs": ({"weights": np.ones((0, 3), "f4")}, {}, r".* `weights` must hold something, got shape \[0, 3\].*"),
    "axes": ({"ids": np.ones(3, int)}, {}, r"spike_matmul: `ids` must have the axes \[rows, capacity\], got \[3\].*"),
    "sizes": ({"g": np.ones((3, 3), "f4")}, {}, r"spike_matmul: `g` must have shape \[2, 2\], got \[3, 3\].*"),
}  # fmt: skip
SMALL = {"ids": np.array([[0, 2], [1, 3]]), "weights": np.arange(6, dtype=np.float32).reshape(3, 2)}


@pytest.mark.parametrize("name", REFUSED)
def test_refuses(name: str) -> None:
    arrays, options, message = REFUSED[name]
    options = {"op": "spike_matmul", **options}
    with pytest.raises(ValueError) as error:
        run_on_model(options.pop("op"), {**SMALL, **arrays}, **options)
    assert re.fullmatch(message, str(error.value)), str(error.value)


NETWORKS_REFUSED: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "values": ({"values": np.ones((5, 3, 4))}, {}, "lif_network: `values` must have shape [5, 3, 5], got [5, 3, 4]."),
    "inputs": ({"ids": None, "inputs": np.ones((5, 3, 4))}, {},
               "lif_network: `inputs` must have shape [5, 3, 12], got [5, 3, 4]."),
    "ids and inputs": ({"inputs": np.ones((5, 3, 12))}, {}, "lif_network: `ids` must be one of "),
    "recurrent": ({"recurrent1": np.ones((9, 8))}, {}, "lif_network: `recurrent1` must have shape [9, 9], got [9, 8]."),
    "spikes": ({"spikes0": np.ones((3, 13))}, {}, "lif_network: `spikes0` must be one of "),
    "capacity": ({}, {"capacity": (3,)}, "lif_network: `capacity` must be None or at least 1, one value or 2 of them,"),
    "surrogate": ({}, {"surrogate": "step"}, "lif_network: `surrogate` must be one of 'superspike', 'arctan',"),
    "too wide": ({"weights1": np.ones((13, 65_535), "f4"), "readout_weights": np.ones((65_535, 3), "f4")}, {},
                 "lif_network: `layers` must have at most 65534 neurons, got 65535. Split the layer."),
}  # fmt: skip


@pytest.mark.parametrize("name", NETWORKS_REFUSED)
def test_network_refuses(name: str) -> None:
    changed, options, message = NETWORKS_REFUSED[name]
    arrays = cases.lif_network(np.random.default_rng(0))
    kept = {part: a for part, a in arrays.items() if part.startswith(("ids", "weights", "readout_w"))}
    for layer, neurons in (("0", 13), ("1", 65_535 if name == "too wide" else 9)):
        kept[f"decay{layer}"] = np.full(neurons, 0.5, np.float32)
    kept["readout_decay"] = arrays["readout_decay"]
    arrays = {part: a for part, a in {**kept, **changed}.items() if a is not None}
    with pytest.raises(ValueError) as error:
        run_on_model("lif_network", arrays, **options)
    assert str(error.value).startswith(message)


def test_network_that_outgrows_its_tiles_is_no_wrong_argument() -> None:
    arrays = cases.lif_network(np.random.default_rng(0))
    arrays["ids"] = np.zeros((5, 9000, 5), int)
    kept = {part: a for part, a in arrays.items() if part.startswith(("ids", "weights", "readout_w"))}
    kept["readout_decay"] = arrays["readout_decay"]
    decays = {"decay0": np.full(13, 0.5, np.float32), "decay1": np.full(9, 0.5, np.float32)}
    with pytest.raises(
        RuntimeError,
        match=r"lif_network: `layers` must fit into tiles of 638976 bytes, got \d+ on tile 0\. Use ",
    ):
        run_on_model("lif_network", {**kept, **decays}, num_tiles=1)


def test_program_that_outgrows_its_tile_names_a_way_out() -> None:
    arrays = {"v": np.zeros((1, 200_000), np.float32)}
    with pytest.raises(
        RuntimeError,
        match=r"got \d+ on tile 0 \(.*the largest: v 800000.* spread the largest over more tiles",
    ):
        run_on_model("select_spikes", arrays, num_tiles=1, capacity=3)


def test_ids_that_name_nothing_add_nothing() -> None:
    weights = np.ones((3, 4), np.float32)
    ids = np.array([[0, 3, -1, 2**40, -(2**40), 65_536, 2**31 + 1]])
    results, _ = run_on_model(
        "spike_matmul", {"ids": ids, "weights": weights, "g": np.ones((1, 4), np.float32)}
    )
    assert results["out"].tolist() == [[1.0] * 4]
    assert results["d_values"].tolist() == [[4.0] + [0.0] * 6]
    assert results["d_weights"].sum(axis=1).tolist() == [4.0, 0.0, 0.0]


def test_inputs_beyond_65535_take_ids_of_32_bits() -> None:
    weights = np.arange(70_000, dtype=np.float32)[:, None]
    ids = np.array([[69_999, 70_000, 65_535 + 3, 4]])
    results, profile = run_on_model("spike_matmul", {"ids": ids, "weights": weights})
    assert results["out"].tolist() == [[69_999.0 + 65_538.0 + 4.0]]
    assert list(profile.codelets) == ["snnjax::SpikeMatmul<float,float,int>"]


def test_nan_neither_spikes_nor_spreads() -> None:
    """A NaN weight reaches its own neuron alone, which falls silent; the others keep their bits."""
    arrays = cases.lif_network(np.random.default_rng(3))
    arrays["threshold0"][4] = np.inf  # it does not fire without the NaN either
    arrays["second_threshold0"][4] = np.inf
    expected, _ = run_on_model("lif_network", arrays, num_tiles=7, capacity=4)
    arrays["weights0"][:, 4] = np.nan
    results, _ = run_on_model("lif_network", arrays, num_tiles=7, capacity=4)
    assert np.isnan(results["last_v0"][:, 4]).any()
    for name in ("output", "counts0", "counts1", "ids0", "ids1", "g_weights1", "g_readout_weights"):
        np.testing.assert_array_equal(results[name], expected[name], err_msg=name)
    others = np.arange(results["g_weights0"].shape[1]) != 4
    np.testing.assert_array_equal(results["g_weights0"][:, others], expected["g_weights0"][:, others])


@settings(max_examples=30)
@given(data=st.data())
def test_spike_matmul_of_any_size_equals_reference(data: st.DataObject) -> None:
    rows, outputs = (data.draw(st.integers(1, 20), label=name) for name in ("rows", "outputs"))
    tiles, ipus = data.draw(st.integers(1, 30), label="tiles"), data.draw(st.integers(1, 2), label="ipus")
    arrays = cases.spike_matmul(np.random.default_rng(data.draw(st.integers(0, 99))), rows, outputs)
    results, _ = run_on_model("spike_matmul", arrays, num_tiles=tiles, num_ipus=ipus)
    ids, values, weights, g = (arrays[name] for name in ("ids", "values", "weights", "g"))
    named = (ids >= 0) & (ids < len(weights))
    rows_of_weights = np.where(named[..., None], weights[np.clip(ids, 0, len(weights) - 1)], 0)
    np.testing.assert_array_equal(results["out"], np.einsum("rk,rko->ro", values, rows_of_weights))
    np.testing.assert_array_equal(results["d_values"], np.einsum("rko,ro->rk", rows_of_weights, g))


def expect_same(
    arrays: dict[str, Any], device: tuple[int, int], other: tuple[int, int], capacity: Any
) -> None:
    """Forward to the bit; gradients are sums of dot products, each in an order of its own."""
    runs = [
        run_on_model("lif_network", arrays, num_tiles=tiles, num_ipus=ipus, capacity=capacity)[0]
        for tiles, ipus in (device, other)
    ]
    for name, array in runs[0].items():
        tolerance = 1e-5 * max(1.0, np.abs(array).max(initial=0.0)) if name.startswith("g_") else 0.0
        np.testing.assert_allclose(runs[1][name], array, rtol=0, atol=tolerance, err_msg=name)


@settings(max_examples=30)
@given(data=st.data())
def test_result_does_not_depend_on_tiles(data: st.DataObject) -> None:
    widths = tuple(data.draw(st.lists(st.integers(1, 24), min_size=1, max_size=3), label="widths"))
    steps, batch = (data.draw(st.integers(1, 7), label=name) for name in ("steps", "batch"))
    capacity = data.draw(st.none() | st.integers(1, 24), label="capacity")
    device = data.draw(st.tuples(st.integers(1, 90), st.integers(1, 2)), label="device")
    recurrent = data.draw(st.sets(st.sampled_from(range(len(widths)))), label="recurrent")
    sizes: dict[str, Any] = {"widths": widths, "steps": steps, "batch": batch, "recurrent": tuple(recurrent)}
    sizes |= {
        name: data.draw(st.booleans(), label=name) for name in ("readout", "lengths", "dense", "first_spikes")
    }
    arrays = cases.lif_network(np.random.default_rng(data.draw(st.integers(0, 99))), **sizes)
    expect_same(arrays, (1, 1), device, capacity)


@pytest.mark.parametrize("device", [(100, 1), (1472, 1), (300, 2)])
@pytest.mark.parametrize("capacity", [30, None])
def test_result_of_a_large_network_does_not_depend_on_tiles(
    device: tuple[int, int], capacity: int | None
) -> None:
    """Many groups of tiles make the lists of many homes, by several workers each."""
    arrays = cases.lif_network(np.random.default_rng(9), widths=(301, 200), batch=8, steps=4)
    expect_same(arrays, (5, 1), device, capacity)


def test_balanced_mapping_beats_equal_columns() -> None:
    """A wide layer and a narrow one that reads longer lists: the same results, sooner."""
    arrays = cases.lif_network(np.random.default_rng(10), widths=(80, 20), batch=8)
    runs = {
        mapping: run_on_model("lif_network", arrays, num_tiles=32, capacity=60, mapping=mapping)
        for mapping in ("balanced", "equal")
    }
    assert runs["balanced"][1].cycles < 0.95 * runs["equal"][1].cycles
    for name in ("output", "counts0", "ids0", "ids1", "dropped1"):
        np.testing.assert_array_equal(runs["balanced"][0][name], runs["equal"][0][name], err_msg=name)


def test_threads_of_the_host_change_no_bit() -> None:
    arrays = cases.training_step(np.random.default_rng(5), steps=8, batch=6, recurrent=(0,))
    arrays = cases.without_membranes(arrays)
    runs = [run_on_model("training_step", arrays, capacity=4, num_updates=2, threads=n) for n in (1, 2, 5)]
    for results, profile in runs[1:]:
        assert profile.data == runs[0][1].data
        for name, array in runs[0][0].items():
            assert results[name].tobytes() == array.tobytes(), name


def test_profile_adds_up() -> None:
    arrays = cases.lif_network(np.random.default_rng(6))
    _, profile = run_on_model("lif_network", arrays, num_tiles=16, num_ipus=2, chip="bow", capacity=4)
    data = profile.data
    assert (data["chip"], data["ipus"], data["tiles_per_ipu"]) == ("bow", 2, 16)
    assert profile.cycles == data["cycles"]["total"] == sum(profile.phases)
    assert profile.phases.compute == sum(each["cycles"] for each in data["compute_sets"])
    assert profile.seconds == profile.cycles / data["clock_hz"]
    assert profile.codelets["snnjax::AddOne"] == Codelet(profile.codelets["snnjax::AddOne"].count, 60, 60)
    assert profile.unknown_codelets == []
    assert all(0 < codelet.mean <= codelet.max for codelet in profile.codelets.values())
    assert profile.tile_memory.shape == (32,)
    assert 0 < profile.tile_memory.max() < data["memory_per_tile"]
    assert sum(each["exchange"]["link_bytes"] for each in data["compute_sets"] + data["copies"]) > 0
    assert json.loads(profile.json) == data
    assert str(profile).startswith("IPU Model (not measured on hardware): 2 x bow, 16 tiles each")


def test_layers_share_compute_sets_and_only_lists_travel_far() -> None:
    """A layer more adds two iterations to each loop, and no compute set."""
    cost: dict[int, Any] = {}
    for layers in (1, 3):
        arrays = cases.lif_network(np.random.default_rng(7), widths=(8,) * layers)
        _, profile = run_on_model("lif_network", arrays, num_tiles=64, capacity=3)
        cost[layers] = {each["name"]: each["executions"] for each in profile.data["compute_sets"]}
    assert cost[1].keys() == cost[3].keys()
    assert cost[1]["forward/first"] == cases.STEPS + 3
    assert cost[3]["forward/first"] == cost[1]["forward/first"] + 4
    assert cost[3]["backward/second"] == cost[1]["backward/second"] + 4


def test_recurrent_layers_take_a_compute_set_for_each_stage() -> None:
    """A step is an iteration of more compute sets then; the sum from below takes one more of them once."""
    arrays = cases.lif_network(np.random.default_rng(7), widths=(8, 8, 8), recurrent=(1,))
    _, profile = run_on_model("lif_network", arrays, num_tiles=64, capacity=3)
    sets = {each["name"]: each["executions"] for each in profile.data["compute_sets"]}
    loops = [name.partition("/") for name in sets if sets[name] >= cases.STEPS]
    assert [part for loop, _, part in loops if loop == "forward"] == ["first", "second", "third"]
    assert [part for loop, _, part in loops if loop == "backward"] == [
        "first",
        "second",
        "third",
        "fourth",
        "fifth",
    ]
    assert sets["forward/first"] == cases.STEPS + 1 + 2 + 1 + 1
    assert sets["backward/first"] == cases.STEPS + 4


def test_inputs_of_value_0_cost_less() -> None:
    """Dense inputs are read entry by entry: what is 0 is passed over."""
    arrays = cases.lif_network(np.random.default_rng(12), dense=True, steps=2)
    arrays = {name: a for name, a in arrays.items() if not name.startswith("g_")}
    cycles = []
    for inputs in (np.zeros_like(arrays["inputs"]), np.full_like(arrays["inputs"], 1 / 16)):
        _, profile = run_on_model("lif_network", {**arrays, "inputs": inputs}, num_tiles=64, capacity=4)
        cycles.append(profile.codelets["snnjax::ValuedCurrent<float,short unsigned int>"].max)
    assert cycles[0] < cycles[1]


def test_published_network_fits_and_is_balanced() -> None:
    """1466-1466-10, batch 48, 100 steps, with Adam, and no events to be quick."""
    rng, steps = np.random.default_rng(8), 100
    widths = (2312, 1466, 1466, 10)
    arrays: dict[str, Any] = {"ids": np.full((steps, 48, 32), 2312, np.int32)}
    for layer, (inputs, neurons) in enumerate(itertools.pairwise(widths)):
        names = [f"{part}{layer}" if layer < 2 else f"readout_{part}" for part in ("weights", "decay")]
        arrays |= {
            names[0]: np.zeros((inputs, neurons), np.float32),
            names[1]: np.full(neurons, 0.9, np.float32),
        }
    arrays["labels"] = rng.integers(0, 10, 48)
    _, profile = run_on_model("training_step", arrays, capacity=30)
    memory = profile.tile_memory
    assert memory.size == 1472
    assert memory.max() < 0.5 * profile.data["memory_per_tile"]
    busy = {each["name"]: each["balance"] for each in profile.data["compute_sets"]}
    assert busy["adam"] > 0.8


def test_references_cover_all_ops() -> None:
    from snnjax.ipu.harness import OPS

    assert references.OPS.keys() == OPS.keys()
