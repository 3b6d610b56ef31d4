"""The data of the command-line tasks: where they come from, how they are split, how they are augmented."""

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import PRNGKeyArray

from snnjax import data
from snnjax._check import fail
from snnjax.data.datasets import Batch, Dataset
from snnjax.train import electrocardiograms, gestures, pictures
from snnjax.train.background import draw_words
from snnjax.train.tasks import FOLDS, TaskSettings, task_key

# Debian's dataset-fashion-mnist package installs the files here.
FASHION_FOLDER = "/usr/share/datasets/fashion-mnist"
# Where a user gets the data of the tasks whose data are not in the package.
_SOURCES = {
    "nmnist": "N-MNIST from doi.org/10.17632/468j46mzdv.1",
    "cifar10": "CIFAR-10 from www.cs.toronto.edu/~kriz/cifar.html",
    "speech": "github.com/Jakobovski/free-spoken-digit-dataset",
    "dvs-gesture": "DVS-Gesture from ibm.ent.box.com/s/3hiq58ww1pbbjrinh367ykfdf60xsfm8",
    "shd": "shd_train.h5 and shd_test.h5 from zenkelab.org/datasets",
    "ssc": "ssc_train.h5, ssc_valid.h5 and ssc_test.h5 from zenkelab.org/datasets",
}
_SHIPPED = ("digits", "vowels", "qtdb")  # with the package
# Augmentation of words, as if from other people, with numbers of 700 channels.
_OTHER_SPEAKERS = data.EventAugmentation(shift=24.0, channel_warp=8.0, stretch=0.2, time_warp=1.5)
# Augmentation of recordings by a camera, as if of other hands.
_OTHER_HANDS = data.CameraAugmentation(shift=3.0, rotation=15.0, scale=0.15)
# Number of samples used to scale the initial weights to a target activity.
_INIT_SAMPLES = 64


class TaskData(NamedTuple):
    """The three disjoint parts of a task's data."""

    train: Callable[[int], Any]  # epoch -> data set
    validation: Dataset  # None if the share of validation data is 0
    test: Dataset
    sample: Batch  # a `Batch` of the training data, for the initial weights
    num_inputs: int
    num_classes: int


def load_task(settings: TaskSettings, folder: Path | str | None = None) -> TaskData:
    """Load the data of a task, split into disjoint training, validation and test parts.

    Args:
        settings: an entry of `TASKS`, or a modified one.
        folder: where the data were downloaded to. The digits, vowels and qtdb data come with the package, and spar is
            found in the seglearn package if that is installed. The words of speech are heard once, in minutes, and
            their events kept in ~/.cache/snnjax.

    Raises:
        ValueError: if the data must be downloaded first, or a file cannot be read; if a folder is given for data that
            come with the package.

    Example:
        >>> from dataclasses import replace
        >>> from snnjax.train import TASKS, load_task
        >>> parts = load_task(replace(TASKS["vowels"], samples=100))
        >>> len(parts.train(0)), len(parts.validation), len(parts.test)
        (82, 18, 100)
    """
    if folder is not None and settings.task in _SHIPPED:
        expected = f"be None for {settings.task}, whose data come with the package"
        fail(f"load_task: `folder` must {expected}, got {str(folder)!r}. Leave it out.")
    if settings.task in ("digits", "fashion"):
        return _camera_task(settings, folder)
    if settings.task == "vowels":
        return _vowels(settings)
    if settings.task == "qtdb":
        return _electrocardiograms(settings)
    if settings.task == "spar":
        return _gestures(settings, folder)
    if folder is None:
        actual, where = "got None", _SOURCES[settings.task]
        fail(f"load_task: `folder` must hold the data, {actual}. Download {where}, and pass --data.")
    if settings.task == "cifar10":
        return _pictures(settings, folder)
    if settings.task == "speech":
        return _speech(settings, Path(folder))
    if settings.task == "nmnist":
        return _event_camera(settings, Path(folder))
    train, validation, test = _recordings(settings, Path(folder))
    train, test = _as_read(settings, train), _as_read(settings, test)
    validation = None if validation is None else _as_read(settings, validation)
    return _split_task(settings, train, validation, test, test.num_neurons)


