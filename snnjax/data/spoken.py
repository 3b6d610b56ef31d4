"""Spoken digits in the shape of SHD: words of a speech synthesiser, heard by a model of the inner ear.

The ten digits in German (classes 0 to 9) and English (10 to 19), spoken once by each voice of `espeak-ng` with a pitch,
a speed and a loudness of their own, become spikes of 700 channels (`make_cochlea`). Voices that train, validate and
test are not the same, nor do they differ by the number behind their name alone. These are not the recordings of SHD,
which people spoke: figures on the one say nothing of the other.

Made here, and downloaded from nowhere: `make_spoken_digits` writes one `.h5` file a split, in the layout that
`read_heidelberg` reads. Source of the chain: Cramer, Stradmann, Schemmel, Zenke 2020, doi:10.1109/TNNLS.2020.3044364.
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
# What each word is spoken with, from even chances: 0 to 99, words a minute, 0 to 200.
_PITCH, _SPEED, _LOUDNESS = (30, 71), (150, 211), (60, 121)
# Samples a second that espeak-ng speaks with; 0.61 s, longer than all but a few words, which are cut. The transform of
# half as many is fast: 6720 has no prime factor above 7.
_RATE, _NUM_SAMPLES = 22050, 13438
_DURATION = _NUM_SAMPLES / _RATE
_QUIET = 0.02  # what is quieter, beside the loudest sample, in front of a word and behind it is cut
_SHARES = (0.7, 0.1, 0.2)  # of the voices, for the splits
_FEWEST_VOICES = 10  # each split has one
_BLOCK = 8  # words heard at once: 200 MB of working arrays


def load_spoken_digits(
    folder: PathLike,
    split: str,
    *,
    num_steps: int = 100,
    downsample: int = 1,
    capacity: int | None = None,
) -> EventDataset:
    """Spoken digits in the shape of SHD, "train", "valid" or "test", from the files that `make_spoken_digits` wrote.

    The 0.61 seconds become `num_steps` steps; else as `load_shd`.

    Errors: other splits, those of `read_heidelberg`.

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
        fail(op, "path", "be a readable file", repr(path.as_posix()), "Make it with make_spoken_digits")
    return heidelberg.load(op, path, _NUM_CLASSES, num_steps, _DURATION, downsample, capacity)


def make_spoken_digits(
    folder: PathLike,
    *,
    seed: int = 0,
    num_voices: int | None = None,
    on_words: Callable[[int, int], Any] = lambda done, total: None,
) -> None:
    """Speak and hear all words, and write `spoken_train.h5`, `spoken_valid.h5` and `spoken_test.h5`.

    Needs espeak-ng and h5py. The same seed and version of espeak-ng yield the same words; 99 voices take about
    12 minutes of CPU time.

    Args:
        folder: to write to, made if there is none.
        seed: of the split of the voices, of how they speak, and of the spikes.
        num_voices: so many voices at most, for a quick look.
        on_words: called with the words done and the words in all.

    Errors: no espeak-ng, fewer than 10 voices; ImportError where h5py is missing.

    Example:
        >>> from snnjax.data import make_spoken_digits
        >>> make_spoken_digits("words", num_voices=1)
        Traceback (most recent call last):
        ...
        ValueError: make_spoken_digits: `num_voices` must be an integer of at least 10, got 1. \
Pass a larger integer.
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
            # The last block is filled with silence: one shape, compiled once.
            block = np.zeros((_BLOCK, _NUM_SAMPLES), np.float32)
            present = words[first : first + _BLOCK]
            block[: len(present)] = present
            keys = jax.vmap(jax.random.fold_in, (None, 0))(key, np.arange(first, first + _BLOCK))
            samples += [_events(spikes) for spikes in np.asarray(hear(block, keys))[: len(present)]]
            done += len(present)
            on_words(done, len(voices) * _NUM_CLASSES)
        _write(Path(folder) / f"spoken_{split}.h5", samples, parts[number])


def default_folder() -> Path:
    """Where the words are kept, unless another place is named: `$XDG_CACHE_HOME/snnjax`, or `~/.cache/snnjax`.

    Example:
        >>> from snnjax.data.spoken import default_folder
        >>> default_folder().name
        'snnjax'
    """
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "snnjax"


def _voices() -> list[str]:
    """The variants of espeak-ng, in order of name; of those that sound the same, the first."""
    listed = re.findall(r"!v/(.+?)\s*(?:\(|$)", _espeak("--voices=variant").decode(), re.MULTILINE)
    sounds: dict[bytes, str] = {}
    for name in sorted(set(listed)):
        sounds.setdefault(_espeak("-v", f"de+{name}", "--stdout", "sieben"), name)
    return list(sounds.values())


def _split(random: np.random.Generator, voices: list[str]) -> list[list[str]]:
    """The voices of each split; those that differ by the number behind their name are in one."""
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
    """A word, without silence around it, conditioned, and padded to the length of all."""
    language = "de" if label < _NUM_CLASSES // 2 else "en"
    pitch, speed, loudness = (str(random.integers(*bounds)) for bounds in (_PITCH, _SPEED, _LOUDNESS))
    manner = ("-v", f"{language}+{voice}", "-p", pitch, "-s", speed, "-a", loudness, "-z")
    with wave.open(io.BytesIO(_espeak(*manner, "--stdout", _WORDS[language][label % 10]))) as sound:
        samples = np.frombuffer(sound.readframes(2**24), "<i2").astype(np.float64)
    loud = np.flatnonzero(np.abs(samples) > _QUIET * np.abs(samples).max())
    samples = conditioned(samples[loud[0] : loud[-1] + 1][:_NUM_SAMPLES], _RATE)
    return np.pad(samples, (0, _NUM_SAMPLES - len(samples))).astype(np.float32)


def _espeak(*arguments: str) -> bytes:
    """What espeak-ng writes to standard output."""
    program = shutil.which("espeak-ng")
    if program is None:
        way_out = "Install it, on Debian and Ubuntu with apt-get install espeak-ng"
        fail("make_spoken_digits", "espeak-ng", "be installed", "no such program", way_out)
    return subprocess.run([program, *arguments], check=True, capture_output=True).stdout


def _events(spikes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Times in seconds and units, in order of time."""
    steps, units = np.nonzero(spikes)
    return (steps * (2 / _RATE)).astype(np.float32), units.astype(np.uint16)


def _write(path: Path, samples: Iterable[tuple[np.ndarray, np.ndarray]], voices: list[str]) -> None:
    """One file, complete or not at all."""
    import h5py

    samples, written = list(samples), path.with_suffix(".part")
    with h5py.File(written, "w") as file:
        for name, which, kind in (("times", 0, np.float32), ("units", 1, np.uint16)):
            rows = file.create_dataset(f"spikes/{name}", (len(samples),), h5py.vlen_dtype(kind))
            for number, sample in enumerate(samples):
                rows[number] = sample[which]
        file["labels"] = np.tile(np.arange(_NUM_CLASSES, dtype=np.uint16), len(voices))
        file["extra/speaker"] = np.repeat(np.arange(len(voices), dtype=np.uint16), _NUM_CLASSES)
        file["extra/voices"] = [voice.encode() for voice in voices]
    written.replace(path)
