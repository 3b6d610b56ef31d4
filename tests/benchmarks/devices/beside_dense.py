"""Sparse networks on the modelled IPU compared with dense ones, whose products run on the chip's matrix unit.

Forward and backward, without an optimiser, which does not differ. A dense network is plain JAX: one product a layer
for all time steps, and in each step that of the spikes before if it is recurrent; its neurons are scanned in a loop, or
unrolled, as who knows an IPU writes them. The sparse one lists as many spikes as its layers, and its inputs, are active
on average. Nothing of this is measured on hardware.
"""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from snnjax.ipu import read_profile
from tests.benchmarks.devices import ipus
from tests.benchmarks.programs import networks
from tests.benchmarks.programs.networks import GRADIENT
from tests.benchmarks.workloads import DECAY, SLOPE, THRESHOLD, Layer, Workload

DENSE = {"dense, float32": jnp.float32, "dense, float16": jnp.float16}
STEPS_A_ROUND = 8  # of an unrolled loop over recurrent layers
OUT_OF_MEMORY = "RESOURCE_EXHAUSTED"


def sparse_name(activity: float) -> str:
    return f"sparse, float32, {100 * activity:g} %"


def of_size(width: int, batch: int, recurrent: bool, steps: int) -> Workload:
    """Inputs and a layer of one width, and a readout of ten classes."""
    name = f"{width}, batch {batch}"
    return Workload(name, (width, width, 10), steps, batch, 0.01, (0.01,), recurrent=recurrent, readout=True)


def unrolled(layers: list[Layer], inputs: jax.Array, readout: bool) -> jax.Array:
    """One product a layer for all steps; neurons without a loop, or some steps a round where they are recurrent."""
    for index, layer in enumerate(layers):
        currents, is_readout = inputs @ layer.weights, readout and index == len(layers) - 1
        if layer.recurrent is not None:
            inputs = recurrent_spikes(currents, layer.recurrent)
        else:
            inputs = networks.scan_neurons(currents, None, is_readout, networks.spike, len(currents))
    return inputs


@jax.custom_vjp
def recurrent_spikes(currents: jax.Array, recurrent: jax.Array) -> jax.Array:
    """The same as a scan of its neurons, but the gradient of the weights is one product after the loop."""
    return _recurrent_forward(currents, recurrent)[0]


def _recurrent_forward(currents: jax.Array, recurrent: jax.Array) -> tuple[jax.Array, Any]:
    def step(carry: tuple[jax.Array, jax.Array], current: jax.Array) -> tuple[Any, Any]:
        v, spikes = carry
        v = DECAY * (v - spikes) + current + spikes @ recurrent
        return (v, networks.spike(v - THRESHOLD)), (v, networks.spike(v - THRESHOLD))

    zeros = jnp.zeros_like(currents[0])
    v, spikes = jax.lax.scan(step, (zeros, zeros), currents, unroll=STEPS_A_ROUND)[1]
    return spikes, (v, spikes, recurrent)


def _recurrent_backward(kept, g: jax.Array) -> tuple[jax.Array, jax.Array]:
    v, spikes, recurrent = kept
    slopes, back = 1 / (1 + SLOPE * jnp.abs(v - THRESHOLD)) ** 2, recurrent.T

    def step(later: jax.Array, given: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        own, slope = given
        cotangent = DECAY * later + (own + later @ back) * slope
        return cotangent, cotangent

    zeros = jnp.zeros_like(g[0])
    of_currents = jax.lax.scan(step, zeros, (g, slopes), reverse=True, unroll=STEPS_A_ROUND)[1]
    return of_currents, jnp.einsum("tbi,tbj->ij", spikes[:-1], of_currents[1:])


recurrent_spikes.defvjp(_recurrent_forward, _recurrent_backward)


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
        found[f"{name}, unrolled"], _ = cycles(unrolled, workload, cast)
    for activity in activities:
        active = workload.at_density(activity)
        layers, forms = networks.data(active)
        arguments = (layers, forms["events"], networks.output_weights(active))
        forward = functools.partial(networks.through_snnjax, capacity_share=activity)
        found[sparse_name(activity)], _ = cycles(forward, active, jax.tree.map(np.asarray, arguments))
    return {name: value for name, value in found.items() if value is not None}


def cycles(forward: networks.Forward, workload: Workload, arguments) -> tuple[float | None, float | None]:
    """Compute, exchange and sync of a time step: in all, and of dense products; None if the program does not fit."""
    step = jax.jit(networks.task_of(forward, GRADIENT, workload.readout))
    placed = ipus.placed_as(arguments, jax.devices("ipu")[0])
    try:
        compiled = step.lower(*placed).compile()
        jax.block_until_ready(compiled(*placed))
    except jax.errors.JaxRuntimeError as error:
        if OUT_OF_MEMORY not in str(error):
            raise
        return None, None
    steps = [(each.operation, each.cycles - each.phases.host) for each in read_profile(compiled).steps]
    products = sum(cycles for operation, cycles in steps if operation == "dot")
    return sum(cycles for _, cycles in steps) / workload.steps, products / workload.steps
