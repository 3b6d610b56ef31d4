"""Compile networks for an H100 that is not there, and count what it would run.

    python -m tests.benchmarks.devices.gpu_compile --out out/gpu-compile [--only W3] [--quick]

XLA takes a description of the GPU, so launches, loops, memory and registers can be counted on any machine. Times
cannot: those in the table are estimates, by the assumptions in `gpu_counts`. Kernels are not tuned, which needs a GPU.
"""

import argparse
import functools
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jax.experimental import topologies

from snnjax import SparseSpikes
from snnjax._types import Params, Signal, State, Stats
from tests.benchmarks import workloads
from tests.benchmarks.devices.gpu_counts import counts_of
from tests.benchmarks.process import ROOT
from tests.benchmarks.programs import cameras, networks, neurons, residuals
from tests.benchmarks.programs.networks import TRAINING
from tests.benchmarks.timing import announce, say

H100 = """
gpu_device_info {
  threads_per_block_limit: 1024
  threads_per_warp: 32
  shared_memory_per_block: 49152
  shared_memory_per_core: 233472
  threads_per_core_limit: 2048
  core_count: 132
  fpus_per_core: 128
  block_dim_limit_x: 2147483647
  block_dim_limit_y: 65535
  block_dim_limit_z: 65535
  memory_bandwidth: 3352320000000
  l2_cache_size: 52428800
  clock_rate_ghz: 1.98
  device_memory_size: 84929347584
  shared_memory_per_block_optin: 232448
  cuda_compute_capability { major: 9 }
  registers_per_core_limit: 65536
  registers_per_block_limit: 65536
  driver_version: "12.9.0"
  compile_time_toolkit_version: "12.9.0"
}
platform_name: "CUDA"
dnn_version_info { major: 9 minor: 10 }
runtime_version { major: 12 minor: 9 }
device_description_str: "NVIDIA H100 80GB HBM3"
"""
ARCHITECTURE = "sm_90a"
PACKAGES = ROOT / "build/gpu-compile"
_USED = re.compile(r"Used (\d+) registers")
_SPILLED = re.compile(r"(\d+) bytes spill stores")
# Two rounds of unrolled steps.
QUICK_STEPS = 16


class Compiled(NamedTuple):
    """A row of the table."""

    program: str
    launches: int
    loops: int
    conditionals: int
    in_loops: int  # conditionals
    products: int
    temporary_mb: float
    registers: int  # of the kernel that uses most
    spilled: int  # bytes, of all kernels
    estimated_ms: float
    compile_s: float


class Program(NamedTuple):
    """A function and the shapes of its arguments."""

    function: Callable[..., Any]
    arguments: Any


def sized(plan, quick: bool):
    """A workload, shorter if only its counts in a test are of interest."""
    if not quick:
        return plan
    is_workload = isinstance(plan, workloads.Workload)
    return replace(plan, steps=QUICK_STEPS) if is_workload else plan._replace(steps=QUICK_STEPS)


def of_workload(workload: workloads.Workload, form: str, forward: Callable[..., Any]) -> Program:
    """A training step of W2 or W3."""
    shape = functools.partial(jax.ShapeDtypeStruct, dtype=jnp.float32)
    widths, spiking = workload.widths, len(workload.rates)
    layers = [
        workloads.Layer(
            shape((inputs, outputs)),
            shape((outputs, outputs)) if workload.recurrent and index < spiking else None,
        )
        for index, (inputs, outputs) in enumerate(pairwise(widths))
    ]
    inputs: Signal = shape(workload.input_shape)
    if form == "events":
        slots = max(1, round(2 * workload.rate * widths[0]))
        ids = jax.ShapeDtypeStruct((workload.steps, workload.batch, slots), jnp.int32)
        inputs = jax.eval_shape(lambda ids: SparseSpikes.from_ids(ids, widths[0]), ids)
    state = jax.eval_shape(optax.adam(workloads.LEARNING_RATE).init, layers)
    labels = jax.ShapeDtypeStruct((workload.batch,), jnp.int32)
    return Program(networks.task_of(forward, TRAINING, workload.readout), (layers, state, inputs, labels))


