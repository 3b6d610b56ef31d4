"""`spike_matmul`: sums over lists, exact gradients, and ids and weights that must not leak."""

import dataclasses

import chex
import hypothesis
import hypothesis.extra.numpy as hnp
import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from snnjax import SparseSpikes, spike_matmul
from snnjax.ops.spike_matmul import prefers_lists
from tests.ops import references
from tests.ops.common import check_gradient, jit

# The reference evaluates few short lists by gathering rows, all else by a dense product: both forms are tested.
NEURONS = {"dense": 5, "lists": 100}
each_form = pytest.mark.parametrize("form", NEURONS)
EXTREMES = [-(2**31), -101, -6, -5, -1, 5, 100, 101, 2**31 - 1]
eighths = st.integers(-16, 16).map(lambda n: n / 8)
ids_2x4 = hnp.arrays(np.int32, (2, 4), elements=st.integers(0, 4) | st.sampled_from(EXTREMES))
values_2x4 = hnp.arrays(np.float32, (2, 4), elements=eighths | st.just(0.0))


def lists(ids, values, num_neurons: int) -> SparseSpikes:
    count = jnp.full(np.shape(ids)[:-1], np.shape(ids)[-1], jnp.int32)
    return SparseSpikes(
        jnp.asarray(ids, jnp.int32), jnp.asarray(values, jnp.float32), count, count, 0 * count, num_neurons
    )


def weights_for(form: str) -> np.ndarray:
    return (np.arange(NEURONS[form] * 3).reshape(-1, 3) % 17 - 8).astype(np.float32) / 4


@jit
def value_and_gradients(ids, values, weights, g):
    out, pull_back = jax.vjp(lambda v, w: spike_matmul(lists(ids, v, len(weights)), w), values, weights)
    return out, *pull_back(g)


def by_loops(ids, values, weights, g):
    """Value and gradients from their definitions."""
    out = references.spike_matmul(jax.tree.map(np.asarray, lists(ids, values, len(weights))), weights)
    d_values, d_weights = np.zeros_like(values), np.zeros_like(weights)
    for place, neuron in np.ndenumerate(ids):
        if 0 <= neuron < len(weights):
            d_values[place] = np.sum(weights[neuron] * g[place[0]])
            d_weights[neuron] += values[place] * g[place[0]]
    return out, d_values, d_weights


@each_form
@hypothesis.given(ids=ids_2x4, values=values_2x4)
def test_value_and_gradients_equal_loops(form: str, ids: np.ndarray, values: np.ndarray) -> None:
    """To the bit, sums being exact: duplicates add, ids outside the range contribute nothing, not even gradient."""
    weights, g = weights_for(form), np.float32([[1, -2, 0.5], [0, 4, -1]])
    chex.assert_trees_all_equal(
        value_and_gradients(ids, values, weights, g), by_loops(ids, values, weights, g), strict=True
    )


@each_form
def test_forms_are_what_they_say(form: str) -> None:
    assert prefers_lists(jnp.zeros((2, 4), jnp.int32), NEURONS[form]) == (form == "lists")


@each_form
def test_product_by_hand(form: str) -> None:
    weights = jnp.zeros((NEURONS[form], 2)).at[:3].set(jnp.array([[1.0, 10], [2, 20], [3, 30]]))
    spikes = lists([[0, 2, 2, -1], [1, NEURONS[form], 0, 0]], [[1, 1, 1, 9], [0.5, 9, 0, 2]], NEURONS[form])
    assert spike_matmul(spikes, weights).tolist() == [[7, 70], [3, 30]]


@each_form
@pytest.mark.parametrize("hole", [np.nan, np.inf, -np.inf])
def test_weights_that_are_not_finite_stay_in_their_row(form: str, hole: float) -> None:
    """An entry of value 0 adds nothing whatever its weights; a listed spike brings them in."""
    weights = weights_for(form)
    weights[3, 1] = hole
    ids = np.int32([[0, 3], [3, 1]])
    out = spike_matmul(lists(ids, [[1, 0], [-1, 1]], len(weights)), jnp.asarray(weights))
    np.testing.assert_array_equal(out[0], weights[0])
    np.testing.assert_array_equal(out[1], weights[1] - weights[3])


