"""A recurrent network of current-based LIF neurons in continuous time, from event to event: the truth for spike times.

``tau v' = -v + i`` and ``tau / 2 i' = -i``: with ``x = exp(-t / tau)``, ``v(t) = (v + i) x - i x^2``, so crossings
of the threshold are the roots of a quadratic equation. A spike resets v from the threshold, 1, to 0.
"""

import heapq
from typing import NamedTuple

import numpy as np

MEMBRANE_TIME, SYNAPSE_TIME, DURATION = 20.0, 10.0, 100.0  # ms


class Circuit(NamedTuple):
    """The parameters, whose derivatives are taken."""

    w_in: np.ndarray  # [inputs, neurons]
    w_rec: np.ndarray  # [neurons, neurons]
    delay_in: np.ndarray  # [inputs], ms
    delay: np.ndarray  # [neurons], ms, of recurrent spikes


def worth(time):
    """The mean over the duration of the membrane of a readout that receives a spike with weight 1 at `time`."""
    x = np.exp(-(DURATION - time) / MEMBRANE_TIME)
    return (MEMBRANE_TIME * (1 - x) - SYNAPSE_TIME * (1 - x * x)) / DURATION


def crossings(v: np.ndarray, i: np.ndarray) -> np.ndarray:
    """The time after which each membrane crosses the threshold from below, infinite if it does not."""
    with np.errstate(all="ignore"):
        root = np.sqrt((v + i) ** 2 - 4 * i)
        x = (v + i + root) / (2 * i)  # the larger root is the earlier time
        rises = (i > 0) & (x > 0) & (x < 1) & (i * x * x > 1)
        return np.where(rises, -MEMBRANE_TIME * np.log(x), np.inf)


def spikes_of(circuit: Circuit, inputs: list[tuple[float, int]]) -> list[tuple[float, int]]:
    """The spikes of the neurons, as (time, neuron), of inputs (time, input)."""
    arrivals = [(time + circuit.delay_in[j], n, circuit.w_in[j]) for n, (time, j) in enumerate(inputs)]
    heapq.heapify(arrivals)
    neurons = len(circuit.delay)
    v, i, now, spikes = np.zeros(neurons), np.zeros(neurons), 0.0, []
    while now < DURATION:
        after = crossings(v, i)
        neuron = int(np.argmin(after))
        arrives = arrivals[0][0] if arrivals else np.inf
        until = min(now + after[neuron], arrives, DURATION)
        x = np.exp(-(until - now) / MEMBRANE_TIME)
        v, i = (v + i) * x - i * x * x, i * x * x
        is_spike = now + after[neuron] <= min(arrives, DURATION)
        now = until
        if is_spike:
            v[neuron] = 0.0
            spikes.append((now, neuron))
            number = len(inputs) + len(spikes)
            heapq.heappush(arrivals, (now + circuit.delay[neuron], number, circuit.w_rec[neuron]))
        elif arrives <= now:
            i = i + heapq.heappop(arrivals)[2]
    return spikes


def loss_of(spikes: list[tuple[float, int]], w_out: np.ndarray) -> float:
    """The cross-entropy of the first class, of four times the readouts' mean membranes."""
    logits = 4 * sum(worth(time) * w_out[neuron] for time, neuron in spikes)
    return float(np.log(np.sum(np.exp(logits))) - logits[0])


def gradient(
    circuit: Circuit, inputs: list[tuple[float, int]], w_out: np.ndarray, by: float = 1e-6
) -> Circuit:
    """Central differences of the loss; no spike may appear or vanish."""
    order = [neuron for _, neuron in spikes_of(circuit, inputs)]
    found = Circuit(*(np.zeros_like(value) for value in circuit))
    for field, value in circuit._asdict().items():
        for index in np.ndindex(value.shape):
            ends = []
            for sign in (1, -1):
                moved = value.copy()
                moved[index] += sign * by
                spikes = spikes_of(circuit._replace(**{field: moved}), inputs)
                assert [neuron for _, neuron in spikes] == order
                ends.append(loss_of(spikes, w_out))
            getattr(found, field)[index] = (ends[0] - ends[1]) / (2 * by)
    return found


def example(seed: int) -> tuple[Circuit, list[tuple[float, int]], np.ndarray]:
    """A circuit of 4 inputs and 3 neurons with about 25 spikes, its inputs, and the weights of a readout of 3."""
    rng = np.random.default_rng(seed)
    w_in, w_rec, w_out = (
        rng.normal(1.125, 1.125, (4, 3)),
        rng.normal(0, 0.5, (3, 3)),
        rng.normal(0, 0.4, (3, 3)),
    )
    delay, delay_in = rng.uniform(2, 8, 3), rng.uniform(2, 8, 4)
    inputs = [(time, j) for j in range(4) for time in np.sort(rng.uniform(0, 0.85 * DURATION, 6))]
    return Circuit(w_in, w_rec, delay_in, delay), inputs, w_out
