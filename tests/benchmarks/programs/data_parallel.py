"""A data-parallel training step of several processes, each with its share of the batch and of the cores."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from snnjax.train import data_mesh
from tests.benchmarks import timing, workloads
from tests.benchmarks.programs import networks
from tests.benchmarks.programs.networks import ALTERNATIVES, TRAINING
from tests.benchmarks.workloads import Workload

SHARED, BY_STEP, BY_SAMPLE = PartitionSpec(), PartitionSpec(None, "batch"), PartitionSpec("batch")
# Of each round: the processes wait for one another in every step, so all of them make equally many.
STEPS = 8


def measured(workload: Workload, name: str, rounds: int) -> dict[str, Any]:
    """Seconds of a step in each round, and the loss; all processes call this at the same time."""
    first = {device.process_index: device for device in reversed(jax.devices())}  # of each process
    run, given = program(workload, name, data_mesh([first[index] for index in sorted(first)]))
    loss = float(run(*given)[-1])
    step = timing.timer(run, lambda: given)
    return {"seconds": [step(STEPS).wall for _ in range(rounds)], "loss": loss}


def program(workload: Workload, name: str, mesh: Mesh) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """The step and its arguments, over all devices of all processes."""
    forward, form = ALTERNATIVES[name]
    shares = jax.shard_map(
        lambda layers, inputs: forward(layers, inputs, workload.readout),
        mesh=mesh,
        in_specs=(SHARED, BY_STEP),
        out_specs=BY_STEP,
    )
    run = networks.jitted(lambda layers, inputs, _: shares(layers, inputs), TRAINING, workload.readout)
    layers, forms = networks.data(workload)
    shared = placed(mesh, SHARED, (layers, networks.optimiser_state(workload)))
    labels = placed(mesh, BY_SAMPLE, jnp.asarray(workloads.labels(workload)))
    return run, (*shared, placed(mesh, BY_STEP, forms[form]), labels)


def placed(mesh: Mesh, spec: PartitionSpec, tree):
    """Arrays that all processes hold in full, each with its share of them."""

    def place(leaf) -> jax.Array:
        value = np.asarray(leaf)
        return jax.make_array_from_callback(value.shape, NamedSharding(mesh, spec), lambda of: value[of])

    return jax.tree.map(place, tree)
