"""Containers: what stands for several blocks, and expands into the nodes of a graph."""

import dataclasses
import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from snnjax._arguments import explained
from snnjax._check import alternatives, check_integer, fail, plural, short_repr
from snnjax._types import Unchecked
from snnjax.blocks._dense import dense
from snnjax.blocks.block import Block, Item, Shape
from snnjax.blocks.join import Join
from snnjax.blocks.join import join as join_block
from snnjax.blocks.late import Late, late
from snnjax.blocks.readout import Integrator, integrator
from snnjax.blocks.spiking import Spiking, spiking, spiking_of
from snnjax.neurons import Neuron, SynapticLIF, leaky_integrator


class Node(NamedTuple):
    """A block of a network, with a name, and the names of the nodes or inputs that it receives."""

    name: str
    block: Block
    sources: tuple[str, ...]

    @property
    def is_late(self) -> bool:
        """Whether a signal of a loop returns through it."""
        return isinstance(self.block, Late)

    @property
    def is_sum(self) -> bool:
        """Whether it adds signals."""
        return isinstance(self.block, Join) and self.block.how == "add"


@dataclass(frozen=True, kw_only=True)
class Container(Item):
    """What expands into blocks."""

    kind: ClassVar[str] = "container"

    def expand(self, graph: "Graph", *sources: str) -> str:
        """Add its blocks to a graph; return the name of the node whose signal is its result."""
        raise NotImplementedError


class Graph:
    """The nodes of a network while it is made, seen from one container."""

    def __init__(self, inputs: dict[str, Shape]) -> None:
        self.nodes: list[Node] = []
        self.shapes = dict(inputs)  # of the signal of each node and input
        self.results = {name: name for name in inputs}  # the node that each name stands for
        self.pending: dict[str, list[str]] = {}  # of each late node, the names that its source may have
        self.prefix = ""
        self._numbers: dict[str, int] = {}

    def add(self, item: Unchecked, *sources: str, name: str | None = None) -> str:
        """Add a block, a neuron, a container or a sequence of them; return the name of its result."""
        item = as_item(item)
        full = self._named(item, name)
        if isinstance(item, Late):
            return self._add_late(full, item)
        sources = sources if item.source is None else self._found(item.source)
        if not isinstance(item, Block):
            self.results[full] = item.expand(self._inside(full), *sources)
            return self.results[full]
        if item.num_signals not in (None, len(sources)):
            fail(
                f"network: `{full}` must receive {plural(item.num_signals or 1, 'signal')}, "
                f"got {' and '.join(map(repr, sources)) or 'none'}. Join them with blocks.join(...)."
            )
        if isinstance(item, Join) and not 1 < len(sources) == len(set(sources)):
            fail(
                f"network: `{full}` must receive two or more different signals, "
                f"got {' and '.join(map(repr, sources)) or 'none'}. Put blocks into its branches, or name its sources."
            )
        shapes = tuple(self.shapes[source] for source in sources)
        block = dataclasses.replace(item, name=None, source=None).fitted(*shapes)
        self._append(Node(full, block, sources), _out_shape(full, block, shapes))
        return full

    def insert(self, name: str, block: Block, sources: tuple[str, ...], shape: Shape) -> str:
        """Add a node of another network, under this name."""
        self._append(Node(self.prefix + name, block, sources), shape)
        return self.prefix + name

    def _append(self, node: Node, shape: Shape) -> None:
        self.shapes[node.name], self.results[node.name] = shape, node.name
        self.nodes.append(node)

    def _add_late(self, full: str, item: Late) -> str:
        """Add a late signal, whose source is looked for when all blocks are there."""
        self.pending[full] = self._scopes(*(item.source or ()))
        self._append(Node(full, dataclasses.replace(item, name=None, source=None), ()), item.shape)
        return full

    def finished(self) -> tuple[Node, ...]:
        """All nodes, late ones with their sources."""
        found = []
        for node in self.nodes:
            if node.name in self.pending:
                scopes = self.pending[node.name]
                known = next((self.results[name] for name in scopes if name in self.results), None)
                if known is None:
                    fail(
                        f"late: `source` must be the name of a block, got {scopes[-1]!r}. "
                        f"Choose {alternatives(list(self.results))}."
                    )
                shape, wanted = self.shapes[known], self.shapes[node.name]
                if shape != wanted:
                    fail(f"late: `shape` must be that of {scopes[-1]!r}, {shape}, got {wanted}. Pass it.")
                node = node._replace(sources=(known,))
            found.append(node)
        return tuple(found)

    def _scopes(self, name: str) -> list[str]:
        """What a name may stand for, from the innermost container to the network."""
        around = self.prefix.split("/")[:-1]
        return ["/".join([*around[:depth], name]) for depth in range(len(around), -1, -1)]

    def _inside(self, name: str) -> "Graph":
        """The same graph, seen from the container of this name."""
        inner = Graph({})
        inner.nodes, inner.shapes, inner.results = self.nodes, self.shapes, self.results
        inner.pending = self.pending
        inner.prefix = f"{name}/"
        return inner

    def _named(self, item: Unchecked, name: str | None) -> str:
        own = name or item.name
        if own is None:
            number = self._numbers.get(item.kind, 0)
            self._numbers[item.kind] = number + 1
            own = f"{item.kind}_{number}"
        elif not isinstance(own, str) or not own or "/" in own:
            fail(f"network: `name` must be a word without a slash, got {short_repr(own)}. Choose another.")
        if self.prefix + own in self.results:
            fail(f"network: `name` must be given once, got {own!r} twice. Choose another one.")
        return self.prefix + own

    def _found(self, names: tuple[str, ...]) -> tuple[str, ...]:
        """The nodes of these names, looked up in this container and those around it."""
        found = []
        for name in names:
            scopes = self._scopes(name) if isinstance(name, str) else []
            known = [self.results[full] for full in scopes if full in self.results]
            if not known:
                fail(
                    f"network: `source` must be the name of an input or an earlier block, got {name!r}. "
                    f"Choose {alternatives(list(self.results))}."
                )
            found.append(known[0])
        return tuple(found)


