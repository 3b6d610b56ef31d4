"""Exchange of networks with other libraries and chips through the neuromorphic intermediate representation (NIR).

`to_nir` converts a network to a graph, `from_nir` a graph to a network; ``nir.write`` writes a graph to a file. The
package `nir` is installed with ``pip install snnjax[nir]``.

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

from snnjax._check import check_choice, fail, short_repr
from snnjax._neuron_table import RESETS
from snnjax.fixed_point import IntegerNetwork
from snnjax.graph.network import Network, Params, Stats, check_trained, params_dtype
from snnjax.nir._check import NIRNode
from snnjax.nir._conventions import CONVENTIONS
from snnjax.nir._export import graph_of
from snnjax.nir._file import read_graph
from snnjax.nir._import import network_of
from snnjax.nir._integers import integers_of as integers_of
from snnjax.nir._integers import written_integers
from snnjax.nir._metadata import facts_of
from snnjax.nir._read_neurons import Reading
from snnjax.nir._time import METHODS
from snnjax.nir._wiring import places_of
from snnjax.nir._write_neurons import Writing

_DTYPES = ("float32", "bfloat16", "float16", "float64")


def to_nir(
    network: Network,
    params: Params,
    *,
    dt: float,
    method: str = "euler",
    stats: Stats | None = None,
    integers: IntegerNetwork | None = None,
) -> NIRNode:
    r"""Convert a network to a NIR graph, for `from_nir` and for other libraries and chips.

    NIR uses continuous time. A decay :math:`\alpha` per step becomes a time constant, and a gain of 1 a resistance:

    .. math::

        \tau &= dt / (1 - \alpha) \text{ ("euler")} \quad \text{or} \quad -dt / \log \alpha \text{ ("exact")} \\
        r &= 1 \text{ if normalize, else } 1 / (1 - \alpha)

    Integrate-and-fire neurons get ``r = 1 / dt``, delays ``delay * dt``. Images become [channels, height, width], and
    the weights after them are reordered accordingly. Neurons with the reset "none" become an integrator and a
    Threshold. Signals that are added, as in `snnjax.residual`, become several edges to one node. Norms after
    connections become part of their weights, and dropout, which does nothing outside of training, is left out.

    What NIR cannot express is stored as metadata, which `from_nir` reads and others ignore: `dt`; the names of blocks;
    the reset "subtract" (NIR only knows the reset to a value); capacity, second threshold, named surrogate, what is
    learned; raw decays and delays, masks. A custom surrogate is a function and is replaced by the default one.

    Args:
        network: a network of `integrate_and_fire`, `lif`, `current_lif` and `leaky_integrator` neurons, with any
            branches that are added.
        params: its parameters.
        dt: length of a step, in the unit of time that the reader expects, which is seconds in most libraries.
        method: how the reader discretises time constants: "euler" (snnTorch, Norse, Spyx) or "exact" (Sinabs).
        stats: its stats, if it has norms, or neurons with constants that are drawn and not learned.
        integers: those of a chip, from `fixed_point.convert`, which become metadata; `integers_of` reads them.

    Returns:
        A `nir.NIRGraph`.

    Raises:
        ValueError: if NIR has no node for something (other neurons, joins that do not add, norms that are not after a
            connection, asymmetric padding, transposed convolutions, pools that are one-dimensional or take the maximum,
            dense recurrent connections of images, weights of 8 bits), or `dt` is not positive.

    Example:
        >>> import jax, snnjax
        >>> net = snnjax.network(3, [snnjax.layer(4)], snnjax.leaky_readout(2))
        >>> graph = to_nir(net, net.init(jax.random.key(0)), dt=1e-3)
        >>> list(graph.nodes)
        ['input', 'layer_0_connection', 'layer_0_neuron', 'readout_connection', 'readout_neuron', 'output']
    """
    check_trained("to_nir", network, params, stats)
    _check_dt("to_nir", dt)
    check_choice("to_nir", "method", method, METHODS)
    network, params, stats = network.fold(params, stats)
    dtype = params_dtype(params)
    stored = np.dtype(np.float64 if dtype == jnp.float64 else np.float32)
    writing = Writing(float(dt), method, stored)
    graph = graph_of(network, params, stats, writing, {"dtype": jnp.dtype(dtype).name})
    if integers is not None:
        graph.metadata |= written_integers(integers)
    return graph


def from_nir(
    graph: NIRNode,
    *,
    dt: float | None = None,
    method: str | None = None,
    reset: str | None = None,
    writer: str = "nir",
) -> tuple[Network, Params, Stats]:
    r"""Convert a NIR graph to a network, its parameters and its stats.

    Each node becomes a block of its name; several edges to a node add up, and subgraphs are inlined. Spikes may come
    back to their neurons, by edges through weights and delays; there are no other cycles. In steps of `dt`:

    .. math::

        \alpha &= 1 - dt / \tau \text{ ("euler")} \quad \text{or} \quad e^{-dt / \tau} \text{ ("exact")} \\
        v &= \alpha v' + (1 - \alpha) (v_\mathrm{leak} + r (W s + \mathrm{bias})),
            \qquad v' = v_\mathrm{reset} \text{ after a spike}

    starting from `v_reset`, or 0 without reset; Euler's gain is ``r dt / tau``. Recurrent edges carry the spikes of the
    previous step. Gains other than 1 and ``1 - decay`` and Scale nodes are merged into weights, v_leak into a bias; a
    node ``x/scale`` is added where there are none. Several Inputs and Outputs are those of a network with several, by
    their names. Images are (height, width, channels) here: reorder data ``[time, batch, channels, height, width]`` with
    ``moveaxis(x, 2, -1)``. What a Flatten passes on is in that order, too, as an output of the network.

    A graph from `to_nir`, read with its stored `dt` and `method`, gives the outputs of its network bit for bit, in
    every dtype; read with another `dt`, or modified, it follows its time constants.

    Constants that are equal for all neurons are numbers of the network, others are part of the stats, unless the
    metadata say that they are learned.

    Args:
        graph: a `nir.NIRGraph`, or the path of a file.
        dt: length of a step in the graph's unit of time; None if the metadata hold it.
        method: "euler" or "exact"; None takes that of the metadata, else "euler".
        reset: "zero" or "subtract"; None takes that of the metadata, else "zero", as defined by NIR.
        writer: "snntorch", "norse", "spyx" or "sinabs": compute like the default neurons of the library that wrote the
            graph, where these deviate from NIR (order of reset and spike, steps, gains that the file gets wrong).

    Raises:
        ValueError: if the file is not a NIR file, is damaged or declares more than it holds; if there are unknown
            nodes, cycles that are not recurrences, shapes that do not match, or non-finite numbers; if networks here do
            not support something; or if `dt` is missing.

    Example:
        >>> import jax, nir, snnjax
        >>> net = snnjax.network(3, [snnjax.layer(4)], snnjax.leaky_readout(2))
        >>> nir.write("network.nir", to_nir(net, net.init(jax.random.key(0)), dt=1e-3))
        >>> same, params, stats = from_nir("network.nir")
        >>> same.out_shape, params["layer_0/connection"].weights.shape, stats
        ((2,), (3, 4), {})
    """
    import nir

    check_choice("from_nir", "method", method, (None, *METHODS))
    check_choice("from_nir", "reset", reset, (None, *(name for name in RESETS if name != "none")))
    check_choice("from_nir", "writer", writer, tuple(CONVENTIONS))
    if isinstance(graph, str | os.PathLike):
        graph = read_graph(Path(graph))
    if not isinstance(graph, nir.NIRGraph):
        actual = short_repr(graph)
        fail(f"from_nir: `graph` must be a nir.NIRGraph or a path, got {actual}. Read it with nir.read.")
    convention, about = CONVENTIONS[writer], graph.metadata if isinstance(graph.metadata, dict) else {}
    dt = about.get("dt", convention.dt) if dt is None else dt
    if dt is None:
        hint = "Pass the length of a step in the graph's unit of time, as in dt=1e-4"
        fail(f"from_nir: `dt` must be given for a graph that does not hold it, got None. {hint}.")
    _check_dt("from_nir", dt)
    said = about.get("method", convention.method)
    check_choice("from_nir", "graph.metadata['method']", said, METHODS)
    dtype = facts_of("the graph", graph).get("dtype", "float32")
    check_choice("from_nir", "graph.metadata['snnjax'].dtype", dtype, _DTYPES)
    reading = Reading(float(dt), method or said, convention, reset)
    return network_of(places_of(graph), reading, jnp.dtype(dtype))


def _check_dt(op: str, dt: Any) -> None:
    if not (isinstance(dt, numbers.Real) and 0 < float(dt) < math.inf):
        fail(f"{op}: `dt` must be a positive number, got {dt!r}. Pass the length of a step, as in dt=1e-4.")
