"""NIR: the published example, round trips, other libraries both ways, every pitfall."""

import zipfile
from pathlib import Path
from typing import Any

import chex
import jax
import jax.numpy as jnp
import nir
import numpy as np
import pytest

from snnjax import neurons
from snnjax.nir import from_nir, to_nir
from tests.architecture import ROOT
from tests.nir.graphs import DT, NETWORKS, graph_of, identity, lif, params_of, run, spikes_of
from tests.numbers import assert_same_bits

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
    network, params = from_nir(golden / "published_lif.nir", dt=1e-4)
    inputs = np.zeros((1000, 1, 1), np.float32)
    inputs[PUBLISHED_INPUT] = 1
    assert np.flatnonzero(run(network, params, inputs)).tolist() == [460, 510, 710, 760]


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
    **{f"snntorch_ours{case}": {} for case in ("", "_current", "_image")},
    **{f"norse_ours{case}": {} for case in ("", "_if", "_recurrent", "_image")},
    **{f"sinabs_ours{case}": {} for case in ("", "_image")},
    **{f"spyx_ours{case}": {} for case in ("", "_if", "_current", "_recurrent", "_image")},
}
# Steps that the outputs of the library come behind ours: the neurons of both layers let spikes out a step late.
LATE = {"spyx_ours_recurrent": 2}


@pytest.mark.parametrize("case", LIBRARIES)
def test_graph_gives_the_outputs_of_the_library(case: str, golden: Path) -> None:
    network, params = from_nir(golden / f"{case}.nir", **LIBRARIES[case])
    with np.load(golden / f"{case}.npz") as there:
        inputs, outputs = there["inputs"].astype(np.float32), there["outputs"]
    inputs = np.moveaxis(inputs, 2, -1) if inputs.ndim == 5 else inputs
    ours = run(network, params, inputs.reshape(*inputs.shape[:2], -1))
    assert np.any(outputs)
    late = LATE.get(case, 0)
    assert not np.any(outputs[:late])
    ours, outputs = ours[: len(ours) - late], outputs[late:]
    # Spikes are the same; membranes of a read-out are sums in another order.
    chex.assert_trees_all_close(
        ours, outputs, atol=2e-7 if case == "norse_readout" else 0, rtol=0, strict=True
    )


def test_every_golden_case_is_compared(golden: Path) -> None:
    assert {path.stem for path in golden.glob("*.npz")} == set(LIBRARIES)


@pytest.mark.parametrize(
    "name, method, dtype",
    [
        ("lif", "euler", jnp.bfloat16),
        ("recurrent", "exact", jnp.float32),
        ("image", "euler", jnp.float32),
        ("line", "euler", jnp.float32),
    ],
)
def test_round_trip_by_a_file_is_exact(name: str, method: str, dtype: Any, tmp_path: Path) -> None:
    network = NETWORKS[name]()
    params = params_of(network, dtype)
    written = to_nir(network, params, dt=DT, method=method)
    nir.write(tmp_path / "network.nir", written)
    again, same = from_nir(tmp_path / "network.nir")
    assert_same_bits(same, params)
    for ours, theirs in zip(again.layers, network.layers, strict=True):
        for field in (
            "recurrent",
            "bias",
            "capacity",
            "second_threshold",
            "delays",
            "per_channel",
            "connection",
        ):
            assert getattr(ours, field) == getattr(theirs, field)
        assert (ours.neuron.name, ours.neuron.surrogate) == (theirs.neuron.name, theirs.neuron.surrogate)
    # What nir.read 1.0.8 infers of grouped convolutions is wrong.
    assert_same_bits(from_nir(nir.read(tmp_path / "network.nir", type_check=name != "line"))[1], params)
    if name not in (
        "recurrent",
        "image",
    ):  # runs of the others are compiled for seconds, and show nothing new
        return
    inputs = spikes_of((8, 1, network.num_inputs)).astype(dtype)
    outputs = run(network, params, inputs)
    assert np.any(outputs)
    assert_same_bits(run(again, same, inputs), outputs)


@pytest.mark.parametrize("dtype", [jnp.float64, jnp.float16])
def test_parameters_come_back_in_their_dtype(dtype: Any) -> None:
    network = NETWORKS["line"]()
    drawn = params_of(network)
    with jax.enable_x64(True):
        # A third has digits in every dtype.
        params = jax.tree.map(lambda array: array.astype(dtype) / 3, drawn)
        assert_same_bits(from_nir(to_nir(network, params, dt=DT))[1], params)


def layer_of(graph: Any, **options: Any) -> tuple[Any, Any]:
    """The specification and parameters of the first layer."""
    network, params = from_nir(graph, **{"dt": DT, **options})
    return network.layers[0], params.layers[0]


