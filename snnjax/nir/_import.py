"""Convert the nodes of a graph, in order, to a network and its parameters."""

import contextlib
import dataclasses
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import DTypeLike
from jaxtyping import PyTree

from snnjax._check import fail, short_repr
from snnjax._types import accumulation_dtype
from snnjax.blocks.block import Block
from snnjax.blocks.delay import DelayParams
from snnjax.blocks.join import join
from snnjax.blocks.late import Late
from snnjax.blocks.linear import Linear
from snnjax.blocks.pool import Flatten, flatten
from snnjax.blocks.readout import integrator
from snnjax.blocks.spiking import Spiking, spiking
from snnjax.graph.containers import Node
from snnjax.graph.network import Network, Params, Stats
from snnjax.graph.recurrence import settled
from snnjax.nir._check import MAX_NEURONS, per_neuron
from snnjax.nir._feedback import Feedback, feedback_of
from snnjax.nir._layout import Layout, Shape, channels_last
from snnjax.nir._metadata import facts_of, refuse_metadata
from snnjax.nir._neurons import INTEGRATORS
from snnjax.nir._read_connections import (
    Signal,
    Weights,
    check_flatten,
    delays_of,
    identity_of,
    pool_of,
    weights_of,
)
from snnjax.nir._read_neurons import Cell, Reading, cell_of
from snnjax.nir._wiring import NEURONS, WEIGHTS, Place, Step

# The number of axes that the first node expects.
_AXES = {"Affine": 1, "Linear": 1, "Conv1d": 2}


def network_of(
    places: tuple[Place, ...], reading: Reading, dtype: DTypeLike
) -> tuple[Network, Params, Stats]:
    """The network of the nodes, its parameters and its stats."""
    builder = _Builder(places, reading)
    for place in places:
        builder.take(place)
    params = {name: _cast(arrays, dtype) for name, arrays in builder.params().items()}
    return builder.network(), params, _cast(builder.stats, accumulation_dtype(dtype))


def _cast(params: PyTree, dtype: DTypeLike) -> PyTree:
    """Arrays in the dtype of a network's weights; delays stay in that of its sums."""

    def cast(part: PyTree) -> PyTree:
        wanted = accumulation_dtype(dtype) if isinstance(part, DelayParams) else dtype
        return jax.tree.map(lambda array: jnp.asarray(array, wanted), part)

    return jax.tree.map(cast, params, is_leaf=lambda part: isinstance(part, DelayParams))


