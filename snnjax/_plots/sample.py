"""Spikes and membrane potentials over the steps of one sample."""

from typing import Any

import numpy as np

from snnjax._check import check_integer, check_shape, fail
from snnjax._plots.style import (
    BLUE,
    GREY,
    LIGHT_GREY,
    PANEL,
    RED,
    Axes,
    Figure,
    by_name,
    colour_of,
    layer_name,
    one_sample,
    subplots,
    tidy,
)
from snnjax._sparse_spikes import SparseSpikes, values_of
from snnjax._types import Signal


def raster(spikes: Signal, ax: Axes = None, *, title: str = "", colour: str = BLUE) -> Axes:
    """Draw a dot at the step and neuron of every spike of one sample; returns the matplotlib `Axes`.

    Args:
        spikes: dense ``[time, neurons]``, or `SparseSpikes` with the leading axis ``[time]``.
        ax: the `Axes` to draw on; None makes a new figure.
        title: title above the plot.
        colour: any matplotlib colour.

    Raises:
        ValueError: if there are spikes of several samples.

    Example:
        >>> import jax.numpy as jnp
        >>> from snnjax import plot
        >>> plot.raster(jnp.eye(5), title="one spike per step").get_xlabel()
        'time step'
    """
    steps, neurons = _points(spikes)
    if ax is None:
        ax = subplots(1, 1, PANEL)[1]
    num_steps, num_neurons = spikes.shape
    # A dot is as high as its row, within limits that keep dots visible and distinguishable.
    size = float(np.clip(900 / max(num_neurons, 1), 1.0, 30.0))
    ax.scatter(steps, neurons, s=size, c=colour, marker="|" if num_neurons < 40 else ".", linewidths=0.8)
    ax.set(xlim=(-0.5, num_steps - 0.5), ylim=(-0.5, num_neurons - 0.5), xlabel="time step", ylabel="neuron")
    ax.set_title(title, fontsize="medium", loc="left")
    tidy(ax)
    return ax


def sample(inputs: Signal, output: Any, *, index: int = 0, label: int | None = None) -> Figure:
    """Draw a network's response to one sample: inputs, spikes of each layer, readouts; returns the `Figure`.

    Args:
        inputs: what the network was given: an array, `SparseSpikes`, or a dict of several inputs.
        output: the output of the network with ``record="spikes"``, or with the names of the layers to draw.
        index: index of the sample in the batch.
        label: class of the sample, which is highlighted in the readouts; None draws all in the same way.

    Raises:
        ValueError: if the output has no recorded spikes.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> import snnjax
        >>> from snnjax import plot
        >>> net = snnjax.network(6, [snnjax.layer(8)], snnjax.leaky_readout(3))
        >>> params, inputs = net.init(jax.random.key(0)), jnp.ones((5, 1, 6))
        >>> output, _ = net.apply(params, net.initial_state(params, 1), inputs, record="spikes")
        >>> len(plot.sample(inputs, output, label=2).axes)
        3
    """
    layers = [name for name in output.activity if name in output.recorded]
    if not layers:
        hint = 'Run the network with record="spikes"'
        fail(f"plot.sample: `output` must hold the spikes of layers, got none. {hint}.")
    index = check_integer("plot.sample", "index", index, 0)
    given, readouts = by_name(inputs, "input"), by_name(output.output, "readout")
    rows = len(given) + len(layers) + len(readouts)
    figure, axes = subplots(rows, 1, (7.0, 2.0 * len(layers) + 1.7 * (rows - len(layers))), sharex=True)
    rasters = [(name, spikes, GREY) for name, spikes in given.items()]
    rasters += [(layer_name(name), output.recorded[name], colour_of(n)) for n, name in enumerate(layers)]
    for ax, (name, spikes, colour) in zip(axes, rasters, strict=False):
        spikes = one_sample(spikes, index)
        raster(spikes, ax, title=f"{name}, {spikes.shape[-1]} neurons", colour=colour)
    for ax, (name, signal) in zip(axes[len(rasters) :], readouts.items(), strict=True):
        _draw_readout(ax, name, one_sample(signal, index), label)
    for ax in axes[:-1]:
        ax.set_xlabel("")
    return figure


def _draw_readout(ax: Axes, name: str, membranes: Signal, label: int | None) -> None:
    membranes = membranes.to_dense() if isinstance(membranes, SparseSpikes) else membranes
    for neuron in range(membranes.shape[1]):
        is_label = neuron == label
        style = (
            {"color": RED, "linewidth": 2.0, "zorder": 3}
            if is_label
            else {"color": LIGHT_GREY, "linewidth": 0.9}
        )
        ax.plot(membranes[:, neuron], label=f"class {neuron}, the label" if is_label else None, **style)
    ax.set(xlabel="time step", ylabel="membrane")
    ax.set_title(f"{name}, {membranes.shape[1]} classes", fontsize="medium", loc="left")
    if label is not None:
        ax.legend(frameon=False, loc="lower right", bbox_to_anchor=(1.0, 1.0), borderaxespad=0)
    tidy(ax)


def _points(spikes: Signal) -> tuple[np.ndarray, np.ndarray]:
    """Steps and neurons of all spikes of one sample."""
    hint = "Choose a sample, for instance spikes[:, 0]"
    check_shape("plot.raster", "spikes", spikes, (None, None), "time, neurons", hint)
    if not isinstance(spikes, SparseSpikes):
        steps, neurons = np.nonzero(np.asarray(spikes))
        return steps, neurons
    ids = np.asarray(spikes.ids).astype(np.int64)
    used = (ids >= 0) & (ids < spikes.num_neurons) & (np.asarray(values_of(spikes)) != 0)
    return np.nonzero(used)[0], ids[used]