def _camera_task(settings: TaskSettings, folder: Path | str | None) -> TaskData:
    """Images seen by the simulated event camera."""
    place = FASHION_FOLDER if folder is None else folder
    load = (
        data.load_mnist_10k
        if settings.task == "digits"
        else lambda split: data.load_fashion_mnist(place, split)
    )
    images, test = (_cut(load(split), settings) for split in ("train", "test"))
    images, validation = _halves(settings, images)
    key = task_key(settings, 2)

    def seen(part: Dataset, key: PRNGKeyArray | None = None) -> Dataset:
        options = {"num_classes": part.num_classes, "num_steps": settings.num_steps, "key": key}
        events = data.saccade_events(part.images, part.labels, capacity=settings.input_capacity, **options)
        return _as_read(settings, events)

    fixed = None if settings.augment else seen(images)
    train = (
        (lambda epoch: seen(images, jax.random.fold_in(key, epoch))) if fixed is None else lambda epoch: fixed
    )
    sample = seen(images.select(slice(_INIT_SAMPLES))).take(slice(None))
    test = seen(test)
    return TaskData(train, seen(validation), test, sample, test.num_neurons, test.num_classes)


def _pictures(settings: TaskSettings, path: Path | str) -> TaskData:
    """Colour images, whose pixels are the currents of every step."""
    train, test = (_cut(data.load_cifar10(path, split), settings) for split in ("train", "test"))
    train, validation = _halves(settings, train) if settings.validation_share > 0 else (train, None)
    key = task_key(settings, 2)

    def seen(images: Dataset) -> Dataset:
        return pictures.Currents(images, settings.num_steps)

    def varied(epoch: int) -> Dataset:
        return seen(pictures.varied(key, epoch, train)) if settings.augment else seen(train)

    held_out = None if validation is None else seen(validation)
    sample = seen(train).take(np.arange(min(_INIT_SAMPLES, len(train))))
    return TaskData(varied, held_out, seen(test), sample, train.images[0].size, test.num_classes)


def _vowels(settings: TaskSettings) -> TaskData:
    """Utterances, standardised by those that are trained on, not by those held out of them."""
    train, test = (_cut(data.load_japanese_vowels(split), settings) for split in ("train", "test"))
    train, validation = _halves(settings, train) if settings.validation_share > 0 else (train, None)
    if validation is not None:
        validation = _standardised(validation, train)
    task = _split_task(settings, _standardised(train, train), validation, _standardised(test, train), 12)
    key, calm = task_key(settings, 2), task.train(0)
    return task._replace(train=lambda epoch: _noisy(jax.random.fold_in(key, epoch), calm, settings.noise))


def _electrocardiograms(settings: TaskSettings) -> TaskData:
    samples, test = (_cut(electrocardiograms.excerpts(split), settings) for split in ("train", "test"))
    chosen = electrocardiograms.held_out(task_key(settings, 1), len(samples), settings.validation_share)
    train, validation = (samples.select(part) for part in chosen)
    validation = validation if len(validation) > 0 else None
    task, key = _split_task(settings, train, validation, test, 4), task_key(settings, 2)
    if not settings.augment:
        return task
    return task._replace(train=lambda epoch: electrocardiograms.varied(key, epoch, train))


def _gestures(settings: TaskSettings, path: Path | str | None) -> TaskData:
    seed, validating = settings.training.seed, settings.validation_share > 0
    train, validation, test = gestures.parts(path, seed, validating=validating)
    train, key = _cut(train, settings), task_key(settings, 2)
    calm = gestures.windows(train)
    if validation is not None:
        validation = _standardised(_cut(validation, settings), calm)
    task = _split_task(settings, _standardised(calm, calm), validation, _standardised(test, calm), 6)
    if not settings.augment:
        return task

    def varied(epoch: int) -> Dataset:
        fresh = _standardised(gestures.varied(key, epoch, train), calm)
        return _noisy(jax.random.fold_in(key, epoch), fresh, settings.noise)

    return task._replace(train=varied)


def _speech(settings: TaskSettings, path: Path) -> TaskData:
    """Words, of which usually each speaker's first five of each digit are for testing, or those of one speaker."""
    options: dict[str, Any] = {name: getattr(settings, name) for name in ("num_steps", "downsample")}
    options["capacity"] = settings.input_capacity
    tested, unknown = None if settings.fold is None else [settings.fold], None
    if settings.fold is not None and settings.validation_share > 0:
        unknown = [(settings.fold + 1) % FOLDS["speech"]]
    with draw_words(sys.stderr.isatty()) as on_words:
        test = data.load_fsdd(path, "test", speakers=tested, on_words=on_words, **options)
    # A speaker to validate on, as unknown in training as the one to test on.
    unseen = tested if unknown is None or tested is None else tested + unknown
    train = data.load_fsdd(path, "train", speakers=unseen, **options)
    validation = None if unknown is None else data.load_fsdd(path, "test", speakers=unknown, **options)
    task, key = _split_task(settings, train, validation, test, test.num_neurons), task_key(settings, 2)
    if not settings.augment:
        return task
    calm, merged = task.train(0), settings.downsample
    shift, warp = _OTHER_SPEAKERS.shift / merged, _OTHER_SPEAKERS.channel_warp / merged
    others = _OTHER_SPEAKERS._replace(shift=shift, channel_warp=warp)
    return task._replace(
        train=lambda epoch: data.augment_events(jax.random.fold_in(key, epoch), calm, others)
    )


