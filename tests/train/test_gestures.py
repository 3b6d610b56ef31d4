"""The smartwatch task: disjoint people, and augmentation that is consistent with a rotated watch."""

from dataclasses import replace
from functools import partial

import jax
import numpy as np
import pytest

from snnjax.data import SeriesDataset
from snnjax.train import TASKS, gestures, load_task


@pytest.fixture
def path(tmp_path):
    """Ten people, two recordings each, whose first channel tells whose they are."""
    people = np.repeat(np.arange(1, 11), 2)
    rows = [np.random.default_rng(number).normal(size=(500, 6)) for number in range(20)]
    for person, row in zip(people, rows, strict=True):
        row[:, 0] = person
    content = {"X": rows, "y": np.arange(20) % 7, "subject": people}
    np.save(tmp_path / "watch_dataset.npy", content, allow_pickle=True)
    return tmp_path / "watch_dataset.npy"


def test_five_seeds_test_everyone_once():
    splits = [gestures.people(seed) for seed in range(5)]
    assert sorted(person for _, _, test in splits for person in test) == list(range(1, 11))
    for split in splits:
        assert sorted(person for part in split for person in part) == list(range(1, 11))
    assert gestures.people(7) == gestures.people(2)


def test_without_validation_its_people_are_trained_on():
    train, validation, test = gestures.people(3)
    everyone, nobody, same = gestures.people(3, validating=False)
    assert (sorted(train + validation), [], test) == (everyone, nobody, same)


def test_parts_hold_only_their_people(path):
    for validating in (True, False):
        parts, groups = (
            made(3, validating=validating) for made in (partial(gestures.parts, path), gestures.people)
        )
        for part, people in zip(parts, groups, strict=True):
            assert (set() if part is None else set(np.unique(part.series[:, :, 0]))) == set(people)


def test_task_has_standardised_windows_of_four_seconds(path):
    parts = load_task(replace(TASKS["spar"], augment=False, noise=0.0, validation_share=0.25), path)
    train = parts.train(0)
    assert (
        train.series.shape[1:] == parts.validation.series.shape[1:] == parts.test.series.shape[1:] == (200, 6)
    )
    np.testing.assert_allclose(train.series.std(axis=(0, 1)), 1, rtol=1e-3)  # in float32, over 10,000 numbers


def test_variations_are_new_each_epoch_and_the_same_again(path):
    parts = load_task(TASKS["spar"], path)
    first, again, second = (parts.train(epoch) for epoch in (0, 0, 1))
    np.testing.assert_array_equal(first.series, again.series)
    assert np.any(first.series != second.series) and first.series.shape == second.series.shape


def turned(monkeypatch, **variations: float) -> tuple[np.ndarray, np.ndarray]:
    """A watch at rest, which feels gravity along x and turns about z, before and after variations of these sizes."""
    for name in ("_TURN", "_STRETCH", "_SCALE"):
        monkeypatch.setattr(gestures, name, variations.get(name, 0.0))
    series = np.tile(np.array([1, 0, 0, 0, 0, 2], np.float32), (400, 250, 1))
    samples = SeriesDataset(series, np.full(400, 250), np.zeros(400, np.int32), 7)
    return series[:, :200], gestures.varied(jax.random.key(0), 0, samples).series


def test_mirrored_watch_changes_the_signs_of_a_reflection(monkeypatch):
    before, after = turned(monkeypatch)
    is_mirrored = after[:, 0, 0] < 0
    assert 0.4 < is_mirrored.mean() < 0.6  # a fair coin, 400 times
    signs = np.where(is_mirrored[:, None, None], [-1, 1, 1, 1, -1, -1], 1)
    np.testing.assert_array_equal(after, before * signs)


def test_turned_watch_feels_the_same_strength(monkeypatch):
    _, after = turned(monkeypatch, _TURN=0.5)
    norms = np.linalg.norm(after.reshape(400, 200, 2, 3), axis=-1)
    np.testing.assert_allclose(norms, np.broadcast_to([1.0, 2.0], norms.shape), rtol=1e-5)  # float32
    dots = np.einsum("sti,sti->st", after[:, :, :3], after[:, :, 3:])
    np.testing.assert_allclose(dots, 0, atol=1e-5)  # one rotation for both
    assert after[:, 0, 0].std() > 0.1


def test_faster_gesture_turns_faster(monkeypatch):
    _, after = turned(monkeypatch, _STRETCH=0.2)
    np.testing.assert_allclose(np.abs(after[:, :, 0]), 1, rtol=1e-6)
    speeds = np.abs(after[:, 0, 5]) / 2
    assert np.exp(-0.2) <= speeds.min() < 0.85 and 1.18 < speeds.max() <= np.exp(0.2)
