"""`fold`: norms as part of the weights before them, for inference, exchange and other devices."""

import dataclasses
from typing import Any

from snnjax._types import upcast
from snnjax.blocks.linear import Linear, LinearParams, rescaled
from snnjax.blocks.norm import Affine
from snnjax.graph.network import Network, Params, Stats


def fold(network: Network, params: Params, stats: Stats) -> tuple[Network, Params, Stats]:
    """The network without the norms directly behind a connection that nobody else reads, equal up to rounding.

    `Network.apply` computes it so by itself in evaluation; a folded network is for exchange, and for networks that
    are stored.

    Example:
        >>> import jax, snnjax
        >>> from snnjax import blocks
        >>> net = snnjax.network(20, [snnjax.layer(8, norm=blocks.batch_norm())], snnjax.leaky_readout(3))
        >>> params, stats = net.init(jax.random.key(0)), net.init_stats(jax.random.key(0))
        >>> net, params, stats = snnjax.fold(net, params, stats)
        >>> [node.name for node in net.nodes], stats
        (['layer_0/connection', 'layer_0/neuron', 'readout/connection', 'readout/neuron'], {})
    """
    readers = [source for node in network.nodes for source in node.sources] + [
        node for _, node in network.outputs
    ]
    by_name = {node.name: node for node in network.nodes}
    folded: dict[str, str] = {}  # the connection for each norm that is gone
    params, nodes = dict(params), []
    for node, shapes in zip(network.nodes, network.in_shapes, strict=True):
        before = by_name.get(node.sources[0])
        is_norm = len(shapes) == 1 and isinstance(node.block.op(*shapes), Affine)
        if (
            is_norm
            and before is not None
            and isinstance(before.block, Linear)
            and readers.count(before.name) == 1
        ):
            factor, term = node.block.operands(params.pop(node.name, None), stats.get(node.name), shapes[0])
            params[before.name] = times_norm(params[before.name], factor, term)
            folded[node.name] = before.name
            place = next(i for i, own in enumerate(nodes) if own.name == before.name)
            nodes[place] = nodes[place]._replace(block=dataclasses.replace(before.block, bias=True))
            continue
        nodes.append(node._replace(sources=tuple(folded.get(source, source) for source in node.sources)))
    renamed = {
        name: tuple((own, folded.get(node, node)) for own, node in pairs)
        for name, pairs in (("outputs", network.outputs), ("results", network.results))
    }
    left = {name: own for name, own in stats.items() if name not in folded}
    return dataclasses.replace(network, nodes=tuple(nodes), **renamed), params, left


def times_norm(params: LinearParams, factor: Any, term: Any) -> LinearParams:
    """Weights and bias whose currents are ``factor * currents + term``."""
    bias = term if params.bias is None else upcast(params.bias) * factor + term
    return LinearParams(rescaled(params.weights, factor), bias.astype(params.weights.dtype))