@each_form
def test_infinities_of_both_signs_cancel_to_nan(form: str) -> None:
    weights = weights_for(form)
    weights[0, 0], weights[1, 0], weights[2, 0] = np.inf, -np.inf, np.inf
    spikes = lists([[0, 1, 4, 4], [0, 2, 4, 4]], [[1, 1, 0, 0], [1, 1, 0, 0]], len(weights))
    out = spike_matmul(spikes, jnp.asarray(weights))
    np.testing.assert_array_equal(out[:, 0], [np.nan, np.inf])
    spikes = lists([[0, 1, 4, 4], [0, 2, 4, 4]], [[1, -1, 0, 0], [-1, -2, 0, 0]], len(weights))
    np.testing.assert_array_equal(spike_matmul(spikes, jnp.asarray(weights))[:, 0], [np.inf, -np.inf])


@each_form
def test_value_of_zero_still_receives_its_gradient(form: str) -> None:
    weights, ids = weights_for(form), np.int32([[1, 2, 3, -1]])
    nothing, ones = np.zeros((1, 4), np.float32), np.ones((1, 3), np.float32)
    _, d_values, d_weights = value_and_gradients(ids, nothing, weights, ones)
    assert d_values[0].tolist() == [*weights[1:4].sum(-1), 0.0]
    assert not np.any(d_weights)


@each_form
def test_value_of_zero_has_a_derivative_in_plain_jax(form: str) -> None:
    weights, ids = jnp.asarray(weights_for(form)), [[1, 2, 3, -1]]

    def total(values):
        return jnp.sum(spike_matmul(lists(ids, values, len(weights)), weights, implementation="composed"))

    assert jax.grad(total)(jnp.zeros((1, 4)))[0].tolist() == [*weights[1:4].sum(-1).tolist(), 0.0]


@each_form
def test_gradient_equals_finite_differences(form: str) -> None:
    ids = np.int32([[1, 2, 2, -1], [0, 4, NEURONS[form], 1]])
    with jax.enable_x64(True):
        values = jnp.asarray(np.random.default_rng(0).normal(size=(2, 4)))
        weights = jnp.asarray(weights_for(form), jnp.float64)
        spikes = lists(ids, values, len(weights))
        check_gradient(spike_matmul, (dataclasses.replace(spikes, values=values), weights))


@pytest.mark.parametrize(
    "rows, capacity, neurons, outputs", [(0, 2, 3, 2), (2, 0, 3, 2), (2, 2, 0, 2), (2, 2, 3, 0)]
)
def test_empty_axes_give_zeros(rows: int, capacity: int, neurons: int, outputs: int) -> None:
    ids = np.zeros((rows, capacity), np.int32) + (neurons == 0)
    shapes = (rows, capacity), (neurons, outputs), (rows, outputs)
    results = value_and_gradients(ids, *(np.ones(shape, np.float32) for shape in shapes))
    assert [r.shape for r in results] == [(rows, outputs), (rows, capacity), (neurons, outputs)]
    if 0 in (rows, capacity, neurons):
        assert not any(np.any(r) for r in results)


def test_leading_axes_are_kept() -> None:
    spikes = SparseSpikes.from_ids(jnp.array([[[0, 1]], [[2, 3]], [[1, 3]]]), 3)
    weights = jnp.array([[1.0], [2.0], [4.0]])
    assert spike_matmul(spikes, weights).tolist() == [[[3.0]], [[4.0]], [[2.0]]]
    assert spike_matmul(spikes[0, 0], weights).tolist() == [3.0]


def test_forms_agree_on_the_same_lists() -> None:
    """Two rows go by lists, the same rows among many by the dense product."""
    weights = weights_for("lists")
    ids, values = np.int32([[7, 7, 93, 100], [0, 99, -1, 5]]), np.float32([[1, 2, -1, 4], [1, 0, 8, 0.5]])
    few = spike_matmul(lists(ids, values, 100), jnp.asarray(weights))
    many = spike_matmul(lists(np.tile(ids, (5, 1)), np.tile(values, (5, 1)), 100), jnp.asarray(weights))
    np.testing.assert_array_equal(np.tile(few, (5, 1)), many)
