"""CIFAR-10: small files written by the test in every published form hold the same images; others are refused."""

import io
import pickle
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from PIL import Image

from snnjax.data import load_cifar10
from snnjax.data.cifar import CLASSES
from tests.data.damage import flips, survives
from tests.errors.refusals import refusals

RANDOM = np.random.default_rng(0)
# Two images a class; the training part is in five files.
LABELS = np.repeat(np.arange(10, dtype=np.uint8), 2)
IMAGES = RANDOM.integers(0, 256, (20, 32, 32, 3), np.uint8)
# By columns of one colour: as JPEG they come back nearly as they were.
SMOOTH = np.broadcast_to(RANDOM.integers(0, 256, (20, 1, 1, 1), np.uint8), IMAGES.shape)
BATCHES = [*(f"data_batch_{number}" for number in range(1, 6)), "test_batch"]
HINT = "Pass the folder of the batches or of the images, or the array file"
AGAIN = "Download or extract the file again"


def rows(images: np.ndarray) -> np.ndarray:
    """All red pixels of an image, then the green and the blue ones."""
    return images.transpose(0, 3, 1, 2).reshape(len(images), -1)


def binary(part: slice) -> bytes:
    return np.concatenate([LABELS[part, None], rows(IMAGES[part])], axis=1).tobytes()


def of_python_2(part: slice, **changes: bytes) -> bytes:
    """A batch as it is published: a pickle of Python 2 in protocol 2, whose bytes are text."""
    data, labels = rows(IMAGES[part]).tobytes(), bytes(LABELS[part])
    text = b"T" + len(data).to_bytes(4, "little") + data
    array = b"cnumpy.core.multiarray\n_reconstruct\nq\x01cnumpy\nndarray\nq\x02K\x00\x85U\x01b\x87R"
    dtype = b"cnumpy\ndtype\nU\x02u1K\x00K\x01\x87R(K\x03U\x01|NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb"
    state = b"(K\x01K" + bytes([len(labels)]) + b"M\x00\x0c\x86" + dtype + b"\x89" + text + b"tb"
    numbers = b"](" + b"".join(b"K" + bytes([label]) for label in labels) + b"e"
    parts = {"data": array + state, "labels": numbers} | changes
    named = b"".join(b"U" + bytes([len(name)]) + name.encode() + value for name, value in parts.items())
    return b"\x80\x02}(" + named + b"u."


def of_python_3(part: slice, **changes: object) -> bytes:
    batch = {b"data": rows(IMAGES[part]), b"labels": LABELS[part].tolist()}
    return pickle.dumps(batch | {name.encode(): each for name, each in changes.items()}, 4)


def encoded(image: np.ndarray, kind: str) -> bytes:
    content = io.BytesIO()
    Image.fromarray(image).save(content, kind)
    return content.getvalue()


def jpegs(path: Path, **changes: np.ndarray) -> Path:
    files = [encoded(image, "JPEG") for image in SMOOTH]
    arrays = {
        "jpeg": np.frombuffer(b"".join(files), np.uint8),
        "offsets": np.cumsum([0, *map(len, files)]),
        "labels": LABELS,
        "is_test": np.arange(20) % 2 == 1,
    }
    np.savez(path, **(arrays | changes))
    return path


def write_batches(folder: Path, encode, end: str) -> Path:
    """The first half of the images in five files, the second as test data."""
    for number, name in enumerate(BATCHES):
        part = slice(10, 20) if name == "test_batch" else slice(2 * number, 2 * number + 2)
        (folder / f"{name}{end}").write_bytes(encode(part))
    return folder


@pytest.mark.parametrize("encode, end", [(binary, ".bin"), (of_python_2, ""), (of_python_3, "")])
def test_batches_hold_the_images(encode, end: str, tmp_path) -> None:
    write_batches(tmp_path, encode, end)
    for split, part in ("train", slice(0, 10)), ("test", slice(10, 20)):
        found = load_cifar10(tmp_path, split)
        np.testing.assert_array_equal(found.images, IMAGES[part], strict=True)
        np.testing.assert_array_equal(found.labels, LABELS[part], strict=True)
        assert found.num_classes == 10


def write_folders(folder: Path, kind: str) -> Path:
    """As unpacked, with what macOS and others put beside the images."""
    for number, (image, label) in enumerate(zip(IMAGES, LABELS, strict=True)):
        own = folder / ("test" if number % 2 else "train") / CLASSES[label]
        own.mkdir(parents=True)
        (own / f"{number:04}.{kind}").write_bytes(encoded(image, kind))
        (own / f"._{number:04}.{kind}").write_bytes(b"Mac OS X")
        (own / "notes.txt").touch()
    return folder


def test_folders_hold_the_images(tmp_path) -> None:
    write_folders(tmp_path, "png")
    for split, part in ("train", slice(0, 20, 2)), ("test", slice(1, 20, 2)):
        found = load_cifar10(str(tmp_path), split)
        np.testing.assert_array_equal(found.images, IMAGES[part], strict=True)
        np.testing.assert_array_equal(found.labels, LABELS[part], strict=True)


def test_array_file_holds_the_images(tmp_path) -> None:
    found = load_cifar10(jpegs(tmp_path / "images.npz"), "test")
    # JPEG rounds a grey image to the next level or so
    assert np.abs(found.images.astype(int) - SMOOTH[1::2]).max() <= 2
    np.testing.assert_array_equal(found.labels, LABELS[1::2], strict=True)


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("cifar")


