"""The training loop: epochs, selection of the best one, checkpoints, stopping and resuming."""

import os
import threading
import time
import warnings
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PyTree

from snnjax._arguments import explained
from snnjax._check import fail, plural, short_repr, type_words
from snnjax._compiler_options import compiler_options
from snnjax._types import Unchecked
from snnjax.data import batches
from snnjax.data.datasets import Dataset
from snnjax.graph.check import check_params
from snnjax.graph.network import Network, Params, Stats
from snnjax.train.background import Prepared, draw_bar, stop_signals
from snnjax.train.config import TrainConfig, make_optimiser, second_threshold_at
from snnjax.train.parallel import data_mesh, replicate, take
from snnjax.train.progress import (
    Progress,
    after_epoch,
    as_stored,
    begin,
    check_room,
    divergence,
    objective_of,
    read_progress,
    run_folder,
    save,
)
from snnjax.train.step import (
    Loss,
    TrainState,
    check_dataset,
    evaluate_with,
    make_evaluation_step,
    make_train_step,
)
from snnjax.train.totals import spiking_nodes, summarise


class FitResult(NamedTuple):
    """The result of training."""

    params: Params  # those that `TrainConfig.selection` selects
    stats: Stats | None  # selected likewise: the running statistics of norms
    best_epoch: int  # counted from 1; the last one of a mean
    metrics: list[dict[str, Any]]  # one per epoch
    interrupted: bool  # stopped before the last epoch


@explained
def fit(
    network: Network,
    params: Params,
    train: Any,
    validation: Dataset | None = None,
    *,
    loss: Loss,
    config: TrainConfig | None = None,
    stats: Stats | None = None,
    decoder: str | None = None,
    folder: os.PathLike[str] | str | None = None,
    resume: bool = False,
    overwrite: bool = False,
    settings: dict[str, Any] | None = None,
    on_epoch: Callable[[dict[str, Any]], None] | None = None,
    progress_bar: bool = False,
    devices: Sequence[Any] | None = None,
) -> FitResult:
    """Train a network and select the epoch of the best validation accuracy (ties: smaller loss), or by another rule.

    `TrainConfig.selection` is the rule: the best epoch, the last one, or the mean of the parameters after each of the
    last fifth of the epochs.

    After each epoch the checkpoint in `folder` is replaced: parameters, stats, optimiser state, key, the best epoch's
    parameters and stats, and metrics. The order of the data, dropout and all schedules follow from the epoch and the
    key, so resumed training gives bit-identical results to uninterrupted training on the same machine and build. SIGINT
    and SIGTERM stop training at the next batch; the unfinished epoch is lost.

    Several `devices` train in parallel, each on an equal share of every batch; norms take the statistics of the whole
    batch. The devices may belong to several processes (`jax.distributed`), which must all call `fit` with the same
    arguments and a `folder` that all of them can access; the first process writes the checkpoint. A signal ends such a
    process at once; the others then fail, and all must resume.

    Args:
        network: from `snnjax.network`.
        params: initial parameters.
        train: a data set of `snnjax.data`, or a function ``train(epoch)`` that makes one for each epoch (fresh
            augmentation); it runs in a thread during the previous epoch and must depend on the epoch only.
        validation: a data set that shares no sample with `train`, nor with the test data; None if the last epoch is
            selected, or the last ones are averaged, and nothing is held out.
        loss: one of `snnjax.losses`.
        config: the settings; None is ``TrainConfig()``, or without validation ``TrainConfig(selection="last")``.
        stats: the first running statistics of norms; None for those of ``network.initial_stats``.
        decoder: the decoder of `snnjax.metrics.predictions`, None for that of the loss (`LOSSES`), or else "sum"; of
            several readouts, it decodes the first.
        folder: where to write ``checkpoint.safetensors`` and ``metrics.jsonl``; None writes nothing. Until the run
            ends, a lock file in it names its process and host, and other runs are refused.
        resume: continue from the checkpoint in `folder`. `config.epochs` may differ, so that a finished run can be
            extended; from then on the schedules are those of the new number of epochs.
        overwrite: replace an existing checkpoint in `folder`, which is an error otherwise.
        settings: the caller's own settings, numbers, text, arrays, lists and dictionaries of them; stored in the
            checkpoint and compared on resuming.
        on_epoch: called with the metrics of each epoch, after its checkpoint.
        progress_bar: draw a progress bar, if tqdm is installed.
        devices: where training steps run, such as ``jax.devices("ipu")[:1]``; None uses JAX's default device, or all
            devices if there are several processes.

    Raises:
        ValueError: if there is no checkpoint to resume from, or it is of another network, or has other settings,
            another loss or decoder, more epochs, or another number of steps per epoch; if `params` are those of another
            network; if the folder already holds a checkpoint, belongs to a run in progress, cannot be written to, or
            has no room for a checkpoint when an epoch begins; if a batch cannot be divided among the devices; if a data
            set has no samples, or more classes than the network has outputs; if `validation` is `train`, or an epoch
            has another number of steps than the first.

    Warns:
        RuntimeWarning: if a layer never spikes during an epoch; if a training loss is not finite, or parameters become
            NaN, which ends training; if the file system of the folder has no locks.

    Example:
        >>> import jax
        >>> import snnjax
        >>> from snnjax import data, losses, train
        >>> vowels = data.load_japanese_vowels()
        >>> net = snnjax.network(12, [snnjax.layer(8)], snnjax.leaky_readout(9))
        >>> params = net.init(jax.random.key(0))
        >>> parts = vowels.select(range(0, 64)), vowels.select(range(64, 80))
        >>> config = train.TrainConfig(epochs=1, batch_size=16)
        >>> result = train.fit(net, params, *parts, loss=losses.cross_entropy_sum, config=config)
        >>> result.best_epoch, len(result.metrics)
        (1, 1)
    """
    config = _checked(loss, config, network, params, train, validation)
    places = _places(devices, config)
    stored = as_stored(config, settings or {}, objective_of(loss, decoder))
    start = begin(network, params, stats, config)
    with run_folder(folder, resume=resume, overwrite=overwrite) as place:
        progress = read_progress(place, network, stored, start, config) if resume and place else start
        first = len(progress.metrics)
        with Prepared(train, first, config.epochs) as parts, stop_signals() as stop:
            steps = _steps_per_epoch(parts, progress, config, network)
            step, test = _programs(network, progress.state.params, loss, steps, config, decoder, places)
            with draw_bar(progress_bar, config.epochs * steps, first * steps) as tick:
                for epoch in range(first, config.epochs):
                    check_room(place, progress)
                    dataset = _of_epoch(parts, epoch, steps, config, network)
                    state, trained = _train_epoch(step, progress, dataset, config, stop, tick, places)
                    if trained is None:
                        break
                    progress = after_epoch(progress, state, trained, test(state, validation), config)
                    if not _keep(network, progress, place, stored, on_epoch):
                        break
    return _result(progress, config)


