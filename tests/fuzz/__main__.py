"""Feed the compiled kernels what nobody should: `python -m tests.fuzz --examples 1000 --log last.txt`.

Meant to run under sanitizers (`make fuzz`); the log names the example that a crash interrupted.
"""

import argparse
import os
from pathlib import Path

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import hypothesis
import jax

from snnjax import _targets
from tests.fuzz import direct

CLEAR = 300  # examples after which compiled programs are forgotten


def main() -> None:
    parser = argparse.ArgumentParser(prog="tests.fuzz")
    parser.add_argument("--examples", type=int, default=300)
    parser.add_argument("--log", type=Path)
    arguments = parser.parse_args()
    sentence = _targets.missing()
    if sentence is not None:
        parser.error(sentence)
    direct.run(arguments.examples, arguments.log)


main()