@given(flips(of_python_2(slice(0, 1))))
def test_damaged_batches_are_refused_or_have_another_pixel(folder: Path, content: bytes) -> None:
    found = survives(
        "load_cifar10", lambda path: load_cifar10(path.parent, "test"), folder / "test_batch", content
    )
    assert found is None or found.images.shape[1:] == (32, 32, 3)


@given(flips(encoded(IMAGES[0], "PNG")))
def test_damaged_images_are_refused(folder: Path, content: bytes) -> None:
    for name in CLASSES:
        (folder / "one/test" / name).mkdir(parents=True, exist_ok=True)
        (folder / "one/test" / name / "1.png").write_bytes(encoded(IMAGES[0], "PNG"))
    path = folder / "one/test/cat/1.png"
    found = survives("load_cifar10", lambda _: load_cifar10(folder / "one", "test"), path, content)
    assert found is None or found.images.shape == (10, 32, 32, 3)


def changed(folder: Path, name: str, content: bytes) -> Path:
    (folder / name).write_bytes(content)
    return folder


PART = slice(0, 1)
# What is refused, and a function that writes it to a folder.
REFUSED = {
    "hold records of 3073 bytes, got 3072 bytes in '{}/test_batch.bin'": lambda folder: changed(
        folder, "test_batch.bin", binary(PART)[1:]
    ),
    "hold labels from 0 to 9, got 10 in '{}/test_batch.bin'": lambda folder: changed(
        folder, "test_batch.bin", b"\n" + binary(PART)[1:]
    ),
    "hold labels from 0 to 9, got -1 in '{}/test_batch'": lambda folder: changed(
        folder, "test_batch", of_python_3(PART, labels=[-1])
    ),
    "hold 1 label, got int64[2] in '{}/test_batch'": lambda folder: changed(
        folder, "test_batch", of_python_3(PART, labels=[1, 2])
    ),
    "hold images as uint8 [samples, 3072], got uint8[1, 4] in '{}/test_batch'": lambda folder: changed(
        folder, "test_batch", of_python_3(PART, data=np.zeros((1, 4), np.uint8))
    ),
    "be a pickled batch of CIFAR-10, got a pickle that calls builtins.print in '{}/test_batch'": lambda folder: (
        changed(folder, "test_batch", pickle.dumps(Calls(), 4))
    ),
    "hold PNG or JPEG images, got other content (image 1) in '{}/i.npz'": lambda folder: jpegs(
        folder / "i.npz", jpeg=np.zeros(int(np.load(jpegs(folder / "j.npz"))["offsets"][-1]), np.uint8)
    ),
    "hold labels from 0 to 9, got 11 in '{}/i.npz'": lambda folder: jpegs(
        folder / "i.npz", labels=LABELS + np.uint8(2)
    ),
    "hold images of 32 x 32 pixels, got 2 x 1 (1.png) in '{}/test/airplane/1.png'": lambda folder: wrong_size(
        folder
    ),
}


class Calls:
    """Unpickled, it would call a function."""

    def __reduce__(self):
        return print, ("called",)


def wrong_size(folder: Path) -> Path:
    own = folder / "test" / "airplane"
    own.mkdir(parents=True)
    (own / "1.png").write_bytes(encoded(np.zeros((1, 2, 3), np.uint8), "PNG"))
    return folder


@pytest.mark.parametrize("text", REFUSED)
def test_wrong_files_are_named(text: str, tmp_path) -> None:
    path = REFUSED[text](tmp_path)
    with pytest.raises(ValueError) as refused:
        load_cifar10(path, "test")
    assert str(refused.value) == f"load_cifar10: `path` must {text.format(tmp_path)}. {AGAIN}."


def test_missing_parts_are_named(tmp_path) -> None:
    (tmp_path / "data_batch_1").write_bytes(of_python_3(PART))
    (tmp_path / "images/test").mkdir(parents=True)
    for path, actual in [
        (tmp_path, f"test_batch, got other batches in {str(tmp_path)!r}. Download or extract it again."),
        (
            tmp_path / "images",
            "images of every class, such as test/airplane/1.png, got none in "
            f"{str(tmp_path / 'images/test/airplane')!r}. {HINT}.",
        ),
    ]:
        with pytest.raises(ValueError) as refused:
            load_cifar10(path, "test")
        assert str(refused.value) == f"load_cifar10: `path` must hold {actual}"


def test_images_say_how_to_get_pillow(tmp_path, monkeypatch) -> None:
    path = jpegs(tmp_path / "i.npz")
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(ValueError) as refused:
        load_cifar10(path)
    assert str(refused.value) == (
        "load_cifar10: `pillow` must be installed for files of images, got no such package. Install it, for instance "
        "with pip install pillow."
    )


test_wrong_arguments_are_named = refusals(
    {
        "load_cifar10: `split` must be 'train' or 'test', got 'valid'. Choose one of these.": lambda: (
            load_cifar10(".", "valid")
        ),
        f"load_cifar10: `path` must hold CIFAR-10, got nothing of it in 'nowhere'. {HINT}.": lambda: (
            load_cifar10("nowhere")
        ),
    }
)
