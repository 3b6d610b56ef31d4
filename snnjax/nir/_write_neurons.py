"""Convert the neurons of a network to nodes: time constants, gains, and metadata for what NIR cannot express."""

import dataclasses
from typing import Any, NamedTuple

import numpy as np
from jax.typing import DTypeLike

from snnjax._check import fail
from snnjax._types import Params
from snnjax.neurons import Neuron
from snnjax.nir._check import NIRNode
from snnjax.nir._layout import Layout
from snnjax.nir._metadata import written
from snnjax.nir._neurons import MODELS, THRESHOLD, WITHOUT_LEAK, Model
from snnjax.nir._time import leak_of_raw, tau_of
from snnjax.surrogates import Surrogate

# A decay that is 1 in float32: a leaky integrator without leak.
_LEAK_OF_NONE = 2.0**-25


class Writing(NamedTuple):
    """The options for writing a network."""

    dt: float
    method: str
    dtype: DTypeLike  # dtype of the arrays in the graph


class _Layer(NamedTuple):
    """The neurons of a block."""

    where: str  # its name
    held: Params  # the constants that are no numbers
    layout: Layout
    writing: Writing
    metadata: dict[str, Any]
    arguments: dict[str, Any]

    def array(self, values: Any) -> np.ndarray:
        """Values of neurons in NIR's layout."""
        return self.layout.written(np.asarray(values, np.float64)).astype(self.writing.dtype)

    def any_leak(self, decay: str) -> np.ndarray:
        """The fraction lost per step."""
        raw = getattr(self.held, f"raw_{decay}", None)
        return np.asarray(
            1 - self.arguments[decay] if raw is None else leak_of_raw(np.asarray(raw, np.float64))
        )

    def leak(self, decay: str) -> np.ndarray:
        """The fraction lost per step, above 0."""
        leak = self.any_leak(decay)
        if not (leak > _LEAK_OF_NONE).all():
            fail(
                f"to_nir: `params` must hold decays below 1 in {self.where}, got 1. Use "
                "neurons.integrate_and_fire, or a smaller decay."
            )
        return leak

    @property
    def threshold(self) -> np.ndarray:
        """The threshold."""
        held = getattr(self.held, "threshold", None)
        return self.array(self.arguments["threshold"] if held is None else held)

    def tau(self, leak: np.ndarray) -> np.ndarray:
        """The time constant."""
        tau = tau_of(leak, self.writing.dt, self.writing.method)
        if not (tau > 0).all():
            fail(
                f"to_nir: `params` must hold decays above 0 in {self.where}, got 0. Write it with "
                "method='euler'."
            )
        return self.array(tau)

    def gain(self, leak: np.ndarray, normalize: bool) -> np.ndarray:
        """``r`` or ``w_in``: the input's gain divided by ``1 - decay``."""
        return self.array(np.ones(()) if normalize else 1 / leak)


def nodes_of(
    where: str, neuron: Neuron, held: Params, layout: Layout, writing: Writing, facts: dict[str, Any]
) -> list[Any]:
    """The node of a layer's neurons; two for neurons without reset."""
    arguments = _arguments(where, neuron)
    arrays = {name: _plain(getattr(held, name, None)) for name in ("raw_decay", "raw_synapse_decay")}
    metadata = written({**facts, "arguments": arguments}, **arrays)
    return _nodes(
        MODELS[neuron.name], _Layer(where, held, layout, writing, metadata, arguments), neuron.spikes
    )


def _nodes(model: Model, layer: _Layer, spikes: bool) -> list[Any]:
    import nir

    def node(kind: str, **fields: Any) -> NIRNode:
        return getattr(nir, kind)(**fields, metadata=layer.metadata)

    arguments, zeros = layer.arguments, layer.array(0.0)
    is_reset = spikes and arguments["reset"] != "none"
    behind = [nir.Threshold(threshold=layer.threshold)] if spikes and not is_reset else []
    if len(model.decays) == 1 and not is_reset:
        leak = layer.any_leak("decay")
        if spikes and (leak == 1).all():
            return [node(THRESHOLD, threshold=layer.threshold)]
        if (leak <= _LEAK_OF_NONE).all() and not arguments["normalize"]:
            return [node(WITHOUT_LEAK, r=layer.array(1 / layer.writing.dt)), *behind]
    fields = {} if model.decays else {"r": layer.array(1 / layer.writing.dt)}
    leaks = [layer.leak(decay.name) for decay in model.decays]
    for decay, leak in zip(model.decays, leaks, strict=True):
        fields[decay.tau], fields[decay.gain] = layer.tau(leak), layer.gain(leak, arguments[decay.normalize])
        fields["v_leak"] = zeros
    if model.spiking is None or not is_reset:
        return [node(model.integrator, **fields), *behind]
    return [node(model.spiking, **fields, v_threshold=layer.threshold, v_reset=zeros)]


def _arguments(where: str, neuron: Neuron) -> dict[str, Any]:
    """The arguments that make this neuron, except for a custom surrogate, which is a function."""
    given, model = dict(neuron.arguments), MODELS.get(neuron.name)
    # Its surrogate, and for a readout whether it spikes, may be others than those of the function.
    replaced = {"surrogate": neuron.surrogate, "spikes": neuron.spikes}
    if not (
        model is not None and bool(given) and dataclasses.replace(model.make(**given), **replaced) == neuron
    ):
        fail(
            f"to_nir: `network` must hold only neurons that NIR has: {', '.join(MODELS)}, got "
            f"{neuron.name} in {where}. Replace them, or save the network in a checkpoint of snnjax.train."
        )
    numbers = {name: _number(value) for name, value in given.items() if name != "surrogate"}
    if "surrogate" in given and type(neuron.surrogate) is Surrogate:
        numbers["surrogate"] = dataclasses.asdict(neuron.surrogate)
    return numbers


def _number(value: Any) -> Any:
    if isinstance(value, tuple):
        return [float(end) for end in value]
    return value if isinstance(value, bool | str) else float(value)


def _plain(array: Any) -> np.ndarray | None:
    """The array in a NumPy dtype: files do not support bfloat16."""
    return None if array is None else np.asarray(array, np.promote_types(np.float32, np.asarray(array).dtype))
