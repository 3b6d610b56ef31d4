"""Norms as part of the weights before them, for inference, exchange and other devices."""

import dataclasses
from collections.abc import Sequence
from typing import Any

from snnjax._types import Params, Stats, upcast
from snnjax.blocks.linear import Linear, LinearParams, rescaled
from snnjax.blocks.norm import Affine
from snnjax.graph.containers import Node


def without_norms(
    nodes: tuple[Node, ...], shapes: tuple[Any, ...], read: Sequence[str], params: Params, stats: Stats
) -> tuple[tuple[Node, ...], dict[str, str], dict[str, Any], dict[str, Any]]:
    """The nodes, the connection for each norm that is gone, the params and the stats.

    `shapes` are those that each node receives, `read` the nodes whose signals leave the network.
    """
    readers = [*(source for node in nodes for source in node.sources), *read]
    by_name = {node.name: node for node in nodes}
    taken: dict[str, str] = {}
    params, kept = dict(params), []
    for node, own in zip(nodes, shapes, strict=True):
        before = by_name.get(node.sources[0])
        is_norm = len(own) == 1 and isinstance(node.block.op(*own), Affine)
        if (
            not is_norm
            or before is None
            or not isinstance(before.block, Linear)
            or readers.count(before.name) > 1
        ):
            kept.append(node._replace(sources=tuple(taken.get(source, source) for source in node.sources)))
            continue
        factor, term = node.block.operands(params.pop(node.name, None), stats.get(node.name), own[0])
        block, plain = before.block.plain(params[before.name])
        params[before.name] = times_norm(plain, factor, term)
        taken[node.name] = before.name
        place = next(i for i, other in enumerate(kept) if other.name == before.name)
        kept[place] = kept[place]._replace(block=dataclasses.replace(block, bias=True))
    return tuple(kept), taken, params, {name: own for name, own in stats.items() if name not in taken}


def times_norm(params: LinearParams, factor: Any, term: Any) -> LinearParams:
    """Weights and bias whose currents are ``factor * currents + term``."""
    bias = term if params.bias is None else upcast(params.bias) * factor + term
    return LinearParams(rescaled(params.weights, factor), bias.astype(params.weights.dtype))