def test_gain_is_applied() -> None:
    spec, own = layer_of(graph_of(identity(), lif(r=np.array([3.0]))))
    assert dict(spec.neuron.arguments)["normalize"]
    np.testing.assert_array_equal(own.weights, [[3.0]])
    np.testing.assert_allclose(neurons.raw_to_decay(own.neuron.raw_decay), [0.75], rtol=1e-6)
    spec, own = layer_of(graph_of(identity(), lif(r=np.array([4.0]))))  # tau / dt: a gain of 1
    assert not dict(spec.neuron.arguments)["normalize"]
    np.testing.assert_array_equal(own.weights, [[1.0]])


def test_integrate_and_fire_does_not_leak() -> None:
    node = nir.IF(r=np.array([2000.0]), v_threshold=np.array([0.5]))
    spec, own = layer_of(graph_of(identity(), node))
    assert spec.neuron.name == "integrate_and_fire"
    np.testing.assert_array_equal(own.weights, [[2.0]])


def test_shapes_are_written() -> None:
    network = NETWORKS["image"]()
    graph = to_nir(network, params_of(network), dt=DT)
    for node in graph.nodes.values():
        shapes = [*node.input_type.values(), *node.output_type.values()]
        assert shapes
        assert all(shape is not None and np.size(shape) for shape in shapes)
    assert graph.nodes["weights_0"].input_shape == (6, 8)


def test_shape_with_a_batch_in_front_is_understood() -> None:
    network, _ = from_nir(graph_of(identity(3), lif(3), shape=(1, 3)), dt=DT)
    assert network.num_inputs == 3


def test_flatten_counts_axes_without_a_batch_and_keeps_pixels_with_their_weights() -> None:
    # Each output reads the pixel of its number in NIR's order, which counts channels first.
    image = nir.Flatten({"input": np.array([2, 2, 3])}, start_dim=0, end_dim=-1)
    _, own = layer_of(graph_of(image, identity(12), lif(12), shape=(2, 2, 3)))
    channels_last = np.arange(12).reshape(2, 2, 3).transpose(1, 2, 0).reshape(-1)
    np.testing.assert_array_equal(np.argmax(own.weights, axis=1), channels_last)
    image.start_dim = 1
    with pytest.raises(ValueError, match=r"flatten all 3 axes in n0, got start_dim=1, end_dim=-1"):
        from_nir(graph_of(image, identity(12), lif(12), shape=(2, 2, 3)), dt=DT)


def test_bias_may_be_missing() -> None:
    kernels = np.ones((3, 2, 1, 1), np.float32)
    convolution = nir.Conv2d((4, 4), kernels, 1, 0, 1, 1, None)
    spec, own = layer_of(graph_of(convolution, lif(), shape=(2, 4, 4)))
    assert not spec.bias
    assert own.bias is None
    spec, own = layer_of(graph_of(identity(), lif()))
    assert own.bias is None


def test_reset_is_kept_or_said() -> None:
    network = NETWORKS["lif"]()
    graph = to_nir(network, params_of(network), dt=DT)
    assert from_nir(graph)[0].layers[0].neuron.glif.reset == "subtract"
    other = graph_of(identity(), lif())
    assert layer_of(other)[0].neuron.glif.reset == "zero"
    assert layer_of(other, reset="subtract")[0].neuron.glif.reset == "subtract"


