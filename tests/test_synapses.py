"""`Synapses`: which exist, drawn uniformly, and refused in words."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from snnjax import Synapses

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


ERRORS: list[tuple[Callable[[], Any], str]] = [
    (
        lambda: Synapses.from_mask(jnp.ones((2, 3))),
        "Synapses.from_mask: `mask` must be bool [neurons, targets] of known values, got float32[2, 3]. "
        "Compare the weights with 0 outside of jit.",
    ),
    (
        lambda: jax.jit(Synapses.from_mask)(jnp.ones((2, 3), bool)),
        "Synapses.from_mask: `mask` must be bool [neurons, targets] of known values, got bool[2, 3]. "
        "Compare the weights with 0 outside of jit.",
    ),
    (
        lambda: Synapses.from_scipy(np.ones((2, 3))),
        "Synapses.from_scipy: `matrix` must be a CSR array of SciPy, got float64[2, 3]. Convert it with .tocsr().",
    ),
    (
        lambda: Synapses.fixed_fan_out(KEY, 3, 4, 5),
        "Synapses.fixed_fan_out: `fan_out` must be at most 4, the neurons to choose from, got 5. Choose fewer.",
    ),
    (
        lambda: Synapses.fixed_fan_in(KEY, 3, 4, 4),
        "Synapses.fixed_fan_in: `fan_in` must be at most 3, the neurons to choose from, got 4. Choose fewer.",
    ),
    (
        lambda: Synapses.fixed_fan_out(KEY, 2**20, 2**20, 2**12),
        "Synapses: `targets` must be at most 2147483647, got 4294967296. Use several sets of synapses.",
    ),
    (
        lambda: Synapses.fixed_fan_out(0, 3, 4, 1),
        "Synapses.fixed_fan_out: `key` must be a PRNG key, got 0. Make one with jax.random.key(0).",
    ),
    (
        lambda: Synapses.fixed_fan_out(KEY, -1, 4, 1),
        "Synapses.fixed_fan_out: `num_neurons` must be an integer of at least 0, got -1. Pass 0 or more.",
    ),
    (
        lambda: Synapses.from_mask(np.ones((2, 3), bool)).to_dense(jnp.ones(5)),
        "Synapses.to_dense: `weights` must have shape [synapses] = [6], got [5]. Pass one a synapse.",
    ),
]


@pytest.mark.parametrize("call, message", ERRORS)
def test_what_cannot_be_is_refused(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(ValueError) as refused:
        call()
    assert str(refused.value) == message
