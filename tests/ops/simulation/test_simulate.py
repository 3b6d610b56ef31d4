"""`simulate`: what arrives when, in both implementations; and the spikes of Brian2."""

import dataclasses
from pathlib import Path
from typing import Any

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType, PartitionSpec

from snnjax import (
    DelayedSynapses,
    PoissonInput,
    SimulationState,
    Synapses,
    _targets,
    neurons,
    simulate,
    simulation_state,
)
from snnjax._types import State
from snnjax.circuits import Record, SpikeTrains
from snnjax.plasticity import STDP, ShortTerm, ShortTermState, STDPTraces
from tests.numbers import array, dyadic, halves
from tests.ops.common import jit

KEY = jax.random.key(0)
IMPLEMENTATIONS = ("reference", "cpu") if _targets.missing() is None else ("reference",)
each_implementation = pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
needs_kernels = pytest.mark.skipif(_targets.missing() is not None, reason="without the compiled kernels")
GOLDEN = Path(__file__).parents[2] / "golden" / "brian.npz"
# Membranes jump by the weights of their synapses and do not leak in a step.
PULSES = neurons.cuba_lif(
    tau=1e9, synaptic_taus=(0.0,), rest=0.0, threshold=0.5, reset=0.0, refractory=0.0, dt=1.0
)
STEPS = 8  # after which sums of dyadic numbers times powers of two are still exact
STATIC = ("steps", "capacity", "implementation")
run = jit(simulate, static_argnames=STATIC)


def chain(length: int) -> Synapses:
    """Each neuron leads to the next one."""
    return Synapses(jnp.minimum(jnp.arange(1, length + 1), length - 1), jnp.arange(1, length), length)


def none(size: int, receptors: int = 1, **options: Any) -> DelayedSynapses:
    """No synapses."""
    nobody = Synapses(jnp.zeros(size, jnp.int32), jnp.zeros(0, jnp.uint16), receptors * size)
    return DelayedSynapses.of(nobody, jnp.zeros(0, options.pop("dtype", jnp.float32)), **options)


@each_implementation
def test_spike_arrives_after_its_delay(implementation: str) -> None:
    """A spike of neuron 0 at step 0 by its initial potential; delays of 1, 3 and 2 steps."""
    synapses = DelayedSynapses.of(chain(4), jnp.ones(3), jnp.array([1, 3, 2], jnp.uint16))
    state = simulation_state(PULSES, synapses, v=jnp.array([1.0, 0.0, 0.0, 0.0]))
    out, _ = run(PULSES, synapses, state, steps=8, capacity=2, implementation=implementation)
    step, slot = np.nonzero(np.asarray(out.spikes.ids) < 4)
    assert step.tolist() == [0, 1, 4, 6]
    assert out.spikes.ids[step, slot].tolist() == [0, 1, 2, 3]


@each_implementation
def test_refractory_neuron_receives_and_neither_moves_nor_spikes(implementation: str) -> None:
    cells = dataclasses.replace(PULSES, refractory=jnp.array([3], jnp.int32))
    state = simulation_state(cells, none(1), v=jnp.ones(1))
    currents = jnp.full((9, 1), 1e9, jnp.float32)  # by which a free neuron spikes in every step
    out, after = run(cells, none(1), state, steps=9, currents=currents, implementation=implementation)
    assert np.flatnonzero(out.spikes.num_spikes).tolist() == [0, 4, 8]
    assert (after.v.tolist(), after.remaining.tolist(), int(after.step)) == ([0.0], [3], 9)


@each_implementation
def test_potentials_of_recorded_neurons_are_those_after_each_step(implementation: str) -> None:
    """Of ids in any order, also twice; a traced one that is no neuron has a potential that is no number."""
    given, options = random_network(2, 33, 2, shared=True)
    record = jnp.array([32, 0, 7, 0, 33, -1, -33])

    def run(*given, record=None, **options):
        def call(ids):
            return simulate(*given, **options, record=ids if ids is None else Record.of(ids))

        return jit(call)(record)

    options |= {"currents": None, "implementation": implementation}
    out, _ = run(*given, **options, steps=3, record=record)
    assert out.recorded is not None
    states, state = [], given[2]
    for _ in range(3):
        _, state = run(*given[:2], state, given[3], **options, steps=1)
        states.append(state.v[record[:4]])
    chex.assert_trees_all_equal(out.recorded.v[:, :4], jnp.stack(states))
    assert jnp.all(jnp.isnan(out.recorded.v[:, 4:]))


