"""Exchange of networks with other libraries and with chips, by the neuromorphic intermediate representation (NIR).

`to_nir` makes a graph of a network, `from_nir` a network of a graph; ``nir.write`` makes a file of it. The package
`nir` comes with ``pip install snnjax[nir]``.

Reference:
    Pedersen et al. 2024, doi:10.1038/s41467-024-52259-9.
"""

import math
import numbers
import os
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np

from snnjax._check import check, check_choice
from snnjax._network import Network
from snnjax._network.specs import NetworkParams, check_params
from snnjax._quantised import any_quantised
from snnjax._types import RESETS
from snnjax.nir._chain import chain_of
from snnjax.nir._check import require
from snnjax.nir._conventions import CONVENTIONS
from snnjax.nir._export import graph_of
from snnjax.nir._file import read_graph
from snnjax.nir._import import network_of
from snnjax.nir._metadata import facts_of
from snnjax.nir._read_neurons import Reading
from snnjax.nir._time import METHODS
from snnjax.nir._write_neurons import Writing

_DTYPES = ("float32", "bfloat16", "float16", "float64")


def to_nir(network: Network, params: NetworkParams, *, dt: float, method: str = "euler") -> Any:
    """The NIR graph of a network: what `from_nir` reads, and other libraries and chips.

    NIR is in continuous time. A decay per step becomes a time constant, and gain 1 the resistance ``r`` that gives it::

        tau = dt / (1 - decay) ("euler")  or  -dt / log(decay) ("exact"),    r = 1 if normalize else 1 / (1 - decay)

    Integrate-and-fire neurons get ``r = 1 / dt``, delays ``delay * dt``. Images are [channels, height, width] there,
    and weights behind them follow. Neurons with the reset "none" are an integrator and a Threshold.

    What NIR cannot say is metadata, which `from_nir` reads and others leave aside: `dt`; the reset "subtract" (NIR
    knows the reset to a value alone); capacity, second threshold, surrogate by name, what is learned; raw decays and
    delays, masks. A surrogate of one's own is a function: it comes back as the usual one.

    Args:
        network: of `integrate_and_fire`, `lif` or `current_lif` layers.
        params: its parameters.
        dt: length of a step, in the unit of time that the reader expects: in most libraries seconds.
        method: how the reader makes steps of time constants: "euler" (snnTorch, Norse, Spyx) or "exact" (Sinabs).

    Returns:
        A `nir.NIRGraph`.

    Raises:
        ValueError: for what NIR has no node for: other neurons, padding that differs before and after, pools of one
            dimension, recurrent layers of images, weights of 8 bits; and for a `dt` that is not positive.

    Example:
        >>> import jax, snnjax
        >>> net = snnjax.network(3, [snnjax.layer(4)], snnjax.leaky_readout(2))
        >>> graph = to_nir(net, net.init(jax.random.key(0)), dt=1e-3)
        >>> list(graph.nodes)
        ['input', 'weights_0', 'neurons_0', 'weights_readout', 'neurons_readout', 'output']
    """
    good = isinstance(network, Network)
    check(good, "to_nir", "network", "be a network", repr(network)[:60], "Make it with snnjax.network(...)")
    check_params("to_nir", params, len(network.layers))
    _check_dt("to_nir", dt)
    check_choice("to_nir", "method", method, METHODS)
    way_out = "Pass those that quantise_network was given"
    check(not any_quantised(params), "to_nir", "params", "have floating weights", "int8 weights", way_out)
    dtype = params.layers[0].weights.dtype
    wide = np.dtype(np.float64 if dtype == jnp.float64 else np.float32)
    return graph_of(network, params, Writing(float(dt), method, wide), {"dtype": jnp.dtype(dtype).name})


