"""`delayed_spike_matmul`: what arrives when, in both implementations, whatever the numbers."""

import dataclasses
import functools

import chex
import hypothesis
import hypothesis.extra.numpy as hnp
import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.test_util import check_grads

from snnjax import SparseSpikes, Synapses, _targets, delayed_spike_matmul
from snnjax._types import Signal
from tests.errors.refusals import refusals
from tests.numbers import array
from tests.ops.common import jit
from tests.ops.kernel_checks import needs_kernels

STEPS, BATCH, NEURONS, TARGETS, SYNAPSES, LONGEST = 5, 2, 4, 3, 9, 3
IMPLEMENTATIONS = ("reference", "cpu") if _targets.missing() is None else ("reference",)
each_implementation = pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
# One delay is out of range on each side, and both bounds are in it.
DELAYS = jnp.array([0.0, 0.25, 1.0, 1.5, 2.75, LONGEST, -0.5, LONGEST + 0.5, 2.0])
WEIGHTS = jnp.arange(-4, 5, dtype=jnp.float32) / 4


def run(spikes: Signal, weights, delays, *rest, implementation=None, **options):
    options = {"max_delay": LONGEST, "implementation": implementation, **options}
    return delayed_spike_matmul(spikes, weights, delays, *rest, **options)


def definition(spikes: Signal, weights, delays, synapses: Synapses):
    """A convolution over time with dense weights of each step of a delay, in plain JAX."""
    late = jnp.where(
        (delays >= 0) & (delays <= LONGEST), delays, jnp.clip(jax.lax.stop_gradient(delays), 0, LONGEST)
    )
    whole = jnp.minimum(jnp.floor(late), LONGEST - 1)
    taps = jnp.zeros((LONGEST + 1, NEURONS, TARGETS + 1))
    targets = jnp.where((synapses.targets >= 0) & (synapses.targets < TARGETS), synapses.targets, TARGETS)
    for step, share in ((whole, 1 - late + whole), (whole + 1, late - whole)):
        taps = taps.at[step.astype(int), synapses.sources(), targets.astype(int)].add(
            share * weights, mode="drop"
        )
    out = jnp.zeros((STEPS + LONGEST, BATCH, TARGETS + 1))
    for step, tap in enumerate(taps):
        out = out.at[step : step + STEPS].add(spikes @ tap)
    return out[:STEPS, :, :-1], out[STEPS:, :, :-1]


def value_and_gradients(function, given, g):
    out, pull_back = jax.vjp(function, *given)
    return out, pull_back(g)


@functools.partial(jit, static_argnums=0)
def compiled(implementation: str | None, given, synapses: Synapses, g):
    """Value and gradients of an implementation, or of the definition."""

    def run_one(*own):
        if implementation is None:
            return definition(*own, synapses)
        return run(*own, synapses, implementation=implementation)

    return value_and_gradients(run_one, given, g)


sixteenths = st.integers(-16, 16).map(lambda n: n / 16)


def cotangents():
    each = (
        jnp.arange((STEPS + LONGEST) * BATCH * TARGETS, dtype=jnp.float32).reshape(-1, BATCH, TARGETS) / 4 - 3
    )
    return each[:STEPS], each[STEPS:]


@each_implementation
@hypothesis.given(
    spikes=hnp.arrays(np.float32, (STEPS, BATCH, NEURONS), elements=sixteenths | st.just(0.0)),
    counts=st.lists(st.integers(0, 3), min_size=NEURONS, max_size=NEURONS),
    targets=hnp.arrays(
        np.int32, SYNAPSES, elements=st.integers(0, TARGETS - 1) | st.sampled_from([-1, TARGETS, 65536])
    ),
    turn=st.integers(0, SYNAPSES),
)
@hypothesis.settings(max_examples=15)
def test_equals_the_definition(
    implementation: str, spikes: np.ndarray, counts: list[int], targets: np.ndarray, turn: int
) -> None:
    """To the bit, sums being exact: values, and gradients of spikes, weights and delays, of random structures."""
    ends = array(np.minimum(np.cumsum(counts), SYNAPSES), jnp.int32)
    synapses = Synapses(ends, jnp.asarray(targets), TARGETS)
    given = jnp.asarray(spikes), WEIGHTS, jnp.roll(DELAYS, turn)
    got, expected = (compiled(each, given, synapses, cotangents()) for each in (implementation, None))
    chex.assert_trees_all_equal(got, expected)


