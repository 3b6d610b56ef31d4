"""``snnjax train``: train a network on a task, test it, draw plots; on an IPU also report what a step would cost."""

import argparse
import contextlib
import io
import sys
from collections.abc import Iterator, Sequence, Sized
from pathlib import Path
from typing import TYPE_CHECKING, Any

from snnjax._write import write_atomically
from snnjax.cli._checks import check_meant, check_second_threshold, check_widths, warn_of_short_lists
from snnjax.cli._defaults import Parser, table
from snnjax.cli._runs import add_data
from snnjax.cli._text import (
    INTERRUPTED,
    by,
    epoch_line,
    lists,
    report,
    say,
    say_throughput,
    stopped_line,
    widths,
    write_tested,
)

if TYPE_CHECKING:
    pass

TASK_NAMES = (
    "digits",
    "vowels",
    "qtdb",
    "spar",
    "fashion",
    "nmnist",
    "speech",
    "cifar10",
    "shd",
    "ssc",
    "dvs-gesture",
)
# The settings by which models differ, but for those that have an option of their own.
_OF_MODEL = (
    *("convolutions", "residual_blocks", "neuron", "neuron_options", "recurrent", "max_delay", "delay_per"),
    *("num_steps", "downsample", "model", "model_options"),
)
# Number of test samples for the overview of the layers; the first of them is also drawn in full.
_DRAWN_SAMPLES = 32
_BY_TASK = "(default: that of the task, see below)"


def add_options(parser: Parser) -> None:
    """The options of ``snnjax train``."""
    parser.late_epilog = table
    parser.formatter_class = argparse.RawDescriptionHelpFormatter  # the table keeps its lines
    parser.add_argument(
        "--task", choices=TASK_NAMES, help="what to learn (default: digits, or that of the resumed run)"
    )
    parser.add_argument(
        "--model",
        choices=("dense", "conv", "residual", "small", "delayed", "vgg", "sew", "spikformer"),
        help="dense layers, convolutions (camera tasks), with norms in residual blocks (digits, nmnist), fewer "
        "parameters (speech), learned delays (speech), or a whole network (cifar10): vgg, sew (a residual network) or "
        "spikformer; default: that of the task or as resumed",
    )
    parser.add_argument("--out", type=Path, default=Path("out"), help="folder of the run (default: out)")
    add_data(parser)
    start = parser.add_mutually_exclusive_group()
    start.add_argument(
        "--resume",
        action="store_true",
        help="continue from the checkpoint in the run folder, with its settings; a larger --epochs extends the run",
    )
    start.add_argument("--overwrite", action="store_true", help="overwrite the checkpoint in the run folder")
    _add_training(parser)
    _add_protocol(parser)
    _add_sparsity(parser)
    parser.add_argument(
        "--samples",
        type=int,
        help="use at most this many training and test samples, for a quick look (default: all)",
    )
    parser.add_argument(
        "--energy",
        action="store_true",
        help="print what an inference would take on a digital chip, in parts, beside int8 rectifier networks",
    )
    _add_devices(parser)
    parser.set_defaults(run=run)


def _add_training(parser: argparse.ArgumentParser) -> None:
    """How long and how fast the network learns, from which start, and its width."""
    parser.add_argument("--epochs", type=int, help=f"number of passes over the training data {_BY_TASK}")
    parser.add_argument("--batch-size", type=int, help=f"samples per step {_BY_TASK}")
    parser.add_argument("--learning-rate", type=float, help=f"peak learning rate {_BY_TASK}")
    parser.add_argument(
        "--seed", type=int, help="seed of initial weights, splits, order and augmentation (default: 0)"
    )
    parser.add_argument(
        "--rule",
        choices=("bptt", "eprop", "ostl", "ottt"),
        help="where gradients come from: back-propagation through time, or an online rule (default: bptt)",
    )
    parser.add_argument("--hidden", type=int, nargs="+", help=f"width of each dense hidden layer {_BY_TASK}")


