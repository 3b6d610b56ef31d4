"""`simulate` with neurons of several models: beside the kernel, and beside a program in NumPy."""

import dataclasses
from typing import Any

import chex
import jax
import jax.numpy as jnp
import numpy as np

from snnjax import DelayedSynapses, PoissonInput, Synapses, circuits, neurons, simulate, simulation_state
from snnjax.circuits import Record, SpikeTrains
from snnjax.ops._simulation.reference import LIFState
from tests.errors.refusals import refusals
from tests.numbers import dyadic
from tests.ops.common import jit
from tests.ops.simulation.test_simulate import (
    IMPLEMENTATIONS,
    KEY,
    STEPS,
    plastic_network,
    random_network,
    run,
)

PEOPLE = circuits.Populations({"E": 60, "I": 20}, dt=1.0)


def test_leaky_neurons_in_numpy_are_those_of_the_kernel() -> None:
    """With all kinds of input, and with plasticity: the same spikes; numbers to rounding of 8 steps."""
    for seed, make in ((2, random_network), (2, plastic_network)):
        (cells, synapses, state, key), options = make(seed, 33, 2, shared=True)
        rng = np.random.default_rng(seed)
        rising = PoissonInput.of(rate=np.linspace(0, 900, STEPS)[:, None], weight=0.25, dt=1.0, receptor=1)
        options |= {"poisson": [options["poisson"], rising], "spikes": SpikeTrains.of([2, 5], [3, 7], dt=1.0)}
        options |= {"currents": (dyadic(rng, 0, 16, STEPS, 2), dyadic(rng, 0, 2, 2, 33))}
        options |= {
            "record": Record.of([4], means=[slice(0, 32)], every=2),
            "implementation": IMPLEMENTATIONS[-1],
        }
        expected, after = run(cells, synapses, state, key, **options, steps=STEPS, capacity=33)
        own = circuits.Populations({"all": 33}, dt=1.0, receptors=2).cells({"all": cells})
        lif = LIFState(state.v - cells.rest, state.received, state.remaining)
        start = state._replace(v=None, received=None, remaining=None, cells=(lif,))
        got, end = run(own, synapses, start, key, **options, steps=STEPS, capacity=33)
        assert int(got.counts.sum()) > 20
        chex.assert_trees_all_equal((got.spikes, got.counts), (expected.spikes, expected.counts))
        chex.assert_trees_all_close(got, expected, rtol=1e-5)
        chex.assert_trees_all_close(end.cells[0].v + cells.rest, after.v, rtol=1e-5)
        left = (
            (end.sent, end.step, end.traces, end.short_term),
            (after.sent, after.step, after.traces, after.short_term),
        )
        chex.assert_trees_all_equal(*left)


def izhikevich_in_numpy(weights: np.ndarray, delays: np.ndarray, currents: np.ndarray) -> np.ndarray:
    """The spikes ``[steps, neurons]`` of the paper's equations in float64, of two kinds of neurons."""
    steps, size = currents.shape
    recovery, jump = np.repeat([0.02, 0.1], [60, 20]), np.repeat([8.0, 2.0], [60, 20])
    v, u, spikes = np.full(size, -65.0), np.full(size, -13.0), np.zeros((steps, size), bool)
    for t in range(steps):
        fired = spikes[t - 1] if t else np.zeros(size, bool)
        v, u = np.where(fired, -65.0, v), u + jump * fired
        arrived = currents[t].copy()
        for source, target in zip(*np.nonzero(weights), strict=True):
            late = delays[source, target]
            arrived[target] += weights[source, target] * (t >= late and spikes[t - late, source])
        for _ in range(2):
            v = v + 0.5 * (0.04 * v**2 + 5 * v + 140 - u + arrived)
        u = u + recovery * (0.2 * v - u)
        spikes[t] = v > 30
    return spikes


def test_izhikevich_network_is_that_of_the_paper() -> None:
    """80 steps in float32 beside float64: nearly all spikes, in the same steps; and pieces are the whole."""
    rng = np.random.default_rng(0)
    weights = np.where(rng.random((80, 80)) < 0.2, rng.uniform(0, 6, (80, 80)), 0.0).astype(np.float32)
    weights[60:] *= -1
    delays, currents = rng.integers(1, 9, (80, 80)), rng.uniform(0, 14, (80, 80)).astype(np.float32)
    exists = weights != 0
    synapses = DelayedSynapses.of(
        Synapses.from_mask(exists), jnp.asarray(weights[exists]), delays[exists], blocks=2
    )
    models = {"E": neurons.izhikevich(), "I": neurons.izhikevich("fast_spiking")}
    cells = PEOPLE.cells(models)
    state = simulation_state(cells, synapses)
    options: dict[str, Any] = {"capacity": 80, "implementation": IMPLEMENTATIONS[-1]}
    record = Record.of(means=list(PEOPLE.slices.values()))
    out, end = run(cells, synapses, state, currents=jnp.asarray(currents), steps=80, record=record, **options)
    trains = SpikeTrains.listed(out.spikes, dt=1.0)
    expected = np.stack(np.nonzero(izhikevich_in_numpy(weights, delays, currents)))
    got = np.stack([trains.steps, trains.ids])
    same = set(map(tuple, got.T)) & set(map(tuple, expected.T))
    assert len(expected[0]) > 150 and len(same) > 0.98 * max(len(got[0]), len(expected[0]))
    assert out.recorded.v.shape == (80, 2) and jnp.all(jnp.isfinite(out.recorded.v))
    piece, counts = state, 0
    for first in (0, 40):
        part = jnp.asarray(currents[first : first + 40])
        found, piece = run(cells, synapses, piece, currents=part, steps=40, **options)
        counts = counts + found.counts
    chex.assert_trees_all_equal((piece, counts), (end, out.counts))