def _programs(
    network: Network,
    params: Params,
    loss: Loss,
    steps: int,
    config: TrainConfig,
    decoder: str | None,
    places: "_Places",
) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """A function that trains on a batch, and one that evaluates a state on data if there are any, compiled once."""
    optimiser = make_optimiser(config, steps)  # steps of an epoch
    train_step = make_train_step(network, loss, optimiser, config, decoder, places.mesh)

    def step(state: TrainState, batch: PyTree, second_threshold: Any, key: Any) -> Any:
        return train_step(state, batch, second_threshold, jax.random.wrap_key_data(key))

    evaluation_step = make_evaluation_step(network, loss, decoder)

    def test(state: TrainState, validation: Any | None) -> dict[str, Any] | None:
        if validation is None:
            return None
        return evaluate_with(evaluation_step, state.params, validation, state.stats, config.batch_size)

    options = compiler_options(places.first(params))
    return jax.jit(step, donate_argnums=0, compiler_options=options), test


def _result(progress: Progress, config: TrainConfig) -> FitResult:
    interrupted = len(progress.metrics) < config.epochs
    best = progress.best_params, progress.best_stats, progress.best_epoch
    return FitResult(*best, progress.metrics, interrupted)


def _train_epoch(
    train_step: Callable[..., Any],
    progress: Progress,
    dataset: Dataset,
    config: TrainConfig,
    stop: threading.Event,
    advance: Callable[[], Any],
    places: "_Places",
) -> tuple[TrainState, dict[str, Any] | None]:
    """Train on each sample once (except for a last incomplete batch); no metrics if `stop` was set before the end."""
    start, totals, epoch = time.perf_counter(), [], len(progress.metrics)
    second_threshold, key = second_threshold_at(config, epoch), jax.random.wrap_key_data(progress.key)
    state = places.send(progress.state)
    keys = _keys_of_steps(key, epoch, len(dataset) // config.batch_size)
    orders = batches(key, len(dataset), config.batch_size, epoch=epoch, drop_last=True)
    for indices, own in zip(orders, keys, strict=True):
        if stop.is_set():
            return state, None
        state, counted = train_step(state, take(places.mesh, dataset, indices), second_threshold, own)
        totals.append(counted)
        advance()
    jax.block_until_ready(state)
    if places.device is not None or places.mesh is not None:  # left there, it would occupy memory
        state = jax.tree.map(lambda leaf: jnp.asarray(np.array(leaf)), state)
    return state, summarise(totals, time.perf_counter() - start)


def _keys_of_steps(key: Array, epoch: int, steps: int) -> np.ndarray:
    """A key for each step of an epoch, as plain numbers, which any process and device can be given."""
    own = jax.random.fold_in(jax.random.fold_in(key, zlib.crc32(b"steps")), epoch)
    return np.asarray(jax.random.key_data(jax.random.split(own, steps)))


class _Places(NamedTuple):
    """Where training steps run: on one device, on the devices of a mesh, or where JAX chooses."""

    device: Any
    mesh: Any

    def send(self, state: TrainState) -> TrainState:
        """A copy of `state` there: a step donates its state, which may belong to the caller or be the best so far."""
        if self.mesh is not None:
            return replicate(self.mesh, state)
        copy = jnp.copy if self.device is None else lambda leaf: jax.device_put(np.array(leaf), self.device)
        return jax.tree.map(copy, state)

    def first(self, params: Params) -> Any:
        """One of the devices; where JAX chooses, that of the parameters."""
        if self.device is not None:
            return self.device
        if self.mesh is not None:
            return self.mesh.devices.flat[0]
        return next(iter(jnp.asarray(jax.tree.leaves(params)[0]).devices()))


def _places(devices: Sequence[Any] | None, config: TrainConfig) -> _Places:
    if devices is None and jax.process_count() == 1:
        return _Places(None, None)
    devices = jax.devices() if devices is None else devices
    if len(devices) == 0:
        fail("fit: `devices` must hold a device, got none. Leave it out for JAX's default.")
    if len(devices) == 1:
        return _Places(devices[0], None)
    size = config.batch_size
    if size % len(devices) != 0:
        expected = f"be a multiple of {len(devices)}, the number of devices"
        fail(f"fit: `batch_size` must {expected}, got {size}. Change one of the two.")
    return _Places(None, data_mesh(devices))


def _checked(
    loss: Any, config: Any, network: Network, params: Params, train: Unchecked, validation: Dataset | None
) -> TrainConfig:
    """The settings, or their defaults, after a check of all arguments."""
    if config is None:
        config = TrainConfig(selection="last" if validation is None else "best")
    if not callable(loss):
        hint = "Pass one of snnjax.losses, as in loss=losses.cross_entropy_sum"
        fail(f"fit: `loss` must be a function, got {short_repr(loss)}. {hint}.")
    if not isinstance(config, TrainConfig):
        hint = "Make it with train.TrainConfig(...)"
        fail(f"fit: `config` must be a TrainConfig, got {type_words(config)}. {hint}.")
    check_params("fit", params, network.nodes, network.in_shapes)
    if validation is not None:
        check_dataset("fit", "validation", validation, network)
        if validation is train:
            hint = "Divide the samples with data.split_indices"
            fail(f"fit: `validation` must share no sample with `train`, got the same data set. {hint}.")
    elif config.selection == "best":
        hint = 'Hold samples out, or set selection="last"'
        fail(f"fit: `validation` must be a data set to select the best epoch, got None. {hint}.")
    return config


def _steps_per_epoch(datasets: Prepared, progress: Progress, config: TrainConfig, network: Network) -> int:
    first = len(progress.metrics)
    if first == config.epochs:  # nothing left to do
        return 1
    dataset = datasets.get(first)
    check_dataset("fit", "train", dataset, network)
    samples = len(dataset)
    if not samples >= config.batch_size:
        fail(
            f"fit: `train` must hold {plural(config.batch_size, 'sample')}, got {samples}. Pass more samples, or a "
            "smaller batch size."
        )
    steps, done = samples // config.batch_size, _steps_done(progress)
    if done != first * steps:  # the schedules would not be those of the run to resume
        expected = f"give the {done / first:g} steps per epoch of the checkpoint"
        fail(
            f"fit: `train` must {expected}, got {steps}. Resume with the data of the run, or start a new run."
        )
    return steps


def _of_epoch(datasets: Prepared, epoch: int, steps: int, config: TrainConfig, network: Network) -> Dataset:
    """The data of an epoch, of as many steps as those of the first one, for which the schedules were made."""
    dataset = datasets.get(epoch)
    check_dataset("fit", "train", dataset, network)
    own = len(dataset) // config.batch_size
    if own != steps:
        expected, hint = f"give {plural(steps, 'step')} in every epoch", "Make data sets of one size"
        fail(f"fit: `train` must {expected}, got {own} in epoch {epoch + 1}. {hint}.")
    return dataset


def _steps_done(progress: Progress) -> int:
    """The steps of the optimiser so far."""
    import optax

    return int(optax.tree_utils.tree_get_all_with_path(progress.state.optimiser, "count")[0][1])


def _keep(
    network: Network,
    progress: Progress,
    folder: Path | None,
    stored: dict[str, Any],
    on_epoch: Callable[[dict[str, Any]], None] | None,
) -> bool:
    """Save the progress, warn about divergence and layers, and call `on_epoch`; returns whether to train on."""
    if folder is not None and jax.process_index() == 0:
        save(folder, network, progress, stored)
    line = progress.metrics[-1]
    diverged = divergence(line, progress.state.params)
    if diverged is not None:
        text = f"fit: {diverged}, so training stops. Look for NaN in the inputs, or lower the learning rate."
        warnings.warn(text, RuntimeWarning, stacklevel=4)
    for name, share in zip(spiking_nodes(network), line["silent_share"], strict=True):
        if share == 1.0:
            text = (
                f"fit: `{name}` did not spike once in epoch {line['epoch']}: nothing passes through it. "
                "Start from larger weights (network.init with sample inputs), or lower the threshold."
            )
            warnings.warn(text, RuntimeWarning, stacklevel=4)
    if on_epoch is not None:
        on_epoch(line)
    return diverged is None
