"""Xylo's specification: the dictionary of `XyloSim.from_specification`, written and read."""

from collections.abc import Mapping
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array

from snnjax._arguments import explained
from snnjax._check import fail
from snnjax.fixed_point._chips import XYLO, FixedPoint
from snnjax.fixed_point._network import IntegerLayer, IntegerNetwork
from snnjax.fixed_point._step import Neurons

_HIDDEN, _READOUT = "hidden", "readout"


@explained
def to_xylo(network: IntegerNetwork) -> dict[str, Any]:
    """The specification of a network for Xylo: ``XyloSim.from_specification(**to_xylo(network))`` of rockpool.

    All hidden layers are one population: weights between them are recurrent, and arrive one step later, as in `run`.

    Returns:
        NumPy arrays: ``weights_in [inputs, hidden, 2]``, ``weights_rec [hidden, hidden, 2]`` (source first),
        ``weights_out [hidden, outputs]``, thresholds, biases and decays ("dashes") of hidden neurons and readouts; and
        the shifts of the weights.

    Raises:
        ValueError: if the network is not one of Xylo's arithmetic.

    Example:
        >>> import jax, snnjax
        >>> from snnjax import fixed_point, neurons
        >>> net = snnjax.network(12, [snnjax.layer(8, neurons.current_lif())], snnjax.leaky_readout(4))
        >>> whole, _ = fixed_point.convert(net, net.init(jax.random.key(0)), fixed_point.XYLO)
        >>> fixed_point.to_xylo(whole)["weights_in"].shape
        (12, 8, 2)
    """
    if network.chip.name != XYLO.name:
        fail(f"to_xylo: `network` must be one of Xylo, got one of {network.chip.name}. Convert it with XYLO.")
    *hidden, readout = network.layers
    widths = [layer.num_neurons for layer in hidden]
    starts = np.concatenate([[0], np.cumsum(widths)])
    count = int(starts[-1])
    weights_in = np.zeros((hidden[0].num_inputs, count, 2), np.int64)
    weights_rec = np.zeros((count, count, 2), np.int64)
    for place, layer in enumerate(hidden):
        own = slice(starts[place], starts[place + 1])
        source = weights_in if place == 0 else weights_rec[starts[place - 1] : starts[place]]
        source[:, own, : layer.num_synapses] = np.moveaxis(np.asarray(layer.weights), 0, -1)
        if layer.recurrent is not None:
            weights_rec[own, own, : layer.num_synapses] = np.moveaxis(np.asarray(layer.recurrent), 0, -1)
    joined = lambda name: np.concatenate([np.asarray(getattr(layer.neurons, name)) for layer in hidden], -1)  # noqa: E731
    dashes = np.concatenate([_two(layer.neurons.synapse_decay) for layer in hidden], axis=-1)
    out = readout.neurons
    first = hidden[0]
    return {
        "weights_in": weights_in,
        "weights_rec": weights_rec,
        "weights_out": np.asarray(readout.weights[0], np.int64),
        "dash_mem": joined("decay"),
        "dash_mem_out": np.asarray(out.decay),
        "dash_syn": dashes[0],
        "dash_syn_2": dashes[1],
        "dash_syn_out": np.asarray(out.synapse_decay[0]),
        "threshold": joined("threshold"),
        "threshold_out": np.asarray(out.threshold),
        "bias": joined("bias"),
        "bias_out": np.asarray(out.bias),
        "weight_shift_in": first.shift,
        "weight_shift_rec": first.recurrent_shift,
        "weight_shift_out": readout.shift,
    }


def from_xylo(specification: Mapping[str, Any], chip: FixedPoint = XYLO) -> IntegerNetwork:
    """The network of a specification for Xylo, such as one that rockpool's `mapper` and quantisers made.

    Args:
        specification: as `to_xylo` writes it.
        chip: the arithmetic.

    Raises:
        ValueError: if a threshold is below 1, for which the simulator never resets.

    Example:
        >>> import jax, snnjax
        >>> from snnjax import fixed_point, neurons
        >>> net = snnjax.network(12, [snnjax.layer(8, neurons.current_lif())], snnjax.leaky_readout(4))
        >>> whole, _ = fixed_point.convert(net, net.init(jax.random.key(0)), fixed_point.XYLO)
        >>> same = fixed_point.from_xylo(fixed_point.to_xylo(whole))
        >>> bool((same.layers[0].weights[0] == whole.layers[0].weights[0]).all())
        True
    """
    held = {name: np.asarray(value) for name, value in specification.items()}
    for name in ("threshold", "threshold_out"):
        if np.any(held[name] < 1):
            least = int(held[name].min())
            fail(f"from_xylo: `{name}` must be at least 1, got {least}. Neurons would never be reset.")

    def layer(
        end: str, weights: np.ndarray, recurrent: np.ndarray | None, name: str, dashes: list[str]
    ) -> IntegerLayer:
        neurons = Neurons(
            threshold=_int32(held["threshold" + end]),
            decay=_int32(held["dash_mem" + end]),
            synapse_decay=_int32(np.stack([held[dash] for dash in dashes])),
            bias=_int32(held["bias" + end]),
        )
        shift = int(held["weight_shift_in" if end == "" else "weight_shift_out"])
        own = None if recurrent is None else jnp.asarray(np.moveaxis(recurrent, -1, 0).astype(np.int8))
        return IntegerLayer(
            weights=jnp.asarray(np.moveaxis(weights, -1, 0).astype(np.int8)),
            recurrent=own,
            neurons=neurons,
            unit=jnp.ones(weights.shape[1], jnp.float32),
            name=name,
            shift=shift,
            recurrent_shift=int(held["weight_shift_rec"]),
        )

    hidden = layer("", held["weights_in"], held["weights_rec"], _HIDDEN, ["dash_syn", "dash_syn_2"])
    readout = layer("_out", held["weights_out"][:, :, None], None, _READOUT, ["dash_syn_out"])
    return IntegerNetwork(layers=(hidden, readout), chip=chip, spiking_output=True)


def _two(dashes: ArrayLike) -> np.ndarray:
    """The decays of two synapses; of one that there is not, 1."""
    found = np.asarray(dashes)
    return found if len(found) == 2 else np.concatenate([found, np.ones_like(found)])


def _int32(values: ArrayLike) -> Array:
    return jnp.asarray(np.asarray(values), jnp.int32)
