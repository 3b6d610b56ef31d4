"""Spoken digits: files written by the test in the published form, and the array file."""

import re
import wave

import numpy as np
import pytest
from hypothesis import given

from snnjax.data import load_fsdd, read_fsdd
from tests.data.damage import flips, survives

HINT = (
    "Pass the folder `recordings` of github.com/Jakobovski/free-spoken-digit-dataset, or an array file of it"
)
# Digit, speaker and repetition of each word, in the order of the names of its file.
WORDS = [(3, "ann", 4), (3, "ann", 5), (3, "bob", 2), (7, "ann", 5), (7, "bob", 12)]


def tone(number: int, samples: int = 600) -> np.ndarray:
    """A tone, higher for a larger number, between two silences."""
    sound = 8000 * np.sin(2 * np.pi * (300 + 600 * number) * np.arange(samples) / 8000)
    return np.pad(sound, 100).astype(np.int16)


def write_wav(path, samples, channels: int = 1, width: int = 2, rate: int = 8000) -> None:
    with wave.open(str(path), "wb") as file:
        file.setnchannels(channels)
        file.setsampwidth(width)
        file.setframerate(rate)
        file.writeframes(samples.astype("<i2").tobytes())


def write_arrays(path, **changes) -> None:
    waves = [tone(number) for number in range(5)]
    digits, speakers, repetitions = zip(*((d, "ab".index(s[0]), r) for d, s, r in WORDS), strict=True)
    arrays = {
        "samples": np.concatenate(waves),
        "offsets": np.cumsum([0, *map(len, waves)]),
        "digit": np.array(digits, np.uint8),
        "speaker": np.array(speakers, np.uint8),
        "index": np.array(repetitions, np.uint8),
    }
    np.savez_compressed(path, **{name: each for name, each in (arrays | changes).items() if each is not None})


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """As downloaded, with what macOS and others put beside the files."""
    folder = tmp_path_factory.mktemp("recordings")
    for number, word in enumerate(WORDS):
        write_wav(folder / "{}_{}_{}.wav".format(*word), tone(number))
    (folder / "._3_ann_4.wav").write_bytes(b"\0\5\26\7Mac OS X")
    (folder / "notes.txt").touch()
    return folder


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("arrays") / "words.npz"
    write_arrays(path)
    return path


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """The folder of events that were heard."""
    return tmp_path_factory.mktemp("kept")


def test_folder_and_array_file_hold_the_same_words(folder, path) -> None:
    for words in (read_fsdd(folder), read_fsdd(path)):
        assert words.digit.tolist() == [3, 3, 3, 7, 7]
        assert words.speaker.tolist() == [0, 0, 1, 0, 1]
        assert words.repetition.tolist() == [4, 5, 2, 5, 12]
        assert words.sample_rate == 8000
        for number, samples in enumerate(words.waves):
            np.testing.assert_array_equal(samples, tone(number))


def test_words_are_heard_once_and_split(folder, path, kept) -> None:
    heard = []
    options = {"folder": kept, "on_words": lambda done, total: heard.append((done, total))}
    test = load_fsdd(folder, "test", **options)
    assert heard == [(number, 5) for number in range(1, 6)]
    assert test.labels.tolist() == [3, 3] and test.ids.shape[:2] == (2, 65) and test.num_neurons == 700
    train = load_fsdd(path, **options)  # the same words
    assert len(heard) == 5 and train.labels.tolist() == [3, 7, 7]
    bob, others = (load_fsdd(path, split, speakers=[1], **options) for split in ("test", "train"))
    assert bob.labels.tolist() == [3, 7] and others.labels.tolist() == [3, 3, 7]
    np.testing.assert_array_equal(bob.ids[0, :, : test.capacity], test.ids[1, :, : bob.capacity])


def test_higher_tones_are_heard_in_lower_channels(path, kept) -> None:
    words = [load_fsdd(path, split, folder=kept, downsample=5, num_steps=650) for split in ("train", "test")]
    dense = [np.asarray(each.take(range(len(each))).inputs.to_dense()).sum(axis=0) for each in words]
    assert words[0].num_neurons == 140
    places = [each.argmax(axis=1) for each in dense]
    assert (
        places[1][0] > places[0][0] > places[1][1] > places[0][1] > places[0][2]
    )  # of words 0, 1, 2, 3 and 4
    assert all(np.all(part.counts[:, 76:] == 0) for part in words)  # the silence around the 75 ms was cut


def test_read_fsdd_cut_anywhere(path, tmp_path) -> None:
    content = path.read_bytes()
    for length in range(1, len(content), 37):
        assert survives("read_fsdd", read_fsdd, tmp_path / "cut.npz", content[:length]) is None


