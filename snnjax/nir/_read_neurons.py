"""Convert the neurons of a graph: their constants per step, and the scale of their input."""

import inspect
from typing import Any, NamedTuple

import numpy as np

from snnjax import neurons, surrogates
from snnjax._check import fail
from snnjax.neurons import Neuron
from snnjax.nir._chain import Step
from snnjax.nir._check import per_neuron
from snnjax.nir._conventions import Convention
from snnjax.nir._layout import Shape
from snnjax.nir._metadata import array_of, facts_of, refuse_metadata
from snnjax.nir._time import leak_of, leak_of_raw, raw_of_leak, tau_of

# Gains this close to 1 are 1: writers compute them in float32 from time constants, with errors of a few times 1.2e-7.
_GAIN_TOLERANCE = 1e-6
# The same for time constants computed from raw decays in the metadata.
_TAU_TOLERANCE = 3e-7
# A network whose parameters are redrawn starts with the mean decay, which must be between 0 and 1.
_DECAY_MARGIN = 1e-6


class Reading(NamedTuple):
    """The options for reading a graph."""

    dt: float
    method: str
    convention: Convention
    reset: str | None  # None takes that of the metadata, else of the convention


class Cell(NamedTuple):
    """The neurons of a layer or read-out, with arrays of one value per neuron, or of the shape in the metadata."""

    neuron: Neuron
    params: Any
    scale: np.ndarray | None = None  # scale of their input
    offset: np.ndarray | None = None  # a constant current
    facts: dict[str, Any] = {}  # noqa: RUF012  (a NamedTuple's default, never changed)


class _Fields(NamedTuple):
    """The fields of a node for the neurons of a layer."""

    step: Step
    shape: Shape
    reading: Reading
    facts: dict[str, Any]

    def get(self, field: str) -> np.ndarray:
        """One value per neuron."""
        return per_neuron(self.step.name, self.step.node, field, self.shape)

    def leak(self, field: str) -> np.ndarray:
        """The fraction lost per step, from a time constant."""
        tau, reading = self.get(field), self.reading
        where = f"{self.step.name}.{field}"
        if not (tau > 0).all():
            actual, hint = float(np.min(tau)), "Write them in the unit of dt"
            fail(f"from_nir: `graph` must have time constants above 0 in {where}, got {actual}. {hint}.")
        leak = leak_of(tau, reading.dt, reading.method)
        if not (leak <= 1 + _GAIN_TOLERANCE).all():
            expected = f"have time constants of at least dt = {reading.dt:g} in {where}"
            hint = "Choose a shorter dt, or method='exact'"
            fail(f"from_nir: `graph` must {expected}, got {float(np.min(tau))}. {hint}.")
        return np.minimum(leak, 1.0)

    def raw(self, leak: np.ndarray, field: str, key: str) -> np.ndarray:
        """The raw decays, from the metadata if they still agree with the node."""
        kept = array_of(self.step.node, key)
        if kept is not None and kept.ndim == 1 and kept.size in (1, self.shape[-1], leak.size):
            full = np.resize(kept, leak.shape)
            tau = tau_of(leak_of_raw(full), self.reading.dt, self.reading.method)
            if np.allclose(tau, self.get(field), rtol=_TAU_TOLERANCE, atol=0):
                return kept.reshape(()) if kept.size == 1 and not self.argument("per_neuron", True) else kept
        return raw_of_leak(leak)

    def argument(self, name: str, default: Any = None) -> Any:
        """An argument of the function that made the neuron."""
        arguments = self.facts.get("arguments")
        return arguments.get(name, default) if isinstance(arguments, dict) else default

    def switches(self, make: Any, **fixed: Any) -> Neuron:
        """The neuron, with switches from the metadata and from the graph itself."""
        known = set(inspect.signature(make).parameters)
        held: Any = self.facts.get("arguments")
        held = held.items() if isinstance(held, dict) else ()
        given: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in held if k in known}
        try:
            if "surrogate" in given:
                given["surrogate"] = surrogates.Surrogate(**given["surrogate"])
            return make(**{**fixed.pop("usual", {}), **given, **fixed})
        except (TypeError, ValueError) as error:
            refuse_metadata(self.step.name, error)


def cell_of(step: Step, threshold: Step | None, shape: Shape, reading: Reading) -> Cell:
    """The neurons of a node, or of an integrator and the Threshold after it, which are neurons without reset."""
    fields = _Fields(step, shape, reading, facts_of(step.name, step.node))
    behind = None if threshold is None else _Fields(threshold, shape, reading, {}).get("threshold")
    if step.kind in ("IF", "I"):
        return _without_leak(fields, behind)
    if step.kind in ("LIF", "LI"):
        return _leaky(fields, behind)
    if step.kind in ("CubaLIF", "CubaLI"):
        return _current_based(fields, behind)
    assert step.kind == "Threshold"
    # A membrane with decay 0.
    nothing = np.ones(shape).reshape(-1)
    neuron = fields.switches(neurons.lif, **_resets(fields, "none"), normalize=False)
    return Cell(neuron, neurons.LIFParams(_array(raw_of_leak(nothing)), _array(fields.get("threshold"))))