def of_network(net, inputs: tuple[int, ...], implementation: str | None, train: bool = False) -> Program:
    """A training step of a network, and if it has statistics, with those of the batch."""
    params = jax.eval_shape(lambda: net.init(jax.random.key(0)))
    stats = jax.eval_shape(lambda: net.initial_stats(jax.random.key(0)))
    optimiser = optax.adam(workloads.LEARNING_RATE)

    def step(params: Params, state: State, stats: Stats, inputs: Signal, labels):
        def loss(params: Params):
            options = {"stats": stats, "train": True} if train else {}
            out, _ = net.apply(params, None, inputs, implementation=implementation, **options)
            logits = jnp.sum(out.output, axis=0)
            loss = jnp.mean(optax.softmax_cross_entropy_with_integer_labels(logits, labels))
            return loss, out.stats

        (value, after), gradients = jax.value_and_grad(loss, has_aux=True)(params)
        updates, state = optimiser.update(gradients, state)
        return optax.apply_updates(params, updates), state, after, value

    given = jax.ShapeDtypeStruct(inputs, jnp.float32), jax.ShapeDtypeStruct(inputs[1:2], jnp.int32)
    return Program(step, (params, jax.eval_shape(optimiser.init, params), stats, *given))


def programs(quick: bool) -> Iterator[tuple[str, Callable[[], Program]]]:
    """By name, the training steps of all networks, full and with capacity, dense and as lists."""
    kernels = functools.partial(networks.through_snnjax, implementation="gpu")
    flat = (("W3", workloads.W3), ("W2, batch 128", workloads.w2(128)))
    for name, workload in flat:
        for kind, form, forward in (
            ("full", "dense", networks.through_snnjax),
            ("10 %", "dense", networks.capped),
            ("10 %", "events", networks.capped),
            ("full, kernel", "dense", kernels),
        ):
            made = functools.partial(of_workload, sized(workload, quick), form, forward)
            yield f"{name}, {kind}, {form}", made
    shape, camera = sized(neurons.Shape(), quick), sized(cameras.Camera(steps=10), quick)
    of = residuals.Residual(stages=2)
    for kind, by in (("full", None), ("10 %", None), ("full, kernel", "gpu")):
        capped = kind == "10 %"
        yield f"adLIF, {kind}, dense", functools.partial(of_neurons, shape, capped, by)
        if by is None:  # these run other ops too, which have no such kernel
            yield f"convolutions, {kind}, dense", functools.partial(of_camera, camera, capped)
            yield f"residual, {kind}, dense", functools.partial(of_residual, sized(of, quick), capped)


def of_neurons(shape: neurons.Shape, capped: bool, by: str | None) -> Program:
    """Recurrent layers of adaptive neurons."""
    net = neurons.net(shape, "adLIF", capped)
    return of_network(net, (shape.steps, shape.batch, shape.inputs), by)


def of_camera(camera: cameras.Camera, capped: bool) -> Program:
    """Convolutions."""
    return of_network(cameras.made(camera, capped), (camera.steps, camera.batch, *camera.shape), None)


def of_residual(of: residuals.Residual, capped: bool) -> Program:
    """A residual network with batch norms."""
    net = residuals.made(of, capped)
    return of_network(net, (of.steps, of.batch, of.edge, of.edge, 2), None, train=True)


def topology():
    """One H100."""
    return topologies.get_topology_desc("h100", "cuda", target_config=H100, topology="1x1x1")


def compile_program(name: str, made: Callable[[], Program], dumped: Path) -> Compiled:
    """Compile one of `programs`, and count what is in it."""
    (device, *_), start = topology().devices, time.perf_counter()
    sharding = jax.sharding.SingleDeviceSharding(device)
    function, arguments = made()
    placed = jax.tree.map(lambda leaf: leaf.update(sharding=sharding), arguments)
    kind = jax.sharding.AbstractDevice("NVIDIA H100", None, "cuda")
    with jax.sharding.use_abstract_mesh(jax.sharding.AbstractMesh((), (), abstract_device=kind)):
        compiled = jax.jit(function).trace(*placed).lower().compile()
    seconds = time.perf_counter() - start
    text = compiled.as_text()
    memory = compiled.memory_analysis()
    counts = counts_of(text)
    registers, spilled = registers_of(dumped)
    return Compiled(
        name,
        counts.launches,
        counts.loops,
        counts.conditionals,
        counts.in_loops,
        counts.products,
        round(memory.temp_size_in_bytes / 1e6, 1),
        registers,
        spilled,
        round(counts.milliseconds, 2),
        round(seconds, 1),
    )


