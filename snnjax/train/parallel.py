"""Training in parallel: each device takes an equal share of every batch, and all hold the same parameters.

`jax.shard_map` runs the network on each device's share. JAX does the rest: the loss is that of the whole batch, and
gradients of the shared parameters are summed. Devices may belong to several processes (`jax.distributed`), each of
which reads only its own samples.
"""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jaxtyping import PyTree

from snnjax._types import Params, Signal, Stats
from snnjax.blocks.norm import BatchNorm
from snnjax.data import Batch
from snnjax.data.datasets import Dataset
from snnjax.graph.network import Network, NetworkOutput

AXIS = "batch"
# For arrays whose first axis is the batch, and for arrays with time first.
_ROWS, _COLUMNS = PartitionSpec(AXIS), PartitionSpec(None, AXIS)


def data_mesh(devices: Sequence[Any] | None = None) -> Mesh:
    """A mesh with one axis, "batch", over the given devices, by default all devices of all processes.

    Example:
        >>> from snnjax.train import data_mesh
        >>> data_mesh().axis_names
        ('batch',)
    """
    devices = jax.devices() if devices is None else devices
    return Mesh(np.array(devices), (AXIS,), axis_types=(jax.sharding.AxisType.Auto,))


def forward(
    network: Network, mesh: Mesh | None = None, *, train: bool = False
) -> Callable[..., NetworkOutput]:
    """The network from its initial state, ``(params, stats, batch, second_threshold, key=None) -> NetworkOutput``.

    Over a mesh, norms take the statistics of the whole batch, and each share has a key of its own.
    """
    if mesh is not None:
        network = _with_common_statistics(network)

    def run(
        params: Params, stats: Stats, inputs: Signal, lengths: Any, second: Any, key: Any
    ) -> NetworkOutput:
        if key is not None and mesh is not None:
            key = jax.random.fold_in(key, jax.lax.axis_index(AXIS))
        given: dict[str, Any] = {"stats": stats, "train": train, "key": key, "lengths": lengths}
        return network.apply(params, None, inputs, second_threshold=second, **given)[0]

    if mesh is not None:
        shared = PartitionSpec()
        out_specs: Any = NetworkOutput(_COLUMNS, _ROWS, _ROWS, shared, _COLUMNS, _COLUMNS)  # type: ignore[arg-type]
        in_specs = (shared, shared, _COLUMNS, _ROWS, shared, shared)
        run = jax.shard_map(run, mesh=mesh, in_specs=in_specs, out_specs=out_specs)
    return lambda params, stats, batch, second_threshold, key=None: run(
        params, stats, batch.inputs, batch.lengths, second_threshold, key
    )


def _with_common_statistics(network: Network) -> Network:
    """The network whose norms take their statistics over all shares of a batch."""
    nodes = (
        node._replace(block=dataclasses.replace(node.block, axis_name=AXIS))
        if isinstance(node.block, BatchNorm)
        else node
        for node in network.nodes
    )
    return dataclasses.replace(network, nodes=tuple(nodes))


def take(mesh: Mesh | None, dataset: Dataset, indices: np.ndarray) -> Batch:
    """The samples at `indices`; this process reads only those of its own devices."""
    if mesh is None:
        return dataset.take(indices)
    shares = zip(mesh.devices.flat, np.split(indices, mesh.size), strict=True)
    local = [share for device, share in shares if device.process_index == jax.process_index()]
    batch = dataset.take(np.concatenate(local))

    def place(leaves: PyTree, spec: PartitionSpec) -> PyTree:
        sharding = NamedSharding(mesh, spec)
        put = jax.make_array_from_process_local_data
        return jax.tree.map(lambda leaf: put(sharding, np.asarray(leaf)), leaves)

    # Labels per step have time first, like inputs.
    labels = place(batch.labels, _COLUMNS if batch.labels.ndim > 1 else _ROWS)
    return Batch(place(batch.inputs, _COLUMNS), labels, place(batch.lengths, _ROWS))


def replicate(mesh: Mesh, tree: PyTree) -> PyTree:
    """A copy of `tree`, which is the same in all processes, on each device of the mesh."""
    sharding = NamedSharding(mesh, PartitionSpec())

    def copy(leaf: Any) -> PyTree:
        value = np.array(leaf)
        return jax.make_array_from_callback(value.shape, sharding, lambda place: value[place])

    return jax.tree.map(copy, tree)
