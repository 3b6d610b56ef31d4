"""Training in parallel: each device takes an equal share of every batch, and all hold the same parameters.

`jax.shard_map` runs the network on each device's share. JAX does the rest: the loss is that of the whole batch, and
gradients of the shared parameters are summed. Devices may belong to several processes (`jax.distributed`), each of
which reads only its own samples.
"""

from collections.abc import Callable, Sequence
from typing import Any, cast

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from snnjax._network import Network
from snnjax._network.specs import NetworkOutput
from snnjax.data import Batch

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


def forward(network: Network, mesh: Mesh | None) -> Callable[..., NetworkOutput]:
    """The network's function from the initial state, ``(params, batch, second_threshold) -> NetworkOutput``."""

    def run(params: Any, inputs: Any, lengths: Any, second_threshold: Any) -> NetworkOutput:
        return network.apply(params, None, inputs, lengths=lengths, second_threshold=second_threshold)[0]

    if mesh is not None:
        shared, out_specs = PartitionSpec(), NetworkOutput(*cast(Any, (_COLUMNS, _ROWS, _ROWS)))
        in_specs = (shared, _COLUMNS, _ROWS, shared)
        run = jax.shard_map(run, mesh=mesh, in_specs=in_specs, out_specs=out_specs)
    return lambda params, batch, second_threshold: run(params, batch.inputs, batch.lengths, second_threshold)


def take(mesh: Mesh | None, dataset: Any, indices: np.ndarray) -> Batch:
    """The samples at `indices`; this process reads only those of its own devices."""
    if mesh is None:
        return dataset.take(indices)
    shares = zip(mesh.devices.flat, np.split(indices, mesh.size), strict=True)
    local = [share for device, share in shares if device.process_index == jax.process_index()]
    batch = dataset.take(np.concatenate(local))

    def place(leaves: Any, spec: PartitionSpec) -> Any:
        sharding = NamedSharding(mesh, spec)
        put = jax.make_array_from_process_local_data
        return jax.tree.map(lambda leaf: put(sharding, np.asarray(leaf)), leaves)

    # Labels per step have time first, like inputs.
    labels = place(batch.labels, _COLUMNS if batch.labels.ndim > 1 else _ROWS)
    return Batch(place(batch.inputs, _COLUMNS), labels, place(batch.lengths, _ROWS))


def replicate(mesh: Mesh, tree: Any) -> Any:
    """A copy of `tree`, which is the same in all processes, on each device of the mesh."""
    sharding = NamedSharding(mesh, PartitionSpec())

    def copy(leaf: Any) -> Any:
        value = np.array(leaf)
        return jax.make_array_from_callback(value.shape, sharding, lambda place: value[place])

    return jax.tree.map(copy, tree)
