"""Spoken digits in the format of SHD: synthesised words, heard by a model of the inner ear.

The ten digits in German (classes 0 to 9) and English (10 to 19), spoken once by each voice of `espeak-ng` with random
pitch, speed and loudness, become spikes of 700 channels (`make_cochlea`). Training, validation and test voices are
different, and never only numbered variants of the same voice. These are not the recordings of SHD, which people spoke:
results on one say nothing about the other.

Nothing is downloaded: `make_spoken_digits` writes one `.h5` file per split, in the layout that `read_heidelberg` reads.
Source of the model: Cramer, Stradmann, Schemmel, Zenke 2020, doi:10.1109/TNNLS.2020.3044364.
"""

import io
import os
import re
import shutil
import subprocess
import wave
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import jax
import numpy as np

from snnjax._check import check_choice, check_integer, fail
from snnjax._write import write_atomically
from snnjax.data import heidelberg
from snnjax.data._files import PathLike
from snnjax.data.cochlea import conditioned, make_cochlea
from snnjax.data.datasets import EventDataset

SPLITS = ("train", "valid", "test")
_WORDS = {
    "de": ["null", "eins", "zwei", "drei", "vier", "fünf", "sechs", "sieben", "acht", "neun"],
    "en": ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"],
}
_NUM_CLASSES = 20
# Uniform ranges of pitch (0 to 99), speed (words per minute) and loudness (0 to 200) for each word.
_PITCH, _SPEED, _LOUDNESS = (30, 71), (150, 211), (60, 121)
# The sample rate of espeak-ng, and 0.61 s, longer than all but a few words, which are cut. The Fourier transform of
# half as many samples is fast: 6720 has no prime factor above 7.
_RATE, _NUM_SAMPLES = 22050, 13438
_DURATION = _NUM_SAMPLES / _RATE
_QUIET = 0.02  # relative to the loudest sample; quieter samples before and after a word are cut
_SHARES = (0.7, 0.1, 0.2)  # of the voices in each split
_FEWEST_VOICES = 10  # so that each split has at least one
_BLOCK = 8  # words heard at once: 200 MB of working arrays


def load_spoken_digits(
    folder: PathLike,
    split: str,
    *,
    num_steps: int = 100,
    downsample: int = 1,
    capacity: int | None = None,
) -> EventDataset:
    """Load the "train", "valid" or "test" split from the files that `make_spoken_digits` wrote.

    The 0.61 seconds become `num_steps` steps; otherwise as for `load_shd`.

    Errors: the split is unknown, and those of `read_heidelberg`.

    Example:
        >>> from snnjax.data import load_spoken_digits
        >>> load_spoken_digits("nowhere", "valid")
        Traceback (most recent call last):
        ...
        ValueError: load_spoken_digits: `path` must be a readable file, got 'nowhere/spoken_valid.h5'. \
Make it with make_spoken_digits.
    """
    op = "load_spoken_digits"
    check_choice(op, "split", split, SPLITS)
    path = Path(folder) / f"spoken_{split}.h5"
    if not path.is_file():
        actual = repr(path.as_posix())
        fail(f"{op}: `path` must be a readable file, got {actual}. Make it with make_spoken_digits.")
    return heidelberg.load(op, path, _NUM_CLASSES, num_steps, _DURATION, downsample, capacity)


def make_spoken_digits(
    folder: PathLike,
    *,
    seed: int = 0,
    num_voices: int | None = None,
    on_words: Callable[[int, int], Any] = lambda done, total: None,
) -> None:
    """Synthesise and encode all words, and write `spoken_train.h5`, `spoken_valid.h5` and `spoken_test.h5`.

    It needs espeak-ng and h5py. The same seed and version of espeak-ng yield the same words; 99 voices take about 12
    minutes of CPU time.

    Args:
        folder: the folder to write to, created if it does not exist.
        seed: seed of the split of the voices, of pitch, speed and loudness, and of the spikes.
        num_voices: use at most this many voices, for a quick look.
        on_words: called with the number of words done and the total.

    Errors: there is no espeak-ng, or fewer than 10 voices; ImportError if h5py is missing.

    Example:
        >>> from snnjax.data import make_spoken_digits
        >>> make_spoken_digits("words", num_voices=1)
        Traceback (most recent call last):
        ...
        ValueError: make_spoken_digits: `num_voices` must be an integer of at least 10, got 1. \
Pass 10 or more.
    """
    if num_voices is not None:
        check_integer("make_spoken_digits", "num_voices", num_voices, _FEWEST_VOICES)
    heidelberg.check_h5py("make_spoken_digits")
    voices = _voices()[:num_voices]
    parts, done = _split(np.random.default_rng([seed, 0]), voices), 0
    hear = make_cochlea(_RATE, _NUM_SAMPLES)
    Path(folder).mkdir(parents=True, exist_ok=True)
    for number, split in enumerate(SPLITS):
        random, key = (
            np.random.default_rng([seed, 1, number]),
            jax.random.fold_in(jax.random.key(seed), number),
        )
        words = [_spoken(random, voice, label) for voice in parts[number] for label in range(_NUM_CLASSES)]
        samples: list[tuple[np.ndarray, np.ndarray]] = []
        for first in range(0, len(words), _BLOCK):
            # The last block is padded with silence, so that there is one shape, compiled once.
            block = np.zeros((_BLOCK, _NUM_SAMPLES), np.float32)
            present = words[first : first + _BLOCK]
            block[: len(present)] = present
            keys = jax.vmap(jax.random.fold_in, (None, 0))(key, np.arange(first, first + _BLOCK))
            samples += [_events(spikes) for spikes in np.asarray(hear(block, keys))[: len(present)]]
            done += len(present)
            on_words(done, len(voices) * _NUM_CLASSES)
        _write(Path(folder) / f"spoken_{split}.h5", samples, parts[number])


