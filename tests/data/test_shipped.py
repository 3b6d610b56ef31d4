"""The data that come with the package, as their README describes them."""

import hashlib

import numpy as np
import pytest

from snnjax.data import load_japanese_vowels, load_mnist_10k, load_qtdb


@pytest.mark.parametrize("split, samples", [("train", 8000), ("test", 2000)])
def test_load_mnist_10k_is_as_described(split, samples):
    data = load_mnist_10k(split)
    assert data.images.shape == (samples, 28, 28)
    assert data.images.dtype == np.uint8
    # A tenth of each digit, give or take a fifth.
    assert np.abs(np.bincount(data.labels, minlength=10) / samples - 0.1).max() < 0.02


def test_load_mnist_10k_keeps_splits_apart():
    hashes = [
        {hashlib.sha256(image).digest() for image in load_mnist_10k(split).images}
        for split in ("train", "test")
    ]
    assert not hashes[0] & hashes[1]


@pytest.mark.parametrize("split, samples", [("train", 270), ("test", 370)])
def test_load_japanese_vowels_is_as_described(split, samples):
    data = load_japanese_vowels(split)
    assert data.series.shape == (samples, 29, 12)
    assert data.series.dtype == np.float32
    assert (data.lengths.min(), data.num_classes, len(set(data.labels.tolist()))) == (7, 9, 9)
    padded = np.arange(29)[None, :] >= data.lengths[:, None]
    assert not data.series[padded].any()
    assert data.series[~padded].any(axis=-1).all()


@pytest.mark.parametrize("split, samples", [("train", 618), ("test", 141)])
def test_load_qtdb_is_as_described(split, samples):
    data = load_qtdb(split)
    assert data.series.shape == (samples, 1301, 4)
    assert set(np.unique(data.series)) == {0, 1}
    assert 0.07 < data.series.mean() < 0.08  # 7.8 % of all values cross a level
    last = data.labels[np.arange(samples), data.lengths - 1]
    behind = np.arange(1301) >= data.lengths[:, None]
    assert (last >= 0).all() and (data.labels[behind] == -1).all()
    assert set(np.unique(data.labels)) == set(range(-1, 6))


@pytest.mark.parametrize("load", [load_mnist_10k, load_japanese_vowels, load_qtdb])
def test_loaders_refuse_other_splits(load):
    with pytest.raises(ValueError) as caught:
        load("validation")
    assert str(caught.value) == (
        f"{load.__name__}: `split` must be 'train' or 'test', got 'validation'. Choose one of these."
    )
