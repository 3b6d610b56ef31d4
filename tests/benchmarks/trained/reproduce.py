"""Train every task whose data are in the package over five seeds, and write the page of results (`make reproduce`).

``--only spar`` trains the one whose data come with the Python package seglearn. Other data are where the user has them:
``--nmnist``, ``--speech`` and ``--cifar10`` take their paths, and add their runs, of CIFAR-10 two that take hours.
What is recorded says before how long it will take. A run that has ended is not done again: remove its folder for that.
"""

import argparse
import json
import statistics
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from snnjax import train
from snnjax.train.results import RUN
from snnjax.train.tasks import FOLDS
from tests.benchmarks.process import ROOT
from tests.benchmarks.trained import accuracy, sequential
from tests.benchmarks.trained import peers as trained_peers

# What is in the file `RUN` of each run, one a line, with the name of the run.
RECORDS, PAGE = ROOT / "docs/runs/runs.jsonl", ROOT / "docs/explanation/results.md"
# Records beside the runs, and the scripts that make them.
COMPARED = {"sequential.json": sequential, "trained_peers.json": trained_peers}
# What each run asks of `snnjax train`.
RUNS: dict[str, tuple[str, ...]] = {name: ("--task", name) for name in ("vowels", "qtdb", "digits")}
RUNS |= {f"digits-{model}": ("--task", "digits", "--model", model) for model in ("conv", "residual")}
RUNS["spar"] = ("--task", "spar")
# As many neurons as published networks; the settings were chosen on validation data.
_FAST = ("--epochs", "60", "--batch-size", "16", "--learning-rate", "0.03", "--activity-bound", "0.5")
RUNS["qtdb-small"] = (
    "--task",
    "qtdb",
    "--hidden",
    "36",
    *_FAST,
    "--validation-share",
    "0",
    "--selection",
    "average",
)
# An online rule beside back-propagation.
RUNS["vowels-ottt"] = (*RUNS["vowels"], "--rule", "ottt")
# Real recordings: the usual test data over seeds, and each fold once, where fold n has seed n.
RUNS |= {"nmnist": ("--task", "nmnist", "--model", "conv"), "speech": ("--task", "speech")}
RUNS["nmnist-residual"] = ("--task", "nmnist", "--model", "residual")
RUNS |= {f"speech-{model}": ("--task", "speech", "--model", model) for model in ("small", "delayed")}
RUNS["cifar10"] = ("--task", "cifar10")
_FOLDED = {f"{task}-folds": task for task in FOLDS}
RUNS |= {name: RUNS[task] for name, task in _FOLDED.items()}
# Of the others the data are in the package.
_ELSEWHERE = (*FOLDS, "cifar10")
_RECORDED = {name: asked[1] for name, asked in RUNS.items() if asked[1] in _ELSEWHERE}
# Runs of hours have two seeds.
_LONG = {"cifar10"}
_WANTS_DATA = {"spar", *_RECORDED}


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("out/reproduce"), help="folder of the runs")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--only", nargs="+", choices=tuple(RUNS), help="train these (default: all with data)")
    for task in _ELSEWHERE:
        parser.add_argument(f"--{task}", type=Path, metavar="PATH", help=f"folder or file of {task}")
    options = parser.parse_args(arguments)
    chosen = names(options)
    missing = [(name, seed) for name in chosen for seed in seeds(name, options.seeds)]
    missing = [each for each in missing if not (_folder(options.out, *each) / RUN).exists()]
    say(f"{len(missing)} runs to train, {announce([name for name, _ in missing])}\n")
    for name, seed in missing:
        asked = [*asks(name, seed, options), "--out", str(_folder(options.out, name, seed))]
        # A process each, whose CPU time and memory are those of one run.
        code = "from snnjax.cli import program; program()"
        done = subprocess.run([sys.executable, "-c", code, "train", *asked, "--overwrite"], check=False)
        if done.returncode != 0:
            return done.returncode
    keep(
        [
            {"run": name} | _trained(options.out, name, seed)
            for name in chosen
            for seed in seeds(name, options.seeds)
        ]
    )
    write_page()
    say(f"The page is {PAGE}.\n")
    return 0


def write_page() -> None:
    """The page of all records, and the picture above its table."""
    accuracy.draw(recorded(), PAGE.parent / accuracy.PICTURE)
    PAGE.write_text(page())


def page() -> str:
    """The page of runs, with the picture above its table, and below it what is compared with other networks."""
    head, mark, rest = train.results_page(recorded()).partition("| task |")
    texts = ((made, RECORDS.with_name(name).read_text()) for name, made in COMPARED.items())
    sections = [made.section(json.loads(text)) for made, text in texts]
    return "".join([head, accuracy.caption(), mark, rest, *sections])


def recorded() -> list[dict[str, Any]]:
    """All records, by name and seed."""
    return [json.loads(line) for line in RECORDS.read_text().splitlines()]


def keep(runs: Sequence[dict[str, Any]]) -> None:
    """Add records, or replace those of the same runs."""
    every = {(run["run"], run["seed"]): run for run in [*recorded(), *runs]}
    RECORDS.write_text("".join(f"{json.dumps(every[key])}\n" for key in sorted(every)))


def names(options: argparse.Namespace) -> tuple[str, ...]:
    """The runs that are wanted, by default all whose data are at hand."""
    if options.only is not None:
        return tuple(options.only)
    found = {name for name, task in _RECORDED.items() if getattr(options, task) is not None}
    return tuple(name for name in RUNS if name not in _WANTS_DATA or name in found)


def seeds(name: str, count: int) -> range:
    """The seeds of the runs of a name."""
    return range(FOLDS[_FOLDED[name]] if name in _FOLDED else min(count, 2) if name in _LONG else count)


def asks(name: str, seed: int, options: argparse.Namespace) -> list[str]:
    """What a run asks of `snnjax train`."""
    asked = [*RUNS[name], "--seed", str(seed)]
    asked += ["--fold", str(seed)] if name in _FOLDED else []
    path = getattr(options, _RECORDED[name]) if name in _RECORDED else None
    return asked + ([] if path is None else ["--data", str(path)])


def announce(names: Sequence[str]) -> str:
    """How long runs of these names will take, from those that are recorded."""
    seconds, unknown = 0.0, set()
    for name in names:
        runs = [run for run in recorded() if run["run"] == name]
        times = [run["cpu_seconds"] for run in runs if run["cpu_seconds"] is not None]
        seconds += statistics.mean(times) if times else 0
        unknown |= set() if times else {name}
    without = f", besides those of {', '.join(sorted(unknown))}, which are not recorded" if unknown else ""
    return f"about {seconds / 60:.0f} minutes of CPU time where the records were made{without}"


def _folder(out: Path, name: str, seed: int) -> Path:
    return out / f"{name}-{seed}"


def _trained(out: Path, name: str, seed: int) -> dict[str, Any]:
    return json.loads((_folder(out, name, seed) / RUN).read_text())


def say(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