def registers_of(dumped: Path) -> tuple[int, int]:
    """The most registers of a kernel, and the bytes that all kernels spill, by NVIDIA's assembler."""
    registers, spilled = 0, 0
    for ptx in dumped.glob("*.ptx"):
        command = ("ptxas", f"-arch={ARCHITECTURE}", "-v", str(ptx), "-o", os.devnull)
        said = subprocess.run(command, capture_output=True, text=True, check=True).stderr
        registers = max([registers, *map(int, _USED.findall(said))])
        spilled += sum(map(int, _SPILLED.findall(said)))
        ptx.unlink()
    return registers, spilled


def as_markdown(rows: Sequence[Compiled]) -> str:
    """The table."""
    head = [
        "program", "launches", "loops", "conditionals", "in loops", "products", "temporary MB", "registers",
        "bytes spilled", "estimated ms", "seconds to compile",
    ]  # fmt: skip
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *([str(each) for each in row] for row in rows)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def environment(packages: Path, dumped: str) -> dict[str, str]:
    """Of a process that compiles for a GPU with the packages of a folder."""
    (tools, *_) = sorted(packages.glob("nvidia/*/bin/ptxas"))
    home = str(tools.parents[1])
    dump = f"--xla_dump_to={dumped} --xla_dump_emitter_re=ptx"
    return {
        **os.environ,
        "JAX_PLATFORMS": "cpu,cuda",
        "JAX_SKIP_CUDA_CONSTRAINTS_CHECK": "1",
        "CUDA_VISIBLE_DEVICES": "",
        "PATH": f"{os.environ['PATH']}{os.pathsep}{tools.parent}",
        "PYTHONPATH": os.pathsep.join([str(packages), *filter(None, [os.environ.get("PYTHONPATH")])]),
        "TF_CPP_MIN_LOG_LEVEL": "3",
        "XLA_FLAGS": f"--xla_gpu_autotune_level=0 --xla_gpu_cuda_data_dir={home} {dump}",
    }


def main(words: Sequence[str] | None = None) -> None:
    """Compile, and write after each program, so that an interrupted run keeps what it has."""
    summary = str(__doc__).splitlines()[0]
    parser = argparse.ArgumentParser(
        prog="python -m tests.benchmarks.devices.gpu_compile", description=summary
    )
    parser.add_argument("--packages", type=Path, default=PACKAGES, help="folder of the compiler")
    parser.add_argument("--out", type=Path, default=Path("out/gpu-compile"), help="folder to write to")
    parser.add_argument(
        "--only", nargs="+", default=[""], help="programs whose names begin with one of these"
    )
    parser.add_argument("--quick", action="store_true", help="few time steps")
    parser.add_argument("--dumped", type=Path, help=argparse.SUPPRESS)  # set in the process that compiles
    given = parser.parse_args(words)
    given.out.mkdir(parents=True, exist_ok=True)
    if given.dumped is None:
        with tempfile.TemporaryDirectory() as dumped:
            command = [
                sys.executable,
                "-m",
                "tests.benchmarks.devices.gpu_compile",
                *(words or sys.argv[1:]),
                "--dumped",
                dumped,
            ]
            environ = environment(given.packages.absolute(), dumped)
            subprocess.run(command, check=True, cwd=ROOT, env=environ)
        return
    rows = list[Compiled]()
    for name, made in programs(given.quick):
        if not name.startswith(tuple(given.only)):
            continue
        announce(name)
        rows.append(compile_program(name, made, given.dumped))
        say(as_markdown(rows[-1:]).splitlines()[-1])
        (given.out / "counts.md").write_text(as_markdown(rows))
        (given.out / "counts.json").write_text(json.dumps([row._asdict() for row in rows], indent=1))


if __name__ == "__main__":
    main()
