"""Fuzz the compiled kernels and the readers of files and of plans: `python -m tests.fuzz --examples 1000`.

Meant to run under sanitizers (`make fuzz`). The log holds the example at work: a crash leaves no time to name it.
"""

import argparse
import os
import secrets
import sys
import time
from collections import Counter
from pathlib import Path

from tests import quick

os.environ.setdefault("JAX_PLATFORMS", "cpu")
# Two devices for programs of two IPUs.
os.environ.setdefault("XLA_FLAGS", f"--xla_force_host_platform_device_count=2 {quick.XLA_FLAGS}")
# Calls are compiled far longer than they run, more so under sanitizers; the kernels are not XLA's.
os.environ.setdefault("JAX_DISABLE_MOST_OPTIMIZATIONS", "1")

import hypothesis

from snnjax import _jax_compat, _targets
from tests.fuzz import files, handlers, ops, plans

_jax_compat.lower_with_few_dialects()
Fuzz = ops.Fuzz | handlers.Fuzz | files.Fuzz | plans.Fuzz
PARTS: dict[str, type[Fuzz]] = {
    "ops": ops.Fuzz,
    "handlers": handlers.Fuzz,
    "files": files.Fuzz,
    "hdf5": files.HDF5Fuzz,
    "plans": plans.Fuzz,
}


def run(fuzz: Fuzz, examples: int, seed: int, log: Path | None) -> Counter[str]:
    """Check so many examples, the same for the same seed; yields what was counted."""
    counted: Counter[str] = Counter()

    @hypothesis.seed(seed)
    @hypothesis.settings(
        max_examples=examples,
        deadline=None,
        database=None,
        print_blob=True,
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    @hypothesis.given(fuzz.strategy)
    def each(example) -> None:
        if log is not None:
            log.write_text(f"{dict(counted)}\n{example!r}\n")
        fuzz.check(example, counted)

    each()
    return counted


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz")
    parser.add_argument("--examples", type=int, default=300, help="of each part")
    parser.add_argument("--networks", type=int, default=6, help="how many forms of networks there are")
    parser.add_argument("--rounds", type=int, default=3, help="calls of an example, each with other numbers")
    parser.add_argument("--seed", type=int, help="of the examples; left out, it is drawn")
    parser.add_argument(
        "--parts", nargs="*", choices=PARTS, default=[each for each in PARTS if each != "plans"]
    )
    parser.add_argument("--log", type=Path, help="where the example at work and the counts go")
    arguments = parser.parse_args()
    sentence = _targets.missing()
    if sentence is not None:
        parser.error(sentence)
    seed = secrets.randbits(32) if arguments.seed is None else arguments.seed
    sys.stdout.write(f"seed {seed}\n")
    sys.stdout.flush()
    for part in arguments.parts:
        started = time.monotonic()
        fuzz = PARTS[part](arguments.networks, arguments.rounds)
        counted = run(fuzz, arguments.examples, seed, arguments.log)
        text = ", ".join(f"{number} {what}" for what, number in counted.items())
        sys.stdout.write(f"{part}, seed {seed}: {text} in {time.monotonic() - started:.0f} s\n")
        sys.stdout.flush()


main()
