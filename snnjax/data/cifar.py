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

from snnjax._check import check_choice, fail, plural
from snnjax.data._array_file import read_arrays
from snnjax.data._files import PathLike, read_bytes, refuse
from snnjax.data._pickled_arrays import load
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
        ValueError: load_cifar10: `path` must hold CIFAR-10, got nothing of it in 'nowhere'. Pass the folder of the \
batches or of the images, or the array file.
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
    others = (root / f"{each}{end}" for each in itertools.chain(*_BATCHES.values()) for end in ("", ".bin"))
    if any(other.is_file() for other in others):
        hint = "Download or extract it again"
        fail(f"{_OP}: `path` must hold {name}, got other batches in {str(root)!r}. {hint}.")
    return fail(f"{_OP}: `path` must hold CIFAR-10, got nothing of it in {str(root)!r}. {_HINT}.")


def _binary(path: Path) -> _Part:
    content, record = read_bytes(_OP, path, _HINT), 1 + _PIXELS
    if len(content) % record:
        refuse(_OP, path, f"hold records of {record} bytes", f"{len(content)} bytes")
    rows = np.frombuffer(content, np.uint8).reshape(-1, record)
    return _of_rows(path, rows[:, 1:], rows[:, 0])


def _pickled(path: Path) -> _Part:
    content = read_bytes(_OP, path, _HINT)
    try:
        batch = load(content)
        rows, labels = _value(batch, "data").numbers(), np.array(_value(batch, "labels"))
    except (ValueError, TypeError, KeyError, IndexError, AttributeError, OverflowError) as error:
        refuse(_OP, path, "be a pickled batch of CIFAR-10", " ".join(f"{error}".split()) or "another pickle")
    return _of_rows(path, rows, labels)


def _value(batch: Any, name: str) -> Any:
    """A value of a dictionary, whose names are text or bytes."""
    return batch[name] if name in batch else batch[name.encode()]


def _of_rows(path: Path, rows: np.ndarray, labels: np.ndarray) -> _Part:
    """The images of rows of bytes, all red ones first."""
    if rows.dtype != np.uint8 or rows.shape[1:] != (_PIXELS,):
        actual = f"{rows.dtype.name}{list(rows.shape)}"
        refuse(_OP, path, f"hold images as uint8 [samples, {_PIXELS}]", actual)
    if labels.shape != rows.shape[:1] or labels.dtype.kind not in "iu":
        refuse(_OP, path, f"hold {plural(len(rows), 'label')}", f"{labels.dtype.name}{list(labels.shape)}")
    images = rows.reshape(-1, _CHANNELS, _SIDE, _SIDE).transpose(0, 2, 3, 1)
    return _Part(np.ascontiguousarray(images), _of_ten(path, labels))


def _of_ten(path: Path, labels: np.ndarray) -> np.ndarray:
    """The labels, if they are those of the ten classes."""
    least, most = labels.min(initial=0), labels.max(initial=0)
    if least < 0 or most >= len(CLASSES):
        refuse(_OP, path, "hold labels from 0 to 9", most if least >= 0 else least)
    return labels.astype(np.uint8)


def _array_file(path: Path, split: str) -> _Part:
    fields = {"jpeg": "u", "labels": "iu", "is_test": "b"}
    arrays = read_arrays(_OP, path, fields, ("labels", "is_test"), _HINT)
    labels, offsets = _of_ten(path, arrays["labels"]), arrays["offsets"]
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
        hint = "Install it, for instance with pip install pillow"
        fail(f"{_OP}: `pillow` must be installed for files of images, got no such package. {hint}.")
    try:
        with Image.open(io.BytesIO(content), formats=("PNG", "JPEG")) as image:
            size = image.size
            # A damaged size is refused before any memory is taken for it.
            pixels = np.asarray(image.convert("RGB")) if size == (_SIDE, _SIDE) else None
    except Exception:  # damaged files raise many kinds, some of Pillow's own
        refuse(_OP, path, "hold PNG or JPEG images", f"other content ({name})")
    if pixels is None:
        actual = f"{size[0]} x {size[1]} ({name})"
        refuse(_OP, path, f"hold images of {_SIDE} x {_SIDE} pixels", actual)
    return pixels