@each_implementation
def test_lists_hold_the_lowest_ids_and_the_counts_all(implementation: str) -> None:
    synapses = none(5, blocks=2)
    state = simulation_state(PULSES, synapses, v=jnp.array([0.0, 1.0, 1.0, 0.0, 1.0]))
    out, _ = run(PULSES, synapses, state, steps=2, capacity=2, implementation=implementation)
    assert out.spikes.ids.tolist() == [[1, 2], [5, 5]]
    assert out.spikes.values is None
    assert (out.spikes.num_spikes.tolist(), out.spikes.num_dropped.tolist()) == ([3, 0], [1, 0])
    assert out.counts.tolist() == [0, 1, 1, 0, 1]


def random_cells(rng: np.random.Generator, width: int, receptors: int, conductances: bool):
    """Neurons of dyadic numbers."""
    return neurons.SynapticLIF(
        leak=halves(rng, width),
        gain=halves(rng, width),
        rest=dyadic(rng, 0, 32, width),
        threshold=dyadic(rng, 8, 16, width),
        reset=dyadic(rng, -8, 8, width),
        refractory=array(rng.integers(0, 3, width), jnp.int32),
        synaptic_decay=halves(rng, receptors, width),
        effect=halves(rng, receptors, width),
        has_conductances=conductances,
        dt=1.0,
    )


def random_network(
    seed: int,
    size: int,
    receptors: int,
    *,
    shared: bool,
    conductances: bool = False,
    dtype: Any = jnp.float32,
    blocks: int | None = None,
    delays: int | None = None,
):
    """A network of dyadic numbers, some of whose targets are out of range."""
    rng = np.random.default_rng(seed)
    width = 1 if shared else size
    synapses = int(rng.integers(0, 4 * size + 1))
    ends = np.sort(rng.integers(0, synapses + 1, size)).astype(np.int32)
    targets = rng.integers(0, receptors * size + 2, synapses)
    cells = random_cells(rng, width, receptors, conductances)
    sent = rng.random((3 if delays is None else delays, size)) < 0.3
    weights = np.abs if conductances else np.asarray
    state = SimulationState(
        dyadic(rng, -16, 16, size),
        array(weights(dyadic(rng, -16, 16, receptors, size)), jnp.float32),
        array(rng.integers(0, 3, size), jnp.int32),
        array(np.packbits(sent, axis=1, bitorder="little"), jnp.uint8),
        array(7, jnp.int32),
    )
    late = rng.integers(1, 4, synapses) if rng.random() < 0.7 else 2
    late, longest = (late, 3) if delays is None else (delays, delays)
    drawn = Synapses(array(ends, jnp.int32), array(targets, jnp.int32), receptors * size)
    given = array(weights(dyadic(rng, -16, 16, synapses)), dtype)
    own = int(rng.integers(1, 4)) if blocks is None else blocks
    return (cells, DelayedSynapses.of(drawn, given, late, max_delay=longest, blocks=own), state, KEY), {
        "currents": dyadic(rng, 0, 16, STEPS, width) if rng.random() < 0.5 else None,
        "poisson": PoissonInput.of(
            rate=rng.uniform(0, 3000, width), weight=np.round(rng.uniform(0, 4, width)) / 4, dt=1.0
        ),
    }


def plastic_network(seed: int, size: int, receptors: int, *, shared: bool, **of: Any):
    """The same with both kinds of plasticity, of some synapses alone."""
    given, options = random_network(seed, size, receptors, shared=shared, **of)
    cells, synapses, state, key = given
    rng = np.random.default_rng(seed)
    state = state._replace(
        traces=STDPTraces(dyadic(rng, 0, 4, synapses.max_delay, size), dyadic(rng, 0, 4, size)),
        short_term=ShortTermState(*(dyadic(rng, 0, 4, size) / 4 for _ in range(2))),
        released=dyadic(rng, 0, 4, synapses.max_delay, size) / 4,
    )
    chosen = array(rng.random(synapses.num_synapses) < 0.7, bool)
    options["stdp"] = STDP((0.5, 0.75), (0.5, 0.25), (-12.0, 12.0), chosen if seed % 2 else None)
    width = 1 if shared else size
    options["short_term"] = ShortTerm(array(rng.uniform(0.5, 1, width), jnp.float32), (0.5, 0.25))
    return (cells, synapses, state, key), options


