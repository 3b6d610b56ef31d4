"""The command line: ``snnjax train``, ``evaluate``, ``results``, ``new`` and ``info``.

Results go to standard output, one line per fact; errors go to standard error in one line, with exit code 2.
"""

import argparse
import os
import re
import sys
import warnings
from collections.abc import Sequence
from importlib.metadata import version
from typing import NoReturn

from snnjax.cli import _info, _new, _runs, _train
from snnjax.cli._defaults import Parser
from snnjax.cli._text import INTERRUPTED, show_warning

# The form of snnjax's own messages; anything else is a bug, and keeps its traceback.
_OUR_ERROR = re.compile(r"[\w.]+: `[^`]+` must .*, got ", re.DOTALL)


def program() -> NoReturn:
    """Run the command line, and end the process with the exit code.

    After an interrupt it ends at once, without the cleaning up of JAX: a thread of XLA may still be compiling, and
    crashes when the client of jaxlib is freed meanwhile.
    """
    code = main()
    if code == INTERRUPTED:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    sys.exit(code)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code.

    Example:
        >>> from snnjax.cli import main
        >>> main(["info"])  # doctest: +ELLIPSIS
        snnjax...
        0
    """
    options = command_line().parse_args(arguments)
    with warnings.catch_warnings():
        warnings.simplefilter("always", RuntimeWarning)
        warnings.showwarning = show_warning
        try:
            return options.run(options)
        except (ValueError, OSError, ImportError) as error:
            if isinstance(error, ValueError) and not _OUR_ERROR.match(str(error)):
                raise
            sys.stderr.write(f"snnjax: {str(error) or type(error).__name__}\n")
            return 2
        except KeyboardInterrupt:
            sys.stderr.write("snnjax: interrupted\n")
            return INTERRUPTED


def command_line() -> argparse.ArgumentParser:
    """The parser of all commands."""
    parser = Parser(prog="snnjax", description="Train and run sparse spiking networks.")
    parser.add_argument("--version", action="version", version=f"snnjax {version('snnjax')}")
    commands = parser.add_subparsers(required=True, metavar="command")
    _train.add_options(commands.add_parser("train", help="train a network on a task, test it, draw pictures"))
    _runs.add_evaluate(
        commands.add_parser("evaluate", help="run a trained network on the test data of its task")
    )
    _runs.add_results(commands.add_parser("results", help="write one page of results from trained runs"))
    _new.add_options(
        commands.add_parser("new", help="write a training script for your own data, to start from")
    )
    _info.add_options(commands.add_parser("info", help="show versions, devices, kernels and data sets"))
    return parser
