"""The output of the commands: lines to standard output, warnings to standard error, and numbers as text."""

import json
import math
import os
import sys
from pathlib import Path
from typing import Any

from snnjax._check import plural
from snnjax._write import write_atomically

# A shell's exit code for a program ended by SIGINT.
INTERRUPTED = 130


def say(text: str) -> None:
    """Write to standard output, around a progress bar if one is drawn."""
    try:
        from tqdm import tqdm
    except ImportError:
        sys.stdout.write(text)
    else:
        tqdm.write(text, file=sys.stdout, end="")
    sys.stdout.flush()


def show_warning(message: Warning | str, *_: object, **__: object) -> None:
    """Write a warning as one line; stands in for `warnings.showwarning`."""
    sys.stderr.write(f"snnjax: warning: {message}\n")


def epoch_line(line: dict[str, Any], epochs: int) -> str:
    """The metrics of an epoch as one line."""
    parts = [part for part in ("train", "validation") if f"{part}_accuracy" in line]
    scores = ", ".join(f"{100 * line[f'{part}_accuracy']:5.1f} % {part}" for part in parts)
    activity, dropped = percent(line["activity"]), percent(line["dropped_share"], 2)
    return (
        f"epoch {line['epoch']:>{len(str(epochs))}}/{epochs}  loss {line['train_loss']:.3f}  accuracy {scores}  "
        f"activity {activity}  dropped {dropped}  {line['seconds']:.1f} s\n"
    )


def stopped_line(metrics: list[dict[str, Any]]) -> str:
    """How to go on after training that ended early: only a finished epoch whose loss is finite can be resumed."""
    if not metrics:
        return "stopped in the first epoch; nothing is saved before its end\n"
    finite = math.isfinite(metrics[-1]["train_loss"])
    hint = "continue with --resume" if finite else "start again with other settings and --overwrite"
    return f"stopped after {plural(len(metrics), 'epoch')}; {hint}\n"


def report(tested: dict[str, Any], best_epoch: int, selection: str) -> None:
    """Print how a network did on the test data."""
    how = {"last": "the last", "average": "mean of the last fifth"}.get(
        selection, "selected on validation data"
    )
    say(f"test accuracy {100 * tested['accuracy']:.2f} % (epoch {best_epoch}, {how})\n")
    say(
        f"activity {percent(tested['activity'])}, spikes dropped {percent(tested['dropped_share'], 2)} (by layer)\n"
    )
    effective = tested["effective_acs"] + tested["effective_macs"]
    share = effective / tested["dense_operations"]
    say(
        f"synaptic operations per sample: {big(effective)} effective of {big(tested['dense_operations'])} dense "
    )
    say(f"({100 * share:.1f} %)\n")


def write_tested(folder: os.PathLike[str], tested: dict[str, Any]) -> None:
    """Write what `report` prints to the folder of a run."""
    write_atomically("train", Path(folder) / "test.json", json.dumps(tested, indent=1).encode())


def say_throughput(metrics: list[dict[str, Any]]) -> None:
    """Print how fast training ran."""
    # The first epoch includes compilation.
    later = metrics[1:] or metrics
    seconds = sum(line["seconds"] for line in later)
    events = sum(line["events_per_second"] * line["seconds"] for line in later)
    say(f"training ran at {big(events / seconds)} events/s\n")


def widths(net: Any) -> str:
    """The shapes of the neurons that spike, but for those of the readout."""
    outputs = dict(net.outputs).values()
    hidden = [node.name for node in net.nodes if node.block.is_spiking and node.name not in outputs]
    return " - ".join(by(net.shapes[name]) for name in hidden)


def by(shape: tuple[int, ...]) -> str:
    """A shape as text, such as 34x34x2."""
    return "x".join(map(str, shape))


def lists(settings: Any) -> str:
    """How the layers of a task pass spikes on."""
    if settings.capacity is None:
        return "dense spikes"
    return f"spike lists of {100 * settings.capacity:g} % of the width"


def percent(shares: list[float], digits: int = 1) -> str:
    """Shares as percentages."""
    return " ".join(f"{100 * share:.{digits}f} %" for share in shares)


def big(number: float) -> str:
    """A number with three significant digits and k, M or G for thousands, millions and billions."""
    for factor, unit in ((1e9, " G"), (1e6, " M"), (1e3, " k")):
        if number >= factor:
            return f"{number / factor:.3g}{unit}"
    return f"{number:.3g}"
