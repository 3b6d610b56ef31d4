"""`SparseSpikes`: round trips, overflow, indexing, JAX transforms, ids out of range."""

import dataclasses
import functools
import re

import hypothesis
import hypothesis.extra.numpy as hnp
import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.typing import DTypeLike

from snnjax import SparseSpikes
from snnjax._sparse_spikes import check_spikes, gather, list_ids, scatter
from snnjax._types import id_dtype
from tests.ops import references

DENSE = jnp.array(
    [[[0.0, 1.0, 0.0, 1.0], [1.0, 1.0, 1.0, 0.0]], [[0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 2.0, 0.5]]]
)
LEAVES = ("ids", "values", "num_spikes", "num_listed", "num_dropped")
binary_rows = hnp.arrays(np.float32, (2, 3, 5), elements=st.sampled_from([0.0, 0.0, 1.0]))


def test_from_dense_lists_in_order_of_id() -> None:
    spikes = SparseSpikes.from_dense(DENSE, capacity=3)
    assert spikes.ids.tolist() == [[[1, 3, 4], [0, 1, 2]], [[4, 4, 4], [2, 3, 4]]]
    assert spikes.values.tolist() == [[[1, 1, 0], [1, 1, 1]], [[0, 0, 0], [2, 0.5, 0]]]
    assert spikes.num_spikes.tolist() == spikes.num_listed.tolist() == [[2, 3], [0, 2]]
    assert (spikes.num_neurons, spikes.capacity, spikes.shape) == (4, 3, (2, 2, 4))
    assert (spikes.ids.dtype, spikes.values.dtype, spikes.num_spikes.dtype) == (
        jnp.uint16,
        jnp.float32,
        jnp.int32,
    )
    assert spikes.dtype == jnp.float32


def test_overflow_counts_what_did_not_fit() -> None:
    spikes = SparseSpikes.from_dense(DENSE, capacity=2)
    assert spikes.num_spikes.tolist() == [[2, 3], [0, 2]]
    assert spikes.num_listed.tolist() == [[2, 2], [0, 2]]
    assert spikes.num_dropped.tolist() == [[0, 1], [0, 0]]
    assert spikes.ids[0, 1].tolist() == [0, 1]
    assert SparseSpikes.from_dense(DENSE, capacity=0).num_dropped.tolist() == [[2, 3], [0, 2]]


@functools.partial(jax.jit, static_argnums=1)
def round_trip(dense: jax.Array, capacity: int) -> jax.Array:
    return SparseSpikes.from_dense(dense, capacity).to_dense()


@hypothesis.given(dense=binary_rows)
@pytest.mark.parametrize("capacity", [0, 2, 5, 7])
def test_round_trip_keeps_what_fits(dense: np.ndarray, capacity: int) -> None:
    kept = dense * (np.cumsum(dense, axis=-1) <= capacity)
    np.testing.assert_array_equal(round_trip(dense, capacity), kept)


@jax.jit
def list_five(ids: jax.Array) -> tuple[SparseSpikes, jax.Array]:
    spikes = SparseSpikes.from_ids(ids, 5)
    return spikes, spikes.to_dense()


@hypothesis.given(ids=hnp.arrays(np.int32, (3, 4), elements=st.integers(-2, 6)))
def test_from_ids_to_dense_counts_each_id_in_range(ids: np.ndarray) -> None:
    spikes, dense = list_five(ids)
    counts = [[np.sum(row == neuron) for neuron in range(5)] for row in ids]
    np.testing.assert_array_equal(dense, counts)
    used = (ids >= 0) & (ids < 5)
    np.testing.assert_array_equal(spikes.num_spikes, used.sum(-1))
    np.testing.assert_array_equal(spikes.num_listed, used.sum(-1))
    np.testing.assert_array_equal(spikes.ids, np.where(used, ids, 5))


