"""The state that an epoch changes, and how it is saved to a checkpoint and restored."""

import functools
import inspect
import json
import math
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PyTree

from snnjax import losses
from snnjax._check import alternatives, fail, short_repr
from snnjax._types import Unchecked
from snnjax._write import write_atomically
from snnjax.graph.network import Network, Params, Stats
from snnjax.train.checkpoint import header_of, load_checkpoint, save_checkpoint
from snnjax.train.config import TrainConfig, make_optimiser
from snnjax.train.lock import locked
from snnjax.train.step import Loss, TrainState, decoder_of

CHECKPOINT, METRICS = "checkpoint.safetensors", "metrics.jsonl"
# What the header of a checkpoint holds.
_HEADER = {"best_epoch": int, "config": dict, "epoch": int, "metrics": list, "settings": dict}
# Bytes for everything but arrays: the metrics of an epoch take about 1 kB, in the header and in their own file.
_ROOM_FOR_TEXT = 2**22


class Progress(NamedTuple):
    """Everything that an epoch changes, and therefore everything that a checkpoint holds."""

    state: TrainState
    key: Array  # for the order of the data, and for the network, as plain numbers
    best_params: Params
    best_stats: Stats | None
    best_epoch: int  # counted from 1, 0 before the first
    metrics: list[dict[str, Any]]  # one per epoch


def begin(network: Network, params: Params, stats: Stats | None, config: TrainConfig) -> Progress:
    """The progress before the first epoch."""
    key = jax.random.key(config.seed)
    stats = network.initial_stats(key) if stats is None else stats
    # The first state of the optimiser does not depend on the number of steps.
    state = TrainState(params, make_optimiser(config, 1).init(params), stats)
    return Progress(state, jax.random.key_data(key), params, stats, 0, [])


def after_epoch(
    progress: Progress,
    state: TrainState,
    trained: dict[str, Any],
    validated: dict[str, Any] | None,
    config: TrainConfig,
) -> Progress:
    """The progress one epoch later: its metrics, and its parameters and stats if they are the best so far.

    Without selection on validation data, each epoch is the best so far unless training diverged in it. Where epochs are
    averaged, the best parameters and stats are the mean so far.
    """
    epoch = len(progress.metrics) + 1
    scores = {f"train_{name}": trained[name] for name in ("loss", "accuracy")}
    if validated is not None:
        scores |= {f"validation_{name}": validated[name] for name in ("loss", "accuracy")}
    line = {
        "epoch": epoch,
        **scores,
        **{name: trained[name] for name in trained if name not in ("loss", "accuracy")},
    }
    history = [*progress.metrics, line]
    better = (
        all(_score(line) > _score(each) for each in progress.metrics)
        if config.selection == "best"
        else divergence(line, state.params) is None
    )
    if not better:
        return progress._replace(state=state, metrics=history)
    params, stats = state.params, state.stats
    if config.selection == "average":
        mean = progress.best_params, progress.best_stats
        params, stats = _averaged(mean, (params, stats), epoch, config)
    return Progress(state, progress.key, params, stats, epoch, history)


def divergence(line: dict[str, Any], params: Params) -> str | None:
    """What no later epoch would repair: a loss that is not finite, or NaN that the very last step left behind."""
    if not math.isfinite(line["train_loss"]):
        return f"the training loss of epoch {line['epoch']} is {line['train_loss']}"
    floats = [leaf for leaf in jax.tree.leaves(params) if jnp.issubdtype(leaf.dtype, jnp.floating)]
    if any(np.isnan(np.asarray(leaf)).any() for leaf in floats):
        return f"the parameters after epoch {line['epoch']} hold NaN"
    return None


