"""The real data shipped with the package; `files/README.md` states their sources."""

from importlib import resources

import numpy as np

from snnjax._check import check_choice
from snnjax.data.datasets import ImageDataset, SeriesDataset

_SPLITS = ("train", "test")


def load_mnist_10k(split: str = "train") -> ImageDataset:
    """Load ten thousand real handwritten digits, 28 x 28 uint8: 8,000 for training, 2,000 for testing.

    Errors: the split is neither "train" nor "test".

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
    """Load utterances of nine speakers, 12 cepstrum channels, 7 to 29 frames: 270 for training, 370 for testing.

    Errors: the split is neither "train" nor "test".

    Example:
        >>> from snnjax.data import load_japanese_vowels
        >>> load_japanese_vowels().series.shape
        (270, 29, 12)

    Source: Kudo, Toyama, Shimbo 1999, doi:10.1016/S0167-8655(99)00077-X; data doi:10.24432/C5NS47.
    """
    check_choice("load_japanese_vowels", "split", split, _SPLITS)
    arrays = _read("japanese_vowels.npz", split, ("series", "lengths", "labels"))
    return SeriesDataset(*arrays, num_classes=9)


def load_qtdb(split: str = "train") -> SeriesDataset:
    """Load electrocardiograms as level crossings, with a label per step: 618 for training, 141 for testing.

    Four channels are 1 where one of two leads rises or falls by a level, else 0. The classes are the parts of a
    heartbeat: P, PQ, QR, RS, ST and TP. Steps without a label in the files have -1; the longest samples have 1,301
    steps, and `lengths` ends each sample after its last label.

    Errors: the split is neither "train" nor "test".

    Example:
        >>> from snnjax.data import load_qtdb
        >>> test = load_qtdb("test")
        >>> test.series.shape, test.labels.shape
        ((141, 1301, 4), (141, 1301))

    Source: Laguna, Mark, Goldberg, Moody 1997, doi:10.1109/CIC.1997.648140; as preprocessed by Yin, Corradi, Bohte
    2021, doi:10.1038/s42256-021-00397-w.
    """
    check_choice("load_qtdb", "split", split, _SPLITS)
    events, lengths, labels = _read("qtdb.npz", split, ("events", "lengths", "labels"))
    return SeriesDataset(events.astype(np.float32), lengths, labels, num_classes=6)


def _read(file: str, split: str, names: tuple[str, ...]) -> list[np.ndarray]:
    """The arrays ``<split>_<name>`` of a shipped file."""
    path = resources.files("snnjax.data") / "files" / file
    with path.open("rb") as stream, np.load(stream) as arrays:
        return [arrays[f"{split}_{name}"] for name in names]
