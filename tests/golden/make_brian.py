"""Make `brian.npz`: the spikes of small networks in Brian2, and the arrays that define them.

    python make_brian.py          # where Brian2 is installed

Made with brian2 2.9.0 and numpy 1.26.4 in Python 3.11, in its runtime mode of NumPy, with steps of 0.1 ms. The
networks are those of the CUBA and COBA benchmarks with 200 neurons, of which 160 excite, and ten times their
probability; in the first, each synapse has a delay. `<name>_ids` and `<name>_steps` are the spikes. Brian2 applies a
spike of step t to what step t + 1 reads, so that its delays are one step shorter, and so is its refractory period.
"""

from pathlib import Path
from typing import Any

import numpy as np
from brian2 import (
    Network,
    NeuronGroup,
    SpikeMonitor,
    Synapses,
    defaultclock,
    ms,
    mV,
    prefs,
)

NEURONS, EXCITATORY, PROBABILITY = 200, 160, 0.2
STEPS, MOST_DELAY = 1000, 20

CUBA = """
dv/dt = (ge + gi - (v + 49*mV)) / (20*ms) : volt (unless refractory)
dge/dt = -ge / (5*ms) : volt
dgi/dt = -gi / (10*ms) : volt
"""
COBA = """
dv/dt = (ge*(0*mV - v) + gi*(-80*mV - v) - (v + 60*mV)) / (20*ms) : volt (unless refractory)
dge/dt = -ge / (5*ms) : 1
dgi/dt = -gi / (10*ms) : 1
"""


def connected(rng: np.random.Generator) -> dict[str, np.ndarray]:
    """The pairs that are connected, by the neuron that sends, and initial membranes between 0 and 1."""
    sources, targets = np.nonzero(rng.random((NEURONS, NEURONS)) < PROBABILITY)
    return {"sources": sources, "targets": targets, "v": rng.random(NEURONS)}


def run(group, own: dict[str, np.ndarray], kinds: list[tuple[str, np.ndarray, Any]], delays):
    """The spikes of a group whose synapses do `kinds`: (what on a spike, which synapses, their weight)."""
    network, monitor = Network(group), SpikeMonitor(group)
    network.add(monitor)
    for effect, chosen, weight in kinds:
        unit = "1" if isinstance(weight, float) else "volt"
        synapses = Synapses(group, group, f"w : {unit}", on_pre=effect)
        synapses.connect(i=own["sources"][chosen], j=own["targets"][chosen])
        synapses.w = weight
        if delays is not None:
            synapses.delay = (delays[chosen] - 1) * 0.1 * ms
        network.add(synapses)
    network.run(STEPS * 0.1 * ms)
    return np.array(monitor.i, np.uint8), np.rint(np.array(monitor.t / ms) * 10).astype(np.uint16)


def main() -> None:
    prefs.codegen.target = "numpy"
    defaultclock.dt = 0.1 * ms
    rng, saved = np.random.default_rng(2026), {}
    for name, equations, weights, method in (
        ("cuba", CUBA, (3.24 * mV, -18.0 * mV), "exact"),
        ("coba", COBA, (1.2, 13.4), "exponential_euler"),
    ):
        own = connected(rng)
        excites = own["sources"] < EXCITATORY
        delays = rng.integers(1, MOST_DELAY + 1, len(excites)) if name == "cuba" else None
        options = {"threshold": "v > -50*mV", "reset": "v = -60*mV", "refractory": 5 * ms, "method": method}
        group = NeuronGroup(NEURONS, equations, **options)
        group.v = (-60 + own["v"] * 10) * mV
        if name == "coba":
            group.ge = 2.4
        kinds = [("ge += w", excites, weights[0]), ("gi += w", ~excites, weights[1])]
        ids, steps = run(group, own, kinds, delays)
        print(name, len(ids), "spikes")
        saved |= {f"{name}_ids": ids, f"{name}_steps": steps, f"{name}_v": own["v"].astype(np.float32)}
        saved |= {
            f"{name}_ends": np.cumsum(np.bincount(own["sources"], minlength=NEURONS)).astype(np.int32),
            f"{name}_targets": own["targets"].astype(np.uint8),
        }
        if delays is not None:
            saved[f"{name}_delays"] = delays.astype(np.uint8)
    np.savez_compressed(Path(__file__).with_name("brian.npz"), **saved)


if __name__ == "__main__":
    main()
