"""Networks that simulators are compared in, as numbers: each simulator's file says them in its own words.

Potentials and currents are in mV (a current times the resistance of the membrane), conductances in units of the leak,
times in ms, rates in Hz. This file needs NumPy alone.
"""

import os
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

DT = 0.1  # ms
# Of the synapses of the benchmarks of 2007, which have no delay: the shortest that all simulators have.
SHORTEST = (DT, 0.0)


class Projection(NamedTuple):
    """Synapses from one population to another: each pair with a probability, or so many of any pairs."""

    source: str
    target: str
    weight: tuple[float, float]  # mean and standard deviation; values of the other sign are drawn again
    delay: tuple[float, float]  # likewise; those that round to no step are drawn again
    receptor: int
    probability: float | None = None
    number: int | None = None


class Circuit(NamedTuple):
    """Populations of leaky neurons with a kind of synapse, their projections, and random input."""

    name: str
    kind: str  # "currents", "conductances" or "pulses"
    sizes: dict[str, int]
    rest: dict[str, float]  # with a constant current
    start: dict[str, tuple[float, float]]  # mean and standard deviation of the first potentials
    projections: tuple[Projection, ...]
    tau: float
    threshold: float
    reset: float
    refractory: float
    synaptic_taus: tuple[float, ...] = ()  # of receptors
    reversals: tuple[float, ...] = ()
    input_rates: dict[str, float] | None = None  # Poisson processes, each of a neuron's own
    input_weight: float = 0.0

    @property
    def num_neurons(self) -> int:
        return sum(self.sizes.values())


# Brette et al. 2007, doi:10.1007/s10827-007-0038-6: 3,200 neurons excite and 800 inhibit 2 % of all. The third of its
# four networks has Hodgkin-Huxley neurons, which `snnjax.simulate` has not.
_BRETTE = {"tau": 20.0, "threshold": -50.0, "reset": -60.0, "refractory": 5.0}