def _add_protocol(parser: argparse.ArgumentParser) -> None:
    """What is tested, and which epoch."""
    parser.add_argument(
        "--fold",
        type=int,
        help="test on this tenth of the recordings (nmnist) or this speaker (speech), from 0 (default: usual split)",
    )
    parser.add_argument(
        "--selection",
        choices=("best", "last", "average"),
        help="test the best epoch on validation data, the last one, or the mean of the parameters after each of the "
        "last fifth (default: that of the task)",
    )
    parser.add_argument(
        "--validation-share",
        type=float,
        help="share of the training data that is held out for validation (default: that of the task)",
    )


def _add_sparsity(parser: argparse.ArgumentParser) -> None:
    """Lists, thresholds and activity."""
    sparsity = parser.add_mutually_exclusive_group()
    sparsity.add_argument(
        "--capacity", type=float, help=f"list slots, as a fraction of the layer's width {_BY_TASK}"
    )
    sparsity.add_argument(
        "--dense", action="store_true", help="no lists: dense spikes, and a gradient for every neuron"
    )
    parser.add_argument(
        "--second-threshold",
        type=float,
        help="neurons above it receive a gradient; only with lists (default: 0.9, at a threshold of 1)",
    )
    parser.add_argument(
        "--activity-bound", type=float, help=f"upper bound on spikes per neuron and step {_BY_TASK}"
    )
    parser.add_argument(
        "--activity-strength",
        type=float,
        help="weight of the penalty beyond it (default: 1, or 0 with an online rule)",
    )