@pytest.mark.parametrize(
    "dtype, num_neurons, largest",
    [(np.uint8, 300, 255), (np.int8, 300, 127), (np.uint16, 70_000, 65_535), (np.uint32, 3, 2)],
)
def test_from_ids_takes_ids_of_any_dtype(dtype: DTypeLike, num_neurons: int, largest: int) -> None:
    """No ids are lost if there are more neurons than the dtype of the ids can represent."""
    unused = min(np.iinfo(dtype).max, num_neurons)
    spikes = SparseSpikes.from_ids(np.array([0, largest, unused], dtype), num_neurons)
    assert spikes.ids.tolist() == [0, largest, unused]
    lists = SparseSpikes(
        np.array([0, largest], dtype), jnp.ones(2), jnp.int32(2), jnp.int32(2), jnp.int32(0), num_neurons
    )
    assert jnp.flatnonzero(lists.to_dense()).tolist() == [0, largest]


def test_ids_beyond_32_bits_are_refused_not_wrapped() -> None:
    with pytest.raises(ValueError, match=re.escape("`ids` must be between 0 and 3, got 4294967296. ")):
        SparseSpikes.from_ids(np.array([1 << 32, 1], np.int64), 3)


def test_ids_that_are_no_integers_are_refused() -> None:
    spikes = dataclasses.replace(SparseSpikes.from_dense(DENSE, 2), ids=jnp.ones((2, 2, 2)))
    hint = "Build it with SparseSpikes.from_ids or from_dense."
    text = f"spike_matmul: `spikes.ids` must hold integers, got float32. {hint}"
    with pytest.raises(ValueError, match=f"^{re.escape(text)}$"):
        check_spikes("spike_matmul", "spikes", spikes)


@pytest.mark.parametrize("num_neurons, dtype", [(0, "uint16"), (65_535, "uint16"), (65_536, "int32")])
def test_ids_are_short_while_the_pad_id_fits(num_neurons: int, dtype: str) -> None:
    assert id_dtype(num_neurons) == dtype
    ids = [num_neurons - 1, num_neurons] if num_neurons else [0]
    spikes = SparseSpikes.from_ids(jnp.array(ids), num_neurons)
    assert spikes.ids.dtype == dtype
    assert spikes.num_spikes == min(num_neurons, 1)
    assert spikes.ids.tolist() == ids
    assert SparseSpikes.from_dense(jnp.zeros((1, num_neurons)), 1).ids.tolist() == [[num_neurons]]


@pytest.mark.parametrize("dtype", [np.uint8, bool, np.int32])
def test_from_dense_takes_whole_numbers(dtype: DTypeLike) -> None:
    spikes = SparseSpikes.from_dense(np.array([0, 1, 1], dtype), 2)
    assert spikes.ids.tolist() == [1, 2]
    assert spikes.values.dtype == jnp.float32


@pytest.mark.parametrize("index", [0, -1, (1, 0), slice(1), (slice(None), 1), None, ..., (..., 0), (0, ...)])
def test_index_acts_on_leading_axes(index) -> None:
    """As on the dense array without its last axis, an ellipsis included."""
    row = np.arange(4).reshape(2, 2)
    slots = 10 * row[:, :, None] + np.arange(3)
    spikes = SparseSpikes(slots, slots + 0.5, row, row + 4, row + 8, 100)
    picked = spikes[index]
    np.testing.assert_array_equal(picked.num_spikes, row[index])
    np.testing.assert_array_equal(picked.num_listed, row[index] + 4)
    np.testing.assert_array_equal(picked.num_dropped, row[index] + 8)
    np.testing.assert_array_equal(picked.ids, 10 * row[index][..., None] + np.arange(3))
    np.testing.assert_array_equal(picked.values, picked.ids + 0.5)


def test_index_by_an_array_picks_a_batch() -> None:
    spikes = SparseSpikes.from_dense(DENSE, capacity=2)
    np.testing.assert_array_equal(
        spikes[:, jnp.array([1, 1, 0])].to_dense(), spikes.to_dense()[:, jnp.array([1, 1, 0])]
    )


