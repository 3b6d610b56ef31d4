"""Estimates of what a time step of `lif_network` takes on an IPU, forward and backward, in each of its forms.

On codelets (lists), products of a layer's inputs go by lists or to the matrix unit, whichever the plan expects to be
faster; the dense form is the reference, all of whose products the matrix unit takes. The cheapest form runs. A form
costs so many cycles for each of the `Terms` of a network. The costs were fitted to the grid of
`tests/benchmarks/devices/beside_dense.py` (``fit`` there), on the modelled Bow: 256 to 2,048 neurons, 4 to 64 samples,
0.5 to 10 % active, lists with room for three times as many spikes as there are. Nobody knows before a run how many
there will be, so capacity is the only hint: an estimate is that of a network whose lists have such room.
"""

import math
from typing import NamedTuple

import jax

from snnjax.ipu.device.core import MOST_WITHOUT_LOOP, Operands, Switches

# Of a whole Mk2 or Bow, whatever the device has: the costs below were fitted to these and to no smaller number, for
# which nobody has compared them, and the `ipu_tiles` of a program follow only after its form is chosen.
TILES = 1472


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
    tiles: int
    dtype: str  # of the weights
    layers: tuple[Layer, ...]


class Terms(NamedTuple):
    """What takes cycles in a time step; those of all layers are added up. Numbers of elements are those of a tile."""

    network: float = 0.0  # 1
    runs: float = 0.0  # 1 / steps: copies of arguments, first and last steps
    layers: float = 0.0
    neurons: float = 0.0  # states of a step
    weights: float = 0.0  # of a layer's inputs, which are read and have gradients once a run
    columns: float = 0.0  # neurons, which are not spread over samples
    products: float = 0.0  # of all inputs and weights
    rows: float = 0.0  # of listed inputs and weights
    lists: float = 0.0  # slots of lists made by one tile each
    listed: float = 0.0  # neurons that such a tile looks at
    loops: float = 0.0  # the same of recurrent layers, step by step
    loop_runs: float = 0.0  # 1 / steps: what all steps need before and after the loop, if they are few
    loop_rounds: float = 0.0  # 1 where the steps are too many to do without a loop
    loop_neurons: float = 0.0
    loop_columns: float = 0.0
    loop_products: float = 0.0
    loop_weights: float = 0.0  # recurrent, which the matrix unit takes in each step
    loop_rows: float = 0.0
    loop_lists: float = 0.0


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
    return Sizes(steps, batch, TILES, operands.dtype.name, tuple(layers))


def terms_of(sizes: Sizes) -> Terms:
    """The terms of a network."""
    network = Terms(network=1.0, runs=1 / sizes.steps)
    return Terms(*map(sum, zip(network, *terms_of_layers(sizes), strict=True)))


def terms_of_layers(sizes: Sizes) -> list[Terms]:
    """What each layer adds to them."""
    return [_of_layer(sizes, layer) for layer in sizes.layers]


def _of_layer(sizes: Sizes, layer: Layer) -> Terms:
    steps, batch, tiles = sizes[:3]
    slots = layer.neurons if layer.capacity is None else layer.capacity
    samples_of_tile = math.ceil(steps * batch / tiles) / steps
    terms = Terms(
        layers=1.0,
        neurons=batch * layer.neurons / tiles,
        weights=layer.inputs * layer.neurons / tiles / steps,
        columns=layer.neurons / 1000,
        products=batch * layer.inputs * layer.neurons / tiles,
        rows=batch * layer.slots * layer.neurons / tiles,
        lists=samples_of_tile * slots,
        listed=samples_of_tile * layer.neurons,
    )
    if not layer.is_recurrent:
        return terms
    return terms._replace(
        loops=1.0,
        loop_runs=1 / min(steps, MOST_WITHOUT_LOOP),
        loop_rounds=float(steps > MOST_WITHOUT_LOOP),
        loop_neurons=batch * layer.neurons / tiles,
        loop_columns=layer.neurons / 1000,
        loop_products=batch * layer.neurons**2 / tiles,
        loop_weights=layer.neurons**2 / tiles,
        loop_rows=batch * slots * layer.neurons / tiles,
        loop_lists=float(slots),
    )


# Cycles for each term. Lists take as long with weights of float16; of the dense form cells of 16 samples were fitted.
# What runs take in any case was measured with 8 steps of 96 neurons, rounds with 64 to 200 steps of 256 to 1,024 and 4
# samples, the rest with 32 steps. The costs of loops were fitted to the choice as well: of two forms that differ by 3 %
# and more, the faster one is estimated to be so by 2 %.
_LISTS = Terms(
    network=223,
    runs=21000,
    layers=41.4,
    neurons=33.9,
    products=0.216,
    rows=1.19,
    lists=163,
    listed=11.2,
    loops=4420,
    loop_neurons=182,
    loop_columns=715,
    loop_rows=2.06,
    loop_lists=36.6,
)
_DENSE = Terms(
    network=628,
    runs=42000,
    neurons=117,
    columns=640,
    products=0.188,
    loops=1290,
    loop_runs=97000,
    loop_rounds=1000,
    loop_columns=1350,
    loop_products=0.526,
    loop_weights=3.53,
)
LISTS = {"float32": _LISTS, "float16": _LISTS}
DENSE = {
    "float32": _DENSE,
    "float16": _DENSE._replace(network=788, neurons=199, columns=0.0, products=0.115),
}


def on_codelets(sizes: Sizes) -> float:
    """Cycles of a time step on codelets; the products of each layer's inputs in their cheaper way."""
    cycles = LISTS[sizes.dtype]
    either = (
        min(cycles.rows * layer.rows, cycles.products * layer.products) for layer in terms_of_layers(sizes)
    )
    return cost(cycles._replace(rows=0.0, products=0.0), sizes) + sum(either)


def as_reference(sizes: Sizes) -> float:
    """Cycles of a time step of the dense form, if no list overflows."""
    return cost(DENSE[sizes.dtype], sizes)


def cost(cycles: Terms, sizes: Sizes) -> float:
    """The sum over the terms of a network."""
    return sum(each * term for each, term in zip(cycles, terms_of(sizes), strict=True))


def pays(operands: Operands, switches: Switches) -> bool:
    """Whether the codelets are estimated to be at least as fast as the reference.

    It follows from static sizes alone, so that both passes of a network decide alike.
    """
    sizes = sizes_of(operands, switches)
    return on_codelets(sizes) <= as_reference(sizes)
