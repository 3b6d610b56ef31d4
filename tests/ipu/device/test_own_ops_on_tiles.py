"""Every own op on the device equals its reference, forward and backward, however many tiles and IPUs there are."""

import re
from typing import Any

import hypothesis.strategies as st
import jax
import numpy as np
import pytest
from hypothesis import given

from snnjax.ipu import Codelet, Profile, read_profile
from snnjax.ipu.device import network_cost
from tests.ipu.device import by_name, cases
from tests.ipu.device.by_name import OnIpu, reference
from tests.ipu.device.on_device import examples

pytestmark = pytest.mark.usefixtures("ipus")

# Surrogates are not dyadic, and products with them are rounded in another order: some ulp of the largest term.
ROUNDED = 2e-6
HALF_ROUNDED = 2.0**-10


def expect_equal(
    results: dict[str, Any], expected: dict[str, Any], tolerance: float = ROUNDED, place: object = ""
) -> None:
    """Integers and whatever has no surrogate in it bit for bit."""
    for name in results.keys() & expected.keys():
        actual, wanted = results[name].astype(np.float64), expected[name].astype(np.float64)
        assert actual.shape == wanted.shape, name
        if name.startswith("g_"):
            scale = max(np.abs(wanted).max(initial=0.0), 1.0)
            np.testing.assert_allclose(
                actual, wanted, rtol=tolerance, atol=tolerance * scale, err_msg=f"{name} {place}"
            )
        else:
            np.testing.assert_array_equal(actual, wanted, err_msg=f"{name} {place}")


SINGLE_OPS: dict[str, tuple[str, dict[str, Any]]] = {
    "spike_matmul": ("spike_matmul", {}),
    "select_spikes": ("select_spikes", {"capacity": 8}),
}


@pytest.mark.parametrize("name", SINGLE_OPS)
def test_single_op_equals_reference(name: str) -> None:
    op, attributes = SINGLE_OPS[name]
    arrays = getattr(cases, op)(np.random.default_rng(len(name)))
    expected = reference(op, arrays, **attributes)
    ops = OnIpu(op, arrays, **attributes)
    for place in cases.DEVICES if name == op else cases.DEVICES[:2]:
        results = ops.on(*place)
        assert results.keys() == expected.keys()
        expect_equal(results, expected, place=place)


def test_product_of_halves_rounds_once() -> None:
    """Sums are exact, and what is not rounds once to 11 bits."""
    arrays = cases.as_half(cases.spike_matmul(np.random.default_rng(3)))
    results = OnIpu("spike_matmul", arrays).on(7)
    assert results["out"].dtype == np.float16
    expect_equal(results, reference("spike_matmul", arrays), HALF_ROUNDED)


def test_subnormal_halves_count_on_all_tiles() -> None:
    """On enough tiles that several threads of the host compute them; XLA's take such floats for 0."""
    arrays = cases.without_cotangents(cases.spike_matmul(np.random.default_rng(4), outputs=600))
    arrays["weights"] *= np.float32(2.0**-20)  # multiples of 2**-24, the smallest half
    arrays["values"] = np.ones_like(arrays["values"])
    arrays = cases.as_half(arrays)
    expect_equal(OnIpu("spike_matmul", arrays).on(1472), reference("spike_matmul", arrays))


@pytest.mark.parametrize("sizes", [
    {},
    {"dense": True},
    {"recurrent": (0,)},
    {"recurrent": (0,), "first_spikes": True, "lengths": True, "readout": False},
])  # fmt: skip
def test_program_of_halves_yields_the_same_bits_in_every_call(sizes: dict[str, Any]) -> None:
    """Some of them subnormal. Threads of the host take other tiles each time, and find what the call before left."""
    rng = np.random.default_rng(5)
    arrays = cases.with_half_weights(cases.lif_network(rng, widths=(200,), **sizes))
    for name in arrays.keys() & {"weights0", "recurrent0", "readout_weights"}:
        factors = np.where(rng.random(arrays[name].shape) < 0.2, 2.0**-16, 1.0)
        arrays[name] *= factors.astype(np.float16)
    network = OnIpu("lif_network", arrays, capacity=100)
    compiled = network.compile(1472)
    first = network.run(compiled)
    nans = {name: np.full_like(a, np.nan) if a.dtype.kind == "f" else a for name, a in arrays.items()}
    for _ in range(4):
        network.run(compiled, nans)
        again = network.run(compiled)
        for name in first:
            np.testing.assert_array_equal(again[name], first[name], err_msg=name)


