"""Tasks: parts kept apart, fresh data each epoch, settings that come back from a checkpoint."""

import itertools
import json
import shutil
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

import chex
import jax
import numpy as np
import pytest

from snnjax import data
from snnjax.data import EventDataset
from snnjax.train import (
    TASKS,
    TaskSettings,
    TrainConfig,
    build_network,
    electrocardiograms,
    fit,
    load_task,
    loss_of,
    task_data,
    task_settings,
    tasks,
)
from snnjax.train.progress import CHECKPOINT
from snnjax.train.step import decoder_of
from snnjax.train.totals import spiking_nodes
from tests.data.test_aedat import HEADER, packet
from tests.data.test_nmnist import encode
from tests.errors.refusals import refusals

DIGITS = replace(TASKS["digits"], samples=40, num_steps=6)


def digits_of(dataset) -> list[bytes]:
    return [sample.tobytes() for sample in dataset.ids]


def test_parts_share_no_sample() -> None:
    # without augmentation a sample keeps its events
    parts = load_task(replace(DIGITS, augment=False))
    train, validation, test = (digits_of(part) for part in (parts.train(0), parts.validation, parts.test))
    assert len(set(train + validation + test)) == len(train) + len(validation) + len(test) == 80


def test_augmented_digits_are_new_each_epoch_and_the_same_again() -> None:
    parts = load_task(DIGITS)
    first, again, second = (parts.train(epoch) for epoch in (0, 0, 1))
    np.testing.assert_array_equal(first.ids, again.ids)
    np.testing.assert_array_equal(first.labels, second.labels)
    assert first.ids.shape == second.ids.shape  # one shape, one compiled step
    assert np.any(first.ids != second.ids)
    other = load_task(replace(DIGITS, training=replace(DIGITS.training, seed=1))).train(0)
    assert np.any(other.ids != first.ids)


def test_vowels_are_standardised_by_their_training_part_and_noise_spares_padding() -> None:
    parts = load_task(TASKS["vowels"])
    noisy, calm = parts.train(0), load_task(replace(TASKS["vowels"], noise=0.0)).train(0)
    valid = np.arange(29) < calm.lengths[:, None]
    # samples held out have no part in the statistics, which are float32 sums of 3,677 numbers
    np.testing.assert_allclose(calm.series[valid].mean(axis=0, dtype=np.float64), 0, atol=1e-5)
    np.testing.assert_allclose(calm.series[valid].std(axis=0, dtype=np.float64), 1, atol=1e-5)
    assert not np.any(noisy.series[~valid])
    # some thousand draws: the deviation of noise within a few percent
    np.testing.assert_allclose((noisy.series - calm.series)[valid].std(), TASKS["vowels"].noise, rtol=0.05)
    assert np.any(noisy.series != parts.train(1).series)


