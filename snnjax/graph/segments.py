"""The segments of a network: which chains of its nodes are one call of `snnjax.lif_network`, and which run alone."""

import functools
import math
from collections.abc import Iterator
from typing import Any, NamedTuple

from snnjax.blocks._neurons import FusedNeurons
from snnjax.blocks.delay import Delayed
from snnjax.blocks.linear import Product
from snnjax.blocks.norm import Affine
from snnjax.blocks.pool import Flattened, Pooled
from snnjax.graph.containers import Node
from snnjax.graph.recurrence import Recurrence, feedback_obstacle, loops, recurrences
from snnjax.ops._connection import DENSE, Connection

# The fewest steps for which a fused call, which takes some microseconds, is faster than scans: measured on two cores of
# a Zen 5 with dense, listed and convolutional chains at batches of 1 and 16, forward and gradient. In a scan of
# recurrent layers every step calls a product.
FEWEST_STEPS, FEWEST_RECURRENT_STEPS = 4, 2
# The fewest rows, steps times sequences, for which a fused call of dense weights without lists is faster than scans:
# measured on two cores of a Sapphire Rapids, 64 to 1,024 neurons wide, with 2 and 20 % of them active.
FEWEST_ROWS = 64
# The fewest given currents, of all steps and sequences, for which a fused call is faster than a scan of their neurons:
# it takes some microseconds, and where currents fill the second-level cache it moves half as much memory.
FEWEST_GIVEN = 1 << 19
# So many rows, steps times sequences, count as many.
MANY_ROWS = 1 << 14
_PARTS = (
    Delayed,
    Pooled,
    Flattened,
    Product,
    Affine,
    FusedNeurons,
)  # of a layer of the fused op, in their order


class FusedLayer(NamedTuple):
    """A layer of a fused chain: indices of nodes, None for what it does not have."""

    connection: Connection
    delay: int | None
    product: int | None  # None for neurons on given currents, which begin a chain
    norm: int | None
    neuron: int
    parts: tuple[int, ...]  # all of its nodes
    recurrence: Recurrence | None = None


class Fused(NamedTuple):
    """A chain that is one call of the fused op."""

    layers: tuple[FusedLayer, ...]
    readout: FusedLayer | None
    taps: tuple[bool, ...]  # of each layer, whether its spikes are read outside of the chain

    @property
    def nodes(self) -> tuple[int, ...]:
        """All of its nodes, in order."""
        layers = (*self.layers, *(() if self.readout is None else (self.readout,)))
        return tuple(node for layer in layers for node in layer.parts)


class Scanned(NamedTuple):
    """A node that runs alone: neurons are scanned or compute all steps at once; products run in event kernels."""

    node: int
    why: str

    @property
    def nodes(self) -> tuple[int, ...]:
        """The node."""
        return (self.node,)


class Looped(NamedTuple):
    """A loop that no chain contains: its nodes run together, step by step."""

    nodes: tuple[int, ...]
    why: str


Segment = Fused | Scanned | Looped


class Mode(NamedTuple):
    """What segments depend on besides the network."""

    train: bool = False
    record: tuple[str, ...] = ()
    implementation: str | None = None
    steps: int = FEWEST_STEPS  # of the call, or as many as matter
    rows: int = MANY_ROWS  # steps times sequences, or as many as matter
    from_rest: bool = True  # whether the run begins without a state, and is not cut into pieces

    @property
    def asks_for_scans(self) -> bool:
        """Whether the call wants what the fused op does not do."""
        return self.implementation == "composed" or "membranes" in self.record


@functools.lru_cache(maxsize=256)
def segments_of(
    nodes: tuple[Node, ...], shapes: tuple[Any, ...], read: frozenset[str], mode: Mode
) -> tuple[Segment, ...]:
    """The segments of a network in the order in which they run; `shapes` are those that each node receives.

    `read` are the nodes whose signals leave the network.
    """
    return tuple(_Chooser(nodes, shapes, read, mode).segments())


