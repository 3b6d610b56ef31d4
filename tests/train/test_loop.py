"""The training loop: it learns, keeps activity down, chooses by validation, and resumes bit for bit."""

import errno
import functools
import json
import math
import os
import re
import signal
from dataclasses import replace
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental.compilation_cache import compilation_cache
from safetensors.numpy import load_file

import snnjax
from snnjax import losses, train
from snnjax.data import EventDataset
from snnjax.train import lock, loop, progress
from snnjax.train.checkpoint import header_of
from snnjax.train.progress import after_epoch, as_stored, begin, read_progress, save
from tests.errors.refusals import refusals
from tests.numbers import assert_same_bits
from tests.train.toy import CLASSES, CONFIG, INPUTS, NET, STEPS, VALIDATION, events

# What depends on the clock.
CLOCK = ("seconds", "events_per_second")


@pytest.fixture(scope="module", autouse=True)
def _compiled_programs_are_kept(tmp_path_factory):
    """Each call of `fit` compiles its steps; those of equal settings are equal programs."""
    options = {
        "jax_enable_compilation_cache": True,
        "jax_compilation_cache_dir": str(tmp_path_factory.mktemp("compiled")),
        "jax_persistent_cache_min_compile_time_secs": 0.5,
    }
    before = {name: getattr(jax.config, name) for name in options}
    for name, value in options.items():
        jax.config.update(name, value)
    compilation_cache.reset_cache()  # JAX has noted that there is none
    yield
    for name, value in before.items():
        jax.config.update(name, value)
    compilation_cache.reset_cache()


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A run in one go, and its folder."""
    folder = tmp_path_factory.mktemp("whole")
    return run(folder=folder, settings={"hidden": (16,)}), folder


@functools.cache
def first_params():
    return NET.init(jax.random.key(0))


def run(config=CONFIG, source=None, **options):
    source = events(0) if source is None else source
    options = {"loss": losses.cross_entropy_sum, "config": config} | options
    params, validation = options.pop("params", first_params()), options.pop("validation", VALIDATION)
    return train.fit(NET, params, source, validation, **options)


def without_clock(lines):
    return [{name: value for name, value in line.items() if name not in CLOCK} for line in lines]


def test_fit_learns_and_leaves_the_first_parameters_alone(whole) -> None:
    result, _ = whole
    assert not result.interrupted
    assert result.metrics[-1]["train_loss"] < result.metrics[0]["train_loss"]
    assert max(line["validation_accuracy"] for line in result.metrics) > 0.9
    assert_same_bits(first_params(), NET.init(jax.random.key(0)))
    tested = train.evaluate(NET, result.params, VALIDATION, loss=losses.cross_entropy_sum)
    assert tested["accuracy"] == result.metrics[result.best_epoch - 1]["validation_accuracy"]


def test_interrupted_and_resumed_training_equals_training_in_one_go(whole, tmp_path) -> None:
    whole, whole_folder = whole
    options = {"folder": tmp_path, "settings": {"hidden": (16,)}}

    def interrupt(line) -> None:
        if line["epoch"] == 2:
            signal.raise_signal(signal.SIGINT)

    handler = signal.getsignal(signal.SIGINT)
    part = run(on_epoch=interrupt, **options)
    assert part.interrupted and len(part.metrics) == 2
    assert signal.getsignal(signal.SIGINT) is handler
    # what a kill in the middle of the next write would leave
    left = tmp_path / ".0123456789abcdef.partial"
    left.write_bytes(b"half a checkpoint")
    resumed = run(resume=True, **options)
    assert not left.exists()
    assert_same_bits(resumed.params, whole.params)
    assert resumed.best_epoch == whole.best_epoch and not resumed.interrupted
    assert without_clock(resumed.metrics) == without_clock(whole.metrics)
    assert_same_bits(*(load_file(folder / "checkpoint.safetensors") for folder in (tmp_path, whole_folder)))
    lines = (tmp_path / "metrics.jsonl").read_text().splitlines()
    assert [json.loads(line) for line in lines] == resumed.metrics


def test_statistics_of_norms_and_the_keys_of_dropout_resume_too(tmp_path) -> None:
    norm, dropout = snnjax.blocks.batch_norm(), snnjax.blocks.dropout(0.3)
    hidden = snnjax.layer(16, norm=norm, dropout=dropout, capacity=8)
    net = snnjax.network(INPUTS, [hidden], snnjax.leaky_readout(CLASSES))
    params, config = net.init(jax.random.key(0)), replace(CONFIG, epochs=2)

    def fit(folder, **options):
        options |= {"loss": losses.cross_entropy_sum, "config": config, "folder": folder}
        return train.fit(net, params, events(0), VALIDATION, **options)

    whole = fit(tmp_path / "whole")
    fit(tmp_path / "part", on_epoch=lambda line: signal.raise_signal(signal.SIGINT))
    resumed = fit(tmp_path / "part", resume=True)
    assert_same_bits((resumed.params, resumed.stats), (whole.params, whole.stats))
    files = (tmp_path / name / "checkpoint.safetensors" for name in ("whole", "part"))
    assert_same_bits(*map(load_file, files))
    before = net.initial_stats(jax.random.key(0))
    assert whole.stats.keys() == before.keys() == {"layer_0/norm"}
    assert not np.allclose(whole.stats["layer_0/norm"].mean, before["layer_0/norm"].mean)
    tested = train.evaluate(net, whole.params, VALIDATION, stats=whole.stats, loss=losses.cross_entropy_sum)
    assert tested["accuracy"] == whole.metrics[whole.best_epoch - 1]["validation_accuracy"]


def test_training_on_another_device_gives_the_same_bits_at_home(whole) -> None:
    device = jax.devices()[-1]
    used, programs = set(), train.loop._programs

    def watching(*args):
        step, test = programs(*args)

        def run_step(state, *rest):
            used.update(state.params["layer_0/connection"].weights.devices())
            return step(state, *rest)

        return run_step, test

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(train.loop, "_programs", watching)
        result = run(devices=[device])
    assert used == {device}
    assert_same_bits(result.params, whole[0].params)
    assert without_clock(result.metrics) == without_clock(whole[0].metrics)
    assert {each for leaf in jax.tree.leaves(result.params) for each in leaf.devices()} == {jax.devices()[0]}


def test_resuming_a_finished_run_returns_its_result(whole) -> None:
    result, folder = whole
    again = run(folder=folder, settings={"hidden": (16,)}, resume=True, source=lambda epoch: 1 / 0)
    assert_same_bits(again.params, result.params)
    assert again.metrics == result.metrics


def test_finished_run_is_prolonged(tmp_path) -> None:
    options = {"folder": tmp_path, "settings": {"hidden": (16,)}}
    short = run(replace(CONFIG, epochs=1), **options)
    longer = run(resume=True, **options)
    assert [line["epoch"] for line in longer.metrics] == [1, 2, 3]
    assert longer.metrics[0] == short.metrics[0]
    assert train.read_run(tmp_path / "checkpoint.safetensors")["config"]["epochs"] == 3
    text = (
        "fit: `epochs` must be at least 3, the number that the checkpoint has completed, got 2. "
        "Resume with more epochs, or start a new run in another folder."
    )
    with pytest.raises(ValueError, match=f"^{re.escape(text)}$"):
        run(replace(CONFIG, epochs=2), resume=True, **options)


def test_checkpoint_of_another_run_is_replaced_on_request_only(tmp_path) -> None:
    path = tmp_path / "checkpoint.safetensors"
    train.save_checkpoint(path, {}, {"note": "weeks of work"})
    text = (
        f"fit: `folder` must hold no checkpoint yet, got {path}. "
        "Continue from it with resume, replace it with overwrite, or choose another folder."
    )
    with pytest.raises(ValueError, match=f"^{re.escape(text)}$"):
        run(source=lambda epoch: 1 / 0, folder=tmp_path)
    assert header_of("read_run", path) == {"note": "weeks of work"}
    run(replace(CONFIG, epochs=1), folder=tmp_path, overwrite=True)
    assert train.read_run(path)["epoch"] == 1


def test_checkpoint_that_no_run_wrote_is_named(tmp_path) -> None:
    path = tmp_path / "checkpoint.safetensors"
    train.save_checkpoint(path, {}, {"epoch": 1, "metrics": []})
    text = (
        f"read_run: `path` must be the checkpoint of a training run, got no best_epoch, config or settings in {path}. "
        "Pass a checkpoint that `fit` or `snnjax train` wrote."
    )
    with pytest.raises(ValueError, match=f"^{re.escape(text)}$"):
        run(folder=tmp_path, resume=True)


@pytest.mark.parametrize(
    "changes, actual",
    [
        ({"config": None}, "no config"),
        ({"settings": [1]}, "no settings"),
        ({"epoch": "2", "metrics": {}}, "no epoch or metrics"),
        ({"metrics": []}, "best epoch 1 of 0"),
        ({"best_epoch": 3}, "best epoch 3 of 2"),
        ({"best_epoch": -1}, "best epoch -1 of 2"),
    ],
)
def test_checkpoint_with_an_edited_header_is_named(tmp_path, changes, actual) -> None:
    path = tmp_path / "checkpoint.safetensors"
    header = {"epoch": 2, "best_epoch": 1, "metrics": [{}, {}], "config": {}, "settings": {}}
    train.save_checkpoint(path, {}, header | changes)
    text = (
        f"read_run: `path` must be the checkpoint of a training run, got {actual} in {path}. "
        "Pass a checkpoint that `fit` or `snnjax train` wrote."
    )
    with pytest.raises(ValueError, match=f"^{re.escape(text)}$"):
        train.read_run(path)


def test_folder_that_cannot_be_written_is_named_before_an_epoch(tmp_path) -> None:
    (tmp_path / "file").touch()
    folder = tmp_path / "file" / "run"
    text = (
        f"fit: `folder` must be a folder that can be written to, got {str(folder)!r} (Not a directory). "
        "Choose another folder."
    )
    with pytest.raises(ValueError, match=f"^{re.escape(text)}$"):
        run(source=lambda epoch: 1 / 0, folder=folder)


def test_read_only_folder_is_named_before_an_epoch(tmp_path, monkeypatch) -> None:
    def refused(*_, **__):
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr(lock.tempfile, "TemporaryFile", refused)  # root may write anywhere
    text = f"got {str(tmp_path)!r} (Read-only file system). Choose another folder."
    with pytest.raises(ValueError, match=f"{re.escape(text)}$"):
        run(source=lambda epoch: 1 / 0, folder=tmp_path)


def test_disk_without_room_for_a_checkpoint_is_named_before_each_epoch(tmp_path, monkeypatch) -> None:
    def fill(line) -> None:
        monkeypatch.setattr(progress.shutil, "disk_usage", lambda _: SimpleNamespace(free=0))

    trained = []
    text = r"^fit: `folder` must have \d+ free bytes for a checkpoint, got 0 in "
    with pytest.raises(ValueError, match=text):
        run(folder=tmp_path, on_epoch=lambda line: (trained.append(line["epoch"]), fill(line)))
    assert trained == [1] and train.read_run(tmp_path / "checkpoint.safetensors")["epoch"] == 1


def test_each_epoch_gets_its_own_data_once(whole) -> None:
    asked = []

    def source(epoch: int) -> EventDataset:
        asked.append(epoch)
        return events(epoch)

    losses_of = [
        [line["train_loss"] for line in result.metrics] for result in (run(CONFIG, source), whole[0])
    ]
    assert asked == [0, 1, 2]
    assert [fresh == same for fresh, same in zip(*losses_of, strict=True)] == [True, False, False]


def test_errors_of_the_data_thread_reach_the_caller() -> None:
    with pytest.raises(ZeroDivisionError):
        run(source=lambda epoch: 1 / 0)


def test_epoch_is_chosen_on_validation_data() -> None:
    params = first_params()
    reached = begin(NET, params, None, CONFIG)
    scores = ((0.5, 1.0), (0.9, 3.0), (0.9, 2.0), (0.9, 2.0), (1.0, math.nan))
    for epoch, (accuracy, loss) in enumerate(scores, start=1):
        own = params["layer_0/connection"]._replace(bias=jnp.full(16, float(epoch)))
        stats = {"norm": jnp.float32(epoch)}
        state = train.TrainState({**params, "layer_0/connection": own}, (), stats)
        trained = {"loss": 1.0, "accuracy": epoch / 4}
        reached = after_epoch(reached, state, trained, {"loss": loss, "accuracy": accuracy}, CONFIG)
    assert reached.best_epoch == 3  # among equals the smaller loss, then the earliest; never without a loss
    assert reached.best_params["layer_0/connection"].bias[0] == reached.best_stats["norm"] == 3
    assert [line["epoch"] for line in reached.metrics] == [1, 2, 3, 4, 5]


def test_last_epoch_needs_no_validation_data() -> None:
    last = replace(CONFIG, epochs=2, selection="last")
    alone, validated = run(last, validation=None), run(last)
    assert alone.best_epoch == validated.best_epoch == 2
    assert jax.tree.all(jax.tree.map(np.array_equal, alone.params, validated.params))
    assert "validation_loss" in validated.metrics[0] and "validation_loss" not in alone.metrics[0]


def test_settings_may_be_left_out(monkeypatch) -> None:
    monkeypatch.setattr(loop, "begin", lambda network, params, stats, config: pytest.fail(repr(config)))
    for options, selection in (({}, "last"), ({"validation": VALIDATION}, "best")):
        with pytest.raises(pytest.fail.Exception, match=f"selection='{selection}'"):
            train.fit(NET, first_params(), events(0), loss=losses.cross_entropy_sum, **options)


def test_last_epoch_is_the_last_whose_loss_is_finite() -> None:
    params, last = first_params(), replace(CONFIG, selection="last")
    reached = begin(NET, params, None, last)
    for epoch, loss in enumerate((1.0, 2.0, math.nan)):
        own = params["layer_0/connection"]._replace(bias=jnp.full(16, float(epoch)))
        state = train.TrainState({**params, "layer_0/connection": own}, (), None)
        reached = after_epoch(reached, state, {"loss": loss, "accuracy": 0.5}, None, last)
    assert reached.best_epoch == 2 and reached.best_params["layer_0/connection"].bias[0] == 1


def test_average_is_that_of_the_last_fifth_of_the_epochs(tmp_path) -> None:
    params, config = first_params(), replace(CONFIG, epochs=11, selection="average")
    reached = begin(NET, params, None, config)
    for epoch in range(1, 12):
        own = params["layer_0/connection"]._replace(bias=jnp.full(16, 2.0**epoch))
        state = reached.state._replace(params={**params, "layer_0/connection": own})
        reached = after_epoch(reached, state, {"loss": 1.0, "accuracy": 0.5}, None, config)
    expected = (2.0**9 + 2.0**10 + 2.0**11) / 3
    np.testing.assert_allclose(reached.best_params["layer_0/connection"].bias, expected, rtol=1e-6)
    save(tmp_path, NET, reached, as_stored(config, {}))
    longer = replace(config, epochs=13)
    with pytest.raises(
        ValueError, match="`epochs` must be at least 14 to average over its last fifth, got 13"
    ):
        read_progress(tmp_path, NET, as_stored(longer, {}), reached, longer)


def test_average_keeps_synapses_and_drawn_constants() -> None:
    connection, neuron = snnjax.sparse(16, fan_in=3), snnjax.neurons.lif(decay=(0.8, 0.9))
    net = snnjax.network(INPUTS, [snnjax.layer(connection, neuron)], snnjax.leaky_readout(CLASSES))
    stats, config = net.initial_stats(jax.random.key(1)), replace(CONFIG, epochs=15, selection="average")
    reached = begin(net, net.init(jax.random.key(0)), stats, config)
    for _ in range(config.epochs):
        reached = after_epoch(reached, reached.state, {"loss": 1.0, "accuracy": 0.5}, None, config)
    assert_same_bits(reached.best_stats, stats)


def test_upper_bound_holds_activity_down(whole) -> None:
    bound = run(replace(CONFIG, activity_bound=0.05))
    assert bound.metrics[-1]["activity"][0] < 0.5 * whole[0].metrics[-1]["activity"][0]


def test_silent_layer_is_reported() -> None:
    params = jax.tree.map(jnp.zeros_like, first_params())
    text = (
        "fit: `layer_0/neuron` did not spike once in epoch 1: nothing passes through it. "
        "Start from larger weights (network.init with sample inputs), or lower the threshold."
    )
    with pytest.warns(RuntimeWarning, match=f"^{re.escape(text)}$"):
        run(replace(CONFIG, epochs=1, second_threshold=0.999), params=params)


def test_training_ends_with_a_loss_that_is_not_finite() -> None:
    def lost(outputs, labels, *, lengths=None):
        return jnp.nan * losses.cross_entropy_sum(outputs, labels, lengths=lengths)

    text = (
        "fit: the training loss of epoch 1 is nan, so training stops. "
        "Look for NaN in the inputs, or lower the learning rate."
    )
    with pytest.warns(RuntimeWarning, match=f"^{re.escape(text)}$"):
        result = run(loss=lost)
    assert len(result.metrics) == 1 < CONFIG.epochs
    assert result.interrupted


@pytest.mark.parametrize("selection", ["last", "average"])
def test_nan_that_the_last_step_leaves_behind_ends_training_too(selection) -> None:
    """No loss has seen it. The square root of 0 has a value, and no gradient."""

    def lost(outputs, labels, *, lengths=None):
        return jnp.sqrt(0 * losses.cross_entropy_sum(outputs, labels, lengths=lengths))

    config = replace(CONFIG, epochs=5, batch_size=len(events(0)), selection=selection)
    with pytest.warns(
        RuntimeWarning, match="^fit: the parameters after epoch 1 hold NaN, so training stops. "
    ):
        result = run(config, loss=lost, decoder="sum")
    assert_same_bits(result.params, first_params())
    assert result.interrupted and result.metrics[0]["train_loss"] == 0


def test_second_threshold_moves_without_a_second_trace() -> None:
    traces = []

    def loss(*arguments, **options):
        traces.append(1)
        return losses.cross_entropy_sum(*arguments, **options)

    optimiser = train.make_optimiser(replace(CONFIG, warmup_epochs=0.0), 6)
    step = train.make_train_step(NET, loss, optimiser, CONFIG)
    batch = events(0).take(np.arange(8))
    moved = []
    for second_threshold in (0.9, 0.1):
        params = jax.tree.map(jnp.copy, first_params())
        state, _ = step(train.TrainState(params, optimiser.init(params)), batch, second_threshold)
        moved.append(state.params["layer_0/connection"].weights)
    assert len(traces) == 1
    assert np.any(moved[0] != moved[1])  # more neurons learn below a lower threshold


def test_evaluate_does_not_count_the_filling_of_the_last_batch() -> None:
    loss = losses.cross_entropy_sum
    whole, pieces = (
        train.evaluate(NET, first_params(), VALIDATION, loss=loss, batch_size=size) for size in (20, 8)
    )
    for name in whole.keys() - set(CLOCK):
        np.testing.assert_allclose(pieces[name], whole[name], rtol=1e-5, err_msg=name)
    assert pieces["samples"] == 20 and pieces["input_events"] == 3 * STEPS


def test_evaluate_equals_the_single_metrics() -> None:
    batch = VALIDATION.take(np.arange(20))
    params = first_params()
    output, _ = NET.apply(params, NET.initial_state(params, 20), batch.inputs)
    activity, dropped = list(output.activity.values()), list(output.dropped.values())
    numbers = train.evaluate(NET, params, VALIDATION, loss=losses.cross_entropy_sum)
    expected = {
        "loss": losses.cross_entropy_sum(output.output, batch.labels),
        "accuracy": snnjax.metrics.accuracy(output.output, batch.labels),
        "activity": snnjax.metrics.mean_activity(activity),
        "silent_share": snnjax.metrics.silent_layers(activity),
        "dropped_share": snnjax.metrics.dropped_share(dropped, activity, jnp.full(20, STEPS)),
        "dense_operations": STEPS * (INPUTS * 16 + 16 * CLASSES),
    }
    for name, value in expected.items():
        np.testing.assert_allclose(numbers[name], value, rtol=1e-5, err_msg=name)


REFUSED = {
    "fit: `overwrite` must be omitted to resume, got True. Choose one of the two.": lambda: run(
        folder="none", resume=True, overwrite=True
    ),
    "fit: `folder` must be given to resume, got None. Pass the folder of the run to resume.": lambda: run(
        resume=True
    ),
    "fit: `train` must hold 8 samples, got 7. Pass more samples, or a smaller batch size.": lambda: run(
        source=events(0, 7)
    ),
    "fit: `train` must give 1 step in every epoch, got 2 in epoch 2. Make data sets of one size.": lambda: (
        run(source=lambda epoch: events(0, 8 * (epoch + 1)))
    ),
    "fit: `validation` must share no sample with `train`, got the same data set. Divide the samples with "
    "data.split_indices.": lambda: run(source=VALIDATION),
    f"fit: `train` must have no more classes than the network has outputs, {CLASSES}, got {CLASSES + 1}. "
    "Give the readout one output for each class.": lambda: run(
        source=replace(events(0), num_classes=CLASSES + 1)
    ),
    "fit: `loss` must be a function, got 'cross_entropy'. "
    "Pass one of snnjax.losses, as in loss=losses.cross_entropy_sum.": lambda: run(loss="cross_entropy"),
    "fit: `config` must be a TrainConfig, got a dict. Make it with train.TrainConfig(...).": lambda: run(
        {"epochs": 1}
    ),
    "TrainConfig: `epochs` must be an integer of at least 1, got 0. Pass 1 or more.": lambda: replace(
        CONFIG, epochs=0
    ),
    "TrainConfig: `learning_rate` must be a positive number, got 0.0. "
    "Leave it out for its default.": lambda: replace(CONFIG, learning_rate=0.0),
    "TrainConfig: `activity_strength` must be a finite number of at least 0, got -1.0. "
    "Leave it out for its default.": lambda: replace(CONFIG, activity_strength=-1.0),
    "TrainConfig: `learning_rate` must be finite, got inf. Leave it out for its default.": lambda: (
        train.TrainConfig(learning_rate=float("inf"))
    ),
    "TrainConfig: `activity_floor` must be finite, got inf. Leave it out for its default.": lambda: (
        train.TrainConfig(activity_floor=float("inf"))
    ),
    "TrainConfig: `learning_rate` must be a positive number, got True. "
    "Leave it out for its default.": lambda: replace(CONFIG, learning_rate=True),
    "TrainConfig: `learning_rate` must be a positive number, got '1e-3'. "
    "Leave it out for its default.": lambda: replace(CONFIG, learning_rate="1e-3"),
    "TrainConfig: `warmup_epochs` must be a finite number of at least 0, got inf. "
    "Leave it out for its default.": lambda: replace(CONFIG, warmup_epochs=math.inf),
    "TrainConfig: `second_threshold` must be a number, got nan. Leave it out for its default.": lambda: (
        replace(CONFIG, second_threshold=math.nan)
    ),
    "TrainConfig: `seed` must be below 2**63, got 9223372036854775808. Pass a smaller integer.": lambda: (
        replace(CONFIG, seed=2**63)
    ),
    "fit: `settings` must be what JSON can store, got {1, 2}. "
    "Pass numbers, text, and lists and dictionaries of them.": lambda: run(settings={"of": {1, 2}}),
    "fit: `train` must hold at least one sample, got none. Split off a larger part for it.": lambda: run(
        source=events(0).select([])
    ),
    "fit: `validation` must hold at least one sample, got none. Split off a larger part for it.": lambda: run(
        validation=VALIDATION.select([])
    ),
    "fit: `validation` must be a data set to select the best epoch, got None. "
    'Hold samples out, or set selection="last".': lambda: run(validation=None),
    "fit: `train` must be a data set, got a Batch. "
    "Make one with snnjax.data, such as an EventDataset.": lambda: run(source=events(0).take(range(8))),
    "evaluate: `dataset` must hold at least one sample, got none. Split off a larger part for it.": lambda: (
        train.evaluate(NET, first_params(), VALIDATION.select([]), loss=losses.cross_entropy_sum)
    ),
    f"evaluate: `dataset` must have no more classes than the network has outputs, {CLASSES}, got {CLASSES + 1}. "
    "Give the readout one output for each class.": lambda: train.evaluate(
        NET, first_params(), replace(VALIDATION, num_classes=CLASSES + 1), loss=losses.cross_entropy_sum
    ),
}
test_wrong_arguments_are_named = refusals(REFUSED)


def test_numbers_of_numpy_are_stored_as_numbers(tmp_path) -> None:
    config = replace(CONFIG, epochs=1, learning_rate=np.float32(0.125))
    settings = {"hidden": np.array([16]), "of": jnp.float32(0.5)}
    run(config, folder=tmp_path, settings=settings)
    header = train.read_run(tmp_path / "checkpoint.safetensors")
    assert header["settings"] == {"hidden": [16], "of": 0.5}
    assert header["config"]["learning_rate"] == 0.125
    assert len(run(config, folder=tmp_path, settings=settings, resume=True).metrics) == 1


def test_resuming_with_other_settings_is_refused(whole) -> None:
    options = {"folder": whole[1], "resume": True}
    text = (
        "fit: `learning_rate` must be 0.1 as in the checkpoint, got 0.01. "
        "Resume with the settings of the checkpoint, or start a new run in another folder."
    )
    with pytest.raises(ValueError, match=f"^{re.escape(text)}$"):
        run(replace(CONFIG, learning_rate=0.01), settings={"hidden": (16,)}, **options)
    text = text.replace("`learning_rate` must be 0.1", "`hidden` must be [16]").replace("0.01", "[8]")
    with pytest.raises(ValueError, match=f"^{re.escape(text)}$"):
        run(settings={"hidden": (8,)}, **options)


SMOOTHED = functools.partial(losses.cross_entropy_sum, label_smoothing=0.1)
OTHER_LOSSES = {
    "loss": ({"loss": losses.cross_entropy_max}, "`loss` must be 'cross_entropy_sum'", "'cross_entropy_max'"),
    "own": (
        {"loss": lambda outputs, labels, *, lengths: losses.cross_entropy_sum(outputs, labels)},
        "`loss` must be 'cross_entropy_sum'",
        '"a function of one\'s own"',
    ),
    "option": ({"loss": SMOOTHED}, "`label_smoothing` must be 0.0", "0.1"),
    "decoder": ({"decoder": "max"}, "`decoder` must be 'sum'", "'max'"),
}


@pytest.mark.parametrize("case", OTHER_LOSSES)
def test_resuming_with_another_loss_is_refused(whole, case: str) -> None:
    options, expected, actual = OTHER_LOSSES[case]
    text = f"fit: {expected} as in the checkpoint, got {actual}. Resume with the settings of the checkpoint"
    with pytest.raises(ValueError, match=f"^{re.escape(text)}"):
        run(folder=whole[1], resume=True, settings={"hidden": (16,)}, **options)


def test_resuming_with_the_same_loss_written_otherwise_is_allowed(whole) -> None:
    same = jax.jit(functools.partial(losses.cross_entropy_sum, label_smoothing=0.0))
    resumed = run(folder=whole[1], resume=True, settings={"hidden": (16,)}, loss=same, decoder="sum")
    assert resumed.metrics == whole[0].metrics


def test_resuming_with_another_number_of_samples_is_refused(whole) -> None:
    """The learning rate is scheduled over all steps: it would jump."""
    config, half = replace(CONFIG, epochs=CONFIG.epochs + 1), events(0).select(slice(0, 64))
    text = (
        "fit: `train` must give the 20 steps per epoch of the checkpoint, got 8. "
        "Resume with the data of the run, or start a new run."
    )
    with pytest.raises(ValueError, match=f"^{re.escape(text)}$"):
        run(config, half, folder=whole[1], resume=True, settings={"hidden": (16,)})


OTHERS = {
    "reset": (
        snnjax.layer(16, snnjax.neurons.lif(reset="zero"), capacity=8),
        "reset",
        "'subtract'",
        "'zero'",
    ),
    "gain": (snnjax.layer(16, snnjax.neurons.lif(normalize=False), capacity=8), "normalize", "True", "False"),
    "surrogate": (
        snnjax.layer(16, snnjax.neurons.lif(surrogate="arctan"), capacity=8),
        "surrogate.name",
        "'superspike'",
        "'arctan'",
    ),
    "capacity": (snnjax.layer(16, capacity=9), "capacity", "8", "9"),
}


@pytest.mark.parametrize("case", OTHERS)
def test_resuming_another_network_is_refused(whole, case: str) -> None:
    layer, name, old, new = OTHERS[case]
    other = snnjax.network(INPUTS, [layer], snnjax.leaky_readout(CLASSES))
    options = {"loss": losses.cross_entropy_sum, "config": CONFIG, "settings": {"hidden": (16,)}}
    path = whole[1] / "checkpoint.safetensors"
    text = f"{name}` must be {old} as in {path}, got {new}. Build the network with the settings"
    with pytest.raises(
        ValueError, match=rf"^load_checkpoint: `network\.nodes\.layer_0/neuron\.block\..*{re.escape(text)}"
    ):
        train.fit(other, first_params(), None, VALIDATION, folder=whole[1], resume=True, **options)