def default_folder() -> Path:
    """Return the default folder of the words: `$XDG_CACHE_HOME/snnjax`, or `~/.cache/snnjax`.

    Example:
        >>> from snnjax.data.spoken import default_folder
        >>> default_folder().name
        'snnjax'
    """
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "snnjax"


def _voices() -> list[str]:
    """The voice variants of espeak-ng, sorted by name; only the first of those that sound the same."""
    listed = re.findall(r"!v/(.+?)\s*(?:\(|$)", _espeak("--voices=variant").decode(), re.MULTILINE)
    sounds: dict[bytes, str] = {}
    for name in sorted(set(listed)):
        sounds.setdefault(_espeak("-v", f"de+{name}", "--stdout", "sieben"), name)
    return list(sounds.values())


def _split(random: np.random.Generator, voices: list[str]) -> list[list[str]]:
    """The voices of each split; voices that only differ by the number after their name are in the same one."""
    families: dict[str, list[str]] = {}
    for voice in voices:
        families.setdefault(voice.rstrip("0123456789").lower(), []).append(voice)
    shuffled = [list(families.values())[n] for n in random.permutation(len(families))]
    ends = np.cumsum(_SHARES) * len(voices)
    parts: list[list[str]] = [[] for _ in SPLITS]
    before = 0
    for family in shuffled:
        middle = before + len(family) / 2
        parts[min(int(np.searchsorted(ends, middle)), len(SPLITS) - 1)] += family
        before += len(family)
    return parts


def _spoken(random: np.random.Generator, voice: str, label: int) -> np.ndarray:
    """A word, without silence around it, conditioned, and padded to the common length."""
    language = "de" if label < _NUM_CLASSES // 2 else "en"
    pitch, speed, loudness = (str(random.integers(*bounds)) for bounds in (_PITCH, _SPEED, _LOUDNESS))
    manner = ("-v", f"{language}+{voice}", "-p", pitch, "-s", speed, "-a", loudness, "-z")
    with wave.open(io.BytesIO(_espeak(*manner, "--stdout", _WORDS[language][label % 10]))) as sound:
        samples = np.frombuffer(sound.readframes(2**24), "<i2").astype(np.float64)
    loud = np.flatnonzero(np.abs(samples) > _QUIET * np.abs(samples).max())
    samples = conditioned(samples[loud[0] : loud[-1] + 1][:_NUM_SAMPLES], _RATE)
    return np.pad(samples, (0, _NUM_SAMPLES - len(samples))).astype(np.float32)


def _espeak(*arguments: str) -> bytes:
    """Run espeak-ng, and return its standard output."""
    program = shutil.which("espeak-ng")
    if program is None:
        hint = "Install it, on Debian and Ubuntu with apt-get install espeak-ng"
        fail(f"make_spoken_digits: `espeak-ng` must be installed, got no such program. {hint}.")
    return subprocess.run([program, *arguments], check=True, capture_output=True).stdout


def _events(spikes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Times in seconds and units, sorted by time."""
    steps, units = np.nonzero(spikes)
    return (steps * (2 / _RATE)).astype(np.float32), units.astype(np.uint16)


def _write(path: Path, samples: Iterable[tuple[np.ndarray, np.ndarray]], voices: list[str]) -> None:
    """Write one file atomically."""
    import h5py

    samples, content = list(samples), io.BytesIO()
    with h5py.File(content, "w") as file:
        for name, which, kind in (("times", 0, np.float32), ("units", 1, np.uint16)):
            rows = file.create_dataset(f"spikes/{name}", (len(samples),), h5py.vlen_dtype(kind))
            for number, sample in enumerate(samples):
                rows[number] = sample[which]
        file["labels"] = np.tile(np.arange(_NUM_CLASSES, dtype=np.uint16), len(voices))
        file["extra/speaker"] = np.repeat(np.arange(len(voices), dtype=np.uint16), _NUM_CLASSES)
        file["extra/voices"] = [voice.encode() for voice in voices]
    write_atomically(path, content.getvalue())
