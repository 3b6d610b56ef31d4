"""`network`: the graph of blocks, containers and readouts as a user writes them down."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from snnjax._arguments import explained
from snnjax._check import MAX_SIZE, check_integer, fail, short_repr
from snnjax._types import Unchecked
from snnjax.blocks.block import Shape
from snnjax.graph.containers import Graph, check_item, check_readouts
from snnjax.graph.network import Network
from snnjax.graph.recurrence import settled


@explained
def network(
    inputs: int | Sequence[int] | Mapping[str, Any], blocks: Any, readout: Unchecked = None
) -> Network:
    """Make a network from blocks and readouts.

    Args:
        inputs: number of inputs; or the shape of the image, (height, width, channels) or (length, channels), whose
            pixels they are, row-major; or a dict of several of these by name.
        blocks: blocks, neurons and containers (`layer`, `residual`, `parallel`, `sequential`, other networks) in
            order; each receives the signal of the one before it, or that of its `source`.
        readout: result of `leaky_readout` or `spiking_readout`, or any block; a dict of them by name; None for the
            signal of the last block.

    Raises:
        ValueError: if something is not a block, the shapes do not fit, or no block reads an input.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> import snnjax
        >>> net = snnjax.network(20, [snnjax.layer(32, capacity=8)], snnjax.leaky_readout(3))
        >>> params = net.init(jax.random.key(0))
        >>> output, state = net.apply(params, None, jnp.ones((5, 2, 20)))
        >>> output.output.shape, output.activity["layer_0/neuron"].shape
        ((5, 2, 3), (2, 32))
    """
    for argument, parts in (("inputs", inputs), ("readout", readout)):
        if isinstance(parts, Mapping) and not parts:
            fail(f"network: `{argument}` must hold one or more by name, got an empty dict. Name them.")
    given = inputs if isinstance(inputs, Mapping) else {"input": inputs}
    shapes = {name: _input_shape(own) for name, own in given.items()}
    if not isinstance(blocks, Sequence) or isinstance(blocks, str):
        fail(
            f"network: `blocks` must be a sequence of blocks, got {short_repr(blocks)}. Write [snnjax.layer(...)]."
        )
    own_name = getattr(readout, "name", None) or "readout"
    readouts = readout if isinstance(readout, Mapping) else {own_name: readout}
    for each in readouts.values():
        check_readouts([*blocks, each])
    graph = Graph(shapes)
    sources: tuple[str, ...] = (next(iter(shapes)),)
    for item in blocks:
        sources = (graph.add(item, *sources),)
    outputs = []
    for name, own in readouts.items():
        if own is not None:
            check_item("network", "readout", own)
        outputs.append((name, sources[0] if own is None else graph.add(own, *sources, name=name)))
    results = tuple((name, node) for name, node in graph.results.items() if name != node)
    nodes = settled(graph.finished())
    _check_read(shapes, {*(source for node in nodes for source in node.sources), *dict(outputs).values()})
    return Network(tuple(shapes.items()), nodes, tuple(outputs), not isinstance(readout, Mapping), results)


def _check_read(inputs: Mapping[str, Shape], read: set[str]) -> None:
    """Refuse inputs that nobody reads, such as a second one without `receiving`."""
    unread = next((name for name in inputs if name not in read), None)
    if unread is not None:
        hint = f'Give it a block with .receiving("{unread}"), or leave it out'
        fail(f"network: `inputs` must each be read by a block, got {unread!r} that none reads. {hint}.")


def _input_shape(given: Unchecked) -> Shape:
    shape = tuple(given) if isinstance(given, Iterable) else (given,)
    for length in shape:
        check_integer("network", "inputs", length, 0 if len(shape) == 1 else 1)
    count = math.prod(shape)
    if count > MAX_SIZE:
        fail(f"network: `inputs` must be at most {MAX_SIZE}, got {count}. Split the image.")
    return tuple(int(length) for length in shape)
