"""Disturbances of recordings: each does what it says, to the events that it is given."""

import numpy as np

from snnjax import cli
from snnjax.data import EventDataset
from tests.benchmarks.trained import robustness
from tests.train.test_tasks import nmnist_arrays


def recordings() -> EventDataset:
    random = np.random.default_rng(0)
    pairs = ((random.random(50) * 8, random.integers(0, 20, 50)) for _ in range(30))
    return EventDataset.from_events(pairs, np.arange(30) % 2, 8, 20, num_classes=2, duration=8.0)


def grid(events: EventDataset) -> np.ndarray:
    return np.asarray(events.take(range(len(events))).inputs.to_dense()).swapaxes(0, 1) > 0


def test_nothing_changes_by_the_smallest_amounts() -> None:
    events = recordings()
    amounts = {robustness.speed: 1.0, robustness.polarity: -1}
    for change, _ in robustness.DISTURBANCES.values():
        same = robustness.disturbed(events, change, amounts.get(change, 0))
        np.testing.assert_array_equal(grid(same), grid(events))


def test_disturbances_do_what_they_say() -> None:
    events = recordings()
    before = grid(events)
    after = {
        change: grid(robustness.disturbed(events, change, amount))
        for change, amount in (
            (robustness.lost, 0.5),
            (robustness.noise, 0.1),
            (robustness.jitter, 1),
            (robustness.speed, 2.0),
            (robustness.polarity, 1),
        )
    }
    assert not np.any(after[robustness.lost] & ~before)
    assert 0.4 < after[robustness.lost].sum() / before.sum() < 0.6
    assert np.all(after[robustness.noise][before])
    assert 0.07 < (after[robustness.noise] & ~before).sum() / (~before).sum() < 0.13
    near = before.copy()
    near[:, 1:] |= before[:, :-1]
    near[:, :-1] |= before[:, 1:]
    assert not np.any(after[robustness.jitter] & ~near) and np.any(after[robustness.jitter] != before)
    np.testing.assert_array_equal(after[robustness.speed][:, :4], before[:, 1::2])
    assert not after[robustness.speed][:, 4:].any()
    np.testing.assert_array_equal(after[robustness.polarity][:, :, :10], before[:, :, :10])
    assert not after[robustness.polarity][:, :, 10:].any()


def test_a_run_on_recordings_is_trained_tested_and_disturbed(tmp_path, capsys, monkeypatch) -> None:
    monkeypatch.setattr(robustness, "CAPACITIES", (0.5,))
    monkeypatch.setattr(robustness, "DISTURBANCES", {"polarity": (robustness.polarity, (-1, 0))})
    nmnist_arrays(tmp_path / "nmnist.npz")
    place = ("--data", str(tmp_path / "nmnist.npz"))
    tiny = ("--task", "nmnist", "--hidden", "4", "--epochs", "1", "--batch-size", "50", "--fold", "3")
    assert cli.main(["train", *tiny, *place, "--out", str(tmp_path / "run")]) == 0
    out = capsys.readouterr().out
    assert "0 validation samples" in out and "(epoch 1, the last)" in out
    assert cli.main(["info", "--checkpoint", str(tmp_path / "run")]) == 0
    picture = tmp_path / "robustness.png"
    assert robustness.main([str(tmp_path / "run"), *place, "--picture", str(picture)]) == 0
    out = capsys.readouterr().out
    assert "polarity: -1: " in out and "bits of the weights: 4: " in out
    assert picture.read_bytes().startswith(b"\x89PNG")