def _averaged(mean: Any, new: PyTree, epoch: int, config: TrainConfig) -> PyTree:
    """The mean over the last epochs after another one; before them, what is new.

    What does not change keeps its bits: synapses, and constants of neurons that are drawn.
    """
    count = epoch - (config.epochs - config.averaged_epochs)

    def after(new: PyTree, old: PyTree) -> PyTree:
        is_float = jnp.issubdtype(new.dtype, jnp.floating)
        return jnp.where(new == old, new, old + (new - old) / count) if is_float else new

    return new if count <= 1 else jax.tree.map(after, new, mean)


def _score(line: dict[str, Any]) -> tuple[float, float]:
    """The score that selects the best epoch: validation accuracy; ties go to the smaller validation loss.

    An epoch whose loss is not finite is worse than any other.
    """
    if not math.isfinite(line["validation_loss"]):
        return -1.0, -math.inf
    return line["validation_accuracy"], -line["validation_loss"]


@contextmanager
def run_folder(
    folder: os.PathLike[str] | str | None, *, resume: bool, overwrite: bool
) -> Iterator[Path | None]:
    """The folder of a run, locked until it ends; a checkpoint in it must be resumed or overwritten."""
    if folder is None and resume:
        fail("fit: `folder` must be given to resume, got None. Pass the folder of the run to resume.")
    if resume and overwrite:
        fail(f"fit: `overwrite` must be omitted to resume, got {overwrite}. Choose one of the two.")
    if folder is None:
        yield None
        return
    with locked(folder) as own:
        path = own.path / CHECKPOINT
        if path.exists() and not resume and not overwrite:
            hint = "Continue from it with resume, replace it with overwrite, or choose another folder"
            fail(f"fit: `folder` must hold no checkpoint yet, got {path}. {hint}.")
        yield own.path


def check_room(folder: Path | None, progress: Progress) -> None:
    """Check that there is disk space for another checkpoint: the old one stays until the new one is complete."""
    if folder is None:
        return
    needed = sum(leaf.nbytes for leaf in jax.tree.leaves(_arrays(progress))) + _ROOM_FOR_TEXT
    free = shutil.disk_usage(folder).free
    if free < needed:
        expected, actual = f"have {needed} free bytes for a checkpoint", f"{free} in {str(folder)!r}"
        hint = "Free some space, or choose a folder on another disk"
        fail(f"fit: `folder` must {expected}, got {actual}. {hint}.")


def _arrays(progress: Progress) -> dict[str, Any]:
    """The arrays of a checkpoint."""
    best = {"best_params": progress.best_params, "best_stats": progress.best_stats}
    return {**progress.state._asdict(), **best, "key": progress.key}


def save(folder: Path, network: Network, progress: Progress, stored: dict[str, Any]) -> None:
    """Replace the checkpoint and the metrics in `folder`, each atomically."""
    header = {"epoch": len(progress.metrics), "best_epoch": progress.best_epoch, "metrics": progress.metrics}
    save_checkpoint(folder / CHECKPOINT, _arrays(progress), header | stored, network)
    lines = "".join(json.dumps(line) + "\n" for line in progress.metrics)
    # Written in full, so that it matches the checkpoint wherever an earlier run ended.
    write_atomically("fit", folder / METRICS, lines.encode())


def as_stored(
    config: TrainConfig, settings: dict[str, Any], objective: dict[str, Any] | None = None
) -> dict[str, Any]:
    """The settings as they come back from JSON, where tuples and arrays are lists."""
    kinds = {"config": asdict(config), "settings": settings, "objective": objective or {}}
    return json.loads(json.dumps(kinds, default=_plain))


def objective_of(loss: Loss, decoder: str | None) -> dict[str, Any]:
    """What a checkpoint says of the loss: its name and options if it is one of `snnjax.losses`, and the decoder.

    The name of a function of one's own says nothing: another program may call the same one otherwise.
    """
    own: Any = loss
    given: dict[str, Any] = {}
    while getattr(own, "__module__", None) != losses.__name__:
        if isinstance(own, functools.partial):
            own, given = own.func, own.keywords | given
        elif hasattr(own, "__wrapped__"):  # jitted, for instance
            own = own.__wrapped__
        else:
            return {"loss": "a function of one's own", "decoder": decoder_of(loss, decoder)}
    usual = {name: each.default for name, each in inspect.signature(own).parameters.items()}
    options = {name: value for name, value in usual.items() if value is not inspect.Parameter.empty}
    return {"loss": own.__name__, **options, **given, "decoder": decoder_of(loss, decoder)}


