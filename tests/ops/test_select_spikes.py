"""`select_spikes`: what is listed, in which order, and what the gradient reaches."""

import functools

import chex
import hypothesis
import hypothesis.extra.numpy as hnp
import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.typing import DTypeLike

from snnjax import select_spikes, spike_matmul
from snnjax.ops.select_spikes import cap, cap_by_ranks, is_overfull
from snnjax.surrogates import Surrogate
from tests.cases import as_numpy
from tests.numbers import array
from tests.ops import references
from tests.ops.common import jit

NEURONS = 7
# Few distinct values, so that ties are common; thresholds among them, so that membranes meet them.
levels = st.sampled_from([-np.inf, -1.0, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, np.inf, np.nan])
membranes = hnp.arrays(np.float32, (3, NEURONS), elements=levels)
thresholds = hnp.arrays(np.float32, NEURONS, elements=st.sampled_from([0.5, 1.0, 1.25]))


@functools.cache
def compiled(capacity: int):
    return jit(functools.partial(select_spikes, capacity=capacity))


@pytest.mark.parametrize("capacity", [0, 1, 3, NEURONS, NEURONS + 2])
@hypothesis.given(v=membranes, threshold=thresholds, gap=st.sampled_from([0.0, 0.5, np.inf]))
def test_lists_equal_the_rule_by_loops(
    v: np.ndarray, threshold: np.ndarray, gap: float, capacity: int
) -> None:
    arguments = v, threshold, threshold - np.float32(gap)
    chex.assert_trees_all_equal(
        compiled(capacity)(*arguments), references.select_spikes(*arguments, capacity), strict=True
    )


@hypothesis.given(v=membranes, threshold=thresholds)
def test_lists_hold_spikes_first_and_sorted(v: np.ndarray, threshold: np.ndarray) -> None:
    """The promises one by one, without the reference."""
    spikes = as_numpy(compiled(3)(v, threshold, threshold - np.float32(0.5)))
    true_count = np.sum(v > threshold, axis=-1)
    np.testing.assert_array_equal(spikes.num_spikes, true_count)
    for row, (ids, values, listed) in enumerate(
        zip(spikes.ids, spikes.values, spikes.num_listed, strict=True)
    ):
        firing, near = ids[values == 1], ids[(values == 0) & (ids < NEURONS)]
        assert len(firing) == min(true_count[row], 3)
        assert len(firing) + len(near) == listed
        assert (ids[listed:] == NEURONS).all()
        assert [*ids[:listed]] == [*sorted(firing), *sorted(near)]
        assert (v[row, firing] > threshold[firing]).all()
        assert ((v[row, near] <= threshold[near]) & (v[row, near] > threshold[near] - 0.5)).all()


@functools.cache
def compiled_caps(capacity: int):
    """Both ways to limit masks to a capacity."""
    return jit(lambda *given: (cap(*given, capacity), cap_by_ranks(*given, capacity)))


@pytest.mark.parametrize("capacity", [0, 1, 3, 6])
def test_counting_ranks_equals_choosing_the_largest(capacity: int) -> None:
    """For many rows with ties, zeros of both signs, infinities and membranes that are not a number."""
    rng = np.random.default_rng(capacity)
    v = rng.choice(np.float32([-np.inf, -1, -0.0, 0, 0.5, 0.5, 1, 2, np.inf, np.nan]), (500, 7))
    spikes = (rng.random(v.shape) < 0.4) & (v > -np.inf)
    near = (rng.random(v.shape) < 0.5) & (v > -np.inf) & ~spikes
    largest, ranks = compiled_caps(capacity)(v, spikes, near)
    chex.assert_trees_all_equal(ranks, largest)


@pytest.mark.parametrize("capacity", [1, 300, 900])
def test_overflowing_lists_of_wide_rows_equal_the_reference(capacity: int) -> None:
    """Kernels sort the membranes of a wide row into buckets: some of these hold few membranes, some nearly all."""
    rng = np.random.default_rng(capacity)
    close, levels = rng.normal(1, 1e-3, (3, 2000)), np.round(rng.normal(1, 0.5, (3, 2000)), 1)
    far = np.where(rng.random((2, 2000)) < 0.01, np.inf, rng.normal(0, 1e-30, (2, 2000)))
    v = np.concatenate([close, levels, far, np.sinh(rng.normal(0, 20, (2, 2000)).clip(-80, 80))]).astype(
        np.float32
    )
    given = v, np.float32(1), np.float32(-1)
    both = [
        jit(functools.partial(select_spikes, capacity=capacity, implementation=name))(*given)
        for name in (None, "reference")
    ]
    chex.assert_trees_all_equal(*both, strict=True)


