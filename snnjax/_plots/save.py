"""Figures as files."""

from typing import Any

from snnjax._plots.style import Figure


def save(figure: Figure, path: Any) -> None:
    """Write a figure or an animation to a file, in the format given by its suffix, and close it.

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
    from matplotlib.animation import Animation

    if isinstance(figure, Animation):
        figure.save(path, writer="pillow" if str(path).endswith(".gif") else None, dpi=80)
        return
    figure.savefig(path, dpi=150)
    pyplot.close(figure)
