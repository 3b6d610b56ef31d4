"""What a finished run leaves for comparison, and the page that is made of many runs."""

import json
import statistics
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import jax

from snnjax import _dispatch, metrics
from snnjax._check import check, fail
from snnjax._network import Network
from snnjax.train.checkpoint import write_atomically
from snnjax.train.loop import FitResult
from snnjax.train.tasks import TaskSettings

RUN = "run.json"
_COLUMNS = (
    "task",
    "network",
    "test accuracy",
    "seeds",
    "selection rule",
    "parameters",
    "activity",
    "dropped spikes",
    "synaptic operations a sample",
    "CPU time",
    "peak memory",
    "kernels",
)
_HEAD = """# Results

Made by `snnjax results` from the records of runs of `snnjax train`. Accuracy is that on test data, which the choice
of the epoch does not see: the mean over seeds and the standard deviation between them. A seed decides initial weights,
the validation part, order and augmentation. The other numbers are means over the runs, their activity, dropped spikes
and synaptic operations those of the test data: activity in spikes per neuron and step, by layer; operations that spikes
cause, and their share of those of dense hardware. CPU time is that of the whole command, reading and testing
included; peak memory is that of the process.

"""
# What the accuracy of a task is a share of, and how its data are divided.
_NOTES = {
    "digits": "2,000 test images that the simulated camera has seen; a tenth of the 8,000 others validates.",
    "vowels": "370 test utterances, the official split; 15 % of the 270 others validate.",
    "qtdb": "all steps of the 141 test excerpts. As in published figures, a step without a label counts as P, that is "
    "class 0: a gap behind the first 19 steps, and all that follows the last label, together a tenth of the steps. "
    "A run of neighbours, a tenth of the 618 other excerpts, validates.",
    "spar": "windows of 4 s of two people, with whom nothing was trained; each seed tests two others of the ten, "
    "another two validate. The published 88.9 % (Burns et al. 2018) are of 20 people, 16 of whom train; the data of "
    "ten are public.",
    "spoken": "340 words of 17 voices of espeak-ng, with which nothing was trained; 200 words of 10 others validate. "
    "The words are in the shape of SHD, but are not its recordings: figures on the one say nothing of the other.",
}


def record_run(
    settings: TaskSettings,
    network: Network,
    result: FitResult,
    tested: dict[str, Any],
    *,
    validation_samples: int,
    resumed: bool = False,
) -> dict[str, Any]:
    """The record of a run that has just ended in this process, as plain numbers for JSON.

    Args:
        settings: of the run.
        network: that was trained.
        result: of `fit`.
        tested: of `evaluate` on the test data.
        validation_samples: on which the epoch was chosen.
        resumed: leaves out the CPU time, for part of it went by in another process.

    Example:
        >>> import jax, snnjax
        >>> from snnjax import train
        >>> net = snnjax.network(4, [snnjax.layer(2)], snnjax.leaky_readout(3))
        >>> result = train.FitResult(net.init(jax.random.key(0)), 1, [{"seconds": 2.0}], False)
        >>> tested = {"accuracy": 0.5}
        >>> run = train.record_run(train.TASKS["digits"], net, result, tested, validation_samples=9)
        >>> run["task"], run["parameters"], run["test"]
        ('digits', 26, {'accuracy': 0.5})
    """
    return {
        "task": settings.task,
        "network": _network_in_words(settings, network),
        "seed": settings.training.seed,
        "epochs": settings.training.epochs,
        "best_epoch": result.best_epoch,
        "validation_samples": validation_samples,
        "parameters": metrics.parameter_count(result.params),
        "test": {name: tested[name] for name in tested if name not in ("loss", "silent_share")},
        "training_seconds": sum(line["seconds"] for line in result.metrics),
        "cpu_seconds": None if resumed else time.process_time(),
        "peak_memory": _peak_memory(),
        "platform": jax.default_backend(),
        "kernels": _dispatch.instruction_set() or "none",
    }


def write_run(folder: Path, run: dict[str, Any]) -> None:
    """Write a record into the folder of its run, as ``run.json``.

    Example:
        >>> import pathlib, tempfile
        >>> from snnjax.train import read_runs, write_run
        >>> folder = pathlib.Path(tempfile.mkdtemp())
        >>> write_run(folder, {"task": "digits", "network": "12", "test": {}})
        >>> len(read_runs([folder]))
        1
    """
    write_atomically(folder / RUN, (json.dumps(run, indent=1) + "\n").encode())


def read_runs(places: Sequence[Path | str]) -> list[dict[str, Any]]:
    """The records in files, and those in folders: ``run.json`` at any depth, and copies named ``<name>-<seed>.json``.

    Errors: places without a record, files that are no records.

    Example:
        >>> import pathlib, tempfile
        >>> from snnjax.train import read_runs, write_run
        >>> folder = pathlib.Path(tempfile.mkdtemp())
        >>> write_run(folder, {"task": "digits", "network": "12", "test": {}})
        >>> read_runs([folder])[0]["task"]
        'digits'
    """
    runs = []
    for place in map(Path, places):
        files = [place] if place.is_file() else sorted([*place.rglob(RUN), *place.glob("*-[0-9]*.json")])
        way_out = "Train with `snnjax train`, and name the folder of --out"
        check(len(files) > 0, "read_runs", "places", "hold records of runs", str(place), way_out)
        runs += [_read(file) for file in files]
    return runs


