"""Changes of camera events: known ones exactly, random ones within their limits."""

import re

import jax
import numpy as np
import pytest

from snnjax.data import CameraAugmentation, EventDataset, augment_camera_events

NOTHING = CameraAugmentation(shift=0.0, rotation=0.0, scale=0.0)
KEY = jax.random.key(0)


def recordings(count: int, height: int = 9, width: int = 11, capacity: int | None = None) -> EventDataset:
    """Random events of a camera that is wider than high."""
    random = np.random.default_rng(count)
    pairs = ((random.random(60) * 6, random.integers(0, 2 * height * width, 60)) for _ in range(count))
    options = {"num_classes": 3, "duration": 6.0, "capacity": capacity}
    return EventDataset.from_events(pairs, np.arange(count) % 3, 6, 2 * height * width, **options)


def grid(events: EventDataset, height: int = 9, width: int = 11) -> np.ndarray:
    """Events as ``[samples, time, polarity, y, x]``."""
    dense = np.asarray(events.take(range(len(events))).inputs.to_dense()).swapaxes(0, 1)
    return dense.reshape(len(events), events.num_steps, 2, height, width)


def changed(events: EventDataset, limits: CameraAugmentation, key=KEY) -> EventDataset:
    return augment_camera_events(key, events, limits, height=9, width=11)


def test_without_changes_events_stay_what_they_are() -> None:
    events = recordings(20)
    same = changed(events, NOTHING)
    np.testing.assert_array_equal(same.ids, events.ids)
    np.testing.assert_array_equal(same.counts, events.counts)


def test_shift_moves_both_polarities_and_all_steps_alike() -> None:
    events = recordings(12, capacity=100)
    before, after = grid(events), grid(changed(events, NOTHING._replace(shift=3.0)))
    moves = set()
    for sample in range(12):
        matches = []
        for down in range(-3, 4):
            for right in range(-3, 4):
                moved = np.zeros_like(before[sample])
                to_y, to_x = slice(max(down, 0), 9 + min(down, 0)), slice(max(right, 0), 11 + min(right, 0))
                of_y, of_x = (
                    slice(max(-down, 0), 9 - max(down, 0)),
                    slice(max(-right, 0), 11 - max(right, 0)),
                )
                moved[:, :, to_y, to_x] = before[sample][:, :, of_y, of_x]
                matches += [(down, right)] if np.array_equal(moved, after[sample]) else []
        assert len(matches) == 1
        moves.add(matches[0])
    assert len(moves) > 3


def test_rotation_and_scale_keep_the_centre_and_the_distance_from_it() -> None:
    middle, rim = 4 * 11 + 5, 4 * 11 + 9
    recording = np.zeros(2), np.array([middle, rim])
    events = EventDataset.from_events([recording] * 30, np.zeros(30, int), 1, 198, num_classes=1, capacity=20)
    turned = grid(changed(events, NOTHING._replace(rotation=90.0)))[:, 0, 0]
    assert turned[:, 4, 5].all()
    found = [np.argwhere(each) for each in turned]
    far = [max(np.hypot(*(place - (4, 5))) for place in each) for each in found]
    assert min(far) > 3.2 and max(far) < 4.8 and len({tuple(map(tuple, each)) for each in found}) > 5
    scaled = grid(changed(events, NOTHING._replace(scale=0.4)))[:, 0, 0]
    assert not scaled[:, :3].any() and not scaled[:, 6:].any() and len(np.unique(scaled.sum((1, 2)))) > 1


def test_stretch_moves_events_in_time_only() -> None:
    times, ids = np.arange(6.0), np.arange(6)
    events = EventDataset.from_events(
        [(times, ids)] * 20, np.zeros(20, int), 6, 198, num_classes=1, duration=6.0
    )
    after = grid(changed(events, NOTHING._replace(stretch=0.7)))[:, :, 0, 0]
    steps = [np.argwhere(each) for each in after]
    assert all((np.diff(each[:, 1]) >= 0).all() for each in steps)  # in the order of time
    assert len({len(np.unique(each[:, 1])) for each in steps}) > 1  # slower ones lose the last events


def test_events_are_lost_and_added_up_to_their_shares() -> None:
    events = recordings(40, capacity=198)
    before = grid(events) > 0
    fewer, more = (
        grid(changed(events, NOTHING._replace(**each))) > 0 for each in ({"lost": 0.5}, {"added": 0.1})
    )
    assert not np.any(fewer & ~before) and np.all(more[before])
    assert 0.15 < 1 - fewer.sum() / before.sum() < 0.35  # 0.25 on average
    assert 0.03 < (more & ~before).sum() / (~before).sum() < 0.07


def test_a_key_gives_the_same_changes_again() -> None:
    events = recordings(5)
    first, same, other = (
        changed(events, CameraAugmentation(lost=0.1), key) for key in (KEY, KEY, jax.random.key(1))
    )
    np.testing.assert_array_equal(first.ids, same.ids)
    assert not np.array_equal(first.ids, other.ids)


def test_changes_of_a_sample_do_not_depend_on_those_behind_it() -> None:
    events = recordings(20, capacity=60)
    limits = CameraAugmentation(stretch=0.3, lost=0.4, added=0.1)
    whole = changed(events, limits)
    for count in (1, 7, 8, 9, 13):
        some = changed(events.select(np.arange(count)), limits)
        np.testing.assert_array_equal(some.ids, whole.ids[:count])
        np.testing.assert_array_equal(some.counts, whole.counts[:count])


FAILURES = {
    "size": (
        {"height": 8, "width": 11},
        CameraAugmentation(),
        "augment_camera_events: `events` must have 176 inputs, two polarities of 8 x 11 pixels, got 198. Pass the "
        "height and the width of the camera.",
    ),
    "scale": (
        {"height": 9, "width": 11},
        CameraAugmentation(scale=1.0),
        "augment_camera_events: `augmentation` must have limits of at least 0, shares of at most 1 and a scale below "
        "1, got CameraAugmentation(shift=2.0, rotation=10.0, scale=1.0, stretch=0.0, lost=0.0, added=0.0). Try "
        "CameraAugmentation().",
    ),
    "height": (
        {"height": 0, "width": 11},
        CameraAugmentation(),
        "augment_camera_events: `height` must be an integer of at least 1, got 0. Pass 1 or more.",
    ),
}


@pytest.mark.parametrize("case", sorted(FAILURES))
def test_wrong_arguments_are_named(case: str) -> None:
    size, limits, text = FAILURES[case]
    with pytest.raises(ValueError, match=f"^{re.escape(text)}$"):
        augment_camera_events(KEY, recordings(1), limits, **size)