def from_nir(
    graph: Any,
    *,
    dt: float | None = None,
    method: str | None = None,
    reset: str | None = None,
    writer: str = "nir",
) -> tuple[Network, NetworkParams]:
    """The network of a NIR graph, and its parameters.

    The nodes are one chain from Input to Output, with recurrence by edges and subgraphs inlined. In steps of `dt`::

        decay = 1 - dt / tau ("euler")  or  exp(-dt / tau) ("exact")
        v = decay v' + (1 - decay) (v_leak + r (weights s + bias)),    v' = v_reset where it spiked

    from `v_reset` on, or 0 without reset; Euler's gain is ``r dt / tau``. Through recurrent edges come the spikes of
    the previous step. Gains other than 1 and ``1 - decay``, Scale nodes, and weights behind weights become part of the
    weights, v_leak part of the bias. Neurons without spikes at the end are the read-out; a bare Affine there is a
    read-out that only passes on. An image is (height, width, channels) here and flat: bring data
    ``[time, batch, channels, height, width]`` in order by ``moveaxis(x, 2, -1).reshape(*x.shape[:2], -1)``.

    A graph of `to_nir`, read with the `dt` and `method` that it says, gives the outputs of its network bit for bit, in
    every dtype; read with another `dt`, or changed, it follows its time constants.

    Args:
        graph: a `nir.NIRGraph`, or the path of a file.
        dt: length of a step in the graph's unit of time; None where the metadata say it.
        method: "euler" or "exact"; None is what the metadata say, else Euler's.
        reset: "zero" or "subtract"; None is what the metadata say, else "zero", which NIR means.
        writer: "snntorch", "norse", "spyx" or "sinabs": compute as the neurons of the library that wrote the graph do
            by default, where that is not NIR (order of reset and spike, steps, gains that the file gets wrong).

    Raises:
        ValueError: for files that are none, are damaged or declare more than they hold; for unknown nodes, cycles that
            are no recurrence, shapes that do not fit, numbers that are not finite; for what networks here do not have;
            and without `dt`.

    Example:
        >>> import jax, nir, snnjax
        >>> net = snnjax.network(3, [snnjax.layer(4)], snnjax.leaky_readout(2))
        >>> nir.write("network.nir", to_nir(net, net.init(jax.random.key(0)), dt=1e-3))
        >>> same, params = from_nir("network.nir")
        >>> same.layers[0].num_neurons, params.layers[0].weights.shape
        (4, (3, 4))
    """
    import nir

    check_choice("from_nir", "method", method, (None, *METHODS))
    check_choice("from_nir", "reset", reset, (None, *(name for name in RESETS if name != "none")))
    check_choice("from_nir", "writer", writer, tuple(CONVENTIONS))
    if isinstance(graph, str | os.PathLike):
        graph = read_graph(Path(graph))
    good = isinstance(graph, nir.NIRGraph)
    require(good, "be a nir.NIRGraph or the path of a file", repr(graph)[:60], "Read it with nir.read")
    convention, about = CONVENTIONS[writer], graph.metadata if isinstance(graph.metadata, dict) else {}
    dt = about.get("dt", convention.dt) if dt is None else dt
    way_out = "Give the length of a step in the graph's unit of time, as in dt=1e-4"
    check(dt is not None, "from_nir", "dt", "be given for a graph that does not say it", None, way_out)
    _check_dt("from_nir", dt)
    said = about.get("method", convention.method)
    check_choice("from_nir", "graph.metadata['method']", said, METHODS)
    dtype = facts_of("the graph", graph).get("dtype", "float32")
    check_choice("from_nir", "graph.metadata['snnjax'].dtype", dtype, _DTYPES)
    reading = Reading(float(dt), method or said, convention, reset)
    return network_of(chain_of(graph), reading, jnp.dtype(dtype))


def _check_dt(op: str, dt: Any) -> None:
    good = isinstance(dt, numbers.Real) and 0 < float(dt) < math.inf
    check(good, op, "dt", "be a positive number", repr(dt), "Give the length of a step, as in dt=1e-4")
