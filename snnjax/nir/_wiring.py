"""The nodes of a graph in the order in which they run: subgraphs are inlined, recurrences found."""

from typing import Any, NamedTuple

from snnjax._check import fail, plural
from snnjax.nir._check import NIRNode
from snnjax.nir._neurons import INTEGRATORS, SPIKING, THRESHOLD

_SPIKING = (*SPIKING, THRESHOLD)
NEURONS = (*_SPIKING, *INTEGRATORS)
WEIGHTS = ("Affine", "Linear", "Conv1d", "Conv2d")
_OTHERS = ("Scale", "SumPool2d", "AvgPool2d", "Flatten", "Delay")
_ENDS = ("Input", "Output")
# What may stand on the way of the spikes of neurons back to them.
_ON_WAYS = (*WEIGHTS, "Scale", "Delay")
# The limit on nested subgraphs: a graph may even contain itself.
_MAX_DEPTH = 16

Edge = tuple[str, str]


class Step(NamedTuple):
    """A node of the graph, and its name."""

    name: str
    node: NIRNode

    @property
    def kind(self) -> str:
        """The name of its class."""
        return type(self.node).__name__


class Place(NamedTuple):
    """A node of the graph among the others."""

    step: Step
    threshold: Step | None  # directly behind integrators: together they are neurons without reset
    sources: tuple[str, ...]  # names of the nodes whose signals add up
    recurrent: tuple[Step, ...] | None  # the way of its spikes back to it; () is a bare edge
    readers: tuple[str, ...]  # names of the other nodes that receive its signal


class _Graph(NamedTuple):
    """Nodes by name, and edges."""

    nodes: dict[str, Any]
    edges: list[Edge]

    def kind(self, name: str) -> str:
        return type(self.nodes[name]).__name__

    def before(self, name: str) -> list[str]:
        return [a for a, b in self.edges if b == name]

    def after(self, name: str) -> list[str]:
        return [b for a, b in self.edges if a == name]

    def of_kind(self, kind: str) -> list[str]:
        return [name for name in self.nodes if self.kind(name) == kind]


def places_of(graph: NIRNode) -> tuple[Place, ...]:
    """The nodes of a graph in order, each behind those whose signals it receives."""
    inlined = _inlined(graph, "", 0)
    _check_nodes(inlined)
    inlined = inlined._replace(edges=list(dict.fromkeys(inlined.edges)))
    whole, thresholds = _with_thresholds(inlined)
    ways = _ways_back(whole, thresholds)
    inner = {step.name for way in ways.values() for step in way}
    edges = [
        (a, b)
        for a, b in whole.edges
        if a not in inner and b not in inner and not (a == b and ways.get(a) == ())
    ]
    main = _Graph({name: node for name, node in whole.nodes.items() if name not in inner}, edges)
    _check_connected(main)
    return tuple(
        Place(
            Step(name, main.nodes[name]),
            thresholds.get(name),
            tuple(main.before(name)),
            ways.get(name),
            tuple(main.after(name)),
        )
        for name in _ordered(main)
    )


def _check_nodes(graph: _Graph) -> None:
    for name in graph.nodes:
        if graph.kind(name) not in (*NEURONS, *WEIGHTS, *_OTHERS, *_ENDS):
            hint = f"Replace it by some of {', '.join((*NEURONS, *WEIGHTS, *_OTHERS))}"
            actual = f"{graph.kind(name)} ({name})"
            fail(f"from_nir: `graph` must hold nodes that networks here support, got {actual}. {hint}.")
    for edge in graph.edges:
        for name in edge:
            if name not in graph.nodes:
                hint = "Add the node, or remove the edge"
                fail(f"from_nir: `graph` must connect nodes that it holds, got an edge {edge}. {hint}.")
    for kind in _ENDS:
        if not graph.of_kind(kind):
            fail(f"from_nir: `graph` must have an {kind}, got none. Add it.")


def _check_connected(graph: _Graph) -> None:
    """Check that every node leads from an Input to an Output."""
    for name in graph.nodes:
        kind, before, after = graph.kind(name), graph.before(name), graph.after(name)
        if bool(before) == (kind == "Input") or bool(after) == (kind == "Output"):
            actual = f"{plural(len(before), 'edge')} to {name} and {len(after)} from it"
            fail(
                f"from_nir: `graph` must lead from Inputs to Outputs through every node, got {actual}. "
                "Connect or remove it."
            )


