"""`prune` and `regrow`: as many synapses as before, where they should be."""

from typing import Any

import hypothesis
import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from snnjax import Synapses, prune, regrow
from tests.errors.refusals import refusals
from tests.numbers import array

NEURONS, TARGETS = 5, 7
step = jax.jit(lambda synapses, arrays, kept, scores: regrow(synapses, arrays, kept, scores))


@pytest.mark.parametrize("fraction, left", [(0.0, 4), (0.3, 3), (0.5, 2), (1.0, 0)])
def test_smallest_weights_are_pruned(fraction: float, left: int) -> None:
    weights = jnp.array([0.5, -3.0, 1.0, -0.1])
    kept = prune(weights, fraction)
    assert np.flatnonzero(kept).tolist() == sorted([1, 2, 0, 3][:left])


def test_equal_weights_are_pruned_by_their_order() -> None:
    assert prune(jnp.ones(4), 0.5).tolist() == [False, False, True, True]


@hypothesis.given(seed=st.integers(0, 2**32 - 1))
@hypothesis.settings(max_examples=25)
def test_as_many_grow_where_scores_are_largest(seed: int) -> None:
    """Beside a plain loop over all pairs, in order of their scores; several synapses may have one pair."""
    rng = np.random.default_rng(seed)
    pairs, kept = np.sort(rng.integers(0, NEURONS * TARGETS, 12)), rng.random(12) < rng.random()
    ends = np.searchsorted(pairs, TARGETS * np.arange(1, NEURONS + 1))
    synapses = Synapses(array(ends, jnp.int32), array(pairs % TARGETS, jnp.uint16), TARGETS)
    weights = rng.integers(-8, 8, 12).astype(np.float32)
    scores = rng.permutation(NEURONS * TARGETS).astype(np.float32)
    numbers, sums = np.zeros((2, NEURONS * TARGETS))
    np.add.at(numbers, pairs[kept], 1)
    np.add.at(sums, pairs[kept], weights[kept])
    free = [place for place in np.argsort(-scores) if numbers[place] == 0]
    numbers[free[: 12 - kept.sum()]] = 1
    given = (jnp.asarray(weights), jnp.zeros(12)), jnp.asarray(kept), scores.reshape(NEURONS, TARGETS)
    new, (moved, _) = step(synapses, *given)
    np.testing.assert_array_equal(new.to_dense(jnp.ones(12)).ravel(), numbers)
    np.testing.assert_array_equal(new.to_dense(moved).ravel(), sums)
    assert new.targets.dtype == synapses.targets.dtype


def test_synapses_of_all_pairs_grow_again_where_they_were() -> None:
    synapses = Synapses.from_mask(np.ones((2, 3), bool))
    new, weights = regrow(synapses, jnp.arange(1.0, 7.0), jnp.array([True, False] * 3), jnp.zeros((2, 3)))
    assert new.to_dense(weights).tolist() == [[1, 0, 3], [0, 5, 0]]


def test_nothing_grows_where_it_must_not() -> None:
    """Of four pairs two have a score of -inf, and one a synapse that is kept: one of three others finds a place."""
    synapses = Synapses(jnp.array([3, 4]), jnp.array([0, 0, 1, 0], jnp.uint16), 2)
    scores = jnp.array([[9.0, -jnp.inf], [-jnp.inf, 0.0]])
    new, weights = regrow(synapses, jnp.arange(1.0, 5.0), jnp.arange(4) == 1, scores)
    assert new.to_dense(weights + 1).tolist() == [[3, 0], [0, 1]]
    assert new.targets.tolist() == [0, 1, 2, 2]


SYNAPSES = Synapses.from_mask(np.ones((2, 3), bool))
NOTHING: Any = None
WEIGHTS, KEPT, SCORES = jnp.zeros(6), jnp.ones(6, bool), jnp.zeros((2, 3))
REFUSED = {
    "prune: `weights` must have shape [synapses], got [1, 6]. Pass those of one connection.": lambda: prune(
        WEIGHTS[None], 0.5
    ),
    "prune: `fraction` must be between 0 and 1, got 1.5. "
    "Pass the share of synapses to prune, such as 0.3.": lambda: prune(WEIGHTS, 1.5),
    "regrow: `synapses` must be Synapses, got None. Pass those of the connection.": lambda: regrow(
        NOTHING, WEIGHTS, KEPT, SCORES
    ),
    "regrow: `arrays` must have shape [synapses] = [6], got [5]. Pass one for each synapse.": lambda: regrow(
        SYNAPSES, WEIGHTS[1:], KEPT, SCORES
    ),
    "regrow: `kept` must have shape [synapses] = [6], got [5]. Pass one for each synapse.": lambda: regrow(
        SYNAPSES, WEIGHTS, KEPT[1:], SCORES
    ),
    "regrow: `kept` must be bool, got float32. Use prune.": lambda: regrow(
        SYNAPSES, WEIGHTS, WEIGHTS, SCORES
    ),
    "regrow: `scores` must have shape [neurons, targets] = [2, 3], got [3, 2]. "
    "Pass one for each pair.": lambda: regrow(SYNAPSES, WEIGHTS, KEPT, SCORES.T),
}
test_what_does_not_fit_is_refused = refusals(REFUSED)
