"""Spike trains of a simulation by population: a raster, rates, and how irregular they are."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from snnjax._check import check_integer, fail, short_repr, type_words
from snnjax._types import Unchecked
from snnjax.ops._simulation.input import SpikeTrains
from snnjax.ops._simulation.records import positive

_MS_PER_S = 1000.0
_LEAST = 2  # intervals that vary
_SLACK = 1e-6  # of a step, by which products such as 3 * 0.1 are beyond the end of their step, 0.3


class Raster(NamedTuple):
    """The spikes of a population."""

    times: np.ndarray  # ms, float64, ascending
    ids: np.ndarray  # int64, counted from the first neuron of the population


def raster(trains: SpikeTrains, populations: Mapping[str, slice]) -> dict[str, Raster]:
    """Divide spikes by population.

    Args:
        trains: of known values.
        populations: consecutive neurons by name, `circuits.Populations.slices`.

    Raises:
        ValueError: if these are none.

    Example:
        >>> from snnjax.circuits import SpikeTrains
        >>> from snnjax.metrics import raster
        >>> trains = SpikeTrains.of([0.5, 1.0, 2.0], [0, 3, 2], dt=0.5)
        >>> raster(trains, {"E": slice(0, 2), "I": slice(2, 4)})["I"].ids.tolist()
        [1, 0]
    """
    _check("raster", trains, populations)
    ids, times = np.asarray(trains.ids, np.int64), trains.times
    found = {}
    for name, own in populations.items():
        within = (ids >= own.start) & (ids < own.stop)
        found[name] = Raster(times[within], ids[within] - own.start)
    return found


def firing_rates(
    trains: SpikeTrains, populations: Mapping[str, slice], duration: float, *, start: float = 0.0
) -> dict[str, np.ndarray]:
    """Compute the rate of each neuron in Hz, by population.

    Args:
        trains: of known values.
        populations: as for `raster`.
        duration: for which neurons were simulated behind `start`, in ms.
        start: earlier spikes are left out, ms.

    Raises:
        ValueError: if these are none, or a time is not above 0.

    Example:
        >>> from snnjax.circuits import SpikeTrains
        >>> from snnjax.metrics import firing_rates
        >>> trains = SpikeTrains.of([[20.0, 60.0], []], dt=0.1)
        >>> firing_rates(trains, {"E": slice(0, 2)}, duration=100.0)
        {'E': array([20.,  0.])}
    """
    positive("firing_rates", "duration", duration)
    found, parts = {}, raster(trains, populations)
    first = start + _SLACK * trains.dt
    for name, own in parts.items():
        within = own.ids[(own.times > first) & (own.times <= first + duration)]
        size = populations[name].stop - populations[name].start
        found[name] = np.bincount(within, minlength=size) / (duration / _MS_PER_S)
    return found


def interval_variations(
    trains: SpikeTrains, populations: Mapping[str, slice], *, least: int = _LEAST
) -> dict[str, np.ndarray]:
    """Compute the coefficient of variation of the intervals of each neuron, by population.

    It is their standard deviation divided by their mean: 1 of a Poisson process, 0 of a clock.

    Args:
        trains: of known values.
        populations: as for `raster`.
        least: neurons with fewer intervals are left out.

    Raises:
        ValueError: if these are none, or `least` is below 2.

    Example:
        >>> from snnjax.circuits import SpikeTrains
        >>> from snnjax.metrics import interval_variations
        >>> trains = SpikeTrains.of([[1.0, 2.0, 4.0], [1.0, 2.0, 3.0], [5.0]], dt=0.1)
        >>> interval_variations(trains, {"E": slice(0, 3)})["E"].round(3)
        array([0.333, 0.   ])
    """
    least = check_integer("interval_variations", "least", least, _LEAST)
    _check("interval_variations", trains, populations)
    found = {}
    for name, own in populations.items():
        gaps = (np.diff(each) for each in trains.of_each(range(own.start, own.stop)))
        kept = [gap.std() / gap.mean() for gap in gaps if len(gap) >= least]
        found[name] = np.array(kept, np.float64)
    return found


def _check(op: str, trains: Unchecked, populations: Unchecked) -> None:
    if not isinstance(trains, SpikeTrains):
        hint = "Call circuits.SpikeTrains.listed"
        fail(f"{op}: `trains` must be SpikeTrains, got {type_words(trains)}. {hint}.")
    if not isinstance(populations, Mapping):
        hint = "Pass circuits.Populations.slices"
        fail(f"{op}: `populations` must be slices by name, got {type_words(populations)}. {hint}.")
    for name, own in populations.items():
        good = isinstance(own, slice) and None not in (own.start, own.stop) and own.step in (None, 1)
        if not good:
            hint = "Pass neurons in a row, with both ends"
            fail(f"{op}: `populations[{name!r}]` must be a slice, got {short_repr(own)}. {hint}.")
