"""`cuba_lif` and `coba_lif` in layers: spikes of `simulate`, before and after training, and what gradients are."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import snnjax
from snnjax import (
    DelayedSynapses,
    Synapses,
    blocks,
    circuits,
    layer,
    neurons,
    simulate,
    simulation_state,
    sparse,
    synaptic,
)
from snnjax.surrogates import superspike
from tests.errors.refusals import refusals

SIZE, STEPS, DT, JUMP = 60, 120, 0.5, 0.5
COMMON: dict[str, Any] = {"tau": 20.0, "threshold": -50.0, "reset": -60.0, "refractory": 2.0, "dt": DT}
CUBA = neurons.cuba_lif(synaptic_taus=(5.0, 10.0, 0.0), rest=np.linspace(-62.0, -58.0, SIZE), **COMMON)
COBA = neurons.coba_lif(synaptic_taus=(5.0, 10.0, 5.0), reversals=(0.0, -80.0, 0.0), rest=-60.0, **COMMON)


def column(cells: neurons.SynapticLIF) -> DelayedSynapses:
    """Excitation and inhibition, each by its receptor, with a delay for each synapse."""
    populations = circuits.Populations({"E": 48, "I": 12}, dt=DT, receptors=3)
    excites, inhibits = (0.05, 0.2) if cells.has_conductances else (0.6, -2.4)
    wiring = [
        circuits.Projection(
            source, target, weight, circuits.Uniform(DT, 5.0), probability=0.3, receptor=receptor
        )
        for receptor, (source, weight) in enumerate((("E", excites), ("I", inhibits)))
        for target in "EI"
    ]
    return populations.connect(jax.random.key(0), wiring, dtype=jnp.float32)


def network(cells: neurons.SynapticLIF, synapses: DelayedSynapses):
    """A layer whose third receptor has an input for each neuron; params, stats and recurrent connection."""
    block, own, held = blocks.from_delayed_synapses(synapses)
    each = Synapses.from_mask(jnp.eye(SIZE, 3 * SIZE, 2 * SIZE, dtype=bool))
    net = snnjax.network(
        SIZE, [snnjax.layer(snnjax.sparse(3 * SIZE, synapses=each, bias=False), cells, recurrent=block)]
    )
    key = jax.random.key(1)
    inputs = blocks.SparseParams(jnp.full(SIZE, JUMP))
    return net, {"layer_0/connection": inputs, "layer_0/recurrent": own}, net.initial_stats(key), block, held


def simulated(cells: neurons.SynapticLIF, synapses: DelayedSynapses, x: jax.Array) -> np.ndarray:
    """The spikes ``[steps, neurons]`` of `simulate`, in which the inputs of the third receptor are currents."""
    state = simulation_state(cells, synapses)
    given = JUMP * x / cells.gain[None]
    run = jax.jit(simulate, static_argnames=("steps", "capacity"))
    out, _ = run(cells, synapses, state, steps=len(x), currents=given, capacity=SIZE)
    ids = np.asarray(out.spikes.ids)
    return (ids[:, :, None] == np.arange(SIZE)).any(axis=1)


def test_spikes_of_a_trained_layer_are_those_of_a_simulation():
    net, params, stats, block, held = network(CUBA, column(CUBA))
    stats |= {"layer_0/recurrent": held}
    before = params["layer_0/recurrent"].weights
    wanted = DT * jnp.linspace(0.002, 0.04, SIZE)  # spikes a step

    def loss(weights, x):
        own = params | {"layer_0/recurrent": params["layer_0/recurrent"]._replace(weights=weights)}
        spikes = net.apply(own, None, x, stats=stats)[0].output
        return jnp.mean((jnp.mean(spikes, axis=(0, 1)) - wanted) ** 2), spikes

    @jax.jit
    def step(weights, x):
        (value, spikes), gradient = jax.value_and_grad(loss, has_aux=True)(weights, x)
        change = 0.15 * gradient / jnp.sqrt(jnp.mean(gradient**2))
        sign = jnp.sign(before)  # Dale's law
        return sign * jnp.maximum(sign * (weights - change), 0), value, spikes

    weights, values, seen = before, [], []
    for key in jax.random.split(jax.random.key(2), 20):
        x = jax.random.poisson(key, 0.55, (STEPS, 2, SIZE)).astype(jnp.float32)
        before_step = weights
        weights, value, spikes = step(weights, x)
        values.append(float(value))
        seen = [before_step, x, spikes]
    used, x, spikes = seen
    assert np.mean(values[-5:]) < 0.7 * np.mean(values[:5])
    assert 100 < spikes.sum() < 2000
    own = params["layer_0/recurrent"]._replace(weights=used)
    synapses = blocks.to_delayed_synapses(block, own, held)
    for sequence in range(2):
        found = simulated(CUBA, synapses, x[:, sequence])
        np.testing.assert_array_equal(found, np.asarray(spikes[:, sequence]) > 0)


def test_conductances_in_a_layer_spike_as_in_a_simulation():
    synapses = column(COBA)
    net, params, stats, _, held = network(COBA, synapses)
    x = (
        jnp.zeros((STEPS, 1, SIZE)).at[0].set(jnp.linspace(4.0, 16.0, SIZE))
    )  # of a conductance that starts it
    out, _ = jax.jit(net.apply)(params, None, x, stats=stats | {"layer_0/recurrent": held})
    state = simulation_state(COBA, synapses)
    state = state._replace(received=state.received.at[2].set(JUMP * x[0, 0]))
    found, _ = simulate(COBA, synapses, state, steps=STEPS)
    assert found.counts.sum() > 120
    np.testing.assert_array_equal(found.counts, out.output[:, 0].sum(axis=0))


@pytest.mark.parametrize("learn", [False, True])
def test_synapses_return_from_a_layer_as_they_were(learn: bool):
    given = column(CUBA)
    block, params, stats = blocks.from_delayed_synapses(given, learn=learn)
    found = blocks.to_delayed_synapses(block, params, stats)
    for name in ("sources", "targets", "delays", "weights"):
        np.testing.assert_array_equal(getattr(found, name)(), getattr(given, name)())
    assert found.max_delay == given.max_delay
    assert (params.raw_delay is None) != learn


def test_derivative_of_a_spike_is_that_of_distances_in_units_of_the_width():
    cells = neurons.cuba_lif(synaptic_taus=(0.0,), rest=-60.0, surrogate=superspike(2.0), width=4.0, **COMMON)
    neuron = blocks.spiking(cells).neuron
    state = neuron.initial_state(None, 1, 1)

    def fired(jump):
        state_after, spikes = neuron.step(None, state, jump)
        return jnp.sum(spikes), state_after

    slope, after = jax.grad(fired, has_aux=True)(jnp.array([[12.0]]))  # 2 mV above the threshold
    np.testing.assert_allclose(slope, [[1 / 4.0 / (1 + 2.0 * 2.0 / 4.0) ** 2]], rtol=1e-6)
    assert (after.v.tolist(), after.remaining.tolist()) == ([[0.0]], [[4]])
    reset = jax.jacrev(lambda jump: fired(jump)[1].v)(jnp.array([[12.0]]))
    assert not reset.any()
    assert not jax.grad(lambda jump: neuron.step(None, after, jump)[1].sum())(jnp.array([[12.0]])).any()


RECURRENT = synaptic(sparse(SIZE, fan_in=2, bias=False), max_delay=3, initial=1, learn=False)
# Compiled as one program: many times faster than one operation after the other.
WEIGHTS, HELD = jax.jit(
    lambda key: (RECURRENT.init(key, (SIZE,), dtype=jnp.float32), RECURRENT.initial_stats(key, (SIZE,)))
)(jax.random.key(0))
NONE: Any = 3


def network_of(own):
    return snnjax.network(4, [own])


def make(**changed) -> neurons.SynapticLIF:
    return neurons.cuba_lif(**({"synaptic_taus": (5.0, 10.0), "rest": -60.0} | COMMON | changed))


REFUSED = {
    "cuba_lif: `connection` must lead to 2 receptors of each neuron, got targets of the shape [3]. "
    "Lead to receptors * neurons targets.": lambda: network_of(layer(snnjax.dense(3), make())),
    "cuba_lif: `neurons` must be as many as have constants, 2, got 3. "
    "Make the neurons for as many.": lambda: network_of(layer(3, make(rest=np.array([-60.0, -61.0])))),
    "layer: `neuron` must be of known constants, got a tracer. Make the network outside of jit.": lambda: (
        jax.jit(lambda cells: network_of(layer(3, cells)).num_outputs)(make())
    ),
    "cuba_lif: `width` must be above 0, got 0. Pass a distance in mV.": lambda: make(width=0.0),
    "cuba_lif: `width` must be one number, got float64[2]. All neurons have one surrogate.": lambda: make(
        width=np.ones(2)
    ),
    "to_delayed_synapses: `block` must be synaptic(sparse(...)) without a bias, got 3. "
    "Pass bias=False.": lambda: blocks.to_delayed_synapses(NONE, WEIGHTS, HELD),
    "to_delayed_synapses: `params` must be of known values, got a tracer. Convert them outside of jit.": lambda: (
        jax.jit(lambda own: blocks.to_delayed_synapses(RECURRENT, own, HELD).words)(WEIGHTS)
    ),
    "from_delayed_synapses: `synapses` must be DelayedSynapses, got 3. Make them with DelayedSynapses.of.": lambda: (
        blocks.from_delayed_synapses(NONE)
    ),
    "from_delayed_synapses: `synapses` must be of known values, got a tracer. Convert them outside of jit.": lambda: (
        jax.jit(lambda given: blocks.from_delayed_synapses(given)[1].weights)(column(CUBA))
    ),
}
test_what_does_not_fit_is_refused = refusals(REFUSED)
