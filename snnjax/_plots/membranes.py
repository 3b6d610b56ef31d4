"""Membrane potentials of some neurons over time."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import PyTree

from snnjax._check import check_shape, fail
from snnjax._plots.style import BLUE, GREY, PANEL, RED, Axes, subplots, tidy
from snnjax._sparse_spikes import SparseSpikes
from snnjax._types import Signal

_MOST = 8  # neurons drawn by default: more lanes are too narrow to read


def membranes(
    membranes: PyTree,
    spikes: Signal = None,
    ax: Axes = None,
    *,
    neurons: Sequence[int] | None = None,
    threshold: float | None = None,
    title: str = "",
    colour: str = BLUE,
) -> Axes:
    """Draw the membrane potentials of some neurons of one sample, one lane each; returns the matplotlib `Axes`.

    All lanes have the same scale. With `spikes`, a vertical line from the threshold on marks each spike.

    Args:
        membranes: ``[time, neurons]``, as ``output.membranes[name][:, sample]`` with ``record="membranes"``. They are
            those before the reset.
        spikes: the spikes of the same neurons, dense ``[time, neurons]`` or `SparseSpikes`; None draws none.
        ax: the `Axes` to draw on; None makes a new figure.
        neurons: indices of the neurons to draw, from below; None draws the first eight.
        threshold: drawn as a dashed line in each lane; None draws none.
        title: title above the plot.
        colour: any matplotlib colour.

    Raises:
        ValueError: if there are membranes of several samples, a neuron does not exist, or the spikes do not match.

    Example:
        >>> import jax.numpy as jnp
        >>> from snnjax import plot
        >>> ax = plot.membranes(jnp.eye(5), spikes=jnp.eye(5), neurons=[0, 3], threshold=1.0)
        >>> [label.get_text() for label in ax.get_yticklabels()]
        ['0', '3']
    """
    hint = "Choose a sample, for instance membranes[:, 0]"
    check_shape("plot.membranes", "membranes", membranes, (None, None), "time, neurons", hint)
    values = np.asarray(membranes)
    num_steps, num_neurons = values.shape
    chosen = list(range(min(_MOST, num_neurons))) if neurons is None else list(neurons)
    wrong = [each for each in chosen if not 0 <= each < num_neurons]
    if wrong:
        fail(f"plot.membranes: `neurons` must be below {num_neurons}, got {wrong[0]}. Choose others.")
    fired = None if spikes is None else _fired(spikes, num_steps, num_neurons)
    levels = [values[:, chosen].min(initial=0), values[:, chosen].max(initial=0), threshold or 0]
    low, height = min(levels), 1.1 * (max(levels) - min(levels)) or 1.0
    ax = subplots(1, 1, PANEL)[1] if ax is None else ax
    for lane, neuron in enumerate(chosen):
        base = lane * height - low
        ax.plot(base + values[:, neuron], color=colour, linewidth=0.9)
        if threshold is not None:
            ax.axhline(base + threshold, color=GREY, linewidth=0.6, linestyle="--")
        if fired is not None:
            steps = np.nonzero(fired[:, neuron])[0]
            ax.vlines(steps, base + (threshold or 0), (lane + 0.98) * height, color=RED, linewidth=1.0)
    ax.set(xlim=(-0.5, num_steps - 0.5), ylim=(0, max(len(chosen), 1) * height), xlabel="time step")
    ax.set_yticks([lane * height - low for lane in range(len(chosen))], labels=map(str, chosen))
    ax.set_ylabel("membrane potential of neuron")
    ax.set_title(title, fontsize="medium", loc="left")
    tidy(ax)
    return ax


def _fired(spikes: Signal, num_steps: int, num_neurons: int) -> np.ndarray:
    """Whether each neuron spikes in each step."""
    hint = "Take the spikes of the same neurons and sample"
    axes = "time, neurons"
    check_shape("plot.membranes", "spikes", spikes, (num_steps, num_neurons), axes, hint)
    return np.asarray(spikes.to_dense() if isinstance(spikes, SparseSpikes) else spikes) != 0
