"""Checkpoints of format 3, in which recurrent connections were part of the neurons: their names and networks.

Deleted with version 0.2.
"""

from typing import Any

import numpy as np

from snnjax.blocks.spiking import Spiking
from snnjax.graph.describe import describe
from snnjax.graph.network import Network
from snnjax.graph.recurrence import given_blocks, recurrences

FORMAT = "snnjax checkpoint 3"
# The fields that have other names in the description of a network now.
_FIELDS = {"init_stats": "initial_stats"}


def with_new_fields(stored: Any) -> Any:
    """The description of a network in JSON, by the names that fields have now; arguments of neurons in any order."""
    if isinstance(stored, dict):
        new = {_FIELDS.get(name, name): with_new_fields(part) for name, part in stored.items()}
        if {"fan_in", "fan_out"} <= new.keys():  # of `sparse`, which has one of several rules now
            fans = {rule: new.pop(rule) for rule in ("fan_in", "fan_out")}
            new["rule"], new["value"] = next(pair for pair in fans.items() if pair[1] is not None)
        # Of a neuron, which may have several receptors now.
        return {"num_receptors": 1} | new | {"arguments": dict(new["arguments"])} if "glif" in new else new
    return list(map(with_new_fields, stored)) if isinstance(stored, list) else stored


def names_of(network: Network, escaped: Any) -> dict[tuple[str, str], tuple[str, ...]]:
    """What two parts of the name of an array have become: a node and a field, or a node and the number of a block."""
    found = {}
    for index, node in enumerate(network.nodes):
        if not isinstance(node.block, Spiking):
            continue
        name = escaped(node.name)
        found[name, "neuron"] = (name,)
        own = recurrences(network.nodes).get(index)
        if own is not None:
            found[name, "spikes"] = escaped(network.nodes[own.late].name), "sent"
            for place, block in enumerate(own.blocks):
                found[name, f"recurrent.{place}"] = (escaped(network.nodes[block].name),)
    return found


def renamed(name: str, names: dict[tuple[str, str], tuple[str, ...]]) -> str:
    """The name that an array has now."""
    parts = name.split(".")
    for place in range(1, len(parts) - 1):
        for length in (1, 2):
            key = parts[place], ".".join(parts[place + 1 : place + 1 + length])
            if key in names:
                return ".".join([*parts[:place], *names[key], *parts[place + 1 + length :]])
    return name


def as_now(name: str, array: np.ndarray) -> np.ndarray:
    """An array of the name that it has now: the last spikes, once of one step, are of the steps that are late."""
    return array[None] if name.endswith(".sent") and array.ndim == 2 else array


def described(network: Network) -> Any:
    """The description of a network as it was: recurrent connections within neurons."""
    nodes, found = network.nodes, describe(network)
    of_nodes, results = found["nodes"], dict(network.results)
    for index, node in enumerate(nodes):
        if not isinstance(node.block, Spiking):
            continue
        own, blocks = recurrences(nodes).get(index), []
        if own is not None:
            blocks = given_blocks(nodes, own)
            gone = {nodes[place].name for place in own.before}
            of_nodes[node.name]["sources"] = [s for s in nodes[own.join].sources if s not in gone]
            of_nodes = {name: each for name, each in of_nodes.items() if name not in gone}
            results = {name: each for name, each in results.items() if each not in gone}
        of_nodes[node.name]["block"]["recurrent"] = [describe(block) for block in blocks]
    return {**found, "nodes": of_nodes, "results": [list(pair) for pair in results.items()]}
