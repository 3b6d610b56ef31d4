"""What NIR cannot express, what networks here do not support, and invalid files: each error names a hint."""

import dataclasses
import json
import re
from pathlib import Path
from typing import Any

import h5py
import jax
import nir
import numpy as np
import pytest

import snnjax
from snnjax import blocks, neurons
from snnjax.blocks._dense import Dense
from snnjax.nir import from_nir, to_nir
from tests.nir.graphs import DT, NETWORKS, graph_of, identity, lif, params_of


def without(
    graph: nir.NIRGraph, *edges: tuple[str, str], add: tuple[tuple[str, str], ...] = ()
) -> nir.NIRGraph:
    graph.edges = [edge for edge in graph.edges if edge not in edges] + list(add)
    return graph


class Unknown(nir.Scale):
    """A node of a newer NIR."""


def refused_graphs() -> dict[str, tuple[Any, str]]:
    """What is no graph, or one of other nodes, and the errors."""
    itself = graph_of(identity(), lif())
    itself.nodes["n0"] = itself
    return {
        "number": (3, "be a nir.NIRGraph or a path, got 3. Read it with nir.read."),
        "empty": (nir.NIRGraph({}, []), "have an Input, got none. Add it."),
        "unknown": (
            graph_of(Unknown(np.ones(1))),
            "hold nodes that networks here support, got Unknown (n0).",
        ),
        "itself": (itself, "nest at most 16 subgraphs"),
    }


def refused_wirings() -> dict[str, tuple[Any, str]]:
    """Graphs whose edges networks here do not support, and their errors."""
    chain = [identity(), lif()]
    pictures = graph_of(identity(), lif(), shape=(1,))
    pictures.nodes |= {"other": nir.Input(np.array([2])), "n2": identity(2)}
    pictures.edges += [("other", "n2"), ("n2", "n1")]
    twice = graph_of(*chain, loops=[("a", identity(), "n1"), ("b", identity(), "n1")])
    shared = graph_of(*chain, loops=[("a", identity(), "n1")])
    return {
        "no node": (
            without(graph_of(*chain), add=(("n1", "x"),)),
            "connect nodes that it holds, got an edge",
        ),
        "cycle": (
            without(graph_of(*chain), add=(("n0", "n0"),)),
            "have no cycles except from neurons that spike to themselves, got one at n0.",
        ),
        "circle": (
            without(graph_of(identity(), identity(), lif()), add=(("n1", "n0"),)),
            "have no cycles except from neurons that spike to themselves, got one at n",
        ),
        "no reader": (
            without(graph_of(*chain), ("n1", "output"), add=(("n0", "output"),)),
            "lead from Inputs to Outputs through every node, got 1 edge to n1 and 0 from it.",
        ),
        "no source": (
            without(graph_of(*chain, *chain), ("n1", "n2"), add=(("n1", "output"),)),
            "lead from Inputs to Outputs through every node, got 0 edges to n2 and 1 from it.",
        ),
        "sum": (pictures, "add signals of one shape at n1, got [1] and [2]."),
        "two ways back": (twice, "have one recurrent path per layer, got two from n1 to itself."),
        "shared way back": (
            without(shared, add=(("input", "a"),)),
            "have separate recurrent weights after n1, got edges from n1 and input to a.",
        ),
    }


