"""Figures of spikes and of training, drawn with matplotlib.

Colours are those of Okabe and Ito (2008, "Color Universal Design"), which are safe for all types of colour vision.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import numpy as np

from snnjax._check import check_integer, check_shape, fail, type_words
from snnjax.graph import NetworkOutput
from snnjax.metrics import dropped_share, mean_activity, silent_layers
from snnjax.ops import LIFNetworkOutput
from snnjax.sparse_spikes import SparseSpikes

BLUE, ORANGE, GREEN, PINK, SKY, RED = "#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00"
_LAYER_COLOURS = (BLUE, ORANGE, GREEN, PINK, SKY, RED)
_GREY, _LIGHT_GREY = "#555555", "#AAAAAA"
_MOSTLY = 2 / 3  # from this fraction of silent neurons on, a layer's bars are red
# Inches; single panels fit into a text column, pairs across a page.
_PANEL, _PAIR = (6.4, 3.2), (8.6, 3.2)

Metrics = Sequence[Mapping[str, Any]]


def raster(spikes: Any, ax: Any = None, *, title: str = "", colour: str = BLUE) -> Any:
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
        ax = _subplots(1, 1, _PANEL)[1]
    num_steps, num_neurons = spikes.shape
    # A dot is as high as its row, within limits that keep dots visible and distinguishable.
    size = float(np.clip(900 / max(num_neurons, 1), 1.0, 30.0))
    ax.scatter(steps, neurons, s=size, c=colour, marker="|" if num_neurons < 40 else ".", linewidths=0.8)
    ax.set(xlim=(-0.5, num_steps - 0.5), ylim=(-0.5, num_neurons - 0.5), xlabel="time step", ylabel="neuron")
    ax.set_title(title, fontsize="medium", loc="left")
    _tidy(ax)
    return ax


def sample(inputs: Any, output: Any, *, index: int = 0, label: int | None = None) -> Any:
    """Draw a network's response to one sample: inputs, spikes of each layer, read-outs; returns the `Figure`.

    Args:
        inputs: what the network was given: an array, `SparseSpikes`, or a dict of several inputs.
        output: the output of the network with ``record="spikes"``, or with the names of the layers to draw.
        index: index of the sample in the batch.
        label: class of the sample, which is highlighted in the read-outs; None draws all in the same way.

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
    check_integer("plot.sample", "index", index, 0)
    given, readouts = _by_name(inputs, "input"), _by_name(output.output, "read-out")
    rows = len(given) + len(layers) + len(readouts)
    figure, axes = _subplots(rows, 1, (7.0, 2.0 * len(layers) + 1.7 * (rows - len(layers))), sharex=True)
    rasters = [(name, spikes, _GREY) for name, spikes in given.items()]
    rasters += [(_layer(name), output.recorded[name], _colour(n)) for n, name in enumerate(layers)]
    for ax, (name, spikes, colour) in zip(axes, rasters, strict=False):
        spikes = _one(spikes, index)
        raster(spikes, ax, title=f"{name}, {spikes.shape[-1]} neurons", colour=colour)
    for ax, (name, signal) in zip(axes[len(rasters) :], readouts.items(), strict=True):
        _draw_readout(ax, name, _one(signal, index), label)
    for ax in axes[:-1]:
        ax.set_xlabel("")
    return figure


