"""A network in words: a line for each block, and a line for each call that runs it."""

import math
from collections.abc import Mapping, Sequence

import jax

from snnjax._types import Params
from snnjax.blocks.block import Shape
from snnjax.graph.containers import Node
from snnjax.graph.init import params_like
from snnjax.graph.segments import Fused, Looped, Segment


def in_words(nodes: tuple[Node, ...], segments: Sequence[Segment], note: str | None) -> str:
    """Segments, a line for each call, and one for what the default device's platform says."""
    lines = []
    for segment in segments:
        names = [nodes[index].name for index in segment.nodes]
        way = f"{_path(segment)}: {' > '.join(names)}"
        lines.append(way if isinstance(segment, Fused) else f"{way} ({segment.why})")
    lines += [] if note is None else [note]
    return "\n".join(lines)


def _path(segment: Segment) -> str:
    return "fused" if isinstance(segment, Fused) else "loop" if isinstance(segment, Looped) else "alone"


def card(
    inputs: tuple[tuple[str, Shape], ...],
    nodes: tuple[Node, ...],
    in_shapes: tuple[tuple[Shape, ...], ...],
    shapes: Mapping[str, Shape],
    segments: Sequence[Segment],
) -> str:
    """A line for each input and block: name, kind, shape of the signal, number of parameters, path."""
    paths = {node: segment for segment in segments for node in segment.nodes}
    params: Params = params_like(nodes, in_shapes)
    rows = [(name, "", str(shape), "", "") for name, shape in inputs]
    for place, node in enumerate(nodes):
        count = sum(math.prod(leaf.shape) for leaf in jax.tree.leaves(params.get(node.name)))
        counted, shape = f"{count:,}" if count else "", str(shapes[node.name])
        rows.append((node.name, node.block.kind, shape, counted, _path(paths[place])))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    pads = (str.ljust, str.ljust, str.ljust, str.rjust, str.ljust)
    lines = (zip(row, widths, pads, strict=True) for row in rows)
    return "\n".join("  ".join(pad(word, width) for word, width, pad in line).rstrip() for line in lines)
