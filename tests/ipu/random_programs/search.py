"""Random programs on the modelled IPU beside the CPU: `python -m tests.ipu.random_programs.search --programs 10000`.

Every result must be the CPU's, bit for bit, or, with ``--kind networks``, that of `lif_network` on the CPU. A program
that differs, or that one of the two refuses, is reported with the command that repeats it.
"""

import argparse
import functools
import multiprocessing
import os
import sys
import warnings
from typing import Any, NamedTuple

import jax
import numpy as np

from tests.ipu.random_programs.networks import check_network
from tests.ipu.random_programs.programs import Program, arguments_of, drawn_program, function_of

SHARE = 100  # programs of one process, in which compiled programs stay


class Miss(NamedTuple):
    """A program that differs, and the first line of how."""

    seed: int
    why: str


def check_program(seed: int, ipu: jax.Device) -> None:
    """The results of all rounds on the IPU are those on the CPU."""
    program = drawn_program(seed)
    (cpu,) = jax.devices("cpu")[:1]
    actual = results_on(ipu, program, seed, program.donated)
    try:
        compare(actual, results_on(cpu, program, seed, ()))
    except AssertionError:
        # XLA's compiler for the CPU errs at times: it takes |x * x| for x * x in int32, which overflows. Where the two
        # differ, operations one by one decide.
        with jax.disable_jit():
            compare(actual, results_on(cpu, program, seed, ()))


def compare(actual: list[dict[int, Any]], expected: list[dict[int, Any]]) -> None:
    """Check that the results of all rounds are the same, to the bit."""
    for round_, (ours, theirs) in enumerate(zip(actual, expected, strict=True)):
        for place, array in ours.items():
            got, other = np.asarray(array), np.asarray(theirs[place])
            assert (got.dtype, got.shape) == (other.dtype, other.shape)
            np.testing.assert_array_equal(got, other, f"round {round_}, result {place}")


def results_on(
    device: jax.Device, program: Program, seed: int, donated: tuple[int, ...]
) -> list[dict[int, Any]]:
    """For each round the results that are still there at the end: those that no later round was given for good."""
    function = jax.jit(function_of(program), donate_argnums=donated)
    rounds: list[dict[int, Any]] = []
    arguments: list[Any] = []
    for round_ in range(program.rounds):
        fresh = jax.device_put(arguments_of(program, seed + round_), device)
        for place, result in enumerate(program.fed if rounds else ()):
            if result is not None:
                is_given_away = place in program.donated
                fresh[place] = rounds[-1].pop(result) if is_given_away else rounds[-1][result]
            elif place not in program.donated:
                fresh[place] = arguments[place]
        arguments = fresh
        with warnings.catch_warnings():  # that a donated argument has no result of its type
            warnings.simplefilter("ignore", UserWarning)
            results = function(*arguments)
        rounds.append(dict(enumerate(results)))
    return rounds


def outcome(kind: str, seed: int, ipu: jax.Device) -> str:
    """Why a program fails, in one line; empty if it does not."""
    try:
        (check_network if kind == "networks" else check_program)(seed, ipu)
    except Exception as error:  # of any kind: an error is a miss, too
        return " ".join(str(error).split())[:300] or "differs"
    finally:
        jax.clear_caches()
    return ""


def check_share(kind: str, seeds: range) -> list[Miss]:
    """Those of a share of the programs that fail."""
    ipu = jax.devices("ipu")[0]
    return [Miss(seed, why) for seed in seeds if (why := outcome(kind, seed, ipu))]


def set_up(tiles: int) -> None:
    """Configure a process that compiles nothing but such programs, fast."""
    os.environ["SNNJAX_IPU_TILES"] = str(tiles)
    os.environ["XLA_FLAGS"] = "--xla_backend_optimization_level=0 --xla_cpu_use_fusion_emitters=false"
    jax.config.update("jax_platforms", "cpu,ipu")


def check_all(kind: str, seeds: range, tiles: int, workers: int) -> list[Miss]:
    """The programs that fail, as they are found."""
    shares = [seeds[start : start + SHARE] for start in range(0, len(seeds), SHARE)]
    missed: list[Miss] = []
    spawn = multiprocessing.get_context("spawn")
    with spawn.Pool(workers, set_up, (tiles,), maxtasksperchild=1) as pool:
        for done, found in enumerate(pool.imap_unordered(functools.partial(check_share, kind), shares), 1):
            missed += found
            for miss in found:
                options = f"--kind {kind} --tiles {tiles} --programs 1 --first-seed {miss.seed}"
                sys.stdout.write(f"python -m tests.ipu.random_programs.search {options}: {miss.why}\n")
            checked = min(done * SHARE, len(seeds))
            sys.stdout.write(f"{checked:,} {kind}, {len(missed)} misses\n")
            sys.stdout.flush()
    return missed


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.ipu.random_programs.search")
    parser.add_argument("--kind", choices=("programs", "networks"), default="programs")
    parser.add_argument("--programs", type=int, default=10_000)
    parser.add_argument("--first-seed", type=int, default=0, help="another number gives other programs")
    parser.add_argument("--tiles", type=int, default=4, help="of the modelled IPU; networks have their own")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    given = parser.parse_args()
    seeds = range(given.first_seed, given.first_seed + given.programs)
    sys.exit(bool(check_all(given.kind, seeds, given.tiles, given.workers)))


if __name__ == "__main__":
    main()