def _out_shape(name: str, block: Block, shapes: tuple[Shape, ...]) -> Shape:
    """What a block says of its shape, which may be one of a user's own."""
    shape = block.out_shape(*shapes)
    if not isinstance(shape, tuple) or not all(isinstance(length, int | np.integer) for length in shape):
        fail(
            f"network: `{name}.out_shape` must return a tuple of integers, got {short_repr(shape)}. "
            "Write (8,) for 8 neurons."
        )
    return shape


def as_item(item: Unchecked) -> Any:
    """A block or container; neurons become a block, and a sequence a container."""
    check_item("network", "blocks", item)
    if isinstance(item, SynapticLIF):
        return spiking_of("network", item)
    if isinstance(item, Neuron):
        return spiking(item) if item.spikes else integrator(item)
    return Sequential(tuple(item)) if isinstance(item, list | tuple) else item


def check_item(op: str, argument: str, item: Unchecked) -> None:
    """Check that `item` is what a network can hold, or a sequence of such."""
    if isinstance(item, Neuron | SynapticLIF | Block) or hasattr(item, "expand"):
        return
    if isinstance(item, list | tuple):
        for each in item:
            check_item(op, argument, each)
        return
    fail(
        f"{op}: `{argument}` must hold blocks, neurons and layers, got {_in_words(item)}. "
        "Make them with snnjax.layer(...), snnjax.blocks or snnjax.neurons."
    )


def _check_part(argument: str, part: Unchecked, example: str) -> None:
    """Check that a part of a layer is a block, or several, or None."""
    if part is not None and (isinstance(part, Neuron) or not isinstance(part, Item | list | tuple)):
        hint = f"Write {argument}=blocks.{example}"
        fail(f"layer: `{argument}` must be a block or None, got {_in_words(part)}. {hint}.")


def _in_words(item: Unchecked) -> str:
    return f"the function {item.__name__}" if hasattr(item, "__name__") else short_repr(item)


@dataclass(frozen=True)
class Sequential(Container):
    """Blocks in order; made by `sequential`."""

    kind = "sequential"
    items: tuple[Any, ...]

    def expand(self, graph: Graph, *sources: str) -> str:
        """Each receives the signal of the one before it."""
        check_readouts(self.items)
        for item in self.items:
            sources = (graph.add(item, *sources),)
        return sources[0]