class _Chooser:
    def __init__(
        self, nodes: tuple[Node, ...], shapes: tuple[Any, ...], read: frozenset[str], mode: Mode
    ) -> None:
        self.nodes, self.shapes, self.mode, self.read = nodes, shapes, mode, read
        self.ops = [
            node.block.op(*own) if len(own) == 1 else None for node, own in zip(nodes, shapes, strict=True)
        ]
        self.consumers: list[list[int]] = [[] for _ in nodes]
        places = {node.name: index for index, node in enumerate(nodes)}
        for index, node in enumerate(nodes):
            for source in node.sources:
                if source in places:
                    self.consumers[places[source]].append(index)
        self.loops = loops(nodes)
        self.recurrences = {own.join: own for own in recurrences(nodes).values() if self.is_fused(own)}

    def is_fused(self, own: Recurrence) -> bool:
        """Whether the fused op computes the way on which spikes return; its signals are then known to nobody."""
        is_read = any(self.nodes[index].name in self.read for index in own.before)
        return not is_read and feedback_obstacle(self.nodes, own) is None

    def segments(self) -> Iterator[Segment]:
        """A chain begins at the first node that is in none yet."""
        done: set[int] = set()
        for index in range(len(self.nodes)):
            if index in done:
                continue
            loop = self.loops.get(index, ())
            first = next((own for own in loop if own in self.recurrences), index)
            chain = None if loop and first == index else self.chain(first)
            segment = chain or (Looped(loop, self.why(loop)) if loop else Scanned(index, self.reason(index)))
            done.update(segment.nodes)
            yield segment

    def why(self, loop: tuple[int, ...]) -> str:
        """Why a loop runs step by step."""
        own = next((own for own in recurrences(self.nodes).values() if own.neuron in loop), None)
        if own is None:
            return "signals return to it"
        block = self.nodes[own.neuron].block
        obstacle = block.obstacle or feedback_obstacle(self.nodes, own)
        if not self.mode.asks_for_scans and obstacle is not None:
            return obstacle
        if not self.mode.asks_for_scans and own.join not in self.recurrences:
            return "a signal within it is read"
        return self.reason(own.join if self.begins(own.neuron) else own.neuron)

    def reason(self, index: int) -> str:
        """Why a node runs alone."""
        block = self.nodes[index].block
        op = self.ops[index]
        if op is not None and block.needs_all_steps(self.mode.train):
            return "it needs all steps"
        if self.mode.asks_for_scans:
            return "this call asks for scans"
        obstacle = op.pooling.obstacle if isinstance(op, Pooled) else block.obstacle
        if obstacle is not None:
            return obstacle
        if not self.begins(index):
            return (
                "its immediate reset equals that of the fused op only from rest, without a state and chunks"
            )
        layers = self.longest(index)
        if layers and self.is_short(layers):
            return "scans of few steps or sequences are faster"
        if layers and self.spikes(layers[0]) and self.is_small(layers):
            return "a scan of few given currents is faster"
        if layers and self.is_apart(layers):
            return "all spikes of its layer leave it: a product and neurons apart are faster"
        if layers and not self.spikes(layers[-1]):
            return "a readout is fused only at the end of a chain"
        if isinstance(op, FusedNeurons):
            return "the fused op does not take what it receives"
        if op is None:
            return "it is no part of the fused op"
        return "no neurons follow it in a way that the fused op knows"

    def begins(self, index: int) -> bool:
        """Whether the fused op may begin with the state of a node."""
        op = self.ops[index]
        return self.mode.from_rest or not (isinstance(op, FusedNeurons) and op.is_immediate)

    def only(self, index: int) -> int | None:
        """The only node that receives the signal of a node, None if others read it too."""
        readers = self.consumers[index]
        return readers[0] if len(readers) == 1 and self.nodes[index].name not in self.read else None

    def layer(self, index: int) -> FusedLayer | None:
        """The layer that begins at a node, None if none does."""
        if self.mode.asks_for_scans:
            return None
        found: dict[type, int] = {}
        pooling, parts, stage, recurrence = None, [], -1, None
        node: int | None = index
        while node is not None:
            if node in self.recurrences:
                recurrence = self.recurrences[node]
                parts += recurrence.before
                node = recurrence.neuron
            elif node in self.loops:
                return None
            parts.append(node)
            block, op = self.nodes[node].block, self.ops[node]
            if not block.is_skipped(self.mode.train):
                place = next((i for i, kind in enumerate(_PARTS) if isinstance(op, kind)), -1)
                again = isinstance(op, Pooled) and place == stage
                is_next = (place > stage or again) and self.begins(node)
                starts = node == index and isinstance(
                    op, Affine
                )  # its statistics are known before the chain runs
                if not is_next or (block.needs_all_steps(self.mode.train) and not starts):
                    return None
                if isinstance(op, Pooled):
                    pooling = op.pooling if pooling is None else pooling.then(op.pooling)
                    if pooling is None or pooling.obstacle is not None:
                        return None
                found[type(op)], stage = node, place
                if isinstance(op, FusedNeurons):
                    return self._fits(found, pooling, tuple(parts), recurrence)
            node = self.only(node)
        return None

    def _fits(
        self, found: dict[type, int], pooling: Any, parts: tuple[int, ...], recurrence: Recurrence | None
    ) -> FusedLayer | None:
        """The layer of these parts, None if the fused op does not take it."""
        if Product not in found:
            is_given = found.keys() <= {Affine, FusedNeurons}
            given = FusedLayer(DENSE, None, None, found.get(Affine), parts[-1], parts, recurrence)
            return given if is_given else None
        delay, norm = found.get(Delayed), found.get(Affine)
        product: Any = self.ops[found[Product]]
        neurons: Any = self.ops[found[FusedNeurons]]
        if (
            product.connection.obstacle_to(recurrent=recurrence is not None, spikes=neurons.spikes)
            is not None
        ):
            return None
        if not neurons.spikes and (delay is not None or norm is not None):
            return None
        delayed: Any = None if delay is None else self.ops[delay]
        most = None if delayed is None else delayed.max_delay
        connection = product.connection.behind(pooling, most)
        return FusedLayer(connection, delay, found[Product], norm, found[FusedNeurons], parts, recurrence)

    @functools.cache  # noqa: B019 (it lives as long as the segments are chosen)
    def longest(self, index: int) -> tuple[FusedLayer, ...]:
        """The longest chain of layers that begins at a node; a readout ends it."""
        layer = self.layer(index)
        if layer is None:
            return ()
        if not self.spikes(layer):
            return (layer,)
        rests = [self.longest(reader) for reader in self.consumers[layer.neuron]]
        rests = [rest for rest in rests if rest and rest[0].product is not None]
        return (layer, *max(rests, key=len, default=()))

    def is_short(self, layers: tuple[FusedLayer, ...]) -> bool:
        """Whether the call has too few steps, or too few rows, for a chain of these layers."""
        is_recurrent = any(layer.recurrence is not None for layer in layers)
        if self.mode.steps < (FEWEST_RECURRENT_STEPS if is_recurrent else FEWEST_STEPS):
            return True
        is_listed = any(self.nodes[layer.neuron].block.lists_spikes for layer in layers)
        is_dense = all(layer.connection == DENSE for layer in layers)
        return self.mode.rows < FEWEST_ROWS and is_dense and not (is_listed or is_recurrent)

    def is_small(self, layers: tuple[FusedLayer, ...]) -> bool:
        """Whether a chain begins with too few given currents of neurons, none listed and none fed back."""
        neuron = layers[0].neuron
        is_given = layers[0].product is None and not self.nodes[neuron].block.lists_spikes
        return (
            is_given
            and layers[0].recurrence is None
            and math.prod(self.shapes[neuron][0]) * self.mode.rows < FEWEST_GIVEN
        )

    def is_apart(self, layers: tuple[FusedLayer, ...]) -> bool:
        """Whether a chain is one convolution whose spikes are not listed: all of them leave it."""
        layer, *others = layers
        is_listed = self.nodes[layer.neuron].block.lists_spikes
        return not others and layer.connection.convolution is not None and not is_listed

    def spikes(self, layer: FusedLayer) -> bool:
        """Whether the neurons of a layer spike; those of a readout do not."""
        op: Any = self.ops[layer.neuron]
        return op.spikes

    def chain(self, index: int) -> Fused | None:
        """The chain that begins at a node; None if it has no layer of neurons that spike."""
        longest = self.longest(index)
        readout = longest[-1] if longest and not self.spikes(longest[-1]) else None
        layers = longest if readout is None else longest[:-1]
        if not layers or self.is_short(longest) or self.is_small(layers):
            return None  # see `reason`
        if readout is None and self.is_apart(layers):
            return None
        taps = []
        for place, layer in enumerate(layers):
            is_last = place + 1 == len(layers) and readout is None
            name, readers = self.nodes[layer.neuron].name, len(self.consumers[layer.neuron])
            others = readers - (layer.recurrence is not None)
            taps.append(is_last or name in self.read or others > 1)
        return Fused(layers, readout, tuple(taps))