@needs_kernels
@pytest.mark.parametrize(
    "seed, size, receptors, shared",
    [
        (0, 1, 1, True),
        (1, 16, 2, True),
        (2, 33, 2, False),
        (3, 70, 3, False),
        (4, 31, 4, True),
        (5, 0, 2, True),
    ],
)
def test_kernel_equals_the_reference_to_the_bit(seed: int, size: int, receptors: int, shared: bool) -> None:
    """All sums are exact."""
    given, options = random_network(seed, size, receptors, shared=shared)
    results = [
        run(*given, **options, steps=STEPS, capacity=3, implementation=implementation)
        for implementation in IMPLEMENTATIONS
    ]
    chex.assert_trees_all_equal(*results, strict=True)
    assert size < 2 or int(results[0][0].counts.sum()) > 0


@needs_kernels
def test_kernel_equals_the_reference_with_weights_in_bfloat16() -> None:
    given, options = random_network(6, 40, 2, shared=True, dtype=jnp.bfloat16)
    results = [
        run(*given, **options, steps=STEPS, capacity=3, implementation=implementation)
        for implementation in IMPLEMENTATIONS
    ]
    chex.assert_trees_all_equal(*results, strict=True)


@needs_kernels
@pytest.mark.parametrize("shared", [True, False])
def test_kernel_equals_the_reference_with_conductances(shared: bool) -> None:
    """A few ulp of the exponential function in each of 8 steps; no membrane is so close to its threshold."""
    (cells, *given), options = random_network(8, 50, 2, shared=shared, conductances=True)
    cells = dataclasses.replace(cells, leak=-0.1 * cells.leak, effect=jnp.full_like(cells.effect, -4.0))
    expected, got = (
        run(cells, *given, **options, steps=STEPS, implementation=implementation)
        for implementation in IMPLEMENTATIONS
    )
    assert int(expected[0].counts.sum()) > 0
    chex.assert_trees_all_equal(got[0].counts, expected[0].counts)
    chex.assert_trees_all_close(got[1], expected[1], rtol=1e-5, atol=1e-5)


@each_implementation
def test_pieces_equal_the_whole(implementation: str) -> None:
    given, options = plastic_network(3, 33, 2, shared=True)
    options = options | {"implementation": implementation, "capacity": 40, "currents": None}
    eligibility = dyadic(np.random.default_rng(0), -4, 4, given[1].num_synapses)
    state = given[2]._replace(traces=given[2].traces._replace(eligibility=eligibility))
    given = given[0], given[1], state, given[3]
    options |= {"stdp": options["stdp"]._replace(eligibility=0.5), "modulation": 0.5}
    options |= {"noise": 0.5, "spikes": SpikeTrains.of([9.0, 14.0], [0, 1], dt=1.0)}
    out, state = run(*given, **options, steps=STEPS)
    parts = []
    synapses, piece = given[1:3]
    for steps in (5, 0, 2, 1):
        part, piece = run(given[0], synapses, piece, given[3], **options, steps=steps)
        parts.append(part)
        synapses = synapses.with_weights(part.weights)
    chex.assert_trees_all_equal((synapses.weights(), piece), (out.weights, state), strict=True)
    chex.assert_trees_all_equal(jnp.concatenate([part.spikes.ids for part in parts]), out.spikes.ids)
    chex.assert_trees_all_equal(sum(part.counts for part in parts), out.counts)


@each_implementation
def test_pieces_in_mV_equal_the_whole(implementation: str) -> None:
    """To the bit, although potentials of the state are rounded in mV."""
    given, _ = brian("cuba")
    options: dict[str, Any] = {"implementation": implementation}
    whole = run(*given, **options, steps=100)[1]
    state = given[2]
    for _ in range(2):
        state = run(*given[:2], state, **options, steps=50)[1]
    chex.assert_trees_all_equal(state, whole, strict=True)