@pytest.fixture(scope="module")
def damaged(tmp_path_factory):
    return tmp_path_factory.mktemp("damaged") / "words.npz"


def _small() -> bytes:
    import io

    content = io.BytesIO()
    numbers = {"digit": np.array([3]), "speaker": np.array([0]), "index": np.array([1])}
    np.savez(content, samples=np.arange(9), offsets=np.array([0, 9]), **numbers)
    return content.getvalue()


@given(flips(_small()))
def test_read_fsdd_bits_flipped(damaged, content) -> None:
    words = survives("read_fsdd", read_fsdd, damaged, content)
    assert words is None or [len(each) for each in words.waves] == [9]


ARRAYS = {
    "no array": ({"digit": None}, "hold an array digit, got none"),
    "kind": ({"samples": np.zeros(4000)}, "have one axis of whole numbers in samples, got float64[4000]"),
    "axes": ({"digit": np.zeros((5, 1), int)}, "have one axis of whole numbers in digit, got int64[5, 1]"),
    "sizes": ({"digit": np.zeros(4, int)}, "hold 5 values of digit, as its offsets say, got 4"),
    "offsets": (
        {"offsets": np.array([0, 800, 700, 2400, 3200, 4000])},
        "have offsets that begin with 0 and never decrease, got others",
    ),
    "digit": ({"digit": np.array([0, 1, 2, 3, 10])}, "have digit from 0 to 9, got 0 to 10"),
    "range": ({"samples": np.full(4000, 40000)}, "have samples from -32768 to 32767, got 40000 to 40000"),
}


@pytest.mark.parametrize("case", sorted(ARRAYS))
def test_array_file_is_checked(case: str, tmp_path) -> None:
    changes, text = ARRAYS[case]
    path = tmp_path / "words.npz"
    write_arrays(path, **changes)
    with pytest.raises(ValueError) as caught:
        read_fsdd(path)
    assert str(caught.value) == (
        f"read_fsdd: `path` must {text} in {str(path)!r}. Download or extract the file again."
    )


WAVS = {
    "stereo": ({"channels": 2}, "have one channel of 16 bits, got 2 of 16 bits"),
    "bits": ({"width": 1}, "have one channel of 16 bits, got 1 of 8 bits"),
    "rate": ({"rate": 16000}, "have 8000 samples per second, as the first file has, got 16000"),
}


@pytest.mark.parametrize("case", sorted(WAVS))
def test_wav_is_checked(case: str, tmp_path) -> None:
    options, text = WAVS[case]
    write_wav(tmp_path / "0_ann_0.wav", tone(0))
    path = tmp_path / "1_ann_0.wav"
    write_wav(path, tone(1), **options)
    with pytest.raises(ValueError) as caught:
        read_fsdd(tmp_path)
    assert str(caught.value) == (
        f"read_fsdd: `path` must {text} in {str(path)!r}. Download or extract the file again."
    )


def test_what_is_no_sound_is_refused(folder, path, kept, tmp_path) -> None:
    good = (folder / "3_ann_4.wav").read_bytes()
    for content in (b"", b"RIFF", good[:30], good[:44]):
        (tmp_path / "1_ann_0.wav").write_bytes(content)
        with pytest.raises(ValueError, match=r"^read_fsdd: `path` must (be a .wav file|hold samples), got "):
            read_fsdd(tmp_path)
    write_wav(tmp_path / "1_ann_0.wav", np.zeros(100))
    text = "load_fsdd: `path` must hold sounds, got a silent recording. Remove it."
    with pytest.raises(ValueError, match=f"^{re.escape(text)}$"):
        load_fsdd(tmp_path, folder=kept)
    text = "load_fsdd: `speakers` must be among [0, 1], got [2, 7]. Omit the others."
    with pytest.raises(ValueError, match=f"^{re.escape(text)}$"):
        load_fsdd(path, speakers=[7, 1, 2], folder=kept)
    text = "load_fsdd: `split` must be 'train' or 'test', got 'valid'. Choose one of these."
    with pytest.raises(ValueError, match=f"^{re.escape(text)}$"):
        load_fsdd(path, "valid")


def test_missing_data_say_where_to_get_them(tmp_path) -> None:
    text = f"read_fsdd: `path` must hold files <digit>_<speaker>_<index>.wav, got none in {str(tmp_path)!r}. {HINT}."
    with pytest.raises(ValueError, match=f"^{re.escape(text)}$"):
        read_fsdd(tmp_path)
    missing = tmp_path / "missing.npz"
    text = f"read_fsdd: `path` must be a readable file, got {str(missing)!r} (No such file or directory). {HINT}."
    with pytest.raises(ValueError, match=f"^{re.escape(text)}$"):
        read_fsdd(missing)