def check_readouts(items: Sequence[Any]) -> None:
    """Check that no readout receives the signal of another, as in a list of them."""
    for before, item in itertools.pairwise(items):
        if isinstance(before, Readout) and isinstance(item, Readout) and item.source is None:
            fail(
                "network: `readout` must be one readout, or several by name, got one behind another. "
                "Pass a dict of them."
            )


@dataclass(frozen=True)
class Parallel(Container):
    """Branches and their join; made by `parallel` and `residual`."""

    kind = "parallel"
    branches: tuple[tuple[str, Any], ...]
    join: Block

    def expand(self, graph: Graph, *sources: str) -> str:
        """Every branch receives the same signal; None passes it on."""
        ends = [
            sources[0] if item is None else graph.add(item, *sources, name=name)
            for name, item in self.branches
        ]
        return graph.add(self.join, *ends, name="join")


@dataclass(frozen=True)
class Residual(Parallel):
    """A body beside a shortcut; made by `residual`."""

    kind = "residual"


@dataclass(frozen=True)
class Layer(Container):
    """A connection and its neurons; made by `layer`."""

    kind = "layer"
    connection: Unchecked
    norm: Unchecked
    neuron: Spiking
    dropout: Unchecked
    recurrent: tuple[Any, ...] | bool = False

    def expand(self, graph: Graph, *sources: str) -> str:
        """Connection, norm, what returns to the neurons, these, dropout."""
        for name, item in (("connection", self.connection), ("norm", self.norm)):
            sources = sources if item is None else (graph.add(item, *sources, name=name),)
        if self.recurrent:
            sources = (graph.add(join_block("add"), *sources, self._returning(graph, *sources), name="join"),)
        for name, item in (("neuron", self.neuron), ("dropout", self.dropout)):
            sources = sources if item is None else (graph.add(item, *sources, name=name),)
        return sources[0]

    def _returning(self, graph: Graph, source: str) -> str:
        """The spikes of the step before, or what else is late, by the recurrent connection."""
        shape = graph.shapes[source]  # of the currents
        channels, neurons = shape[-1] if shape else 1, self.neuron.out_shape(shape)
        if self.recurrent is True and len(shape) > 1:
            fail(
                f"layer: `recurrent` must be a connection for neurons of the shape {shape}, got True. "
                f"Write recurrent=conv2d({channels}, 3), or dense({math.prod(shape)}) for all pairs."
            )
        own: Any = (dense(math.prod(shape), bias=False),) if self.recurrent is True else self.recurrent
        first, *others = own
        if not isinstance(first, Late):
            first, others = late("neuron", neurons), own
        returning = graph.add(first, name="late")
        if others:
            item = others[0] if len(others) == 1 else Sequential(tuple(others))
            returning = graph.add(item, returning, name="recurrent")
        if graph.shapes[returning] not in (shape, (math.prod(shape),)):
            fail(
                f"layer: `recurrent` must lead back to the {list(shape)} neurons, "
                f"got {list(graph.shapes[returning])}. Feed back as many channels, {channels}."
            )
        return returning


@dataclass(frozen=True)
class Readout(Container):
    """A connection and neurons that do not spike; made by `leaky_readout`."""

    kind = "readout"
    connection: Unchecked
    neuron: Neuron

    def expand(self, graph: Graph, *sources: str) -> str:
        """Connection, neurons."""
        return graph.add(
            integrator(self.neuron), graph.add(self.connection, *sources, name="connection"), name="neuron"
        )


@explained
def sequential(*items: Any) -> Sequential:
    """Put blocks in order, so that a name or a source stands for all of them. A list does the same without a name.

    Raises:
        ValueError: if something is not a block.

    Example:
        >>> import snnjax
        >>> body = snnjax.sequential(snnjax.layer(8), snnjax.layer(4)).named("body")
        >>> [node.name for node in snnjax.network(3, [body]).nodes if "neuron" in node.name]
        ['body/layer_0/neuron', 'body/layer_1/neuron']
    """
    check_item("sequential", "items", items)
    return Sequential(items)