def test_largest_membranes_go_first_spikes_before_all() -> None:
    """Neuron 1 has the highest membrane, but its own threshold is higher still."""
    v = jnp.array([1.1, 3.0, 1.3, 1.2, 1.4])
    threshold = jnp.array([1.0, 4.0, 1.0, 1.0, 1.0])
    listed = [select_spikes(v, threshold, 0.0, capacity=capacity).ids.tolist() for capacity in range(6)]
    assert listed == [[], [4], [2, 4], [2, 3, 4], [0, 2, 3, 4], [0, 2, 3, 4, 1]]


@pytest.mark.parametrize("neurons", [100, 70_000])
def test_ties_are_broken_by_the_hash_of_the_id(neurons: int) -> None:
    """Not by place: the lowest ids are no favourites. The many neurons have ids of more than 16 bits."""
    ranks = sorted(range(neurons), key=references.murmur_finaliser)
    ids = select_spikes(jnp.full(neurons, 2.0), 1.0, 0.9, capacity=20).ids.tolist()
    assert ids == sorted(ranks[:20])
    assert 0.3 < np.mean(ids) / neurons < 0.7


def test_a_higher_membrane_beats_the_hash() -> None:
    v = jnp.full(100, 2.0).at[jnp.array([3, 77])].set(2.5)
    ids = select_spikes(v, 1.0, 0.9, capacity=3).ids.tolist()
    first = next(i for i in sorted(range(100), key=references.murmur_finaliser) if i not in (3, 77))
    assert ids == sorted([3, 77, first])


@hypothesis.given(v=membranes, order=st.permutations(range(3)))
def test_list_depends_on_its_row_alone(v: np.ndarray, order: list[int]) -> None:
    """Neither on the other rows, nor their order, nor the shape of the leading axes, nor vmap."""
    lists = compiled(3)(v, 1.0, 0.5)
    chex.assert_trees_all_equal(compiled(3)(v[order], 1.0, 0.5), lists[np.array(order)], strict=True)
    chex.assert_trees_all_equal(compiled(3)(v[:1], 1.0, 0.5), lists[:1], strict=True)
    chex.assert_trees_all_equal(compiled(3)(v[0], 1.0, 0.5), lists[0], strict=True)
    chex.assert_trees_all_equal(compiled(3)(v[:, None], 1.0, 0.5), lists[:, None], strict=True)
    chex.assert_trees_all_equal(MAPPED(v), lists, strict=True)


MAPPED = jit(jax.vmap(functools.partial(select_spikes, threshold=1.0, second_threshold=0.5, capacity=3)))


def test_not_a_number_is_never_listed_and_infinity_is() -> None:
    v = jnp.array([jnp.nan, jnp.inf, -jnp.inf, 1.0])
    spikes = select_spikes(v, 1.0, -jnp.inf, capacity=4)
    assert spikes.ids.tolist() == [1, 3, 4, 4]
    assert spikes.values.tolist() == [1, 0, 0, 0]
    assert (spikes.num_spikes.tolist(), spikes.num_listed.tolist()) == (1, 2)


def test_threshold_may_have_the_shape_of_the_membranes() -> None:
    v, threshold = jnp.ones((2, 1, 3)), jnp.array([[[0.5, 1.5, 0.5]], [[1.5, 1.5, 0.5]]])
    spikes = select_spikes(v, threshold, threshold - 1, capacity=3)
    assert spikes.ids.tolist() == [[[0, 2, 1]], [[2, 0, 1]]]
    assert spikes.num_spikes.tolist() == [[2], [1]]


@pytest.mark.parametrize("neurons, dtype", [(65_535, jnp.uint16), (65_536, jnp.int32)])
def test_ids_reach_the_last_neuron(neurons: int, dtype: DTypeLike) -> None:
    v = jnp.zeros(neurons).at[neurons - 1].set(2.0)
    spikes = select_spikes(v, 1.0, 0.9, capacity=2)
    assert spikes.ids.dtype == dtype
    assert spikes.ids.tolist() == [neurons - 1, neurons]


