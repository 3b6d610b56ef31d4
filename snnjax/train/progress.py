"""What an epoch changes, and how it gets into a checkpoint and back."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

import jax
from jaxtyping import Array

from snnjax._check import check
from snnjax.network import NetworkParams
from snnjax.train.checkpoint import load_checkpoint, read_header, save_checkpoint, write_atomically
from snnjax.train.config import TrainConfig, make_optimiser
from snnjax.train.step import TrainState

CHECKPOINT, METRICS = "checkpoint.npz", "metrics.jsonl"


class Progress(NamedTuple):
    """All that an epoch changes, and so all that a checkpoint holds."""

    state: TrainState
    key: Array  # of the order of the data, as plain numbers
    best_params: NetworkParams
    best_epoch: int  # counted from 1, 0 before the first
    metrics: list[dict[str, Any]]  # one an epoch


def begin(params: NetworkParams, optimiser: Any, config: TrainConfig) -> Progress:
    """The progress before the first epoch."""
    key = jax.random.key_data(jax.random.key(config.seed))
    return Progress(TrainState(params, optimiser.init(params)), key, params, 0, [])


def after_epoch(
    progress: Progress, state: TrainState, trained: dict[str, Any], validated: dict[str, Any]
) -> Progress:
    """The progress one epoch later: its metrics, and its parameters if they are the best so far."""
    epoch = len(progress.metrics) + 1
    scores = {f"train_{name}": trained[name] for name in ("loss", "accuracy")}
    scores |= {f"validation_{name}": validated[name] for name in ("loss", "accuracy")}
    line = {
        "epoch": epoch,
        **scores,
        **{name: trained[name] for name in trained if name not in ("loss", "accuracy")},
    }
    history = [*progress.metrics, line]
    if all(_score(line) > _score(each) for each in progress.metrics):
        return Progress(state, progress.key, state.params, epoch, history)
    return Progress(state, progress.key, progress.best_params, progress.best_epoch, history)


def _score(line: dict[str, Any]) -> tuple[float, float]:
    """What the best epoch has most of: accuracy on validation data; among equals, the smaller loss on them."""
    return line["validation_accuracy"], -line["validation_loss"]


def save(folder: Path, progress: Progress, stored: dict[str, Any]) -> None:
    """Replace the checkpoint and the metrics in `folder`, each atomically."""
    folder.mkdir(parents=True, exist_ok=True)
    arrays = {**progress.state._asdict(), "best_params": progress.best_params, "key": progress.key}
    header = {"epoch": len(progress.metrics), "best_epoch": progress.best_epoch, "metrics": progress.metrics}
    save_checkpoint(folder / CHECKPOINT, arrays, header | stored)
    lines = "".join(json.dumps(line) + "\n" for line in progress.metrics)
    # Written whole, so that it fits the checkpoint wherever an earlier run has ended.
    write_atomically(folder / METRICS, lines.encode())


def as_stored(config: TrainConfig, settings: dict[str, Any]) -> dict[str, Any]:
    """The settings as they come back from JSON: tuples are lists there."""
    return json.loads(json.dumps({"config": asdict(config), "settings": settings}))


def read_progress(
    folder: Path, stored: dict[str, Any], params: NetworkParams, config: TrainConfig
) -> Progress:
    """The progress in the checkpoint of `folder`, if it was made with the same settings."""
    header = read_header(folder / CHECKPOINT)
    for kind, values in stored.items():
        for name in sorted(values.keys() | header[kind].keys()):
            old, new = header[kind].get(name), values.get(name)
            way_out = "Resume with the settings of the checkpoint, or start anew in another folder"
            check(old == new, "fit", name, f"be {old!r} as in the checkpoint", repr(new), way_out)
    # The structure of the optimiser's state does not depend on the number of steps.
    state = jax.eval_shape(lambda: begin(params, make_optimiser(config, 1), config).state)
    like = {**state._asdict(), "best_params": params, "key": jax.random.key_data(jax.random.key(0))}
    arrays, header = load_checkpoint(folder / CHECKPOINT, like)
    state = TrainState(arrays["params"], arrays["optimiser"])
    return Progress(state, arrays["key"], arrays["best_params"], header["best_epoch"], header["metrics"])
