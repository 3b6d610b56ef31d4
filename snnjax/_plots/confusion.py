"""Which classes are taken for which."""

from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from snnjax._check import fail, plural
from snnjax._plots.style import Figure, subplots
from snnjax.metrics.classification import check_confusion, class_accuracy

_MOST_NUMBERS = 20  # classes; with more, the numbers in the cells overlap


def confusion(confusion: ArrayLike, names: Sequence[str] | None = None) -> Figure:
    """Draw a confusion matrix, each row as shares of its class; returns the `Figure`.

    The accuracy of each class stands beside its name, and with up to 20 classes the count in its cell.

    Args:
        confusion: that of `snnjax.metrics.confusion`, or a sum of those of batches.
        names: of the classes, in order; None numbers them.

    Raises:
        ValueError: if the matrix is not one of integers ``[classes, classes]``, or has another number of names.

    Example:
        >>> import jax.numpy as jnp
        >>> from snnjax import plot
        >>> (ax,) = plot.confusion(jnp.array([[3, 1], [0, 2]]), ["cat", "dog"]).axes
        >>> [label.get_text() for label in ax.get_yticklabels()]
        ['cat, 75 %', 'dog, 100 %']
    """
    matrix = jnp.asarray(confusion)
    check_confusion("plot.confusion", matrix)
    counts = np.asarray(matrix)
    size = len(counts)
    names = [str(each) for each in range(size)] if names is None else list(names)
    if len(names) != size:
        expected, hint = f"hold {plural(size, 'name')}", "Name the classes in the order of their labels"
        fail(f"plot.confusion: `names` must {expected}, got {len(names)}. {hint}.")
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    side = 2.2 + 0.42 * min(size, _MOST_NUMBERS)
    figure, ax = subplots(1, 1, (side + 0.6, side))
    ax.imshow(shares, cmap="Blues", vmin=0, vmax=1)
    right = np.asarray(class_accuracy(matrix))
    rows = [
        name if np.isnan(own) else f"{name}, {own:.0%}".replace("%", " %")
        for name, own in zip(names, right, strict=True)
    ]
    ax.set_xticks(range(size), names, rotation=90 if max(map(len, names), default=0) > 2 else 0)
    ax.set_yticks(range(size), rows)
    ax.set(xlabel="predicted as", ylabel="class, accuracy")
    if size <= _MOST_NUMBERS:
        for row, column in zip(*np.nonzero(counts), strict=True):
            colour = "white" if shares[row, column] > 0.5 else "black"
            ax.text(
                column,
                row,
                str(counts[row, column]),
                ha="center",
                va="center",
                color=colour,
                fontsize="small",
            )
    return figure
