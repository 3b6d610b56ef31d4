"""CIFAR-10: 60,000 colour images of 32 x 32 pixels, 50,000 of them for training, in every form that it comes in.

The binary batches are records of a label and 3,072 bytes: the red pixels row by row, then the green and the blue ones.
The Python batches are pickles of a dictionary with such rows as `data`, and a list `labels`; they are read without
unpickling. Folders hold one image a file, such as ``train/cat/0001.png``. An array file (`.npz`) holds the images as
JPEG: `jpeg`, all files in a row, `offsets`, `labels` and `is_test`.

Source: Krizhevsky 2009, "Learning multiple layers of features from tiny images".
"""

import io
import itertools
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from snnjax._check import check_choice, fail
from snnjax.data._array_file import read_arrays
from snnjax.data._files import PathLike, read_bytes, refuse
from snnjax.data._pickled_arrays import PickledArray, load
from snnjax.data.datasets import ImageDataset

CLASSES = (*("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"),)
_OP = "load_cifar10"
_SIDE, _CHANNELS = 32, 3
_PIXELS = _SIDE * _SIDE * _CHANNELS
_BATCHES = {"train": tuple(f"data_batch_{number}" for number in range(1, 6)), "test": ("test_batch",)}
_HINT = "Pass the folder of the batches or of the images, or the array file"
# What a folder of images may hold; others in it are not images.
_IMAGES = (".png", ".jpg", ".jpeg")


class _Part(NamedTuple):
    """Some images and their labels."""

    images: np.ndarray  # uint8 [samples, height, width, channels]
    labels: np.ndarray  # uint8 [samples]


def load_cifar10(path: PathLike, split: str = "train") -> ImageDataset:
    """Load downloaded CIFAR-10: 50,000 training and 10,000 test images, 32 x 32 with red, green and blue, ten classes.

    `path` is the folder of the published binary batches (``data_batch_1.bin`` to ``5.bin``, ``test_batch.bin``) or
    Python batches (the same without ``.bin``), a folder of images (``train/cat/0001.png``), or an array file of images
    as JPEG. Nothing is unpickled. Images as files need Pillow.

    Errors: the split is unknown; nothing of these is there; a file is damaged, or of another form.

    Example:
        >>> from snnjax.data import load_cifar10
        >>> load_cifar10("nowhere")
        Traceback (most recent call last):
        ...
        ValueError: load_cifar10: `path` must hold CIFAR-10, got nothing in 'nowhere'. Pass the folder of the batches \
or of the images, or the array file.
    """
    check_choice(_OP, "split", split, tuple(_BATCHES))
    root = Path(path)
    if root.is_file():
        part = _array_file(root, split)
    elif (root / split).is_dir():
        part = _folders(root / split)
    else:
        part = _joined(_batch(root, name) for name in _BATCHES[split])
    return ImageDataset(*part, num_classes=len(CLASSES))


def _joined(parts: Iterable[_Part]) -> _Part:
    return _Part(*map(np.concatenate, zip(*parts, strict=True)))


def _batch(root: Path, name: str) -> _Part:
    """The images of one of the published files."""
    if (root / f"{name}.bin").is_file():
        return _binary(root / f"{name}.bin")
    if (root / name).is_file():
        return _pickled(root / name)
    there = any(
        (root / f"{each}{end}").is_file()
        for each in itertools.chain(*_BATCHES.values())
        for end in ("", ".bin")
    )
    if there:
        fail(
            f"{_OP}: `path` must hold {name}, got other batches in {str(root)!r}. Download or extract it again."
        )
    return fail(f"{_OP}: `path` must hold CIFAR-10, got nothing in {str(root)!r}. {_HINT}.")


def _binary(path: Path) -> _Part:
    content = read_bytes(_OP, path, _HINT)
    if len(content) % (1 + _PIXELS):
        refuse(_OP, path, f"hold records of {1 + _PIXELS} bytes", f"{len(content)} bytes")
    rows = np.frombuffer(content, np.uint8).reshape(-1, 1 + _PIXELS)
    return _checked(path, rows[:, 1:], rows[:, 0])


def _pickled(path: Path) -> _Part:
    try:
        batch = load(read_bytes(_OP, path, _HINT))
        rows, labels = _field(batch, "data"), np.asarray(_field(batch, "labels"))
        rows = rows.numbers() if isinstance(rows, PickledArray) else rows
    except (ValueError, TypeError, KeyError, IndexError, AttributeError) as error:
        if str(error).startswith(f"{_OP}: "):
            raise
        refuse(_OP, path, "be a pickled batch of CIFAR-10", " ".join(str(error).split()) or "another pickle")
    return _checked(path, rows, labels)