def test_electrocardiograms_are_validated_on_a_run_of_neighbours() -> None:
    settings = replace(TASKS["qtdb"], samples=40, augment=False)
    every = data.load_qtdb()
    everything = [sample.tobytes() for sample in every.series[np.arange(40) * len(every) // 40]]
    parts = load_task(settings)
    train, held_out = (
        [everything.index(sample.tobytes()) for sample in part.series]
        for part in (parts.train(0), parts.validation)
    )
    assert sorted(train + held_out) == list(range(40)) and len(held_out) == 4
    first = next(n for n in held_out if (n - 1) % 40 not in held_out)
    assert sorted((first + n) % 40 for n in range(4)) == held_out
    other = load_task(replace(settings, training=replace(settings.training, seed=1))).validation
    assert np.any(other.series != parts.validation.series)
    alone = load_task(replace(settings, validation_share=0.0))
    assert len(alone.train(0)) == 40 and alone.validation is None


def test_electrocardiograms_are_new_each_epoch_and_the_same_again() -> None:
    parts = load_task(replace(TASKS["qtdb"], samples=20))
    first, again, second = (parts.train(epoch) for epoch in (0, 0, 1))
    np.testing.assert_array_equal(first.series, again.series)
    assert np.any(first.series != second.series)
    assert first.series.shape == second.series.shape == (18, 1301, 4)
    assert set(np.unique(first.series)) == {0, 1} and set(np.unique(first.labels)) == set(range(6))


def test_stretched_labels_stay_with_their_events(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("_SWAP", "_FLIP", "_LOSS", "_NOISE"):
        monkeypatch.setattr(electrocardiograms, name, 0.0)
    samples = electrocardiograms.excerpts("train").select(slice(6))
    marked = replace(samples, series=(samples.labels[:, :, None] == np.arange(1, 5)).astype(np.float32))
    found = electrocardiograms.varied(jax.random.key(0), 0, marked)
    # An event and its label round differently, by a step at most, which is seen at the ends of a class.
    for channel in range(4):
        events = found.series[:, 40:, channel] > 0
        assert np.mean(found.labels[:, 40:][events] == channel + 1) > 0.85
    assert np.any(found.labels != samples.labels)


LOADERS = {
    "dvs-gesture": ("load_dvs_gesture", [("train",), ("test",)], 60),
    "shd": ("load_shd", [("shd_train.h5",), ("shd_test.h5",)], 100),
    "ssc": ("load_ssc", [("ssc_train.h5",), ("ssc_valid.h5",), ("ssc_test.h5",)], 100),
}


def nmnist_arrays(path: Path) -> None:
    """11 recordings of each digit, the last of them for testing, with one event at a pixel of its own."""
    numbers = np.arange(110)
    places = {"x": numbers % 34, "y": numbers // 34, "polarity": numbers % 2, "time_us": 0 * numbers}
    np.savez(path, **places, offsets=np.arange(111), label=numbers % 10, is_test=numbers >= 100)


def test_nmnist_is_one_array_file_with_folds(tmp_path: Path) -> None:
    path = tmp_path / "nmnist.npz"
    nmnist_arrays(path)
    settings = replace(task_settings("nmnist", "conv"), num_steps=3)
    parts = load_task(settings, path)
    assert (len(parts.train(0)), parts.validation, len(parts.test)) == (100, None, 10)
    tested = []
    for fold in range(10):
        folded = load_task(replace(settings, fold=fold, validation_share=0.1, augment=False), path)
        assert len(folded.train(0)) + len(folded.validation) + len(folded.test) == 110
        tested += folded.test.ids[:, 0, 0].tolist()
        assert np.bincount(folded.test.labels).max() <= 2
    assert len(set(tested)) == len(tested) == 110  # each recording is tested once
    # Each epoch is new, and the same when it is asked for again.
    assert not np.array_equal(parts.train(0).ids, parts.train(1).ids)
    np.testing.assert_array_equal(parts.train(1).ids, parts.train(1).ids)


def test_speech_is_tested_on_a_person_or_on_some_words_of_all(monkeypatch) -> None:
    asked = []

    def load(path, split, *, speakers, num_steps, downsample, capacity, on_words=None) -> EventDataset:
        asked.append((split, speakers))
        ids = np.zeros((20, num_steps, 2), np.uint16)
        return EventDataset(ids, np.full(ids.shape[:2], 2, np.int32), np.arange(20) % 10, 140, 10)

    monkeypatch.setattr(data, "load_fsdd", load)
    settings = TASKS["speech"]
    parts = load_task(settings, "words")
    assert asked == [("test", None), ("train", None)] and parts.validation is None
    assert not np.array_equal(parts.train(0).ids, parts.train(1).ids)
    asked.clear()
    calm = load_task(replace(settings, fold=5, augment=False), "words")
    assert asked == [("test", [5]), ("train", [5])]
    np.testing.assert_array_equal(calm.train(0).ids, calm.train(1).ids)
    asked.clear()
    parts = load_task(replace(settings, fold=5, validation_share=0.2), "words")
    assert asked == [("test", [5]), ("train", [5, 0]), ("test", [0])]
    assert len(parts.validation) == 20
    assert len(load_task(replace(settings, validation_share=0.5), "words").validation) == 10


@pytest.mark.parametrize("task", sorted(LOADERS))
def test_recordings_are_read_part_by_part(task: str, monkeypatch) -> None:
    loader, expected, num_steps = LOADERS[task]
    asked = []

    def load(path, *rest, num_steps, capacity, downsample=1) -> EventDataset:
        asked.append((*rest,) if rest else (path.name,))
        sizes = (20, num_steps, 2)
        labels = np.arange(20) % 2
        return EventDataset(np.zeros(sizes, np.uint16), np.full(sizes[:2], 2, np.int32), labels, 7, 2)

    monkeypatch.setattr(data, loader, load)
    parts = load_task(TASKS[task], "somewhere")
    assert asked == expected
    assert (parts.num_inputs, parts.num_classes, parts.train(0).num_steps) == (7, 2, num_steps)
    has_validation = task == "ssc"
    assert (len(parts.train(0)), len(parts.validation)) == ((20, 20) if has_validation else (18, 2))


@pytest.mark.parametrize("task", ["digits", "fashion"])
def test_images_of_a_convolution_have_their_polarity_last(task: str, monkeypatch) -> None:
    monkeypatch.setattr(data, "load_fashion_mnist", lambda folder, split: data.load_mnist_10k(split))
    small = {"samples": 30, "num_steps": 5, "augment": False}
    flat, image = (load_task(replace(task_settings(task, model), **small)) for model in ("dense", "conv"))
    settings = task_settings(task, "conv")
    assert settings.image == (34, 34, 2) and image.num_inputs == flat.num_inputs == 34 * 34 * 2
    for pair in (
        (flat.train(0), image.train(0)),
        (flat.validation, image.validation),
        (flat.test, image.test),
    ):
        first, last = (each.take(range(2)).inputs.to_dense() for each in pair)
        images = np.moveaxis(np.asarray(first).reshape(5, 2, 2, 34, 34), 2, -1)
        np.testing.assert_array_equal(images, np.asarray(last).reshape(5, 2, 34, 34, 2))


def nmnist_folder(folder: Path) -> None:
    """One event on, at row 3 and column 7, in each recording."""
    for split in ("Train", "Test"):
        for digit in range(10):
            (folder / split / str(digit)).mkdir(parents=True)
            for number in range(2):
                recording = encode([(7, 3, 1, 100)])
                (folder / split / str(digit) / f"{number}.bin").write_bytes(recording)


def gesture_folder(folder: Path) -> None:
    """One event on, at row 12 and column 28 of 128 x 128, in each recording."""
    labels = "".join(f"{label},100,900\n" for label in range(1, 12) for _ in range(2))
    for split in ("train", "test"):
        (folder / f"trials_to_{split}.txt").write_text(f"{split}.aedat\n")
        (folder / f"{split}.aedat").write_bytes(HEADER + packet([(28, 12, 1, 500)]))
        columns = "class,startTime_usec,endTime_usec\n"
        (folder / f"{split}_labels.csv").write_text(columns + labels)


@pytest.mark.parametrize(
    "task, write, inputs", [("nmnist", nmnist_folder, 34), ("dvs-gesture", gesture_folder, 32)]
)
def test_recordings_of_cameras_are_images_in_front_of_convolutions(
    task: str, write, inputs: int, tmp_path: Path
) -> None:
    write(tmp_path)
    settings = task_settings(task, "conv")
    parts = load_task(replace(settings, validation_share=0.5), tmp_path)
    assert settings.image == (inputs, inputs, 2)
    batch = parts.test.take([0])
    image = np.asarray(batch.inputs.to_dense()).reshape(-1, inputs, inputs, 2).sum(axis=0)
    assert np.argwhere(image).tolist() == [[3, 7, 1]]
    net = build_network(settings, parts.num_inputs, parts.num_classes)
    output, _ = net.apply(tasks.init_params(settings, net, None), None, batch.inputs)
    assert output.output.shape == (settings.num_steps, 1, parts.num_classes)
    assert [len(net.shapes[name]) for name in spiking_nodes(net)[:2]] == [3, 3]


def test_fashion_is_read_from_the_given_folder(monkeypatch) -> None:
    asked = []

    def load(folder, split):
        asked.append((folder, split))
        return data.load_mnist_10k(split)

    monkeypatch.setattr(data, "load_fashion_mnist", load)
    load_task(replace(TASKS["fashion"], samples=20, num_steps=3), Path("here"))
    load_task(replace(TASKS["fashion"], samples=20, num_steps=3))
    folders = [Path("here"), Path("here"), task_data.FASHION_FOLDER, task_data.FASHION_FOLDER]
    assert asked == list(zip(folders, ("train", "test", "train", "test"), strict=True))


@pytest.fixture(scope="module")
def pictures(tmp_path_factory) -> Path:
    """Published files of a few images; the number of an image is its first byte."""
    folder, random = tmp_path_factory.mktemp("cifar"), np.random.default_rng(0)
    for number, name in enumerate([*(f"data_batch_{n}" for n in range(1, 6)), "test_batch"]):
        images = random.integers(0, 256, (8, 3073), np.uint8)
        images[:, 0], images[:, 1] = np.arange(8) % 2, 8 * number + np.arange(8)
        (folder / f"{name}.bin").write_bytes(images.tobytes())
    return folder


PICTURES = replace(
    TASKS["cifar10"],
    model_options={"stages": [[2, 2]], "strides": 8},
    validation_share=0.2,
    training=replace(TASKS["cifar10"].training, epochs=2, batch_size=16, selection="last"),
)


def test_pictures_are_currents_of_every_step_and_varied_anew_in_each_epoch(pictures: Path) -> None:
    calm = load_task(replace(PICTURES, augment=False), pictures)
    parts = calm.train(0), calm.validation, calm.test
    numbers = [part.images.images[:, 0, 0, 0].tolist() for part in parts]
    assert list(map(len, numbers)) == [32, 8, 8] and sorted(itertools.chain(*numbers)) == list(range(48))
    batch = calm.test.take([3, 5])
    assert batch.inputs.shape == (4, 2, 32, 32, 3)
    pixels = calm.test.images.images[[3, 5]] / 255
    expected = (pixels - [0.4914, 0.4822, 0.4465]) / [0.2470, 0.2435, 0.2616]
    np.testing.assert_allclose(batch.inputs, np.broadcast_to(expected, batch.inputs.shape), atol=1e-5)
    first, again, second = (load_task(PICTURES, pictures).train(epoch).images.images for epoch in (0, 0, 1))
    np.testing.assert_array_equal(first, again)
    assert np.any(first != second, axis=(1, 2, 3)).mean() > 0.9


def test_interrupted_training_on_pictures_goes_on_with_the_same_numbers(pictures: Path, tmp_path) -> None:
    (tmp_path / "part").mkdir()

    def trained(name: str, **options: Any) -> Any:
        parts, (loss, _) = load_task(PICTURES, pictures), loss_of(PICTURES)
        net = build_network(PICTURES, parts.num_inputs, parts.num_classes)
        options |= {"loss": loss, "config": PICTURES.training, "folder": tmp_path / name}
        result = fit(net, tasks.init_params(PICTURES, net, parts.sample), parts.train, None, **options)
        return result.params, result.stats, [line["train_loss"] for line in result.metrics]

    def keep(line: dict[str, Any]) -> None:  # what an interruption in the second epoch leaves
        if line["epoch"] == 1:
            shutil.copy(tmp_path / "whole" / CHECKPOINT, tmp_path / "part")

    whole = trained("whole", on_epoch=keep)
    chex.assert_trees_all_equal(trained("part", resume=True), whole, strict=True)


MODELS = [
    *((task, None) for task in sorted(TASKS)),
    ("digits", "conv"),
    ("nmnist", "residual"),
    ("speech", "delayed"),
    ("cifar10", "spikformer"),
]


@pytest.mark.parametrize("task, model", MODELS)
def test_settings_come_back_from_a_checkpoint(task: str, model: str | None) -> None:
    settings = task_settings(task, model)
    assert TaskSettings.from_header(json.loads(json.dumps(header_of(settings)))) == settings


@pytest.mark.parametrize(
    "loss, decoder, spikes",
    [
        ("cross_entropy_sum", "sum", False),
        ("cross_entropy_max", "max", False),
        ("cross_entropy_steps", "steps", False),
        ("cross_entropy_count", "sum", True),
        ("time_to_first_spike", "first_spike", True),
    ],
)
def test_decoder_and_readout_fit_the_loss(loss: str, decoder: str, spikes: bool) -> None:
    settings = replace(DIGITS, loss=loss, hidden=(4,))
    function, found = loss_of(settings)
    assert decoder == found == decoder_of(function, None)
    assert decoder == decoder_of(jax.jit(function), None) == decoder_of(jax.jit(partial(function)), None)
    assert decoder_of(function, "sum") == decoder_of(lambda outputs, labels, lengths: 0.0, None) == "sum"
    assert build_network(settings, 8, 3).nodes[-1].block.is_spiking == spikes


def header_of(settings: TaskSettings) -> dict[str, Any]:
    """What a checkpoint says of its settings."""
    return {"settings": settings.as_dict(), "config": asdict(settings.training)}


@pytest.mark.parametrize("samples", [18, 45, 10**6])
def test_few_samples_are_of_all_classes(samples: int) -> None:
    """The utterances are sorted by their speakers, which are the classes."""
    parts = load_task(replace(TASKS["vowels"], samples=samples, validation_share=0.0))
    for part, size in (parts.train(0), 270), (parts.test, 370):
        assert len(part) == min(samples, size)
        assert set(part.labels.tolist()) == set(range(9))


def _without_effect(task: str, name: str, usual: object, where: str, value: object, **others: object):
    return task, name, usual, where, value, others | {name: value}


# Settings that the data or the network of a task do not read.
WITHOUT_EFFECT = [
    _without_effect("vowels", "num_steps", 30, "for vowels", 20),
    _without_effect("vowels", "augment", False, "for vowels", True),
    _without_effect("digits", "noise", 0.0, "for digits", 0.5),
    _without_effect("nmnist", "downsample", 1, "for nmnist", 2),
    _without_effect("dvs-gesture", "augment", False, "for dvs-gesture", True),
    _without_effect("qtdb", "input_capacity", None, "for qtdb", 8),
    _without_effect("spar", "noise", 0.0, "without augment", 0.5, augment=False),
    _without_effect("cifar10", "recurrent", False, "for vgg", True),
    _without_effect("digits", "residual_blocks", 0, "without convolutions", 1),
    _without_effect("digits", "delay_per", "neuron", "without delays", "synapse"),
    _without_effect(
        "digits", "recurrent", False, "without hidden layers", True, hidden=(), convolutions=((4, 3, 2),)
    ),
    _without_effect(
        "digits", "readout_decay", 0.95, "for a readout that spikes", 0.5, loss="cross_entropy_count"
    ),
]

REFUSED = {
    "TaskSettings.from_header: `header` must hold the settings of this version, got momentum. "
    "Use the version of snnjax that trained it.": lambda: TaskSettings.from_header(
        header_of(DIGITS) | {"config": {**asdict(TrainConfig()), "momentum": 0.9}}
    ),
    "TaskSettings.from_header: `header` must hold the settings of this version, got "
    + ", ".join(f"no {name}" for name in sorted(DIGITS.as_dict().keys() - {"task"}))
    + ". Use the version of snnjax that trained it.": lambda: TaskSettings.from_header(
        {"settings": {"task": "digits"}, "config": asdict(TrainConfig())}
    ),
    **{
        "TaskSettings: `validation_share` must be a share of the training data, at least 0 and below 1, got "
        f"{share}. Try 0.1, or 0 for none.": lambda share=share: replace(DIGITS, validation_share=share)
        for share in (-0.1, 1.0, float("nan"))
    },
    "TaskSettings: `neuron_options` must be options of neurons.lif, got delay. Leave it out, or use the "
    "version of snnjax that has it.": lambda: replace(DIGITS, neuron_options={"delay": 1, "reset": "zero"}),
    "TaskSettings: `task` must be 'digits', 'vowels', 'qtdb', 'spar', 'fashion', 'nmnist', 'speech', 'cifar10', "
    "'shd', 'ssc' or 'dvs-gesture', got 'letters'. Choose one of these.": lambda: replace(
        DIGITS, task="letters"
    ),
    "TaskSettings: `hidden` must hold at least one width, got none. Try (512, 256).": lambda: replace(
        DIGITS, hidden=()
    ),
    "TaskSettings: `capacity` must be a share of each layer, above 0 and below 1, got 2.0. "
    "Try 0.1, or dense layers.": lambda: replace(DIGITS, capacity=2.0),
    "TaskSettings: `capacity` must be a share of each layer, above 0 and below 1, got 1. "
    "Try 0.1, or dense layers.": lambda: replace(DIGITS, capacity=1),
    "TaskSettings: `hidden` must be an integer of at least 1, got 0. Pass 1 or more.": lambda: replace(
        DIGITS, hidden=(16, 0)
    ),
    "TaskSettings: `max_delay` must be an integer of at least 0, got -1. Pass 0 or more.": lambda: replace(
        DIGITS, max_delay=-1
    ),
    "TaskSettings: `recurrent` must be True or False, got None. Choose one of these.": lambda: replace(
        DIGITS, recurrent=None
    ),
    **{
        f"TaskSettings: `{name}` must be {usual!r} {where}, where it has no effect, got {value!r}. "
        "Leave it out.": lambda task=task, changed=changed: replace(TASKS[task], **changed)
        for task, name, usual, where, value, changed in WITHOUT_EFFECT
    },
    "TaskSettings: `loss` must be one of membranes for vgg, whose outputs do not spike, got 'cross_entropy_count'. "
    "Use 'cross_entropy_sum'.": lambda: replace(TASKS["cifar10"], loss="cross_entropy_count"),
    "TaskSettings: `validation_share` must be 0 or 0.25, 2 of 8 people, for spar, got 0.1. Pass one of "
    "these.": lambda: replace(TASKS["spar"], validation_share=0.1),
    "TaskSettings: `validation_share` must be 0 or 0.2, 1 of 5 people, for speech, got 0.1. Pass one of "
    "these.": lambda: replace(TASKS["speech"], fold=0, validation_share=0.1),
    "TaskSettings: `readout_decay` must be at least 0 and below 1, got 1. Try 0.95.": lambda: replace(
        DIGITS, readout_decay=1
    ),
    "TaskSettings: `convolutions` must be () for vowels, whose inputs are not images, got ((4, 3, 2),). "
    "Train dense layers on it.": lambda: replace(TASKS["vowels"], convolutions=((4, 3, 2),)),
    "TaskSettings: `model` must be None for digits, whose inputs are not images in colour, got 'vgg'. "
    "Leave it out.": lambda: replace(DIGITS, model="vgg"),
    "TaskSettings: `model` must be 'vgg', 'sew' or 'spikformer', got None. Choose one of these.": lambda: (
        replace(TASKS["cifar10"], model=None)
    ),
    "TaskSettings: `hidden` must be () for cifar10, whose networks have their own layers, got (8,). "
    "Leave it out.": lambda: replace(TASKS["cifar10"], hidden=(8,)),
    "TaskSettings: `model_options` must be options of models.sew_resnet, got stages, strides. Leave it out, or use "
    "the version of snnjax that has it.": lambda: replace(TASKS["cifar10"], model="sew"),
    "task_settings: `model` must be 'vgg', 'sew' or 'spikformer', got 'dense'. "
    "Choose one of these.": lambda: task_settings("cifar10", "dense"),
    "load_task: `folder` must hold the data, got None. Download CIFAR-10 from www.cs.toronto.edu/~kriz/cifar.html, "
    "and pass --data.": lambda: load_task(TASKS["cifar10"]),
    "task_settings: `model` must be 'dense', got 'conv'. Choose one of these.": lambda: task_settings(
        "shd", "conv"
    ),
    "TaskSettings: `fold` must be None for digits, got 0. Folds are for nmnist and speech.": lambda: replace(
        DIGITS, fold=0
    ),
    "TaskSettings: `fold` must be between 0 and 5, got 6. Number the folds from 0.": lambda: replace(
        TASKS["speech"], fold=6
    ),
    "TaskSettings.from_header: `header` must name a task, got {}. Train with `snnjax train`.": lambda: (
        TaskSettings.from_header({"settings": {}, "config": {}})
    ),
    "load_task: `folder` must hold the data, got None. Download ssc_train.h5, ssc_valid.h5 "
    "and ssc_test.h5 from zenkelab.org/datasets, and pass --data.": lambda: load_task(TASKS["ssc"]),
}
test_wrong_arguments_are_named = refusals(REFUSED)
