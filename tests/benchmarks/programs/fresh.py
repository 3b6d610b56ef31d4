"""What only a new process can measure: import time, the first call, memory, and a given number of cores or IPUs.

All but `seconds_of` run in such a process, by `process.ask` or as its program.
"""

import ctypes
import functools
import os
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.benchmarks.process import ROOT, Held, Process, environment
from tests.benchmarks.timing import Timer
from tests.benchmarks.workloads import Workload

TRAINING_STEPS = 3
IPU_VERSION = "bow"
KIB_PER_MB = 1e6 / 1024
RESET_PEAK = "5"  # proc(5), /proc/pid/clear_refs: sets VmHWM back to VmRSS


def seconds_of(program: str) -> float:
    """The wall time of a new interpreter that runs `program`."""
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", program], check=True, cwd=ROOT, env=environment())
    return time.perf_counter() - start


def memory_mb(field: str) -> float:
    """`VmRSS`, the memory now, or `VmHWM`, its peak, in MB."""
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    kib = next(int(line.split()[1]) for line in lines if line.startswith(f"{field}:"))
    return kib / KIB_PER_MB


def settle() -> bool:
    """Return freed memory, and reset the peak; False if the system does not allow it."""
    ctypes.CDLL(None).malloc_trim(0)
    try:
        Path("/proc/self/clear_refs").write_text(RESET_PEAK, encoding="utf-8")
    except OSError:
        return False
    return True


def first_steps(workload: Workload, alternative: str, task: str) -> dict[str, Any]:
    """Seconds of the first training step, and by how many MB three of them raise the peak over the set-up."""
    import jax

    from tests.benchmarks.programs import networks

    step = networks.compiled(alternative, task, workload.readout)
    layers, state, inputs, labels = jax.block_until_ready(networks.arguments(workload, alternative, task)())
    # As in a training loop, nobody else holds the initial parameters.
    networks.data.cache_clear()
    networks.optimiser_state.cache_clear()
    settled = settle()
    before, start = memory_mb("VmRSS"), time.perf_counter()
    layers, state, _ = jax.block_until_ready(step(layers, state, inputs, labels))
    first = time.perf_counter() - start
    for _ in range(TRAINING_STEPS - 1):
        layers, state, _ = jax.block_until_ready(step(layers, state, inputs, labels))
    return {"seconds": first, "growth": memory_mb("VmHWM") - before if settled else None}


def use_cores(cores: Sequence[int]) -> None:
    """Before JAX is imported: it starts a thread per core that it sees."""
    os.sched_setaffinity(0, cores)


def on_cores(workload: Workload, cores: int, name: str) -> Timer:
    """Of a training step on the first `cores` cores that this process may use."""
    use_cores(sorted(os.sched_getaffinity(0))[:cores])
    from tests.benchmarks.programs import networks

    return networks.timed(workload, name, networks.TRAINING)


def in_processes(
    workload: Workload, number: int, rounds: int, name: str, port: str = "", own: int = 0
) -> dict[str, Any]:
    """A data-parallel training step of so many processes; the first, which has no port, starts the others."""
    port = port or free_port()
    others = [Process() for _ in range(1, number if own == 0 else 1)]
    for index, other in enumerate(others, 1):
        other.send(Held.ask, functools.partial(in_processes, workload, number, rounds, name, port, index))
    cores = sorted(os.sched_getaffinity(0))
    use_cores(cores[own::number] if number > 1 else cores)
    import jax

    if number > 1:
        jax.distributed.initialize(f"127.0.0.1:{port}", number, own)
    from tests.benchmarks.programs import data_parallel

    answer = data_parallel.measured(workload, name, rounds)
    if number > 1:
        jax.distributed.shutdown()  # waits for the others, which end only then
    for other in others:
        other.answer()
        other.close()
    return answer


def free_port() -> str:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return str(free.getsockname()[1])


def use_ipus(number: int, tiles: int) -> None:
    """Before JAX is imported: it looks for devices when it is first used."""
    settings = {"DEVICES": f"{number}", "TILES": f"{tiles}", "VERSION": IPU_VERSION}
    os.environ.update({f"SNNJAX_IPU_{name}": value for name, value in settings.items()})


def on_ipus(workload: Workload, alternative: str, ipus: int, tiles: int) -> dict[str, float]:
    """What a training step on modelled IPUs would take, and what the model takes."""
    use_ipus(ipus, tiles)
    from tests.benchmarks.devices import ipus as measured

    return measured.training(workload, alternative, ipus)


def pipelined(
    workload: Workload, tiles: int, ipus: int, pieces: int, rounds: int
) -> dict[str, dict[str, float]]:
    """Modelled cycles and memory of a training step on one IPU and in pipelines, and what of the ideal that is."""
    use_ipus(ipus, tiles)
    from tests.benchmarks.devices import pipelines as measured

    return measured.of_a_step(workload, ipus, pieces, rounds)
