"""The task of spoken digits: words are made once, each epoch is new, networks stay small."""

from dataclasses import replace

import jax
import numpy as np

from snnjax import data, metrics
from snnjax.blocks.delay import DelayParams
from snnjax.data import EventDataset
from snnjax.train import build_network, load_task, task_data, task_settings


def words(count: int) -> EventDataset:
    """Words of 140 channels, one or two sounds a step."""
    ids = np.random.default_rng(count).integers(0, 140, (count, 6, 2)).astype(np.uint16)
    ids[:, ::2, 1] = 140
    ids.sort(axis=-1)
    counts = (ids < 140).sum(axis=-1, dtype=np.int32)
    return EventDataset(ids, counts, np.arange(count) % 20, 140, 20)


def test_words_are_made_where_there_are_none(monkeypatch, tmp_path) -> None:
    made = []

    def make(folder, on_words) -> None:
        made.append(folder)
        folder.mkdir(exist_ok=True)
        on_words(4, 8)
        for split in task_data.SPLITS:
            (folder / f"spoken_{split}.h5").touch()

    sizes = {"train": 70, "valid": 10, "test": 20}
    monkeypatch.setattr(data, "make_spoken_digits", make)
    monkeypatch.setattr(data, "load_spoken_digits", lambda folder, split, **options: words(sizes[split]))
    settings = task_settings("spoken")
    for _ in range(2):
        parts = load_task(settings, tmp_path)
    assert made == [tmp_path]
    assert (len(parts.train(0)), len(parts.validation), len(parts.test)) == (70, 10, 20)
    assert (parts.num_inputs, parts.num_classes) == (140, 20)
    # Each epoch is new, and the same when it is asked for again; without augmentation all are one.
    assert not np.array_equal(parts.train(0).ids, parts.train(1).ids)
    np.testing.assert_array_equal(parts.train(1).ids, parts.train(1).ids)
    calm = load_task(replace(settings, augment=False), tmp_path)
    np.testing.assert_array_equal(calm.train(0).ids, words(70).ids)
    # The home folder is where words are kept.
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    load_task(settings)
    assert made[1:] == [tmp_path / "snnjax"]


def test_networks_have_fewer_than_40_thousand_parameters() -> None:
    for model, delayed in (("dense", False), ("delayed", True)):
        net = build_network(task_settings("spoken", model), 140, 20)
        params = jax.eval_shape(net.init, jax.random.key(0))
        assert 30_000 < metrics.parameter_count(params) < 40_000
        assert sum(isinstance(own, DelayParams) for own in params.values()) == 2 * delayed