def _field(batch: Any, name: str) -> Any:
    """A value of the dictionary, whose names are text or bytes."""
    return batch[name] if name in batch else batch[name.encode()]


def _checked(path: Path, rows: Any, labels: np.ndarray) -> _Part:
    """The images of rows of bytes, red ones first, and labels of the ten classes."""
    if not (isinstance(rows, np.ndarray) and rows.dtype == np.uint8 and rows.shape[1:] == (_PIXELS,)):
        actual = f"{rows.dtype.name}{list(rows.shape)}" if isinstance(rows, np.ndarray) else "no array"
        refuse(_OP, path, f"hold images as uint8 [samples, {_PIXELS}]", actual)
    if labels.shape != rows.shape[:1] or labels.dtype.kind not in "iu":
        refuse(_OP, path, f"hold {len(rows)} labels", f"{labels.dtype.name}{list(labels.shape)}")
    if labels.min(initial=0) < 0 or labels.max(initial=0) >= len(CLASSES):
        refuse(_OP, path, "hold labels from 0 to 9", labels.max() if labels.min() >= 0 else labels.min())
    images = rows.reshape(-1, _CHANNELS, _SIDE, _SIDE).transpose(0, 2, 3, 1)
    return _Part(np.ascontiguousarray(images), labels.astype(np.uint8))


def _array_file(path: Path, split: str) -> _Part:
    fields = {"jpeg": "u", "labels": "iu", "is_test": "b"}
    arrays = read_arrays(_OP, path, fields, ("labels", "is_test"), _HINT)
    offsets, labels = arrays["offsets"], arrays["labels"]
    if labels.max(initial=0) >= len(CLASSES) or labels.min(initial=0) < 0:
        refuse(_OP, path, "hold labels from 0 to 9", f"{labels.min()} to {labels.max()}")
    content = arrays["jpeg"].astype(np.uint8).tobytes()
    chosen = np.flatnonzero(arrays["is_test"] == (split == "test"))
    images = [_decoded(path, f"image {i}", content[offsets[i] : offsets[i + 1]]) for i in chosen]
    return _stacked(images, labels[chosen])


def _folders(root: Path) -> _Part:
    """Images in a folder for each class."""
    images, labels = [], []
    for label, name in enumerate(CLASSES):
        for file in _files(root / name):
            images.append(_decoded(file, file.name, read_bytes(_OP, file, _HINT)))
            labels.append(label)
    return _stacked(images, np.array(labels, np.uint8))


def _files(folder: Path) -> Iterator[Path]:
    files = sorted(folder.iterdir()) if folder.is_dir() else []
    found = [file for file in files if file.suffix.lower() in _IMAGES and file.name[0] != "."]
    if not found:
        expected = f"hold images of every class, such as {folder.parent.name}/{folder.name}/1.png"
        fail(f"{_OP}: `path` must {expected}, got none in {str(folder)!r}. {_HINT}.")
    yield from found


def _stacked(images: list[np.ndarray], labels: np.ndarray) -> _Part:
    empty = np.zeros((0, _SIDE, _SIDE, _CHANNELS), np.uint8)
    return _Part(np.stack(images) if images else empty, labels.astype(np.uint8))


def _decoded(path: Path, name: str, content: bytes) -> np.ndarray:
    """An image of a file: uint8 [height, width, channels]."""
    try:
        from PIL import Image
    except ImportError:
        fail(
            f"{_OP}: `path` must hold batches without Pillow, got images. Install it: pip install 'snnjax[data]'."
        )
    try:
        with Image.open(io.BytesIO(content), formats=("PNG", "JPEG")) as image:
            if image.size != (_SIDE, _SIDE):  # before its pixels are believed
                width, height = image.size
                refuse(_OP, path, f"hold images of {_SIDE} x {_SIDE} pixels", f"{width} x {height} ({name})")
            return np.asarray(image.convert("RGB"))
    except (OSError, SyntaxError, ValueError) as error:  # what Pillow raises for damaged files
        if str(error).startswith(f"{_OP}: "):
            raise
        return refuse(_OP, path, "hold PNG or JPEG images", f"another content ({name})")
