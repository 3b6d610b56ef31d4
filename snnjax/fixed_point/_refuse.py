"""What a chip cannot do, by name."""

import math
from typing import NoReturn, cast

from snnjax._check import fail, plural
from snnjax.blocks._dense import Dense
from snnjax.blocks.conv import Convolve
from snnjax.blocks.pool import Flatten, Pool
from snnjax.blocks.readout import Integrator
from snnjax.blocks.spiking import Spiking
from snnjax.fixed_point._chips import FixedPoint
from snnjax.fixed_point._cores import check_cores
from snnjax.fixed_point._route import route_of
from snnjax.graph.containers import Node
from snnjax.graph.layers import ChainLayer
from snnjax.neurons import Neuron

# Float32 holds sums of integers exactly, in any order, below this.
_EXACT = 2**24
# A convolution may be computed in blocks of 2 x 2 outputs (Winograd): in quarters, and for counts of spikes with sums
# on the way of up to 4/3 of the largest that may result.
_EXACT_CONVOLUTION = _EXACT // 4 * 3 // 4


def check_layers(op: str, layers: tuple[ChainLayer, ...], chip: FixedPoint, *, train: bool) -> None:
    """Refuse layers that the chip does not have, and more of them than it holds; in training also dropout."""
    if len(layers) < 2 and chip.late == "hidden":
        hint = "Add a layer before the readout"
        fail(f"{op}: `network` must have a hidden layer and a readout on {chip.name}, got one layer. {hint}.")
    for place, layer in enumerate(layers):
        _check_layer(op, layer, chip, train)
        last = place == len(layers) - 1
        if layer.returning and (chip.recurrent == "none" or (last and chip.recurrent == "hidden")):
            what = "layers" if chip.recurrent == "none" else "a readout"
            expected = f"have {what} without recurrence on {chip.name}"
            _refuse(op, expected, layer.neuron, "recurrent", "Leave it out")
    _check_sizes(op, layers, chip)
    check_cores(op, layers, chip)
    if train:
        _check_learning(op, layers)


def _check_layer(op: str, layer: ChainLayer, chip: FixedPoint, train: bool) -> None:
    """Refuse blocks and neurons that the chip does not have."""
    for node in (*layer.before, *layer.between):
        if isinstance(node.block, Pool) and node in layer.before and "conv2d" in chip.connections:
            _check_pool(op, node, node.block, chip)
        elif not isinstance(node.block, Flatten) and not node.block.is_skipped(train=train):
            _refuse_block(op, node, chip)
    connection = layer.connection.block
    if not isinstance(connection, Dense | Convolve) or connection.kind not in chip.connections:
        _refuse_block(op, layer.connection, chip)
    if isinstance(connection, Convolve):
        _check_convolution(op, layer, connection, chip)
    late, returning = next(iter(layer.returning), None), layer.returning[1:]
    for node in returning:
        if not isinstance(node.block, Dense) or node.block.bias:
            _refuse_block(op, node, chip)
    steps = getattr(late and late.block, "steps", 1)
    if late is not None and (len(returning) != 1 or steps != 1):
        got = plural(len(returning), "block") if len(returning) != 1 else f"{steps} steps"
        _refuse(op, "return spikes by one connection in one step", late, got, "Use recurrent=True")
    block = layer.neuron.block
    if not isinstance(block, Spiking | Integrator):
        _refuse_block(op, layer.neuron, chip)
    _check_neuron(op, layer.neuron, block.neuron, chip)


def _check_pool(op: str, node: Node, pool: Pool, chip: FixedPoint) -> None:
    """Refuse pools other than sums and means of square windows side by side."""
    window = pool.window if isinstance(pool.window, tuple) else (pool.window,)
    beside = pool.strides in (None, pool.window) and pool.padding in (None, 0)
    if pool.how == "max" or not beside or len(set(window)) != 1 or window[0] is None:
        got = f"{pool.kind} of window {pool.window}, strides {pool.strides} and padding {pool.padding}"
        expected = f"have sums and means of square windows side by side on {chip.name}"
        _refuse(op, expected, node, got, "Use sum_pool(2), for instance")


def _check_convolution(op: str, layer: ChainLayer, block: Convolve, chip: FixedPoint) -> None:
    """Refuse convolutions that a core does not have."""
    form = block.geometry(layer.connection_shape)
    wrong = {
        f"a kernel of {form.kernel}": len(set(form.kernel)) != 1,
        f"{form.groups} groups": form.groups != 1,
        f"dilation {form.dilation}": set(form.dilation) != {1},
        f"padding {form.padding}": any(before != after for before, after in form.padding),
    }
    found = [words for words, is_wrong in wrong.items() if is_wrong]
    if found:
        expected = (
            f"have square kernels, padded alike on both sides, without groups or dilation on {chip.name}"
        )
        _refuse(op, expected, layer.connection, found[0], "Use conv2d(8, 3, padding=1), for instance")


