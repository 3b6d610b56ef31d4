"""The recurrent connection of neurons, from the way of their spikes back to them."""

import dataclasses
import math
from typing import Any, NamedTuple

import numpy as np

from snnjax._check import fail
from snnjax._types import Params, Stats
from snnjax.blocks.block import Block
from snnjax.blocks.linear import LinearParams
from snnjax.nir._check import per_neuron
from snnjax.nir._layout import Layout
from snnjax.nir._metadata import facts_of
from snnjax.nir._read_connections import Signal, Weights, delays_of, identity_of, weights_of
from snnjax.nir._wiring import Step


class Part(NamedTuple):
    """A block of a recurrent connection."""

    block: Block
    params: Params
    stats: Stats
    name: str | None  # that it had before `to_nir`


class Feedback(NamedTuple):
    """A recurrent connection."""

    parts: tuple[Part, ...]
    bias: np.ndarray | None  # a constant current that is not part of it, one value per neuron


def feedback_of(
    way: tuple[Step, ...] | None, name: str, layout: Layout, scale: np.ndarray | None, dt: float
) -> Feedback:
    """The recurrent connection of the neurons `name`, whose inputs are scaled."""
    if way is None:
        return Feedback((), None)
    signal, parts = Signal(name, layout), []
    for step in way:
        if step.kind == "Scale":
            factor = per_neuron(step.name, step.node, "scale", signal.layout)
            signal = _scale(step.name, signal, parts, factor)
        elif step.kind == "Delay":
            parts.append(delays_of(step, signal.layout, dt))
        else:
            weights = _in_order(weights_of(step, signal), layout)
            signal, parts = Signal(name, weights.layout), [*parts, weights]
    if not any(isinstance(part, Weights) for part in parts):
        weights = identity_of(name, layout)
        parts.append(weights if signal.factor is None else weights.scaled(name, signal.factor, None))
    if not signal.layout.fits(layout):
        hint, shapes = "Make the weights square", f"{list(layout.theirs)} to {list(signal.layout.theirs)}"
        fail(f"from_nir: `graph` must feed {name} back to itself, got weights from {shapes}. {hint}.")
    if scale is not None:
        _scale(name, signal, parts, scale)
    return _without_bias(parts, way)


def _scale(name: str, signal: Signal, parts: list[Any], factor: np.ndarray) -> Signal:
    """Scale the last weights, or the inputs of the first."""
    for place in reversed(range(len(parts))):
        if isinstance(parts[place], Weights):
            parts[place] = parts[place].scaled(name, factor, None)
            return signal
    return signal._replace(factor=factor if signal.factor is None else signal.factor * factor)


def _in_order(made: Weights, layout: Layout) -> Weights:
    """Dense weights to neurons of a flattened image, in our order."""
    if made.layout.shape != layout.shape or not layout.is_flat:
        return made
    weights: Any = np.empty(made.params.weights.shape)
    weights[:, layout.order] = made.params.weights
    bias: Any = made.params.bias
    if bias is not None:
        bias = np.empty(bias.shape)
        bias[layout.order] = made.params.bias
    return made._replace(params=LinearParams(weights, bias), layout=layout)


def _without_bias(parts: list[Any], way: tuple[Step, ...]) -> Feedback:
    """The blocks without the bias of the last one, which `to_nir` did not write: it is added to that of the inputs."""
    bias, last = None, parts[-1]
    if isinstance(last, Weights) and not (way and facts_of(*way[-1]).get("bias") is True):
        given: Any = last.params.bias
        if given is not None and given.any():
            bias = np.tile(given, math.prod(last.layout.shape[:-1])) if len(last.layout.shape) > 1 else given
        parts[-1] = last._replace(params=last.params._replace(bias=None))
    # Nodes of the way that are part of others have no block; if all have one, they have their names.
    names = [facts_of(*step).get("name") for step in way] if len(way) == len(parts) else [None] * len(parts)
    found = []
    for (block, arrays, *_), name in zip(parts, names, strict=True):
        is_linear = isinstance(arrays, LinearParams)
        own = dataclasses.replace(block, bias=arrays.bias is not None) if is_linear else block
        learns = is_linear or block.learn
        given = name if isinstance(name, str) else None
        found.append(Part(own, arrays if learns else None, None if learns else arrays, given))
    return Feedback(tuple(found), bias)
