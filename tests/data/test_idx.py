"""idx files written by the test in the true format."""

import gzip

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from snnjax.data import load_fashion_mnist, load_mnist, read_idx
from tests.data.damage import check_absent, flips, survives

HINT = "Download the four idx files of the data set"
IMAGES = np.arange(2 * 3 * 4, dtype=np.uint8).reshape(2, 3, 4)


def encode(array):
    shape = b"".join(length.to_bytes(4, "big") for length in array.shape)
    return bytes([0, 0, 8, array.ndim]) + shape + array.tobytes()


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return tmp_path_factory.mktemp("idx") / "train-images-idx3-ubyte"


@given(hnp.arrays(np.uint8, hnp.array_shapes(min_dims=1, max_dims=4, min_side=0, max_side=4)), st.booleans())
def test_read_idx_round_trip(path, array, compressed):
    path.write_bytes(gzip.compress(encode(array)) if compressed else encode(array))
    read = read_idx(path)
    assert read.dtype == np.uint8
    assert read.shape == array.shape
    assert np.array_equal(read, array)


@pytest.mark.parametrize("compress", [bytes, gzip.compress])
def test_read_idx_cut_anywhere(path, compress):
    content = compress(encode(IMAGES))
    for length in range(1, len(content)):
        assert survives("read_idx", read_idx, path, content[:length]) is None


@given(flips(encode(IMAGES)))
def test_read_idx_bits_flipped(path, content):
    read = survives("read_idx", read_idx, path, content)
    assert read is None or read.size == IMAGES.size


@given(flips(gzip.compress(encode(IMAGES), mtime=0)))
def test_read_idx_bits_of_gzip_flipped(path, content):
    read = survives("read_idx", read_idx, path, content)
    # The check sum sees whatever matters; the name, time and system in the header may differ.
    assert read is None or np.array_equal(read, IMAGES)


def test_read_idx_refuses_absent_files(tmp_path):
    check_absent("read_idx", read_idx, tmp_path, HINT)


@pytest.mark.parametrize(
    "content, message",
    [
        (
            bytes([0, 0, 13, 1, 0, 0, 0, 0]),
            "begin with the bytes 0, 0, 8 and the number of axes, got [0, 0, 13, 1]",
        ),
        (bytes([0, 0, 8]), "begin with the bytes 0, 0, 8 and the number of axes, got [0, 0, 8]"),
        (bytes([0, 0, 8, 2, 0, 0, 0, 1]), "have a header of 12 bytes, got 8 bytes"),
        (encode(IMAGES) + b"x", "have 24 values at offset 16 for shape [2, 3, 4], got 25"),
        (
            bytes([0, 0, 8, 65]) + 65 * bytes([0, 0, 0, 1]) + b"x",
            "have a shape that an array can take, got 65 lengths of at most 1",
        ),
        (b"\x1f\x8bnonsense", "be a whole gzip file, got Unknown compression method"),
    ],
)
def test_read_idx_refuses(path, content, message):
    path.write_bytes(content)
    with pytest.raises(ValueError) as caught:
        read_idx(path)
    assert str(caught.value) == (
        f"read_idx: `path` must {message} in {str(path)!r}. Download or extract the file again."
    )


@pytest.fixture
def root(tmp_path):
    labels = np.array([9, 0], np.uint8)
    (tmp_path / "train-images-idx3-ubyte").write_bytes(encode(IMAGES))
    (tmp_path / "train-labels-idx1-ubyte.gz").write_bytes(gzip.compress(encode(labels)))
    return tmp_path


@pytest.mark.parametrize("load", [load_mnist, load_fashion_mnist])
def test_load_idx_makes_data_set(root, load):
    data = load(root)
    assert np.array_equal(data.images, IMAGES)
    assert data.labels.tolist() == [9, 0]
    assert data.num_classes == 10


def test_load_mnist_refuses_missing_split(root):
    with pytest.raises(ValueError) as caught:
        load_mnist(root, "test")
    name = "t10k-images-idx3-ubyte"
    assert str(caught.value) == (
        f"load_mnist: `root` must hold {name} or {name}.gz, got neither in {str(root)!r}. {HINT}."
    )


@pytest.mark.parametrize(
    "name, array, message",
    [
        (
            "train-images-idx3-ubyte",
            np.zeros(3, np.uint8),
            "hold images [samples, height, width], got shape [3]",
        ),
        ("train-labels-idx1-ubyte", np.zeros(3, np.uint8), "hold 2 labels, got shape [3]"),
        ("train-labels-idx1-ubyte", np.array([3, 10], np.uint8), "hold labels from 0 to 9, got 10"),
    ],
)
def test_load_mnist_refuses_files_that_do_not_fit(root, name, array, message):
    path = root / name
    path.write_bytes(encode(array))
    with pytest.raises(ValueError) as caught:
        load_mnist(root)
    assert str(caught.value) == (
        f"load_mnist: `path` must {message} in {str(path)!r}. Download or extract the file again."
    )
