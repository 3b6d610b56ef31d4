"""Convert the neurons of a network to nodes: time constants, gains, and metadata for what NIR cannot express."""

import dataclasses
from typing import Any, NamedTuple

import numpy as np
from jax.typing import DTypeLike

from snnjax import neurons
from snnjax._check import fail
from snnjax.neurons import Neuron
from snnjax.nir._layout import Layout
from snnjax.nir._metadata import written
from snnjax.nir._time import leak_of_raw, tau_of
from snnjax.surrogates import Surrogate

_MAKERS = {
    "lif": neurons.lif,
    "current_lif": neurons.current_lif,
    "integrate_and_fire": neurons.integrate_and_fire,
    "leaky_integrator": neurons.leaky_integrator,
}
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
    held: Any  # the constants that are no numbers
    layout: Layout
    writing: Writing
    metadata: dict[str, Any]
    arguments: dict[str, Any]

    def array(self, values: Any) -> np.ndarray:
        """Values of neurons in NIR's layout."""
        return self.layout.written(np.asarray(values, np.float64)).astype(self.writing.dtype)

    def zeros(self) -> np.ndarray:
        return self.array(0.0)

    def any_leak(self, decay: str) -> np.ndarray:
        """The fraction lost per step."""
        raw = getattr(self.held, f"raw_{decay}", None)
        return np.asarray(
            1 - self.arguments[decay] if raw is None else leak_of_raw(np.asarray(raw, np.float64))
        )

    def leak(self, decay: str = "decay") -> np.ndarray:
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
    where: str, neuron: Neuron, held: Any, layout: Layout, writing: Writing, facts: dict[str, Any]
) -> list[Any]:
    """The node of a layer's neurons; two for neurons without reset."""
    arguments = _arguments(where, neuron)
    arrays = {name: _plain(getattr(held, name, None)) for name in ("raw_decay", "raw_synapse_decay")}
    metadata = written({**facts, "arguments": arguments}, **arrays)
    layer = _Layer(where, held, layout, writing, metadata, arguments)
    writers = {
        "lif": _lif,
        "current_lif": _current_lif,
        "integrate_and_fire": _integrate_and_fire,
        "leaky_integrator": _integrator,
    }
    return writers[neuron.name](layer, neuron.spikes)


def _arguments(where: str, neuron: Neuron) -> dict[str, Any]:
    """The arguments that make this neuron, except for a custom surrogate, which is a function."""
    given, make = dict(neuron.arguments), _MAKERS.get(neuron.name)
    # Its surrogate, and for a readout whether it spikes, may be others than those of the function.
    replaced = {"surrogate": neuron.surrogate, "spikes": neuron.spikes}
    if not (make is not None and bool(given) and dataclasses.replace(make(**given), **replaced) == neuron):
        fail(
            f"to_nir: `network` must hold only neurons that NIR has: {', '.join(_MAKERS)}, got "
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


def _lif(layer: _Layer, spikes: bool) -> list[Any]:
    import nir

    del spikes
    leak, normalize, threshold = layer.any_leak("decay"), layer.arguments["normalize"], layer.threshold
    if layer.arguments["reset"] == "none":
        if (leak == 1).all():
            return [nir.Threshold(threshold=threshold, metadata=layer.metadata)]
        return [*_integrators(layer, leak, normalize), nir.Threshold(threshold=threshold)]
    leak = layer.leak()
    return [
        nir.LIF(
            tau=layer.tau(leak),
            r=layer.gain(leak, normalize),
            v_leak=layer.zeros(),
            v_threshold=threshold,
            v_reset=layer.zeros(),
            metadata=layer.metadata,
        )
    ]


def _integrator(layer: _Layer, spikes: bool) -> list[Any]:
    del spikes
    return _integrators(layer, layer.any_leak("decay"), layer.arguments["normalize"])


def _integrators(layer: _Layer, leak: np.ndarray, normalize: bool) -> list[Any]:
    import nir

    if (leak <= _LEAK_OF_NONE).all() and not normalize:
        return [nir.I(r=layer.array(1 / layer.writing.dt), metadata=layer.metadata)]
    tau = layer.tau(layer.leak())
    common = {"tau": tau, "r": layer.gain(leak, normalize), "v_leak": layer.zeros()}
    return [nir.LI(**common, metadata=layer.metadata)]


def _integrate_and_fire(layer: _Layer, spikes: bool) -> list[Any]:
    import nir

    del spikes
    gain, threshold = layer.array(1 / layer.writing.dt), layer.threshold
    if layer.arguments["reset"] == "none":
        return [nir.I(r=gain, metadata=layer.metadata), nir.Threshold(threshold=threshold)]
    return [nir.IF(r=gain, v_threshold=threshold, v_reset=layer.zeros(), metadata=layer.metadata)]


def _current_lif(layer: _Layer, spikes: bool) -> list[Any]:
    import nir

    arguments = layer.arguments
    leak, synapse_leak = layer.leak(), layer.leak("synapse_decay")
    common = {
        "tau_mem": layer.tau(leak),
        "tau_syn": layer.tau(synapse_leak),
        "r": layer.gain(leak, arguments["normalize"]),
        "v_leak": layer.zeros(),
        "w_in": layer.gain(synapse_leak, arguments["normalize_synapse"]),
        "metadata": layer.metadata,
    }
    if not spikes:
        return [nir.CubaLI(**common)]
    threshold = layer.threshold
    if arguments["reset"] == "none":
        return [nir.CubaLI(**common), nir.Threshold(threshold=threshold)]
    return [nir.CubaLIF(**common, v_threshold=threshold, v_reset=layer.zeros())]