def test_iteration_ends_with_the_leading_axis() -> None:
    spikes = SparseSpikes.from_dense(DENSE, capacity=3)
    for step, dense in zip(spikes, DENSE, strict=True):
        np.testing.assert_array_equal(step.to_dense(), dense)
    assert list(spikes[:0]) == []
    with pytest.raises(TypeError):  # as of an array without axes
        iter(spikes[0, 0])


def test_index_of_a_neuron_is_refused() -> None:
    with pytest.raises(IndexError):
        SparseSpikes.from_dense(DENSE, capacity=2)[0, 0, 0]


def test_duplicates_are_added_before_they_are_rounded() -> None:
    """A sum of ones in bfloat16 stops at 256."""
    spikes = SparseSpikes.from_ids(jnp.zeros(300, jnp.int32), 2).with_values(jnp.bfloat16)
    np.testing.assert_array_equal(spikes.to_dense(), jnp.array([300, 0], jnp.bfloat16), strict=True)


def test_gradient_of_to_dense_is_that_of_the_values() -> None:
    """Ids outside the range have none, duplicates have the same."""
    count = jnp.array(4)
    spikes = SparseSpikes(jnp.array([2, 0, 2, 9]), jnp.ones(4), count, count, 0 * count, 3)
    gradient = jax.grad(lambda s: jnp.vdot(s.to_dense(), jnp.array([1.0, 2.0, 3.0])), allow_int=True)(spikes)
    assert gradient.values.tolist() == [3.0, 1.0, 3.0, 0.0]


def test_lists_of_ones_have_no_values() -> None:
    events = SparseSpikes.from_ids(jnp.array([[1, 3, 4], [0, 4, 4]]), 4)
    assert events.values is None
    assert len(jax.tree.leaves(events)) == 4
    assert (events.dtype, events.shape, events[0].values) == (jnp.float32, (2, 4), None)
    assert events.to_dense().tolist() == [[0, 1, 0, 1], [1, 0, 0, 0]]
    assert [step.to_dense().tolist() for step in events] == events.to_dense().tolist()
    check_spikes("op", "spikes", events)
    half = events.with_values(jnp.float16)
    assert (half.dtype, half.with_values().dtype, half.with_values(jnp.float32).dtype) == (
        *(jnp.float16, jnp.float16, jnp.float32),
    )
    np.testing.assert_array_equal(half.values, np.ones((2, 3)))
    np.testing.assert_array_equal(half.to_dense(), events.to_dense())


def test_gradient_of_lists_of_ones_has_no_values() -> None:
    """It has where they were given an array."""
    events = SparseSpikes.from_ids(jnp.array([2, 0, 3]), 3)
    slope = jax.grad(lambda s: jnp.vdot(s.to_dense(), jnp.array([1.0, 2.0, 3.0])), allow_int=True)
    assert slope(events).values is None
    assert slope(events.with_values()).values.tolist() == [3.0, 1.0, 0.0]


def test_lists_pass_through_jit_vmap_scan_and_tree_map() -> None:
    spikes = SparseSpikes.from_dense(DENSE, capacity=3)
    assert jax.jit(lambda s: s)(spikes).num_neurons == 4
    np.testing.assert_array_equal(jax.vmap(lambda s: s.to_dense())(spikes), DENSE)
    np.testing.assert_array_equal(jax.vmap(lambda s: s.to_dense(), 1, 1)(spikes), DENSE)
    _, scanned = jax.lax.scan(lambda c, s: (c, (s, s.to_dense())), 0, spikes)
    np.testing.assert_array_equal(scanned[1], DENSE)
    np.testing.assert_array_equal(scanned[0].ids, spikes.ids)
    doubled = jax.tree.map(lambda leaf: jnp.concatenate([leaf, leaf]), spikes)
    assert doubled.shape == (4, 2, 4)
    assert [getattr(spikes, name) is leaf for name, leaf in zip(LEAVES, jax.tree.leaves(spikes), strict=True)]
    assert len(jax.tree.leaves(spikes)) == len(LEAVES)


