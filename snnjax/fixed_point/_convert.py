"""`convert`: a trained network in the integers of a chip, and what was lost."""

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from snnjax._arguments import explained
from snnjax._check import fail, short_repr
from snnjax._types import Params, Stats
from snnjax.fixed_point._chips import FixedPoint
from snnjax.fixed_point._network import IntegerNetwork
from snnjax.fixed_point._quantise import Decays, Quantised, quantised_layer
from snnjax.fixed_point._refuse import check_layers
from snnjax.graph.layers import ChainLayer, layers_of
from snnjax.graph.network import Network, check_trained


class LayerReport(NamedTuple):
    """What became of a layer."""

    scale: Float[Array, " neurons"]  # a weight of 1, in integers; thresholds have it too
    unit: Float[Array, " neurons"]  # a membrane of 1, in integers
    decays: Decays  # wanted, and had
    clipped: dict[str, int]  # thresholds and biases that the chip does not hold

    def __str__(self) -> str:
        """Decays wanted and had, and what was clipped."""
        found = self.decays
        pairs = [("decay", found.wanted, found.had), ("synapse", found.synapse_wanted, found.synapse_had)]
        words = [f"{name} {_range(wanted)} -> {_range(had)}" for name, wanted, had in pairs]
        words.append(f"1 weight = {_range(self.scale)}")
        words += [f"{count} {name} clipped" for name, count in self.clipped.items() if count > 0]
        return ", ".join(words)


class Report(NamedTuple):
    """What became of a network, by the names of its neurons; what a chip cannot do is an error of `convert`."""

    layers: dict[str, LayerReport]

    def __str__(self) -> str:
        """A line for each layer."""
        return "\n".join(f"{name}: {layer}" for name, layer in self.layers.items())


@explained
def convert(
    network: Network, params: Params, chip: FixedPoint, *, stats: Stats | None = None
) -> tuple[IntegerNetwork, Report]:
    """Convert a trained network to the integers of a chip.

    The weights of each neuron are scaled to the whole range of their bits, and its threshold by the same factor times
    the amplification of the chip's filters, so a scale for each neuron costs nothing. Neurons that do not spike share
    one scale, as their membranes are compared. Decays become the nearest ones of the chip, and a constant input keeps
    its effect. A bias is added to the membrane, so it acts from the first step. Where the chip needs a synaptic current
    and a layer has none (readouts of leaky integrators), it gets the fastest one. Spikes arrive when the chip delivers
    them, which may be a step later for each layer.

    Args:
        network: a chain of dense layers of `lif`, `current_lif` and `integrate_and_fire` neurons, which may be
            recurrent, with a readout of leaky integrators or spiking neurons; for Speck, convolutions, sums and means
            of pools and dense layers of `integrate_and_fire`. Norms become part of the weights, and dropout is left
            out.
        params: its parameters.
        chip: such as `XYLO`, `LAVA_LOIHI` or `SPECK`.
        stats: its stats, if it has norms or neurons whose constants are drawn. Returns: The integers, for `run`, and a
            report: scales, decays wanted and obtained, and what was clipped.

    Raises:
        ValueError: for what the chip cannot do: other connections, delays, other neurons, another reset, neurons that
            do not start at 0, more inputs or neurons than it has; for thresholds that are not positive, and
            for parameters that are not finite.

    Example:
        >>> import dataclasses, jax, snnjax
        >>> from snnjax import fixed_point, neurons
        >>> net = snnjax.network(12, [snnjax.layer(8, neurons.current_lif())], snnjax.leaky_readout(4))
        >>> whole, report = fixed_point.convert(net, net.init(jax.random.key(0)), fixed_point.XYLO)
        >>> whole.layers[0].weights.dtype, float(report.layers["layer_0/neuron"].decays.had[0])
        (dtype('int8'), 0.875)
    """
    network, params, layers, stats = given("fixed_point.convert", network, params, chip, stats)
    found = [quantised_layer(chip, own, params, stats) for own in layers]
    for own in found:
        if not own.is_finite:
            hint = "Train it again"
            fail(
                f"fixed_point.convert: `params` must be finite in `{own.layer.name}`, got NaN or infinity. {hint}."
            )
        threshold = np.asarray(own.real.threshold)
        if own.rule is not None and not np.all(threshold > 0):
            least = float(np.min(threshold))
            fail(
                f"fixed_point.convert: `params` must have positive thresholds in `{own.layer.name}`, got {least:g}. "
                "Train with a threshold that is not learned."
            )
    report = Report({own.layer.name: _report(own) for own in found})
    return whole_network(chip, found), report


def whole_network(chip: FixedPoint, found: list[Quantised]) -> IntegerNetwork:
    """The integers of all layers."""
    is_spiking = found[-1].rule is not None
    return IntegerNetwork(layers=tuple(own.layer for own in found), chip=chip, spiking_output=is_spiking)


def given(
    op: str, network: Network, params: Params, chip: FixedPoint, stats: Stats | None, *, train: bool = False
) -> tuple[Network, Params, tuple[ChainLayer, ...], dict[str, Any]]:
    """The network without norms, its params, its layers and its stats, checked against the chip."""
    check_trained(op, network, params, stats)
    if not isinstance(chip, FixedPoint):
        fail(
            f"{op}: `chip` must be a FixedPoint, got {short_repr(chip)}. Pass fixed_point.XYLO, for instance."
        )
    if not train:
        network, params, stats = network.fold(params, stats)
    layers = layers_of(op, network)
    check_layers(op, layers, chip, train=train)
    return network, params, layers, stats or {}


def _report(own: Quantised) -> LayerReport:
    clipped = {name: int(count) for name, count in own.clipped.items()}
    return LayerReport(own.scale, own.layer.unit, own.decays, clipped)


def _range(values: Array) -> str:
    low, high = float(jnp.min(values)), float(jnp.max(values))
    return f"{low:.4g}" if low == high else f"{low:.4g} to {high:.4g}"