@each_implementation
@pytest.mark.parametrize("share", [0.7, 1.0])
def test_lists_are_their_dense_form(implementation: str, share: float) -> None:
    """Of ids that repeat or name nothing, some or all pairs; a listed entry of value 0 receives its gradient."""
    ids = array(np.random.default_rng(0).integers(0, NEURONS + 2, (STEPS, BATCH, 3)), jnp.uint16)
    values, counts = (
        array(np.arange(STEPS * BATCH * 3).reshape(ids.shape) % 3, jnp.float32),
        ids[..., 0] * 0,
    )
    synapses = Synapses.from_mask(np.random.default_rng(1).random((NEURONS, TARGETS)) < share)
    weights, delays = (jnp.resize(each, synapses.num_synapses) for each in (WEIGHTS, DELAYS))
    lists = SparseSpikes(ids, values, *(counts.astype(jnp.int32),) * 3, NEURONS)

    @functools.partial(jit, static_argnums=0)
    def of(is_reference: bool, *given):
        def run_one(values, *own):
            spikes = dataclasses.replace(lists, values=values)
            if is_reference:
                return definition(spikes.to_dense(), *own, synapses)
            return run(spikes, *own, synapses, implementation=implementation)

        return value_and_gradients(run_one, given, cotangents())

    chex.assert_trees_all_equal(of(False, values, weights, delays), of(True, values, weights, delays))


@each_implementation
@pytest.mark.parametrize("pieces", [(5,), (2, 3), (1, 1, 3)])
def test_pieces_are_the_whole(implementation: str, pieces: tuple[int, ...]) -> None:
    """Also of sequences that end within a piece, and pieces shorter than the longest delay; padding may hold NaN.

    The bias is that of steps, not of what is left behind them.
    """
    rng, lengths = np.random.default_rng(0), np.array([4, 1])
    spikes = array(rng.integers(0, 2, (STEPS, BATCH, NEURONS)), jnp.float32).at[4:, 0].set(jnp.nan)
    weights, delays = jnp.ones((NEURONS, TARGETS)), jnp.asarray(rng.integers(0, 12, (NEURONS, TARGETS)) / 4)
    bias, sent = jnp.arange(TARGETS, dtype=jnp.float32), spikes.at[1:, 1].set(0).at[4:].set(0)
    everything = jit(lambda *given: jnp.concatenate(run(*given)))(sent, weights, delays)
    with_bias = jit(functools.partial(run, implementation=implementation))
    expected = with_bias(sent, weights, delays, bias=bias)
    chex.assert_trees_all_equal(jnp.concatenate(expected), everything.at[:STEPS].add(bias[None, None]))
    currents, pending, start = [], None, 0
    for steps in pieces:
        within = array(np.clip(lengths - start, 0, steps), jnp.int32)
        options = {"lengths": within, "bias": bias}
        out, pending = with_bias(spikes[start : start + steps], weights, delays, None, pending, **options)
        currents, start = [*currents, out], start + steps
    found = jnp.concatenate(currents)
    for sample, length in enumerate(lengths):
        np.testing.assert_array_equal(found[:length, sample], everything[:length, sample] + bias[None])
        np.testing.assert_array_equal(found[length:, sample], 0)
        np.testing.assert_array_equal(pending[:, sample], everything[length : length + LONGEST, sample])


def test_gradients_are_those_of_differences() -> None:
    """Between integers, where the split is smooth; in float64 (products of three numbers are cubic)."""
    rng, shape = np.random.default_rng(0), (NEURONS, TARGETS)
    given = (
        rng.integers(0, 2, (STEPS, BATCH, NEURONS)).astype(float),
        rng.normal(size=shape),
        rng.integers(0, LONGEST, shape) + rng.uniform(0.2, 0.8, shape),
        rng.normal(size=(LONGEST, BATCH, TARGETS)),
        rng.normal(size=TARGETS),
    )
    with jax.enable_x64(True):
        arrays = tuple(map(jnp.asarray, given))

        def run_one(*each):
            *own, pending, bias = map(jnp.asarray, each)  # the differences that it takes are arrays of NumPy
            return run(*own, None, pending, bias=bias)

        check_grads(run_one, arrays, 1, ["rev"], 1e-6, 1e-6)


@each_implementation
@pytest.mark.parametrize("hole", [np.nan, np.inf])
def test_weights_that_are_not_finite_stay_at_their_synapse(implementation: str, hole: float) -> None:
    """A neuron that does not spike, and a share of 0, add nothing."""
    spikes = jnp.zeros((3, 1, 2)).at[0, 0, 0].set(1)
    weights, delays = jnp.array([[hole, 1.0], [hole, hole]]), jnp.ones((2, 2))
    currents, left = run(spikes, weights, delays, implementation=implementation)
    np.testing.assert_array_equal(currents[:, 0], [[0, 0], [hole, 1], [0, 0]])
    np.testing.assert_array_equal(left, 0)


