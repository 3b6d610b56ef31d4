"""Feed the compiled kernels what nobody should: `python -m tests.fuzz --examples 1000`.

Meant to run under sanitizers (`make fuzz`). The file `--log` holds the example at work, for a crash leaves no time to say
which it was.
"""

import argparse
import os
import sys
import time
from collections import Counter
from pathlib import Path

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import hypothesis
import hypothesis.strategies as st

from snnjax import _targets
from tests.fuzz import handlers, ops


def run(strategy: st.SearchStrategy, check, examples: int, log: Path | None) -> Counter[str]:
    """`check` examples of a strategy; yields what it counted."""
    counted: Counter[str] = Counter()

    @hypothesis.settings(max_examples=examples, deadline=None, database=None, suppress_health_check=list(hypothesis.HealthCheck))
    @hypothesis.given(strategy)
    def each(example) -> None:
        if log is not None:
            log.write_text(f"{example!r}\n")
        check(example, counted)

    each()
    return counted


def main() -> None:
    parser = argparse.ArgumentParser(prog="tests.fuzz")
    parser.add_argument("--examples", type=int, default=300)
    parser.add_argument("--networks", type=int, default=6, help="how many forms of networks there are")
    parser.add_argument("--log", type=Path)
    arguments = parser.parse_args()
    sentence = _targets.missing()
    if sentence is not None:
        parser.error(sentence)
    started = time.monotonic()
    for part in (ops, handlers):
        counted = run(part.strategy(arguments.networks), part.check, arguments.examples, arguments.log)
        text = ", ".join(f"{number} {what}" for what, number in counted.items())
        sys.stdout.write(f"{text} in {time.monotonic() - started:.0f} s\n")


main()
