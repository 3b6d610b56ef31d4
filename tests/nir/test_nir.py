"""NIR: the published example, round trips, other libraries both ways, every pitfall."""

import dataclasses
import zipfile
from pathlib import Path
from typing import Any

import chex
import jax
import jax.numpy as jnp
import nir
import numpy as np
import pytest
from jax.typing import DTypeLike

import snnjax
from snnjax import blocks, fixed_point, neurons
from snnjax.blocks.conv import Convolve
from snnjax.blocks.norm import NormStats
from snnjax.fixed_point._route import Route
from snnjax.nir import from_nir, integers_of, to_nir
from tests.nir.graphs import (
    DT,
    EAGER,
    NETWORKS,
    graph_of,
    identity,
    inputs_of,
    lif,
    params_of,
    run,
    spikes_of,
    stats_of,
)
from tests.numbers import assert_close, assert_same_bits
from tests.project.architecture import ROOT

ARCHIVE = ROOT / "tests" / "golden" / "nir.zip"

# The input of NIR's published example (neuromorphs/NIR, paper/01_lif): steps of 0.1 ms with a spike.
PUBLISHED_INPUT = [
    *(60, 220, 270, 310, 320, 350, 370, 400, 410, 430, 440, 450, 460, 470, 480, 490, 500),
    *(510, 520, 530, 670, 680, 690, 700, 710, 720, 730, 740, 750, 760, 770, 780, 840, 850),
]


