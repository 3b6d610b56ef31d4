"""The command line: ``snnjax train``, ``snnjax evaluate``, ``snnjax results`` and ``snnjax info``.

Results go to standard output, one line per fact; errors go to standard error in one line, with exit code 2.
"""

import argparse
import contextlib
import io
import json
import re
import sys
import warnings
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

TASK_NAMES = ("digits", "vowels", "qtdb", "spar", "spoken", "fashion", "nmnist", "shd", "ssc", "dvs-gesture")
# A shell's exit code for a program ended by SIGINT.
_INTERRUPTED = 130
# Number of test samples for the overview of the layers; the first of them is also drawn in full.
_DRAWN_SAMPLES = 32
# The form of snnjax's own messages; anything else is a bug, and keeps its traceback.
_OUR_ERROR = re.compile(r"[\w.]+: `[^`]+` must .*, got ", re.DOTALL)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code.

    Example:
        >>> from snnjax.cli import main
        >>> main(["info"])  # doctest: +ELLIPSIS
        snnjax...
        0
    """
    options = _parser().parse_args(arguments)
    with warnings.catch_warnings():
        warnings.simplefilter("always", RuntimeWarning)
        warnings.showwarning = _show_warning
        try:
            return options.run(options)
        except (ValueError, OSError, ImportError) as error:
            if isinstance(error, ValueError) and not _OUR_ERROR.match(str(error)):
                raise
            sys.stderr.write(f"snnjax: {str(error) or type(error).__name__}\n")
            return 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="snnjax", description="Train and run sparse spiking networks.")
    parser.add_argument("--version", action="version", version=f"snnjax {version('snnjax')}")
    commands = parser.add_subparsers(required=True, metavar="command")
    _add_train(commands.add_parser("train", help="train a network on a task, test it, draw pictures"))
    evaluate = commands.add_parser("evaluate", help="run a trained network on the test data of its task")
    _add_places(evaluate)
    evaluate.set_defaults(run=_evaluate)
    results = commands.add_parser("results", help="write one page of results from trained runs")
    results.add_argument("runs", type=Path, nargs="+", help="run folders, or folders that contain them")
    results.add_argument("--page", type=Path, help="file to write the page to (default: standard output)")
    results.set_defaults(run=_results)
    info = commands.add_parser("info", help="show versions, devices, kernels and data sets")
    info.add_argument("--checkpoint", type=Path, help="also show the contents of this checkpoint")
    info.set_defaults(run=_info)
    return parser


def _add_places(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--out", type=Path, default=Path("out"), help="folder of the run (default: out)")
    parser.add_argument(
        "--data", type=Path, help="folder (spar: file) that holds the downloaded data of the task"
    )


def _add_train(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--task", choices=TASK_NAMES, help="what to learn (default: digits, or that of the resumed run)"
    )
    parser.add_argument(
        "--model",
        choices=("dense", "conv", "delayed"),
        help="dense layers, convolutions (camera tasks) or learned delays (spoken); default: dense or as resumed",
    )
    _add_places(parser)
    start = parser.add_mutually_exclusive_group()
    start.add_argument(
        "--resume",
        action="store_true",
        help="continue from the checkpoint in the run folder, with its settings; a larger --epochs extends the run",
    )
    start.add_argument("--overwrite", action="store_true", help="overwrite the checkpoint in the run folder")
    parser.add_argument("--epochs", type=int, help="number of passes over the training data")
    parser.add_argument("--batch-size", type=int, help="samples per step")
    parser.add_argument("--learning-rate", type=float, help="peak learning rate")
    parser.add_argument("--seed", type=int, help="seed of initial weights, splits, order and augmentation")
    parser.add_argument(
        "--rule",
        choices=("bptt", "eprop", "ostl", "ottt"),
        help="where gradients come from: back-propagation through time, or an online rule (default: bptt)",
    )
    parser.add_argument("--hidden", type=int, nargs="+", help="width of each dense hidden layer")
    sparsity = parser.add_mutually_exclusive_group()
    sparsity.add_argument("--capacity", type=float, help="list slots, as a fraction of the layer's width")
    sparsity.add_argument(
        "--dense", action="store_true", help="no lists: dense spikes, and a gradient for every neuron"
    )
    parser.add_argument("--second-threshold", type=float, help="neurons above it receive a gradient")
    parser.add_argument("--activity-bound", type=float, help="upper bound on spikes per neuron and step")
    parser.add_argument(
        "--samples", type=int, help="use at most this many training and test samples, for a quick look"
    )
    _add_devices(parser)
    parser.set_defaults(run=_train)


def _add_devices(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--device", metavar="PLATFORM", help="train on cpu, gpu or ipu (default: JAX's choice)"
    )
    parser.add_argument(
        "--devices",
        type=int,
        metavar="N",
        help="split every batch over this many devices (per process)",
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


def _train(options: argparse.Namespace) -> int:
    import jax

    from snnjax import train

    _join(options)
    devices = _devices(options.device, options.devices)
    settings = _settings(options)
    parts = train.load_task(settings, options.data)
    net = train.build_network(settings, parts.num_inputs, parts.num_classes)
    loss, decoder = train.loss_of(settings)
    leads = jax.process_index() == 0  # the other processes are silent
    if leads:
        _say_task(settings, net, parts)
    result = _fit(options, settings, net, parts, devices, leads)
    if not leads:
        return 0
    if result.interrupted:
        _say(f"stopped after {len(result.metrics)} epochs; continue with --resume\n")
        return _INTERRUPTED
    tested = train.evaluate(net, result.params, parts.test, loss=loss, decoder=decoder)
    _report(options.out, tested, result.best_epoch)
    record = {"validation_samples": len(parts.validation), "resumed": options.resume}
    train.write_run(options.out, train.record_run(settings, net, result, tested, **record))
    _say_throughput(result.metrics)
    _draw(options.out, settings, net, result, parts)
    if options.device == "ipu":
        _profile(options.out, settings, net, result.params, parts, devices[0])
    return 0


def _fit(options: argparse.Namespace, settings: Any, net: Any, parts: Any, devices: Any, leads: bool) -> Any:
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
            folder=options.out,
            resume=options.resume,
            overwrite=options.overwrite,
            settings=settings.as_dict(),
            on_epoch=lambda line: _say(_epoch_line(line, settings.training.epochs)) if leads else None,
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
        actual = f"{batch_size} ({str(error).rstrip('.')})"
        way_out = f"Try --batch-size {batch_size // 2}" if batch_size > 1 else "Try fewer --hidden neurons"
        fail("train", "batch_size", "fit into the memory of the device", actual, way_out)


def _say_task(settings: Any, net: Any, parts: Any) -> None:
    _say(f"task {settings.task}: {_by(net.input_shape)} inputs, hidden layers {_widths(net)}, ")
    _say(f"{parts.num_classes} classes, {_lists(settings)}; {len(parts.validation)} validation samples\n")


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
        way_out = "Pass --coordinator, --processes and --process"
        fail("train", "processes", "be known to JAX", f"{str(error).rstrip('.')!r}", way_out)


def _devices(platform: str | None, wanted: int | None) -> Any:
    """The devices of a platform: the first one, or the `wanted` number per process, or None for JAX's choice."""
    import jax

    from snnjax._check import check, check_integer, fail

    if wanted is not None:
        check_integer("train", "devices", wanted, 1)
        if platform in (None, "cpu"):
            with contextlib.suppress(RuntimeError):  # JAX is already running with a fixed set of devices
                jax.config.update("jax_num_cpu_devices", wanted)
    try:
        devices = jax.devices(platform)
    except RuntimeError as error:
        fail("train", "device", "be a platform that JAX has here", f"{platform!r} ({error})", "Omit it")
    if wanted is None:
        alone = jax.process_count() == 1
        return devices[:1] if alone and platform is not None else None if alone else devices
    shares = [[each for each in devices if each.process_index == n] for n in range(jax.process_count())]
    fewest = min(map(len, shares))
    check(
        fewest >= wanted,
        "train",
        "devices",
        f"be at most {fewest}, the number available",
        wanted,
        "Choose fewer",
    )
    return [each for share in shares for each in share[:wanted]]