class _Builder:
    """A network under construction, node by node of the graph."""

    def __init__(self, places: tuple[Place, ...], reading: Reading) -> None:
        self.reading = reading
        self.kinds = {place.step.name: place.step.kind for place in places}
        self.inputs: dict[str, Shape] = {}
        self.nodes: dict[str, Node] = {}
        self.weights: dict[str, Weights] = {}  # of the nodes that are connections, by their names
        self.others: dict[str, Any] = {}  # parameters of other nodes
        self.stats: dict[str, Any] = {}
        self.outputs: list[tuple[str, str]] = []
        self.is_single = True
        self.signals: dict[str, Signal] = {}  # by the names in the graph
        self.sums: dict[tuple[str, ...], Signal] = {}
        self.alone: set[str] = set()  # nodes whose signal one other node receives

    def network(self) -> Network:
        """The network."""
        nodes = []
        for name, node in self.nodes.items():
            if name in self.weights:
                weights = self.weights[name]
                node = node._replace(
                    block=dataclasses.replace(weights.block, bias=weights.params.bias is not None)
                )
            nodes.append(node)
        inputs, outputs = tuple(self.inputs.items()), tuple(self.outputs)
        return Network(inputs, settled(tuple(nodes)), outputs, self.is_single, ())

    def params(self) -> Params:
        """Its parameters, in float64."""
        return {name: weights.params for name, weights in self.weights.items()} | self.others

    def take(self, place: Place) -> None:
        """Add a node of the graph."""
        step = place.step
        takers = {
            "Output": self._output,
            "Scale": self._scale,
            "Flatten": self._flatten,
            "SumPool2d": self._pool,
            "AvgPool2d": self._pool,
            "Delay": self._delay,
            **dict.fromkeys(WEIGHTS, self._weights),
            **dict.fromkeys(NEURONS, self._neurons),
        }
        if step.kind == "Input":
            name, shape = self._name(step), _input_shape(place, self.kinds)
            self.inputs[name] = shape
            self.signals[step.name] = Signal(name, Layout.of(shape))
        else:
            takers[step.kind](place, self._received(place))

    def _name(self, step: Step) -> str:
        """The name of a node in the network: the one that it had before `to_nir`, else that in the graph."""
        name = facts_of(step.name, step.node).get("name", step.name)
        if not isinstance(name, str) or not name or name in (*self.nodes, *self.inputs):
            refuse_metadata(step.name, f"the name {short_repr(name)}")
        return name

    def _fresh(self, name: str) -> str:
        """A name for a node that the graph does not have."""
        while name in self.nodes or name in self.inputs or name in self.kinds:
            name += "_"
        return name

    def _add(self, place: Place, block: Block, signal: Signal, layout: Layout, factor: Any = None) -> str:
        """A node of the network for one of the graph."""
        name = self._name(place.step)
        self._insert(name, block, (signal.source,), is_alone=len(place.readers) == 1)
        self.signals[place.step.name] = Signal(name, layout, factor)
        return name

    def _insert(self, name: str, block: Block, sources: tuple[str, ...], is_alone: bool) -> None:
        self.nodes[name] = Node(name, block, sources)
        if is_alone:
            self.alone.add(name)

    def _received(self, place: Place) -> Signal:
        """The sum of what a node receives."""
        if len(place.sources) == 1:
            return self.signals[place.sources[0]]
        if place.sources in self.sums:
            return self.sums[place.sources]
        step = place.step
        signals = [self._scaled(self.signals[source], source) for source in place.sources]
        first, *others = (signal.layout for signal in signals)
        for other in others:
            if not other.fits(first):
                shapes = f"{list(first.theirs)} and {list(other.theirs)}"
                shapes += " of another order" if first.theirs == other.theirs else ""
                hint = "Give them the same, for instance by weights"
                fail(f"from_nir: `graph` must add signals of one shape at {step.name}, got {shapes}. {hint}.")
        given = facts_of(step.name, step.node).get("join")
        name = self._fresh(given if isinstance(given, str) and given else f"{step.name}/add")
        sources = tuple(signal.source for signal in signals)
        self._insert(name, join("add"), sources, is_alone=self.alone.issuperset(sources))
        self.sums[place.sources] = Signal(name, first)
        return self.sums[place.sources]

    def _hosts(self, name: str, *values: np.ndarray | None) -> list[str] | None:
        """The connections that can take factors and constants in place of a signal, and that nobody else receives."""
        if name not in self.alone:
            return None
        node = self.nodes[name]
        if isinstance(node.block, Linear):
            return [name] if all(map(self.weights[name].takes, values)) else None
        if not isinstance(node.block, Flatten) and len(node.sources) < 2:
            return None
        found = [self._hosts(source, *values) for source in node.sources]
        return None if None in found else [host for hosts in found for host in hosts or ()]

    def _scaled(
        self, signal: Signal, name: str, factor: np.ndarray | None = None, offset: np.ndarray | None = None
    ) -> Signal:
        """A signal times a factor plus a constant, by the weights before it, or by some of its own."""
        hosts = None
        if signal.factor is None:
            hosts = self._hosts(signal.source, factor, offset)
        else:
            factor = signal.factor if factor is None else signal.factor * factor
        if factor is None and offset is None:
            return signal
        if hosts is None:
            inserted, made = self._fresh(f"{name}/scale"), identity_of(name, signal.layout)
            self._insert(inserted, made.block, (signal.source,), is_alone=True)
            self.weights[inserted] = made
            signal, hosts = Signal(inserted, made.layout), [inserted]
        for place, host in enumerate(hosts):
            self.weights[host] = self.weights[host].scaled(name, factor, None if place else offset)
        return signal

    def _output(self, place: Place, signal: Signal) -> None:
        signal, facts = self._scaled(signal, place.step.name), facts_of(*place.step)
        count = sum(kind == "Output" for kind in self.kinds.values())
        name = facts.get("name", "readout" if count == 1 else place.step.name)
        if not isinstance(name, str) or name in dict(self.outputs):
            refuse_metadata(place.step.name, f"the name {short_repr(name)}")
        self.is_single = count == 1 and "name" not in facts
        self.outputs.append((name, signal.source))

    def _scale(self, place: Place, signal: Signal) -> None:
        step = place.step
        factor = per_neuron(step.name, step.node, "scale", signal.layout)
        if signal.factor is None and self._hosts(signal.source, factor) is not None:
            signal = self._scaled(signal, step.name, factor)
            if len(place.readers) > 1:
                self.alone.discard(signal.source)
        else:
            signal = signal._replace(factor=factor if signal.factor is None else factor * signal.factor)
        self.signals[step.name] = signal

    def _flatten(self, place: Place, signal: Signal) -> None:
        check_flatten(place.step, signal)
        layout = signal.layout
        if facts_of(*place.step).get("added") is True or len(layout.shape) == 1:
            self.signals[place.step.name] = signal._replace(
                layout=layout._replace(is_flat=len(layout.image) > 1)
            )
            if len(place.readers) > 1:
                self.alone.discard(signal.source)
            return
        layout = Layout((math.prod(layout.shape),), layout.image, is_flat=True)
        self._add(place, flatten(), signal, layout, signal.factor)

    def _pool(self, place: Place, signal: Signal) -> None:
        block, layout, factor = pool_of(place.step, signal)
        self._add(place, block, signal, layout, factor)

    def _delay(self, place: Place, signal: Signal) -> None:
        block, held = delays_of(place.step, signal.layout, self.reading.dt)
        name = self._add(place, block, signal, signal.layout, signal.factor)
        if held is not None:
            (self.others if block.learn else self.stats)[name] = held

    def _weights(self, place: Place, signal: Signal) -> None:
        weights = weights_of(place.step, signal)
        self.weights[self._add(place, weights.block, signal, weights.layout)] = weights

    def _neurons(self, place: Place, signal: Signal) -> None:
        """Neurons, with their recurrent connection."""
        step, spikes = place.step, place.threshold is not None or place.step.kind not in INTEGRATORS
        cell = cell_of(step, place.threshold, signal.layout, self.reading)
        feedback = feedback_of(place.recurrent, step.name, signal.layout, cell.scale, self.reading.dt)
        offset, bias = cell.offset, feedback.bias
        offset = bias if offset is None else offset if bias is None else offset + bias
        signal = self._scaled(signal, step.name, cell.scale, offset)
        if spikes and feedback.parts:
            signal = signal._replace(source=self._returning(self._name(step), signal, feedback))
        block = _spiking(step, cell) if spikes else integrator(cell.neuron)
        name = self._add(place, block, signal, signal.layout)
        for held, own in ((self.stats, cell.stats), (self.others, cell.params)):
            if jax.tree.leaves(own):
                held[name] = own

    def _returning(self, neuron: str, signal: Signal, feedback: Feedback) -> str:
        """Add the way of the spikes of neurons back to them; return the name of their sum with a signal."""
        base = neuron.removesuffix("/neuron")
        last, several = self._fresh(f"{base}/late"), len(feedback.parts) > 1
        self._insert(last, Late(signal.layout.shape), (neuron,), is_alone=False)
        for place, part in enumerate(feedback.parts):
            own = f"{base}/recurrent/{part.block.kind}_{place}" if several else f"{base}/recurrent"
            name = part.name if part.name and part.name not in self.nodes else self._fresh(own)
            self._insert(name, part.block, (last,), is_alone=False)
            for held, arrays in ((self.stats, part.stats), (self.others, part.params)):
                if jax.tree.leaves(arrays):
                    held[name] = arrays
            last = name
        joined = self._fresh(f"{base}/join")
        self._insert(joined, join("add"), (signal.source, last), is_alone=False)
        return joined