@pytest.fixture(scope="module")
def golden(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("nir")
    with zipfile.ZipFile(ARCHIVE) as archive:
        archive.extractall(folder)
    return folder


def test_published_example_spikes_where_it_should(golden: Path) -> None:
    network, params, stats = from_nir(golden / "published_lif.nir", dt=1e-4)
    inputs = np.zeros((1000, 1, 1), np.float32)
    inputs[PUBLISHED_INPUT] = 1
    assert np.flatnonzero(run(network, params, stats, inputs)).tolist() == [460, 510, 710, 760]


# How graphs of other libraries are read; those of ours say it themselves.
LIBRARIES = {
    "snntorch_leaky": {"writer": "snntorch"},
    "snntorch_zero": {"dt": 1e-4},
    "snntorch_synaptic": {"writer": "snntorch"},
    "snntorch_image": {"writer": "snntorch"},
    "snntorch_recurrent": {"writer": "snntorch"},
    "norse_spikes": {"writer": "norse", "dt": 1e-3},
    "norse_readout": {"writer": "norse", "dt": 1e-3},
    "sinabs_spikes": {"writer": "sinabs"},
    "spyx_spikes": {"writer": "spyx"},
    "spyx_current": {"writer": "spyx"},
    "spyx_image": {"writer": "spyx"},
    # Graphs of ours, computed by the library.
    **{f"snntorch_ours{case}": {} for case in ("", "_current", "_residual", "_image")},
    **{f"norse_ours{case}": {} for case in ("", "_if", "_recurrent", "_residual", "_image")},
    **{f"sinabs_ours{case}": {} for case in ("", "_residual", "_image")},
    **{f"spyx_ours{case}": {} for case in ("", "_if", "_current", "_recurrent", "_image")},
}
# Steps that the outputs of the library come behind ours: the neurons of both layers let spikes out a step late.
LATE = {"spyx_ours_recurrent": 2}


@pytest.mark.parametrize("case", LIBRARIES)
def test_graph_gives_the_outputs_of_the_library(case: str, golden: Path) -> None:
    network, params, stats = from_nir(golden / f"{case}.nir", **LIBRARIES[case])
    with np.load(golden / f"{case}.npz") as there:
        inputs, outputs = there["inputs"].astype(np.float32), there["outputs"]
    inputs = np.moveaxis(inputs, 2, -1) if inputs.ndim == 5 else inputs
    ours = run(network, params, stats, inputs)
    ours, outputs = (array.reshape(*array.shape[:2], -1) for array in (ours, outputs))
    assert np.any(outputs)
    late = LATE.get(case, 0)
    assert not np.any(outputs[:late])
    ours, outputs = ours[: len(ours) - late], outputs[late:]
    # Spikes are the same; membranes of a readout are sums in another order.
    chex.assert_trees_all_close(
        ours, outputs, atol=2e-7 if case == "norse_readout" else 0, rtol=0, strict=True
    )


def test_every_golden_case_is_compared(golden: Path) -> None:
    assert {path.stem for path in golden.glob("*.npz")} == set(LIBRARIES)


def nodes_of(network: snnjax.Network) -> dict[str, Any]:
    """The nodes by name, with the padding of convolutions in numbers."""

    def numbered(block, shape):
        if isinstance(block, Convolve):
            return dataclasses.replace(block, padding=block.geometry(shape).padding)
        return block

    nodes = zip(network.nodes, network.in_shapes, strict=True)
    return {node.name: (numbered(node.block, shapes[0]), node.sources) for node, shapes in nodes}


@pytest.mark.parametrize(
    "name, method, dtype",
    [
        ("lif", "euler", jnp.bfloat16),
        ("recurrent", "exact", jnp.float32),
        ("image", "euler", jnp.float32),
        ("line", "euler", jnp.float32),
        ("branches", "euler", jnp.float32),
        ("flat recurrence", "euler", jnp.float32),
    ],
)
def test_round_trip_by_a_file_is_exact(name: str, method: str, dtype: DTypeLike, tmp_path: Path) -> None:
    network = NETWORKS[name]()
    params, stats = params_of(network, dtype), stats_of(network)
    written = to_nir(network, params, dt=DT, method=method, stats=stats)
    nir.write(tmp_path / "network.nir", written)
    again, *same = from_nir(tmp_path / "network.nir")
    assert_same_bits(same, [params, stats])
    assert dict(again.inputs) == dict(network.inputs)
    assert (dict(again.outputs), again.is_single) == (dict(network.outputs), network.is_single)
    assert nodes_of(again) == nodes_of(network)
    # What nir.read 1.0.8 infers of grouped convolutions is wrong.
    read = from_nir(nir.read(tmp_path / "network.nir", type_check=name != "line"))
    assert_same_bits(read[1:], (params, stats))


@pytest.mark.parametrize("name", ["branches", "flat recurrence"])
def test_graph_computes_what_its_network_does(name: str) -> None:
    """Without its metadata, too: then blocks have other names."""
    network = NETWORKS[name]()
    params, inputs = params_of(network), inputs_of(network)
    expected, graph = run(network, params, None, inputs), to_nir(network, params, dt=DT)
    assert all(np.any(leaf) for leaf in jax.tree.leaves(expected))
    for has_metadata in (True, False):
        for node in graph.nodes.values():
            node.metadata = node.metadata if has_metadata else {}
        found = run(*from_nir(graph, reset="subtract"), inputs)
        assert_close(found, expected, of_largest=1e-6)


def test_norm_becomes_part_of_the_weights() -> None:
    """The network that comes back has none; dropout is left out."""
    parts = {"norm": blocks.batch_norm(), "dropout": blocks.dropout(0.5)}
    net = snnjax.network((4, 4, 2), [snnjax.layer(snnjax.conv2d(3, 3, bias=False), EAGER, **parts)])
    params = params_of(net)
    mean, variance = jnp.array([0.1, 0.2, 0.0]), jnp.array([0.5, 2.0, 1.0])
    (name,) = net.initial_stats(jax.random.key(0))
    stats = {name: NormStats(mean, variance)}
    again, same, _ = from_nir(to_nir(net, params, dt=DT, stats=stats))
    assert [node.name for node in again.nodes] == ["layer_0/connection", "layer_0/neuron"]
    inputs = inputs_of(net)
    expected = np.asarray(net.apply(params, None, inputs, stats=stats)[0].output)
    assert expected.any()
    np.testing.assert_array_equal(run(again, same, None, inputs), expected)


def test_sum_of_a_sum_has_one_edge_for_each_signal() -> None:
    net = snnjax.network(
        3, [snnjax.layer(3), snnjax.residual(snnjax.layer(3)), snnjax.residual(snnjax.layer(3))]
    )
    params, inputs = params_of(net), inputs_of(net)
    graph = to_nir(net, params, dt=DT)
    assert [a for a, b in graph.edges if b == "output"] == [
        "residual_1_body_layer_0_neuron",
        "residual_0_body_layer_0_neuron",
        "layer_0_neuron",
    ]
    np.testing.assert_array_equal(run(*from_nir(graph), inputs), run(net, params, None, inputs))


@pytest.mark.parametrize("dtype", [jnp.float64, jnp.float16])
def test_parameters_come_back_in_their_dtype(dtype: DTypeLike) -> None:
    network = NETWORKS["line"]()
    with jax.enable_x64(True):
        # A third has digits in every dtype.
        params = jax.tree.map(lambda array: array / 3, params_of(network, dtype))
        assert_same_bits(from_nir(to_nir(network, params, dt=DT, stats=stats_of(network)))[1], params)


def argument(block, name: str):
    """An argument of the function that made the neurons of a block."""
    return dict(block.neuron.arguments)[name]


def read(graph, **options) -> tuple[dict[str, Any], Any]:
    """The blocks of a graph by name, and their parameters."""
    network, params, _ = from_nir(graph, **{"dt": DT, **options})
    return {node.name: node.block for node in network.nodes}, params


def test_gain_is_applied() -> None:
    made, params = read(graph_of(identity(), lif(r=np.array([3.0]))))
    assert argument(made["n1"], "normalize")
    np.testing.assert_array_equal(params["n0"].weights, [[3.0]])
    np.testing.assert_allclose(argument(made["n1"], "decay"), 0.75, rtol=1e-6)
    made, params = read(graph_of(identity(), lif(r=np.array([4.0]))))  # tau / dt: a gain of 1
    assert not argument(made["n1"], "normalize")
    np.testing.assert_array_equal(params["n0"].weights, [[1.0]])


@pytest.mark.parametrize("tau", [20.0, 1e4, 1e12])
def test_gain_of_slow_neurons_is_exact(tau: float) -> None:
    """In float32 one minus their decay would be off by percents, or 0."""
    slow, steps = nir.LI(tau=np.array([tau]), r=np.array([tau]), v_leak=np.array([0.5])), 20
    network, params, stats = from_nir(graph_of(identity(), slow), dt=DT)
    v, expected = 0.0, []
    for _ in range(steps):
        v += DT / tau * (0.5 - v + tau)
        expected.append(v)
    found = run(network, params, stats, np.ones((steps, 1, 1), np.float32))[:, 0, 0]
    np.testing.assert_allclose(found, expected, rtol=1e-4)


def test_integrate_and_fire_does_not_leak() -> None:
    node = nir.IF(r=np.array([2000.0]), v_threshold=np.array([0.5]))
    made, params = read(graph_of(identity(), node))
    assert made["n1"].neuron.name == "integrate_and_fire"
    np.testing.assert_array_equal(params["n0"].weights, [[2.0]])


def test_shapes_are_written() -> None:
    network = NETWORKS["image"]()
    graph = to_nir(network, params_of(network), dt=DT, stats=stats_of(network))
    for node in graph.nodes.values():
        shapes = [*node.input_type.values(), *node.output_type.values()]
        assert shapes
        assert all(shape is not None and np.size(shape) for shape in shapes)
    assert graph.nodes["layer_0_connection"].input_shape == (6, 8)


def test_shape_with_a_batch_in_front_is_understood() -> None:
    network, *_ = from_nir(graph_of(identity(3), lif(3), shape=(1, 3)), dt=DT)
    assert network.num_inputs == 3


def test_flatten_counts_axes_without_a_batch_and_keeps_pixels_with_their_weights() -> None:
    # Each output reads the pixel of its number in NIR's order, which counts channels first.
    image = nir.Flatten({"input": np.array([2, 2, 3])}, start_dim=0, end_dim=-1)
    _, params = read(graph_of(image, identity(12), lif(12), shape=(2, 2, 3)))
    channels_last = np.arange(12).reshape(2, 2, 3).transpose(1, 2, 0).reshape(-1)
    np.testing.assert_array_equal(np.argmax(params["n1"].weights, axis=1), channels_last)
    image.start_dim = 1
    with pytest.raises(ValueError, match=r"flatten all 3 axes in n0, got start_dim=1, end_dim=-1"):
        from_nir(graph_of(image, identity(12), lif(12), shape=(2, 2, 3)), dt=DT)


def test_bias_may_be_missing() -> None:
    kernels = np.ones((3, 2, 1, 1), np.float32)
    convolution = nir.Conv2d((4, 4), kernels, 1, 0, 1, 1, None)
    for graph in (graph_of(convolution, lif(), shape=(2, 4, 4)), graph_of(identity(), lif())):
        made, params = read(graph)
        assert not made["n0"].bias
        assert params["n0"].bias is None


def test_reset_is_kept_or_said() -> None:
    network = NETWORKS["lif"]()
    graph = to_nir(network, params_of(network), dt=DT)
    assert read(graph)[0]["layer_0/neuron"].neuron.glif.reset == "subtract"
    other = graph_of(identity(), lif())
    assert read(other)[0]["n1"].neuron.glif.reset == "zero"
    assert read(other, reset="subtract")[0]["n1"].neuron.glif.reset == "subtract"


def test_numbers_stand_for_arrays() -> None:
    node = lif()
    node.tau, node.v_threshold = np.array(4e-3), np.array(0.5)
    made, params = read(graph_of(identity(3), node, shape=(3,)))
    assert "n1" not in params
    assert (argument(made["n1"], "decay"), argument(made["n1"], "threshold")) == (0.75, 0.5)


@pytest.mark.parametrize("shape", [(3,), (3, 2, 2)])
def test_constants_that_differ_are_stats(shape: tuple[int, ...]) -> None:
    """One a channel where the pixels of each agree, else one a neuron; and they come back."""
    tau = np.linspace(2e-3, 8e-3, 3).reshape(3, *(1,) * (len(shape) - 1)) * np.ones(shape)
    for per, differing in (("channel", tau), ("neuron", tau + 1e-4 * np.arange(tau.size).reshape(shape))):
        one, zero = np.ones(shape), np.zeros(shape)
        node = nir.LIF(tau=differing, r=one, v_threshold=one, v_leak=zero, v_reset=zero)
        network, params, stats = from_nir(graph_of(node, shape=shape), dt=DT)
        neuron = network.nodes[0].block
        assert (params, argument(neuron, "threshold")) == ({}, 1.0)
        per_pixel = per == "neuron" and len(shape) > 1
        assert argument(neuron, "per") == ("neuron" if per_pixel else "channel")
        decay = neurons.raw_to_decay(stats["n0"].raw_decay)
        wanted = np.moveaxis(1 - DT / differing, 0, -1).reshape(-1)
        np.testing.assert_allclose(decay, wanted if per_pixel else wanted[:3], rtol=1e-6)
        again = from_nir(to_nir(network, params, dt=DT, stats=stats))
        assert again[0] == network
        assert_same_bits(again[2], stats)


@pytest.mark.parametrize("method", ["euler", "exact"])
def test_equation_with_every_constant(method: str) -> None:
    tau, r, v_leak, v_reset, threshold = 5e-3, 2.5, 0.2, -0.3, 0.6
    node = lif(
        tau=np.array([tau]),
        r=np.array([r]),
        v_leak=np.array([v_leak]),
        v_reset=np.array([v_reset]),
        v_threshold=np.array([threshold]),
    )
    network, params, stats = from_nir(
        graph_of(nir.Affine(np.array([[0.7]]), np.array([0.1])), node), dt=DT, method=method
    )
    inputs = np.asarray(spikes_of((30, 1, 1)))
    v, expected = v_reset, []
    for x in inputs[:, 0, 0]:
        leak = DT / tau if method == "euler" else 1 - np.exp(-DT / tau)
        v = v + leak * (v_leak - v + r * (0.7 * x + 0.1))
        expected.append(float(v > threshold))
        v = v_reset if v > threshold else v
    assert sum(expected) > 2
    assert run(network, params, stats, inputs)[:, 0, 0].tolist() == expected


def test_subgraph_is_the_same_network_inlined() -> None:
    back = nir.Affine(np.arange(4.0).reshape(2, 2), np.ones(2))
    inner = nir.NIRGraph(
        {"input": nir.Input(np.array([2])), "lif": lif(2), "back": back, "output": nir.Output(np.array([2]))},
        [("input", "lif"), ("lif", "back"), ("back", "lif"), ("lif", "output")],
    )
    flat = graph_of(identity(2), lif(2), shape=(2,), loops=[("back", back, "n1")])
    own = read(flat)[1]
    np.testing.assert_array_equal(own["n1/recurrent"].weights, np.arange(4.0).reshape(2, 2).T)
    np.testing.assert_array_equal(own["n0"].bias, [1.0, 1.0])
    nested = read(graph_of(identity(2), inner, shape=(2,)))[1]
    assert_same_bits({"n0": nested["n0"], "n1/recurrent": nested["n1/lif/recurrent"]}, own)


def test_delays_become_steps() -> None:
    for times, learn in (([3e-3, 0.0], False), ([2.5e-3, 1e-3], True)):
        graph = graph_of(nir.Delay(np.array(times)), identity(2), lif(2), shape=(2,))
        network, params, stats = from_nir(graph, dt=DT)
        block = network.nodes[0].block
        # A learnable delay is never 0, and no longer than the longest.
        found = block.delays((params if learn else stats)["n0"], (2,))
        np.testing.assert_allclose(found, np.array(times) / DT, rtol=0, atol=1e-5 if learn else 0)
        assert block.learn == learn


def delayed_loop(delays):
    """Two neurons whose spikes come back through delays."""
    nodes = {
        "lif": lif(2),
        "wait": delays,
        "back": nir.Linear(np.eye(2)),
        "output": nir.Output(np.array([2])),
    }
    edges = [("input", "lif"), ("lif", "wait"), ("wait", "back"), ("back", "lif"), ("lif", "output")]
    return nir.NIRGraph({"input": nir.Input(np.array([2])), **nodes}, edges)


def test_one_delay_of_whole_steps_is_a_number_of_the_network() -> None:
    delays = nir.Delay(np.full(2, 3e-3))
    loop = delayed_loop(delays)
    for graph in (graph_of(delays, identity(2), lif(2), shape=(2,)), loop):
        network, _, stats = from_nir(graph, dt=DT)
        blocks = [node.block for node in network.nodes]
        delayed = next(block for block in blocks if block.kind == "axonal")
        assert stats == {} and delayed.delays(None, (2,)).tolist() == [3.0, 3.0]


def test_delays_of_a_recurrent_connection_that_differ_are_stats() -> None:
    graph = delayed_loop(nir.Delay(np.array([1e-3, 4e-3])))
    network, params, stats = from_nir(graph, dt=DT)
    ((name, own),) = stats.items()
    block = {node.name: node.block for node in network.nodes}[name]
    assert block.delays(own, (2,)).tolist() == [1.0, 4.0]
    again = from_nir(to_nir(network, params, dt=DT, stats=stats))
    assert_same_bits(again[1:], (params, stats))


def test_long_delays_stay_whole_steps() -> None:
    """Times in float32, of up to 200,000 steps of 0.1 ms, which round them by up to a hundredth of a step."""
    steps = np.array([0, 1, 4_999, 5_000, 123_457, 199_999, 200_000])
    times = (steps * 1e-4).astype(np.float32)
    network, params, stats = from_nir(graph_of(nir.Delay(times), identity(7), lif(7), shape=(7,)), dt=1e-4)
    again, _, same = from_nir(to_nir(network, params, dt=1e-4, stats=stats))
    for made, own in ((network, stats), (again, same)):
        block = made.nodes[0].block
        assert block.learn is False
        np.testing.assert_array_equal(block.delays(own["n0"], (7,)), steps)


def test_integrators_with_a_threshold_are_neurons_without_reset() -> None:
    one, node = np.ones(1), nir.Threshold(np.array([0.5]))
    integrators = {
        "lif": nir.LI(tau=4e-3 * one, r=one, v_leak=0 * one),
        "integrate_and_fire": nir.I(r=one / DT),
        "current_lif": nir.CubaLI(tau_mem=4e-3 * one, tau_syn=2e-3 * one, r=one, v_leak=0 * one),
    }
    for name, integrator in integrators.items():
        made, _ = read(graph_of(identity(), integrator, node))
        assert (made["n1"].neuron.name, made["n1"].neuron.glif.reset) == (name, "none")
    made, _ = read(graph_of(identity(), node))
    assert argument(made["n1"], "decay") == 0


def test_integrators_of_every_kind_come_back() -> None:
    """As readouts, and with others after them."""
    one = np.ones(1, np.float32)
    kinds = {
        "LI": (nir.LI(tau=4e-3 * one, r=one, v_leak=0 * one), [0.25, 0.1875]),
        "I": (nir.I(r=one / np.float32(DT)), [1.0, 1.0]),
        "CubaLI": (
            nir.CubaLI(tau_mem=4e-3 * one, tau_syn=2e-3 * one, r=one, v_leak=0 * one),
            [0.125, 0.15625],
        ),
    }
    inputs = np.array([1.0, 0.0], np.float32).reshape(2, 1, 1)
    for kind, (node, expected) in kinds.items():
        for behind in ([], [nir.Linear(2 * np.eye(1))]):
            network, params, stats = from_nir(graph_of(identity(), node, *behind), dt=DT)
            outputs = run(network, params, stats, inputs).reshape(-1)
            np.testing.assert_allclose(outputs, np.array(expected) * (2 if behind else 1), rtol=1e-6)
            again = to_nir(network, params, dt=DT)
            assert type(again.nodes["n1"]).__name__ == kind


def test_current_based_read_out_has_both_states_behind_spikes() -> None:
    one = np.ones(1, np.float32)
    node = nir.CubaLI(tau_mem=4e-3 * one, tau_syn=2e-3 * one, r=one, v_leak=0 * one)
    network, params, stats = from_nir(graph_of(identity(), lif(r=np.array([8.0])), identity(), node), dt=DT)
    outputs = run(network, params, stats, np.array([1.0, 0.0], np.float32).reshape(2, 1, 1)).reshape(-1)
    np.testing.assert_allclose(outputs, [0.125, 0.15625], rtol=1e-6)


def test_weights_alone_are_a_read_out() -> None:
    network, params, stats = from_nir(graph_of(identity(), lif(), nir.Linear(2 * np.eye(1))), dt=DT)
    outputs = run(network, params, stats, np.ones((4, 1, 1)))
    assert set(outputs.reshape(-1).tolist()) == {0.0, 2.0}


def test_scale_becomes_part_of_weights() -> None:
    scale, half = nir.Scale(np.array([2.0, 3.0])), nir.Linear(0.5 * np.eye(2))
    made, params = read(graph_of(scale, half, scale, identity(2), lif(2), shape=(2,)))
    assert list(made) == ["n1", "n3", "n4"]
    np.testing.assert_array_equal(params["n1"].weights @ params["n3"].weights, np.diag([2.0, 4.5]))
    kernels = np.arange(4.0).reshape(2, 2, 1, 1)
    channels = nir.Scale(np.array([2.0, 3.0]).reshape(2, 1, 1) * np.ones((2, 4, 4)))
    convolution = nir.Conv2d((2, 2), kernels, 1, 0, 1, 1, np.ones(2))
    pool = nir.SumPool2d(np.array([2, 2]), np.array([2, 2]), np.array([0, 0]))
    _, params = read(graph_of(channels, pool, convolution, lif(), shape=(2, 4, 4)))
    np.testing.assert_array_equal(
        params["n2"].weights[0, 0], kernels[:, :, 0, 0].T * np.array([[2.0], [3.0]])
    )


def scaled_sum(readers: int) -> nir.NIRGraph:
    """A gain of 3 after the sum of two weights, whose signals one or two neurons receive."""
    graph = graph_of(identity(2), lif(2, r=3 * np.ones(2)), shape=(2,))
    graph.nodes["other"] = nir.Linear(2 * np.eye(2))
    graph.edges += [("input", "other"), ("other", "n1")]
    if readers == 2:
        graph.nodes |= {"second": lif(2), "end": nir.Output(np.array([2]))}
        graph.edges += [("n0", "second"), ("other", "second"), ("second", "end")]
    return graph


def test_scale_of_a_sum_is_that_of_all_its_weights_or_has_its_own() -> None:
    made, params = read(scaled_sum(1))
    assert list(made) == ["n0", "other", "n1/add", "n1"]
    np.testing.assert_array_equal([params["n0"].weights[0, 0], params["other"].weights[0, 0]], [3.0, 6.0])
    made, params = read(scaled_sum(2))
    assert set(made) == {"n0", "other", "second/add", "n1/scale", "n1", "second"}
    np.testing.assert_array_equal(params["n1/scale"].weights, 3 * np.eye(2))
    np.testing.assert_array_equal([params["n0"].weights[0, 0], params["other"].weights[0, 0]], [1.0, 2.0])
    network, params, stats = from_nir(scaled_sum(2), dt=DT)
    assert dict(network.outputs) == {"output": "n1", "end": "second"}
    outputs = run(
        network, params, stats, np.full((1, 1, 2), 0.2, np.float32)
    )  # 0.25 * (1 + 2) * 0.2 = 0.15, times 3
    assert [float(outputs[name].sum()) for name in ("output", "end")] == [0, 0]


def test_neurons_need_no_weights() -> None:
    for shape in ((3,), (3, 2, 2)):
        made, params = read(graph_of(lif(shape[0]) if len(shape) == 1 else lif(), shape=shape))
        assert (list(made), params) == (["n0"], {})
    made, params = read(graph_of(lif(3, r=np.array([1.0, 2.0, 3.0])), shape=(3,)))
    np.testing.assert_array_equal(params["n0/scale"].weights, np.diag([1.0, 2.0, 3.0]))
    made, params = read(graph_of(lif(r=np.array([2.0])), shape=(3, 2, 2)))
    assert params["n0/scale"].weights.shape == (1, 1, 1, 3)


def test_spikes_that_come_back_as_they_are_have_weights_of_the_identity() -> None:
    graph = graph_of(identity(3), lif(3), shape=(3,))
    graph.edges.append(("n1", "n1"))
    np.testing.assert_array_equal(read(graph)[1]["n1/recurrent"].weights, np.eye(3))


def test_another_dt_and_changed_constants_count_more_than_metadata() -> None:
    for learn in (True, False):
        network = snnjax.network(5, [snnjax.layer(6, neurons.lif(0.9, learn_decay=learn))])
        params = network.init(jax.random.key(0))
        graph = to_nir(network, params, dt=DT)

        def decay(graph, learn: bool = learn, **options):
            made, params = read(graph, **options)
            if not learn:
                return argument(made["layer_0/neuron"], "decay")
            return neurons.raw_to_decay(params["layer_0/neuron"].raw_decay)

        np.testing.assert_allclose(decay(graph, dt=DT / 2), 0.95, rtol=1e-6)
        graph.nodes["layer_0_neuron"].tau *= 3
        np.testing.assert_allclose(decay(graph), 1 - 0.1 / 3, rtol=1e-6)


def test_weights_where_the_metadata_have_none_count_more_than_metadata() -> None:
    """Another library may fill in what a mask left out."""
    mask = np.eye(3, 4, dtype=bool)
    network = snnjax.network(3, [snnjax.layer(snnjax.dense(4, mask=mask))])
    graph = to_nir(network, network.init(jax.random.key(0)), dt=DT)
    node = graph.nodes["layer_0_connection"]
    node.weight = 2 * node.weight
    assert np.array_equal(read(graph)[0]["layer_0/connection"].mask.entries, mask)
    node.weight = node.weight + 1
    made, params = read(graph)
    used = made["layer_0/connection"].used(params["layer_0/connection"].weights)
    np.testing.assert_array_equal(used, node.weight.T)


def test_integers_of_a_chip_are_read_back(tmp_path):
    neuron = neurons.current_lif()
    net = snnjax.network(5, [snnjax.layer(6, neuron, recurrent=True)], snnjax.leaky_readout(3))
    params = net.init(jax.random.key(0))
    whole, _ = fixed_point.convert(net, params, fixed_point.XYLO)
    graph = to_nir(net, params, dt=1e-3, integers=whole)
    nir.write(tmp_path / "chip.nir", graph)
    same = integers_of(str(tmp_path / "chip.nir"))
    assert (same.chip, same.spiking_output) == (whole.chip, whole.spiking_output)
    assert jax.tree.structure(same) == jax.tree.structure(whole)
    jax.tree.map(np.testing.assert_array_equal, same, whole)
    assert from_nir(graph)[0].out_shape == (3,)
    pool, form = snnjax.sum_pool(2).pooling((8, 8, 1)), snnjax.conv2d(2, 3).geometry((4, 4, 1))
    image = dataclasses.replace(whole.layers[0], route=Route((pool,), form))
    images = dataclasses.replace(whole, chip=fixed_point.SPECK, layers=(image, whole.layers[1]))
    same = integers_of(to_nir(net, params, dt=1e-3, integers=images))
    assert (same.chip, same.layers[0].route) == (images.chip, image.route)
    with pytest.raises(ValueError) as error:
        integers_of(to_nir(net, params, dt=1e-3))
    expected = "integers_of: `graph` must hold the integers of a chip, got none. Pass integers= to to_nir."
    assert str(error.value) == expected
    graph.metadata["snnjax_integers"] = "{}"
    with pytest.raises(ValueError) as error:
        integers_of(graph)
    damaged = "got damaged metadata (KeyError). Write it again."
    assert str(error.value) == f"integers_of: `graph` must hold what to_nir wrote, {damaged}"
