"""JAX's own tests on the modelled IPU: `python -m tests.ipu.conformance FOLDER`, FOLDER holding JAX's `tests/`.

None of these tests is copied: give a checkout of JAX, of the version installed. One process runs a file; where it
dies, another goes on behind the case that killed it. A case passes, is skipped by the suite itself, or is refused: by
an error of `UNIMPLEMENTED`, or one of ours, raised when the program is compiled, also because it does not fit on the
tiles. All else counts against the device, and is named.
"""

import argparse
import collections
import json
import os
import random
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LIMIT = 120  # seconds for a case; the model runs some of them slower than a CPU by far
TILES = 16  # enough for what they compute, and fast
PASSED, SKIPPED, REFUSED, WRONG, OTHER, CRASHED = (
    "pass",
    "skipped",
    "refused",
    "wrong",
    "other error",
    "crash or hang",
)
# An error of this project: ``op: `argument` must <expected>, got <actual>. <hint>.``
OURS = re.compile(r"[\w.]+: `.+` must .+, got .+\. .+\.", re.DOTALL)
# JAX's own refusal of a primitive of a test that calls Python in a way of its own.
FOREIGN = "`EmitPythonCallback` not supported on ipu backend."
AGAINST = (WRONG, OTHER, CRASHED)


class Recorder:
    """A plugin of pytest that runs chosen cases, and writes a line when one begins and when it has ended."""

    def __init__(self, cases: int | None, seed: int, known: set[str], out: Path) -> None:
        self.cases, self.seed, self.known, self.out = cases, seed, known, out

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """A random order, the same in each process; without what an earlier process has ended or died of."""
        items.sort(key=lambda item: item.nodeid)
        random.Random(self.seed).shuffle(items)
        items[:] = [item for item in items[: self.cases] if item.nodeid not in self.known]

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """Until its outcome is known, a case may be the last one."""
        self._write(nodeid, CRASHED, "")

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[None]):
        """The outcome of a case, from what it raised."""
        report = yield
        if call.when == "call" or call.excinfo:
            self._write(item.nodeid, *outcome_of(call.excinfo.value if call.excinfo else None))
        return report

    def _write(self, case: str, outcome: str, why: str) -> None:
        with self.out.open("a") as file:
            file.write(json.dumps([case, outcome, why]) + "\n")


def outcome_of(error: BaseException | None) -> tuple[str, str]:
    """The outcome of a case that raised `error`, and the error's first line."""
    if error is None:
        return PASSED, ""
    text = str(error).strip()
    why = f"{type(error).__name__}: {text.splitlines()[0] if text else ''}"
    if type(error).__name__ in ("SkipTest", "Skipped"):
        return SKIPPED, why
    compiling = isinstance(error, NotImplementedError) or "RESOURCE_EXHAUSTED: " in text
    if "UNIMPLEMENTED: " in text or FOREIGN in text or (compiling and OURS.search(text)):
        return REFUSED, why
    return (WRONG if "Mismatched elements" in text or "Not equal to tolerance" in text else OTHER), why


def run_file(file: Path, options: argparse.Namespace, out: Path) -> dict[str, tuple[str, str]]:
    """The outcome of each case of a file."""
    known: dict[str, tuple[str, str]] = {}
    arguments = ["--file", str(file), "--seed", str(options.seed), "--out", str(out)]
    arguments += [] if options.cases is None else ["--cases", str(options.cases)]
    environment = os.environ | {
        "JAX_PLATFORMS": "ipu,cpu",
        "SNNJAX_IPU_TILES": str(TILES),
        "PYTHONPATH": str(ROOT),
    }
    command = [sys.executable, "-m", "tests.ipu.conformance", str(options.folder), *arguments]
    while True:
        before = len(known)
        ended = _run(command, options.folder, environment, out)
        known = {case: (outcome, why) for case, outcome, why in _lines(out)}
        if ended:
            return known
        if len(known) == before:
            return known | {str(file): (CRASHED, "no case of it could be begun")}


def _run(command: list[str], folder: Path, environment: dict[str, str], out: Path) -> bool:
    """Whether a process came to its end by itself; one in which nothing has ended for so long is killed."""
    process = subprocess.Popen(
        command, cwd=folder, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    lines = -1
    while True:
        try:
            return process.wait(LIMIT) in (
                pytest.ExitCode.OK,
                pytest.ExitCode.TESTS_FAILED,
                pytest.ExitCode.NO_TESTS_COLLECTED,
            )
        except subprocess.TimeoutExpired:
            now = len(list(_lines(out)))
            if now == lines:
                process.kill()
            lines = now


def _lines(out: Path) -> Iterator[tuple[str, str, str]]:
    if out.exists():
        for line in out.read_text(encoding="utf-8").splitlines():
            case, outcome, why = json.loads(line)
            yield case, outcome, why


def run_cases(options: argparse.Namespace) -> int:
    """Run the cases of one file in this process."""
    known = {case for case, _, _ in _lines(options.out)}
    recorder = Recorder(options.cases, options.seed, known, options.out)
    return pytest.main(["-q", "-p", "no:cacheprovider", "-p", "no:xdist", str(options.file)], [recorder])


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; 1 where a case counts against the device."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "folder", type=Path, help="a checkout of JAX, or its folder tests/ with a conftest.py beside it"
    )
    parser.add_argument("--only", nargs="+", help="files by name, such as lax_test")
    parser.add_argument("--cases", type=int, help="so many of each file, drawn at random (default: all)")
    parser.add_argument("--seed", type=int, default=0, help="of the order and of the draw")
    parser.add_argument("--out", type=Path, default=Path("out/conformance"), help="folder of the outcomes")
    parser.add_argument("--file", type=Path, help=argparse.SUPPRESS)  # in the processes that run cases
    options = parser.parse_args(arguments)
    options.folder, options.out = options.folder.resolve(), options.out.resolve()
    if options.file is not None:
        return run_cases(options)
    files = sorted((options.folder / "tests").glob("*_test.py"))
    if not files:
        parser.error(f"folder: {options.folder} must hold tests/*_test.py, got none. Pass a checkout of JAX.")
    options.out.mkdir(parents=True, exist_ok=True)
    total: collections.Counter[str] = collections.Counter()
    for file in files:
        if options.only and file.stem not in options.only:
            continue
        out = options.out / f"{file.stem}.jsonl"
        out.unlink(missing_ok=True)
        found = run_file(file, options, out)
        counts = collections.Counter(outcome for outcome, _ in found.values())
        total += counts
        _say(f"{file.stem:<32}{_counted(counts)}\n")
        for case, (outcome, why) in found.items():
            if outcome in AGAINST:
                _say(f"  {outcome}: {case}: {why[:200]}\n")
    _say(f"{'all':<32}{_counted(total)}\n")
    return int(any(total[outcome] for outcome in AGAINST))


def _counted(counts: collections.Counter[str]) -> str:
    return ", ".join(f"{counts[name]} {name}" for name in (PASSED, SKIPPED, REFUSED, *AGAINST))


def _say(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