def test_models_differ_by_population_and_take_given_spikes() -> None:
    """A source that is given spikes makes a neuron of a user's own spike, whose membrane is what arrives."""

    def integrate(params, state, inputs):
        return inputs, params, state

    relay = neurons.Neuron(
        "relay",
        init=lambda key, count, dtype=jnp.float32: jnp.full(count, 0.5, dtype),
        initial_state=lambda params, batch, count, dtype=jnp.float32: (),
        integrate=integrate,
    )
    people = circuits.Populations({"source": 3, "relay": 3}, dt=0.1)
    lif = neurons.cuba_lif(
        tau=10.0, synaptic_taus=(0.0,), rest=0.0, threshold=9.0, reset=0.0, refractory=0.0, dt=0.1
    )
    wiring = [circuits.Projection("source", "relay", weight=1.0, delay=0.3, one_to_one=True)]
    synapses = people.connect(KEY, wiring)
    cells = people.cells({"source": lif, "relay": relay})
    given = SpikeTrains.of([[0.1, 0.9], [], [0.4]], dt=0.1)
    state = simulation_state(cells, synapses)
    out, _ = jit(simulate, static_argnames=("steps", "capacity"))(
        cells, synapses, state, spikes=given, steps=12, capacity=6
    )
    found = SpikeTrains.listed(out.spikes, dt=0.1)
    each = [np.round(times, 6).tolist() for times in found.of_each(range(6))]
    assert each == [[0.1, 0.9], [], [0.4], [0.5], [], [0.8]]  # 0.9 + 0.3 ms and a step is behind the end


GRADED = dataclasses.replace(neurons.lif(), levels=(0, 3))
DRAWN = neurons.lif((0.5, 0.9))
LIF = neurons.cuba_lif(
    tau=10.0, synaptic_taus=(5.0,), rest=0.0, threshold=1.0, reset=0.0, refractory=0.0, dt=0.1
)
SYNAPSES = PEOPLE.connect(KEY, [])
CELLS = PEOPLE.cells(dict.fromkeys("EI", neurons.izhikevich()))


def call(cells, **options):
    return simulate(cells, SYNAPSES, simulation_state(cells, SYNAPSES), **({"steps": 1} | options))


REFUSED = {
    "Populations.cells: `models['E']` must have `receptors` and `dt` of the populations, 1 and 1, got 1 and 0.1. "
    "Make both alike.": lambda: PEOPLE.cells({"E": LIF, "I": LIF}),
    "Populations.cells: `models` must have a value for each population, got E. Name E, I.": lambda: (
        PEOPLE.cells({"E": LIF})
    ),
    "Populations.cells: `key` must be a PRNG key, from which constants of `models['E']` are drawn, got None. "
    "Pass key=jax.random.key(0).": lambda: PEOPLE.cells(dict.fromkeys("EI", DRAWN)),
    "Populations.cells: `models['E']` must not have graded spikes, got lif. "
    "Choose one whose spikes are 0 and 1.": lambda: PEOPLE.cells(dict.fromkeys("EI", GRADED)),
    "simulate: `state` must be of these neurons, got one of several models. "
    "Call simulation_state with these neurons and synapses.": lambda: simulate(
        LIF, SYNAPSES, simulation_state(CELLS, SYNAPSES), steps=1
    ),
    "simulate: `record.received` must be False with cells of several models, got True. "
    "Let the model hold them.": lambda: call(CELLS, record=Record.of([0], received=True)),
    "simulation_state: `v` must be None for cells of several models, got float32[80]. "
    "Change SimulationState.cells with _replace.": lambda: simulation_state(CELLS, SYNAPSES, v=jnp.zeros(80)),
    "simulation_state: `neurons` must be 80, those of the synapses, got 1. "
    "Make both with one circuits.Populations.": lambda: call(
        circuits.Populations({"E": 1}, dt=1.0).cells({"E": neurons.izhikevich()})
    ),
    "simulate: `weights` must not be differentiated, nor the other arguments, got a tangent. Train with "
    "snnjax.network, or pass jax.lax.stop_gradient of them.": lambda: jax.grad(
        lambda v: call(CELLS, currents=v[None])[1].cells[0].v.sum()
    )(jnp.zeros(80)),
}
test_wrong_argument_says_so = refusals(REFUSED)
