"""Convert the neurons of a graph: their constants per step, and the scale of their input."""

import dataclasses
import inspect
import math
from typing import Any, NamedTuple

import numpy as np

from snnjax import surrogates
from snnjax._check import fail
from snnjax._types import Params, Stats
from snnjax.neurons import Neuron
from snnjax.nir._check import per_neuron
from snnjax.nir._conventions import Convention
from snnjax.nir._layout import Layout, per_channel
from snnjax.nir._metadata import array_of, facts_of, refuse_metadata
from snnjax.nir._neurons import INTEGRATORS, MODELS, SPIKING, THRESHOLD, WITHOUT_LEAK, Model
from snnjax.nir._time import leak_of, leak_of_raw, raw_of_leak, tau_of
from snnjax.nir._wiring import Step

# Gains this close to 1 are 1: writers compute them in float32 from time constants, with errors of a few times 1.2e-7.
_GAIN_TOLERANCE = 1e-6
# The same for time constants computed from raw decays in the metadata.
_TAU_TOLERANCE = 3e-7
# Numbers in float32 differ from those in the metadata by at most half a unit in the last place.
_NUMBER_TOLERANCE = 2.0**-24
# The threshold of integrators, which no membrane exceeds.
_NEVER = float(np.finfo(np.float32).max)
# A gain of 1 - decay is computed in float32, in which a smaller one would be wrong by more than 0.06 %.
_SMALLEST_GAIN = 1e-4
# A network whose constants are drawn anew takes them from their range, in which decays must be between 0 and 1.
_DECAY_MARGIN = 1e-6


class Reading(NamedTuple):
    """The options for reading a graph."""

    dt: float
    method: str
    convention: Convention
    reset: str | None  # None takes that of the metadata, else of the convention


class Cell(NamedTuple):
    """The neurons of a layer or readout, with arrays in the shape of their params and stats."""

    neuron: Neuron
    params: Params
    stats: Stats  # constants that differ and are not learned, None if there are none
    scale: np.ndarray | None = None  # scale of their input
    offset: np.ndarray | None = None  # a constant current
    facts: dict[str, Any] = {}  # noqa: RUF012  (a NamedTuple's default, never changed)


class _Fields(NamedTuple):
    """The fields of a node for the neurons of a layer."""

    step: Step
    layout: Layout
    reading: Reading
    facts: dict[str, Any]

    def get(self, field: str) -> np.ndarray:
        """One value per neuron."""
        return per_neuron(self.step.name, self.step.node, field, self.layout)

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
        if kept is not None and kept.ndim == 1 and kept.size in (1, self.layout.shape[-1], leak.size):
            full = np.resize(kept, leak.shape)
            if self.agrees(leak_of_raw(full), field):
                return full
        return raw_of_leak(leak)

    def agrees(self, leak: Any, field: str) -> bool:
        """Whether the fraction lost per step is that of a time constant."""
        tau = tau_of(np.asarray(leak), self.reading.dt, self.reading.method)
        return bool(np.allclose(tau, self.get(field), rtol=_TAU_TOLERANCE, atol=0))

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
            made = make(**{**fixed.pop("usual", {}), **given, **fixed})
            hash(made)  # as networks do
            return made
        except (TypeError, ValueError) as error:
            refuse_metadata(self.step.name, error)


class _Constants:
    """The constants of neurons, one by one: numbers, and arrays of those that are learned or differ."""

    def __init__(self, fields: _Fields) -> None:
        self.fields = fields
        self.arguments: dict[str, Any] = {}  # of the function that makes the neurons
        self.learned: dict[str, np.ndarray] = {}  # by the fields of the params, one value per neuron
        self.drawn: dict[str, np.ndarray] = {}

    def decay(self, name: str, leak: np.ndarray, field: str | None = None) -> None:
        """Add a decay, that of a time constant of the node if it has one."""
        said = self.fields.argument(name)
        known = _is_number(said) and field is not None and self.fields.agrees(1 - said, field)
        raw = raw_of_leak(leak) if field is None else self.fields.raw(leak, field, f"raw_{name}")
        ends = np.clip(1 - leak, _DECAY_MARGIN, 1 - _DECAY_MARGIN)
        self._add(name, f"raw_{name}", 1 - leak, raw, ends, said if known else None)

    def threshold(self, values: np.ndarray) -> None:
        """Add the thresholds."""
        said = self.fields.argument("threshold")
        known = _is_number(said) and np.allclose(values, said, rtol=_NUMBER_TOLERANCE, atol=0)
        self._add("threshold", "threshold", values, values, values, said if known else None)

    def _add(
        self, name: str, field: str, values: np.ndarray, array: np.ndarray, ends: np.ndarray, said: Any
    ) -> None:
        if self.fields.argument(f"learn_{name}") is True:
            self.learned[field] = array
        elif said is not None or (values == values[:1]).all():
            self.arguments[name] = said if said is not None else float(values[0]) if values.size else 0.5
            return
        else:
            self.drawn[field] = array
        given, differ = self.fields.argument(name), field in self.drawn
        if not (isinstance(given, list) if differ else given is not None):
            given = [float(np.min(ends)), float(np.max(ends))]
        self.arguments[name] = tuple(given) if isinstance(given, list) else given

    def cell(self, model: Model, scale: Any = None, offset: Any = None, **fixed: Any) -> Cell:
        """The neurons, with one value a layer or channel of what does not differ within it."""
        fields, shape = self.fields, self.fields.layout.shape
        arrays, per = {**self.learned, **self.drawn}, fields.argument("per", "channel")
        if per == "layer" and all((array == array[0]).all() for array in arrays.values()):
            arrays = {name: array[0] for name, array in arrays.items()}
        else:
            channels = {name: per_channel(array, shape) for name, array in arrays.items()}
            fits = per != "neuron" and all(array is not None for array in channels.values())
            arrays, per = (channels, "channel") if fits else (arrays, "neuron")
        neuron = fields.switches(model.make, **self.arguments, **fixed, per=per if arrays else "channel")
        params, stats = (
            model.params(**{name: np.asarray(arrays[name]) for name in own})
            for own in (self.learned, self.drawn)
        )
        return Cell(neuron, params, stats if self.drawn else None, scale, offset, fields.facts)