NETWORKS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "capped": ({}, {"capacity": 4}),
    "listed-fully": ({"values": True, "widths": (8,)}, {"capacity": None}),
    "capacities": ({"lengths": True}, {"capacity": (3, None), "reset": "zero"}),
    "spiking-output": ({"readout": False, "lengths": True}, {"capacity": 5, "reset": "none", "surrogate": "boxcar"}),
    "wide-readout": ({"outputs": 40, "lengths": True}, {"capacity": 4}),
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
    # Parts of a sample are merged; some steps have more spikes than slots, others fewer.
    "recurrent-merged": (
        {"recurrent": (0,), "widths": (160,), "lengths": True, "first_spikes": True},
        {"capacity": 80},
    ),
    "one-step": ({"recurrent": (0,), "steps": 1, "first_spikes": True}, {"capacity": 4}),
    "three-layers": ({"widths": (7, 6, 10), "lengths": True}, {"capacity": (12, 4, 4), "surrogate": "triangle"}),
}  # fmt: skip
# Each on a few tiles; those that differ most on one, on a whole chip and on two as well, and with their lists recorded.
ON_ALL_DEVICES = ("capped", "recurrent-below")
RECORDED = (*ON_ALL_DEVICES, "capacities", "spiking-output")


@pytest.mark.parametrize("name", NETWORKS)
def test_lif_network_equals_reference(name: str) -> None:
    sizes, options = NETWORKS[name]
    arrays = cases.lif_network(np.random.default_rng(len(name)), **sizes)
    implementation = (
        "reference" if name in RECORDED else None
    )  # tests/ops holds that the kernel equals the reference
    switches = {"record_spikes": name in RECORDED, "implementation": implementation}
    expected = reference("lif_network", arrays, **switches, **options)
    assert sum(expected[f"activity{layer}"].sum() for layer in range(by_name.num_layers(arrays))) > 2
    for layer in sizes.get("recurrent", ()):  # what is compared is there
        assert expected[f"last_spikes{layer}"].any()
        assert expected[f"g_recurrent{layer}"].any()
    network = OnIpu("lif_network", arrays, **options)
    for place in cases.DEVICES if name in ON_ALL_DEVICES else cases.DEVICES[1:2]:
        results = network.on(*place)
        assert {part for part in expected if part.startswith("g_")} <= results.keys()
        expect_equal(results, expected, place=place)
    if name in RECORDED:
        lists = OnIpu("lif_network", cases.without_cotangents(arrays), record_spikes=True, **forward(options))
        expect_equal(lists.on(7), expected)


def forward(options: dict[str, Any]) -> dict[str, Any]:
    """Without those of the gradient."""
    return {
        key: value for key, value in options.items() if key not in ("learns_constants", "inputs_gradient")
    }


@pytest.mark.parametrize("name", ["capped", "recurrent-below", "dense"])
def test_lif_network_of_halves_equals_reference(name: str) -> None:
    """With weights of halves sums, membranes and gradients stay float on the device."""
    sizes, options = NETWORKS[name]
    arrays = cases.with_half_weights(cases.lif_network(np.random.default_rng(len(name)), **sizes))
    results = OnIpu("lif_network", arrays, **options).on(7)
    assert results["output"].dtype == results["g_weights0"].dtype == np.float16
    expect_equal(results, reference("lif_network", arrays, **options), HALF_ROUNDED)