def _inlined(graph: NIRNode, prefix: str, depth: int) -> _Graph:
    """All nodes and edges, with subgraphs replaced by their contents."""
    if not depth < _MAX_DEPTH:
        fail(f"from_nir: `graph` must nest at most {_MAX_DEPTH} subgraphs, got more. Flatten it.")
    nodes: dict[str, Any] = {}
    edges: list[Edge] = [(prefix + str(a), prefix + str(b)) for a, b in graph.edges]
    for name, node in graph.nodes.items():
        full = prefix + str(name)
        if type(node).__name__ != "NIRGraph":
            nodes[full] = node
            continue
        inner = _inlined(node, full + "/", depth + 1)
        ends = [
            [each for each in inner.of_kind(kind) if "/" not in each.removeprefix(full + "/")]
            for kind in _ENDS
        ]
        for kind, found in zip(_ENDS, ends, strict=True):
            if len(found) != 1:
                actual, hint = len(found), "Write its nodes into the graph itself"
                fail(f"from_nir: `graph` must have one {kind} in the subgraph {full}, got {actual}. {hint}.")
        (first,), (last,) = ends
        kept = [edge for edge in inner.edges if edge[0] != first and edge[1] != last]
        around = [(a, entry) for a, b in edges if b == full for entry in inner.after(first)]
        around += [(way_out, b) for a, b in edges if a == full for way_out in inner.before(last)]
        edges = [edge for edge in edges if full not in edge] + kept + around
        nodes |= {each: inside for each, inside in inner.nodes.items() if each not in (first, last)}
    return _Graph(nodes, edges)


def _with_thresholds(graph: _Graph) -> tuple[_Graph, dict[str, Step]]:
    """The graph with each Threshold directly behind integrators as a part of these, and the Thresholds by them."""
    thresholds, parts = {}, {}
    for name in graph.of_kind("Threshold"):
        before = graph.before(name)
        if len(before) == 1 and graph.kind(before[0]) in INTEGRATORS and graph.after(before[0]) == [name]:
            thresholds[before[0]], parts[name] = Step(name, graph.nodes[name]), before[0]
    nodes = {name: node for name, node in graph.nodes.items() if name not in parts}
    edges = [(parts.get(a, a), b) for a, b in graph.edges if b not in parts]
    return _Graph(nodes, edges), thresholds


def _ways_back(graph: _Graph, thresholds: dict[str, Step]) -> dict[str, tuple[Step, ...]]:
    """For neurons that feed back, the way of their spikes to them."""
    found: dict[str, tuple[Step, ...]] = {}
    for name in graph.nodes:
        if graph.kind(name) not in _SPIKING and name not in thresholds:
            continue
        for branch in graph.after(name):
            way = _way_back(graph, name, branch)
            if way is None:
                continue
            if name in found:
                hint, actual = "Add their weights", f"two from {name} to itself"
                fail(f"from_nir: `graph` must have one recurrent path per layer, got {actual}. {hint}.")
            for step in way:
                if len(before := graph.before(step.name)) != 1:
                    fail(
                        f"from_nir: `graph` must have separate recurrent weights after {name}, got edges from "
                        f"{' and '.join(before)} to {step.name}. Connect the input of {name} to it, not to "
                        f"{step.name}."
                    )
            found[name] = way
    return found


def _way_back(graph: _Graph, neuron: str, name: str) -> tuple[Step, ...] | None:
    """The nodes from a successor of a neuron back to it, None if the path leads elsewhere."""
    way: list[Step] = []
    while name != neuron:
        onward = graph.after(name)
        if graph.kind(name) not in _ON_WAYS or len(onward) != 1 or any(step.name == name for step in way):
            return None
        way.append(Step(name, graph.nodes[name]))
        name = onward[0]
    return tuple(way)


def _ordered(graph: _Graph) -> list[str]:
    """The names of the nodes, each behind those whose signals it receives."""
    before = {name: graph.before(name) for name in graph.nodes}
    found: dict[str, None] = {}
    waiting = list(graph.nodes)
    while waiting:
        later = []
        for name in waiting:
            if all(source in found for source in before[name]):
                found[name] = None
            else:
                later.append(name)
        if len(later) == len(waiting):
            seen, name = set(), later[0]
            while name not in seen:
                seen.add(name)
                name = next(source for source in before[name] if source not in found)
            fail(
                "from_nir: `graph` must have no cycles except from neurons that spike to themselves, got one at "
                f"{name}. Remove the edge, or let it lead from weights after neurons to the same neurons."
            )
        waiting = later
    return list(found)
