"""Colours, figures, axes and names that all plots share.

Colours are those of Okabe and Ito (2008, "Color Universal Design"), which are safe for all types of colour vision.
"""

import math
from collections.abc import Mapping
from typing import Any

import jax
import numpy as np

from snnjax._sparse_spikes import SparseSpikes

BLUE, ORANGE, GREEN, PINK, SKY, RED = "#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00"
LAYER_COLOURS = (BLUE, ORANGE, GREEN, PINK, SKY, RED)
GREY, LIGHT_GREY = "#555555", "#AAAAAA"
# Inches; single panels fit into a text column, pairs across a page.
PANEL, PAIR = (6.4, 3.2), (8.6, 3.2)

# Of matplotlib, which is imported when something is drawn.
Axes = Any
Figure = Any


def by_name(signals: Any, name: str) -> dict[str, Any]:
    """The inputs or outputs of a network by name; `name` is that of a single one."""
    return dict(signals) if isinstance(signals, Mapping) else {name: signals}


def layer_name(name: str) -> str:
    """The name of the layer of a block of neurons."""
    return name.removesuffix("/neuron")


def one_sample(array: Any, index: int) -> Any:
    """The sample `index` of ``[time, batch, *shape]``, over flat neurons."""
    if isinstance(array, SparseSpikes):
        return array[:, index]
    one = np.asarray(jax.device_get(array))[:, index]
    return one.reshape(len(one), math.prod(one.shape[1:]))


def colour_of(layer: int) -> str:
    return LAYER_COLOURS[layer % len(LAYER_COLOURS)]


def subplots(rows: int, columns: int, size: tuple[float, float], **options: Any) -> tuple[Figure, Axes]:
    from matplotlib import pyplot

    return pyplot.subplots(rows, columns, figsize=size, layout="constrained", **options)


def tidy(ax: Axes) -> None:
    ax.spines[["top", "right"]].set_visible(False)
    ax.xaxis.get_major_locator().set_params(integer=True)  # steps and epochs are integers
