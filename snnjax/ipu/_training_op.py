"""How a step of training is called on the model: `lif_network` with a loss and Adam, all on the device."""

from typing import Any

import numpy as np

from snnjax.ipu._arrays import Operands, number_of, refuse
from snnjax.ipu._network_op import Network

# In the order of the enumeration in xla_ext/builders/training_step.hpp.
POOLINGS = ("sum", "mean", "max")


def training_step(
    operands: Operands,
    *,
    capacity: Any = None,
    surrogate: str = "superspike",
    slope: float = 10.0,
    reset: str = "subtract",
    detach_reset: bool = True,
    mapping: str = "balanced",
    pooling: str = "mean",
    num_updates: int = 1,
    learning_rate: float = 1e-3,
    beta1: float = 0.9,
    beta2: float = 0.999,
    epsilon: float = 1e-8,
    learns_bias: bool = True,
) -> None:
    """The arrays of `lif_network` with a read-out, from membranes of 0, and ``labels`` ``[batch]``.

    The loss is the mean cross-entropy of the read-out's membranes pooled over time; `num_updates` steps of Adam follow
    each other on the same samples.

    Results: ``loss`` ``[num_updates]``, each before its update; ``new_weights<l>``, ``new_bias<l>``,
    ``new_recurrent<l>``, ``new_readout_weights``, ``new_readout_bias``.
    """
    op = operands.op
    if not operands.has("readout_weights"):
        refuse(op, "readout_weights", "be an array [inputs, neurons]", "none", "Add it to the arrays")
    if num_updates < 1:
        refuse(op, "num_updates", "be at least 1", num_updates, "Pass a larger number")
    network = Network(operands, capacity)
    network.set_switches(surrogate, slope, reset, detach_reset, mapping)
    operands.numbers.update(
        pooling=number_of(op, "pooling", pooling, POOLINGS),
        num_updates=num_updates,
        beta1=beta1,
        beta2=beta2,
        epsilon=epsilon,
        learns_bias=learns_bias,
    )
    network.hand_over_inputs()
    operands.integers("labels", (network.batch,))
    operands.arrays["learning_rate"] = np.array([learning_rate], np.float32)
    for layer in range(len(network.widths)):
        network.hand_over_parameters(layer)
    _ask_for_results(operands, network, num_updates)


def _ask_for_results(operands: Operands, network: Network, num_updates: int) -> None:
    """The device yields each sample's share of the loss, and numbers the read-out as one more layer."""
    operands.result("loss", (num_updates, network.batch))
    parts: dict[str, str] = {}
    dtype = np.float16 if network.half else np.float32
    for layer, neurons in enumerate(network.widths):
        operands.result(f"new_weights{layer}", (network.inputs_of(layer), neurons), dtype)
        operands.result(f"new_bias{layer}", (neurons,))
        for part in ("weights", "bias"):
            parts[f"new_{part}{layer}"] = f"new_{network.name(part, layer)}"
        if layer < network.num_lif and network.is_recurrent[layer]:
            operands.result(f"new_recurrent{layer}", (neurons, neurons), dtype)
            parts[f"new_recurrent{layer}"] = f"new_recurrent{layer}"

    def finish(raw: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        return {"loss": raw["loss"].sum(axis=1), **{name: raw[own] for own, name in parts.items()}}

    operands.finish = finish
