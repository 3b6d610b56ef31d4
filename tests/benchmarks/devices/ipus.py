"""Training steps on modelled IPUs: what they would take there, and what the model itself takes.

Nothing of this is measured on hardware; ``xla_ext/ipu_model/README.md`` says how far the model is off.
"""

import functools
import time
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from jax.sharding import AxisType, NamedSharding, PartitionSpec

from snnjax._types import Signal, State
from snnjax.ipu import read_profile
from tests.benchmarks import workloads
from tests.benchmarks.devices import beside_dense
from tests.benchmarks.programs import networks
from tests.benchmarks.programs.networks import DONATED
from tests.benchmarks.workloads import Workload

DENSE = {
    "plain JAX, float32": beside_dense.unrolled,
    "plain JAX, products of halves": functools.partial(beside_dense.unrolled, product=beside_dense.of_halves),
}
SPARSE = "snnjax, lists as long as the layers are active"
MODELLED, COMPILATION, MODEL, CPU = (
    "modelled time of a step",
    "compilation",
    "a step on the model",
    "on the CPU",
)
UNITS = {MODELLED: "microseconds", COMPILATION: "milliseconds of the host", MODEL: "milliseconds of the host"}
UNITS[CPU] = UNITS[MODEL]
TURNS = 3
AXIS = "data"


def forward_of(workload: Workload, alternative: str) -> tuple[networks.Forward, str]:
    """How the network is computed, and the form of its inputs."""
    if alternative in DENSE:
        return DENSE[alternative], "dense"
    return functools.partial(networks.through_snnjax, capacity_share=workload.rates[0]), "events"


def data_parallel(forward: networks.Forward, readout: bool, mesh: jax.sharding.Mesh) -> Callable[..., Any]:
    """A training step that donates, each device with an equal part of the batch."""
    loss = networks.loss_of(forward, readout)

    def train(layers, state: State, inputs: Signal, labels: jax.Array):
        value, gradients = jax.lax.pmean(jax.value_and_grad(loss)(layers, inputs, labels), AXIS)
        return (*networks.updated(layers, state, gradients), value)

    shared, of_batch = PartitionSpec(), PartitionSpec(AXIS)
    specs = (shared, shared, PartitionSpec(None, AXIS), of_batch)
    # Unchecked: the plain network's first membranes are zeros, which vary over no axis.
    mapped = jax.shard_map(train, mesh=mesh, in_specs=specs, out_specs=shared, check_vma=False)
    return jax.jit(mapped, donate_argnums=(0, 1))


def training(workload: Workload, alternative: str, num_ipus: int) -> dict[str, float]:
    """Each in its unit of `UNITS`; on several IPUs the modelled time alone."""
    jax.config.update("jax_platforms", "cpu,ipu")
    devices = jax.devices("ipu")[:num_ipus]
    forward, form = forward_of(workload, alternative)
    layers, forms = networks.data(workload)
    labels = workloads.labels(workload)
    arguments = jax.tree.map(np.asarray, (layers, networks.optimiser_state(workload), forms[form], labels))

    if num_ipus > 1:
        mesh = jax.make_mesh((num_ipus,), (AXIS,), (AxisType.Auto,), devices=devices)
        step = data_parallel(forward, workload.readout, mesh)
        parts = (PartitionSpec(), PartitionSpec(), PartitionSpec(None, AXIS), PartitionSpec(AXIS))
        each = [
            placed_as(leaf, NamedSharding(mesh, part)) for leaf, part in zip(arguments, parts, strict=True)
        ]
        return {MODELLED: modelled(step, each)[0]}
    task = networks.task_of(forward, DONATED, workload.readout)
    step = jax.jit(task, donate_argnums=networks.donated(DONATED))
    seconds, compilation, on_model = modelled(step, placed_as(arguments, devices[0]))
    cpu = jax.devices("cpu")[0]
    on_cpu = min(wall(step, placed_as(arguments, cpu)) for _ in range(TURNS))
    return {MODELLED: seconds, COMPILATION: compilation, MODEL: on_model, CPU: on_cpu}


def placed_as(tree, where):
    return jax.tree.map(lambda leaf: jax.device_put(leaf, where), tree)


def modelled(step: Callable[..., Any], arguments) -> tuple[float, float, float]:
    """Microseconds on the chip; milliseconds of compilation and of a step of the model."""
    start = time.perf_counter()
    compiled = step.lower(*arguments).compile()
    compilation = 1e3 * (time.perf_counter() - start)
    *parameters, _ = jax.block_until_ready(compiled(*arguments))  # brings everything to the tiles
    read_profile(compiled, reset=True)
    start = time.perf_counter()
    jax.block_until_ready(compiled(*parameters, *arguments[2:]))
    return 1e6 * read_profile(compiled).seconds, compilation, 1e3 * (time.perf_counter() - start)


def wall(step: Callable[..., Any], arguments) -> float:
    """Milliseconds of a step that has been compiled."""
    *parameters, _ = jax.block_until_ready(step(*arguments))
    start = time.perf_counter()
    jax.block_until_ready(step(*parameters, *arguments[2:]))
    return 1e3 * (time.perf_counter() - start)
