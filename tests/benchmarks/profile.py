"""Where the time of a training step and of inference goes: the share of each phase, as perf of Linux samples it.

    python -m tests.benchmarks.profile W3 [--seconds 10]

Shares are those of the CPU time of all threads. Of the cores that the process may use, what is left over is idle.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax

from tests.benchmarks import phases
from tests.benchmarks.compare import Refusal, refuse
from tests.benchmarks.plan import Plan, quick
from tests.benchmarks.programs import cameras, networks
from tests.benchmarks.programs.networks import INFERENCE, TRAINING
from tests.benchmarks.timing import say

EVENTS, LISTS = "snnjax, events", "snnjax, events, capacity 10 %"
COLUMNS = {
    TRAINING: (EVENTS, TRAINING),
    f"{TRAINING}, lists of 10 %": (LISTS, TRAINING),
    INFERENCE: (EVENTS, INFERENCE),
}
WORKLOADS = ("W1", "W2", "W3", "W7")
FREQUENCY = (
    499  # samples a second of each core; a prime, so that they do not fall in step with what is sampled
)
STACK_BYTES = 2048  # kept of each sample's stack: kernels keep little there, and callers are few

# A program and its arguments.
Program = tuple[Callable[..., Any], tuple[Any, ...]]


class Profile(NamedTuple):
    """What was sampled while a program ran again and again."""

    samples: Counter[str]  # by phase
    milliseconds: float  # of a call
    cpu_milliseconds: float  # of a call, all threads together
    sees_system: bool  # whether samples reach into the operating system

    @property
    def idle(self) -> float:
        """The share of the cores."""
        return max(0.0, 1 - self.cpu_milliseconds / (self.milliseconds * len(os.sched_getaffinity(0))))


def program(plan: Plan, workload: str, alternative: str, task: str) -> Program:
    if workload == "W7":
        return cameras.program(plan.cameras[0], alternative, task)
    of = {"W1": plan.single[-1][-1], "W2": plan.recurrent[0], "W3": plan.deep}[workload]
    given = networks.arguments(of, alternative, task)()
    return networks.compiled(alternative, task, of.readout), given


def perf() -> str:
    found = shutil.which("perf")
    if found is None:
        hint = (
            "Install the tools of the Linux kernel: `linux-perf` on Debian, `linux-tools-generic` on Ubuntu"
        )
        refuse("perf", "be installed", "no such program", hint)
    return found


def profile(of: Program, seconds: float) -> Profile:
    """Run the program until perf has sampled so long."""
    run, given = of
    for _ in range(2):  # compiles, and finds its memory
        jax.block_until_ready(run(*given))
    with tempfile.TemporaryDirectory() as folder, recording(Path(folder, "perf.data"), seconds) as recorder:
        calls, start, cpu_start = 0, time.perf_counter(), time.process_time()
        while recorder.poll() is None:
            jax.block_until_ready(run(*given))
            calls += 1
        wall, cpu = time.perf_counter() - start, time.process_time() - cpu_start
        stacks = sampled(recorder, Path(folder, "perf.data"))
    sees_system = any("[kernel" in frame.library for stack in stacks for frame in stack)
    counts = Counter(phases.phase_of(stack) for stack in stacks)
    return Profile(counts, 1e3 * wall / calls, 1e3 * cpu / calls, sees_system)


def recording(path: Path, seconds: float) -> subprocess.Popen[str]:
    """perf, which samples this process until `sleep` ends."""
    what = ["--pid", f"{os.getpid()}", "--freq", f"{FREQUENCY}", "--call-graph", f"dwarf,{STACK_BYTES}"]
    command = [perf(), "record", "--quiet", *what, "--output", f"{path}", "--", "sleep", f"{seconds}"]
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True)


def sampled(recorder: subprocess.Popen[str], path: Path) -> list[list[phases.Frame]]:
    """The stacks that perf has recorded."""
    said = recorder.communicate()[1]
    if recorder.returncode != 0:
        hint = "Let it: `sysctl kernel.perf_event_paranoid=1`"
        refuse("perf", "be allowed to sample this process", repr(said.strip()), hint)
    command = [perf(), "script", "--no-inline", "--fields", "ip,sym,dso", "--input", f"{path}"]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    stacks = phases.stacks(text)
    if not any(frame.is_ours and phases.own_name(frame.function) for stack in stacks for frame in stack):
        hint = "Build them with `make kernels`, which strips no names"
        refuse(
            "CPU kernels", "run, with the names of their functions", f"{len(stacks)} samples without", hint
        )
    return stacks


def as_markdown(profiles: Mapping[str, Profile]) -> str:
    """Phases down, programs across."""
    lines = [f"| % of the CPU time | {' | '.join(profiles)} |", "| --- |" + " ---: |" * len(profiles)]
    for phase in phases.ALL:
        shares = (each.samples[phase] / each.samples.total() for each in profiles.values())
        lines.append(f"| {phase} | {' | '.join(f'{100 * share:.1f}' for share in shares)} |")
    lines += [line_of(*row) for row in figures(profiles)]
    if not all(each.sees_system for each in profiles.values()):
        lines += ["", f"perf may not see the operating system here: a share of {phases.PAGES} is left out."]
    return "\n".join(lines)


def figures(profiles: Mapping[str, Profile]) -> Iterator[tuple[str, list[str]]]:
    """What the shares are shares of."""
    yield "milliseconds of a call", [f"{each.milliseconds:.1f}" for each in profiles.values()]
    yield "of them the CPU's, all threads", [f"{each.cpu_milliseconds:.1f}" for each in profiles.values()]
    yield "idle, % of the cores", [f"{100 * each.idle:.0f}" for each in profiles.values()]
    yield "samples", [f"{each.samples.total()}" for each in profiles.values()]


def line_of(name: str, cells: Sequence[str]) -> str:
    return f"| {name} | {' | '.join(cells)} |"


def arguments(words: Sequence[str] | None) -> argparse.Namespace:
    summary = str(__doc__).splitlines()[0]
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.profile", description=summary)
    parser.add_argument("workload", choices=WORKLOADS)
    parser.add_argument("--seconds", type=float, default=10.0, help="to sample each program")
    parser.add_argument("--quick", action="store_true", help="tiny sizes: only shows that it runs")
    return parser.parse_args(words)


def main(words: Sequence[str] | None = None) -> int:
    """The command line; returns the exit status."""
    given = arguments(words)
    plan = quick() if given.quick else Plan()
    try:
        perf()  # before anything is compiled
        profiles = {
            column: profile(program(plan, given.workload, *what), given.seconds)
            for column, what in COLUMNS.items()
        }
    except Refusal as error:
        sys.stderr.write(f"{error}\n")
        return 2
    say(as_markdown(profiles))
    return 0


if __name__ == "__main__":
    sys.exit(main())
