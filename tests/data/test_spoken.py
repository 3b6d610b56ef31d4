"""The files of spoken digits, with a synthesiser that hums and an ear that hears where the sound is loud."""

import io
import shutil
import wave

import numpy as np
import pytest

from snnjax.data import load_spoken_digits, make_spoken_digits, read_heidelberg, spoken

VOICES = [f"v{letter}" for letter in "abcdefgh"] + ["klatt", "klatt2", "klatt3", "same"]


def hum(*arguments):
    """A WAV file as of espeak-ng: a tone for each voice and word between silences; "same" and "va" sound alike."""
    if arguments == ("--voices=variant",):
        lines = [f" 5  variant  --/M  {name}  !v/{name}   (en 5)" for name in reversed(VOICES)]
        return "\n".join(["Pty Language Age/Gender VoiceName File", *lines]).encode()
    language, voice = arguments[1].split("+")
    pitch = 200 + 10 * VOICES.index("va" if voice == "same" else voice) + 3 * len(language + arguments[-1])
    tone = np.sin(2 * np.pi * pitch * np.arange(2000) / 22050)
    file = io.BytesIO()
    with wave.open(file, "wb") as sound:
        sound.setparams((1, 2, 22050, 0, "NONE", ""))
        sound.writeframes((9000 * np.pad(tone, 500)).astype("<i2").tobytes())
    return file.getvalue()


def ear(rate, num_samples):
    """Spikes of channel 3 at each sample that is nearly as loud as a tone gets."""
    assert rate == 22050

    def hear(waves, keys):
        assert waves.shape == (len(keys), num_samples)
        spikes = np.zeros((len(waves), num_samples // 2 + 1, 700), bool)
        spikes[:, : num_samples // 2, 3] = waves[:, : num_samples // 2 * 2 : 2] > 0.4
        return spikes

    return hear


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder, done = tmp_path_factory.mktemp("spoken"), []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(spoken, "_espeak", hum)
        patch.setattr(spoken, "make_cochlea", ear)
        make_spoken_digits(folder, on_words=lambda *words: done.append(words))
    assert done[-1] == (11 * 20, 11 * 20)
    return folder


def test_splits_hold_all_words_of_their_own_voices(folder):
    h5py = pytest.importorskip("h5py")
    heard = {}
    for split in spoken.SPLITS:
        with h5py.File(folder / f"spoken_{split}.h5") as file:
            heard[split] = {name.decode() for name in file["extra/voices"][()]}
            assert sorted(np.unique(file["labels"][()], return_counts=True)[1]) == [len(heard[split])] * 20
    assert set.union(*heard.values()) == set(VOICES) - {"va"}
    assert sum(map(len, heard.values())) == 11
    # A family stays together.
    assert any(names >= {"klatt", "klatt2", "klatt3"} for names in heard.values())
    assert len(heard["train"]) > len(heard["test"]) > 0 < len(heard["valid"])


def test_words_are_read_in_steps(folder):
    data = load_spoken_digits(folder, "train", num_steps=61, downsample=5)
    assert (data.num_classes, data.num_neurons, data.ids.shape[1]) == (20, 140, 61)
    # 2000 of 13,438 samples hold a tone, faded in and out over 30 ms each: spikes at its tops, in channel 3 of 700.
    loud = np.flatnonzero(data.counts.sum(axis=0))
    assert 1 <= loud[0] <= 3 and 6 <= loud[-1] <= 8
    assert set(np.unique(data.ids)) == {0, 140}
    recordings = read_heidelberg(folder / "spoken_train.h5")
    assert all(
        (np.diff(times) >= 0).all() and set(units) == {3} for times, units, _ in zip(*recordings, strict=True)
    )


def test_without_espeak_the_error_says_how_to_get_it(monkeypatch, tmp_path):
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(
        ValueError, match=r"make_spoken_digits: `espeak-ng` must be installed, .* apt-get install"
    ):
        make_spoken_digits(tmp_path)


@pytest.mark.skipif(shutil.which("espeak-ng") is None, reason="espeak-ng is not installed")
def test_words_of_espeak_are_conditioned():
    random = np.random.default_rng(0)
    voices = spoken._voices()
    assert len(voices) > 50
    words = np.stack([spoken._spoken(random, voices[0], label) for label in (0, 7, 17)])
    assert words.shape == (3, spoken._NUM_SAMPLES)
    assert (np.sqrt((words**2).sum(axis=1) / (words != 0).sum(axis=1)) > 0.2).all()
    assert not np.array_equal(words[1], words[2])