def _add_devices(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--device", metavar="PLATFORM", help="train on cpu, gpu or ipu (default: JAX's choice)"
    )
    parser.add_argument(
        "--devices",
        type=int,
        metavar="N",
        help="split every batch over this many devices (per process; default: 1)",
    )
    group = parser.add_argument_group("several processes", "start each with the same other options")
    group.add_argument(
        "--distributed",
        action="store_true",
        help="let JAX find the processes, in SLURM, Open MPI or Kubernetes jobs",
    )
    group.add_argument(
        "--coordinator", metavar="HOST:PORT", help="address at which process 0 listens to the others"
    )
    group.add_argument("--processes", type=int, metavar="N", help="number of processes")
    group.add_argument("--process", type=int, metavar="I", help="index of this process, from 0")


def run(options: argparse.Namespace) -> int:
    """Train, test and draw; returns the exit code."""
    import jax

    from snnjax.train.lock import locked

    _join(options)
    devices = _devices(options.device, options.devices)
    settings = settings_of(options)
    warn_of_short_lists(settings)
    leads = jax.process_index() == 0  # the other processes are silent
    with locked(options.out) as folder:  # until the last file is written
        return _run(options, folder, settings, devices, leads)


def _run(options: argparse.Namespace, folder: Any, settings: Any, devices: Any, leads: bool) -> int:
    from snnjax import train
    from snnjax.train.results import energy_of, record_run, write_run

    parts = train.load_task(settings, options.data)
    net = train.build_network(settings, parts.num_inputs, parts.num_classes)
    loss, decoder = train.loss_of(settings)
    if leads:
        _say_task(settings, net, parts)
    result = _fit(options, folder, settings, net, parts, devices, leads)
    if not leads:
        return 0
    if result.interrupted:
        say(stopped_line(result.metrics))
        return INTERRUPTED
    tested = train.evaluate(net, result.params, parts.test, stats=result.stats, loss=loss, decoder=decoder)
    report(tested, result.best_epoch, settings.training.selection)
    if options.energy:
        say(f"{energy_of(net, result, tested)}\n")
    write_tested(folder, tested)
    record = {"validation_samples": _size(parts.validation), "resumed": options.resume}
    write_run(options.out, record_run(settings, net, result, tested, **record))
    say_throughput(result.metrics)
    _draw(options.out, settings, net, result, parts)
    if options.device == "ipu":
        _profile(options.out, settings, net, result, parts, devices[0])
    return 0


def settings_of(options: argparse.Namespace) -> Any:
    """The settings of the task or of the run to resume, with the options of the command line applied."""
    from dataclasses import replace

    from snnjax.train import TaskSettings, read_run, task_settings
    from snnjax.train.progress import CHECKPOINT

    if options.resume:
        settings = TaskSettings.from_header(read_run(options.out / CHECKPOINT))
    else:
        settings = task_settings(options.task or "digits", options.model)
    names = ("epochs", "batch_size", "learning_rate", "seed", "rule", "selection", "second_threshold")
    names += ("activity_bound", "activity_strength")
    given = {name: getattr(options, name) for name in names if getattr(options, name) is not None}
    changes: dict[str, Any] = {"training": replace(settings.training, **given)}
    if options.task is not None:
        changes["task"] = options.task
    if options.model is not None:  # a run of another model is not resumed
        of_model = task_settings(settings.task, options.model)
        changes |= {name: getattr(of_model, name) for name in _OF_MODEL}
    check_widths(options.hidden)
    if options.hidden is not None:
        changes["hidden"] = tuple(options.hidden)
    if options.capacity is not None or options.dense:
        changes["capacity"] = options.capacity
    if options.dense:  # the second threshold of the task goes with its lists
        given = {"second_threshold": None} | given
        changes["training"] = replace(settings.training, **given)
    names = ("samples", "fold", "validation_share")
    changes |= {name: getattr(options, name) for name in names if getattr(options, name) is not None}
    settings = replace(settings, **changes)
    check_second_threshold(settings)
    check_meant(options, settings)
    return settings


def _fit(
    options: argparse.Namespace,
    folder: Any,
    settings: Any,
    net: Any,
    parts: Any,
    devices: Any,
    leads: bool,
) -> Any:
    from snnjax import train

    loss, decoder = train.loss_of(settings)
    with _in_memory(settings.training.batch_size):
        return train.fit(
            net,
            train.init_params(settings, net, parts.sample),
            parts.train,
            parts.validation,
            loss=loss,
            decoder=decoder,
            config=settings.training,
            folder=folder,
            resume=options.resume,
            overwrite=options.overwrite,
            settings=settings.as_dict(),
            on_epoch=lambda line: say(epoch_line(line, settings.training.epochs)) if leads else None,
            progress_bar=leads and sys.stderr.isatty(),
            devices=devices,
        )


@contextlib.contextmanager
def _in_memory(batch_size: int) -> Iterator[None]:
    """Suggest a smaller batch if a device runs out of memory."""
    from jax.errors import JaxRuntimeError

    from snnjax._check import fail

    try:
        yield
    except JaxRuntimeError as error:
        if not str(error).startswith("RESOURCE_EXHAUSTED"):
            raise
        hint = f"Try --batch-size {batch_size // 2}" if batch_size > 1 else "Try fewer --hidden neurons"
        actual = f"{batch_size} ({str(error).rstrip('.')})"
        fail(f"train: `batch_size` must fit into the memory of the device, got {actual}. {hint}.")


def _join(options: argparse.Namespace) -> None:
    """Join the other processes, if there are any."""
    import jax

    from snnjax._check import fail

    given = (options.coordinator, options.processes, options.process)
    if not options.distributed and given == (None, None, None):
        return
    try:
        jax.distributed.initialize(*given)
    except (RuntimeError, ValueError) as error:
        hint = "Pass --coordinator, --processes and --process"
        fail(f"train: `processes` must be known to JAX, got {str(error).rstrip('.')!r}. {hint}.")


def _devices(platform: str | None, wanted: int | None) -> Sequence[Any] | None:
    """The devices of a platform: the first one, or the `wanted` number per process, or None for JAX's choice."""
    import jax

    from snnjax._check import check_integer, fail

    if wanted is not None:
        check_integer("train", "devices", wanted, 1)
        if platform in (None, "cpu"):
            with contextlib.suppress(RuntimeError):  # JAX is already running with a fixed set of devices
                jax.config.update("jax_num_cpu_devices", wanted)
    try:
        devices = jax.devices(platform)
    except RuntimeError as error:
        why = str(error).rstrip(".").replace(". ", "; ")
        fail(f"train: `device` must be a platform that JAX has here, got {platform!r} ({why}). Omit it.")
    if wanted is None:
        alone = jax.process_count() == 1
        return devices[:1] if alone and platform is not None else None if alone else devices
    shares = [[each for each in devices if each.process_index == n] for n in range(jax.process_count())]
    fewest = min(map(len, shares))
    if wanted > fewest:
        fail(f"train: `devices` must be at most {fewest}, the number available, got {wanted}. Choose fewer.")
    return [each for share in shares for each in share[:wanted]]


def _say_task(settings: Any, net: Any, parts: Any) -> None:
    ((_, shape),) = net.inputs
    say(f"task {settings.task}: {by(shape)} inputs, hidden layers {widths(net)}, ")
    say(f"{parts.num_classes} classes, {lists(settings)}; {_size(parts.validation)} validation samples\n")


def _size(dataset: Sized | None) -> int:
    return 0 if dataset is None else len(dataset)


def _profile(folder: Path, settings: Any, net: Any, result: Any, parts: Any, device: Any) -> None:
    """Print what a training step would cost on the chip, and write the whole profile."""
    import jax

    from snnjax import ipu, train

    config, (loss, decoder) = settings.training, train.loss_of(settings)
    optimiser = train.make_optimiser(config, steps_per_epoch=1)
    step: Any = train.make_train_step(net, loss, optimiser, config, decoder)
    state = jax.device_put(
        train.TrainState(result.params, optimiser.init(result.params), result.stats), device
    )
    samples = parts.train(0)
    batch = samples.take([n % len(samples) for n in range(config.batch_size)])
    compiled = step.lower(state, batch, config.second_threshold).compile()
    state, _ = compiled(state, batch, config.second_threshold)
    ipu.read_profile(compiled, reset=True)  # in the first step the parameters come from the host
    jax.block_until_ready(compiled(state, batch, config.second_threshold))
    report = ipu.read_profile(compiled)
    report.save(folder / "profile.html")
    say(str(report))
    say(f"a step of {config.batch_size} samples would take {1e3 * report.seconds:.3g} ms (not measured on ")
    say(f"hardware); the profile is in {folder / 'profile.html'}\n")


def _draw(folder: Path, settings: Any, net: Any, result: Any, parts: Any) -> None:
    from snnjax import plot

    batch = parts.test.take(range(min(_DRAWN_SAMPLES, len(parts.test))))
    options = {"stats": result.stats, "lengths": batch.lengths, "record": "spikes"}
    output, _ = net.apply(result.params, None, batch.inputs, **options)
    bound = settings.training.activity_bound
    try:
        pictures = {
            "raster": plot.sample(batch.inputs, output, label=_label(batch)),
            "overview": plot.overview(output, batch.lengths),
            "curves": plot.curves(result.metrics),
            "activity": plot.activity(result.metrics, bound),
        }
    except ImportError:
        say("no pictures: install matplotlib (pip install 'snnjax[cli]')\n")
        return
    for name, figure in pictures.items():
        content = io.BytesIO()
        plot.save(figure, content)
        write_atomically("train", folder / f"{name}.png", content.getvalue())
    say(f"pictures, metrics and checkpoint are in {folder}/\n")


def _label(batch: Any) -> int | None:
    """The label of the first sample, None if labels are per step."""
    return int(batch.labels[0]) if batch.labels.ndim == 1 else None
