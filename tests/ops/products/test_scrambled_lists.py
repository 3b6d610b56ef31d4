"""Lists in any order, with unused slots anywhere, as joins make them: nothing relies on the order of selected ones."""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import chex
import hypothesis
import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from snnjax import (
    LIFLayer,
    SparseSpikes,
    _targets,
    delay_spikes,
    lif_network,
    losses,
    metrics,
    pool_spikes,
    spike_conv,
    spike_matmul,
)
from tests.numbers import array, dyadic
from tests.ops.common import jit

STEPS, BATCH, SHAPE, CAPACITY, GAPS = 4, 3, (4, 4, 2), 6, 5
NEURONS = 32
RNG = np.random.default_rng(0)
WEIGHTS, TAPS = dyadic(RNG, -16, 16, NEURONS, 5), dyadic(RNG, -16, 16, 3, 3, 2, 4)
DELAYS, LABELS = dyadic(RNG, 0, 48, NEURONS), jnp.array([0, 7, 31])


def network(spikes: SparseSpikes, **options):
    layers = [LIFLayer(WEIGHTS, 0.5, gain=0.5)]
    return lif_network(spikes, layers, capacity=2, second_threshold=0.0, **options)[0].output.to_dense()


def in_both(name: str, function: Callable[..., Any]) -> dict[str, Callable[..., Any]]:
    """The function by the reference and by the kernels, if there are any."""
    known = ("reference", "cpu") if _targets.missing() is None else ("reference",)
    return {f"{name}, {each}": functools.partial(function, implementation=each) for each in known}


READERS: dict[str, Callable[[SparseSpikes], Any]] = {
    "to_dense": lambda spikes: spikes.to_dense(),
    "pool_spikes": lambda spikes: pool_spikes(spikes, 3, shape=SHAPE).to_dense(),
    "cross_entropy_max": lambda spikes: losses.cross_entropy_max(spikes, LABELS),
    "class_first_spikes": metrics.decode.class_first_spikes,
    "input_counts": metrics.input_counts,
    **in_both("spike_matmul", lambda spikes, **options: spike_matmul(spikes, WEIGHTS, **options)),
    **in_both("spike_conv", lambda spikes, **options: spike_conv(spikes, TAPS, shape=SHAPE, **options)),
    **in_both("delay_spikes", lambda spikes, **options: delay_spikes(spikes, DELAYS, max_delay=3, **options)),
    **in_both("lif_network", network),
}


def lists_in_order_and_not(seed: int) -> tuple[SparseSpikes, SparseSpikes, np.ndarray]:
    """Lists, the same scrambled with gaps, and the slots of these in which the entries are."""
    rng = np.random.default_rng(seed)
    dense = np.where(
        rng.random((STEPS, BATCH, NEURONS)) < 0.1, rng.integers(1, 17, (STEPS, BATCH, NEURONS)) / 16, 0
    )
    spikes = jax.jit(SparseSpikes.from_dense, static_argnums=1)(array(dense, jnp.float32), CAPACITY)
    order = np.argsort(rng.random((STEPS, BATCH, CAPACITY + GAPS)), axis=-1)
    beyond = rng.choice([-1, NEURONS, NEURONS + 3, 2**31 - 1], (STEPS, BATCH, GAPS))
    ids = np.concatenate([np.asarray(spikes.ids, np.int32), beyond], -1)
    values = np.concatenate([spikes.values, rng.integers(1, 9, beyond.shape)], -1)
    scrambled = dataclasses.replace(
        spikes,
        ids=array(np.take_along_axis(ids, order, -1), jnp.int32),
        values=array(np.take_along_axis(values, order, -1), jnp.float32),
    )
    return spikes, scrambled, np.argsort(order, axis=-1)[..., :CAPACITY]


@functools.cache
def compiled(name: str):
    """The results, and the cotangents of the values."""

    def of(spikes: SparseSpikes):
        def results(values):
            found = READERS[name](dataclasses.replace(spikes, values=values))
            return jnp.sum(jnp.stack([jnp.sum(leaf) for leaf in jax.tree.leaves(found)])), found

        return jax.grad(results, has_aux=True)(spikes.values)

    return jit(of)


@pytest.mark.parametrize("name", READERS)
@hypothesis.settings(max_examples=5)
@hypothesis.given(seed=st.integers(0, 2**31))
def test_order_and_gaps_change_nothing(name: str, seed: int) -> None:
    """Dyadic numbers: the same bit for bit, but for the exponentials of a loss; cotangents move with their entries."""
    spikes, scrambled, slots = lists_in_order_and_not(seed)
    gradient, expected = compiled(name)(spikes)
    own_gradient, found = compiled(name)(scrambled)
    chex.assert_trees_all_close(found, expected, rtol=1e-6 if "entropy" in name else 0)
    there = np.asarray(spikes.ids) < NEURONS
    moved = np.take_along_axis(np.asarray(own_gradient), slots, -1)
    np.testing.assert_allclose(np.where(there, moved, 0), np.where(there, gradient, 0), rtol=1e-6, atol=1e-7)
    gaps = np.ones(own_gradient.shape, bool)
    np.put_along_axis(gaps, slots, False, -1)
    assert not np.any(np.asarray(own_gradient)[gaps])
