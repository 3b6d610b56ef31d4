"""The command ``snnjax ipu-model run``: an op on the model, from the shell."""

import argparse
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np

from snnjax.ipu.examples import Sizes, random_example
from snnjax.ipu.harness import CHIPS, OPS, run_on_model

_EXAMPLE = "of the random example"
_SWITCHES = {"half": "float16", "recurrent": "recurrent layers", "dense": "dense inputs"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What ``snnjax ipu-model`` takes."""
    commands = parser.add_subparsers(required=True, metavar="command")
    run = commands.add_parser(
        "run", help="run one op on arrays and print what it would cost", description=run_op.__doc__
    )
    run.add_argument("op", choices=OPS)
    run.add_argument("--chip", choices=CHIPS, default="mk2")
    run.add_argument("--tiles", type=int, help="of each IPU (default: all)")
    run.add_argument("--ipus", type=int, default=1)
    run.add_argument("--threads", type=int, help="of this machine (default: all)")
    run.add_argument("--arrays", type=Path, help=".npz file of named arrays (default: a random example)")
    run.add_argument("--out", type=Path, help=".npz file for the results")
    run.add_argument("--json", type=Path, help="file for the whole profile")
    run.add_argument("--html", type=Path, help="file for the profile as a page to read")
    run.add_argument(
        "--set", nargs="+", default=[], metavar="NAME=VALUE", help="attributes, such as reset=zero capacity=8"
    )
    for size in fields(Sizes):
        if size.name in _SWITCHES:
            run.add_argument(f"--{size.name}", action="store_true", help=f"{_SWITCHES[size.name]} {_EXAMPLE}")
        elif size.name == "backward":
            run.add_argument("--forward-only", action="store_true", help=f"no gradients {_EXAMPLE}")
        elif size.name == "neurons":
            run.add_argument("--neurons", type=int, nargs="+", help=f"widths of layers {_EXAMPLE}")
        else:
            run.add_argument(f"--{size.name}", type=int, help=f"{size.name} {_EXAMPLE}")
    run.set_defaults(run=run_op)


def run_op(options: argparse.Namespace) -> int:
    """Run one op on the IPU Model and print where its cycles would go. Nothing of this was measured on hardware."""
    attributes: dict[str, Any] = {}
    if options.arrays is None:
        arrays, attributes = random_example(options.op, _sizes(options))
    else:
        with np.load(options.arrays) as file:
            arrays = dict(file)
    attributes |= dict(_attribute(text) for text in options.set)
    try:
        results, profile = run_on_model(
            options.op,
            arrays,
            chip=options.chip,
            num_tiles=options.tiles,
            num_ipus=options.ipus,
            threads=options.threads,
            **attributes,
        )
    except (
        RuntimeError,
        TypeError,
    ) as error:  # no library, out of memory; an attribute that the op does not have
        sys.stderr.write(f"snnjax: {error}\n")
        return 2
    sys.stdout.write(f"{profile}")
    for name, array in results.items():
        sys.stdout.write(f"{name}: {array.dtype}{list(array.shape)}\n")
    if options.out is not None:
        np.savez(options.out, **results)  # pyright: ignore[reportArgumentType]
    if options.json is not None:
        options.json.write_text(profile.json)
    if options.html is not None:
        options.html.write_text(profile.html(), encoding="utf-8")
    return 0


def _sizes(options: argparse.Namespace) -> Sizes:
    given = {
        size.name: getattr(options, size.name)
        for size in fields(Sizes)
        if getattr(options, size.name, None) is not None
    }
    if "neurons" in given:
        given["neurons"] = tuple(given["neurons"])
    return Sizes(**given, backward=not options.forward_only)


def _attribute(text: str) -> tuple[str, Any]:
    """``capacity=8`` as a name and a number, a truth value, None or a word; commas make a tuple."""
    name, _, value = text.partition("=")
    values = [_value(part) for part in value.split(",")]
    return name.replace("-", "_"), values[0] if len(values) == 1 else tuple(values)


def _value(text: str) -> Any:
    words = {"None": None, "true": True, "false": False}
    if text in words:
        return words[text]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