def test_gradients_of_weights_gathered_by_input_equal_reference() -> None:
    """Of an input that is named twice the rows are gone through again; all tiles share those of one that always is."""
    sizes = {"widths": (16, 12), "batch": 8, "steps": 21}
    # Halves never go to the matrix unit.
    arrays = cases.with_half_weights(cases.lif_network(np.random.default_rng(1), **sizes))
    arrays["ids"][:, :, 1] = 5
    network = OnIpu("lif_network", arrays, capacity=4)
    compiled = network.compile(300)
    results = network.run(compiled)
    profile = read_profile(compiled)
    assert "snnjax::GatherGradient" in profile.codelets
    assert executions(profile)["backward/weights0"] > executions(profile)["backward/shared/sums0"] > 0
    expect_equal(results, reference("lif_network", arrays, capacity=4), HALF_ROUNDED)


def test_first_spikes_of_many_neurons_are_one_list_of_all() -> None:
    """It is read once, by all samples of a tile."""
    sizes: dict[str, Any] = {
        "recurrent": (0,),
        "first_spikes": True,
        "widths": (301,),
        "batch": 30,
        "steps": 2,
    }
    arrays = cases.lif_network(np.random.default_rng(13), **sizes)
    network = OnIpu("lif_network", arrays, capacity=40)
    compiled = network.compile(90, 2)
    expect_equal(network.run(compiled), reference("lif_network", arrays, capacity=40))
    assert executions(read_profile(compiled))["layer0/first_current"] == 1


def executions(profile: Profile) -> dict[str, int]:
    """How often each compute set ran."""
    counts: dict[str, int] = {}
    for each in profile.data["compute_sets"]:
        counts[each["name"]] = counts.get(each["name"], 0) + each["executions"]
    return counts


@pytest.mark.parametrize("dense", [False, True])
def test_lif_network_in_pieces_equals_whole(dense: bool) -> None:
    """Membranes and spikes go from call to call, and so do their gradients back; sequences may end in the first."""
    sizes: dict[str, Any] = {"recurrent": (0, 1), "steps": 6, "dense": dense}
    arrays = cases.lif_network(np.random.default_rng(11), **sizes)
    arrays = {name: a for name, a in arrays.items() if not name.startswith("g_activity")}
    arrays["lengths"] = np.array([6, 2, 4], np.int32)
    whole = OnIpu("lif_network", arrays, capacity=4).on(9)
    source, state = "inputs" if dense else "ids", ("v0", "v1", "readout_v", "spikes0", "spikes1")
    pieces = []
    for steps in (slice(0, 3), slice(3, 6)):
        piece = {**arrays, source: arrays[source][steps], "g_output": arrays["g_output"][steps]}
        piece["lengths"] = np.clip(arrays["lengths"] - steps.start, 0, 3)
        pieces.append(piece)
    first = OnIpu("lif_network", cases.without_cotangents(pieces[0]), capacity=4).on(9)
    pieces[1] |= {name: first[f"last_{name}"] for name in state}
    second = OnIpu("lif_network", pieces[1], capacity=4).on(9)
    for name in state:
        np.testing.assert_array_equal(second[f"last_{name}"], whole[f"last_{name}"], err_msg=name)
    pieces[0] |= {f"g_last_{name}": second[f"g_{name}"] for name in state}
    first = OnIpu("lif_network", pieces[0], capacity=4).on(9)
    for name in ("weights0", "recurrent0", "weights1", "recurrent1", "readout_weights"):
        together = first[f"g_{name}"] + second[f"g_{name}"]
        np.testing.assert_allclose(together, whole[f"g_{name}"], rtol=0, atol=1e-5, err_msg=name)


def test_lif_network_without_a_gradient_keeps_no_record() -> None:
    arrays = cases.without_cotangents(cases.lif_network(np.random.default_rng(2)))
    expect_equal(OnIpu("lif_network", arrays, capacity=4).on(7), reference("lif_network", arrays, capacity=4))


OUTGROWN: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "lif_network": ({"widths": (100,), "steps": 200, "batch": 10}, {"capacity": 3},
                    r"lif_network: `layers` must fit into 549519 of the 638976 bytes of each tile, got \d+ on the "),
    "select_spikes": ({"rows": 1, "neurons": 200_000}, {"capacity": 8},
                      r"compile: `program` must fit in 638976 bytes on each tile, got more than \d+ with .*\. Use "),
}  # fmt: skip


