"""`Synapses`: which exist, drawn uniformly, and refused in words."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from snnjax import Synapses, _synapses
from tests.errors.refusals import refusals

KEY = jax.random.key(0)


def mask_of(synapses: Synapses) -> np.ndarray:
    """How many synapses lead from each neuron to each target."""
    return np.asarray(synapses.to_dense(jnp.ones(synapses.num_synapses)))


@pytest.mark.parametrize("fan_out", [0, 1, 3, 6, 7, 12])
def test_fan_out_draws_that_many_different_targets(fan_out: int) -> None:
    """Few by drawing again, many by a permutation."""
    mask = mask_of(jax.jit(Synapses.fixed_fan_out, static_argnums=(1, 2, 3))(KEY, 5, 12, fan_out))
    assert mask.shape == (5, 12)
    assert set(mask.flat) <= {0.0, 1.0}
    assert mask.sum(axis=1).tolist() == [fan_out] * 5


@pytest.mark.parametrize("fan_in", [0, 1, 2, 4, 5])
def test_fan_in_draws_that_many_different_neurons(fan_in: int) -> None:
    mask = mask_of(jax.jit(Synapses.fixed_fan_in, static_argnums=(1, 2, 3))(KEY, 5, 12, fan_in))
    assert mask.shape == (5, 12)
    assert set(mask.flat) <= {0.0, 1.0}
    assert mask.sum(axis=0).tolist() == [fan_in] * 12


@pytest.mark.parametrize("fan_out", [2, 3])
def test_all_sets_of_targets_are_equally_likely(fan_out: int) -> None:
    """Of 6 choose 2, or 6 choose 3, sets: chi-squared of 6,000 draws below its quantile at 1 - 1e-6."""
    rows = mask_of(Synapses.fixed_fan_out(KEY, 6000, 6, fan_out))
    _, counts = np.unique(rows @ 2 ** np.arange(6), return_counts=True)
    sets = {2: 15, 3: 20}[fan_out]
    assert len(counts) == sets
    expected = 6000 / sets
    assert np.sum((counts - expected) ** 2) / expected < {2: 56.5, 3: 65.4}[fan_out]


def test_synapses_of_a_mask_are_those_of_a_sparse_array() -> None:
    mask = np.random.default_rng(0).random((7, 300)) < 0.1
    dense = np.where(mask, np.arange(1, 2101, dtype=np.float32).reshape(7, 300), 0)
    synapses = Synapses.from_mask(mask)
    counts = [0, *np.count_nonzero(mask, axis=1)]
    rows = SimpleNamespace(
        format="csr",
        indptr=np.cumsum(counts),
        indices=np.nonzero(mask)[1],
        data=dense[mask],
        shape=mask.shape,
    )
    same, weights = Synapses.from_scipy(rows)
    for made in (synapses, same):
        np.testing.assert_array_equal(made.to_dense(weights), dense)
    assert synapses.targets.dtype == jnp.uint16
    np.testing.assert_array_equal(synapses.sources(), np.nonzero(mask)[0])


def test_synapses_are_a_pytree_without_weights() -> None:
    synapses = Synapses.fixed_fan_out(KEY, 4, 70_000, 3)
    assert synapses.targets.dtype == jnp.int32
    leaves, tree = jax.tree.flatten(synapses)
    assert len(leaves) == 2
    assert jax.tree.unflatten(tree, leaves).num_targets == 70_000


@pytest.mark.parametrize("probability", [0.0, 0.02, 0.5, 1.0])
def test_pairs_are_connected_with_their_probability(probability: float) -> None:
    """The count, and the counts of each neuron and target, within five standard deviations; no pair twice."""
    mask = mask_of(Synapses.with_probability(KEY, 300, 200, probability))
    assert set(mask.flat) <= {0.0, 1.0}
    for count, expected in ((mask.sum(), 60_000), (mask.sum(axis=1), 200), (mask.sum(axis=0), 300)):
        deviation = (expected * probability * (1 - probability)) ** 0.5
        assert np.all(np.abs(count - expected * probability) <= 5 * deviation)


def test_pairs_are_drawn_independently() -> None:
    """The gaps between those that are connected have the variance of a geometric distribution, (1 - p) / p^2."""
    synapses = Synapses.with_probability(KEY, 500, 1000, 0.1)
    places = np.asarray(synapses.sources()) * 1000 + np.asarray(synapses.targets).astype(int)
    assert abs(np.var(np.diff(places)) / 90 - 1) < 0.1
    other = Synapses.with_probability(jax.random.key(1), 500, 1000, 0.1)
    both = np.sum(mask_of(synapses) * mask_of(other))
    assert abs(both - 5000) < 5 * 5000**0.5


def test_distance_decides_who_is_connected() -> None:
    """On a ring of length 1: those nearer than 0.1, and half of those nearer than 0.2, also across the border."""
    places = (jnp.arange(50, dtype=jnp.float32) / 50 + 0.001)[:, None]

    def kernel(distance: Any) -> Any:
        return jnp.where(distance < 0.105, 1.0, jnp.where(distance < 0.205, 0.5, 0.0))

    mask = mask_of(Synapses.by_distance(KEY, places, places[:40], kernel, period=1.0))
    apart = np.abs(np.arange(50)[:, None] - np.arange(40)[None])
    apart = np.minimum(apart, 50 - apart)
    assert np.all(mask[apart <= 5] == 1)
    assert np.all(mask[apart > 10] == 0)
    between = mask[(apart > 5) & (apart <= 10)]
    assert abs(between.mean() - 0.5) < 5 * 0.5 / between.size**0.5


def test_distance_of_many_is_looked_at_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_synapses, "_PAIRS_AT_ONCE", 7 * 30)
    places = jnp.zeros((20, 2)), jnp.ones((30, 2))
    right = lambda distance: jnp.abs(distance - 2**0.5) < 1e-6  # noqa: E731
    drawn = Synapses.by_distance(KEY, *places, lambda distance: right(distance).astype(jnp.float32))
    assert np.all(mask_of(drawn) == 1)


@pytest.mark.parametrize(
    "make",
    [
        lambda key: Synapses.fixed_fan_in(key, 6, 30, fan_in=4),
        lambda key: Synapses.fixed_fan_out(key, 20, 30, fan_out=4),
        lambda key: Synapses.with_probability(key, 20, 30, 0.2),
        lambda key: Synapses.by_distance(key, np.eye(9), np.eye(9), lambda distance: jnp.exp(-distance)),
    ],
)
def test_a_key_draws_the_same_synapses_with_64_bits(make: Callable[[Any], Synapses]) -> None:
    key = jax.random.key(3)
    expected = make(key)
    with jax.enable_x64(True):
        found = make(key)
    chex.assert_trees_all_equal(found, expected)


def test_blocks_are_those_of_the_matrix() -> None:
    """Of populations of 2 and 3 neurons that lead to 4 and 1, without synapses from the first to the last one."""
    draw = np.random.default_rng(0)
    masks = [[draw.random((2, 4)) < 0.5, None], [draw.random((3, 4)) < 0.5, np.ones((3, 1), bool)]]
    blocks = [[None if mask is None else Synapses.from_mask(mask) for mask in row] for row in masks]
    joined = Synapses.from_blocks(blocks)
    filled = [[np.zeros((2, 1), bool) if mask is None else mask for mask in row] for row in masks]
    np.testing.assert_array_equal(mask_of(joined), np.block(filled))
    np.testing.assert_array_equal(joined.sources(), np.nonzero(np.block(filled))[0])


def test_target_out_of_range_of_its_block_is_none_of_the_next_one() -> None:
    block = Synapses(jnp.array([2]), jnp.array([0, 3]), 2)
    joined = Synapses.from_blocks([[block, Synapses.from_mask(np.zeros((1, 3), bool))]])
    np.testing.assert_array_equal(mask_of(joined), [[1, 0, 0, 0, 0]])


ONE, TWO = Synapses.from_mask(np.ones((2, 3), bool)), Synapses.from_mask(np.ones((2, 4), bool))
PLACES = jnp.zeros((2, 1))
REFUSED = {
    "Synapses.from_mask: `mask` must be bool [neurons, targets] of known values, got float32[2, 3]. "
    "Compare the weights with 0 outside of jit.": lambda: Synapses.from_mask(jnp.ones((2, 3))),
    "Synapses.from_mask: `mask` must be bool [neurons, targets] of known values, got bool[2, 3]. "
    "Compare the weights with 0 outside of jit.": lambda: jax.jit(Synapses.from_mask)(jnp.ones((2, 3), bool)),
    "Synapses.from_scipy: `matrix` must be a CSR array of SciPy, got float64[2, 3]. "
    "Convert it with .tocsr().": lambda: Synapses.from_scipy(np.ones((2, 3))),
    "Synapses.fixed_fan_out: `fan_out` must be at most 4, the neurons to choose from, got 5. "
    "Choose fewer.": lambda: Synapses.fixed_fan_out(KEY, 3, 4, 5),
    "Synapses.fixed_fan_in: `fan_in` must be at most 3, the neurons to choose from, got 4. "
    "Choose fewer.": lambda: Synapses.fixed_fan_in(KEY, 3, 4, 4),
    "Synapses: `targets` must be at most 2147483647, got 4294967296. Use several sets of synapses.": lambda: (
        Synapses.fixed_fan_out(KEY, 2**20, 2**20, 2**12)
    ),
    "Synapses.fixed_fan_out: `key` must be a PRNG key, got 0. Make one with jax.random.key(0).": lambda: (
        Synapses.fixed_fan_out(0, 3, 4, 1)
    ),
    "Synapses.fixed_fan_out: `num_neurons` must be an integer of at least 0, got -1. "
    "Pass 0 or more.": lambda: Synapses.fixed_fan_out(KEY, -1, 4, 1),
    "Synapses.with_probability: `probability` must be between 0 and 1, got 1.5. "
    "Pass the share of pairs that are connected.": lambda: Synapses.with_probability(KEY, 3, 4, 1.5),
    "Synapses: `targets` must be at most 2147483647, got 549755813888. "
    "Use several sets of synapses.": lambda: Synapses.with_probability(KEY, 2**20, 2**20, 0.5),
    "Synapses.with_probability: `key` must be known, got a tracer. Draw outside of jit: the number "
    "of synapses is random.": lambda: jax.jit(lambda key: Synapses.with_probability(key, 3, 4, 0.5))(KEY),
    "Synapses.by_distance: `target_positions` must have the axes of `positions`, 1, got 2. Pass "
    "positions in the same space.": lambda: Synapses.by_distance(KEY, PLACES, jnp.zeros((2, 2)), jnp.exp),
    "Synapses.by_distance: `positions` must be float [neurons, dimensions] of known values, got float32[2]. "
    "Pass an array outside of jit.": lambda: Synapses.by_distance(KEY, jnp.zeros(2), PLACES, jnp.exp),
    "Synapses.by_distance: `period` must be a length above 0, got 0.0. Leave "
    "it out for space with edges.": lambda: Synapses.by_distance(KEY, PLACES, PLACES, jnp.exp, period=0.0),
    "Synapses.by_distance: `target_positions` must be finite, got NaN or infinity. "
    "Remove such neurons.": lambda: Synapses.by_distance(KEY, PLACES, PLACES * jnp.nan, jnp.exp),
    "Synapses.by_distance: `probability` must return probabilities, got NaN. Return a number for each "
    "distance, also for 0.": lambda: Synapses.by_distance(KEY, PLACES, PLACES, lambda distance: 0 / distance),
    "Synapses.by_distance: `probability` must have shape [neurons, targets] = [2, 2], got [2]. Return "
    "one for each distance.": lambda: Synapses.by_distance(KEY, PLACES, PLACES, lambda distance: distance[0]),
    "Synapses.from_blocks: `blocks` must have one number of targets in column 0, got 3 and 4. "
    "Synapses of probability 0 have a size, too.": lambda: Synapses.from_blocks([[ONE], [TWO]]),
    "Synapses.from_blocks: `blocks` must have one number of targets in column 1, got None alone. "
    "Synapses of probability 0 have a size, too.": lambda: Synapses.from_blocks([[ONE, None]]),
    "Synapses.from_blocks: `blocks` must be of known values, got a tracer. "
    "Join them outside of jit, and pass the result.": lambda: jax.jit(Synapses.from_blocks)([[ONE]]),
    "Synapses.from_blocks: `blocks` must be rows of equally many blocks, got [1, 2]. "
    "Use None for no synapses.": lambda: Synapses.from_blocks([[ONE], [ONE, None]]),
    "Synapses.to_dense: `weights` must have shape [synapses] = [6], got [5]. Pass one a synapse.": lambda: (
        Synapses.from_mask(np.ones((2, 3), bool)).to_dense(jnp.ones(5))
    ),
    "Synapses: `targets` must hold integers, got float32. Cast it with targets.astype(int).": lambda: (
        _synapses.ends_and_targets(Synapses(jnp.ones(3, jnp.int32), jnp.ones(1), 2))
    ),
}
test_what_cannot_be_is_refused = refusals(REFUSED)