def _two(size: int, excites: float, inhibits: float, probability: float, delay: float, receptors: int):
    """Populations E and I, in a ratio of 4, and all projections between them."""
    sizes = {"E": size * 4 // 5, "I": size - size * 4 // 5}
    weights = {"E": excites, "I": inhibits}
    projections = tuple(
        Projection(
            source,
            target,
            (weights[source], 0.0),
            (delay, 0.0),
            min(k, receptors - 1),
            probability=probability,
        )
        for k, source in enumerate(sizes)
        for target in sizes
    )
    return sizes, projections


def coba(size: int = 4000) -> Circuit:
    """The first network, of conductances. Its activity would die out, so that a constant current keeps it."""
    sizes, projections = _two(size, 0.6, 6.7, 80 / size, DT, 2)
    both = dict.fromkeys(sizes, -50.0 + 1.0), dict.fromkeys(sizes, (-55.0, 2.5))
    reversals = {"synaptic_taus": (5.0, 10.0), "reversals": (0.0, -80.0)}
    return Circuit("COBA", "conductances", sizes, *both, projections, **_BRETTE, **reversals)


def cuba(size: int = 4000) -> Circuit:
    """The second one, of currents."""
    sizes, projections = _two(size, 1.62, -9.0, 80 / size, DT, 2)
    both = dict.fromkeys(sizes, -49.0), dict.fromkeys(sizes, (-55.0, 2.5))
    return Circuit("CUBA", "currents", sizes, *both, projections, **_BRETTE, synaptic_taus=(5.0, 10.0))


def pulses(size: int = 4000) -> Circuit:
    """The fourth one: CUBA with synapses by which membranes jump."""
    sizes, projections = _two(size, 0.25, -2.25, 80 / size, DT, 1)
    both = dict.fromkeys(sizes, -49.0), dict.fromkeys(sizes, (-55.0, 2.5))
    return Circuit("voltage jumps", "pulses", sizes, *both, projections, **_BRETTE)


def brunel(size: int = 12_500) -> Circuit:
    """Brunel 2000, doi:10.1023/A:1008925309027, model A with g = 5 and twice the input that reaches the threshold."""
    jump = 0.1 * 12_500 / size  # mV
    sizes, projections = _two(size, jump, -5 * jump, 0.1, 1.5, 1)
    rate = 2 * 20.0 / (jump * 20.0) * 1000.0  # Hz
    both = dict.fromkeys(sizes, 0.0), dict.fromkeys(sizes, (0.0, 5.0))
    constants = {"tau": 20.0, "threshold": 20.0, "reset": 10.0, "refractory": 2.0}
    given = {"input_rates": dict.fromkeys(sizes, rate), "input_weight": jump}
    return Circuit("Brunel", "pulses", sizes, *both, projections, **constants, **given)


# Potjans and Diesmann 2014, doi:10.1093/cercor/bhs358, with the numbers of github.com/INM-6/microcircuit-PD14-model.
NAMES = ("L23E", "L23I", "L4E", "L4I", "L5E", "L5I", "L6E", "L6I")
_FULL = np.array([20683, 5834, 21915, 5479, 4850, 1065, 14395, 2948])
_CONNECTED = np.array(  # pairs to the population of a row, from that of a column
    [
        [0.1009, 0.1689, 0.0437, 0.0818, 0.0323, 0.0000, 0.0076, 0.0000],
        [0.1346, 0.1371, 0.0316, 0.0515, 0.0755, 0.0000, 0.0042, 0.0000],
        [0.0077, 0.0059, 0.0497, 0.1350, 0.0067, 0.0003, 0.0453, 0.0000],
        [0.0691, 0.0029, 0.0794, 0.1597, 0.0033, 0.0000, 0.1057, 0.0000],
        [0.1004, 0.0622, 0.0505, 0.0057, 0.0831, 0.3726, 0.0204, 0.0000],
        [0.0548, 0.0269, 0.0257, 0.0022, 0.0600, 0.3158, 0.0086, 0.0000],
        [0.0156, 0.0066, 0.0211, 0.0166, 0.0572, 0.0197, 0.0396, 0.2252],
        [0.0364, 0.0010, 0.0034, 0.0005, 0.0277, 0.0080, 0.0658, 0.1443],
    ]
)
_INPUTS = np.array([1600, 1500, 2100, 1900, 2000, 1900, 2900, 2100])
_INPUT_RATE = 8.0  # Hz, of each
_RATES = np.array([0.903, 2.965, 4.414, 5.876, 7.569, 8.633, 1.105, 7.829])  # Hz
_START = (-68.28, -63.16, -63.33, -63.45, -63.11, -61.66, -66.72, -61.43)  # mV
_SPREAD = (5.36, 4.57, 4.74, 4.94, 4.94, 4.55, 5.46, 4.48)
_PULSE = 87.8080843 * 10 / 250  # pA * ms / pF = mV, for a potential of 0.15 mV
_SYNAPTIC_TAU = 0.5  # ms


def microcircuit(scale: float) -> Circuit:
    """The cortical column with a share of its neurons and of the inputs of each.

    Weights grow by ``1 / sqrt(scale)``, and a constant current replaces the mean that is lost.
    """
    root = scale**0.5
    sizes = np.rint(scale * _FULL).astype(int).tolist()
    synapses = np.log1p(-_CONNECTED) / np.log1p(-1 / np.outer(_FULL, _FULL))  # at full scale
    weight = np.where(np.arange(8) % 2, -4 * _PULSE, _PULSE) * np.ones((8, 1))
    weight[0, 2] *= 2
    mean = (weight * synapses / _FULL[:, None]) @ _RATES + _PULSE * _INPUTS * _INPUT_RATE
    lost = (1 - root) * mean * _SYNAPTIC_TAU / 1000  # mV
    projections = []
    for i, target in enumerate(NAMES):
        for j, source in enumerate(NAMES):
            own, late = weight[i, j] / root, 0.75 if j % 2 else 1.5
            number = round(synapses[i, j] * scale**2)
            kinds = (own, 0.1 * abs(own)), (late, late / 2)
            projections.append(Projection(source, target, *kinds, 0, number=number))
    return Circuit(
        f"microcircuit at {scale:g}",
        "currents",
        dict(zip(NAMES, sizes, strict=True)),
        dict(zip(NAMES, -65.0 + lost, strict=True)),
        dict(zip(NAMES, zip(_START, _SPREAD, strict=True), strict=True)),
        tuple(each for each in projections if each.number),
        tau=10.0,
        threshold=-50.0,
        reset=-65.0,
        refractory=2.0,
        synaptic_taus=(_SYNAPTIC_TAU,),
        input_rates=dict(zip(NAMES, np.rint(scale * _INPUTS) * _INPUT_RATE, strict=True)),
        input_weight=_PULSE / root,
    )


class Run(NamedTuple):
    """What a simulator is asked for."""

    circuit: Callable[..., Circuit]  # with its argument, so that it is pickled
    argument: float | int
    seconds: float  # that are measured
    warm_up: float = 0.2  # s before them
    seed: int = 1
    threads: int = 1
    spikes: bool = False  # whether they are recorded


class Measured(NamedTuple):
    """What it took, and what the network did. Building ends where the first step begins."""

    build_cpu: float  # s, of all threads and processes
    build_wall: float
    cpu: float  # s a simulated second
    wall: float
    rates: dict[str, float]  # Hz
    spikes: tuple[np.ndarray, np.ndarray] | None = (
        None  # times in ms from the warm-up on, and numbers of neurons
    )


def pinned(measure: Callable[[Run], Measured], run: Run) -> Measured:
    """What `measure` returns, in a process that may use as many cores as the run has threads."""
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: run.threads])
    return measure(run)
