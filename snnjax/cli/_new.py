"""``snnjax new``: a small training script for data of one's own."""

import argparse
from importlib.resources import files
from pathlib import Path

from snnjax._check import fail
from snnjax.cli._text import say


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of ``snnjax new``."""
    parser.add_argument("name", type=Path, help="name of the task: the script is NAME.py")
    parser.set_defaults(run=_new)


def _new(options: argparse.Namespace) -> int:
    path = options.name.with_suffix(".py")
    if not path.stem.isidentifier():
        fail(f"new: `name` must be a word of letters, digits and _, got {path.stem!r}. Try my_task.")
    if not path.parent.is_dir():
        fail(f"new: `name` must be in a folder that exists, got {str(path)!r}. Make the folder first.")
    text = files("snnjax.cli").joinpath("script.txt").read_text(encoding="utf-8").replace("TASK", path.stem)
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        fail(f"new: `name` must be that of a new file, got {str(path)!r}, which exists. Choose another name.")
    say(f"wrote {path}; run it with: python {path}\n")
    return 0
