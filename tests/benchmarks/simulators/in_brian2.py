"""Circuits in Brian2, as C++ programs of their own (standalone mode, one thread)."""

import tempfile
import time
from pathlib import Path

import numpy as np

from tests.benchmarks.simulators.circuits import DT, Circuit, Measured, Run

_MEMBRANES = {
    "currents": ("(rest - v + g0 + g1)", "volt", "exact"),
    "conductances": ("(rest - v + g0 * (reversal0 - v) + g1 * (reversal1 - v))", "1", "exponential_euler"),
    "pulses": ("(rest - v)", None, "exact"),
}
# Before and after each run the program adds a line of its CPU time and the clock of the machine, in seconds.
_CLOCKS = """{
  timespec cpu, wall;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu);
  clock_gettime(CLOCK_MONOTONIC, &wall);
  std::ofstream clocks("clocks.txt", std::ios::app);
  clocks.precision(15);
  clocks << cpu.tv_sec + 1e-9 * cpu.tv_nsec << " " << wall.tv_sec + 1e-9 * wall.tv_nsec << "\\n";
}
"""


def measure(run: Run) -> Measured:
    """Write, compile and run a program; its building is what it does before the first step.

    Writing and compiling are not counted. Rates are those of all steps, with the warm-up.
    """
    import brian2

    circuit = run.circuit(run.argument)
    with tempfile.TemporaryDirectory() as folder:
        brian2.set_device("cpp_standalone", build_on_run=False)
        brian2.defaultclock.dt = DT * brian2.ms
        brian2.seed(run.seed)
        network, monitor = _network(brian2, circuit)
        for place in ("before_network_run", "after_network_run"):
            brian2.device.insert_code(place, _CLOCKS)
        network.run(run.warm_up * brian2.second)
        network.run(run.seconds * brian2.second)
        brian2.device.build(directory=folder, run=False, compile=True)
        start = np.array([0.0, time.monotonic()])
        brian2.device.run(with_output=False)
        built, _, begun, ended = np.loadtxt(Path(folder) / "clocks.txt")
        ends = np.cumsum(list(circuit.sizes.values()))[:-1]
        counts = [part.mean() for part in np.split(np.asarray(monitor.count), ends)]
    rates = [float(count / (run.warm_up + run.seconds)) for count in counts]
    took = (ended - begun) / run.seconds
    return Measured(*(built - start), *took, dict(zip(circuit.sizes, rates, strict=True)))


def _network(brian2, circuit: Circuit):
    """The network of a circuit, and a monitor that counts its spikes."""
    group, parts = _populations(brian2, circuit)
    network, (_, unit, _) = brian2.Network(group), _MEMBRANES[circuit.kind]
    for own in circuit.projections:
        reached, scale = "v" if unit is None else f"g{own.receptor}", "" if unit == "1" else " * mV"
        synapses = brian2.Synapses(
            parts[own.source], parts[own.target], on_pre=f"{reached} += {own.weight[0]}{scale}"
        )
        synapses.connect(p=own.probability)
        synapses.delay = own.delay[0] * brian2.ms
        network.add(synapses)
    jump = circuit.input_weight * brian2.mV
    for name, rate in (circuit.input_rates or {}).items():
        # Of 1,000 processes for each neuron, whose sum is drawn from a binomial distribution.
        network.add(brian2.PoissonInput(parts[name], "v", 1000, rate / 1000 * brian2.Hz, jump))
    monitor = brian2.SpikeMonitor(group, record=False)
    network.add(monitor)
    return network, monitor


def _populations(brian2, circuit: Circuit):
    """One group for all populations, so that a step is one loop over neurons, and its parts by name."""
    mv, ms = brian2.mV, brian2.ms
    pull, unit, method = _MEMBRANES[circuit.kind]
    equations = f"dv/dt = {pull} / tau : volt (unless refractory)\nrest : volt (constant)"
    given = {"tau": circuit.tau * ms}
    for k, tau in enumerate(circuit.synaptic_taus):
        equations += f"\ndg{k}/dt = -g{k} / tau{k} : {unit}"
        given[f"tau{k}"] = tau * ms
    given |= {f"reversal{k}": reversal * mv for k, reversal in enumerate(circuit.reversals)}
    group = brian2.NeuronGroup(
        circuit.num_neurons,
        equations,
        threshold=f"v > {circuit.threshold} * mV",
        reset=f"v = {circuit.reset} * mV",
        refractory=circuit.refractory * ms,
        method=method,
        namespace=given,
    )
    parts, first = {}, 0
    for name, size in circuit.sizes.items():
        parts[name], first = group[first : first + size], first + size
        parts[name].rest = circuit.rest[name] * mv
        mean, spread = circuit.start[name]
        parts[name].v = f"({mean} + {spread} * randn()) * mV"
    return group, parts