def overview(output: Any, lengths: Any = None) -> Any:
    """Draw an overview of the layers of a network on a batch; returns the `Figure`.

    Three panels have a bar for each layer: the fraction of its neurons that spike in a step (a line spans from the
    least to the most active tenth of the neurons), the fraction of its spikes that did not fit into its lists, and the
    fraction of its neurons that never spike. A layer is drawn in red if at least two thirds of its neurons never spike.

    Args:
        output: the output of the network.
        lengths: number of steps of each sequence, ``[batch]``; None counts all steps.

    Raises:
        ValueError: if the batch is empty, or the lengths do not match.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> import snnjax
        >>> from snnjax import plot
        >>> net = snnjax.network(6, [snnjax.layer(8), snnjax.layer(4)], snnjax.leaky_readout(3))
        >>> output, _ = net.apply(net.init(jax.random.key(0)), None, jnp.ones((5, 2, 6)))
        >>> [ax.get_title(loc="left") for ax in plot.overview(output).axes]
        ['activity', 'dropped spikes', 'silent neurons']
    """
    if not isinstance(output, NetworkOutput | LIFNetworkOutput):
        hint = "Pass the first result of network.apply"
        fail(f"plot.overview: `output` must be what a network returned, got {type_words(output)}. {hint}.")
    steps, batch = next(iter(_by_name(output.output, "").values())).shape[:2]
    if batch == 0:
        fail("plot.overview: `output` must hold at least one sequence, got none. Run the network on a batch.")
    lengths = np.full(batch, steps, np.int32) if lengths is None else np.asarray(lengths)
    dropped = dropped_share(output.dropped, output.activity, jax.numpy.asarray(lengths))
    shares = {"activity": mean_activity(output.activity), "dropped spikes": dropped}
    shares |= {"silent neurons": silent_layers(output.activity)}
    shares = {title: np.asarray(share) for title, share in shares.items()}
    silent, layers = shares["silent neurons"], _by_layer(output.activity)
    colours = [RED if share >= _MOSTLY else _colour(layer) for layer, share in enumerate(silent)]
    spans = np.stack([np.quantile(np.asarray(rates).mean(axis=0), (0.1, 0.9)) for rates in layers.values()])
    figure, axes = _subplots(1, 3, (8.6, 1.3 + 0.45 * len(silent)), sharey=True)
    for ax, (title, share) in zip(axes, shares.items(), strict=True):
        ends = np.maximum(share, spans[:, 1]) if title == "activity" else share
        ax.barh(range(len(share)), 100 * share, color=colours, height=0.6)
        for layer, end in enumerate(ends):
            ax.text(100 * end, layer, f"  {100 * share[layer]:.3g} %", va="center", fontsize="small")
        ax.set_title(title, fontsize="medium", loc="left")
        ax.set_xlim(0, max(1.5 * 100 * ends.max(), 1.0))
        _tidy(ax)
    axes[0].hlines(range(len(spans)), *(100 * spans.T), color=_GREY, linewidth=1.5)
    names = [f"{name}\n{rates.shape[1]} neurons" for name, rates in layers.items()]
    axes[0].set(yticks=range(len(names)), yticklabels=names, ylim=(len(names) - 0.5, -0.5))
    for ax, of in zip(axes, ("neurons per step", "spikes", "neurons"), strict=True):
        ax.set_xlabel(f"% of {of}")
    return figure


def curves(metrics: Metrics) -> Any:
    """Draw accuracy and loss over the epochs; returns the `Figure`.

    Args:
        metrics: one mapping per epoch, as returned by `fit` and written to ``metrics.jsonl``; with or without
            validation.

    Raises:
        ValueError: if there is no epoch.

    Example:
        >>> from snnjax import plot
        >>> line = {"epoch": 1, "train_loss": 0.7, "validation_loss": 0.8, "train_accuracy": 0.8}
        >>> len(plot.curves([line | {"validation_accuracy": 0.7}]).axes)
        2
    """
    epochs = _epochs("plot.curves", metrics)
    figure, (left, right) = _subplots(1, 2, _PAIR)
    parts = (("train", SKY, "o"), ("validation", BLUE, "s"))
    is_validated = "validation_accuracy" in metrics[0]
    for part, colour, marker in parts if is_validated else parts[:1]:
        style = {"color": colour, "marker": marker, "markersize": 4, "label": part}
        left.plot(epochs, [100 * line[f"{part}_accuracy"] for line in metrics], **style)
        right.plot(epochs, [line[f"{part}_loss"] for line in metrics], **style)
    if is_validated:
        _mark_best(left, metrics)
    left.set(ylabel="accuracy (%)")
    right.set(ylabel="loss (nats per sample)", ylim=(0, None))
    left.legend(frameon=False, loc="lower right")
    for ax in (left, right):
        _epoch_axis(ax, epochs)
    return figure


def _mark_best(ax: Any, metrics: Metrics) -> None:
    """Circle the best validation accuracy."""
    best = max(metrics, key=lambda line: (line["validation_accuracy"], -line["validation_loss"]))
    height = 100 * best["validation_accuracy"]
    ax.plot([best["epoch"]], [height], "o", markersize=11, fillstyle="none", color=RED)
    style = {"xytext": (0, -18), "textcoords": "offset points", "ha": "center", "color": RED}
    ax.annotate(f"{height:.1f} %", (best["epoch"], height), **style)


def activity(metrics: Metrics, bound: float | None = None) -> Any:
    """Draw each layer's activity and fraction of dropped spikes over the epochs; returns the `Figure`.

    Args:
        metrics: one mapping per epoch, with lists ``activity`` and ``dropped_share`` of one number per layer.
        bound: the upper bound on activity in training, drawn as a line.

    Raises:
        ValueError: if there is no epoch.

    Example:
        >>> from snnjax import plot
        >>> len(
        ...     plot.activity(
        ...         [{"epoch": 1, "activity": [0.03, 0.04], "dropped_share": [0.0, 0.01]}], bound=0.04
        ...     ).axes
        ... )
        2
    """
    epochs = _epochs("plot.activity", metrics)
    figure, axes = _subplots(1, 2, _PAIR)
    labels = {"activity": "activity (% of neurons per step)", "dropped_share": "dropped spikes (% of spikes)"}
    for ax, (name, label) in zip(axes, labels.items(), strict=True):
        for layer in range(len(metrics[0][name])):
            percent = [100 * line[name][layer] for line in metrics]
            style = {"color": _colour(layer), "marker": "os^Dvx"[layer % 6], "markersize": 4}
            ax.plot(epochs, percent, label=f"layer {layer + 1}", **style)
        ax.set(ylabel=label)
        _epoch_axis(ax, epochs)
    if bound is not None:
        axes[0].axhline(100 * bound, color=_GREY, linestyle="--", linewidth=1, label="bound")
    for ax in axes:
        ax.set_ylim(0, max(1.15 * ax.get_ylim()[1], 0.1))
    axes[0].legend(frameon=False)
    return figure


