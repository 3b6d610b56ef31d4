"""This side of the processes in which peers run."""

import contextlib
import functools
import subprocess
from collections.abc import Iterator, Sequence

from tests.benchmarks import workloads
from tests.benchmarks.fresh import ROOT
from tests.benchmarks.peers import INFERENCE, PEERS, TRAINING
from tests.benchmarks.timing import Timer, say
from tests.benchmarks.workloads import Workload

TASKS = (INFERENCE, TRAINING)


class PeerProcess:
    """One peer with one workload, waiting for tasks."""

    def __init__(self, python: str, peer: str, workload: Workload) -> None:
        command = [python, "-W", "ignore", "-m", "tests.benchmarks.peers", peer, workloads.as_json(workload)]
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(command, cwd=ROOT, stdin=pipe, stdout=pipe, text=True, bufsize=1)
        self.peer, self.version = peer, self._answer()

    def seconds(self, task: str, calls: int) -> float:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{task},{calls}\n")
        return float(self._answer())

    def close(self) -> None:
        self._process.communicate()

    def _answer(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError("the process of a peer ended early; its error stands above")
        return line.strip()


@functools.cache
def python_with(package: str, interpreters: tuple[str, ...]) -> str | None:
    """The first interpreter in which a package is installed."""
    program = f"import importlib.util, sys; sys.exit(importlib.util.find_spec({package!r}) is None)"
    for python in interpreters:
        if subprocess.run([python, "-c", program], check=False).returncode == 0:
            return python
    return None


@contextlib.contextmanager
def timers(workload: Workload, interpreters: Sequence[str]) -> Iterator[dict[tuple[str, str], Timer]]:
    """One timer per task and peer, of those that are installed."""
    with contextlib.ExitStack() as stack:
        made: dict[tuple[str, str], Timer] = {}
        for name, peer in PEERS.items() if interpreters else ():
            python = python_with(peer.package, tuple(interpreters))
            if python is None:
                say(f"skipped {name}: {peer.package} is not installed in {' or '.join(interpreters)}")
                continue
            process = PeerProcess(python, name, workload)
            stack.callback(process.close)
            for task in TASKS:
                made[task, f"{name} {process.version}"] = functools.partial(process.seconds, task)
        yield made