@each_implementation
def test_short_steps_move_membranes_close_to_rest(implementation: str) -> None:
    """In float32: at rest 0.01 mV above the threshold a neuron spikes after tau log(10.01 / 0.01), to 0.1 %."""
    given: dict[str, Any] = {"synaptic_taus": (5.0,), "threshold": -50.0, "reset": -60.0, "refractory": 0.0}
    nobody, options = none(1), {"implementation": implementation}
    cells = neurons.cuba_lif(tau=200.0, rest=-49.99, dt=0.01, **given)
    state = simulation_state(cells, nobody, v=jnp.array([-60.0]))
    out, _ = run(cells, nobody, state, steps=200_000, **options)
    np.testing.assert_allclose(np.flatnonzero(out.spikes.num_spikes), 20_000 * np.log(1001), rtol=1e-3)
    silent = neurons.cuba_lif(tau=20.0, rest=-53.1, dt=0.001, **given)
    _, after = run(silent, nobody, simulation_state(silent, nobody), steps=100_000, **options)
    np.testing.assert_array_equal(after.v, np.float32([-53.1]))


@pytest.mark.parametrize("conductances", [False, True])
def test_simulation_in_float64_has_constants_of_float64(conductances: bool) -> None:
    """Beside the same equations in NumPy, to rounding of float64."""
    rest, tau, dt, steps = -53.1, 20.0, 0.1, 20
    given: dict[str, Any] = {"synaptic_taus": (3.3,), "threshold": -20.0, "reset": -60.0, "refractory": 0.0}
    with jax.enable_x64(True):
        if conductances:
            cells = neurons.coba_lif(tau=tau, rest=rest, dt=dt, reversals=(-71.7,), **given)
        else:
            cells = neurons.cuba_lif(tau=tau, rest=rest, dt=dt, **given)
        nobody = none(1, dtype=jnp.float64)
        state = simulation_state(cells, nobody)._replace(received=jnp.array([[9.1]]))
        after = run(cells, nobody, state, steps=steps)[1]
    v, g, decay = rest, 9.1, np.exp(-dt / 3.3)
    added = 3.3 * (decay - np.exp(-dt / tau)) / (3.3 - tau)  # by a current of 1 mV
    for _ in range(steps):
        if conductances:
            end = (rest - 71.7 * g) / (1 + g)
            v = end + (v - end) * np.exp(-dt / tau * (1 + g))
        else:
            v = rest + np.exp(-dt / tau) * (v - rest) + added * g
        g *= decay
    np.testing.assert_allclose(after.v, [v], rtol=1e-13)


@each_implementation
def test_networks_side_by_side_equal_each_alone(implementation: str) -> None:
    """`vmap` over weights, states and keys, with shared synapses and rules of plasticity."""
    (cells, synapses, state, _), options = plastic_network(2, 33, 2, shared=True)
    keys, all_weights = (
        jax.random.split(KEY, 3),
        synapses.weights()[None] * jnp.array([[0.5], [1.0], [2.0]]),
    )
    states = jax.tree.map(lambda leaf: jnp.stack([leaf, leaf, leaf]), state)

    def one(weights, state: State, key):
        own = synapses.with_weights(weights)
        return simulate(cells, own, state, key, **options, steps=STEPS, implementation=implementation)

    together = jit(jax.vmap(one))(all_weights, states, keys)
    for i in range(3):
        alone = jit(one)(all_weights[i], state, keys[i])
        own = jax.tree.map(lambda leaf, i=i: leaf[i], together)
        chex.assert_trees_all_equal((own[0].spikes, own[0].counts), (alone[0].spikes, alone[0].counts))
        chex.assert_trees_all_close(own, alone, rtol=1e-5, atol=1e-6)  # rounding of 8 steps in the reference


@each_implementation
def test_networks_on_several_devices_equal_those_on_one(implementation: str) -> None:
    """Four seeds, one on each device of a mesh, in pieces of a scan."""
    (cells, synapses, state, _), options = random_network(2, 33, 2, shared=True)
    options |= {"currents": None, "implementation": implementation, "steps": 4}
    states = jax.tree.map(lambda leaf: jnp.stack([leaf] * 4), state)
    keys = jax.random.split(KEY, 4)

    def one(state: State, key):
        def piece(state: State, _):
            out, state = simulate(cells, synapses, state, key, **options)
            return state, out.counts

        return jax.lax.scan(piece, state, None, length=2)

    mesh = jax.make_mesh((4,), ("seeds",), axis_types=(AxisType.Auto,))
    seeds = jax.vmap(one)
    axis = PartitionSpec("seeds")
    sharded = jax.shard_map(seeds, mesh=mesh, in_specs=(axis, axis), out_specs=axis)
    chex.assert_trees_all_equal(jit(sharded)(states, keys), jit(seeds)(states, keys))


