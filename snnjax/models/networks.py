"""Whole networks of images, as published: functions of the input shape and the number of classes.

Every network takes ``[time, batch, height, width, channels]``, such as an image in each of four steps, and returns
``[time, batch, classes]``, which is summed over time: `losses.cross_entropy_sum` or `losses.temporal_efficient`.
"""

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from snnjax._arguments import explained
from snnjax._check import check_choice, check_integer, fail
from snnjax.blocks import batch_norm, spiking, spiking_attention
from snnjax.blocks._dense import dense
from snnjax.blocks.block import Item
from snnjax.blocks.conv import Convolve, conv2d
from snnjax.blocks.pool import max_pool, mean_pool
from snnjax.graph.build import network
from snnjax.graph.containers import layer, parallel, residual, sequential
from snnjax.graph.network import Network
from snnjax.neurons import Neuron, lif

# Blocks of each stage, by depth; from 50 on of three convolutions each.
_DEPTHS = {18: (2, 2, 2, 2), 34: (3, 4, 6, 3), 50: (3, 4, 6, 3)}
_DEEP, _WIDER = 50, 4
# Images below this size begin with a convolution of 3 x 3 without strides, as is usual for 32 x 32.
_LARGE = 64
# Products of three spikes are rare: those of attention begin with a fifth of the neurons active.
_ATTENTIVE = 2.5
_USUAL = lif(0.5, reset="zero")


class _Style(NamedTuple):
    """What all layers of a network have in common."""

    neuron: Neuron
    capacity: int | float | None

    def neurons(self) -> Item:
        """Neurons on given currents."""
        return spiking(self.neuron, capacity=self.capacity)

    def layer(self, channels: int, kernel: int, strides: int = 1, *, scale: float = 1.0) -> Item:
        """Convolution, norm, neurons."""
        own = {"norm": batch_norm(scale=scale), "capacity": self.capacity}
        return layer(_conv(channels, kernel, strides), self.neuron, **own)


def _style(neuron: Neuron | None, capacity: int | float | None) -> _Style:
    return _Style(_USUAL if neuron is None else neuron, capacity)