def _profile(folder: Path, settings: Any, net: Any, params: Any, parts: Any, device: Any) -> None:
    """Print what a training step would cost on the chip, and write the whole profile."""
    import jax

    from snnjax import ipu, train

    config, (loss, decoder) = settings.training, train.loss_of(settings)
    optimiser = train.make_optimiser(config, steps_per_epoch=1)
    step: Any = train.make_train_step(net, loss, optimiser, config, decoder)
    state = jax.device_put(train.TrainState(params, optimiser.init(params)), device)
    batch = parts.validation.take([n % len(parts.validation) for n in range(config.batch_size)])
    compiled = step.lower(state, batch, config.second_threshold).compile()
    state, _ = compiled(state, batch, config.second_threshold)
    ipu.read_profile(compiled, reset=True)  # in the first step the parameters come from the host
    jax.block_until_ready(compiled(state, batch, config.second_threshold))
    report = ipu.read_profile(compiled)
    report.save(folder / "profile.html")
    _say(str(report))
    _say(f"a step of {config.batch_size} samples would take {1e3 * report.seconds:.3g} ms (not measured on ")
    _say(f"hardware); the profile is in {folder / 'profile.html'}\n")


def _evaluate(options: argparse.Namespace) -> int:
    import jax

    from snnjax import train
    from snnjax.train.progress import find_checkpoint

    path = find_checkpoint(options.out)
    header = train.read_run(path)
    settings = train.TaskSettings.from_header(header)
    parts = train.load_task(settings, options.data)
    net = train.build_network(settings, parts.num_inputs, parts.num_classes)
    like = {"best_params": jax.eval_shape(net.init, jax.random.key(0))}
    params = train.load_checkpoint(path, like)[0]["best_params"]
    loss, decoder = train.loss_of(settings)
    tested = train.evaluate(net, params, parts.test, loss=loss, decoder=decoder)
    _report(options.out, tested, header["best_epoch"])
    return 0


