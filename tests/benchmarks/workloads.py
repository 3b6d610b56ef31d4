"""What is measured: the workloads W1 to W4 with their inputs and weights, in numpy alone, so that peers can have them.

All in float32, inputs are Bernoulli spikes, and every spiking neuron is LIF::

    v = 0.9 v + I,   s = [v > 1],   v = v - s (detached),   ds/dv = 1 / (1 + 25 |v - 1|)^2
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

DECAY, THRESHOLD, SLOPE = 0.9, 1.0, 25.0
LEARNING_RATE = 1e-3
# Of sparse training: neurons above it are listed, in lists of this share of the layer's width.
SECOND_THRESHOLD, CAPACITY_SHARE = 0.9, 0.1

SEED = 0
CALIBRATION_STEPS, CALIBRATION_BATCH, CALIBRATION_ROUNDS = 100, 4, 16
MIN_SCALE, MAX_SCALE = 1e-2, 1e2
# Weights around 0 cannot make a layer fire more than every other step; above this rate all are positive.
MAX_RATE_OF_SIGNED_WEIGHTS = 0.2


class Layer(NamedTuple):
    """The weights of a layer."""

    weights: Any  # [inputs, neurons]
    recurrent: Any = None  # [neurons, neurons]


@dataclass(frozen=True)
class Workload:
    """A network, the size of its inputs, and how much it spikes."""

    name: str
    widths: tuple[int, ...]  # of the inputs and of each layer
    steps: int
    batch: int
    rate: float  # spikes per input and step
    # Spikes per neuron and step, of each spiking layer: the weights are scaled to that.
    rates: tuple[float, ...]
    recurrent: bool = False  # all spiking layers
    readout: bool = False  # the last layer is a leaky integrator

    @property
    def input_shape(self) -> tuple[int, int, int]:
        return (self.steps, self.batch, self.widths[0])

    @property
    def output_shape(self) -> tuple[int, int, int]:
        return (self.steps, self.batch, self.widths[-1])

    def at_activity(self, activity: float) -> "Workload":
        """The same with all spiking layers at one activity, and inputs as they are."""
        return replace(self, rates=(activity,) * len(self.rates))

    def at_density(self, density: float) -> "Workload":
        """The same with inputs and all layers at one activity."""
        return replace(self, rate=density, rates=(density,) * len(self.rates))


@dataclass(frozen=True)
class Product:
    """W4: ``spikes[batch, neurons] @ weights[neurons, neurons]``."""

    neurons: int
    batch: int
    density: float

    @property
    def name(self) -> str:
        return f"W4, {self.neurons} x {self.neurons}, batch {self.batch}"


def w1(neurons: int, rate: float, steps: int = 500, batch: int = 16) -> Workload:
    """One linear layer and its neurons, which fire as much as the inputs."""
    return Workload(f"W1, {neurons} x {neurons}", (neurons, neurons), steps, batch, rate, (rate,))


def w2(batch: int) -> Workload:
    """A recurrent layer and a readout, of the size of Spiking Heidelberg Digits."""
    name = f"W2, batch {batch}"
    return Workload(name, (700, 256, 20), 100, batch, 0.02, (0.023,), recurrent=True, readout=True)


W3 = Workload("W3", (2312, 1024, 512, 256, 10), 100, 48, 0.02, (0.020, 0.022, 0.027, 0.029))


# The network of the published timings (Finkbeiner et al. 2024, arXiv:2311.04386): 32 events a step.
N_MNIST = Workload(
    "N-MNIST, 1466-1466-10", (2312, 1466, 1466, 10), 100, 48, 32 / 2312, (0.01, 0.01), readout=True
)


def stacked(layers: int, width: int, batch: int, steps: int = 8, rate: float = 0.05) -> Workload:
    """Layers of one width, as many inputs, and one activity of them all, for pipelines."""
    name = f"{layers} layers of {width}, batch {batch}"
    return Workload(name, (width,) * (layers + 1), steps, batch, rate, (rate,) * layers)


def bernoulli(shape: Sequence[int], rate: float, seed: int = SEED) -> np.ndarray:
    """Spikes of probability `rate`, as 0 and 1 in float32."""
    return (np.random.default_rng(seed).random(shape, np.float32) < rate).astype(np.float32)


def labels(workload: Workload) -> np.ndarray:
    classes = np.random.default_rng(SEED).integers(0, workload.widths[-1], workload.batch)
    return classes.astype(np.int32)


def listed_ids(dense: np.ndarray) -> np.ndarray:
    """The ids of the spikes in each row, ascending, in as many slots as the fullest row needs (at least one)."""
    width = dense.shape[-1]
    rows, ids = np.nonzero(dense.reshape(-1, width))
    counts = np.bincount(rows, minlength=dense[..., 0].size)
    slots = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
    listed = np.full((len(counts), max(1, counts.max())), width, np.int32)
    listed[rows, slots] = ids
    return listed.reshape(*dense.shape[:-1], -1)


def layers(workload: Workload) -> list[Layer]:
    """Normal weights, scaled layer by layer until a sample of the inputs makes each fire at its rate."""
    rng = np.random.default_rng(SEED + 1)
    shape = (min(workload.steps, CALIBRATION_STEPS), CALIBRATION_BATCH, workload.widths[0])
    spikes, made = bernoulli(shape, workload.rate, SEED + 2), []
    for index, (inputs, neurons) in enumerate(pairwise(workload.widths)):
        weights = rng.standard_normal((inputs, neurons), np.float32) / np.float32(inputs**0.5)
        if index == len(workload.rates):  # the readout, which does not spike
            return [*made, Layer(weights)]
        recurrent = None
        if workload.recurrent:
            recurrent = rng.standard_normal((neurons, neurons), np.float32) / np.float32(neurons**0.5)
        rate = workload.rates[index]
        weights = np.abs(weights) if rate > MAX_RATE_OF_SIGNED_WEIGHTS else weights
        scale, spikes = calibrated(spikes @ weights, recurrent, rate)
        made.append(Layer(weights * scale, recurrent))
    return made


def calibrated(
    currents: np.ndarray, recurrent: np.ndarray | None, rate: float
) -> tuple[np.float32, np.ndarray]:
    """The scale of the currents at which neurons fire at `rate`, by bisection, and their spikes."""
    low, high = MIN_SCALE, MAX_SCALE
    for _ in range(CALIBRATION_ROUNDS):
        middle = (low * high) ** 0.5
        if np.mean(fire(np.float32(middle) * currents, recurrent)) < rate:
            low = middle
        else:
            high = middle
    return np.float32(high), fire(np.float32(high) * currents, recurrent)


def fire(currents: np.ndarray, recurrent: np.ndarray | None) -> np.ndarray:
    """The spikes of LIF neurons, [time, batch, neurons]."""
    v = np.zeros_like(currents[0])
    spikes = np.zeros_like(currents)
    for step, current in enumerate(currents):
        before = spikes[step - 1] if step else v
        feedback = 0 if recurrent is None else before @ recurrent
        v = np.float32(DECAY) * (v - before) + current + feedback
        spikes[step] = v > THRESHOLD
    return spikes
