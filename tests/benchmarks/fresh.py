"""Measurements that need a new process: import time, the first call, memory, and a given number of cores.

    python -m tests.benchmarks.fresh first_steps <workload> <alternative> <task>
    python -m tests.benchmarks.fresh on_cores <workload> <cores> <rounds> <alternative> ...
    python -m tests.benchmarks.fresh in_processes <workload> <processes> <rounds> <alternative>
    python -m tests.benchmarks.fresh on_ipus <workload> <alternative> <IPUs> <tiles of each>
    python -m tests.benchmarks.fresh beside_dense <workload> <tiles> <activity> ...

Workloads are written in JSON, and so are the answers.
"""

import ctypes
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.benchmarks import workloads
from tests.benchmarks.workloads import Workload

ROOT = Path(__file__).parents[2]
TRAINING_STEPS = 3
IPU_VERSION = "bow"
KIB_PER_MB = 1e6 / 1024
RESET_PEAK = "5"  # proc(5), /proc/pid/clear_refs: sets VmHWM back to VmRSS


def environment() -> dict[str, str]:
    """Without a compilation cache, which would make the first call look fast."""
    return {name: text for name, text in os.environ.items() if name != "JAX_COMPILATION_CACHE_DIR"}


def seconds_of(program: str) -> float:
    """The wall time of a new interpreter that runs `program`."""
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", program], check=True, cwd=ROOT, env=environment())
    return time.perf_counter() - start


def command(task: str, workload: Workload, *words: object) -> list[str]:
    return [
        sys.executable,
        "-m",
        "tests.benchmarks.fresh",
        task,
        workloads.as_json(workload),
        *map(str, words),
    ]


def ask(task: str, workload: Workload, *words: object) -> Any:
    """What a new process prints for one of the tasks below."""
    own = command(task, workload, *words)
    done = subprocess.run(own, cwd=ROOT, env=environment(), stdout=subprocess.PIPE, check=True, text=True)
    return json.loads(done.stdout.splitlines()[-1])  # above it may stand what libraries print


def memory_mb(field: str) -> float:
    """`VmRSS`, the memory now, or `VmHWM`, its peak, in MB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    kib = next(int(line.split()[1]) for line in lines if line.startswith(f"{field}:"))
    return kib / KIB_PER_MB


def settle() -> bool:
    """Return freed memory, and reset the peak; False if the system does not allow it."""
    ctypes.CDLL(None).malloc_trim(0)
    try:
        Path("/proc/self/clear_refs").write_text(RESET_PEAK)
    except OSError:
        return False
    return True


def first_steps(workload: Workload, alternative: str, task: str) -> dict[str, Any]:
    """Seconds of the first training step, and by how many MB three of them raise the peak over the set-up."""
    import jax

    from tests.benchmarks import networks

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


def on_cores(workload: Workload, cores: str, rounds: str, *names: str) -> list[tuple[str, list[float]]]:
    """Seconds of a training step on the first `cores` cores that this process may use."""
    own = sorted(os.sched_getaffinity(0))
    # Before JAX is imported: it starts a thread per core that it sees.
    os.sched_setaffinity(0, own[: int(cores)])
    from tests.benchmarks import networks, timing

    times = timing.measure(networks.timers(workload, names, [networks.TRAINING]), int(rounds))
    return [(name, seconds) for (_, name), seconds in times.items()]


def in_processes(
    workload: Workload, processes: str, rounds: str, name: str, port: str = "", index: str = "0"
) -> dict[str, Any]:
    """A data-parallel training step of so many processes; the first, which has no port, starts the others."""
    number, own = int(processes), int(index)
    port = port or free_port()
    words = processes, rounds, name, port
    others = [
        subprocess.Popen(
            command("in_processes", workload, *words, other), cwd=ROOT, stdout=subprocess.DEVNULL
        )
        for other in range(1, number if own == 0 else 1)
    ]
    cores = sorted(os.sched_getaffinity(0))
    # Before JAX is imported: it starts a thread per core that it sees.
    os.sched_setaffinity(0, cores[own::number] if number > 1 else cores)
    import jax

    if number > 1:
        jax.distributed.initialize(f"127.0.0.1:{port}", number, own)
    from tests.benchmarks import data_parallel

    answer = data_parallel.measured(workload, name, int(rounds))
    if number > 1:
        jax.distributed.shutdown()  # waits for the others, which end only then
    for other in others:
        if other.wait() != 0:
            raise RuntimeError("one of the processes failed; its error stands above")
    return answer


def free_port() -> str:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return str(free.getsockname()[1])


def on_ipus(workload: Workload, alternative: str, ipus: str, tiles: str) -> dict[str, float]:
    """What a training step on modelled IPUs would take, and what the model takes."""
    os.environ.update(SNNJAX_IPU_DEVICES=ipus, SNNJAX_IPU_TILES=tiles, SNNJAX_IPU_VERSION=IPU_VERSION)
    from tests.benchmarks import ipus as measured  # JAX looks for devices when it is first used

    return measured.training(workload, alternative, int(ipus))


def beside_dense(workload: Workload, tiles: str, *activities: str) -> dict[str, float]:
    """Modelled cycles of a time step, dense and sparse at each activity."""
    os.environ.update(SNNJAX_IPU_DEVICES="1", SNNJAX_IPU_TILES=tiles, SNNJAX_IPU_VERSION=IPU_VERSION)
    from tests.benchmarks import beside_dense as measured

    return measured.cycles_of_a_step(workload, tuple(map(float, activities)))


def pipelined(
    workload: Workload, tiles: str, ipus: str, pieces: str, rounds: str
) -> dict[str, dict[str, float]]:
    """Modelled cycles and memory of a training step on one IPU and in pipelines, and what of the ideal that is."""
    os.environ.update(SNNJAX_IPU_DEVICES=ipus, SNNJAX_IPU_TILES=tiles, SNNJAX_IPU_VERSION=IPU_VERSION)
    from tests.benchmarks import pipelines as measured

    return measured.of_a_step(workload, int(ipus), int(pieces), int(rounds))


def main(arguments: Sequence[str]) -> None:
    task, workload, *words = arguments
    known = (first_steps, on_cores, in_processes, on_ipus, beside_dense, pipelined)
    tasks: dict[str, Any] = {each.__name__: each for each in known}
    sys.stdout.write(json.dumps(tasks[task](workloads.from_json(workload), *words)))


if __name__ == "__main__":
    main(sys.argv[1:])
