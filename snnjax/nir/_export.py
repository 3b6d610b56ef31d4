"""Convert a network and its parameters to a graph."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import PyTree

from snnjax._check import fail
from snnjax.blocks._dense import Dense
from snnjax.blocks.block import Block
from snnjax.blocks.conv import Convolve
from snnjax.blocks.delay import Axonal
from snnjax.blocks.pool import Flatten, Pool
from snnjax.blocks.readout import Integrator
from snnjax.blocks.spiking import Spiking
from snnjax.graph.containers import Node
from snnjax.graph.network import Network, Params, Stats
from snnjax.graph.recurrence import Recurrence, given_blocks, recurrences
from snnjax.nir._check import NIRNode
from snnjax.nir._layout import Layout, Shape, channels_first
from snnjax.nir._metadata import written
from snnjax.nir._write_neurons import Writing, nodes_of


class _Written(NamedTuple):
    """The signal of a node of the network in the graph."""

    names: tuple[str, ...]  # of the nodes whose signals add up to it
    layout: Layout
    join: str | None = None  # the block that adds them


class _Graph:
    """A graph under construction."""

    def __init__(self, network: Network, params: Params, stats: Stats, writing: Writing) -> None:
        self.network, self.params, self.stats, self.writing = network, params, stats, writing
        self.nodes: dict[str, Any] = {}
        self.edges: list[tuple[str, str]] = []
        self.signals: dict[str, _Written] = {}  # by the names of inputs and nodes of the network
        found, nodes = recurrences(network.nodes), network.nodes
        self.recurrences = {nodes[index].name: own for index, own in found.items()}
        # What is written with the neurons: all that their spikes pass on their way back.
        self.returning = {nodes[place].name for own in found.values() for place in own.before[:-1]}

    def add(self, name: str, node: NIRNode, sources: tuple[str, ...]) -> str:
        """Add a node that receives `sources`; return its name, in which no library minds a character."""
        free = name.replace("/", "_").replace(".", "_")
        while free in self.nodes:
            free += "_"
        self.nodes[free] = node
        self.edges += [(source, free) for source in sources]
        return free

    def add_input(self, name: str, shape: Shape) -> None:
        """Add an input of the network."""
        import nir

        node = nir.Input(input_type={"input": _axes(channels_first(shape))}, metadata=written({"name": name}))
        self.signals[name] = _Written((self.add(name, node, ()),), Layout.of(shape))

    def add_output(self, name: str | None, source: str) -> None:
        """Add an output of the network; the only one has no name."""
        import nir

        signal = self.signals[source]
        facts = {} if name is None else {"name": name}
        node = nir.Output(
            output_type={"output": _axes(signal.layout.theirs)}, metadata=written(facts | _join(signal))
        )
        self.add("output" if name is None else name, node, signal.names)

    def take(self, node: Node) -> None:
        """Add a node of the network."""
        if node.name in self.returning:
            return
        late = [
            source for source in node.sources if source not in self.signals | dict.fromkeys(self.returning)
        ]
        if late:
            hint = "Feed spikes back to their own layer alone"
            fail(f"to_nir: `network` must return spikes to their own neurons, got {node.name!r}. {hint}.")
        signals = [self.signals[source] for source in node.sources if source not in self.returning]
        if node.block.is_skipped(train=False):
            self.signals[node.name] = signals[0]
        elif node.is_sum:
            self.signals[node.name] = signals[0] if len(signals) == 1 else _sum(node.name, signals)
        else:
            writer = _WRITERS.get(type(node.block))
            if writer is None:
                fail(
                    f"to_nir: `network` must hold blocks that NIR has nodes for, got {node.block.kind} in "
                    f"{node.name!r}. Replace it, or save the network in a checkpoint of snnjax.train."
                )
            self.signals[node.name] = writer(self, node, signals[0])


def graph_of(
    network: Network, params: Params, stats: Stats, writing: Writing, facts: dict[str, Any]
) -> NIRNode:
    """The graph: a node for each block but joins, which are several edges to one node."""
    import nir

    graph = _Graph(network, params, stats, writing)
    for name, shape in network.inputs:
        graph.add_input(name, shape)
    for node in network.nodes:
        graph.take(node)
    for name, source in network.outputs:
        graph.add_output(None if network.is_single else name, source)
    about = {"dt": writing.dt, "method": writing.method, **written(facts)}
    return nir.NIRGraph(nodes=graph.nodes, edges=graph.edges, metadata=about)


def _axes(shape: Shape) -> np.ndarray:
    return np.array(shape)


def _join(signal: _Written) -> dict[str, Any]:
    return {} if signal.join is None else {"join": signal.join}


def _facts(node: Node, signal: _Written) -> dict[str, Any]:
    """What the metadata say of every node."""
    return {"name": node.name, **_join(signal)}


def _sum(name: str, signals: list[_Written]) -> _Written:
    """The sum of signals, as several edges to those who receive it."""
    names = tuple(each for signal in signals for each in signal.names)
    first = signals[0].layout
    if len(set(names)) < len(names):
        hint = "Put a block on one of the paths"
        fail(f"to_nir: `network` must add a signal once, got {name!r}, which adds one to itself. {hint}.")
    if not all(signal.layout.fits(first) for signal in signals):
        fail(
            f"to_nir: `network` must add neurons in one order, got a flattened image and others in {name!r}. "
            "Flatten after the join."
        )
    return _Written(names, first, name)


def _flatten(graph: _Graph, node: Node, signal: _Written) -> _Written:
    image, shape = signal.layout.image, graph.network.shapes[node.name]
    if len(signal.layout.theirs) == 1:
        return signal
    name = _add_flatten(graph, node.name, signal, _facts(node, signal))
    return _Written((name,), Layout(shape, image, is_flat=True))


def _add_flatten(graph: _Graph, name: str, signal: _Written, facts: dict[str, Any]) -> str:
    import nir

    # Start and end are explicit: NIR's default does not flatten the channels.
    first = {"input": _axes(signal.layout.theirs)}
    node = nir.Flatten(input_type=first, start_dim=0, end_dim=-1, metadata=written(facts))
    return graph.add(name, node, signal.names)


def _pool(graph: _Graph, node: Node, signal: _Written) -> _Written:
    import nir

    pooling = node.block.pooling(signal.layout.shape)  # type: ignore[attr-defined]
    if len(pooling.window) != 2:
        fail(
            f"to_nir: `network` must pool in two dimensions, as NIR does, got one in {node.name!r}. "
            "Pool only images."
        )
    if pooling.how == "max":
        fail(
            f"to_nir: `network` must pool by sum or mean, as NIR does, got max_pool in {node.name!r}. "
            "Replace it."
        )
    make, window = nir.AvgPool2d if pooling.how == "mean" else nir.SumPool2d, np.array(pooling.window)
    if any(low != high for low, high in pooling.padding):
        fail(
            f"to_nir: `network` must pad both sides alike, got {pooling.padding} in {node.name!r}. Pad them so."
        )
    fields = {"stride": pooling.strides, "padding": [low for low, _ in pooling.padding]}
    arrays = {name: np.array(values) for name, values in fields.items()}
    made = make(kernel_size=window, **arrays, metadata=written(_facts(node, signal)))
    return _Written((graph.add(node.name, made, signal.names),), Layout.of(pooling.out_shape))


def _delay(graph: _Graph, node: Node, signal: _Written) -> _Written:
    facts = _facts(node, signal)
    held = graph.params.get(node.name, graph.stats.get(node.name))
    made = delay_node(node.block, held, signal.layout, graph.writing, facts)
    return _Written((graph.add(node.name, made, signal.names),), signal.layout)


def delay_node(block: Any, held: PyTree, layout: Layout, writing: Writing, facts: dict[str, Any]) -> NIRNode:
    """Delays; `held` are their params or stats."""
    import nir

    steps = np.asarray(block.delays(held, layout.shape), np.float64)
    about = {
        "max_delay": block.max_delay,
        "min_delay": block.min_delay,
        "initial": list(block.initial),
        "learn": block.learn,
        "per": block.per,
    }
    raw = {} if held is None else {"raw_delay": np.asarray(held.raw_delay, writing.dtype)}
    metadata = written({**facts, "delays": about}, **raw)
    return nir.Delay(delay=layout.written(steps * writing.dt).astype(writing.dtype), metadata=metadata)


def _weights(graph: _Graph, node: Node, signal: _Written) -> _Written:
    facts, layout, shape = _facts(node, signal), signal.layout, graph.network.shapes[node.name]
    sources = signal.names
    if isinstance(node.block, Dense) and len(layout.theirs) > 1:
        name = _add_flatten(graph, f"{node.name}/flatten", signal, {"added": True, **_join(signal)})
        sources, facts = (name,), {"name": node.name}
    made = weights_node(node.name, node.block, graph.params[node.name], layout, graph.writing, facts)
    return _Written((graph.add(node.name, made, sources),), Layout.of(shape))


def weights_node(
    where: str, block: Any, params: PyTree, layout: Layout, writing: Writing, facts: dict[str, Any]
) -> NIRNode:
    """Dense weights or a convolution."""
    import nir

    weights = np.asarray(block.used(params.weights), writing.dtype)
    bias = None if params.bias is None else np.asarray(params.bias, writing.dtype)
    if isinstance(block, Convolve):
        return _convolution(where, block.geometry(layout.shape), weights, bias, facts)
    mask = None if block.mask is None else block.mask.entries.astype(np.uint8)
    metadata, matrix = written(facts, mask=mask), np.ascontiguousarray(weights[layout.order].T)
    if bias is None:
        return nir.Linear(weight=matrix, metadata=metadata)
    return nir.Affine(weight=matrix, bias=bias, metadata=metadata)


def _convolution(
    where: str, geometry: Any, weights: np.ndarray, bias: np.ndarray | None, facts: dict[str, Any]
) -> NIRNode:
    import nir

    if any(gap != 1 for gap in geometry.input_dilation):
        fail(
            f"to_nir: `network` must have no transposed convolutions, as NIR has none, got one in {where!r}. "
            "Replace it."
        )
    space = len(geometry.kernel)
    kernels = np.ascontiguousarray(np.moveaxis(weights, (-1, -2), (0, 1)))
    lengths = geometry.shape[:-1]
    common = {
        "weight": kernels,
        "groups": geometry.groups,
        "bias": np.zeros(geometry.channels_out, weights.dtype) if bias is None else bias,
        "metadata": written({**facts, "bias": bias is not None}),
    }
    padding = _padding(where, geometry)
    if space == 1:
        single = padding if isinstance(padding, str) else padding[0]
        steps = {"stride": geometry.strides[0], "dilation": geometry.dilation[0]}
        node = nir.Conv1d(input_shape=lengths[0], padding=single, **steps, **common)
    else:
        steps = {"stride": geometry.strides, "dilation": geometry.dilation}
        node = nir.Conv2d(input_shape=(lengths[0], lengths[1]), padding=padding, **steps, **common)
    # NIR 1.0.8 assumes square kernels and ungrouped channels.
    node.input_type = {"input": _axes(channels_first(geometry.shape))}
    node.output_type = {"output": _axes(channels_first(geometry.out_shape))}
    return node


def _padding(where: str, geometry: Any) -> Any:
    """Zeros on each side, if symmetric; else "same", if that is equivalent."""
    if all(low == high for low, high in geometry.padding):
        return tuple(low for low, _ in geometry.padding)
    same = tuple(((k - 1) // 2, k - 1 - (k - 1) // 2) for k in geometry.spans)
    if not (geometry.padding == same and all(stride == 1 for stride in geometry.strides)):
        hint = "Pad them so, or use an odd kernel"
        fail(f"to_nir: `network` must pad both sides alike, got {geometry.padding} in {where!r}. {hint}.")
    return "same"


def _neurons(graph: _Graph, node: Node, signal: _Written) -> _Written:
    block: Any = node.block
    facts, held = _facts(node, signal), graph.params.get(node.name)
    if isinstance(block, Spiking):
        facts |= {"capacity": block.capacity, "second_threshold": block.second_threshold}
    held = block.neuron.merged(held, graph.stats.get(node.name))
    sources, names = signal.names, [node.name, f"{node.name}/threshold"]
    made = nodes_of(node.name, block.neuron, held, signal.layout, graph.writing, facts)
    written_names = []
    for name, each in zip(names, made, strict=False):
        sources = (graph.add(name, each, sources),)
        written_names += sources
    if node.name in graph.recurrences:
        _add_recurrence(graph, graph.recurrences[node.name], written_names, signal.layout)
    return _Written(sources, signal.layout)


def _add_recurrence(graph: _Graph, own: Recurrence, names: list[str], layout: Layout) -> None:
    """Feed the spikes of neurons back to them."""
    nodes = graph.network.nodes
    signal, last, blocks = layout, names[-1], given_blocks(nodes, own)
    late: Any = nodes[own.late].block
    if late.steps > 1 and blocks == [nodes[place].block for place in own.blocks]:
        fail(
            f"to_nir: `network` must return spikes after one step, got {late.steps} in {nodes[own.late].name!r}. "
            "Delay them by axonal(...) behind it."
        )
    for place, block in zip(own.blocks, blocks, strict=True):
        node = nodes[place]
        facts: dict[str, Any] = {"name": node.name}
        arrays: Any = graph.params.get(node.name, graph.stats.get(node.name))
        if type(block) is Axonal:
            made = delay_node(block, arrays, signal, graph.writing, facts)
        elif type(block) is Convolve or (type(block) is Dense and len(signal.theirs) == 1):
            facts["bias"] = arrays.bias is not None
            made = weights_node(node.name, block, arrays, signal, graph.writing, facts)
            signal = Layout.of(block.out_shape(signal.shape))
            if layout.is_flat and signal.shape == layout.shape:
                made, signal = _in_their_order(made, layout), layout
        else:
            fail(
                "to_nir: `network` must have recurrent connections of delays and weights, dense ones for flat "
                f"neurons, got {block.kind} in {node.name!r}. Replace it."
            )
        last = graph.add(node.name, made, (last,))
    graph.edges.append((last, names[0]))


def _in_their_order(node: NIRNode, layout: Layout) -> NIRNode:
    """Dense weights to neurons of a flattened image, in NIR's order."""
    node.weight = np.ascontiguousarray(node.weight[layout.order])
    if hasattr(node, "bias"):
        node.bias = np.ascontiguousarray(node.bias[layout.order])
    return node


_WRITERS: dict[type[Block], Callable[[_Graph, Node, _Written], _Written]] = {
    Dense: _weights,
    Convolve: _weights,
    Pool: _pool,
    Flatten: _flatten,
    Axonal: _delay,
    Spiking: _neurons,
    Integrator: _neurons,
}
