"""N-MNIST files written by the test in the true format."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from snnjax.data import load_nmnist, read_nmnist
from tests.data.damage import check_absent, flips, survives

HINT = "Download N-MNIST from doi.org/10.17632/468j46mzdv.1, and unpack Train.zip and Test.zip"
EVENTS = st.lists(
    st.tuples(st.integers(0, 33), st.integers(0, 33), st.integers(0, 1), st.integers(0, 2**23 - 1)),
    min_size=1,
)
# Any events will do, as long as no byte of them is special.
SAMPLE = [(3, 7, 1, 256), (33, 0, 0, 70_000), (0, 33, 1, 299_999)]


def encode(events):
    """Five bytes an event: x, y, then polarity and time in 24 bits."""
    return b"".join(
        bytes([x, y]) + (polarity << 23 | time).to_bytes(3, "big") for x, y, polarity, time in events
    )


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return tmp_path_factory.mktemp("nmnist") / "00001.bin"


@given(EVENTS)
def test_read_nmnist_round_trip(path, events):
    path.write_bytes(encode(events))
    read = read_nmnist(path)
    assert list(zip(read.x, read.y, read.polarity, read.times, strict=True)) == events


def test_read_nmnist_adds_clock_overflow(path):
    path.write_bytes(encode([(1, 2, 0, 5), (0, 240, 0, 0), (1, 2, 0, 7), (200, 240, 1, 9), (1, 2, 1, 8)]))
    read = read_nmnist(path)
    assert read.times.tolist() == [5, 7 + 8192, 8 + 16384]
    assert read.polarity.tolist() == [0, 0, 1]


def test_read_nmnist_ids_are_polarity_row_column(path):
    path.write_bytes(encode([(3, 7, 0, 0), (3, 7, 1, 0)]))
    assert read_nmnist(path).ids(34, 34).tolist() == [7 * 34 + 3, 1156 + 7 * 34 + 3]


def test_read_nmnist_cut_anywhere(path):
    content = encode(SAMPLE)
    for length in range(1, len(content)):
        read = survives("read_nmnist", read_nmnist, path, content[:length])
        # At the end of an event a cut cannot be seen.
        assert (read is None) == (length % 5 != 0)


@given(flips(encode(SAMPLE)))
def test_read_nmnist_bits_flipped(path, content):
    read = survives("read_nmnist", read_nmnist, path, content)
    assert read is None or (len(set(map(len, read))) == 1 and read.ids(34, 34).max(initial=0) < 2312)


def test_read_nmnist_refuses(path, tmp_path):
    check_absent("read_nmnist", read_nmnist, tmp_path, HINT)
    path.write_bytes(encode(SAMPLE) + b"ab")
    with pytest.raises(ValueError) as caught:
        read_nmnist(path)
    assert str(caught.value) == (
        "read_nmnist: `path` must hold events of 5 bytes each, got 17 bytes, 2 of them left at offset 15, in "
        f"{str(path)!r}. Download or extract the file again."
    )
    path.write_bytes(encode([SAMPLE[0], (34, 5, 0, 0)]))
    with pytest.raises(ValueError) as caught:
        read_nmnist(path)
    assert str(caught.value) == (
        "read_nmnist: `path` must hold pixels (x, y) below (34, 34), got (34, 5) at offset 5 in "
        f"{str(path)!r}. Download or extract the file again."
    )


def write_data_set(root, folder="Train"):
    for digit in range(10):
        (root / folder / str(digit)).mkdir(parents=True)
        (root / folder / str(digit) / "00002.bin").write_bytes(encode([(digit, 0, 0, 299_999)]))
        (root / folder / str(digit) / "00001.bin").write_bytes(
            encode([(digit, 1, 1, 0), (digit, 1, 1, 9_999)])
        )


def test_load_nmnist_makes_data_set(tmp_path):
    write_data_set(tmp_path)
    data = load_nmnist(tmp_path, capacity=2)
    assert data.ids.shape == (20, 30, 2)
    assert data.labels.tolist() == np.repeat(np.arange(10), 2).tolist()
    batch = data.take([6, 7])
    # Digit 3, files in order of name; both events of the first fall into the first 10 ms.
    assert np.argwhere(np.asarray(batch.inputs.to_dense()) == 1).tolist() == [
        [0, 0, 1156 + 34 + 3],
        [29, 1, 3],
    ]


def test_load_nmnist_skips_what_macos_puts_beside_files(tmp_path):
    write_data_set(tmp_path)
    (tmp_path / "Train" / "3" / "._00001.bin").write_bytes(b"\0\5\26\7Mac OS X")
    assert len(load_nmnist(tmp_path)) == 20


def test_load_nmnist_refuses(tmp_path):
    write_data_set(tmp_path)
    (tmp_path / "Train" / "4" / "00001.bin").unlink()
    (tmp_path / "Train" / "4" / "00002.bin").unlink()
    with pytest.raises(ValueError) as caught:
        load_nmnist(tmp_path)
    assert str(caught.value) == (
        f"load_nmnist: `root` must hold files Train/4/*.bin, got none in {str(tmp_path)!r}. {HINT}."
    )
    with pytest.raises(ValueError) as caught:
        load_nmnist(tmp_path, "validation")
    assert str(caught.value) == (
        "load_nmnist: `split` must be 'train' or 'test', got 'validation'. Choose one of these."
    )


def write_arrays(path, **changes):
    """The data set of `write_data_set` as one file, of which all or none of a digit's recordings are for testing."""
    recordings = [[(digit, 1, 1, 0), (digit, 1, 1, 9_999)] for digit in range(10)]
    recordings += [[(digit, 0, 0, 299_999)] for digit in range(10)]
    columns = np.array([event for recording in recordings for event in recording]).T
    arrays = dict(zip(("x", "y", "polarity", "time_us"), columns, strict=True))
    arrays |= {"offsets": np.cumsum([0, *map(len, recordings)]), "label": np.arange(20) % 10}
    np.savez(path, **(arrays | {"is_test": np.arange(20) >= 10} | changes))


