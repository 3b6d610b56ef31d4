"""Networks trained by ``snnjax train``, read from their checkpoints, and kept as files without the rest of these."""

from pathlib import Path
from typing import Any, NamedTuple

import jax

from snnjax.graph.network import Network, Params, Stats
from snnjax.train.checkpoint import load_checkpoint, save_checkpoint
from snnjax.train.progress import read_run
from snnjax.train.tasks import TaskSettings, build_network


class Trained(NamedTuple):
    """A trained network."""

    network: Network
    params: Params
    stats: Stats | None
    settings: TaskSettings
    header: dict[str, Any]  # of its file


def read_trained(path: Path | str, num_inputs: int, num_classes: int) -> Trained:
    """Read the network that `snnjax train` selected, from a checkpoint or a file of `save_trained`.

    Args:
        path: the file.
        num_inputs: of the data of its task (`load_task`); images have their own shape.
        num_classes: likewise.

    Errors: those of `read_run` and `load_checkpoint`; the settings are those of another version.

    Example:
        >>> from snnjax.train import read_trained
        >>> read_trained("nowhere", 4, 6)
        Traceback (most recent call last):
        ...
        ValueError: read_run: `path` must be a checkpoint, got no file at nowhere. Train first, or correct the path.
    """
    header = read_run(path)
    settings = TaskSettings.from_header(header)
    net = build_network(settings, num_inputs, num_classes)
    params, stats = jax.eval_shape(lambda key: (net.init(key), net.initial_stats(key)), jax.random.key(0))
    best = load_checkpoint(path, {"best_params": params, "best_stats": stats}, net)[0]
    return Trained(net, best["best_params"], best["best_stats"], settings, header)


def save_trained(path: Path | str, trained: Trained, about: dict[str, Any]) -> None:
    """Write only the network, with what the file says about itself: data, their licence, commit, accuracy.

    Errors: those of `save_checkpoint`.

    Example:
        >>> import pathlib, tempfile
        >>> import jax, jax.numpy as jnp
        >>> from snnjax import train
        >>> settings = train.TASKS["qtdb"]
        >>> net = train.build_network(settings, 4, 6)
        >>> header = {"epoch": 0, "best_epoch": 0, "metrics": [], "settings": settings.as_dict()}
        >>> header["config"] = vars(settings.training)
        >>> params = net.init(jax.random.key(0))
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "qtdb.safetensors"
        >>> train.save_trained(path, train.Trained(net, params, {}, settings, header), {"data": "QTDB"})
        >>> train.read_trained(path, 4, 6).header["about"]
        {'data': 'QTDB'}
    """
    arrays = {"best_params": trained.params, "best_stats": trained.stats}
    save_checkpoint(path, arrays, trained.header | {"about": about}, trained.network)