@each_implementation
def test_random_input_is_that_of_its_step_and_key(implementation: str) -> None:
    """Counts of 20,000 neurons follow the distribution, by chi-squared below its quantile at 1 - 1e-6."""
    cells, count = dataclasses.replace(PULSES, threshold=jnp.array([1e9])), 20_001
    nobody, poisson = none(count, blocks=2), PoissonInput.of(rate=2000.0, weight=1.0, dt=1.0)
    state = simulation_state(cells, nobody)

    def drawn(step: int, key) -> np.ndarray:
        at = state._replace(step=jnp.asarray(step, jnp.int32))
        options: dict[str, Any] = {"steps": 1, "poisson": poisson, "implementation": implementation}
        return np.rint(np.asarray(run(cells, nobody, at, key, **options)[1].v)).astype(int)

    one, again, later, other = drawn(0, KEY), drawn(0, KEY), drawn(1, KEY), drawn(0, jax.random.key(1))
    assert (one == again).all()
    assert (
        abs(np.corrcoef([one, later, other]) - np.eye(3)).max() < 5 / count**0.5
    )  # five standard deviations
    most = 7
    expected = np.exp(-2) * np.cumprod([1, *(2 / k for k in range(1, most))])
    expected = count * np.append(expected, 1 - expected.sum())
    counts = np.bincount(np.minimum(one, most), minlength=most + 1)
    assert np.sum((counts - expected) ** 2 / expected) < 41


@each_implementation
def test_poisson_input_of_rate_0_never_delivers(implementation: str) -> None:
    """The random word of neuron 10252 in this step is the largest one; others beside it need eleven limits."""
    count, place, step = 20_000, 10_252, 638_581
    cells = dataclasses.replace(PULSES, threshold=jnp.array([1e9]))
    nobody = none(count)
    state = simulation_state(cells, nobody)._replace(step=jnp.asarray(step, jnp.int32))
    rate = np.full(count, 800.0)
    rate[[place, place + 1]] = 0
    poisson = PoissonInput.of(rate=rate, weight=1.0, dt=1.0)
    options: dict[str, Any] = {"steps": 1, "poisson": poisson, "implementation": implementation}
    v = np.asarray(run(cells, nobody, state, KEY, **options)[1].v)
    assert v[[place, place + 1]].tolist() == [0.0, 0.0]
    assert abs(v.mean() - 0.8) < 5 * (0.8 / count) ** 0.5  # five standard deviations


def test_poisson_limits_are_the_nearest_words() -> None:
    """So many of 2^32 words stand for at most k events, for means from the least one to the largest."""
    for mean in (0.0, 2e-10, 1e-9, 1e-3, 0.8, 20.0, 500.0):
        source = PoissonInput.of(rate=mean * 1000, weight=1.0, dt=1.0)
        limits = np.asarray(source.limits, np.float64)[0, :, 0]
        words = limits + 2.0**31 + 1
        exact = 2.0**32 * np.cumsum(poisson_terms(mean, len(words)))
        assert np.all(abs(words - exact) <= 1)  # one word has no event whatever the mean
        assert 2.0**32 * np.sum(poisson_terms(mean, len(words) + 1)) > 2.0**32 - 1  # no more events than that
        traced = jax.jit(
            lambda rate, most=mean: PoissonInput.of(rate=rate, weight=1.0, dt=1.0, peak=most * 1000)
        )
        found = np.asarray(traced(mean * 1000).limits, np.float64)[0, :, 0]
        beyond = 2.0**32 - exact  # words of more events, to the precision of float32: a word, or 1e-4 of them
        assert np.all(abs(2.0**31 - 1 - found - beyond) <= 1 + 2e-4 * beyond)