def refused_connections() -> dict[str, tuple[Any, str]]:
    """Graphs with connections that networks here do not support, or that do not fit."""
    padded = nir.SumPool2d(np.array([2, 2]), np.array([2, 2]), np.array([2, 2]))
    dilated = nir.Conv2d((4, 4), np.ones((1, 1, 2, 2)), 1, 0, 4, 1, np.zeros(1))
    return {
        "weights": (
            graph_of(identity(2), lif(2)),
            "have weights [outputs, inputs] = [any, 1] in n0, got [2, 2].",
        ),
        "constants": (graph_of(identity(), lif(2)), "have values of shape [1] in n1.tau, got [2]."),
        "nan": (
            graph_of(nir.Linear(np.full((1, 1), np.nan)), lif()),
            "hold finite numbers in n0.weight, got nan.",
        ),
        "mask": (
            graph_of(nir.Linear(np.ma.array([[1.0]], mask=[[True]])), lif()),
            "hold no masked entries in n0.weight, got a MaskedArray.",
        ),
        "text": (graph_of(nir.Linear(np.array([["a"]])), lif()), "hold numbers in n0.weight, got"),
        "huge": (
            graph_of(identity(), lif(), shape=(2**20, 2**20, 2**20)),
            "have the shape [neurons], [channels, length] or [channels, height, width] in input",
        ),
        "pool": (
            graph_of(padded, lif(), shape=(1, 4, 4)),
            "pad windows in n0 by less than their size, (2, 2), got (2, 2). Pad less.",
        ),
        "dilation": (
            graph_of(dilated, lif(), shape=(1, 4, 4)),
            "have a kernel in n0 of at most the padded [4, 4], got [5, 5].",
        ),
        "no axis": (
            graph_of(identity(4), lif(4), shape=(1, 2, 2)),
            "have one axis before n0, got [1, 2, 2].",
        ),
    }


def refused_neurons() -> dict[str, tuple[Any, str]]:
    """Graphs with neurons that networks here do not support, or not in that place."""
    odd, ones = lif(), np.ones((2, 2, 2))
    odd.metadata = {"snnjax": json.dumps({"arguments": {"surrogate": {"name": "none", "slope": 1.0}}})}
    current = nir.CubaLIF(*(np.array([value]) for value in (2e-3, 4e-3, 1.0, 0.1, 0.5)))
    return {
        "tau": (
            graph_of(identity(), lif(tau=np.array([1e-4]))),
            "have time constants of at least dt = 0.001 in n1.tau",
        ),
        "negative": (
            graph_of(identity(), lif(tau=-np.ones(1))),
            "have time constants above 0 in n1.tau, got -1.0.",
        ),
        "integrators": (
            without(graph_of(identity(), nir.LI(*np.ones((3, 1)))), add=(("n1", "n1"),)),
            "have no cycles except from neurons that spike to themselves, got one at n1.",
        ),
        "pixels": (
            graph_of(nir.LI(ones, ones, np.arange(8.0).reshape(2, 2, 2)), shape=(2, 2, 2)),
            "scale or shift images before n0 by channels, got pixels that differ.",
        ),
        "not to itself": (
            graph_of(identity(2), lif(2), shape=(2,), loops=[("a", nir.Linear(np.ones((3, 2))), "n1")]),
            "feed n1 back to itself, got weights from [2] to [3].",
        ),
        "rest": (
            graph_of(identity(), current),
            "have a v_leak of n1 equal to its initial membrane, got [0.1].",
        ),
        "metadata": (
            graph_of(identity(), odd),
            "hold what to_nir wrote in the metadata of n1, got name = 'none'. ",
        ),
    }


def refused() -> dict[str, tuple[Any, str]]:
    return {**refused_graphs(), **refused_wirings(), **refused_connections(), **refused_neurons()}


@pytest.mark.parametrize("case", refused())
def test_graph_is_refused(case: str) -> None:
    graph, text = refused()[case]
    with pytest.raises(ValueError, match=re.escape("from_nir: `graph` must ")) as caught:
        from_nir(graph, dt=DT)
    assert text in str(caught.value)
    assert str(caught.value).endswith(".")


def test_dt_is_asked_for() -> None:
    expected = (
        "from_nir: `dt` must be given for a graph that does not hold it, got None. "
        "Pass the length of a step in the graph's unit of time, as in dt=1e-4."
    )
    with pytest.raises(ValueError, match=f"^{re.escape(expected)}$"):
        from_nir(graph_of(identity(), lif()))
    for dt in (0, -1.0, np.inf, "1"):
        with pytest.raises(ValueError, match="from_nir: `dt` must be a positive number"):
            from_nir(graph_of(identity(), lif()), dt=dt)