@pytest.mark.parametrize("op", OUTGROWN)
def test_program_that_outgrows_its_tiles_names_a_hint(op: str) -> None:
    sizes, attributes, message = OUTGROWN[op]
    on_ipu = OnIpu(op, getattr(cases, op)(np.random.default_rng(0), **sizes), **attributes)
    with pytest.raises(jax.errors.JaxRuntimeError, match=f"RESOURCE_EXHAUSTED: {message}"):
        on_ipu.compile(1)


@pytest.mark.parametrize("options, message", [
    ({"tiles": "1473"}, 'compile: `ipu_tiles` must be an integer from 1 to 1472, got "1473". Leave it out'),
    ({"tiles": "all"}, 'compile: `ipu_tiles` must be an integer of at least 1, got "all". Leave it out'),
    ({"ipus": "65"}, 'compile: `ipu_ipus` must be an integer from 1 to 64, got "65". Leave it out'),
    ({"version": "mk3"}, "mk3"),
])  # fmt: skip
def test_option_that_cannot_be_is_refused(options: dict[str, str], message: str) -> None:
    op_on_ipu = OnIpu("spike_matmul", cases.without_cotangents(cases.spike_matmul(np.random.default_rng(0))))
    with pytest.raises(jax.errors.JaxRuntimeError) as error:
        op_on_ipu.compile(**{"tiles": 1, **options})
    assert message in str(error.value)


def test_ids_that_name_nothing_add_nothing() -> None:
    ids = np.array([[0, 3, -1, 65_536, 2**31 - 1, -(2**31)]], np.int32)
    arrays = {"ids": ids, "values": np.ones(ids.shape, np.float32), "weights": np.ones((3, 4), np.float32)}
    results = OnIpu("spike_matmul", {**arrays, "g_out": np.ones((1, 4), np.float32)}).on(8)
    assert results["out"].tolist() == [[1.0] * 4]
    assert results["g_values"].tolist() == [[4.0] + [0.0] * 5]
    assert results["g_weights"].sum(axis=1).tolist() == [4.0, 0.0, 0.0]


def test_inputs_beyond_65535_take_ids_of_32_bits() -> None:
    weights = np.zeros((70_000, 2), np.float32)
    weights[[69_999, 65_538, 4]] = [[1, 8], [2, 16], [4, 32]]
    ids = np.array([[69_999, 70_000, 65_535 + 3, 4]], np.int32)
    op = OnIpu("spike_matmul", {"ids": ids, "values": np.ones(ids.shape, np.float32), "weights": weights})
    compiled = op.compile(1472)
    assert op.run(compiled)["out"].tolist() == [[7.0, 56.0]]
    products = [name for name in read_profile(compiled).codelets if "SpikeMatmul" in name]
    assert products == ["snnjax::SpikeMatmul<float,int>"]


def test_nan_neither_spikes_nor_spreads() -> None:
    """A NaN weight reaches its own neuron alone, which falls silent; the others keep their bits."""
    arrays = cases.lif_network(np.random.default_rng(3))
    arrays["threshold0"][4] = np.inf  # it does not fire without the NaN either
    arrays["second_threshold0"][4] = np.inf
    network = OnIpu("lif_network", arrays, capacity=4)
    compiled = network.compile(7)
    expected = network.run(compiled)
    arrays["weights0"][:, 4] = np.nan
    results = network.run(compiled, arrays)
    assert np.isnan(results["last_v0"][:, 4]).any()
    for name in ("output", "activity0", "activity1", "dropped0", "g_weights1", "g_readout_weights"):
        np.testing.assert_array_equal(results[name], expected[name], err_msg=name)
    others = np.arange(results["g_weights0"].shape[1]) != 4
    np.testing.assert_array_equal(results["g_weights0"][:, others], expected["g_weights0"][:, others])