def _check_neuron(op: str, node: Node, own: Neuron, chip: FixedPoint) -> None:
    """Refuse neurons that the chip does not have."""
    replaced = own.sent is None and (own.integrate is not None or own.fire is not None)
    known = own.name in chip.neurons and own.glif is not None and not replaced
    if not known or own.sequence is not None or own.is_graded:
        hint = f"Use {' or '.join(chip.neurons)}"
        _refuse(op, f"have neurons of {chip.name}", node, own.name, hint)
    form, arguments = own.glif, dict(own.arguments)
    assert form is not None
    if arguments.get("initial"):
        got, hint = f"initial={arguments['initial']:g}", "Leave it out"
        _refuse(op, "have neurons that start at 0", node, got, hint)
    many = arguments.get("learn_threshold") or isinstance(arguments.get("threshold"), tuple)
    if chip.one_scale and many and own.per != "layer":
        hint = "Pass per='layer', or one threshold that is not learned"
        _refuse(op, f"have one threshold for a layer on {chip.name}", node, "one for each channel", hint)
    if own.spikes and form.reset != chip.reset:
        expected = f"have neurons with reset={chip.reset!r} on {chip.name}"
        _refuse(op, expected, node, repr(form.reset), f"Train with neurons.{own.name}(reset={chip.reset!r})")
    if form.reset_time == "after_decay" or form.spike_from == "old":
        got = ", ".join(f"{name}={value!r}" for name, value in form.conventions.items())
        hint = "Leave these switches out"
        _refuse(op, "reset neurons before they decay, by their new spikes", node, got, hint)


def _check_sizes(op: str, layers: tuple[ChainLayer, ...], chip: FixedPoint) -> None:
    """Refuse more inputs and neurons than the chip has, and sums that float32 does not hold."""
    widths = [math.prod(layer.out_shape) for layer in layers]
    sizes = {
        "max_inputs": (math.prod(layers[0].connection_shape), "inputs"),
        "max_hidden": (sum(widths[:-1]), "hidden neurons"),
        "max_outputs": (widths[-1], "outputs"),
    }
    for name, (count, what) in sizes.items():
        most = getattr(chip, name)
        if most is not None and count > most:
            fail(
                f"{op}: `network` must have at most {most} {what} on {chip.name}, got {count}. For its arithmetic "
                f"without this limit pass dataclasses.replace(chip, {name}=None)."
            )
    for place, layer in enumerate(layers):
        most = chip.max_input if place == 0 else chip.max_spikes
        route = route_of(layer)
        sources = most * route.fan_in(math.prod(layer.connection_shape))
        sources += widths[place] * chip.max_spikes if layer.returning else 0
        most = _EXACT >> (chip.weight_bits - 1 + chip.weight_shift)
        if route.convolution is not None:
            most = min(most, _EXACT_CONVOLUTION >> (chip.weight_bits - 1))
        if sources >= most:
            fail(
                f"{op}: `network` must sum fewer than {most} spikes a step in `{layer.neuron.name}`, got up to "
                f"{sources}. Use fewer inputs to the layer."
            )


def _check_learning(op: str, layers: tuple[ChainLayer, ...]) -> None:
    """Refuse what has no derivative through integers."""
    for layer in layers:
        own = cast(Spiking | Integrator, layer.neuron.block).neuron
        arguments = dict(own.arguments)
        if any(arguments.get(name) for name in ("learn_decay", "learn_synapse_decay")):
            hint = "Pass learn_decay=False: decays are whole numbers on a chip"
            _refuse(op, "have neurons whose decays are not learned", layer.neuron, own.name, hint)
        if own.sent is not None:
            hint = "Pass gradient='surrogate'"
            _refuse(op, "have neurons with a surrogate", layer.neuron, "gradient='spike_times'", hint)


def _refuse_block(op: str, node: Node, chip: FixedPoint) -> NoReturn:
    kinds = " or ".join(chip.connections)
    hint = f"Use {kinds} connections between its layers, and fold norms with network.fold"
    _refuse(op, f"have blocks of {chip.name}", node, node.block.kind, hint)


def _refuse(op: str, expected: str, node: Node, got: str, hint: str) -> NoReturn:
    fail(f"{op}: `network` must {expected}, got {got} in `{node.name}`. {hint}.")
