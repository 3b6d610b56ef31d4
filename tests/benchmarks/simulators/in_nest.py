"""Circuits in NEST: the leaky neurons `iaf_psc_exp`, `iaf_cond_exp` and `iaf_psc_delta`.

The capacitance in pF is the time constant in ms, so that the leak is 1 nS: currents in pA are then mV times the
resistance, and conductances in nS are in units of the leak.
"""

import resource
import time

import numpy as np

from tests.benchmarks.simulators.circuits import DT, Circuit, Measured, Projection, Run

_MODELS = {"currents": "iaf_psc_exp", "conductances": "iaf_cond_exp", "pulses": "iaf_psc_delta"}


def measure(run: Run) -> Measured:
    """Build and simulate a circuit in this process."""
    import nest

    nest.ResetKernel()
    nest.verbosity = nest.VerbosityLevel.ERROR
    nest.local_num_threads, nest.resolution, nest.rng_seed = run.threads, DT, run.seed
    circuit = run.circuit(run.argument)
    start = _clock()
    groups = _populations(nest, circuit)
    for each in circuit.projections:
        _connect(nest, circuit, groups, each)
    recorder = nest.Create("spike_recorder")
    for name, group in groups.items():
        nest.Connect(group, recorder)
        if circuit.input_rates is not None:
            noise = nest.Create("poisson_generator", params={"rate": circuit.input_rates[name]})
            options = {"weight": circuit.input_weight, "delay": 1.5}
            nest.Connect(noise, group, "all_to_all", options)
    nest.Prepare()
    nest.Cleanup()
    built = _clock()
    nest.Simulate(1000.0 * run.warm_up)
    begun = _clock()
    nest.Simulate(1000.0 * run.seconds)
    took = (_clock() - begun) / run.seconds
    found = recorder.events
    late = found["times"] > 1000.0 * run.warm_up
    times, ids = found["times"][late] - 1000.0 * run.warm_up, found["senders"][late] - 1
    edges = np.cumsum([0, *circuit.sizes.values()])
    counts = np.histogram(ids, edges)[0] / np.diff(edges) / run.seconds
    rates = dict(zip(circuit.sizes, counts.tolist(), strict=True))
    spikes = (times, ids) if run.spikes else None
    return Measured(*(built - start), *took, rates, spikes)


def _clock() -> np.ndarray:
    """CPU time of all threads, and wall time, in seconds."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return np.array([used.ru_utime + used.ru_stime, time.perf_counter()])


def _populations(nest, circuit: Circuit) -> dict:
    """The neurons of each population, numbered in this order from 1."""
    given = {"V_th": circuit.threshold, "V_reset": circuit.reset, "t_ref": circuit.refractory}
    if circuit.kind == "conductances":
        given |= {"C_m": circuit.tau, "g_L": 1.0, "E_ex": circuit.reversals[0], "E_in": circuit.reversals[1]}
    else:
        given |= {"C_m": circuit.tau, "tau_m": circuit.tau}
    if circuit.synaptic_taus:
        given |= {"tau_syn_ex": circuit.synaptic_taus[0], "tau_syn_in": circuit.synaptic_taus[-1]}
    groups = {}
    for name, size in circuit.sizes.items():
        groups[name] = nest.Create(_MODELS[circuit.kind], size, {**given, "E_L": circuit.rest[name]})
        groups[name].V_m = nest.random.normal(*circuit.start[name])
    return groups


def _connect(nest, circuit: Circuit, groups: dict, own: Projection) -> None:
    weight, delay = own.weight[0], own.delay[0]
    if circuit.kind == "conductances" and own.receptor == 1:
        weight = -weight  # by its sign NEST tells receptors
    if own.weight[1] > 0:
        ends = (0.0, np.inf) if weight > 0 else (-np.inf, 0.0)
        weight = nest.math.redraw(nest.random.normal(weight, own.weight[1]), *ends)
    if own.delay[1] > 0:
        delay = nest.math.redraw(nest.random.normal(*own.delay), DT / 2, np.inf)
    rule = {"rule": "pairwise_bernoulli", "p": own.probability}
    if own.number is not None:
        rule = {"rule": "fixed_total_number", "N": own.number}
    nest.Connect(groups[own.source], groups[own.target], rule, {"weight": weight, "delay": delay})
