"""Circuits in snnjax, as its users build them."""

import time
from typing import Any

import numpy as np

from tests.benchmarks.simulators.circuits import DT, Circuit, Measured, Run

_PIECE = 1000  # steps of a call, of which all times are multiples


def measure(run: Run) -> Measured:
    """Build and simulate a circuit in this process, with as many threads as it may use.

    Compiling is not counted, as it is not of Brian2's programs.
    """
    import jax

    from snnjax import simulate

    circuit = run.circuit(run.argument)
    parts(circuit, run.seed)  # compiles
    start = _clock()
    cells, synapses, state, poisson = jax.block_until_ready(parts(circuit, run.seed))
    built = _clock() - start
    capacity = max(64, circuit.num_neurons // 20) if run.spikes else 0

    @jax.jit
    def piece(synapses, state):
        key = jax.random.key(run.seed)
        return simulate(cells, synapses, state, key, steps=_PIECE, poisson=poisson, capacity=capacity)

    for _ in range(_calls(run.warm_up)):
        _, state = piece(synapses, state)
    jax.block_until_ready(state)
    calls, found = _calls(run.seconds), []
    start = _clock()
    for _ in range(calls):
        out, state = piece(synapses, state)
        found.append(out)
    jax.block_until_ready(state)
    took = (_clock() - start) / run.seconds
    counts = np.sum([np.asarray(out.counts) for out in found], axis=0)
    ends = np.cumsum(list(circuit.sizes.values()))[:-1]
    rates = [float(part.mean() / run.seconds) for part in np.split(counts, ends)]
    spikes = _spikes(found) if run.spikes else None
    return Measured(*built, *took, dict(zip(circuit.sizes, rates, strict=True)), spikes)


def _calls(seconds: float) -> int:
    """Of so many seconds; at least one, which compiles."""
    calls = round(1000 * seconds / DT / _PIECE)
    assert calls >= 1 and abs(calls * _PIECE * DT - 1000 * seconds) < DT / 2
    return calls


def parts(circuit: Circuit, seed: int) -> tuple[Any, Any, Any, Any]:
    """Neurons, synapses, the first state and the random input of a circuit."""
    import jax
    import jax.numpy as jnp

    from snnjax import PoissonInput, circuits, neurons, simulation_state

    key, start_key = jax.random.split(jax.random.key(seed))
    receptors = max(len(circuit.synaptic_taus), 1)
    populations = circuits.Populations(circuit.sizes, dt=DT, receptors=receptors)
    constants: dict[str, Any] = {
        "tau": circuit.tau,
        "synaptic_taus": circuit.synaptic_taus or (0.0,),
        "rest": populations.each(circuit.rest),
        "threshold": circuit.threshold,
        "reset": circuit.reset,
        "refractory": circuit.refractory,
        "dt": DT,
    }
    if circuit.kind == "conductances":
        cells = neurons.coba_lif(**constants, reversals=circuit.reversals)
    else:
        cells = neurons.cuba_lif(**constants)
    synapses = populations.connect(key, _wiring(circuit))
    mean = populations.each({name: mean for name, (mean, _) in circuit.start.items()})
    spread = populations.each({name: spread for name, (_, spread) in circuit.start.items()})
    v = jnp.asarray(mean, jnp.float32)
    v = v + jnp.asarray(spread, jnp.float32) * jax.random.normal(start_key, v.shape)
    poisson = ()
    if circuit.input_rates is not None:
        rate = populations.each(circuit.input_rates)
        poisson = PoissonInput.of(rate=rate, weight=circuit.input_weight, dt=DT)
    return cells, synapses, simulation_state(cells, synapses, v=v), poisson


def _wiring(circuit: Circuit) -> list[Any]:
    from snnjax import circuits

    return [
        circuits.Projection(
            own.source,
            own.target,
            weight=_values(own.weight, 0.0),
            delay=_values(own.delay, DT / 2),
            receptor=own.receptor,
            probability=own.probability,
            number=own.number,
        )
        for own in circuit.projections
    ]


def _values(given: tuple[float, float], least: float):
    """A number, or a normal distribution of one sign."""
    from snnjax import circuits

    mean, spread = given
    if spread == 0:
        return mean
    ends = {"least": least} if mean > 0 else {"most": -least}
    return circuits.Normal(mean, spread, **ends)


def _spikes(found) -> tuple[np.ndarray, np.ndarray]:
    """Times in ms, at the ends of steps, and numbers of neurons."""
    assert not any(out.spikes.num_dropped.any() for out in found)
    ids = np.concatenate([np.asarray(out.spikes.ids) for out in found])
    step, slot = np.nonzero(ids < found[0].spikes.num_neurons)
    return (step + 1) * DT, ids[step, slot]


def _clock() -> np.ndarray:
    """CPU time of all threads, and wall time, in seconds."""
    return np.array([time.process_time(), time.perf_counter()])