def _plain(value: Unchecked) -> Any:
    """A number or an array of NumPy or JAX as Python's numbers."""
    if not hasattr(value, "tolist"):
        hint = "Pass numbers, text, and lists and dictionaries of them"
        fail(f"fit: `settings` must be what JSON can store, got {short_repr(value)}. {hint}.")
    return value.tolist()


def read_run(path: Path | str) -> dict[str, Any]:
    """Read the header of a checkpoint that `fit` wrote.

    Errors: the file is missing, incomplete, damaged, or not a checkpoint that `fit` wrote.

    Example:
        >>> import pathlib, tempfile
        >>> from snnjax.train import read_run, save_checkpoint
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "checkpoint.safetensors"
        >>> run = {"epoch": 1, "best_epoch": 1, "metrics": [{}], "config": {}, "settings": {}}
        >>> save_checkpoint(path, {}, run)
        >>> read_run(path)["best_epoch"]
        1
    """
    expected = "be the checkpoint of a training run"
    hint = "Pass a checkpoint that `fit` or `snnjax train` wrote"
    header = header_of("read_run", Path(path))
    # A header of other types was written by hand.
    wrong = [name for name, kind in _HEADER.items() if not isinstance(header.get(name), kind)]
    if wrong:
        fail(f"read_run: `path` must {expected}, got no {alternatives(wrong)} in {path}. {hint}.")
    best, epochs = header["best_epoch"], len(header["metrics"])
    if not 0 <= best <= epochs == header["epoch"]:
        fail(f"read_run: `path` must {expected}, got best epoch {best} of {epochs} in {path}. {hint}.")
    return header


def read_progress(
    folder: Path, network: Network, stored: dict[str, Any], start: Progress, config: TrainConfig
) -> Progress:
    """The progress in the checkpoint of `folder`, if network, settings and loss are the same but for `config.epochs`.

    `start` is the progress before the first epoch.
    """
    path = folder / CHECKPOINT
    header = read_run(path)
    for kind, values in stored.items():
        # The files of docs/pretrained have no objective; their settings name the loss.
        known = header.get(kind, values) | ({"epochs": config.epochs} if kind == "config" else {})
        for name in {**values, **known}:
            old, new = known.get(name), values.get(name)
            if old != new:
                hint = "Resume with the settings of the checkpoint, or start a new run in another folder"
                fail(f"fit: `{name}` must be {old!r} as in the checkpoint, got {new!r}. {hint}.")
    if config.epochs < header["epoch"]:
        expected = f"be at least {header['epoch']}, the number that the checkpoint has completed"
        hint = "Resume with more epochs, or start a new run in another folder"
        fail(f"fit: `epochs` must {expected}, got {config.epochs}. {hint}.")
    _check_average(header, config)
    arrays, header = load_checkpoint(path, _arrays(start), network)
    best = arrays.pop("best_params"), arrays.pop("best_stats"), header["best_epoch"]
    key = arrays.pop("key")
    return Progress(TrainState(**arrays), key, *best, header["metrics"])


def _check_average(header: dict[str, Any], config: TrainConfig) -> None:
    """A mean over the last fifth of fewer epochs cannot become that of more."""
    done, enough = header["epoch"], math.ceil(5 * header["epoch"] / 4)
    is_extended = config.epochs not in (header["config"]["epochs"], done)
    if config.selection == "average" and is_extended and config.epochs < enough:
        expected = f"be at least {enough} to average over its last fifth"
        hint = "Resume with more epochs, or with those of the checkpoint"
        fail(f"fit: `epochs` must {expected}, got {config.epochs}. {hint}.")
