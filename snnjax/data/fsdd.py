"""FSDD, the Free Spoken Digit Dataset: English digits that people spoke, heard by a model of the inner ear.

The published folder holds a `.wav` file for each word, ``<digit>_<speaker>_<index>.wav``, mono, of 16 bits, at 8 kHz.
Two splits are in use: words of index 0 to 4 of all speakers are for testing, or all words of one speaker, who is then
not in the training data, which is harder.

Source: Jackson et al., doi:10.5281/zenodo.1342401; github.com/Jakobovski/free-spoken-digit-dataset, CC BY-SA 4.0.
"""

import hashlib
import io
import math
import os
import re
import wave
from collections.abc import Callable, Iterable
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

from snnjax._check import check_choice, fail
from snnjax._write import write_atomically
from snnjax.data._array_file import read_arrays
from snnjax.data._files import PathLike, check_downsample, refuse
from snnjax.data.datasets import EventDataset, binned_dataset
from snnjax.data.inner_ear import LOWEST_RATE, conditioned, make_inner_ear

_NAME = re.compile(r"([0-9])_([^_]+)_([0-9]+)")
_EACH = ("digit", "speaker", "index")
_HINT = (
    "Pass the folder `recordings` of github.com/Jakobovski/free-spoken-digit-dataset, or an array file of it"
)
_TEST_INDICES = 5
_CHANNELS = 700
_DURATION = 0.65  # seconds; 99 % of the words are shorter, the others are cut
_TAIL = 0.05  # seconds of silence after the longest word, in which the membrane comes to rest
_QUIET = 0.02  # relative to the loudest sample; quieter samples before and after a word are cut
_VERSION = 2  # of how words are heard; events of other versions are not read


class SpokenWords(NamedTuple):
    """Recordings of spoken digits."""

    waves: list[np.ndarray]  # [samples] int16 each
    sample_rate: int  # of all
    digit: np.ndarray  # [words] 0 to 9
    speaker: np.ndarray  # [words] from 0, in the order of their names in a folder
    repetition: np.ndarray  # [words] which of the speaker's recordings of this digit it is


def read_fsdd(path: PathLike) -> SpokenWords:
    """Read a folder of `.wav` files ``<digit>_<speaker>_<index>.wav``, or one array file.

    The array file is an `.npz` of these integer arrays: ``samples`` (of all words in a row, 16 bits at 8 kHz) and
    ``offsets`` (word i is ``samples[offsets[i]:offsets[i + 1]]``), and ``digit``, ``speaker`` and ``index``, one number
    per word.

    Errors: there are no such files, they are damaged, are not mono of 16 bits, or differ in sample rate.

    Example:
        >>> import pathlib, tempfile
        >>> import numpy as np
        >>> from snnjax.data import read_fsdd
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "words.npz"
        >>> words = {"samples": np.ones(800, np.int16), "offsets": np.array([0, 500, 800])}
        >>> np.savez(path, **words, digit=np.array([3, 4]), speaker=np.array([0, 0]), index=np.array([7, 7]))
        >>> [len(wave) for wave in read_fsdd(path).waves]
        [500, 300]
    """
    op = "read_fsdd"
    if Path(path).is_dir():
        return _read_folder(op, Path(path))
    fields: dict[str, str] = dict.fromkeys(("samples", *_EACH), "iu")
    arrays = read_arrays(op, path, fields, _EACH, _HINT)
    _check_range(op, path, "samples", arrays["samples"], -(2**15), 2**15 - 1)
    for name, most in (("digit", 9), ("speaker", 2**15 - 1), ("index", 2**15 - 1)):
        _check_range(op, path, name, arrays[name], 0, most)
    offsets = arrays["offsets"]
    pairs = pairwise(offsets)
    waves = [arrays["samples"][first:last].astype(np.int16) for first, last in pairs]
    return SpokenWords(waves, 8000, *(arrays[name].astype(np.int32) for name in _EACH))