def test_numbers_stand_for_arrays() -> None:
    node = lif()
    node.tau, node.v_threshold = np.array(4e-3), np.array(0.5)
    _, own = layer_of(graph_of(identity(3), node, shape=(3,)))
    assert own.neuron.threshold.shape == own.neuron.raw_decay.shape == (3,)


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
    network, params = from_nir(
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
    assert run(network, params, inputs)[:, 0, 0].tolist() == expected


def test_subgraph_is_the_same_network_inlined() -> None:
    back = nir.Affine(np.arange(4.0).reshape(2, 2), np.ones(2))
    inner = nir.NIRGraph(
        {"input": nir.Input(np.array([2])), "lif": lif(2), "back": back, "output": nir.Output(np.array([2]))},
        [("input", "lif"), ("lif", "back"), ("back", "lif"), ("lif", "output")],
    )
    flat = graph_of(identity(2), lif(2), shape=(2,), loops=[("back", back, "n1")])
    nested = graph_of(identity(2), inner, shape=(2,))
    assert_same_bits(layer_of(nested)[1], layer_of(flat)[1])
    own = layer_of(flat)[1]
    np.testing.assert_array_equal(own.recurrent, np.arange(4.0).reshape(2, 2).T)
    np.testing.assert_array_equal(own.bias, [1.0, 1.0])


def test_delays_become_steps() -> None:
    for times, learn in (([3e-3, 0.0], False), ([2.5e-3, 1e-3], True)):
        network, params = from_nir(
            graph_of(nir.Delay(np.array(times)), identity(2), lif(2), shape=(2,)), dt=DT
        )
        # A learnable delay is never 0, and no longer than the longest.
        np.testing.assert_allclose(
            network.delays(params)[0].inputs, np.array(times) / DT, rtol=0, atol=1e-5 if learn else 0
        )
        assert network.layers[0].delays.learn == learn


def test_long_delays_stay_whole_steps() -> None:
    """Times in float32, of up to 200,000 steps of 0.1 ms, which round them by up to a hundredth of a step."""
    steps = np.array([0, 1, 4_999, 5_000, 123_457, 199_999, 200_000])
    times = (steps * 1e-4).astype(np.float32)
    graph = graph_of(nir.Delay(times), identity(7), lif(7), shape=(7,))
    network, params = from_nir(graph, dt=1e-4)
    assert network.layers[0].delays.learn is False
    np.testing.assert_array_equal(network.delays(params)[0].inputs, steps)
    written = to_nir(network, params, dt=1e-4)
    again, own = from_nir(written)
    np.testing.assert_array_equal(again.delays(own)[0].inputs, steps)


def test_integrators_with_a_threshold_are_neurons_without_reset() -> None:
    one, node = np.ones(1), nir.Threshold(np.array([0.5]))
    integrators = {
        "lif": nir.LI(tau=4e-3 * one, r=one, v_leak=0 * one),
        "integrate_and_fire": nir.I(r=one / DT),
        "current_lif": nir.CubaLI(tau_mem=4e-3 * one, tau_syn=2e-3 * one, r=one, v_leak=0 * one),
    }
    for name, integrator in integrators.items():
        spec, _ = layer_of(graph_of(identity(), integrator, node))
        assert (spec.neuron.name, spec.neuron.glif.reset) == (name, "none")
    spec, own = layer_of(graph_of(identity(), node))
    np.testing.assert_array_equal(neurons.raw_to_decay(own.neuron.raw_decay), [0.0])


def test_read_outs_of_every_kind_come_back() -> None:
    one = np.ones(1, np.float32)
    ends = {
        "LI": nir.LI(tau=4e-3 * one, r=one, v_leak=0 * one),
        "I": nir.I(r=one / np.float32(DT)),
        "CubaLI": nir.CubaLI(tau_mem=4e-3 * one, tau_syn=2e-3 * one, r=one, v_leak=0 * one),
        None: None,
    }
    for kind, node in ends.items():
        nodes = [identity(), lif(), nir.Affine(np.array([[0.5]]), one), *([] if node is None else [node])]
        network, params = from_nir(graph_of(*nodes), dt=DT)
        state, outputs = network.readout.neuron.initial_state(params.readout.neuron, 1), []
        for current in (1.0, 0.0):
            state, out = network.readout.neuron.step(params.readout.neuron, state, jnp.array([[current]]))
            outputs.append(float(out[0, 0]))
        expected = {"LI": [0.25, 0.1875], "I": [1.0, 1.0], "CubaLI": [0.125, 0.15625], None: [1.0, 0.0]}
        np.testing.assert_allclose(np.array(outputs), np.array(expected[kind]), rtol=1e-6)
        again = to_nir(network, params, dt=DT)
        assert type(again.nodes.get("neurons_readout")).__name__ == (kind or "NoneType")


def test_scale_and_weights_behind_weights_become_one() -> None:
    scale, half = nir.Scale(np.array([2.0, 3.0])), nir.Linear(0.5 * np.eye(2))
    _, own = layer_of(graph_of(scale, half, scale, identity(2), lif(2), shape=(2,)))
    np.testing.assert_array_equal(own.weights, np.diag([2.0, 4.5]))
    kernels = np.arange(4.0).reshape(2, 2, 1, 1)
    channels = nir.Scale(np.array([2.0, 3.0]).reshape(2, 1, 1) * np.ones((2, 4, 4)))
    convolution = nir.Conv2d((2, 2), kernels, 1, 0, 1, 1, np.ones(2))
    pool = nir.SumPool2d(np.array([2, 2]), np.array([2, 2]), np.array([0, 0]))
    _, own = layer_of(graph_of(channels, pool, convolution, lif(), shape=(2, 4, 4)))
    np.testing.assert_array_equal(own.weights[0, 0], kernels[:, :, 0, 0].T * np.array([[2.0], [3.0]]))


def test_neurons_without_weights_have_those_of_the_identity() -> None:
    spec, own = layer_of(graph_of(lif(3), shape=(3,)))
    np.testing.assert_array_equal(own.weights, np.eye(3))
    spec, own = layer_of(graph_of(lif(), shape=(3, 2, 2)))
    assert (own.weights.shape, spec.fitted.out_shape) == ((1, 1, 1, 3), (2, 2, 3))


def test_another_dt_and_changed_constants_count_more_than_metadata() -> None:
    network = NETWORKS["lif"]()
    params = params_of(network)
    graph = to_nir(network, params, dt=DT)
    decay = neurons.raw_to_decay(params.layers[0].neuron.raw_decay)
    _, own = layer_of(graph, dt=DT / 2)
    np.testing.assert_allclose(neurons.raw_to_decay(own.neuron.raw_decay), 1 - (1 - decay) / 2, rtol=1e-6)
    graph.nodes["neurons_0"].tau *= 3
    _, own = layer_of(graph)
    np.testing.assert_allclose(neurons.raw_to_decay(own.neuron.raw_decay), 1 - (1 - decay) / 3, rtol=1e-6)
