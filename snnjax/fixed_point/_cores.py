"""Whether the cores of a chip hold a network: one layer each, with room for its weights and neurons."""

import math

from snnjax._check import fail
from snnjax.blocks.pool import Flatten
from snnjax.fixed_point._chips import FixedPoint
from snnjax.fixed_point._route import route_of
from snnjax.graph.layers import ChainLayer


def check_cores(op: str, layers: tuple[ChainLayer, ...], chip: FixedPoint) -> None:
    """Refuse layers of which each cannot have a core of its own."""
    if not chip.cores:
        return
    held: dict[int, int] = {}  # the layer of a core
    for place, layer in enumerate(layers):
        if not _placed(place, [_memory(own) for own in layers], chip.cores, held, set()):
            weights, neurons = _memory(layer)
            hint = "Use fewer channels, or pool more"
            fail(
                f"{op}: `network` must fit into the {len(chip.cores)} cores of {chip.name}, got no core left for "
                f"{weights} weights and {neurons} neurons of `{layer.neuron.name}`. {hint}."
            )


def _placed(
    place: int,
    wanted: list[tuple[int, int]],
    cores: tuple[tuple[int, int], ...],
    held: dict[int, int],
    seen: set[int],
) -> bool:
    """Find a core for a layer, moving others on (augmenting paths of a matching)."""
    for core, room in enumerate(cores):
        if core in seen or any(need > has for need, has in zip(wanted[place], room, strict=True)):
            continue
        seen.add(core)
        if core not in held or _placed(held[core], wanted, cores, held, seen):
            held[core] = place
            return True
    return False


def _memory(layer: ChainLayer) -> tuple[int, int]:
    """The words that weights and neurons take: addresses are bits of a place, and bits of a channel.

    Dense weights are a kernel as large as the image before them. Source: `memory_summary` of sinabs 3.1.3.
    """
    form = route_of(layer).convolution
    shape = layer.connection_shape
    flattened = [node for node in layer.before if isinstance(node.block, Flatten)]
    if form is None and flattened and route_of(layer).pools:
        shape = route_of(layer).pools[-1].out_shape
    elif form is None and flattened:
        shape = layer.in_shape
    kernel, channels = (shape[:-1] if form is None else form.kernel), shape[-1]
    *places, outputs = (1, *layer.out_shape) if len(layer.out_shape) == 1 else layer.out_shape
    weights = channels * 2 ** (_bits(math.prod(kernel)) + _bits(outputs))
    return weights, outputs * 2 ** sum(map(_bits, places))


def _bits(count: int) -> int:
    return math.ceil(math.log2(count))