def load_fsdd(
    path: PathLike,
    split: str = "train",
    *,
    speakers: Iterable[int] | None = None,
    num_steps: int = 65,
    downsample: int = 1,
    capacity: int | None = None,
    folder: PathLike | None = None,
    on_words: Callable[[int, int], Any] = lambda done, total: None,
) -> EventDataset:
    """Load spoken digits as events of 700 channels of an inner ear (`inner_ear`), of 0.65 seconds in `num_steps` steps.

    Hearing 3,000 words takes about a minute of CPU time, once: the events are kept in a file in `folder`.

    Args:
        path: of a folder or a file, as in `read_fsdd`.
        split: "train" or "test".
        speakers: test on all words of these speakers, numbered from 0, and train on those of the others; None tests
            on the words of index 0 to 4 of all speakers.
        num_steps: the number of time steps.
        downsample: merge this many neighbouring channels into one input.
        capacity: slots of the lists; None fits the fullest step.
        folder: where events are kept; None means `$XDG_CACHE_HOME/snnjax`, or `~/.cache/snnjax`.
        on_words: called with the number of words done and the total.

    Errors: the split is unknown, a word is silent, there are no such speakers, and those of `read_fsdd`.

    Example:
        >>> from snnjax.data import load_fsdd
        >>> load_fsdd("nowhere.npz", "test")
        Traceback (most recent call last):
        ...
        ValueError: read_fsdd: `path` must be a readable file, got 'nowhere.npz' (No such file or directory). \
Pass the folder `recordings` of github.com/Jakobovski/free-spoken-digit-dataset, or an array file of it.
    """
    op = "load_fsdd"
    check_choice(op, "split", split, ("train", "test"))
    num_channels = check_downsample(op, downsample, _CHANNELS)
    words = read_fsdd(path)
    tested = words.repetition < _TEST_INDICES if speakers is None else _spoken_by(op, words, speakers)
    events = _heard(words, _default_folder() if folder is None else Path(folder), on_words)
    chosen = np.flatnonzero(tested == (split == "test"))
    recordings = ((events[n][0], events[n][1] // downsample) for n in chosen)
    binning = num_steps, num_channels, _DURATION
    return binned_dataset(op, recordings, words.digit[chosen], *binning, 10, capacity)


def _default_folder() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "snnjax"


def _spoken_by(op: str, words: SpokenWords, speakers: Iterable[int]) -> np.ndarray:
    """Which words these speakers spoke."""
    chosen = np.array(sorted(speakers))
    unknown = np.setdiff1d(chosen, words.speaker)
    if unknown.size > 0:
        known = np.unique(words.speaker).tolist()
        fail(f"{op}: `speakers` must be among {known}, got {unknown.tolist()}. Omit the others.")
    return np.isin(words.speaker, chosen)


def _read_folder(op: str, folder: Path) -> SpokenWords:
    files = sorted(file for file in folder.glob("*.wav") if _NAME.fullmatch(file.stem))
    if not files:
        expected = "hold files <digit>_<speaker>_<index>.wav"
        fail(f"{op}: `path` must {expected}, got none in {str(folder)!r}. {_HINT}.")
    parts = [file.stem.split("_") for file in files]
    names = sorted({name for _, name, _ in parts})
    rates, waves = [], []
    for file in files:
        rate, samples = _read_wav(op, file)
        rates.append(rate)
        waves.append(samples)
        if rate != rates[0]:
            refuse(op, file, f"have {rates[0]} samples per second, as the first file has", rate)
    digits, people, indices = (
        np.array(column, np.int32)
        for column in zip(
            *((int(digit), names.index(name), int(index)) for digit, name, index in parts), strict=True
        )
    )
    return SpokenWords(waves, rates[0], digits, people, indices)


def _read_wav(op: str, path: Path) -> tuple[int, np.ndarray]:
    """The sample rate, and the samples of a mono file of 16 bits."""
    try:
        with wave.open(str(path)) as sound:
            form = sound.getnchannels(), 8 * sound.getsampwidth()
            rate, content = sound.getframerate(), sound.readframes(sound.getnframes())
    except (OSError, EOFError, RuntimeError, wave.Error, ValueError) as error:
        refuse(op, path, "be a .wav file", f"{type(error).__name__} ({error})".rstrip("."))
    if form != (1, 16):
        refuse(op, path, "have one channel of 16 bits", f"{form[0]} of {form[1]} bits")
    if not (rate >= 1 and len(content) % 2 == 0 and content):
        refuse(op, path, "hold samples", f"{len(content)} bytes at {rate} per second")
    return rate, np.frombuffer(content, "<i2").astype(np.int16)


def _check_range(op: str, path: PathLike, name: str, values: np.ndarray, least: int, most: int) -> None:
    if values.size and (values.min() < least or values.max() > most):
        refuse(op, path, f"have {name} from {least} to {most}", f"{values.min()} to {values.max()}")


def _heard(
    words: SpokenWords, folder: Path, on_words: Callable[[int, int], Any]
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Times in seconds and channels of the events of each word, from a file that is written if it is not there."""
    settings = _VERSION, words.sample_rate, list(map(len, words.waves))
    content = hashlib.sha256(str(settings).encode())
    for samples in words.waves:
        content.update(samples.tobytes())
    path = folder / f"fsdd-{content.hexdigest()[:16]}.npz"
    if not path.is_file():
        spikes = _hear(words, on_words)
        sizes = np.cumsum([0, *(len(steps) for steps, _ in spikes)])
        columns = [np.concatenate(column) for column in zip(*spikes, strict=True)]
        file = io.BytesIO()
        np.savez_compressed(file, step=columns[0], channel=columns[1], offsets=sizes)
        folder.mkdir(parents=True, exist_ok=True)
        write_atomically("load_fsdd", path, file.getvalue())
    hint = "Remove it: it is written again"
    arrays = read_arrays("load_fsdd", path, {"step": "u", "channel": "u"}, (), hint)
    times, offsets = arrays["step"] * (2 / _rate_heard(words)), arrays["offsets"]
    return [(times[first:last], arrays["channel"][first:last]) for first, last in pairwise(offsets)]


def _rate_heard(words: SpokenWords) -> int:
    """The sample rate at which a word is heard: that of the recordings, or a multiple of it."""
    return words.sample_rate * -(-LOWEST_RATE // words.sample_rate)


def _hear(words: SpokenWords, on_words: Callable[[int, int], Any]) -> list[tuple[np.ndarray, np.ndarray]]:
    """Steps and channels of the spikes of each word."""
    from scipy import fft

    rate, key = _rate_heard(words), jax.random.key(0)
    # One length for all words, of which the Fourier transform of half as many samples is fast.
    half: Any = fft.next_fast_len(math.ceil((_DURATION + _TAIL) * rate / 2))
    hear, spikes = make_inner_ear(rate, 2 * (half - 1), _CHANNELS), []
    for number, samples in enumerate(words.waves):
        steps, channels = hear(_prepared(samples, words.sample_rate, rate), jax.random.fold_in(key, number))
        spikes.append((steps.astype(np.uint32), channels.astype(np.uint16)))
        on_words(number + 1, len(words.waves))
    return spikes


def _prepared(samples: np.ndarray, sample_rate: int, rate: int) -> np.ndarray:
    """A word without silence around it, at most 0.65 s, at the rate and the level of the ear."""
    from scipy import signal

    loud = np.abs(samples.astype(np.float64))
    at = np.flatnonzero(loud > _QUIET * loud.max(initial=0))
    if at.size == 0:
        fail("load_fsdd: `path` must hold sounds, got a silent recording. Remove it.")
    word = samples[at[0] : at[-1] + 1][: int(_DURATION * sample_rate)].astype(np.float64)
    return conditioned(signal.resample_poly(word, rate // sample_rate, 1), rate)