def results_page(runs: Iterable[dict[str, Any]]) -> str:
    """A page in Markdown with one row for each task and network, over all its seeds.

    Example:
        >>> from snnjax.train import results_page
        >>> test = {"accuracy": 0.9, "activity": [0.02], "dropped_share": [0.0]}
        >>> test |= {"effective_acs": 2e3, "effective_macs": 0.0, "dense_operations": 4e4}
        >>> run = {"task": "digits", "network": "8", "epochs": 2, "validation_samples": 9, "parameters": 23}
        >>> run |= {"seed": 0, "cpu_seconds": 60.0, "peak_memory": 5e8, "kernels": "avx2", "test": test}
        >>> other = run | {"seed": 1, "test": test | {"accuracy": 0.8}}
        >>> results_page([run, other]).splitlines()[-3][:50]
        '| digits | 8 | 85.00 ± 7.07 % | 2 | best of 2 epoc'
    """
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for run in runs:
        alike = ("task", "network", "epochs", "parameters", "kernels")
        groups.setdefault(tuple(run[name] for name in alike), []).append(run)
    rows = [_COLUMNS, ["---"] * len(_COLUMNS), *(_row(group) for group in groups.values())]
    tasks = dict.fromkeys(key[0] for key in groups)
    notes = [f"\n**{task}**: {_NOTES[task]}\n" for task in tasks if task in _NOTES]
    return "".join([_HEAD, *(f"| {' | '.join(row)} |\n" for row in rows), *notes])


def _row(runs: list[dict[str, Any]]) -> list[str]:
    first, tests = runs[0], [run["test"] for run in runs]
    percent = [100 * test["accuracy"] for test in tests]
    spread = f" ± {statistics.stdev(percent):.2f}" if len(runs) > 1 else ""
    effective = statistics.mean(test["effective_acs"] + test["effective_macs"] for test in tests)
    dense = statistics.mean(test["dense_operations"] for test in tests)
    seconds = [run["cpu_seconds"] for run in runs if run["cpu_seconds"] is not None]
    memory = [run["peak_memory"] for run in runs if run["peak_memory"] is not None]
    judges = _range({run["validation_samples"] for run in runs})
    return [
        first["task"],
        first["network"],
        f"{statistics.mean(percent):.2f}{spread} %",
        str(len({run["seed"] for run in runs})),
        f"best of {first['epochs']} epochs on {judges} validation samples",
        f"{first['parameters']:,}",
        _by_layer([test["activity"] for test in tests], 1),
        _by_layer([test["dropped_share"] for test in tests], 2),
        f"{effective / 1e6:.3g} M, {100 * effective / dense:.1f} %",
        f"{statistics.mean(seconds):.0f} s" if seconds else "not measured",
        f"{statistics.mean(memory) / 2**20:.0f} MiB" if memory else "not measured",
        first["kernels"],
    ]


def _range(counts: set[int]) -> str:
    """``9``, or ``9 to 12``: where seeds divide the data among people, the parts differ in size."""
    least, most = min(counts), max(counts)
    return str(least) if least == most else f"{least} to {most}"


def _by_layer(shares: list[list[float]], digits: int) -> str:
    return ", ".join(f"{100 * statistics.mean(layer):.{digits}f} %" for layer in zip(*shares, strict=True))


def _network_in_words(settings: TaskSettings, network: Network) -> str:
    shapes = [spec.fitted.out_shape for spec in network.layers]
    widths = " - ".join("x".join(map(str, shape)) for shape in shapes)
    kinds = [settings.neuron, "recurrent"] if settings.recurrent else [settings.neuron]
    kinds += [f"delays of up to {settings.max_delay} steps"] if settings.max_delay else []
    lists = "dense" if settings.capacity is None else f"lists of {100 * settings.capacity:g} %"
    return f"{widths} ({', '.join([*kinds, lists])})"


def _peak_memory() -> int | None:
    """The most bytes that this process has held, None where the platform does not say."""
    try:
        import resource
    except ImportError:  # Windows
        return None
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024


def _read(file: Path) -> dict[str, Any]:
    way_out = f"Name files {RUN} that `snnjax train` wrote"
    try:
        run = json.loads(file.read_text())
    except (OSError, ValueError) as error:
        fail("read_runs", "places", "hold records of runs", f"{file} ({error})", way_out)
    good = isinstance(run, dict) and {"task", "network", "test"} <= run.keys()
    check(good, "read_runs", "places", "hold records of runs", str(file), way_out)
    return run