@needs_kernels
@pytest.mark.parametrize(
    "neurons, targets, steps, longest",
    [(0, 3, 2, 2), (3, 0, 2, 2), (3, 2, 0, 2), (3, 2, 3, 0), (70, 40, 30, 9)],
)
def test_any_size(neurons: int, targets: int, steps: int, longest: int) -> None:
    """Nothing at all, delays of 0 alone, and enough for several threads; rounding of sums of up to 700 numbers."""
    rng, shape = np.random.default_rng(0), (neurons, targets)
    each = rng.random((steps, 3, neurons)) < 0.2, rng.normal(size=shape), rng.uniform(0, longest, shape)
    given = tuple(jnp.asarray(own, jnp.float32) for own in each)

    @functools.partial(jit, static_argnums=0)
    def of(implementation: str, *own):
        out, pull_back = jax.vjp(lambda *a: run(*a, max_delay=longest, implementation=implementation), *own)
        return out, pull_back(jax.tree.map(jnp.cos, out))

    chex.assert_trees_all_close(of("cpu", *given), of("composed", *given), rtol=1e-4, atol=1e-4)


@needs_kernels
@pytest.mark.parametrize("ends", [[9, 3, 20, -5], [-7, -7, 100, 2**31 - 1], [5, 5, 5, 0]])
def test_ends_in_any_order_reach_no_other_memory(ends: list[int]) -> None:
    """Nothing is promised about the numbers, but that all of them are finite and that nobody else's are read."""
    synapses = Synapses(array(ends, jnp.int32), jnp.zeros(SYNAPSES, jnp.uint16), TARGETS)
    given = jnp.ones((STEPS, BATCH, NEURONS)), jnp.ones(SYNAPSES), jnp.full(SYNAPSES, jnp.nan)
    for result in jax.tree.leaves(
        compiled("cpu", given, synapses, jax.tree.map(jnp.ones_like, cotangents()))
    ):
        assert bool(jnp.all(jnp.abs(result) <= 100 * SYNAPSES))


SPIKES, MATRIX, LISTED = jnp.zeros((2, 1, 3)), jnp.zeros((3, 2)), Synapses.from_mask(np.ones((3, 2), bool))
REFUSED = {
    "delayed_spike_matmul: `spikes` must have shape [time, batch, neurons], got [1, 3]. "
    "Add the missing axes, for instance spikes[:, None].": lambda: run(SPIKES[0], MATRIX, MATRIX),
    "delayed_spike_matmul: `weights` must have shape [neurons, targets] = [3, any], got [2, 2]. "
    "Pass one row for every neuron, or synapses.": lambda: run(SPIKES, MATRIX[1:], MATRIX),
    "delayed_spike_matmul: `delays` must have shape [neurons, targets] = [3, 2], got [3, 1]. "
    "Pass one for each weight.": lambda: run(SPIKES, MATRIX, MATRIX[:, 1:]),
    "delayed_spike_matmul: `delays` must have a floating-point dtype, got int32. "
    "Cast it with delays.astype(jnp.float32).": lambda: run(SPIKES, MATRIX, MATRIX.astype(int)),
    "delayed_spike_matmul: `weights` must have shape [synapses] = [6], got [3, 2]. "
    "Pass one for each synapse.": lambda: run(SPIKES, MATRIX, MATRIX, LISTED),
    "delayed_spike_matmul: `synapses` must be Synapses or None, got bool[3, 2]. Make "
    "them with Synapses.from_mask, for instance.": lambda: run(SPIKES, MATRIX, MATRIX, np.ones((3, 2), bool)),
    "delayed_spike_matmul: `pending` must have shape [max_delay, batch, targets] = [3, 1, 2], got [4, 1, 2]. "
    "Pass "
    "that of the previous call, or None.": lambda: run(SPIKES, MATRIX, MATRIX, None, jnp.zeros((4, 1, 2))),
    "delayed_spike_matmul: `bias` must have shape [targets] = [2], got [3]. "
    "Pass one for each target.": lambda: run(SPIKES, MATRIX, MATRIX, bias=jnp.zeros(3)),
    "delayed_spike_matmul: `max_delay` must be an integer of at least 0, got -1. Pass 0 or more.": lambda: (
        run(SPIKES, MATRIX, MATRIX, max_delay=-1)
    ),
}
test_what_does_not_fit_is_refused = refusals(REFUSED)