@examples(10)
@given(data=st.data())
def test_spike_matmul_of_any_size_equals_reference(data: st.DataObject) -> None:
    rows, outputs = (data.draw(st.integers(1, 20), label=name) for name in ("rows", "outputs"))
    tiles, ipus = data.draw(st.integers(1, 30), label="tiles"), data.draw(st.integers(1, 2), label="ipus")
    arrays = cases.spike_matmul(np.random.default_rng(data.draw(st.integers(0, 99))), rows, outputs)
    results = OnIpu("spike_matmul", arrays).on(tiles, ipus)
    ids, values, weights, g = (arrays[name] for name in ("ids", "values", "weights", "g_out"))
    named = (ids >= 0) & (ids < len(weights))
    rows_of_weights = np.where(named[..., None], weights[np.clip(ids, 0, len(weights) - 1)], 0)
    np.testing.assert_array_equal(results["out"], np.einsum("rk,rko->ro", values, rows_of_weights))
    np.testing.assert_array_equal(results["g_values"], np.einsum("rko,ro->rk", rows_of_weights, g))


def expect_same(found: dict[str, np.ndarray], wanted: dict[str, np.ndarray]) -> None:
    """Forward bit for bit; gradients are sums of dot products, each in an order of its own."""
    for name, array in wanted.items():
        tolerance = 1e-5 * max(1.0, np.abs(array).max(initial=0.0)) if name.startswith("g_") else 0.0
        np.testing.assert_allclose(found[name], array, rtol=0, atol=tolerance, err_msg=name)


@examples(6)
@given(data=st.data())
def test_result_does_not_depend_on_tiles(data: st.DataObject) -> None:
    widths = tuple(data.draw(st.lists(st.integers(1, 24), min_size=1, max_size=3), label="widths"))
    steps, batch = (data.draw(st.integers(1, 7), label=name) for name in ("steps", "batch"))
    capacity = data.draw(st.none() | st.integers(1, 24), label="capacity")
    place = data.draw(st.tuples(st.integers(1, 90), st.integers(1, 2)), label="place")
    recurrent = data.draw(st.sets(st.sampled_from(range(len(widths)))), label="recurrent")
    sizes: dict[str, Any] = {"widths": widths, "steps": steps, "batch": batch, "recurrent": tuple(recurrent)}
    sizes |= {
        name: data.draw(st.booleans(), label=name) for name in ("readout", "lengths", "dense", "first_spikes")
    }
    arrays = cases.lif_network(np.random.default_rng(data.draw(st.integers(0, 99))), **sizes)
    network = OnIpu("lif_network", arrays, capacity=capacity)
    expect_same(network.on(*place), network.on(1))


@pytest.mark.parametrize("capacity", [30, None])
def test_result_of_a_large_network_does_not_depend_on_tiles(capacity: int | None) -> None:
    """Many groups of tiles make the lists of many homes, by several workers each."""
    arrays = cases.lif_network(np.random.default_rng(9), widths=(301, 200), batch=8, steps=4)
    network = OnIpu("lif_network", arrays, capacity=capacity)
    on_few = network.on(5)
    for place in ((100, 1), (300, 2)):
        expect_same(network.on(*place), on_few)


def test_profile_adds_up() -> None:
    arrays = cases.lif_network(np.random.default_rng(6), recurrent=(0,))
    network = OnIpu("lif_network", arrays, capacity=4)
    compiled = network.compile(16, 2, version="bow")
    network.run(compiled)
    profile = read_profile(compiled)
    data = profile.data
    assert (data["chip"], data["ipus"], data["tiles_per_ipu"]) == ("bow", 2, 16)
    assert profile.cycles == data["cycles"]["total"] == sum(profile.phases)
    assert profile.phases.compute == sum(each["cycles"] for each in data["compute_sets"])
    assert profile.seconds == profile.cycles / data["clock_hz"]
    turned = profile.codelets["snnjax::TurnMasks"]  # of one vertex, which runs once
    assert turned == Codelet(1, turned.max, turned.max)
    assert profile.unknown_codelets == []
    assert all(0 < codelet.mean <= codelet.max for codelet in profile.codelets.values())
    assert profile.tile_memory.shape == (32,)
    assert 0 < profile.tile_memory.max() < data["memory_per_tile"]
    assert sum(each["exchange"]["link_bytes"] for each in data["compute_sets"] + data["copies"]) > 0
    assert str(profile).startswith(
        "IPU Model (not measured on hardware): _lif_network on 2 x bow, 16 tiles each"
    )


