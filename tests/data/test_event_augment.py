"""Augmentation of events on channels: they move together, stay valid lists, and no limit changes nothing."""

import re

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from snnjax.data import EventAugmentation, EventDataset, augment_events

NOTHING = EventAugmentation(0, 0, 0, 0, 0, 0)


def recordings(grid: np.ndarray, capacity: int | None = None) -> EventDataset:
    """The data set of a boolean grid [samples, time, channels]."""
    samples = [(np.nonzero(sample)[0], np.nonzero(sample)[1]) for sample in grid]
    labels = np.arange(len(grid)) % 20
    _, num_steps, num_neurons = grid.shape
    options = {"num_classes": 20, "duration": float(num_steps), "capacity": capacity}
    return EventDataset.from_events(samples, labels, num_steps, num_neurons, **options)


def grid_of(events: EventDataset) -> np.ndarray:
    grid = np.zeros((len(events), events.num_steps, events.num_neurons + 1), bool)
    np.put_along_axis(grid, events.ids.astype(int), True, axis=-1)
    return grid[:, :, :-1]


def drawn(seed: int, samples: int = 40, share: float = 0.2) -> np.ndarray:
    return np.random.default_rng(seed).random((samples, 12, 30)) < share


def test_changes_of_a_sample_do_not_depend_on_those_behind_it() -> None:
    events, limits = recordings(drawn(0)), EventAugmentation(lost=0.4, added=0.1)
    whole = augment_events(jax.random.key(0), events, limits)
    for count in (1, 15, 16, 17, 25):
        some = augment_events(jax.random.key(0), events.select(np.arange(count)), limits)
        np.testing.assert_array_equal(some.ids, whole.ids[:count])
        np.testing.assert_array_equal(some.counts, whole.counts[:count])


@settings(deadline=None, max_examples=20)
@given(st.integers(0, 1000))
def test_without_limits_nothing_changes(seed: int) -> None:
    events = recordings(drawn(seed))
    same = augment_events(jax.random.key(seed), events, NOTHING)
    np.testing.assert_array_equal(same.ids, events.ids)
    np.testing.assert_array_equal(same.counts, events.counts)


def test_events_that_lists_lost_before_are_told_of() -> None:
    # counts of the result are those of what the lists held, so that its `dropped` alone would say nothing was lost
    events = recordings(np.ones((1, 2, 8), bool), 6)
    expected = "augment_events: 25 % of the events are in no list, and are not in the counts of the result."
    with pytest.warns(RuntimeWarning, match=re.escape(expected)):
        assert augment_events(jax.random.key(0), events, NOTHING).dropped == 0


@pytest.mark.filterwarnings("ignore:augment_events")
@settings(deadline=None, max_examples=20)
@given(st.integers(0, 1000), st.sampled_from([None, 5]))
def test_lists_stay_valid(seed: int, capacity: int | None) -> None:
    events = recordings(drawn(seed), capacity)
    limits = EventAugmentation(5, 4, 0.3, 2, 0.5, 0.3)
    changed = augment_events(jax.random.key(seed), events, limits)
    assert changed.ids.shape == events.ids.shape and changed.ids.dtype == events.ids.dtype
    used = changed.ids < changed.num_neurons
    # ascending and distinct, with the unused slots at the end
    assert np.all((np.diff(changed.ids.astype(int), axis=-1) > 0) | ~used[:, :, 1:])
    np.testing.assert_array_equal(used.sum(axis=-1), np.minimum(changed.counts, changed.capacity))
    np.testing.assert_array_equal(changed.labels, events.labels)


def test_a_shift_moves_all_events_of_a_sample_alike() -> None:
    before = drawn(0)
    after = grid_of(augment_events(jax.random.key(0), recordings(before), NOTHING._replace(shift=5.0)))
    found = set()
    for old, new in zip(before, after, strict=True):
        padded = np.pad(old, ((0, 0), (5, 5)))
        fitting = [by for by in range(-5, 6) if np.array_equal(new, padded[:, 5 + by : 35 + by])]
        assert fitting
        found |= set(fitting)
    # 40 draws of 11 shifts: both directions are among them
    assert min(found) < 0 < max(found)


def test_a_warp_of_channels_keeps_their_order_in_time_and_stays_near() -> None:
    before = np.zeros((200, 3, 31), bool)
    before[:, 1, 15] = True
    after = grid_of(augment_events(jax.random.key(1), recordings(before), NOTHING._replace(channel_warp=3.0)))
    assert not after[:, [0, 2]].any()
    places = np.nonzero(after)[2]
    assert places.min() >= 12 and places.max() <= 18 and len(set(places)) > 3


def test_stretching_brings_events_forward_or_back() -> None:
    before = np.zeros((300, 40, 1), bool)
    before[:, 20:22] = True
    after = grid_of(augment_events(jax.random.key(2), recordings(before), NOTHING._replace(stretch=0.2)))
    steps = np.nonzero(after)[1]
    # exp(0.2) is 1.22: from 20 / 1.22 to 21 * 1.22, each end rounded
    assert steps.min() >= 16 and steps.max() <= 26
    assert steps.min() <= 17 and steps.max() >= 25


def test_events_are_lost_and_added_in_the_shares_that_are_asked_for() -> None:
    before = drawn(3, samples=500, share=0.5)
    limits = NOTHING._replace(lost=0.4, added=0.2)
    after = grid_of(augment_events(jax.random.key(3), recordings(before, 30), limits))
    # Shares are uniform from 0 to the limit: their mean over 500 samples has a deviation of 0.4 / sqrt(12 * 500),
    # which is 0.005.
    np.testing.assert_allclose(1 - after[before].mean(), 0.2, atol=0.025)
    np.testing.assert_allclose(after[~before].mean(), 0.1, atol=0.0125)


def test_it_depends_on_the_key_alone() -> None:
    events = recordings(drawn(4))
    first, again, other = (augment_events(jax.random.key(key), events) for key in (0, 0, 1))
    np.testing.assert_array_equal(first.ids, again.ids)
    assert np.any(first.ids != other.ids)


@pytest.mark.parametrize(
    "limits", [EventAugmentation(shift=-1.0), EventAugmentation(lost=1.5), EventAugmentation(added=np.nan)]
)
def test_it_refuses_limits_out_of_range(limits: EventAugmentation) -> None:
    with pytest.raises(ValueError, match="augment_events: `augmentation` must have limits of at least 0"):
        augment_events(jax.random.key(0), recordings(drawn(0)), limits)
