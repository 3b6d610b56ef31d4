"""Estimates of what a time step of `lif_network` takes on an IPU, forward and backward: on codelets and as plain JAX.

They decide which of both runs. Fitted to the IPU Model of a Bow: 1, 16, 64 and 256 samples, layers of 256 to 4096
neurons with lists of 0.5 to 10 %, and layers of 32 to 1024 without capacity; most are within a quarter of what it
counts. Both are of float32. Spikes cost what they are, which nobody knows before a run: 1 % of the neurons were active.
"""

import math
from typing import NamedTuple

import jax

from snnjax.ipu.device.core import Operands, Switches

_TILES = 1472
# Multiply-adds of a product that the whole chip completes in a cycle, with what an operand's way takes.
_PRODUCT_RATE = _TILES * 6.2


class Layer(NamedTuple):
    """The sizes of a layer that a time step depends on."""

    inputs: int
    slots: int  # of the lists that it reads, or its dense inputs
    neurons: int
    capacity: int | None
    is_recurrent: bool


class Sizes(NamedTuple):
    """The sizes of a network that a time step depends on."""

    steps: int
    batch: int
    layers: tuple[Layer, ...]


def sizes_of(operands: Operands, switches: Switches) -> Sizes:
    """The sizes of operands with a groups axis."""
    _, steps, batch, slots = jax.tree.leaves(operands.inputs)[0].shape
    layers = []
    each = zip(operands.linears, operands.constants, switches.layers, strict=True)
    for linear, constants, layer in each:
        inputs, neurons = linear.weights.shape[1:]
        capacity = None if layer.capacity is None else min(layer.capacity, neurons)
        layers.append(Layer(inputs, slots, neurons, capacity, constants.recurrent is not None))
        slots = neurons if capacity is None else capacity
    return Sizes(steps, batch, tuple(layers))


def on_codelets(sizes: Sizes) -> float:
    """Cycles of a time step on lists: of neurons and, once a run, of their weights; lists of all cost their dots.

    A recurrent layer has a second matrix, and a loop over the steps.
    """
    batch, cycles = sizes.batch, 1.2e3 + 17e3 / sizes.steps
    for layer in sizes.layers:
        cycles += layer.neurons * (max(1.0, 0.13 * batch - 0.5) + 100 / sizes.steps)
        if layer.capacity is None:
            cycles += layer.neurons * (13.5 + 0.28 * batch)
        if layer.is_recurrent:
            cycles += 4e3 + layer.neurons * (0.15 * batch + 50 / sizes.steps)
            if layer.capacity is None:
                cycles += layer.neurons * 16
    return cycles


def as_reference(sizes: Sizes) -> float:
    """Cycles of a time step of plain JAX: products, scans of mostly fixed cost, and sorts to fill capped lists."""
    batch, cycles = sizes.batch, 5e3
    for layer in sizes.layers:
        cycles += 8e3 + 3 * batch * layer.inputs * layer.neurons / _PRODUCT_RATE
        if (
            layer.capacity is not None
        ):  # a row of memberships a tile, all steps at once or one after the other
            at_once = 1 if layer.is_recurrent else sizes.steps
            cycles += 6e3 + math.ceil(at_once * batch / _TILES) / at_once * layer.neurons * 1130
        if layer.is_recurrent:  # every step adds to the gradient of the weights
            cycles += 9e3 + layer.neurons**2 * (0.0145 + 3 * batch / _PRODUCT_RATE)
    return cycles


def pays(operands: Operands, switches: Switches) -> bool:
    """Whether the codelets are estimated to be at least as fast as the reference.

    It follows from static sizes alone, so that both passes of a network decide alike.
    """
    sizes = sizes_of(operands, switches)
    return on_codelets(sizes) <= as_reference(sizes)
