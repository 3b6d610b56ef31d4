"""What `simulate` refuses, and what it makes of traced arguments that are out of range."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from snnjax import DelayedSynapses, PoissonInput, Synapses, neurons, simulate, simulation_state
from snnjax.circuits import Record, SpikeTrains
from snnjax.plasticity import STDP
from snnjax.quantisation import Quantised
from tests.errors.refusals import refusals
from tests.ops.simulation.test_simulate import KEY, each_implementation

CELLS = neurons.cuba_lif(
    tau=20.0, synaptic_taus=(5.0,), rest=0.0, threshold=1.0, reset=0.0, refractory=1.0, dt=0.1
)
DRAWN, WEIGHTS = Synapses.from_mask(np.ones((3, 3), bool)), jnp.zeros(9)
SYNAPSES = DelayedSynapses.of(DRAWN, WEIGHTS)
STATE = simulation_state(CELLS, SYNAPSES)
POISSON = PoissonInput.of(rate=10.0, weight=1.0, dt=0.1)
OPEN = dataclasses.replace(CELLS, has_conductances=True)
HINT = "Call simulation_state with these neurons and synapses."


def call(**changed):
    given: dict[str, Any] = {
        "neurons": CELLS,
        "synapses": SYNAPSES,
        "state": STATE,
        "steps": 2,
    }
    return simulate(**(given | changed))


def sort(**changed):
    return DelayedSynapses.of(**({"synapses": DRAWN, "weights": WEIGHTS} | changed))


REFUSED = {
    "simulate: `neurons` must be a SynapticLIF or Cells, got a Neuron. "
    "Make them with neurons.cuba_lif, neurons.coba_lif or circuits.Populations.cells.": lambda: call(
        neurons=neurons.lif()
    ),
    "simulate: `synapses` must be DelayedSynapses, got None. Make them with DelayedSynapses.of.": lambda: (
        call(synapses=None)
    ),
    "DelayedSynapses.of: `synapses` must be Synapses, got None. "
    "Make them with Synapses.with_probability, for instance.": lambda: sort(synapses=None),
    "DelayedSynapses.of: `weights` must have shape [synapses] = [9], got [8]. "
    "Pass one for each synapse.": lambda: sort(weights=WEIGHTS[1:]),
    "DelayedSynapses.with_weights: `weights` must have shape [synapses] = [9], got [8]. "
    "Pass one for each synapse.": lambda: SYNAPSES.with_weights(WEIGHTS[1:]),
    "simulate: `synapses` must lead to 1 receptor of 3 neurons, 3 targets, got 6. "
    "Synapses.from_blocks joins those of each receptor.": lambda: call(
        synapses=DelayedSynapses.of(Synapses.from_mask(np.ones((3, 6), bool)), jnp.zeros(18))
    ),
    "simulate: `state` must be a SimulationState, got None. Call simulation_state.": lambda: call(state=None),
    f"simulate: `state.v` must have shape [neurons] = [3], got [4]. {HINT}": lambda: call(
        state=STATE._replace(v=jnp.zeros(4))
    ),
    f"simulate: `state.sent` must have shape [max_delay, bytes] = [1, 1], got [2, 1]. {HINT}": lambda: call(
        state=STATE._replace(sent=jnp.zeros((2, 1), jnp.uint8))
    ),
    f"simulate: `state.sent` must hold bits, uint8, got float32[1, 1]. {HINT}": lambda: call(
        state=STATE._replace(sent=jnp.zeros((1, 1)))
    ),
    "simulate: `state.v` must have a floating-point dtype, got int32. Cast "
    "it with state.v.astype(jnp.float32).": lambda: call(state=STATE._replace(v=jnp.zeros(3, jnp.int32))),
    "simulate: `state.remaining` must hold integers, got float32. Cast "
    "it with state.remaining.astype(int).": lambda: call(state=STATE._replace(remaining=jnp.full(3, 1.5))),
    f"simulate: `state.step` must have shape [] = [], got [3]. {HINT}": lambda: call(
        state=STATE._replace(step=jnp.zeros(3, jnp.int32))
    ),
    "DelayedSynapses.of: `delays` must be an integer of at least 1, got 0. Pass 1 or more.": lambda: sort(
        delays=0
    ),
    "DelayedSynapses.of: `delays` must be between 1 and 65535, got 0. Delays are in steps.": lambda: sort(
        delays=jnp.zeros(9, jnp.uint16)
    ),
    "DelayedSynapses.of: `delays` must hold integers, got float32. Cast it with delays.astype(int).": lambda: (
        sort(delays=jnp.ones(9))
    ),
    "DelayedSynapses.of: `delays` must have shape [synapses] = [9], got [8]. "
    "Pass one for each synapse.": lambda: sort(delays=jnp.ones(8, jnp.int32)),
    "DelayedSynapses.of: `delays` must be of known values, got a tracer. Sort them outside of jit.": lambda: (
        jax.jit(lambda late: sort(delays=late))(jnp.ones(9, jnp.int32))
    ),
    "DelayedSynapses.of: `synapses` must be of known values, got a tracer. "
    "Sort them outside of jit.": lambda: jax.jit(lambda drawn: sort(synapses=drawn))(DRAWN),
    "DelayedSynapses.of: `max_delay` must be an integer of at least 2, got 1. Pass 2 or more.": lambda: sort(
        delays=2, max_delay=1
    ),
    "DelayedSynapses.of: `blocks` must be an integer of at least 1, got 0. Pass 1 or more.": lambda: sort(
        blocks=0
    ),
    "DelayedSynapses.of: `blocks` must make at most 65536 targets each, got 70000. Pass more.": lambda: (
        DelayedSynapses.of(
            Synapses(jnp.zeros(70_000, jnp.int32), jnp.zeros(0, jnp.int32), 70_000), WEIGHTS[:0], blocks=1
        )
    ),
    "simulate: `currents` must have shape [steps, neurons] = [2, 3], got [3, 3]. "
    "Pass a row for each step.": lambda: call(currents=jnp.zeros((3, 3))),
    "simulate: `poisson` must be a PoissonInput, got 1.0. Call PoissonInput.of.": lambda: call(poisson=1.0),
    "simulate: `poisson.receptor` must be below 1, the number of receptors, got 1. "
    "Choose one of them.": lambda: call(poisson=dataclasses.replace(POISSON, receptor=1), key=KEY),
    "simulate: `key` must be a PRNG key, got None. Make one with jax.random.key(0).": lambda: call(
        poisson=POISSON
    ),
    **{
        f"simulate: `{argument}` must have one number, or one for each of 3 neurons, got 2. Make them for as many "
        "neurons.": call_
        for call_, argument in (
            (
                lambda: call(poisson=PoissonInput.of(rate=np.ones(2), weight=1.0, dt=0.1), key=KEY),
                "poisson.rate",
            ),
            (
                lambda: call(poisson=PoissonInput.of(rate=1.0, weight=np.ones(2), dt=0.1), key=KEY),
                "poisson.weight",
            ),
            (lambda: call(neurons=dataclasses.replace(CELLS, leak=jnp.ones(2))), "neurons.tau"),
            (lambda: call(neurons=dataclasses.replace(CELLS, effect=jnp.ones((1, 2)))), "neurons.reversals"),
        )
    },
    "simulate: `neurons.rest` must have one number, or one for each of 3 neurons, got 2. "
    "Make them for as many neurons.": lambda: call(neurons=dataclasses.replace(CELLS, rest=jnp.zeros(2))),
    "simulate: `implementation` must be None, 'reference' or 'cpu', got 'composed'. "
    "Choose one of these.": lambda: call(implementation="composed"),
    "Record.of: `neurons` must be ids, got bool[3]. Pass those of a mask with jnp.flatnonzero.": lambda: (
        Record.of(jnp.ones(3, bool))
    ),
    "Record.of: `neurons` must have shape [ids], got [1, 1]. Pass a list of them.": lambda: Record.of(
        jnp.zeros((1, 1), int)
    ),
    "Record.of: `means[0]` must be known neurons, got slice(3, 3, None). "
    "Pass a slice or a list of ids.": lambda: Record.of(means=[slice(3, 3)]),
    "simulate: `record` must be a Record, got int32[1]. Call circuits.Record.of.": lambda: call(
        record=jnp.zeros(1, jnp.int32)
    ),
    "simulate: `record.neurons` must be between 0 and 2, got 3. Pass ids of neurons.": lambda: call(
        record=Record.of([0, 3])
    ),
    "simulate: `record.synapses` must be None without `stdp`, got some. Others do not change.": lambda: call(
        record=Record.of(synapses=[0])
    ),
    "simulate: `currents` must be an array or a pair, got 1 array. "
    "Pass time courses and their shares.": lambda: call(currents=(jnp.zeros((2, 1)),)),
    "simulate: `currents[1]` must have shape [courses, neurons] = [1, 3], got [2, 3]. "
    "Pass what each neuron receives of each course.": lambda: call(
        currents=(jnp.zeros((2, 1)), jnp.zeros((2, 3)))
    ),
    "simulate: `poisson[1]` must be a PoissonInput, got None. Call PoissonInput.of.": lambda: call(
        poisson=[POISSON, None], key=KEY
    ),
    "simulate: `poisson.rate` must be of one step or all 2, got 3. "
    "Pass a rate for each step of the call.": lambda: call(
        poisson=PoissonInput.of(rate=np.ones((3, 1)), weight=1.0, dt=0.1), key=KEY
    ),
    "simulate: `spikes` must be SpikeTrains, got 1.0. Call circuits.SpikeTrains.of.": lambda: call(
        spikes=1.0
    ),
    "simulate: `spikes.dt` must be that of the neurons, 0.1, got 1. Make both with one dt.": lambda: call(
        spikes=SpikeTrains.of([1.0], [0], dt=1.0)
    ),
    "simulate: `spikes.ids` must be between 0 and 2, got 3. Pass ids of neurons.": lambda: call(
        spikes=SpikeTrains.of([1.0], [3], dt=0.1)
    ),
    "SpikeTrains.of: `times` must be at least 0.1 ms, and less than 2^31 steps, got 0. "
    "The first spikes are at the end of the first step.": lambda: SpikeTrains.of([0.0], [0], dt=0.1),
    "SpikeTrains.of: `ids` must be as many as the times, 1, got int64[2]. "
    "Pass the neuron of each time.": lambda: SpikeTrains.of([1.0], np.array([0, 1]), dt=0.1),
    "SpikeTrains.listed: `spikes` must be complete, got 3 spikes less. Raise `capacity`.": lambda: (
        SpikeTrains.listed(call(state=STATE._replace(v=jnp.full(3, 9.0)))[0].spikes, dt=0.1)
    ),
    "SpikeTrains.listed: `spikes` must be known lists of steps, got uint16[0]. "
    "Pass SimulationOutput.spikes outside of jit.": lambda: SpikeTrains.listed(call()[0].spikes[0], dt=0.1),
    "PoissonInput.of: `peak` must be given with a traced rate, got None. "
    "Pass the highest rate in Hz.": lambda: jax.jit(
        lambda rate: PoissonInput.of(rate=rate, weight=1.0, dt=0.1).limits
    )(1.0),
    "simulate: `steps` must be an integer of at least 0, got -1. Pass 0 or more.": lambda: call(steps=-1),
    "simulate: `weights` must not be differentiated, nor the other arguments, got a tangent. Train with "
    "snnjax.network, or pass jax.lax.stop_gradient "
    "of them.": lambda: jax.grad(lambda weights: call(synapses=SYNAPSES.with_weights(weights))[1].v.sum())(
        WEIGHTS
    ),
    "simulation_state: `v` must have shape [neurons] = [3], got [2]. Pass one for each neuron.": lambda: (
        simulation_state(CELLS, SYNAPSES, v=jnp.zeros(2))
    ),
    "PoissonInput.of: `rate` must be between 0 and 500 events a step, got -0.0001. "
    "For inhibition, pass a negative weight.": lambda: PoissonInput.of(rate=-1.0, weight=1.0, dt=0.1),
    "PoissonInput.of: `rate` must be 0 or at least 1.2e-10 events a step, got 1e-10. "
    "Use a larger dt, or 0 for no events.": lambda: PoissonInput.of(rate=[1.0, 1e-6], weight=1.0, dt=0.1),
    "PoissonInput.of: `dt` must be one number, got float64[3]. "
    "All neurons have steps of one length.": lambda: PoissonInput.of(rate=1.0, weight=1.0, dt=np.ones(3)),
    "simulate: `poisson.dt` must be that of the neurons, 0.1, got 1. Make both with one dt.": lambda: call(
        poisson=PoissonInput.of(rate=10.0, weight=1.0, dt=1.0), key=KEY
    ),
    "simulate: `synapses.weights` must be at least 0 with conductances, got -1. "
    "The reversal potential makes a synapse inhibitory.": lambda: call(
        neurons=OPEN, synapses=SYNAPSES.with_weights(-jnp.ones(9))
    ),
    "simulate: `poisson.weights` must be at least 0 with conductances, got -2. "
    "The reversal potential makes a synapse inhibitory.": lambda: call(
        neurons=OPEN, poisson=PoissonInput.of(rate=1.0, weight=-2.0, dt=0.1), key=KEY
    ),
    "simulate: `stdp.bounds` must be at least 0 with conductances, got -1. "
    "The reversal potential makes a synapse inhibitory.": lambda: call(
        neurons=OPEN, state=simulation_state(OPEN, SYNAPSES, stdp=True), stdp=STDP(bounds=(-1.0, 1.0))
    ),
    "PoissonInput.of: `weight` must be a finite number, or one for each neuron, that is known, got inf. "
    "Pass a float outside of jit.": lambda: PoissonInput.of(rate=1.0, weight=np.inf, dt=0.1),
    "PoissonInput.of: `dt` must be above 0, got 0. Pass a length in ms.": lambda: PoissonInput.of(
        rate=1.0, weight=1.0, dt=0.0
    ),
}
test_wrong_argument_says_so = refusals(REFUSED)


# Each with what makes one conductance negative.
NEGATIVE: dict[str, dict[str, Any]] = {
    "synapses.weights": {"synapses": SYNAPSES.with_weights(jnp.array([0.0] * 8 + [-1.0]))},
    "synapses.weights.values": {
        "synapses": SYNAPSES.with_weights(Quantised(-jnp.ones(9, jnp.int8), jnp.ones(3)))
    },
    "synapses.weights.scale": {
        "synapses": SYNAPSES.with_weights(Quantised(jnp.ones(9, jnp.int8), -jnp.ones(3)))
    },
    "poisson.weights": {"poisson": PoissonInput.of(rate=1.0, weight=-2.0, dt=0.1), "key": KEY},
    "stdp.bounds": {"state": simulation_state(OPEN, SYNAPSES, stdp=True), "stdp": STDP(bounds=(-1.0, 1.0))},
}


@each_implementation
@pytest.mark.parametrize("argument", NEGATIVE)
def test_negative_conductance_is_refused_or_makes_potentials_that_are_no_number(
    implementation: str, argument: str
) -> None:
    given = NEGATIVE[argument]
    with pytest.raises(
        ValueError, match=f"^simulate: `{argument}` must be at least 0 with conductances, got -"
    ):
        call(neurons=OPEN, **given)

    def traced(given, neurons):
        return call(neurons=neurons, implementation=implementation, **given)[1].v

    assert jnp.all(jnp.isnan(jax.jit(traced)(given, OPEN)))
    assert jnp.all(jnp.isfinite(jax.jit(traced)(given, CELLS)))  # negative currents inhibit
