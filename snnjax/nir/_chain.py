"""Convert a graph to the chain of a network: subgraphs are inlined, cycles found, nodes ordered."""

from typing import Any, NamedTuple

from snnjax.nir._check import refuse, require

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
        known = type(node).__name__ in (*NEURONS, *_CONNECTIONS, *_ENDS)
        hint = f"Replace it by nodes that are: {', '.join((*NEURONS, *_CONNECTIONS))}"
        require(known, "hold nodes that networks here support", f"{type(node).__name__} ({name})", hint)
    for edge in edges:
        for name in edge:
            require(
                name in nodes,
                "connect nodes that it holds",
                f"an edge {edge}",
                "Add the node, or remove the edge",
            )
    starts, ends = ([name for name, node in nodes.items() if type(node).__name__ == kind] for kind in _ENDS)
    for kind, found in zip(_ENDS, (starts, ends), strict=True):
        hint = "Write networks of several apart" if found else "Add one"
        require(len(found) == 1, f"have one {kind}", f"{len(found)}: {found}", hint)
    stages = _walk(nodes, list(dict.fromkeys(edges)), starts[0], ends[0])
    return Chain(next(iter(nodes[starts[0]].input_type.values())), stages)


def _inlined(graph: Any, prefix: str, depth: int) -> tuple[dict[str, Any], list[Edge]]:
    """All nodes and edges, with subgraphs replaced by their contents."""
    require(depth < _MAX_DEPTH, f"nest at most {_MAX_DEPTH} subgraphs", "more", "Flatten it")
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
            hint = "Write its nodes into the graph itself"
            require(len(found) == 1, f"have one {kind} in the subgraph {full}", len(found), hint)
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
        require(name not in seen, "have no cycles except from neurons to themselves", f"one at {name}", _CUT)
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
        hint = "Write one path, and recurrence as neurons, Linear, and back to the same neurons"
        require(len(others) == 1, "be one chain", f"{len(others)} edges to {name}, from {others}", hint)
        name = _only(onward, name)
    seen.add(end)
    lost = [name for name in nodes if name not in seen]
    hint = "Connect or remove them"
    require(not lost, "be one chain from Input to Output", f"{lost} outside it", hint)
    require(len(before[end]) == 1, "be one chain", f"{len(before[end])} edges to {end}", "Write one path")
    return (*stages, Stage(tuple(connections), None, None)) if connections or not stages else tuple(stages)


_CUT = "Remove the edge, or let it lead from a Linear after neurons to the same neurons"


def _only(names: list[str], source: str) -> str:
    """The only successor."""
    hint = "Write one path from Input to Output, and recurrence only after neurons"
    if len(names) != 1:
        refuse("be one chain", f"{len(names)} edges from {source}", hint)
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
        where = f"two from {neuron} to itself"
        require(back is None, "have one recurrent path per layer", where, "Add their weights")
        for step in way:
            alone = len(before[step.name]) == 1
            expected = f"have separate recurrent weights after {neuron}"
            actual = f"other edges to {step.name}: {before[step.name]}"
            require(alone, expected, actual, f"Connect the input of {neuron} to it, not to {step.name}")
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
