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
from snnjax import neurons
from snnjax.nir import from_nir, to_nir
from snnjax.ops._connection import Connection
from tests.nir.graphs import DT, NETWORKS, graph_of, identity, lif, params_of


def without(
    graph: nir.NIRGraph, *edges: tuple[str, str], add: tuple[tuple[str, str], ...] = ()
) -> nir.NIRGraph:
    graph.edges = [edge for edge in graph.edges if edge not in edges] + list(add)
    return graph


class Unknown(nir.Scale):
    """A node of a newer NIR."""


def refused_chains() -> dict[str, tuple[Any, str]]:
    """Graphs that are not a chain, and their errors."""
    chain = [identity(), lif()]
    itself = graph_of(*chain)
    itself.nodes["n0"] = itself
    return {
        "number": (3, "be a nir.NIRGraph or a path, got 3. Read it with nir.read."),
        "empty": (nir.NIRGraph({}, []), "have one Input, got none. Add it."),
        "unknown": (
            graph_of(Unknown(np.ones(1))),
            "hold nodes that networks here support, got Unknown (n0).",
        ),
        "no node": (
            without(graph_of(*chain), add=(("n1", "x"),)),
            "connect nodes that it holds, got an edge",
        ),
        "cycle": (without(graph_of(*chain), ("n1", "output"), add=(("n0", "n0"),)), "be one chain"),
        "circle": (
            without(graph_of(identity(), identity(), lif()), ("n1", "n2"), add=(("n1", "n0"),)),
            "be one chain, got 2 edges to n0",
        ),
        "branch": (
            without(graph_of(*chain), add=(("input", "n1"),)),
            "be one chain, got 2 edges from input.",
        ),
        "lost": (without(graph_of(*chain, *chain), ("n1", "n2"), add=(("n1", "output"),)), "be one chain"),
        "itself": (itself, "nest at most 16 subgraphs"),
    }


def refused_connections() -> dict[str, tuple[Any, str]]:
    """Graphs with connections that networks here do not support, or that do not fit."""
    overlapping = nir.SumPool2d(np.array([3, 3]), np.array([2, 2]), np.array([0, 0]))
    dilated = nir.Conv2d((4, 4), np.ones((1, 1, 2, 2)), 1, 0, 2, 1, np.zeros(1))
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
        "text": (graph_of(nir.Linear(np.array([["a"]])), lif()), "hold numbers in n0.weight, got"),
        "huge": (
            graph_of(identity(), lif(), shape=(2**20, 2**20, 2**20)),
            "have an Input of shape [neurons], [channels",
        ),
        "pool": (
            graph_of(overlapping, lif(), shape=(1, 4, 4)),
            "pool windows that neither overlap nor are padded in n0",
        ),
        "dilation": (graph_of(dilated, lif(), shape=(1, 4, 4)), "have a dilation of 1 in n0, got (2, 2)."),
        "no axis": (
            graph_of(identity(4), lif(4), shape=(1, 2, 2)),
            "have one axis before n0, got [1, 2, 2].",
        ),
    }


def refused_neurons() -> dict[str, tuple[Any, str]]:
    """Graphs with neurons that networks here do not support, or not in that place."""
    chain = [identity(), lif()]
    odd = lif()
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
        "middle": (
            graph_of(identity(), nir.LI(*np.ones((3, 1))), *chain),
            "have non-spiking neurons only at its end, and none that feed back, got n1.",
        ),
        "silent": (graph_of(identity(), nir.LI(*np.ones((3, 1)))), "hold spiking neurons, got none."),
        "delay": (
            graph_of(identity(), nir.Delay(np.ones(1)), lif()),
            "have n1 before weights and pools, got it after them.",
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
    return {**refused_chains(), **refused_connections(), **refused_neurons()}


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


@pytest.mark.parametrize(
    "layer, text",
    [
        (snnjax.layer(2, neurons.adlif()), "hold only neurons that NIR has: lif, current_lif"),
        (
            snnjax.layer(2, neurons.refractory(neurons.lif(), 2)),
            "hold only neurons that NIR has: lif, current_lif",
        ),
        (
            snnjax.layer(2, neurons.lif()._replace(glif=neurons.lif(reset="zero").glif)),
            "hold only neurons that NIR has: lif, current_lif",
        ),
        (
            snnjax.layer(snnjax.conv2d(2, 2, strides=2, padding=[(0, 1), (0, 1)])),
            "pad both sides alike, got ((0, 1), (0, 1)) in layer 0.",
        ),
    ],
)
def test_network_is_refused(layer: Any, text: str) -> None:
    network = snnjax.network((2, 2, 1), [layer], snnjax.leaky_readout(1))
    params = network.init(jax.random.key(0))
    with pytest.raises(ValueError, match=re.escape(f"to_nir: `network` must {text}")):
        to_nir(network, params, dt=DT)


@dataclasses.dataclass(frozen=True)
class Upsampling:
    """A geometry that cannot be written as NIR."""

    words: str = "upsampling by 2"


@dataclasses.dataclass(frozen=True)
class Upsampled(Connection):
    """A connection of a kind that is added later."""

    upsampling: Upsampling = Upsampling()


def test_connection_of_a_new_kind_is_not_taken_for_dense_weights() -> None:
    network = NETWORKS["lif"]()
    params, (first, *others) = params_of(network), network.layers
    first = dataclasses.replace(first, connection=dataclasses.replace(first.fitted, connection=Upsampled()))
    network = dataclasses.replace(network, layers=(first, *others))
    text = (
        "to_nir: `network` must hold connections that are written as NIR, got upsampling by 2. "
        "Replace it with dense weights or a convolution."
    )
    with pytest.raises(ValueError, match=f"^{re.escape(text)}$"):
        to_nir(network, params, dt=DT)


def hostile(path: Path, kind: str) -> None:
    """A file that is not NIR, is damaged, or has a false header."""
    network = NETWORKS["lif"]()
    nir.write(path, to_nir(network, params_of(network), dt=DT))
    content = path.read_bytes()
    if kind == "text":
        path.write_text("not HDF5")
    elif kind == "empty":
        path.write_bytes(b"")
    elif kind == "cut":
        path.write_bytes(content[: len(content) // 2])
    else:
        with h5py.File(path, "r+") as file:
            nodes = file["node/nodes"]
            if kind == "huge":
                del nodes["weights_0/weight"]
                nodes.create_dataset("weights_0/weight", (2**20, 2**20), np.float32, chunks=(1024, 1024))
            elif kind == "circle":
                nodes["again"] = file["node"]
            elif kind == "elsewhere":
                nodes["other"] = h5py.ExternalLink("/etc/hostname", "/")
            elif kind == "fields":
                del nodes["neurons_0/tau"]
            elif kind == "type":
                del nodes["neurons_0/type"]
                nodes["neurons_0/type"] = "os.system"
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
