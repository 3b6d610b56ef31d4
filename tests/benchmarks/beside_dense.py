"""Sparse networks on the modelled IPU compared with dense ones, whose products run on the chip's matrix unit.

Forward and backward, without an optimiser, which does not differ. A dense network is plain JAX: one product a layer
for all time steps, and in each step that of the spikes before if it is recurrent. The sparse one lists as many spikes
as its layers, and its inputs, are active on average. Nothing of this is measured on hardware.
"""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from snnjax.ipu import read_profile
from tests.benchmarks import ipus, networks
from tests.benchmarks.networks import GRADIENT
from tests.benchmarks.workloads import Workload

DENSE = {"dense, float32": jnp.float32, "dense, float16": jnp.float16}
OUT_OF_MEMORY = "RESOURCE_EXHAUSTED"


def sparse_name(activity: float) -> str:
    return f"sparse, float32, {100 * activity:g} %"


def of_size(width: int, batch: int, recurrent: bool, steps: int) -> Workload:
    """Inputs and a layer of one width, and a readout of ten classes."""
    name = f"{width}, batch {batch}"
    return Workload(name, (width, width, 10), steps, batch, 0.01, (0.01,), recurrent=recurrent, readout=True)


def cycles_of_a_step(workload: Workload, activities: tuple[float, ...]) -> dict[str, float]:
    """The modelled cycles per time step of each alternative that fits in the chip's memory."""
    jax.config.update("jax_platforms", "cpu,ipu")
    found = {}
    for name, dtype in DENSE.items():
        layers, forms = networks.data(workload)
        arguments = (layers, forms["dense"], networks.output_weights(workload))
        cast = jax.tree.map(lambda leaf, dtype=dtype: np.asarray(leaf.astype(dtype)), arguments)
        all_of_it, products = cycles(networks.layer_by_layer, workload, cast)
        found |= {name: all_of_it, f"{name}, products alone": products}
    for activity in activities:
        active = workload.at_density(activity)
        layers, forms = networks.data(active)
        arguments = (layers, forms["events"], networks.output_weights(active))
        forward = functools.partial(networks.through_snnjax, capacity_share=activity)
        found[sparse_name(activity)], _ = cycles(forward, active, jax.tree.map(np.asarray, arguments))
    return {name: value for name, value in found.items() if value is not None}


def cycles(
    forward: networks.Forward, workload: Workload, arguments: Any
) -> tuple[float | None, float | None]:
    """Compute, exchange and sync of a time step: in all, and of dense products; None if the program does not fit."""
    step: Any = jax.jit(networks.task_of(forward, GRADIENT, workload.readout))
    placed = ipus.placed_as(arguments, jax.devices("ipu")[0])
    try:
        compiled: Any = step.lower(*placed).compile()
        jax.block_until_ready(compiled(*placed))
    except jax.errors.JaxRuntimeError as error:
        if OUT_OF_MEMORY not in str(error):
            raise
        return None, None
    steps = [(each.operation, each.cycles - each.phases.host) for each in read_profile(compiled).steps]
    products = sum(cycles for operation, cycles in steps if operation == "dot")
    return sum(cycles for _, cycles in steps) / workload.steps, products / workload.steps