@pytest.mark.parametrize("capacity", [2, 4])
def test_lists_can_be_donated(capacity: int) -> None:
    """No two leaves share a buffer, which JAX refuses to donate twice."""
    listed = SparseSpikes.from_dense(DENSE, capacity)
    for spikes in (listed, SparseSpikes.from_ids(listed.ids, listed.num_neurons)):
        kept = spikes.to_dense()
        donated = jax.jit(lambda given: given, donate_argnums=0)(spikes)
        np.testing.assert_array_equal(donated.to_dense(), kept)


def test_building_traces_under_jit_and_vmap() -> None:
    built = jax.jit(jax.vmap(lambda row: SparseSpikes.from_dense(row, 3)))(DENSE)
    for name in LEAVES:
        np.testing.assert_array_equal(getattr(built, name), getattr(SparseSpikes.from_dense(DENSE, 3), name))


def test_lists_are_static_in_their_number_of_neurons() -> None:
    ids = jnp.array([[0]])
    trees = [jax.tree.structure(SparseSpikes.from_ids(ids, n)) for n in (3, 3, 4)]
    assert trees[0] == trees[1] != trees[2]


EXTREMES = [-(2**31), -5, -1, 0, 2, 3, 4, 2**31 - 1]


def test_scatter_and_gather_touch_only_ids_in_range() -> None:
    ids = jnp.array([EXTREMES], jnp.int32)
    values = jnp.arange(1.0, 9.0)[None]
    assert scatter(ids, values, 3).tolist() == [[4.0, 0.0, 5.0]]
    assert gather(jnp.array([[10.0, 20.0, 30.0]]), ids).tolist() == [[0, 0, 0, 10.0, 30.0, 0, 0, 0]]
    bad = jnp.where(ids == 0, values, jnp.nan)
    assert scatter(jnp.where(ids == 2, -1, ids), bad, 3).tolist() == [[4.0, 0.0, 0.0]]


@pytest.mark.parametrize("rows, capacity, neurons", [(0, 2, 3), (2, 0, 3), (2, 2, 0), (0, 0, 0)])
def test_empty_axes_give_empty_results(rows: int, capacity: int, neurons: int) -> None:
    ids = jnp.zeros((rows, capacity), jnp.int32)
    assert scatter(ids, jnp.ones((rows, capacity)), neurons).shape == (rows, neurons)
    assert gather(jnp.ones((rows, neurons)), ids).tolist() == [[float(neurons > 0)] * capacity] * rows
    listed = list_ids(jnp.ones((rows, neurons), bool), capacity)
    assert listed.shape == (rows, capacity)
    assert SparseSpikes.from_dense(jnp.ones((rows, neurons)), capacity).to_dense().shape == (rows, neurons)


@jax.jit
def list_two_groups(first: jax.Array, second: jax.Array) -> jax.Array:
    return list_ids(first, 4, then=second)


@hypothesis.given(dense=binary_rows, then=binary_rows)
def test_list_ids_puts_the_second_group_behind_the_first(dense: np.ndarray, then: np.ndarray) -> None:
    first, second = dense > 0, (then > 0) & (dense == 0)
    ids = np.asarray(list_two_groups(first, second))
    for row in np.ndindex(first.shape[:-1]):
        expected = [*np.flatnonzero(first[row]), *np.flatnonzero(second[row])][:4]
        assert ids[row].tolist() == expected + [5] * (4 - len(expected))


def test_to_dense_equals_a_loop_over_the_list() -> None:
    rng = np.random.default_rng(0)
    ids, values = rng.integers(-1, 6, (3, 4)), rng.integers(-2, 3, (3, 4)).astype(np.float32)
    count = np.full(3, 4, np.int32)
    spikes = SparseSpikes(ids.astype(np.int32), values, count, count, 0 * count, 5)
    np.testing.assert_array_equal(jax.tree.map(jnp.asarray, spikes).to_dense(), references.to_dense(spikes))