@pytest.mark.parametrize("shape", [(0, 3), (2, 0), (0, 2, 3), (2, 2, 0)])
def test_no_rows_or_no_neurons_give_empty_lists(shape: tuple[int, ...]) -> None:
    spikes = select_spikes(jnp.ones(shape), jnp.ones(shape), 0.9, capacity=2)
    assert spikes.shape == shape
    assert spikes.ids.shape == (*shape[:-1], 2)
    assert not np.any(spikes.num_listed)


def test_second_threshold_may_be_traced() -> None:
    """A schedule moves it without a second trace."""
    chex.clear_trace_counter()

    @jax.jit
    @chex.assert_max_traces(n=1)
    def listed(second_threshold: jax.Array) -> jax.Array:
        return select_spikes(jnp.array([0.2, 0.6, 2.0]), 1.0, second_threshold, capacity=3).num_listed

    assert [int(listed(second)) for second in (0.9, 0.5, 0.1, -jnp.inf)] == [1, 2, 3, 3]


@hypothesis.given(v=hnp.arrays(np.float32, (3, NEURONS), elements=st.integers(-16, 32).map(lambda n: n / 16)))
def test_gradient_is_the_surrogate_at_the_listed_ids_alone(v: np.ndarray) -> None:
    """Dropped spikes and neurons below the second threshold get none; the threshold gets the negative sum."""
    weights = np.arange(1.0, 10.0, dtype=np.float32).reshape(3, 3)
    lists, (d_v, d_threshold, d_second) = compiled_gradient(
        v, np.ones(NEURONS, np.float32), np.float32(0.5), weights
    )
    expected = np.zeros_like(v)
    slope = 1 / (1 + 2.0 * np.abs(v - 1)) ** 2
    for row, ids in enumerate(np.asarray(lists.ids)):
        for slot, neuron in enumerate(ids[ids < NEURONS]):
            expected[row, neuron] = weights[row, slot] * slope[row, neuron]
    # The division and the sum over three rows: a few ulp of float32.
    np.testing.assert_allclose(d_v, expected, rtol=1e-6)
    np.testing.assert_allclose(d_threshold, -expected.sum(0), rtol=1e-5)
    assert d_second == 0


@jit
def compiled_gradient(v, threshold, second_threshold, weights):
    def loss(*arguments):
        lists = select_spikes(*arguments, capacity=3, surrogate=Surrogate("superspike", 2.0))
        return jnp.vdot(lists.values, weights), lists

    gradients, lists = jax.grad(loss, (0, 1, 2), has_aux=True)(v, threshold, second_threshold)
    return lists, gradients


def test_gradient_of_a_membrane_that_is_not_a_number_is_zero() -> None:
    v = jnp.array([jnp.nan, 2.0, jnp.inf, -jnp.inf])
    gradient = jax.grad(lambda v: jnp.sum(select_spikes(v, 1.0, -jnp.inf, capacity=4).values))(v)
    np.testing.assert_allclose(gradient, [0.0, 1 / 121, 0.0, 0.0], rtol=1e-6)


@pytest.mark.parametrize("implementation", [None, "reference", "composed"])
def test_lists_of_a_scan_have_gradients_behind_it(implementation: str | None) -> None:
    """As if each step were read at once."""
    v, weights = (
        array(np.random.default_rng(0).normal(1, 0.3, (5, 2, 7)), jnp.float32),
        jnp.ones((7, 3)),
    )

    def select(row):
        return select_spikes(row, 1.0, 0.8, capacity=4, implementation=implementation)

    def behind(v):
        _, spikes = jax.lax.scan(lambda carry, row: (carry, select(row)), None, v)
        return jnp.sum(spike_matmul(spikes, weights, implementation=implementation) ** 2)

    def at_once(v):
        return jnp.sum(spike_matmul(select(v), weights, implementation=implementation) ** 2)

    chex.assert_trees_all_close(jit(jax.grad(behind))(v), jax.grad(at_once)(v), rtol=1e-6, strict=True)


@pytest.mark.parametrize("width", [1, 5, 16, 24, 2048])
def test_rows_with_more_than_a_list_holds_are_found(width: int) -> None:
    rng = np.random.default_rng(width)
    for share in (0.0, 0.1, 1.0):
        mask = rng.random((3, width)) < share
        most = int(mask.sum(axis=1).max())
        for capacity in (max(0, most - 1), most, most + 1):
            assert bool(is_overfull(jnp.asarray(mask), capacity)) == (most > capacity)