def save(figure: Any, path: Any) -> None:
    """Write a figure to a file, in the format given by its suffix, and close it.

    Example:
        >>> import tempfile, pathlib
        >>> import jax.numpy as jnp
        >>> from snnjax import plot
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "raster.png"
        >>> plot.save(plot.raster(jnp.eye(5)).figure, path)
        >>> path.stat().st_size > 1000
        True
    """
    from matplotlib import pyplot

    figure.savefig(path, dpi=150)
    pyplot.close(figure)


def _by_name(signals: Any, name: str) -> dict[str, Any]:
    """The inputs or outputs of a network by name; `name` is that of a single one."""
    return dict(signals) if isinstance(signals, Mapping) else {name: signals}


def _by_layer(activity: Any) -> dict[str, Any]:
    """The results of each layer by its name; those of `lif_network` have none."""
    if isinstance(activity, Mapping):
        return {_layer(name): rates for name, rates in activity.items()}
    return {f"layer {place + 1}": rates for place, rates in enumerate(activity)}


def _layer(name: str) -> str:
    """The name of the layer of a block of neurons."""
    return name.removesuffix("/neuron")


def _draw_readout(ax: Any, name: str, membranes: Any, label: int | None) -> None:
    membranes = membranes.to_dense() if isinstance(membranes, SparseSpikes) else membranes
    for neuron in range(membranes.shape[1]):
        is_label = neuron == label
        style = (
            {"color": RED, "linewidth": 2.0, "zorder": 3}
            if is_label
            else {"color": _LIGHT_GREY, "linewidth": 0.9}
        )
        ax.plot(membranes[:, neuron], label=f"class {neuron}, the label" if is_label else None, **style)
    ax.set(xlabel="time step", ylabel="membrane")
    ax.set_title(f"{name}, {membranes.shape[1]} classes", fontsize="medium", loc="left")
    if label is not None:
        ax.legend(frameon=False, loc="lower right", bbox_to_anchor=(1.0, 1.0), borderaxespad=0)
    _tidy(ax)


def _points(spikes: Any) -> tuple[np.ndarray, np.ndarray]:
    """Steps and neurons of all spikes of one sample."""
    hint = "Choose a sample, for instance spikes[:, 0]"
    check_shape("plot.raster", "spikes", spikes, (None, None), "time, neurons", hint)
    if not isinstance(spikes, SparseSpikes):
        steps, neurons = np.nonzero(np.asarray(spikes))
        return steps, neurons
    ids = np.asarray(spikes.ids).astype(np.int64)
    used = (ids >= 0) & (ids < spikes.num_neurons) & (np.asarray(spikes.values) != 0)
    return np.nonzero(used)[0], ids[used]


def _one(array: Any, index: int) -> Any:
    """The sample `index` of ``[time, batch, *shape]``, over flat neurons."""
    if isinstance(array, SparseSpikes):
        return array[:, index]
    one = np.asarray(jax.device_get(array))[:, index]
    return one.reshape(len(one), math.prod(one.shape[1:]))


def _epochs(op: str, metrics: Metrics) -> list[int]:
    if len(metrics) == 0:
        fail(f"{op}: `metrics` must hold at least one epoch, got none. Train for an epoch first.")
    return [line["epoch"] for line in metrics]


def _colour(layer: int) -> str:
    return _LAYER_COLOURS[layer % len(_LAYER_COLOURS)]


def _subplots(rows: int, columns: int, size: tuple[float, float], **options: Any) -> tuple[Any, Any]:
    from matplotlib import pyplot

    return pyplot.subplots(rows, columns, figsize=size, layout="constrained", **options)


def _epoch_axis(ax: Any, epochs: list[int]) -> None:
    ax.set(xlabel="epoch", xlim=(min(epochs) - 0.5, max(epochs) + 0.5))
    _tidy(ax)


def _tidy(ax: Any) -> None:
    ax.spines[["top", "right"]].set_visible(False)
    ax.xaxis.get_major_locator().set_params(integer=True)  # steps and epochs are integers
