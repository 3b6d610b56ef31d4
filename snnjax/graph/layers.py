"""`layers_of`: a network seen as layers, for what walks layer by layer; networks with branches are refused by name."""

from typing import NamedTuple

from snnjax._check import fail
from snnjax.blocks.block import Shape
from snnjax.blocks.linear import Linear
from snnjax.blocks.readout import Integrator
from snnjax.blocks.spiking import Spiking
from snnjax.graph.containers import Node
from snnjax.graph.network import Network
from snnjax.graph.recurrence import recurrences


class ChainLayer(NamedTuple):
    """A connection with weights, the neurons after it, and what stands before and between them."""

    before: tuple[Node, ...]  # delays, pools and `flatten`, in order
    connection: Node  # its block is a `Linear`
    between: tuple[Node, ...]  # norms
    neuron: Node  # of the layer, or of the readout at the end of the network
    returning: tuple[
        Node, ...
    ]  # of a recurrent layer what spikes pass on their way back, the late node first
    in_shape: Shape  # of the signal that reaches `before`
    connection_shape: Shape  # of the signal that reaches the connection
    out_shape: Shape  # of the neurons

    @property
    def is_readout(self) -> bool:
        """Whether its neurons do not spike."""
        return not self.neuron.block.is_spiking


def layers_of(op: str, network: Network) -> tuple[ChainLayer, ...]:
    """The layers of a network in order, the readout last; `op` refuses others."""
    expected = "be a chain of layers, each a connection and neurons"
    if len(network.inputs) != 1 or len(network.outputs) != 1:
        fail(f"{op}: `network` must {expected}, got several inputs or readouts. Split the network.")
    last, layers, nodes = network.inputs[0][0], [], network.nodes
    parts: list[Node] = []
    recurrent = {nodes[own.join].name: own for own in recurrences(nodes).values()}
    returning = {nodes[place].name for own in recurrent.values() for place in own.before[:-1]}
    back: tuple[Node, ...] = ()
    for node in nodes:
        if node.name in returning:
            continue
        if tuple(source for source in node.sources if source not in returning) != (last,):
            got = f"`{node.name}`, which receives {' and '.join(map(repr, node.sources))}"
            fail(f"{op}: `network` must {expected}, got {got}. Use a network without branches.")
        last = node.name
        if last in recurrent:
            back = tuple(nodes[place] for place in recurrent[last].before[:-1])
            continue
        parts.append(node)
        if node.block.drive() is not None:
            layers.append(_layer(op, network, tuple(parts), back, expected))
            parts, back = [], ()
    if parts:
        fail(f"{op}: `network` must end with neurons, got `{parts[-1].name}`. Add a readout.")
    return tuple(layers)


def _layer(
    op: str, network: Network, parts: tuple[Node, ...], returning: tuple[Node, ...], expected: str
) -> ChainLayer:
    """The layer of these nodes, the last of which holds its neurons."""
    places = [place for place, node in enumerate(parts) if isinstance(node.block, Linear)]
    if len(places) != 1:
        kinds = ", ".join(node.block.kind for node in parts[:-1]) or "nothing"
        got = f"{len(places)} connections before `{parts[-1].name}` ({kinds})"
        fail(f"{op}: `network` must {expected}, got {got}. Put one before each layer of neurons.")
    (place,) = places
    if not isinstance(parts[-1].block, Spiking | Integrator):
        got = f"{parts[-1].block.kind} in `{parts[-1].name}`"
        fail(f"{op}: `network` must {expected} of snnjax.neurons, got {got}. Write it as a Neuron.")
    shapes = network.shapes
    return ChainLayer(
        parts[:place],
        parts[place],
        parts[place + 1 : -1],
        parts[-1],
        returning,
        shapes[parts[0].sources[0]],
        shapes[parts[place].sources[0]],
        shapes[parts[-1].name],
    )