def _conv(channels: int, kernel: int, strides: int = 1) -> Convolve:
    return conv2d(channels, kernel, strides=strides, padding=kernel // 2, bias=False)


@explained
def vgg(
    shape: Sequence[int],
    classes: int,
    stages: Sequence[Sequence[int]] = ((64, 64), (128, 128), (256, 256)),
    *,
    strides: int = 1,
    neuron: Neuron | None = None,
    capacity: int | float | None = None,
) -> Network:
    """Make a network of convolutions of 3 x 3 with norms, and a maximum pool after each stage.

    Args:
        shape: height, width and channels of the image.
        classes: number of outputs.
        stages: the channels of the layers of each stage.
        strides: of the first convolution. Above 1 its kernel is twice as long, and its neurons, the most active ones,
            have no lists.
        neuron: of all layers; None for ``lif(0.5, reset="zero")``.
        capacity: of the spike lists of all layers, as in `snnjax.layer`.

    Raises:
        ValueError: if a number is not positive, or an image has too few pixels for the pools.

    Example:
        >>> from snnjax import models
        >>> models.vgg((32, 32, 3), 10).num_outputs
        10

    Reference:
        Simonyan and Zisserman 2015, arXiv:1409.1556.
    """
    check_integer("models.vgg", "strides", strides, 1)
    style = _style(neuron, capacity)
    items = [[*(style.layer(channels, 3) for channels in stage), max_pool(2)] for stage in stages]
    if strides > 1:
        first = conv2d(stages[0][0], 2 * strides, strides=strides, padding=strides // 2, bias=False)
        items[0][0] = layer(first, style.neuron, norm=batch_norm())
    return network(tuple(shape), [*itertools.chain(*items)], dense(classes))


@explained
def sew_resnet(
    shape: Sequence[int],
    classes: int,
    depth: int = 18,
    *,
    join: str = "add",
    neuron: Neuron | None = None,
    capacity: int | float | None = None,
) -> Network:
    """Make a residual network whose blocks join spikes with spikes: SEW-ResNet.

    Images of at least 64 pixels a side begin with a convolution of 7 x 7 with strides of 2 and a maximum pool, as
    published for ImageNet, smaller ones with one of 3 x 3.

    Args:
        shape: height, width and channels of the image.
        classes: number of outputs.
        depth: 18, 34 or 50.
        join: "add", "multiply" or "iand", as in `snnjax.residual`.
        neuron: of all layers; None for ``lif(0.5, reset="zero")``.
        capacity: of the spike lists of all layers, as in `snnjax.layer`.

    Raises:
        ValueError: if the depth or the join is unknown.

    Example:
        >>> from snnjax import models
        >>> models.sew_resnet((32, 32, 3), 10).num_outputs
        10

    Reference:
        Fang et al. 2021, arXiv:2102.04159.
    """
    check_choice("models.sew_resnet", "depth", depth, tuple(_DEPTHS))
    check_choice("models.sew_resnet", "join", join, ("add", "multiply", "iand"))
    style, is_large = _style(neuron, capacity), min(shape[:2]) >= _LARGE
    items = [style.layer(64, 7, 2), max_pool(3, strides=2, padding=1)] if is_large else [style.layer(64, 3)]
    for channels, strides, changes in _plan(depth, first_strides=1):
        if depth < _DEEP:
            body, out = [style.layer(channels, 3, strides), style.layer(channels, 3)], channels
        else:
            out = _WIDER * channels
            body = [style.layer(channels, 1), style.layer(channels, 3, strides), style.layer(out, 1)]
        items.append(residual(body, style.layer(out, 1, strides) if changes else None, join))
    return network(tuple(shape), [*items, mean_pool()], dense(classes))


@explained
def ms_resnet(
    shape: Sequence[int],
    classes: int,
    depth: int = 18,
    *,
    neuron: Neuron | None = None,
    capacity: int | float | None = None,
) -> Network:
    """Make a residual network whose shortcuts carry currents, with neurons before each convolution: MS-ResNet.

    Args:
        shape: height, width and channels of the image; the convolution that it begins with is that of `sew_resnet`.
        classes: number of outputs.
        depth: 18 or 34.
        neuron: of all layers; None for ``lif(0.5, reset="zero")``.
        capacity: of the spike lists of all layers, as in `snnjax.layer`.

    Raises:
        ValueError: if the depth is unknown.

    Example:
        >>> from snnjax import models
        >>> models.ms_resnet((32, 32, 3), 10, 34).num_outputs
        10

    Reference:
        Hu et al. 2021, arXiv:2112.08954.
    """
    check_choice("models.ms_resnet", "depth", depth, (18, 34))
    style, is_large = _style(neuron, capacity), min(shape[:2]) >= _LARGE
    items: list[Any] = [_conv(64, 7, 2) if is_large else _conv(64, 3), batch_norm()]
    for channels, strides, changes in _plan(depth, first_strides=2 if is_large else 1):
        first, second = ([style.neurons(), _conv(channels, 3, step), batch_norm()] for step in (strides, 1))
        shortcut = sequential(_conv(channels, 1, strides), batch_norm()) if changes else None
        items.append(residual([*first, *second], shortcut))
    return network(tuple(shape), [*items, style.neurons(), mean_pool()], dense(classes))


def _plan(depth: int, first_strides: int) -> Iterator[tuple[int, int, bool]]:
    """The channels and strides of each block, and whether its shortcut must change the signal's shape."""
    before = 64
    for stage, count in enumerate(_DEPTHS[depth]):
        channels = 64 * 2**stage
        out = channels * (_WIDER if depth >= _DEEP else 1)
        for block in range(count):
            strides = 1 if block else first_strides if stage == 0 else 2
            yield channels, strides, strides > 1 or out != before
            before = out


@explained
def spikformer(
    shape: Sequence[int],
    classes: int,
    depth: int = 4,
    width: int = 256,
    heads: int = 8,
    *,
    neuron: Neuron | None = None,
    capacity: int | float | None = None,
) -> Network:
    """Make a transformer of spikes: four convolutions make tokens, blocks of attention and two layers follow.

    The convolutions pool as often as leaves at least 8 pixels a side: 14 x 14 tokens of 224 x 224 pixels, 8 x 8 of 32.

    Args:
        shape: height, width and channels of the image.
        classes: number of outputs.
        depth: number of blocks.
        width: channels of a token, a multiple of 8 and of `heads`.
        heads: of the attention.
        neuron: of all layers; None for ``lif(0.5, reset="zero")``. That of the attention has half of its threshold.
        capacity: of the spike lists of all layers, as in `snnjax.layer`.

    Raises:
        ValueError: if a number is not positive, or `width` no such multiple.

    Example:
        >>> from snnjax import models
        >>> models.spikformer((32, 32, 3), 10, depth=2, width=64).num_outputs
        10

    Reference:
        Zhou et al. 2023, arXiv:2209.15425.
    """
    for name, number in (("depth", depth), ("width", width), ("heads", heads)):
        check_integer("models.spikformer", name, number, 1)
    if width % math.lcm(8, heads):
        hint = "Choose such a number"
        fail(f"models.spikformer: `width` must be a multiple of 8 and of {heads} heads, got {width}. {hint}.")
    style, stem = _style(neuron, capacity), 4
    pools = min(stem, max(0, int(math.log2(min(shape[:2]) / 8))))
    items: list[Any] = []
    for stage in range(stem):
        pool = [max_pool(3, strides=2, padding=1)] if stage >= stem - pools else []
        items += [_conv(width // 2 ** (stem - 1 - stage), 3), batch_norm(), *pool, style.neurons()]
    items.append(residual(style.layer(width, 3)))  # where tokens are, relative to their neighbours
    for _ in range(depth):
        one, active = style.layer(width, 1), style.layer(width, 1, scale=_ATTENTIVE)
        # A scale of 1/8 and half of a threshold.
        attention = parallel(q=active, k=active, v=active, join=spiking_attention(heads, scale=0.25))
        items.append(residual([attention, style.neurons(), one]))
        items.append(residual([style.layer(4 * width, 1), one]))
    return network(tuple(shape), [*items, mean_pool()], dense(classes))
