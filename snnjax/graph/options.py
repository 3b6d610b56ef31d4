"""The options of `Network.apply` that name blocks: what to record, and second thresholds."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from snnjax._check import alternatives, fail, short_repr
from snnjax._types import Unchecked
from snnjax.blocks._listing import check_second_number
from snnjax.blocks.block import Shape
from snnjax.graph.containers import Node
from snnjax.graph.fused import Arrays

# What `record` takes besides names.
_RECORDS = ("spikes", "membranes")


def checked_record(record: Unchecked, names: Iterable[str], implementation: str | None) -> tuple[str, ...]:
    """What to record; `names` are those of inputs, nodes and containers."""
    given = (record,) if isinstance(record, str) else record
    known = {*_RECORDS, *names}
    wrong = [own for own in given if own not in known] if isinstance(given, Sequence) else [given]
    if wrong:
        fail(
            "network.apply: `record` must hold 'spikes', 'membranes' or names of blocks, "
            f"got {short_repr(wrong[0])}. Print [node.name for node in network.nodes]."
        )
    if "membranes" in given and implementation == "cpu":
        fail(
            "network.apply: `implementation` must be None or 'reference' where membranes are recorded, "
            "got 'cpu'. Leave it None."
        )
    return tuple(given)


def recorded_nodes(
    record: tuple[str, ...], nodes: tuple[Node, ...], results: tuple[tuple[str, str], ...]
) -> dict[str, str]:
    """The nodes whose signals are recorded, by the names that were given."""
    names, found = dict(results), {}
    for own in record:
        if own == "spikes":
            found |= {node.name: node.name for node in nodes if node.block.is_spiking}
        elif own != "membranes":
            found[own] = names.get(own, own)
    return found


def second_thresholds(
    given: Any,
    nodes: tuple[Node, ...],
    results: tuple[tuple[str, str], ...],
    shapes: Mapping[str, Shape],
    arrays: Arrays,
) -> dict[str, Any]:
    """The second threshold of each node whose own one is overridden: by one for all, or by a dict."""
    lists = {node.name: node.block for node in nodes if node.block.lists_spikes}
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        given = dict.fromkeys(lists, given)
    names, found = dict(results), {}
    for name, second in given.items():
        node = names.get(name, name)
        if node not in lists:
            fail(
                f"network.apply: `second_threshold` must be for layers with a capacity, got one for {name!r}. "
                f"Choose {alternatives(list(lists)) if lists else 'a capacity for a layer first'}."
            )
        check_second_number("network.apply", second)
        found[node] = second
        held = (arrays.params.get(node), arrays.stats.get(node), shapes[node])
        lists[node].check_second_threshold("network.apply", *held, second)
    return found
