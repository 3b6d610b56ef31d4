"""The real data that come with the package; `files/README.md` states where they are from."""

from importlib import resources

import numpy as np

from snnjax._check import check_choice
from snnjax.data.datasets import ImageDataset, SeriesDataset

_SPLITS = ("train", "test")


def load_mnist_10k(split: str = "train") -> ImageDataset:
    """Ten thousand real handwritten digits, 28 x 28 uint8: 8,000 to train with, 2,000 to test.

    Errors: a split other than "train" and "test".

    Example:
        >>> from snnjax.data import load_mnist_10k
        >>> load_mnist_10k("test").images.shape
        (2000, 28, 28)

    Source: LeCun, Bottou, Bengio, Haffner 1998, doi:10.1109/5.726791.
    """
    check_choice("load_mnist_10k", "split", split, _SPLITS)
    arrays = _read("mnist_10k.npz", split, ("images", "labels"))
    return ImageDataset(*arrays, num_classes=10)


def load_japanese_vowels(split: str = "train") -> SeriesDataset:
    """Utterances of nine speakers, 12 cepstrum channels, 7 to 29 frames: 270 to train with, 370 to test.

    Errors: a split other than "train" and "test".

    Example:
        >>> from snnjax.data import load_japanese_vowels
        >>> load_japanese_vowels().series.shape
        (270, 29, 12)

    Source: Kudo, Toyama, Shimbo 1999, doi:10.1016/S0167-8655(99)00077-X; data doi:10.24432/C5NS47.
    """
    check_choice("load_japanese_vowels", "split", split, _SPLITS)
    arrays = _read("japanese_vowels.npz", split, ("series", "lengths", "labels"))
    return SeriesDataset(*arrays, num_classes=9)


def _read(file: str, split: str, names: tuple[str, ...]) -> list[np.ndarray]:
    """The arrays ``<split>_<name>`` of a shipped file."""
    path = resources.files("snnjax.data") / "files" / file
    with path.open("rb") as stream, np.load(stream) as arrays:
        return [arrays[f"{split}_{name}"] for name in names]