def _without_leak(fields: _Fields, threshold: np.ndarray | None) -> Cell:
    gain, convention = fields.get("r") * fields.reading.dt, fields.reading.convention
    scale = None if _is_1(gain) or convention.unit_gain or convention.unit_gain_without_leak else gain
    if fields.step.kind == "I" and threshold is None:
        neuron = fields.switches(neurons.leaky_integrator, normalize=False, decay=1 - _DECAY_MARGIN)
        raw = np.broadcast_to(raw_of_leak(np.zeros(())), gain.shape)
        return Cell(neuron, neurons.LeakyIntegratorParams(_array(raw)), scale, None, fields.facts)
    if threshold is None:
        threshold, resets = fields.get("v_threshold") - fields.get("v_reset"), _resets(fields)
    else:
        resets = _resets(fields, "none")
    neuron = fields.switches(neurons.integrate_and_fire, **resets, usual={"threshold": _mean(threshold)})
    return Cell(neuron, neurons.IntegrateAndFireParams(_array(threshold)), scale, None, fields.facts)


def _leaky(fields: _Fields, threshold: np.ndarray | None) -> Cell:
    leak, base = fields.leak("tau"), np.zeros(())
    raw = fields.raw(leak, "tau", "raw_decay")
    normalize, scale = _gain(fields, fields.get("r"), leak, fields.argument("normalize"))
    usual = {"decay": _mean_decay(leak)}
    if fields.step.kind == "LI" and threshold is None:
        neuron = fields.switches(neurons.leaky_integrator, normalize=normalize, usual=usual)
        params: Any = neurons.LeakyIntegratorParams(_array(np.broadcast_to(raw, leak.shape)))
    else:
        if threshold is None:
            base = fields.get("v_reset")
            threshold, resets = fields.get("v_threshold") - base, _resets(fields)
        else:
            resets = _resets(fields, "none")
        usual["threshold"] = _mean(threshold)
        neuron = fields.switches(neurons.lif, normalize=normalize, usual=usual, **resets)
        params = neurons.LIFParams(_array(raw), _array(threshold))
    # Relative to the reset, the membrane leaks towards v_leak as if driven by a constant current.
    offset = (fields.get("v_leak") - base) * (1 if normalize else leak)
    return Cell(neuron, params, scale, offset if offset.any() else None, fields.facts)


def _current_based(fields: _Fields, threshold: np.ndarray | None) -> Cell:
    leak, synapse_leak = fields.leak("tau_mem"), fields.leak("tau_syn")
    raw = fields.raw(leak, "tau_mem", "raw_decay")
    raw_synapse = fields.raw(synapse_leak, "tau_syn", "raw_synapse_decay")
    given = fields.argument("normalize"), fields.argument("normalize_synapse")
    normalize, scale = _gain(fields, fields.get("r"), leak, given[0])
    normalize_synapse, synapse_scale = _gain(fields, fields.get("w_in"), synapse_leak, given[1])
    scales = [each for each in (scale, synapse_scale) if each is not None]
    usual = {"decay": _mean_decay(leak), "synapse_decay": _mean_decay(synapse_leak)}
    spiking, base = fields.step.kind == "CubaLIF" or threshold is not None, np.zeros(())
    if fields.step.kind == "CubaLIF":
        base = fields.get("v_reset")
        threshold, resets = fields.get("v_threshold") - base, _resets(fields)
    else:
        threshold = np.full(leak.shape, np.inf) if threshold is None else threshold
        resets = _resets(fields, "none")
    if not (fields.get("v_leak") == base).all():
        fail(
            f"from_nir: `graph` must have a v_leak of {fields.step.name} equal to its initial membrane, "
            f"got {fields.get('v_leak').tolist()[:4]}. Shift v_leak, v_reset and v_threshold so that "
            "v_leak is v_reset, or 0 without reset."
        )
    usual["threshold"] = _mean(threshold)
    gains = {"normalize": normalize, "normalize_synapse": normalize_synapse}
    neuron = fields.switches(neurons.current_lif, usual=usual, **gains, **resets)
    params = neurons.CurrentLIFParams(_array(raw), _array(raw_synapse), _array(threshold))
    factor = np.prod(scales, axis=0) if scales else None
    return Cell(neuron._replace(spikes=spiking), params, factor, None, fields.facts)


def _gain(
    fields: _Fields, factor: np.ndarray, leak: np.ndarray, wanted: Any
) -> tuple[bool, np.ndarray | None]:
    """Whether the input has the gain ``1 - decay`` (else 1), and its remaining scale.

    Both together are ``factor * (1 - decay)``.
    """
    if fields.reading.convention.unit_gain:
        return False, None
    fits = {False: _is_1(factor * leak), True: _is_1(factor)}
    if isinstance(wanted, bool) and fits[wanted]:
        return wanted, None
    if fits[False]:
        return False, None
    return True, None if fits[True] else factor


def _resets(fields: _Fields, only: str | None = None) -> dict[str, Any]:
    """The switches for reset and spike that NIR leaves open."""
    convention, reading = fields.reading.convention, fields.reading
    with_synapse = fields.step.kind in ("CubaLIF", "CubaLI")
    usual = convention.reset_time_with_synapse if with_synapse else convention.reset_time
    reset = only or reading.reset or fields.argument("reset", convention.reset)
    return {
        "reset": reset,
        "reset_time": fields.argument("reset_time", usual),
        "spike_from": fields.argument("spike_from", convention.spike_from),
        "inclusive": fields.argument("inclusive", convention.inclusive),
    }


def _is_1(values: np.ndarray) -> bool:
    return bool(np.allclose(values, 1, rtol=_GAIN_TOLERANCE, atol=0))


def _array(values: Any) -> Any:
    return np.asarray(values)  # cast at the end, with all parameters


def _mean(values: np.ndarray) -> float:
    return float(np.mean(values)) if values.size else 1.0


def _mean_decay(leak: np.ndarray) -> float:
    return min(max(1 - _mean(leak), _DECAY_MARGIN), 1 - _DECAY_MARGIN)