LONG: dict[str, dict[str, Any]] = {
    "feed-forward": {"any_values": True},
    "lengths": {"lengths": True},
    "recurrent": {"recurrent": (0,), "first_spikes": True, "lengths": True},
    "spiking output, dense inputs": {"recurrent": (1,), "readout": False, "dense": True},
}


@pytest.mark.parametrize("name", LONG)
def test_steps_that_do_not_fit_at_once_run_in_blocks(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """On codelets and one tile; the number of steps is a prime, so that the last block has some to spare."""
    monkeypatch.setattr(network_cost, "pays", lambda *_: True)
    arrays = cases.lif_network(np.random.default_rng(4), widths=(16, 12), steps=61, batch=9, **LONG[name])
    capacity = None if "output" in name else 3
    network = OnIpu("lif_network", arrays, capacity=capacity)
    compiled = network.compile(1)
    on_one = network.run(compiled)
    assert executions(read_profile(compiled))["backward/next_block"] > 1
    expect_same(network.on(40), on_one)


def executions_of(
    layers: tuple[int, ...], recurrent: tuple[int, ...] = (), steps: int = cases.STEPS
) -> dict[str, int]:
    """How often the compute sets of a network run."""
    arrays = cases.lif_network(np.random.default_rng(7), widths=layers, recurrent=recurrent, steps=steps)
    network = OnIpu("lif_network", arrays, capacity=3)
    compiled = network.compile(64)
    network.run(compiled)
    counts = executions(read_profile(compiled))
    return {name: n for name, n in counts.items() if re.fullmatch(r"(forward|backward)/\w+", name)}


def test_layers_without_recurrence_run_over_all_steps_at_once() -> None:
    """No compute set runs once a step, and a further layer adds compute sets of its own."""
    few, many = executions_of((8, 8), steps=2), executions_of((8, 8), steps=9)
    assert {*few.values()} == {1}
    assert max(many.values()) < 9  # those of events that name an input twice run again
    assert len(executions_of((8,), steps=9)) < len(many)


def test_recurrent_layers_loop_over_their_own_steps_alone() -> None:
    """Two compute sets of a step in each direction; what layers send each other is of all steps."""
    arrays = cases.lif_network(np.random.default_rng(7), widths=(8, 8, 8), recurrent=(1,))
    network = OnIpu("lif_network", arrays, capacity=3)
    compiled = network.compile(64)
    network.run(compiled)
    counts = executions(read_profile(compiled))
    sets = {name: times for name, times in counts.items() if re.match("(forward|backward)/", name)}
    loops = [name for name, times in sets.items() if times >= cases.STEPS]
    assert loops == ["forward/neurons1", "forward/spikes1", "backward/neurons1", "backward/own_dots1"]
    assert {sets[name] for name in loops} == {cases.STEPS}


def test_inputs_of_value_0_cost_less() -> None:
    """Dense inputs are read entry by entry: what is 0 is passed over."""
    arrays = cases.without_cotangents(cases.lif_network(np.random.default_rng(12), dense=True, steps=2))
    network = OnIpu("lif_network", arrays, capacity=4)
    compiled = network.compile(64)
    cycles = []
    for inputs in (np.zeros_like(arrays["inputs"]), np.full_like(arrays["inputs"], 1 / 16)):
        network.run(compiled, {**arrays, "inputs": inputs})
        profile = read_profile(compiled, reset=True)
        cycles.append(profile.codelets["snnjax::RowsCurrent<float,true>"].max)
    assert cycles[0] < cycles[1]
