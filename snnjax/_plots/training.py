"""Accuracy, loss, activity and dropped spikes over the epochs of training."""

from collections.abc import Mapping, Sequence
from typing import Any

from snnjax._check import fail
from snnjax._plots.style import BLUE, GREY, PAIR, RED, SKY, Axes, Figure, colour_of, subplots, tidy

Metrics = Sequence[Mapping[str, Any]]


def curves(metrics: Metrics) -> Figure:
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
    figure, (left, right) = subplots(1, 2, PAIR)
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


def _mark_best(ax: Axes, metrics: Metrics) -> None:
    """Circle the best validation accuracy."""
    best = max(metrics, key=lambda line: (line["validation_accuracy"], -line["validation_loss"]))
    height = 100 * best["validation_accuracy"]
    ax.plot([best["epoch"]], [height], "o", markersize=11, fillstyle="none", color=RED)
    style = {"xytext": (0, -18), "textcoords": "offset points", "ha": "center", "color": RED}
    ax.annotate(f"{height:.1f} %", (best["epoch"], height), **style)


def activity(metrics: Metrics, bound: float | None = None) -> Figure:
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
    figure, axes = subplots(1, 2, PAIR)
    labels = {"activity": "activity (% of neurons per step)", "dropped_share": "dropped spikes (% of spikes)"}
    for ax, (name, label) in zip(axes, labels.items(), strict=True):
        for layer in range(len(metrics[0][name])):
            percent = [100 * line[name][layer] for line in metrics]
            style = {"color": colour_of(layer), "marker": "os^Dvx"[layer % 6], "markersize": 4}
            ax.plot(epochs, percent, label=f"layer {layer + 1}", **style)
        ax.set(ylabel=label)
        _epoch_axis(ax, epochs)
    if bound is not None:
        axes[0].axhline(100 * bound, color=GREY, linestyle="--", linewidth=1, label="bound")
    for ax in axes:
        ax.set_ylim(0, max(1.15 * ax.get_ylim()[1], 0.1))
    axes[0].legend(frameon=False)
    return figure


def _epochs(op: str, metrics: Metrics) -> list[int]:
    if len(metrics) == 0:
        fail(f"{op}: `metrics` must hold at least one epoch, got none. Train for an epoch first.")
    return [line["epoch"] for line in metrics]


def _epoch_axis(ax: Axes, epochs: list[int]) -> None:
    ax.set(xlabel="epoch", xlim=(min(epochs) - 0.5, max(epochs) + 0.5))
    tidy(ax)