@explained
def parallel(*, join: str | Block = "concatenate", **branches: Any) -> Parallel:
    """Run branches on the same signal and join their results.

    Args:
        join: how, as in `blocks.join`: "concatenate", "add", "multiply", "either" or "iand"; or a block that
            receives them.
        branches: blocks or lists of blocks by name; None passes the signal on.

    Raises:
        ValueError: if there are fewer than two branches, one is not a block, or the join is unknown.

    Example:
        >>> import snnjax
        >>> both = snnjax.parallel(fast=snnjax.layer(8), slow=[snnjax.layer(4), snnjax.layer(4)])
        >>> snnjax.network(3, [both]).out_shape
        (12,)
    """
    if len(branches) < 2:
        fail(
            f"parallel: `branches` must be at least two, got {len(branches)}. Name them, as in a=[...], b=[...]."
        )
    for branch, item in branches.items():
        if item is not None:
            check_item("parallel", branch, item)
    return Parallel(tuple(branches.items()), _as_join(join))


@explained
def residual(
    body: Unchecked,
    shortcut: Unchecked = None,
    join: str | Block = "add",
) -> Residual:
    """Add the signal that blocks receive to their result.

    Args:
        body: a block or a list of blocks.
        shortcut: what the signal passes on its way, such as a convolution of the strides and channels of the body.
        join: "add" (an id that stands twice counts twice), "either", "multiply", "concatenate" or "iand" (spikes of the
            shortcut where the body has none); or a block that receives both.

    Raises:
        ValueError: if body or shortcut are not blocks, or the join is unknown.

    Example:
        >>> import snnjax
        >>> net = snnjax.network((8, 8, 4), [snnjax.residual([snnjax.layer(snnjax.conv2d(4, 3))])])
        >>> [node.name for node in net.nodes]
        ['residual_0/body/layer_0/connection', 'residual_0/body/layer_0/neuron', 'residual_0/join']

    Reference:
        Fang et al. 2021, arXiv:2102.04159 (spike-element-wise residual networks, with the joins).
    """
    body = body if isinstance(body, list | tuple) else [body]
    check_item("residual", "body", body)
    if shortcut is not None:
        check_item("residual", "shortcut", shortcut)
    return Residual((("body", body), ("shortcut", shortcut)), _as_join(join))


@explained
def layer(
    connection: int | Block | Sequence[Block] | None,
    neuron: Neuron | SynapticLIF | None = None,
    *,
    norm: Unchecked = None,
    dropout: Unchecked = None,
    capacity: int | float | np.integer[Any] | np.floating[Any] | None = None,
    second_threshold: float | None = None,
    recurrent: Unchecked = False,
    record_dtype: Unchecked = None,
) -> Layer:
    """Make a layer of spiking neurons: a connection, a norm if any, the neurons, and dropout if any.

    Args:
        connection: the number of neurons, with dense weights from all inputs; or a connection such as `dense`,
            `conv2d`, or a list of blocks that ends with one, such as ``[axonal(10), dense(32)]``; None for neurons on
            given currents.
        neuron: a neuron of `snnjax.neurons`; `lif()` by default.
        norm: a norm of the currents, such as ``blocks.batch_norm()``.
        dropout: a block after the neurons, such as ``blocks.dropout(0.2)``.
        capacity: as for `blocks.spiking`, like the following.
        second_threshold: the lower end of the membranes that are listed for their gradient.
        recurrent: the connection by which spikes return to the layer one step later: a block, or several in order;
            True for dense weights without a bias. If the first one is a `blocks.late`, its signal comes in their place,
            such as that of a higher layer.
        record_dtype: ``jnp.bfloat16`` halves the memory of recorded membranes.

    Raises:
        ValueError: if the width, the capacity, a switch or the dtype is invalid, `neuron` is not a spiking neuron, or
            norm or dropout is not a block; in a network, if the capacity is above the number of neurons.

    Example:
        >>> import snnjax
        >>> net = snnjax.network(20, [snnjax.layer(32, capacity=8).named("hidden")], snnjax.leaky_readout(3))
        >>> [node.name for node in net.nodes]
        ['hidden/connection', 'hidden/neuron', 'readout/connection', 'readout/neuron']
    """
    options: dict[str, Any] = {
        "capacity": capacity,
        "second_threshold": second_threshold,
        "record_dtype": record_dtype,
    }
    own = spiking_of("layer", neuron, **options)
    _check_part("norm", norm, "batch_norm()")
    _check_part("dropout", dropout, f"dropout({dropout if isinstance(dropout, float) else 0.2})")
    given = None if connection is None else _as_connection("layer", connection, own.neuron.num_receptors)
    returning = _as_recurrent("layer", own.neuron, recurrent)
    return Layer(given, norm, own, dropout, returning)