def refused_networks() -> dict[str, tuple[Any, str]]:
    """Items of networks of images that NIR does not have, and their errors."""
    other = dataclasses.replace(neurons.lif(), glif=neurons.lif(reset="zero").glif)
    two = blocks.join("add").receiving("same", "flat")
    return {
        "adlif": (snnjax.layer(2, neurons.adlif()), "hold only neurons that NIR has: lif, current_lif"),
        "refractory": (
            snnjax.layer(2, neurons.refractory(neurons.lif(), 2)),
            "hold only neurons that NIR has: lif, current_lif",
        ),
        "other equation": (snnjax.layer(2, other), "hold only neurons that NIR has: lif, current_lif"),
        "padding": (
            snnjax.layer(snnjax.conv2d(2, 2, strides=2, padding=[(0, 1), (0, 1)])),
            "pad both sides alike, got ((0, 1), (0, 1)) in 'layer_0/connection'. Pad them so, or use an odd kernel.",
        ),
        "layer_norm": (
            snnjax.layer(2, norm=blocks.layer_norm()),
            "hold blocks that NIR has nodes for, got layer_norm in 'layer_0/norm'. Replace it, or save the network "
            "in a checkpoint of snnjax.train.",
        ),
        "norm of inputs": (blocks.batch_norm(), "hold blocks that NIR has nodes for, got batch_norm in"),
        "join": (
            snnjax.residual(snnjax.layer(snnjax.conv2d(1, 1)), join="either"),
            "hold blocks that NIR has nodes for, got either in 'residual_0/join'.",
        ),
        "new kind": (Doubled(2, name="first"), "hold blocks that NIR has nodes for, got dense in 'first'."),
        "twice": (
            [snnjax.dense(2).named("same"), snnjax.flatten().named("flat"), two],
            "add a signal once, got 'sequential_0/add_0', which adds one to itself. Put a block on one of the paths.",
        ),
        "orders": (
            [snnjax.layer(snnjax.conv2d(2, 1)), snnjax.flatten(), snnjax.residual(snnjax.dense(8))],
            "add neurons in one order, got a flattened image and others in 'sequential_0/residual_0/join'.",
        ),
        "recurrent": (
            snnjax.layer(snnjax.conv2d(1, 1), recurrent=snnjax.dense(4)),
            "have recurrent connections of delays and weights, dense ones for flat neurons, got dense in "
            "'layer_0/recurrent'. Replace it.",
        ),
    }


@dataclasses.dataclass(frozen=True)
class Doubled(Dense):
    """A connection of a kind that is added later."""

    mask: Any = None

    def used(self, weights):
        return 2 * weights


def refused_loops() -> dict[str, tuple[Any, str]]:
    """Loops that NIR has, and we do not read."""
    return {
        "feedback": (
            [
                snnjax.layer(4, recurrent=[snnjax.blocks.late("top", 2), snnjax.dense(4)]),
                snnjax.layer(2).named("top"),
            ],
            "return spikes to their own neurons, got 'sequential_0/layer_0/late'. "
            "Feed spikes back to their own layer alone.",
        ),
        "late": (
            snnjax.layer(4, recurrent=[snnjax.blocks.late("layer_0", 4, steps=3), snnjax.dense(4)]),
            "return spikes after one step, got 3 in 'layer_0/late'. Delay them by axonal(...) behind it.",
        ),
    }


@pytest.mark.parametrize("case", refused_networks() | refused_loops())
def test_network_is_refused(case: str) -> None:
    item, text = (refused_networks() | refused_loops())[case]
    network = snnjax.network((2, 2, 1), [item], snnjax.leaky_readout(1))
    params, stats = params_of(network), network.initial_stats(jax.random.key(0))
    with pytest.raises(ValueError, match=re.escape(f"to_nir: `network` must {text}")):
        to_nir(network, params, dt=DT, stats=stats)


def test_one_dimensional_pools_are_refused() -> None:
    network = snnjax.network((4, 2), [snnjax.sum_pool(2), snnjax.layer(3)])
    text = "to_nir: `network` must pool in two dimensions, as NIR does, got one in 'sum_pool_0'. Pool only images."
    with pytest.raises(ValueError, match=f"^{re.escape(text)}$"):
        to_nir(network, params_of(network), dt=DT)


