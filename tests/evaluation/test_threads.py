"""The kernels under threads: bit-identical for any number of threads, from run to run, with other calls, under load."""

import functools
import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from tests.evaluation import kernel_program
from tests.evaluation.kernel_program import results_of_process
from tests.numbers import assert_same_bits
from tests.ops.kernel_checks import compiled, needs_kernels

pytestmark = needs_kernels


def arrays(results: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """All but the number of threads."""
    return {name: array for name, array in results.items() if name != "threads"}


@pytest.fixture(scope="module")
def of_one_thread(tmp_path_factory: pytest.TempPathFactory) -> dict[str, np.ndarray]:
    """The results of a process with one thread."""
    found = results_of_process(tmp_path_factory.mktemp("results") / "results.npz", NPROC="1")
    assert found["threads"] == 1
    return arrays(found)


@functools.cache
def here() -> dict[str, np.ndarray]:
    """The results in this process, over the threads of its four devices."""
    return kernel_program.results("cpu")


def test_process_and_run_change_no_bit(of_one_thread) -> None:
    assert_same_bits(arrays(here()), of_one_thread)
    for _ in range(2):
        assert_same_bits(arrays(kernel_program.results("cpu")), arrays(here()))


def test_sums_round_and_neurons_fire() -> None:
    """Otherwise another order of additions could not show."""
    for index in range(len(kernel_program.FORMS)):
        exact, rounded = (
            [here()[f"network {index} {kind} {place}"] for place in range(2)] for kind in ("exact", "rounded")
        )
        assert 0.01 < np.mean(rounded[1]) < 0.5
        assert np.any(rounded[0] != exact[0])


def test_calls_of_many_python_threads_at_once() -> None:
    """Each has its own results, whatever the others compute on the same pool."""
    form = kernel_program.FORMS[0]
    given = list(kernel_program.network_arguments(form).values())
    function = compiled(form, "cpu")

    def bits(number: int) -> list[bytes]:
        results, gradients = function(*given[number % 2])
        return [np.asarray(leaf).tobytes() for leaf in (results[0], *results[1], *gradients.values())]

    alone = [bits(0), bits(1)]
    assert alone[0] != alone[1]
    with ThreadPoolExecutor(8) as callers:
        assert list(callers.map(bits, range(64))) == alone * 32


@pytest.fixture
def busy_core() -> Iterator[str]:
    """The index of a core that another process keeps busy."""
    core = str(min(os.sched_getaffinity(0)))
    with subprocess.Popen(["taskset", "-c", core, sys.executable, "-c", "while True: pass"]) as other:
        yield core
        other.kill()


def test_number_of_threads_changes_no_bit_on_a_busy_machine(
    of_one_thread, busy_core: str, tmp_path: Path
) -> None:
    """Four threads share one core with another process: no thread waits for one that is not running, so it finishes."""
    on_core = results_of_process(
        tmp_path / "results.npz", "taskset", "-c", busy_core, kind="rounded", NPROC="4"
    )
    assert on_core["threads"] == 4
    found = arrays(on_core)
    assert len(found) > 30
    assert_same_bits(found, {name: of_one_thread[name] for name in found})
