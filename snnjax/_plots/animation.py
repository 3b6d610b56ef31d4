"""A network's response to one sample, step by step."""

from typing import Any

from snnjax._check import fail
from snnjax._plots.sample import sample
from snnjax._plots.style import GREY
from snnjax._types import Signal


def animate(
    inputs: Signal, output: Any, *, index: int = 0, label: int | None = None, steps_per_second: float = 10.0
) -> Any:
    """Animate `sample`: the plot fills step by step; returns a matplotlib `Animation`.

    `plot.save` writes it as a GIF, or in another format that matplotlib supports. In a notebook,
    ``HTML(animation.to_jshtml())`` shows it.

    Args:
        inputs: what the network was given, as for `sample`.
        output: the output of the network with ``record="spikes"``.
        index: index of the sample in the batch.
        label: class of the sample, which is highlighted in the readouts.
        steps_per_second: time steps shown per second.

    Raises:
        ValueError: as for `sample`, or if `steps_per_second` is not above 0.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> import pathlib, tempfile
        >>> import snnjax
        >>> from snnjax import plot
        >>> net = snnjax.network(6, [snnjax.layer(8)], snnjax.leaky_readout(3))
        >>> params, inputs = net.init(jax.random.key(0)), jnp.ones((3, 1, 6))
        >>> output, _ = net.apply(params, None, inputs, record="spikes")
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "sample.gif"
        >>> plot.save(plot.animate(inputs, output), path)
        >>> path.stat().st_size > 1000
        True
    """
    if not steps_per_second > 0:
        fail(f"plot.animate: `steps_per_second` must be above 0, got {steps_per_second}. Try 10.")
    from matplotlib import pyplot
    from matplotlib.animation import FuncAnimation

    figure = sample(inputs, output, index=index, label=label)
    figure.draw_without_rendering()
    figure.set_layout_engine("none")  # the layout is that of the first frame
    pyplot.close(figure)  # the animation keeps it, and a notebook does not show it as well
    last = figure.axes[0].get_xlim()[1]
    # What lies in the future is covered, up to a line at the current step.
    covers = [ax.axvspan(-0.5, last + 0.5, facecolor="white", zorder=10) for ax in figure.axes]
    lines = [ax.axvline(-0.5, color=GREY, linewidth=0.8, zorder=11) for ax in figure.axes]

    def show(step: int) -> list[Any]:
        for cover, line in zip(covers, lines, strict=True):
            cover.set_bounds(step + 0.5, 0, last - step - 0.5, 1)
            line.set_xdata([step + 0.5] * 2)
        return [*covers, *lines]

    return FuncAnimation(figure, show, frames=round(last + 0.5), interval=1000 / steps_per_second)