def test_maximum_pools_are_refused() -> None:
    network = snnjax.network((4, 4, 2), [snnjax.max_pool(2), snnjax.layer(3)])
    text = (
        "to_nir: `network` must pool by sum or mean, as NIR does, got max_pool in 'max_pool_0'. Replace it."
    )
    with pytest.raises(ValueError, match=f"^{re.escape(text)}$"):
        to_nir(network, params_of(network), dt=DT)


def test_transposed_convolutions_are_refused() -> None:
    network = snnjax.network((4, 4, 2), [snnjax.layer(blocks.conv2d_transpose(2, 3, strides=2))])
    text = (
        "to_nir: `network` must have no transposed convolutions, as NIR has none, got one in "
        "'layer_0/connection'. Replace it."
    )
    with pytest.raises(ValueError, match=f"^{re.escape(text)}$"):
        to_nir(network, params_of(network), dt=DT)


def test_statistics_are_asked_for() -> None:
    network = snnjax.network(3, [snnjax.layer(3, norm=blocks.batch_norm())])
    text = "to_nir: `stats` must hold those of layer_0/norm, got none. Pass stats= those of the training."
    with pytest.raises(ValueError, match=f"^{re.escape(text)}$"):
        to_nir(network, params_of(network), dt=DT)


def test_names_that_two_nodes_claim_are_refused() -> None:
    network = NETWORKS["branches"]()
    for node, text in (("others", "the name 'images'"), ("early", "the name 'classes'")):
        graph = to_nir(network, params_of(network), dt=DT)
        graph.nodes[node].metadata = {"snnjax": json.dumps({"name": text.split("'")[1]})}
        text = f"from_nir: `graph` must hold what to_nir wrote in the metadata of {node}, got {text}. "
        with pytest.raises(ValueError, match=f"^{re.escape(text)}"):
            from_nir(graph)


def hostile(path: Path, kind: str) -> None:
    """A file that is not NIR, is damaged, or has a false header."""
    network = NETWORKS["lif"]()
    nir.write(path, to_nir(network, params_of(network), dt=DT))
    content = path.read_bytes()
    if kind == "text":
        path.write_text("not HDF5", encoding="utf-8")
    elif kind == "empty":
        path.write_bytes(b"")
    elif kind == "cut":
        path.write_bytes(content[: len(content) // 2])
    else:
        with h5py.File(path, "r+") as file:
            nodes = file["node/nodes"]
            if kind == "huge":
                del nodes["layer_0_connection/weight"]
                nodes.create_dataset(
                    "layer_0_connection/weight", (2**20, 2**20), np.float32, chunks=(1024, 1024)
                )
            elif kind == "circle":
                nodes["again"] = file["node"]
            elif kind == "elsewhere":
                nodes["other"] = h5py.ExternalLink("/etc/hostname", "/")
            elif kind == "fields":
                del nodes["layer_0_neuron/tau"]
            elif kind == "type":
                del nodes["layer_0_neuron/type"]
                nodes["layer_0_neuron/type"] = "os.system"
            elif kind == "no node":
                del file["node"]


@pytest.mark.parametrize(
    "kind, text",
    [
        ("missing", "be the path of a .nir file"),
        ("text", "be a valid .nir file, got OSError"),
        ("empty", "be a valid .nir file, got OSError"),
        ("cut", "be a valid .nir file, got"),
        ("huge", "be a valid .nir file, got ValueError: float32 [1048576, 1048576] declared at"),
        ("circle", "be a valid .nir file, got ValueError: groups nested deeper than 64"),
        ("elsewhere", "be a valid .nir file, got ValueError: a link out of its place at"),
        ("fields", "hold nodes as nir writes them, got"),
        ("type", "hold nodes as nir writes them, got"),
        ("no node", "hold nodes as nir writes them, got"),
    ],
)
def test_file_is_refused(kind: str, text: str, tmp_path: Path) -> None:
    path = tmp_path / "file.nir"
    if kind != "missing":
        hostile(path, kind)
    with pytest.raises(ValueError, match=re.escape(f"from_nir: `graph` must {text}")) as caught:
        from_nir(path)
    assert str(caught.value).endswith(".")
