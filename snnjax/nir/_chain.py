"""Convert a graph to the chain of a network: subgraphs are inlined, cycles found, nodes ordered."""

from typing import Any, NamedTuple

from snnjax._check import fail

NEURONS = ("IF", "LIF", "CubaLIF", "I", "LI", "CubaLI", "Threshold")
SPIKING = ("IF", "LIF", "CubaLIF", "Threshold")
_DENSE = ("Affine", "Linear")
_CONNECTIONS = (*_DENSE, "Scale", "Conv1d", "Conv2d", "SumPool2d", "AvgPool2d", "Flatten", "Delay")
_ENDS = ("Input", "Output")
# The limit on nested subgraphs: a graph may even contain itself.
_MAX_DEPTH = 16

Edge = tuple[str, str]


class Step(NamedTuple):
    """A node of the graph, and its name."""

    name: str
    node: Any

    @property
    def kind(self) -> str:
        """The name of its class."""
        return type(self.node).__name__


class Stage(NamedTuple):
    """Neurons and the nodes before them; the last stage may have no neurons."""

    connections: tuple[Step, ...]
    neuron: Step | None
    recurrent: tuple[Step, ...] | None  # the path of its spikes back to it; () is a bare edge


class Chain(NamedTuple):
    """A graph as a chain of stages."""

    shape: Any  # of the input, as NIR writes it
    stages: tuple[Stage, ...]


def chain_of(graph: Any) -> Chain:
    """The stages of a graph from its Input to its Output."""
    nodes, edges = _inlined(graph, "", 0)
    for name, node in nodes.items():
        if type(node).__name__ not in (*NEURONS, *_CONNECTIONS, *_ENDS):
            actual = f"{type(node).__name__} ({name})"
            hint = f"Replace it by some of {', '.join((*NEURONS, *_CONNECTIONS))}"
            fail(f"from_nir: `graph` must hold nodes that networks here support, got {actual}. {hint}.")
    for edge in edges:
        for name in edge:
            if name not in nodes:
                hint = "Add the node, or remove the edge"
                fail(f"from_nir: `graph` must connect nodes that it holds, got an edge {edge}. {hint}.")
    starts, ends = ([name for name, node in nodes.items() if type(node).__name__ == kind] for kind in _ENDS)
    for kind, found in zip(_ENDS, (starts, ends), strict=True):
        if len(found) != 1:
            hint = "Write each of the networks into a graph" if found else "Add it"
            fail(f"from_nir: `graph` must have one {kind}, got {' and '.join(found) or 'none'}. {hint}.")
    stages = _walk(nodes, list(dict.fromkeys(edges)), starts[0], ends[0])
    return Chain(next(iter(nodes[starts[0]].input_type.values())), stages)


def _inlined(graph: Any, prefix: str, depth: int) -> tuple[dict[str, Any], list[Edge]]:
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
        inner, inner_edges = _inlined(node, full + "/", depth + 1)
        ends = [
            [n for n in inner if type(inner[n]).__name__ == kind and "/" not in n.removeprefix(full + "/")]
            for kind in _ENDS
        ]
        for kind, found in zip(_ENDS, ends, strict=True):
            if len(found) != 1:
                actual, hint = len(found), "Write its nodes into the graph itself"
                fail(f"from_nir: `graph` must have one {kind} in the subgraph {full}, got {actual}. {hint}.")
        (first,), (last,) = ends
        entries = [b for a, b in inner_edges if a == first]
        exits = [a for a, b in inner_edges if b == last]
        kept = [edge for edge in inner_edges if edge[0] != first and edge[1] != last]
        around = [(a, e) for a, b in edges if b == full for e in entries]
        around += [(e, b) for a, b in edges if a == full for e in exits]
        edges = [edge for edge in edges if full not in edge] + kept + around
        nodes |= {n: each for n, each in inner.items() if n not in (first, last)}
    return nodes, edges


def _walk(nodes: dict[str, Any], edges: list[Edge], start: str, end: str) -> tuple[Stage, ...]:
    after: dict[str, list[str]] = {name: [b for a, b in edges if a == name] for name in nodes}
    before: dict[str, list[str]] = {name: [a for a, b in edges if b == name] for name in nodes}
    seen, stages, connections, name = {start}, [], [], _only(after[start], start)
    while name != end:
        if name in seen:
            fail(
                "from_nir: `graph` must have no cycles except from neurons to themselves, got one at "
                f"{name}. {_CUT}."
            )
        seen.add(name)
        step, back, onward = Step(name, nodes[name]), None, after[name]
        if step.kind in NEURONS:
            back, onward = _recurrence(nodes, after, before, name)
            stages.append(Stage(tuple(connections), step, back))
            seen.update(each.name for each in back or ())
            connections = []
        else:
            connections.append(step)
        came_back = (back[-1].name if back else name) if back is not None else None
        others = [a for a in before[name] if a != came_back]
        if len(others) != 1:
            actual = f"{len(others)} edges to {name}, from {others}"
            hint = "Write one path, and recurrence as neurons, Linear, and back to the same neurons"
            fail(f"from_nir: `graph` must be one chain, got {actual}. {hint}.")
        name = _only(onward, name)
    seen.add(end)
    lost = [name for name in nodes if name not in seen]
    if lost:
        actual = f"{' and '.join(lost)} outside it"
        fail(
            f"from_nir: `graph` must be one chain from Input to Output, got {actual}. Connect or remove them."
        )
    if len(before[end]) != 1:
        fail(f"from_nir: `graph` must be one chain, got {len(before[end])} edges to {end}. Write one path.")
    return (*stages, Stage(tuple(connections), None, None)) if connections or not stages else tuple(stages)


_CUT = "Remove the edge, or let it lead from a Linear after neurons to the same neurons"


def _only(names: list[str], source: str) -> str:
    """The only successor."""
    if len(names) != 1:
        actual = f"{len(names) or 'no'} edges from {source}"
        hint = "Write one path from Input to Output, and recurrence only after neurons"
        fail(f"from_nir: `graph` must be one chain, got {actual}. {hint}.")
    return names[0]


def _recurrence(
    nodes: dict[str, Any], after: dict[str, list[str]], before: dict[str, list[str]], neuron: str
) -> tuple[tuple[Step, ...] | None, list[str]]:
    """The path of a neuron's spikes back to it, or None, and its other successors."""
    back, onward = None, []
    for branch in after[neuron]:
        way = _way_back(nodes, after, neuron, branch)
        if way is None:
            onward.append(branch)
            continue
        if back is not None:
            actual = f"two from {neuron} to itself"
            fail(
                f"from_nir: `graph` must have one recurrent path per layer, got {actual}. Add their weights."
            )
        for step in way:
            if len(before[step.name]) != 1:
                expected = f"have separate recurrent weights after {neuron}"
                actual = f"edges from {' and '.join(before[step.name])} to {step.name}"
                hint = f"Connect the input of {neuron} to it, not to {step.name}"
                fail(f"from_nir: `graph` must {expected}, got {actual}. {hint}.")
        back = way
    return back, onward


def _way_back(
    nodes: dict[str, Any], after: dict[str, list[str]], neuron: str, name: str
) -> tuple[Step, ...] | None:
    """The nodes from a successor of a neuron back to it, None if the path leads elsewhere."""
    way: list[Step] = []
    while name != neuron:
        if type(nodes[name]).__name__ not in (*_DENSE, "Scale", "Delay") or len(after[name]) != 1:
            return None
        if any(step.name == name for step in way):
            return None
        way.append(Step(name, nodes[name]))
        name = after[name][0]
    return tuple(way)