def test_load_nmnist_reads_an_array_file(tmp_path):
    write_data_set(tmp_path)
    write_arrays(tmp_path / "one.npz")
    train, test = (load_nmnist(tmp_path / "one.npz", split) for split in ("train", "test"))
    assert train.labels.tolist() == test.labels.tolist() == list(range(10))
    whole = load_nmnist(tmp_path)
    np.testing.assert_array_equal(train.ids, whole.ids[::2])
    np.testing.assert_array_equal(test.ids, whole.ids[1::2])


@pytest.mark.parametrize("fold", [0, 9])
def test_load_nmnist_folds_are_of_both_parts(tmp_path, fold):
    write_arrays(tmp_path / "one.npz")
    parts = [load_nmnist(tmp_path / "one.npz", split, fold=fold) for split in ("train", "test")]
    assert [len(part) for part in parts] == [18, 2]
    counts = [int(part.counts.max(axis=1).sum()) for part in parts]
    assert sum(counts) == 20  # each recording is in one of them


def test_load_nmnist_refuses_array_files(tmp_path):
    path = tmp_path / "one.npz"
    for changes, text in (
        ({"x": np.full(30, 34)}, "have x from 0 to 33, got 34 to 34"),
        ({"polarity": np.full(30, -1)}, "have polarity from 0 to 1, got -1 to -1"),
        ({"is_test": np.zeros(20)}, "have one axis of whole numbers in is_test, got float64[20]"),
        ({"y": np.zeros(29, int)}, "hold 30 values of y, as its offsets say, got 29"),
    ):
        write_arrays(path, **changes)
        with pytest.raises(ValueError) as caught:
            load_nmnist(path)
        assert str(caught.value) == (
            f"load_nmnist: `path` must {text} in {str(path)!r}. Download or extract the file again."
        )
    path.unlink()
    for fold, text in (
        (None, f"`path` must be a readable file, got {str(path)!r} (No such file or directory). {HINT}"),
        (10, "`fold` must be between 0 and 9, got 10. Number the folds from 0"),
    ):
        with pytest.raises(ValueError) as caught:
            load_nmnist(path, fold=fold)
        assert str(caught.value) == f"load_nmnist: {text}."