def cell_of(step: Step, threshold: Step | None, layout: Layout, reading: Reading) -> Cell:
    """The neurons of a node, or of an integrator and the Threshold after it, which are neurons without reset."""
    fields = _Fields(step, layout, reading, facts_of(step.name, step.node))
    constants, size = _Constants(fields), math.prod(layout.shape)
    behind = None if threshold is None else _Fields(threshold, layout, reading, {}).get("threshold")
    if step.kind == THRESHOLD:
        constants.decay("decay", np.ones(size))  # nothing is kept
        constants.threshold(fields.get("threshold"))
        return constants.cell(MODELS["lif"], **_resets(fields, "none"), normalize=False)
    model, base, resets = (SPIKING | INTEGRATORS)[step.kind], np.zeros(size), _resets(fields, "none")
    leaks = [] if step.kind == WITHOUT_LEAK else [fields.leak(decay.tau) for decay in model.decays]
    if step.kind in SPIKING:
        base, resets = fields.get("v_reset"), _resets(fields)
        behind = fields.get("v_threshold") - base
    elif behind is None and model.spiking != "CubaLIF":
        model, resets = MODELS["leaky_integrator"], {}
    for decay, leak in zip(model.decays, leaks or [np.zeros(size)], strict=False):
        constants.decay(decay.name, leak, decay.tau if leaks else None)
    switches, scale = _gains(fields, model, leaks)
    offset = _offset(fields, base, leaks, switches)
    if model.spiking is not None:
        constants.threshold(np.full(size, _NEVER) if behind is None else behind)
    cell = constants.cell(model, scale, offset, **switches, **resets)
    return cell._replace(neuron=dataclasses.replace(cell.neuron, spikes=behind is not None))


def _gains(
    fields: _Fields, model: Model, leaks: list[np.ndarray]
) -> tuple[dict[str, bool], np.ndarray | None]:
    """Whether the inputs have gains of ``1 - decay``, by argument, and what remains of all of them together."""
    if not leaks:
        gain, convention = fields.get("r") * fields.reading.dt, fields.reading.convention
        is_1 = _is_1(gain) or convention.unit_gain or convention.unit_gain_without_leak
        return {decay.normalize: False for decay in model.decays}, None if is_1 else gain
    switches, scales = {}, []
    for decay, leak in zip(model.decays, leaks, strict=True):
        wanted = fields.argument(decay.normalize)
        switches[decay.normalize], scale = _gain(fields, fields.get(decay.gain), leak, wanted)
        scales += [] if scale is None else [scale]
    return switches, np.prod(scales, axis=0) if scales else None


def _offset(
    fields: _Fields, base: np.ndarray, leaks: list[np.ndarray], switches: dict[str, bool]
) -> np.ndarray | None:
    """The constant current by which a membrane, relative to its reset, leaks towards v_leak."""
    if len(leaks) == 1:
        offset = (fields.get("v_leak") - base) * (1 if switches["normalize"] else leaks[0])
        return offset if offset.any() else None
    if leaks and not (fields.get("v_leak") == base).all():
        fail(
            f"from_nir: `graph` must have a v_leak of {fields.step.name} equal to its initial membrane, "
            f"got {fields.get('v_leak').tolist()[:4]}. Shift v_leak, v_reset and v_threshold so that "
            "v_leak is v_reset, or 0 without reset."
        )
    return None


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
    if leak.min(initial=1.0) < _SMALLEST_GAIN:
        return False, factor * leak
    return True, None if fits[True] else factor


def _resets(fields: _Fields, only: str | None = None) -> dict[str, Any]:
    """The switches for reset and spike that NIR leaves open."""
    convention, reading = fields.reading.convention, fields.reading
    with_synapse = fields.step.kind.startswith("Cuba")
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


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
