"""Splits and epochs: whole, disjoint, stratified, and a function of the key."""

import jax
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from snnjax.data import batches, split_indices
from tests.errors.refusals import refusals


@given(st.lists(st.integers(0, 3), max_size=40), st.sampled_from([(0.9, 0.1), (0.5, 0.3, 0.2), (1.0,)]))
def test_split_indices_is_whole_disjoint_and_stratified(labels, shares):
    parts = split_indices(jax.random.key(0), labels, shares)
    assert sorted(np.concatenate(parts).tolist()) == list(range(len(labels)))
    for part, share in zip(parts, shares, strict=True):
        assert part.tolist() == sorted(part.tolist())
        for label in range(4):
            expected = share * labels.count(label)
            # Both ends of a part are rounded to whole samples.
            assert abs(np.count_nonzero(np.array(labels)[part] == label) - expected) <= 1


def test_split_indices_depends_on_key_alone():
    labels = np.arange(100) % 5
    first, again = (split_indices(key, labels)[1] for key in (jax.random.key(1), jax.random.PRNGKey(1)))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, split_indices(jax.random.key(2), labels)[1])


@given(st.integers(0, 20), st.integers(1, 7), st.booleans(), st.integers(0, 3))
def test_batches_cover_each_sample_once(num_samples, batch_size, drop_last, epoch):
    parts = list(batches(jax.random.key(0), num_samples, batch_size, epoch=epoch, drop_last=drop_last))
    seen = [index for part in parts for index in part.tolist()]
    assert len(set(seen)) == len(seen)
    assert set(seen) <= set(range(num_samples))
    assert all(len(part) == batch_size for part in (parts if drop_last else parts[:-1]))
    assert len(seen) == (num_samples - num_samples % batch_size if drop_last else num_samples)


def test_batches_repeat_an_epoch_and_differ_between_epochs():
    order = {
        (seed, epoch): np.concatenate(list(batches(jax.random.key(seed), 50, 8, epoch=epoch))).tolist()
        for seed in (0, 1)
        for epoch in (0, 1)
    }
    assert len({tuple(indices) for indices in order.values()}) == 4
    assert np.concatenate(list(batches(jax.random.PRNGKey(1), 50, 8, epoch=1))).tolist() == order[1, 1]


REFUSED = {
    "split_indices: `shares` must be positive and add up to 1, got [0.5, 0.6]. Try (0.9, 0.1).": lambda: (
        split_indices(jax.random.key(0), [0, 1], (0.5, 0.6))
    ),
    "split_indices: `shares` must be positive and add up to 1, got [0.5, nan]. Try (0.9, 0.1).": lambda: (
        split_indices(jax.random.key(0), [0, 1], (0.5, np.nan))
    ),
    "split_indices: `shares` must be positive and add up to 1, got [1.5, -0.5]. Try (0.9, 0.1).": lambda: (
        split_indices(jax.random.key(0), [0, 1], (1.5, -0.5))
    ),
    "split_indices: `labels` must have shape [samples], got [1, 1]. Pass one class id per sample.": lambda: (
        split_indices(jax.random.key(0), [[0.0]])
    ),
    "batches: `batch_size` must be an integer of at least 1, got 0. Pass 1 or more.": lambda: batches(
        None, 5, 0
    ),
    "batches: `num_samples` must be an integer of at least 0, got -1. Pass 0 or more.": lambda: batches(
        None, -1, 2
    ),
    "batches: `epoch` must be an integer of at least 0, got -1. Pass 0 or more.": lambda: batches(
        None, 5, 2, epoch=-1
    ),
}
test_splits_refuse = refusals(REFUSED)
