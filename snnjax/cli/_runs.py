"""``snnjax evaluate`` and ``snnjax results``: the results of trained runs."""

import argparse
from pathlib import Path

from snnjax.cli._text import report, say


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
        "run_folder",
        metavar="run",
        type=Path,
        nargs="?",
        default=Path("out"),
        help="run folder (default: out)",
    )
    add_data(parser)
    parser.set_defaults(run=_evaluate)


def add_results(parser: argparse.ArgumentParser) -> None:
    """The options of ``snnjax results``."""
    parser.add_argument("runs", type=Path, nargs="+", help="run folders, or folders that contain them")
    parser.add_argument("--page", type=Path, help="file to write the page to (default: standard output)")
    parser.set_defaults(run=_results)


def _evaluate(options: argparse.Namespace) -> int:
    import jax

    from snnjax import train
    from snnjax.train.progress import CHECKPOINT

    path = options.run_folder / CHECKPOINT
    header = train.read_run(path)
    settings = train.TaskSettings.from_header(header)
    parts = train.load_task(settings, options.data)
    net = train.build_network(settings, parts.num_inputs, parts.num_classes)
    params, stats = jax.eval_shape(lambda key: (net.init(key), net.init_stats(key)), jax.random.key(0))
    best = train.load_checkpoint(path, {"best_params": params, "best_stats": stats}, net)[0]
    loss, decoder = train.loss_of(settings)
    params, stats = best["best_params"], best["best_stats"]
    tested = train.evaluate(net, params, parts.test, stats=stats, loss=loss, decoder=decoder)
    report(options.run_folder, tested, header["best_epoch"], settings.training.selection)
    return 0


def _results(options: argparse.Namespace) -> int:
    from snnjax import train

    page = train.results_page(train.read_runs(options.runs))
    if options.page is None:
        say(page)
    else:
        train.write_atomically(options.page, page.encode())
    return 0
