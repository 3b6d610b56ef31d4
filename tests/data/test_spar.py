"""Recordings of a smartwatch, written by the test as the package `seglearn` holds them."""

import importlib.util
import pickle
from types import SimpleNamespace

import numpy as np
import pytest

from snnjax.data import load_spar

STEPS = (250, 199, 430)  # of the recordings: the second is shorter than a window


@pytest.fixture
def content():
    rows = [np.arange(6 * steps, dtype=np.float64).reshape(steps, 6) for steps in STEPS]
    return {"X": rows, "y": np.array([3, 6, 0]), "subject": np.array([1, 1, 2]), "side": np.zeros(3)}


@pytest.fixture
def path(tmp_path, content):
    np.save(tmp_path / "watch_dataset.npy", content, allow_pickle=True)
    return tmp_path / "watch_dataset.npy"


def test_load_spar_cuts_each_recording_into_windows(path, content):
    found = load_spar(path, window=200, hop=50)
    assert found.labels.tolist() == [3, 3, 0, 0, 0, 0, 0]
    assert found.lengths.tolist() == [200] * 7 and found.num_classes == 7
    starts = [(0, 0), (0, 50), (2, 0), (2, 50), (2, 100), (2, 150), (2, 200)]
    expected = np.array([content["X"][number][start : start + 200] for number, start in starts])
    np.testing.assert_array_equal(found.series, expected.astype(np.float32))


def test_load_spar_takes_the_people_asked_for(path):
    assert load_spar(path, subjects=[2]).labels.tolist() == [0, 0, 0]
    assert len(load_spar(path, subjects=[])) == 0
    message = r"load_spar: `subjects` must be among \[1, 2\], got \[3, 4\]. Omit the others."
    with pytest.raises(ValueError, match=message):
        load_spar(path, subjects=[4, 1, 3])


def test_load_spar_finds_the_installed_package_without_running_it(path, monkeypatch):
    (path.parent / "data").mkdir()
    path.rename(path.parent / "data" / path.name)
    package = SimpleNamespace(origin=str(path.parent / "__init__.py"))
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: package if name == "seglearn" else None)
    assert len(load_spar(window=100)) > 0
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(
        ValueError,
        match=r"load_spar: `path` must be given without the package seglearn, got None\. Install",
    ):
        load_spar()


class Hostile:
    """Unpickled, it would write a file."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (str(self.path), "w")


def test_load_spar_runs_nothing_of_a_hostile_file(path, tmp_path):
    np.save(path, np.array({"X": Hostile(tmp_path / "written")}, object), allow_pickle=True)
    with pytest.raises(
        ValueError, match=r"load_spar: `path` must hold the recordings of SPAR, got a pickle that calls"
    ):
        load_spar(path)
    assert not (tmp_path / "written").exists()


@pytest.mark.parametrize(
    "change",
    [
        {"X": [np.zeros((9, 5))] * 3},
        {"y": np.array([0, 1])},
        {"y": np.array([0, 1, 7])},
        {"subject": np.zeros((3, 1))},
        {"X": None},
        {"y": None},
    ],
)
def test_load_spar_refuses_what_does_not_fit(path, content, change):
    np.save(path, np.array(content | change, object), allow_pickle=True)
    with pytest.raises(ValueError, match="load_spar: `path` must hold"):
        load_spar(path)


def test_load_spar_cut_anywhere(path):
    whole = path.read_bytes()
    for length in range(0, len(whole) - 1, 997):
        path.write_bytes(whole[:length])
        with pytest.raises(ValueError, match="load_spar: `path` must"):
            load_spar(path)
    path.write_bytes(pickle.dumps({}))
    with pytest.raises(ValueError, match="load_spar: `path` must hold"):
        load_spar(path)
