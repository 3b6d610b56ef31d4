"""The idx format of MNIST and Fashion-MNIST, plain or compressed with gzip.

Two zero bytes, the code of the type (8: uint8), the number of axes, the length of each axis as a big-endian uint32,
then the values, last axis fastest.

Source: LeCun, Cortes, Burges, "The MNIST database"; Xiao, Rasul, Vollgraf 2017, "Fashion-MNIST", arXiv:1708.07747.
"""

import gzip
import math
import zlib
from pathlib import Path

import numpy as np

from snnjax._check import check_choice, fail, plural
from snnjax.data._files import PathLike, read_bytes, refuse
from snnjax.data.datasets import ImageDataset

_GZIP_MAGIC = b"\x1f\x8b"
_UINT8_MAGIC = b"\x00\x00\x08"
_PREFIXES = {"train": "train", "test": "t10k"}
_HINT = "Download the four idx files of the data set"


def read_idx(path: PathLike) -> np.ndarray:
    """Read the uint8 array in an idx file; gzip is recognised by its first bytes.

    Errors: the file is missing, empty, damaged gzip, not an idx file of uint8, or its length does not match its header.

    Example:
        >>> import pathlib, tempfile
        >>> from snnjax.data import read_idx
        >>> path = pathlib.Path(tempfile.mkdtemp(), "train-labels-idx1-ubyte")
        >>> _ = path.write_bytes(bytes([0, 0, 8, 1, 0, 0, 0, 3, 5, 0, 4]))
        >>> read_idx(path)
        array([5, 0, 4], dtype=uint8)
    """
    content = read_bytes("read_idx", path, _HINT)
    if content.startswith(_GZIP_MAGIC):
        try:
            content = gzip.decompress(content)
        except (OSError, EOFError, zlib.error) as error:
            refuse("read_idx", path, "be a whole gzip file", str(error))
    magic = content[:4]
    if len(magic) < 4 or magic[:3] != _UINT8_MAGIC or magic[3] == 0:
        refuse("read_idx", path, "begin with the bytes 0, 0, 8 and the number of axes", f"{list(magic)}")
    start = 4 + 4 * magic[3]
    if len(content) < start:
        refuse("read_idx", path, f"have a header of {start} bytes", f"{len(content)} bytes")
    shape = [int(length) for length in np.frombuffer(content, ">u4", magic[3], 4)]
    if len(content) - start != math.prod(shape):
        expected = f"have {plural(math.prod(shape), 'value')} at offset {start} for shape {shape}"
        refuse("read_idx", path, expected, f"{len(content) - start}")
    try:
        return np.frombuffer(content, np.uint8, offset=start).reshape(shape).copy()
    except ValueError:
        # More axes than NumPy supports, or axes of length 0 together with enormous ones.
        actual = f"{plural(len(shape), 'length')} of at most {max(shape)}"
        return refuse("read_idx", path, "have a shape that an array can take", actual)


def load_fashion_mnist(root: PathLike, split: str = "train") -> ImageDataset:
    """Load downloaded Fashion-MNIST: 60,000 training and 10,000 test images, 28 x 28, ten kinds of clothes.

    `root` holds `train-images-idx3-ubyte`, `train-labels-idx1-ubyte`, `t10k-images-...` and `t10k-labels-...`, with or
    without `.gz`.

    Errors: the split is unknown, files are missing, images and labels do not match, and those of `read_idx`.

    Example:
        >>> from snnjax.data import load_fashion_mnist
        >>> load_fashion_mnist("nowhere")
        Traceback (most recent call last):
        ...
        ValueError: load_fashion_mnist: `root` must hold train-images-idx3-ubyte or \
train-images-idx3-ubyte.gz, got neither in 'nowhere'. Download the four idx files of the data set.
    """
    return _load("load_fashion_mnist", root, split)


def load_mnist(root: PathLike, split: str = "train") -> ImageDataset:
    """Load downloaded MNIST: 60,000 training and 10,000 test digits; files and errors as for `load_fashion_mnist`.

    Example:
        >>> from snnjax.data import load_mnist
        >>> load_mnist(".", "validation")
        Traceback (most recent call last):
        ...
        ValueError: load_mnist: `split` must be 'train' or 'test', got 'validation'. Choose one of these.
    """
    return _load("load_mnist", root, split)


def _load(op: str, root: PathLike, split: str) -> ImageDataset:
    check_choice(op, "split", split, tuple(_PREFIXES))
    image_file = _find(op, root, f"{_PREFIXES[split]}-images-idx3-ubyte")
    label_file = _find(op, root, f"{_PREFIXES[split]}-labels-idx1-ubyte")
    images, labels = read_idx(image_file), read_idx(label_file)
    if images.ndim != 3:
        refuse(op, image_file, "hold images [samples, height, width]", f"shape {list(images.shape)}")
    if labels.shape != images.shape[:1]:
        refuse(op, label_file, f"hold {plural(len(images), 'label')}", f"shape {list(labels.shape)}")
    if labels.max(initial=0) > 9:
        refuse(op, label_file, "hold labels from 0 to 9", labels.max())
    return ImageDataset(images, labels, num_classes=10)


def _find(op: str, root: PathLike, name: str) -> Path:
    """The file `name`, or `name`.gz, in `root`."""
    for path in (Path(root, name), Path(root, f"{name}.gz")):
        if path.is_file():
            return path
    return fail(f"{op}: `root` must hold {name} or {name}.gz, got neither in {str(root)!r}. {_HINT}.")
