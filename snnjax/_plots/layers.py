"""The layers of a network on a batch, at a glance."""

from collections.abc import Mapping
from typing import Any

import jax
import numpy as np
from jax.typing import ArrayLike

from snnjax._check import fail, type_words
from snnjax._plots.style import GREY, RED, Figure, by_name, colour_of, layer_name, subplots, tidy
from snnjax.graph.network import NetworkOutput
from snnjax.metrics import dropped_share, mean_activity, silent_layers
from snnjax.ops.lif_network import LIFNetworkOutput

_MOSTLY = 2 / 3  # from this fraction of silent neurons on, a layer's bars are red


def overview(output: Any, lengths: ArrayLike | None = None) -> Figure:
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
    steps, batch = next(iter(by_name(output.output, "").values())).shape[:2]
    if batch == 0:
        fail("plot.overview: `output` must hold at least one sequence, got none. Run the network on a batch.")
    lengths = np.full(batch, steps, np.int32) if lengths is None else np.asarray(lengths)
    dropped = dropped_share(output.dropped, output.activity, jax.numpy.asarray(lengths))
    shares = {"activity": mean_activity(output.activity), "dropped spikes": dropped}
    shares |= {"silent neurons": silent_layers(output.activity)}
    shares = {title: np.asarray(share) for title, share in shares.items()}
    silent, layers = shares["silent neurons"], _by_layer(output.activity)
    colours = [RED if share >= _MOSTLY else colour_of(layer) for layer, share in enumerate(silent)]
    spans = np.stack([np.quantile(np.asarray(rates).mean(axis=0), (0.1, 0.9)) for rates in layers.values()])
    figure, axes = subplots(1, 3, (8.6, 1.3 + 0.45 * len(silent)), sharey=True)
    for ax, (title, share) in zip(axes, shares.items(), strict=True):
        ends = np.maximum(share, spans[:, 1]) if title == "activity" else share
        ax.barh(range(len(share)), 100 * share, color=colours, height=0.6)
        for layer, end in enumerate(ends):
            ax.text(100 * end, layer, f"  {100 * share[layer]:.3g} %", va="center", fontsize="small")
        ax.set_title(title, fontsize="medium", loc="left")
        ax.set_xlim(0, max(1.5 * 100 * ends.max(), 1.0))
        tidy(ax)
    axes[0].hlines(range(len(spans)), *(100 * spans.T), color=GREY, linewidth=1.5)
    names = [f"{name}\n{rates.shape[1]} neurons" for name, rates in layers.items()]
    axes[0].set(yticks=range(len(names)), yticklabels=names, ylim=(len(names) - 0.5, -0.5))
    for ax, of in zip(axes, ("neurons per step", "spikes", "neurons"), strict=True):
        ax.set_xlabel(f"% of {of}")
    return figure


def _by_layer(activity: Any) -> dict[str, Any]:
    """The results of each layer by its name; those of `lif_network` have none."""
    if isinstance(activity, Mapping):
        return {layer_name(name): rates for name, rates in activity.items()}
    return {f"layer {place + 1}": rates for place, rates in enumerate(activity)}
