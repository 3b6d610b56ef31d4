"""A training step as a pipeline over modelled IPUs by several schedules, beside the same step on one of them.

Layers of one width with dense products, which pass lists from stage to stage, and stochastic gradient descent. The one
IPU takes the same pieces of the batch one after the other, and adds up their gradients: the whole batch at once, and of
1024 samples a half or a quarter, needs more memory than it has. Nothing of this is measured on hardware.
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, NamedSharding, PartitionSpec

import snnjax
from snnjax import train
from snnjax._types import Signal
from snnjax.ipu import read_profile
from tests.benchmarks.devices import ipus
from tests.benchmarks.workloads import Workload

ONE, BOUND = "one IPU", "what the bubble leaves"
GPIPE, CHECKPOINTED, FLUSH = "GPipe", "GPipe, computed twice", "PipeDream-flush"
CYCLES, MEMORY, SHARES_OF_TIME = "cycles", "kB in use on an IPU", "% of the time"
# Of the time of all IPUs: what one IPU would take, and what IPUs wait for each other.
IDEAL, WAITING = "ideal", "waiting"
AXIS = "stage"
DECAY, THRESHOLD, SECOND_THRESHOLD, LEARNING_RATE = 0.9, 1.0, 0.9, 0.01
# Of the sum of a neuron's inputs: wide enough that all layers stay active, with about as many spikes as lists hold.
SPREAD = 5.0
SHARES, STAGES = PartitionSpec(None, AXIS), PartitionSpec(AXIS)


class Measured(NamedTuple):
    cycles: int  # all but the host's
    memory: float  # kilobytes of an IPU's tiles
    waiting: float  # for other IPUs, of the cycles, the mean over the IPUs


def membranes(weights: jax.Array, spikes: jax.Array) -> jax.Array:
    """Of a layer, from one product for all time steps: ``[time, batch, neurons]``."""

    def step(v: jax.Array, current: jax.Array) -> tuple[jax.Array, jax.Array]:
        fired = jax.lax.stop_gradient((v > THRESHOLD).astype(v.dtype))
        v = DECAY * (v - THRESHOLD * fired) + (1 - DECAY) * current
        return v, v

    currents = jnp.einsum("tbi,io->tbo", spikes, weights)
    return jax.lax.scan(step, jnp.zeros_like(currents[0]), currents)[1]


def stage(weights: jax.Array, spikes: Signal):
    """Some layers, ``weights[layers, width, width]``, of which the last one lists its spikes."""
    capacity, x = spikes.capacity, spikes.to_dense()
    for own in weights[:-1]:
        x = snnjax.spike(membranes(own, x) - THRESHOLD)
    return snnjax.select_spikes(membranes(weights[-1], x), THRESHOLD, SECOND_THRESHOLD, capacity=capacity)


def data(workload: Workload, stages: int) -> tuple[Any, Any, Any]:
    """Weights ``[stages, layers of each, width, width]``, lists of inputs, and what the results are weighted with."""
    rng, width = np.random.default_rng(0), workload.widths[0]
    capacity, samples = int(width * workload.rate), workload.steps * workload.batch
    layers = (stages, (len(workload.widths) - 1) // stages, width, width)
    weights = rng.normal(size=layers).astype(np.float32) * SPREAD / np.sqrt(capacity)
    ids = np.sort(rng.permuted(np.tile(np.arange(width), (samples, 1)), axis=1)[:, :capacity], axis=1)
    ids = ids.reshape(workload.steps, workload.batch, capacity).astype(np.uint16)
    targets = rng.normal(size=(workload.steps, workload.batch, capacity)).astype(np.float32)
    return weights, snnjax.SparseSpikes.from_ids(ids, num_neurons=width), targets


def updated(weights, gradients):
    return jax.tree.map(lambda own, gradient: own - LEARNING_RATE * gradient, weights, gradients)


def on_one(pieces: int, weights, inputs: Signal, targets) -> tuple[Any, jax.Array]:
    """A step that goes through the pieces."""

    def loss(weights, inputs: Signal, targets) -> jax.Array:
        y = jax.lax.scan(lambda x, own: (stage(own, x), None), inputs, weights)[0]
        return jnp.sum(y.values * targets)

    def cut(leaf: jax.Array) -> jax.Array:
        return jnp.moveaxis(leaf.reshape(leaf.shape[0], pieces, -1, *leaf.shape[2:]), 1, 0)

    def add(sums, piece) -> tuple[Any, None]:
        return jax.tree.map(jnp.add, sums, jax.value_and_grad(loss)(weights, *piece)), None

    start = (jnp.zeros(()), jnp.zeros_like(weights))
    (value, gradients), _ = jax.lax.scan(add, start, jax.tree.map(cut, (inputs, targets)))
    return updated(weights, gradients), value


def in_pipeline(
    of_stage: Callable[..., Any], pieces: int, weights, inputs: Signal, targets
) -> tuple[Any, jax.Array]:
    """The same step over the devices of `AXIS`, by the schedule of GPipe, also with several stages on a device."""

    def loss(weights) -> jax.Array:
        y = train.pipeline(of_stage, weights, inputs, pieces=pieces, axis=AXIS)
        return jnp.sum(y.values * targets)

    value, gradients = jax.value_and_grad(loss)(weights)
    return updated(weights, gradients), jax.lax.psum(value, AXIS)


def in_flush(pieces: int, weights, inputs: Signal, targets) -> tuple[Any, jax.Array]:
    """The same step by the schedule of PipeDream-flush."""

    def loss(_, y, targets) -> jax.Array:
        return jnp.sum(y.values * targets) * pieces  # of which the mean is taken

    def total(weights) -> jax.Array:
        return train.pipeline_loss(stage, loss, weights, (), inputs, targets, pieces=pieces, axis=AXIS)

    value, gradients = jax.value_and_grad(total)(weights)
    return updated(weights, gradients), value


def measured(step: Callable[..., Any], arguments) -> tuple[Measured, float]:
    """A step on the IPUs, and its loss."""
    compiled = jax.jit(step, donate_argnums=0).lower(*arguments).compile()
    _, value = jax.block_until_ready(compiled(*arguments))
    profile = read_profile(compiled)
    cycles = sum(each.cycles - each.phases.host for each in profile.steps)
    memory = float(profile.tile_memory.sum()) / profile.data["ipus"]
    return Measured(cycles, 1e-3 * memory, float(profile.waiting.mean()) / cycles), float(value)


def of_a_step(workload: Workload, count: int, pieces: int, rounds: int) -> dict[str, dict[str, float]]:
    """By what is measured and by schedule, on one modelled IPU and on `count`."""
    jax.config.update("jax_platforms", "cpu,ipu")
    devices = jax.devices("ipu")[:count]
    weights, inputs, targets = data(workload, count * rounds)
    placed = ipus.placed_as((weights, inputs, targets), devices[0])
    one, expected = measured(functools.partial(on_one, pieces), placed)
    schedules: dict[str, Callable[..., Any]] = {
        GPIPE: functools.partial(in_pipeline, stage, pieces),
        CHECKPOINTED: functools.partial(in_pipeline, jax.checkpoint(stage), pieces),
    }
    if rounds == 1:
        schedules[FLUSH] = functools.partial(in_flush, pieces)

    mesh = jax.make_mesh((count,), (AXIS,), (AxisType.Auto,), devices=devices)
    specs = (STAGES, SHARES, SHARES)
    stacked = np.asarray(train.stack_stages(list(weights), count))
    turns = pieces * rounds
    found = {ONE: one}
    shares = {BOUND: turns / (turns + count - 1)}
    for name, schedule in schedules.items():
        step = jax.shard_map(schedule, mesh=mesh, in_specs=specs, out_specs=(STAGES, PartitionSpec()))
        spread = [
            ipus.placed_as(tree, NamedSharding(mesh, spec))
            for tree, spec in zip((stacked, inputs, targets), specs, strict=True)
        ]
        found[name], value = measured(step, spread)
        np.testing.assert_allclose(value, expected, rtol=1e-3)  # sums of many spikes, in another order
        shares[f"{name}, {IDEAL}"] = one.cycles / (count * found[name].cycles)
        shares[f"{name}, {WAITING}"] = found[name].waiting
    return {
        CYCLES: {name: each.cycles for name, each in found.items()},
        MEMORY: {name: each.memory for name, each in found.items()},
        SHARES_OF_TIME: {name: 100 * share for name, share in shares.items()},
    }