def poisson_terms(mean: float, count: int) -> np.ndarray:
    """The probabilities of 0 to `count` - 1 events, from their logarithms."""
    k = np.arange(count)
    logarithms = np.concatenate([[0.0], np.cumsum(np.log(np.maximum(mean, 1e-300)) - np.log(k[1:]))])
    return np.exp(logarithms - mean)


def test_membrane_is_that_of_the_differential_equations() -> None:
    """Beside the exact solution of both linear equations, in float64: after 100 steps, rounding of 100 steps."""
    tau, taus, dt, rest, steps = 20.0, (5.0, 20.0), 0.1, -49.0, 100
    cells = neurons.cuba_lif(
        tau=tau, synaptic_taus=taus, rest=rest, threshold=1e9, reset=0.0, refractory=0.0, dt=dt
    )
    nobody = none(1, 2)
    state = simulation_state(cells, nobody, v=jnp.array([-60.0]))._replace(
        received=jnp.array([[30.0], [-4.0]], jnp.float32)
    )
    after = run(cells, nobody, state, steps=steps)[1]
    time = steps * dt
    response = [
        5.0 * (np.exp(-time / 5.0) - np.exp(-time / tau)) / (5.0 - tau),
        time / tau * np.exp(-time / tau),
    ]
    exact = rest - 11.0 * np.exp(-time / tau) + 30.0 * response[0] - 4.0 * response[1]
    np.testing.assert_allclose(after.v, [exact], rtol=1e-5)
    np.testing.assert_allclose(
        after.received[:, 0], [30 * np.exp(-time / 5), -4 * np.exp(-time / 20)], rtol=1e-5
    )


def test_conductances_pull_to_the_reversal_potential() -> None:
    """With constant conductances exponential Euler is exact: v_inf = (-60 + 3 * 0 + 1 * -80) / 5 = -28."""
    cells = neurons.coba_lif(
        tau=20.0,
        synaptic_taus=(1e9, 1e9),
        reversals=(0.0, -80.0),
        rest=-60.0,
        threshold=1e9,
        reset=0.0,
        refractory=0.0,
        dt=0.1,
    )
    nobody = none(1, 2)
    state = simulation_state(cells, nobody)._replace(received=jnp.array([[3.0], [1.0]], jnp.float32))
    after = run(cells, nobody, state, steps=40)[1]  # 4 ms, of which tau / 5 is the time constant
    np.testing.assert_allclose(after.v, [-28 - 32 * np.exp(-1)], rtol=1e-5)


def brian(name: str) -> tuple[Any, set[tuple[int, int]]]:
    """A network of `tests/golden/make_brian.py`, and its spikes: steps and ids."""
    own = {key.removeprefix(f"{name}_"): value for key, value in np.load(GOLDEN).items()}
    size, excitatory = len(own["v"]), 160
    excites = np.repeat(np.arange(size), np.diff(own["ends"], prepend=0)) < excitatory
    targets = jnp.asarray(own["targets"] + size * ~excites, jnp.uint16)
    common: dict[str, Any] = {"tau": 20.0, "synaptic_taus": (5.0, 10.0), "threshold": -50.0, "reset": -60.0}
    common |= {"refractory": 4.9, "dt": 0.1}  # of a period of 5 ms Brian2's last step is free
    if name == "cuba":
        cells, weights = neurons.cuba_lif(rest=-49.0, **common), (3.24, -18.0)
    else:
        cells, weights = neurons.coba_lif(rest=-60.0, reversals=(0.0, -80.0), **common), (1.2, 13.4)
    delays = jnp.asarray(own["delays"], jnp.uint16) if "delays" in own else 1
    drawn = Synapses(jnp.asarray(own["ends"]), targets, 2 * size)
    synapses = DelayedSynapses.of(drawn, array(np.where(excites, *weights), jnp.float32), delays, blocks=3)
    state = simulation_state(cells, synapses, v=jnp.asarray(-60 + 10 * own["v"]))
    if name == "coba":
        state = state._replace(received=state.received.at[0].set(2.4))
    spikes = set(zip(own["steps"].tolist(), own["ids"].tolist(), strict=True))
    return (cells, synapses, state), spikes