def _results(options: argparse.Namespace) -> int:
    from snnjax import train

    page = train.results_page(train.read_runs(options.runs))
    if options.page is None:
        _say(page)
    else:
        train.write_atomically(options.page, page.encode())
    return 0


def _info(options: argparse.Namespace) -> int:
    from importlib.metadata import PackageNotFoundError, version

    import jax

    from snnjax import _dispatch, train

    for package in ("snnjax", "jax", "jaxlib", "numpy", "optax", "matplotlib", "tqdm", "h5py"):
        try:
            _say(f"{package:<12}{version(package)}\n")
        except PackageNotFoundError:
            _say(f"{package:<12}not installed\n")
    _say(f"{'python':<12}{sys.version.split()[0]}\n")
    _say(f"{'devices':<12}{', '.join(str(device) for device in jax.devices())}\n")
    _say(f"{'IPUs':<12}{_ipus()}\n")
    missing = _dispatch.missing_kernels()
    kernels = "compiled CPU kernels" if missing is None else f"no compiled CPU kernels ({missing})"
    _say(f"{'ops':<12}{kernels}; jnp references on every platform\n")
    shipped = ("digits", "vowels", "qtdb")
    _say(f"{'tasks':<12}{', '.join(shipped)} (data in the package); ")
    _say("spar (with the package seglearn, or with --data); spoken (made with espeak-ng); ")
    others = (name for name in train.TASKS if name not in (*shipped, "spar", "spoken"))
    _say(f"{', '.join(others)} (with --data)\n")
    if options.checkpoint is not None:
        _say_checkpoint(train.read_run(options.checkpoint), options.checkpoint)
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
    _say(f"{'checkpoint':<12}{path}\n")
    _say(f"{'  epochs':<12}{header['epoch']} of {header['config']['epochs']}, best {best}\n")
    accuracy = metrics[best - 1]["validation_accuracy"] if best else float("nan")
    _say(f"{'  accuracy':<12}{100 * accuracy:.2f} % on validation data\n")
    for name, value in header["settings"].items():
        _say(f"  {name}: {value}\n")
    _say_paths(header)


def _say_paths(header: dict[str, Any]) -> None:
    """Print the path of each layer of the network, with the reason."""
    from snnjax.train import TaskSettings, build_network

    # The numbers of flat inputs and of outputs do not matter here, and the data that determine them may be missing.
    net = build_network(TaskSettings.from_header(header), 1, 1)
    for index, (spec, path) in enumerate(zip(net.layers, net.paths, strict=True)):
        what = f"{_by(spec.fitted.out_shape)} {spec.neuron.name} after {_connection(spec)}"
        _say(f"  layer {index}: {what}; {'fused' if path.fused else 'scanned'}, {path.why}\n")


def _connection(spec: Any) -> str:
    """A short description of a layer's connection."""
    connection, parts = spec.fitted.connection, []
    if spec.delays is not None:
        parts.append(f"delays of up to {spec.delays.max_delay} steps")
    parts += [part.words for part in connection.parts]
    if connection.convolution is None:
        parts.append("dense weights" if spec.fitted.mask is None else "masked weights")
    return ", ".join(parts)


def _settings(options: argparse.Namespace) -> Any:
    """The settings of the task or of the run to resume, with the options of the command line applied."""
    from dataclasses import replace

    from snnjax.train import TaskSettings, read_run, task_settings
    from snnjax.train.progress import find_checkpoint

    settings = task_settings(options.task or "digits", options.model or "dense")
    if options.resume:
        settings = TaskSettings.from_header(read_run(find_checkpoint(options.out)))
    names = ("epochs", "batch_size", "learning_rate", "seed", "rule", "second_threshold", "activity_bound")
    given = {name: getattr(options, name) for name in names if getattr(options, name) is not None}
    changes: dict[str, Any] = {"training": replace(settings.training, **given)}
    if options.task is not None:
        changes["task"] = options.task
    if options.model is not None:  # a run of another model is not resumed
        changes["convolutions"] = task_settings(settings.task, options.model).convolutions
    if options.hidden is not None:
        changes["hidden"] = tuple(options.hidden)
    if options.capacity is not None or options.dense:
        changes["capacity"] = options.capacity
    if options.samples is not None:
        changes["samples"] = options.samples
    return replace(settings, **changes)


