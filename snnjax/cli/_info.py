"""``snnjax info``: versions, devices, kernels and data sets, and the contents of a checkpoint."""

import argparse
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from snnjax.cli._text import say


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of ``snnjax info``."""
    parser.add_argument(
        "--checkpoint", type=Path, help="also show this checkpoint, or the one of this run folder"
    )
    parser.set_defaults(run=_info)


def _info(options: argparse.Namespace) -> int:
    import jax

    from snnjax import _dispatch, train
    from snnjax.train.progress import CHECKPOINT

    for package in ("snnjax", "jax", "jaxlib", "numpy", "optax", "matplotlib", "tqdm", "h5py", "pillow"):
        try:
            say(f"{package:<12}{version(package)}\n")
        except PackageNotFoundError:
            say(f"{package:<12}not installed\n")
    say(f"{'python':<12}{sys.version.split()[0]}\n")
    say(f"{'devices':<12}{', '.join(str(device) for device in jax.devices())}\n")
    say(f"{'IPUs':<12}{_ipus()}\n")
    missing = _dispatch.missing_kernels()
    kernels = "compiled CPU kernels" if missing is None else f"no compiled CPU kernels ({missing})"
    say(f"{'ops':<12}{kernels}; jnp references on every platform\n")
    shipped = ("digits", "vowels", "qtdb")
    say(f"{'tasks':<12}{', '.join(shipped)} (data in the package); ")
    say("spar (with the package seglearn, or with --data); ")
    others = (name for name in train.TASKS if name not in (*shipped, "spar"))
    say(f"{', '.join(others)} (with --data)\n")
    if options.checkpoint is not None:
        path = options.checkpoint
        path = path / CHECKPOINT if path.is_dir() else path
        _say_checkpoint(train.read_run(path), path)
    return 0


def _ipus() -> str:
    """The available IPUs, or the reason why there are none."""
    import jax

    try:
        devices = jax.devices("ipu")
    except RuntimeError as error:
        return f"none ({error})"
    kind = f"{devices[0].chip} of {devices[0].num_tiles} tiles"
    return f"{len(devices)} x {kind}, modelled: nothing has run on hardware"


def _say_checkpoint(header: dict[str, Any], path: Path) -> None:
    metrics, best = header["metrics"], header["best_epoch"]
    say(f"{'checkpoint':<12}{path}\n")
    say(f"{'  epochs':<12}{header['epoch']} of {header['config'].get('epochs')}, best {best}\n")
    scores: dict[str, float] = metrics[best - 1] if best else {}
    accuracy = scores.get("validation_accuracy", float("nan"))
    say(f"{'  accuracy':<12}{100 * accuracy:.2f} % on validation data\n")
    for name, value in header["settings"].items():
        say(f"  {name}: {value}\n")
    if "task" in header["settings"]:  # a network of the caller's own cannot be rebuilt
        _say_paths(header)


def _say_paths(header: dict[str, Any]) -> None:
    """Print how the network runs: its blocks, by call."""
    from snnjax.train import TaskSettings, build_network

    # The numbers of flat inputs and of outputs do not matter here, and the data that determine them may be missing.
    for line in build_network(TaskSettings.from_header(header), 1, 1).paths.splitlines():
        say(f"  {line}\n")
