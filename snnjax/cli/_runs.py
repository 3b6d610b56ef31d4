"""``snnjax evaluate`` and ``snnjax results``: the results of trained runs."""

import argparse
from pathlib import Path
from typing import Any

from snnjax._check import fail
from snnjax._write import write_atomically
from snnjax.cli._text import report, say, write_tested


def add_data(parser: argparse.ArgumentParser) -> None:
    """The option that says where the data of a task are."""
    parser.add_argument(
        "--data",
        type=Path,
        help="folder or file that holds the downloaded data of the task (default: the data in the package)",
    )


def add_evaluate(parser: argparse.ArgumentParser) -> None:
    """The options of ``snnjax evaluate``."""
    parser.add_argument(
        "place",
        metavar="run",
        type=Path,
        nargs="?",
        default=Path("out"),
        help="run folder, or the file of a trained network (default: out)",
    )
    add_data(parser)
    parser.set_defaults(run=_evaluate)


def add_results(parser: argparse.ArgumentParser) -> None:
    """The options of ``snnjax results``."""
    parser.add_argument("runs", type=Path, nargs="+", help="run folders, or folders that contain them")
    parser.add_argument("--page", type=Path, help="file to write the page to (default: standard output)")
    parser.set_defaults(run=_results)


def _evaluate(options: argparse.Namespace) -> int:
    from snnjax import train
    from snnjax.train.lock import locked
    from snnjax.train.progress import CHECKPOINT

    is_file = options.place.is_file()
    path = options.place if is_file else options.place / CHECKPOINT
    settings = train.TaskSettings.from_header(train.read_run(path))
    written = path.stat().st_mtime_ns
    parts = train.load_task(settings, options.data)
    trained = train.read_trained(path, parts.num_inputs, parts.num_classes)
    loss, decoder = train.loss_of(settings)
    kept: Any = {"stats": trained.stats, "loss": loss, "decoder": decoder}
    tested = train.evaluate(trained.network, trained.params, parts.test, **kept)
    report(tested, trained.header["best_epoch"], settings.training.selection)
    if not is_file:
        with locked(options.place) as folder:
            if path.stat().st_mtime_ns != written:
                fail(
                    "evaluate: `run` must still have the tested checkpoint, got a newer one. Evaluate it again."
                )
            write_tested(folder, tested)
    return 0


def _results(options: argparse.Namespace) -> int:
    from snnjax import train

    page = train.results_page(train.read_runs(options.runs))
    if options.page is None:
        say(page)
    else:
        write_atomically("results", options.page, page.encode())
    return 0