@explained
def leaky_readout(
    connection: int | Block | Sequence[Block],
    *,
    decay: float = 0.95,
    normalize: bool = True,
    learn_decay: bool = False,
) -> Readout:
    """Make a readout of leaky integrators: ``v = decay * v + gain * (weights s + bias)``, without reset.

    Args:
        connection: the number of outputs, with dense weights from all neurons, or a connection.
        decay: fraction of the membrane kept per step, between 0 and 1; 1 with ``normalize=False`` sums up all steps.
        normalize: ``gain = 1 - decay``, else 1.
        learn_decay: whether the decay is learned.

    Raises:
        ValueError: if the width is below 1, or the decay is outside (0, 1), but for that sum.

    Example:
        >>> import snnjax
        >>> snnjax.network(20, [snnjax.layer(32)], snnjax.leaky_readout(10)).num_outputs
        10
    """
    neuron = leaky_integrator(decay=decay, normalize=normalize, learn_decay=learn_decay)
    return Readout(_as_connection("leaky_readout", connection), neuron)


@explained
def spiking_readout(
    connection: int | Block | Sequence[Block],
    neuron: Neuron | SynapticLIF | None = None,
    *,
    recurrent: Unchecked = False,
) -> Layer:
    """Make a spiking readout: a layer without capacity, so that a silent class can still learn.

    Raises:
        ValueError: if the width is below 1, or `neuron` is not a spiking neuron.

    Example:
        >>> import snnjax
        >>> snnjax.network(20, [snnjax.layer(32)], snnjax.spiking_readout(10)).num_outputs
        10
    """
    own = spiking_of("spiking_readout", neuron)
    connection = _as_connection("spiking_readout", connection, own.neuron.num_receptors)
    returning = _as_recurrent("spiking_readout", own.neuron, recurrent)
    return Layer(connection, None, own, None, returning)


# What has neurons of its own is no connection.
_NEURONS = Spiking | Integrator | Layer | Readout


def _last(connection: Unchecked) -> Any:
    """The last block of a connection, None if there is none."""
    while isinstance(connection, list | tuple | Sequential):
        connection = [None, *(connection.items if isinstance(connection, Sequential) else connection)][-1]
    return connection


def _as_join(join: Unchecked) -> Block:
    return join if isinstance(join, Block) else join_block(join)


def _as_connection(op: str, connection: Unchecked, receptors: int = 1) -> Any:
    """A connection; dense weights for a number of neurons."""
    if isinstance(connection, int | np.integer) and not isinstance(connection, bool):
        return dense(receptors * check_integer(op, "connection", connection, 1))
    if isinstance(connection, list | tuple):
        check_item(op, "connection", connection)
    if not isinstance(_last(connection), Item) or isinstance(_last(connection), _NEURONS):
        fail(
            f"{op}: `connection` must be a number of neurons, or weights such as dense(...) and conv2d(...), "
            f"got {short_repr(connection)}. Pass an int."
        )
    return connection


def _as_recurrent(op: str, neuron: Neuron, recurrent: Unchecked) -> tuple[Any, ...] | bool:
    """The blocks of a recurrent connection, or True for dense weights; False or none without one."""
    if neuron.sequence is not None and recurrent is not False:
        fail(
            f"{op}: `recurrent` must be False for neurons that compute all steps at once, {neuron.name}, "
            f"got {short_repr(recurrent)}. Choose neurons with a step, such as lif()."
        )
    if isinstance(recurrent, bool | np.bool_):
        return bool(recurrent)
    items = tuple(recurrent) if isinstance(recurrent, list | tuple) else (recurrent,)
    for item in items or (None,):
        if not isinstance(item, Item) or isinstance(item, Spiking):
            fail(
                f"{op}: `recurrent` must be a connection, or True for dense weights, "
                f"got {short_repr(recurrent)}. Write recurrent=dense(...) or conv2d(...)."
            )
    return items