@each_implementation
@pytest.mark.parametrize("name", ["cuba", "coba"])
def test_spikes_are_those_of_brian(name: str, implementation: str) -> None:
    """All of them, each in the same step: in float32 these are the same as in Brian2's float64."""
    given, expected = brian(name)
    out, _ = run(*given, steps=1000, capacity=64, implementation=implementation)
    step, slot = np.nonzero(np.asarray(out.spikes.ids) < 200)
    got = set(zip(step.tolist(), np.asarray(out.spikes.ids)[step, slot].tolist(), strict=True))
    assert len(expected) > 150
    assert got == expected


def test_next_piece_is_not_compiled_again() -> None:
    (cells, synapses, state, key), options = random_network(3, 33, 2, shared=True)
    options["currents"] = None

    def piece(state: State):
        return simulate(cells, synapses, state, key, **options, steps=4)

    step = jax.jit(chex.assert_max_traces(piece, 1))
    for _ in range(3):
        _, state = step(state)
    assert int(state.step) == 7 + 3 * 4


@needs_kernels
@pytest.mark.parametrize("packed", [True, False])
def test_hostile_structure_reaches_no_other_memory(packed: bool) -> None:
    """Ends in any order, places, delays and lengths out of range: what is computed is finite."""
    (cells, synapses, state, key), options = plastic_network(2, 33, 2, shared=True, blocks=2)
    rng = np.random.default_rng(0)
    kind = np.int32 if packed else np.uint16
    words = rng.integers(0, np.iinfo(kind).max, 50, dtype=kind) & kind(0x3F80FFFF & np.iinfo(kind).max)
    wrong = dataclasses.replace(
        synapses,
        words=jnp.asarray(words),
        strengths=None if packed else jnp.ones(50),
        segments=array(rng.integers(0, 2**16, (40, 2)), jnp.uint16).at[::2].set(2),
        ends=array(rng.integers(-(2**31), 2**31, (2, 33, 2)), jnp.int32).at[:, ::2].set(40),
    )
    options["currents"] = None
    if packed:
        state, options["stdp"] = state._replace(traces=None), None
    else:
        options["stdp"] = options["stdp"]._replace(plastic=None)
    chex.assert_tree_all_finite(run(cells, wrong, state, key, **options, steps=20))


@needs_kernels
def test_spikes_are_the_same_for_any_number_of_blocks_and_threads() -> None:
    """To the bit, with weights that are no dyadic numbers; blocks run on all threads of the machine."""
    rng, size = np.random.default_rng(0), 300
    drawn = Synapses.with_probability(KEY, size, size, 0.2)
    weights, delays = rng.normal(1.0, 4.0, drawn.num_synapses), rng.integers(1, 20, drawn.num_synapses)
    cells = neurons.cuba_lif(
        tau=10.0,
        synaptic_taus=(1.0,),
        rest=np.linspace(-1, 0, size),
        threshold=1.0,
        reset=0.0,
        refractory=1.0,
        dt=0.1,
    )
    poisson = PoissonInput.of(rate=np.where(np.arange(size) < 150, 900.0, 1200.0), weight=6.0, dt=0.1)
    found = []
    for blocks in (1, 2, 5):
        for dtype in (jnp.float32, jnp.bfloat16):
            synapses = DelayedSynapses.of(drawn, jnp.asarray(weights, dtype), delays, blocks=blocks)
            state = simulation_state(cells, synapses)
            out, _ = run(cells, synapses, state, KEY, steps=400, poisson=poisson, capacity=size)
            found.append((dtype, out.spikes, out.counts))
    assert int(found[0][2].sum()) > 1000
    for dtype, *out in found[2:]:
        chex.assert_trees_all_equal(out, list(found[0 if dtype == jnp.float32 else 1][1:]))


@needs_kernels
def test_kernel_refuses_what_it_does_not_support() -> None:
    cells = neurons.cuba_lif(
        tau=20.0, synaptic_taus=(5.0,) * 5, rest=0.0, threshold=1.0, reset=0.0, refractory=1.0, dt=0.1
    )
    nobody = none(3, 5)
    with pytest.raises(ValueError) as caught:
        simulate(cells, nobody, simulation_state(cells, nobody), steps=1, implementation="cpu")
    assert str(caught.value) == (
        "simulate: `implementation` must be None or 'reference' for 5 receptors, got 'cpu'. Leave it None for an "
        "automatic choice."
    )