def _report(folder: Path, tested: dict[str, Any], best_epoch: int) -> None:
    from snnjax.train import write_atomically

    _say(
        f"test accuracy {100 * tested['accuracy']:.2f} % (epoch {best_epoch}, selected on validation data)\n"
    )
    _say(
        f"activity {_percent(tested['activity'])}, spikes dropped {_percent(tested['dropped_share'], 2)} (by layer)\n"
    )
    effective = tested["effective_acs"] + tested["effective_macs"]
    share = effective / tested["dense_operations"]
    _say(
        f"synaptic operations per sample: {_big(effective)} effective of {_big(tested['dense_operations'])} dense "
    )
    _say(f"({100 * share:.1f} %)\n")
    write_atomically(folder / "test.json", json.dumps(tested, indent=1).encode())


def _say_throughput(metrics: list[dict[str, Any]]) -> None:
    # The first epoch includes compilation.
    later = metrics[1:] or metrics
    seconds = sum(line["seconds"] for line in later)
    names = ("events_per_second", "synaptic_operations_per_second")
    events, operations = (sum(line[name] * line["seconds"] for line in later) / seconds for name in names)
    _say(f"training ran at {_big(events)} events/s and {_big(operations)} effective synaptic operations/s\n")


def _draw(folder: Path, settings: Any, net: Any, result: Any, parts: Any) -> None:
    from snnjax import plot
    from snnjax.train import write_atomically

    batch = parts.test.take(range(min(_DRAWN_SAMPLES, len(parts.test))))
    output, _ = net.apply(result.params, None, batch.inputs, lengths=batch.lengths, record="spikes")
    bound = settings.training.activity_bound
    try:
        pictures = {
            "raster": plot.sample(batch.inputs, output, label=_label(batch)),
            "overview": plot.overview(output, batch.lengths),
            "curves": plot.curves(result.metrics),
            "activity": plot.activity(result.metrics, bound),
        }
    except ImportError:
        _say("no pictures: install matplotlib (pip install 'snnjax[cli]')\n")
        return
    for name, figure in pictures.items():
        content = io.BytesIO()
        plot.save(figure, content)
        write_atomically(folder / f"{name}.png", content.getvalue())
    _say(f"pictures, metrics and checkpoint are in {folder}/\n")


def _label(batch: Any) -> int | None:
    """The label of the first sample, None if labels are per step."""
    return int(batch.labels[0]) if batch.labels.ndim == 1 else None


def _epoch_line(line: dict[str, Any], epochs: int) -> str:
    scores = (
        f"{100 * line['train_accuracy']:5.1f} % train, {100 * line['validation_accuracy']:5.1f} % validation"
    )
    activity, dropped = _percent(line["activity"]), _percent(line["dropped_share"], 2)
    return (
        f"epoch {line['epoch']:>{len(str(epochs))}}/{epochs}  loss {line['train_loss']:.3f}  accuracy {scores}  "
        f"activity {activity}  dropped {dropped}  {line['seconds']:.1f} s\n"
    )


def _widths(net: Any) -> str:
    """The shapes of the hidden layers; a spiking read-out is the last of the layers."""
    hidden = net.layers if net.readout is not None else net.layers[:-1]
    return " - ".join(_by(spec.fitted.out_shape) for spec in hidden)


def _by(shape: tuple[int, ...]) -> str:
    return "x".join(map(str, shape))


def _lists(settings: Any) -> str:
    if settings.capacity is None:
        return "dense spikes"
    return f"spike lists of {100 * settings.capacity:g} % of the width"


def _percent(shares: list[float], digits: int = 1) -> str:
    return " ".join(f"{100 * share:.{digits}f} %" for share in shares)


def _big(number: float) -> str:
    """A number with three significant digits and k, M or G for thousands, millions and billions."""
    for factor, unit in ((1e9, " G"), (1e6, " M"), (1e3, " k")):
        if number >= factor:
            return f"{number / factor:.3g}{unit}"
    return f"{number:.3g}"


def _show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    sys.stderr.write(f"snnjax: warning: {message}\n")


def _say(text: str) -> None:
    """Write to standard output, around a progress bar if one is drawn."""
    try:
        from tqdm import tqdm
    except ImportError:
        sys.stdout.write(text)
    else:
        tqdm.write(text, file=sys.stdout, end="")
    sys.stdout.flush()