def _event_camera(settings: TaskSettings, path: Path) -> TaskData:
    """The recordings of N-MNIST."""
    options: dict[str, Any] = {"num_steps": settings.num_steps, "capacity": settings.input_capacity}
    train, test = (
        data.load_nmnist(path, split, fold=settings.fold, **options) for split in ("train", "test")
    )
    task, key = _split_task(settings, train, None, test, test.num_neurons), task_key(settings, 2)
    calm = task.train(0)

    def varied(epoch: int) -> Dataset:
        return _as_read(
            settings, data.augment_camera_events(jax.random.fold_in(key, epoch), calm, _OTHER_HANDS)
        )

    seen = _as_read(settings, calm)
    return task._replace(
        train=varied if settings.augment else lambda epoch: seen,
        validation=None if task.validation is None else _as_read(settings, task.validation),
        test=_as_read(settings, task.test),
        sample=seen.take(np.arange(min(_INIT_SAMPLES, len(seen)))),
    )


def _recordings(settings: TaskSettings, folder: Path) -> tuple[Any, Any, Any]:
    """The training, validation (or None) and test parts of a downloaded data set."""
    options: dict[str, Any] = {"num_steps": settings.num_steps, "capacity": settings.input_capacity}
    options["downsample"] = settings.downsample
    if settings.task == "dvs-gesture":
        parts = (data.load_dvs_gesture(folder, split, **options) for split in ("train", "test"))
        train, test = parts
        return train, None, test
    if settings.task == "shd":
        train, test = (data.load_shd(folder / f"shd_{part}.h5", **options) for part in ("train", "test"))
        return train, None, test
    parts = tuple(data.load_ssc(folder / f"ssc_{part}.h5", **options) for part in ("train", "valid", "test"))
    return parts[0], parts[1], parts[2]


def _as_read(settings: TaskSettings, events: Dataset) -> Dataset:
    """Events renumbered for the first layer: cameras put the polarity axis first, convolutions last."""
    return events if settings.image is None else events.channels_last(settings.image[-1])


def _split_task(
    settings: TaskSettings, train: Dataset, validation: Dataset, test: Dataset, num_inputs: int
) -> TaskData:
    """A task made from data sets; without a validation part, one is split off from the training part."""
    train, test = _cut(train, settings), _cut(test, settings)
    if validation is None and settings.validation_share > 0:
        train, validation = _halves(settings, train)
    sample = train.take(np.arange(min(_INIT_SAMPLES, len(train))))
    return TaskData(lambda epoch: train, validation, test, sample, num_inputs, test.num_classes)


def _halves(settings: TaskSettings, dataset: Dataset) -> tuple[Any, Any]:
    shares = (1 - settings.validation_share, settings.validation_share)
    train, validation = data.split_indices(task_key(settings, 1), dataset.labels, shares)
    return dataset.select(train), dataset.select(validation)


def _cut(dataset: Dataset, settings: TaskSettings) -> Dataset:
    """As many samples as wanted, spread over all: many files are sorted by class, so the first ones are of one."""
    count = settings.samples
    if count is None or count >= len(dataset):
        return dataset
    return dataset.select(np.arange(count) * len(dataset) // count)


def _standardised(dataset: Dataset, like: Dataset) -> Dataset:
    """Each channel standardised to mean 0 and deviation 1 over the valid steps of `like`; padding stays 0."""
    valid, known = _valid(dataset), _valid(like)
    values = like.series[known]
    series = (dataset.series - values.mean(axis=0)) / values.std(axis=0)
    return replace(dataset, series=np.where(valid[:, :, None], series, 0).astype(np.float32))


def _valid(dataset: Dataset) -> np.ndarray:
    """True at the steps before the end of a series, bool ``[samples, time]``."""
    return np.arange(dataset.series.shape[1]) < np.asarray(dataset.lengths)[:, None]


def _noisy(key: PRNGKeyArray, dataset: Dataset, deviation: float) -> Dataset:
    """The series plus Gaussian noise; padding stays 0."""
    noise = deviation * np.asarray(jax.random.normal(key, dataset.series.shape, np.float32))
    return replace(dataset, series=dataset.series + np.where(_valid(dataset)[:, :, None], noise, 0))