def _spiking(step: Step, cell: Cell) -> Spiking:
    """The block of neurons that spike."""
    capacity, second = (cell.facts.get(key) for key in ("capacity", "second_threshold"))
    try:
        block = spiking(cell.neuron, capacity=capacity, second_threshold=second)
        hash(block)  # as networks do
    except (TypeError, ValueError) as error:
        refuse_metadata(step.name, error)
    return block


def _input_shape(place: Place, kinds: dict[str, str]) -> Shape:
    """The shape of an input in our order, without leading axes for batch and time, which some libraries write."""
    given = next(iter(place.step.node.input_type.values()))
    shape: Shape = ()
    with contextlib.suppress(TypeError, ValueError, OverflowError):
        shape = tuple(int(length) for length in np.asarray(given).reshape(-1))
    axes = _AXES.get(kinds[place.readers[0]], 3)
    if len(shape) == axes + 1:
        shape = shape[1:]
    if not (1 <= len(shape) <= 3 and all(length > 0 for length in shape) and math.prod(shape) <= MAX_NEURONS):
        expected = (
            f"have the shape [neurons], [channels, length] or [channels, height, width] in {place.step.name}"
        )
        fail(f"from_nir: `graph` must {expected}, got {given}. Write it without batch and time.")
    return channels_last(shape)
