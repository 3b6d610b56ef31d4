"""`SparseSpikes`: spikes as a short list of neuron ids instead of a long row of zeros."""

from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float, Int

from snnjax._check import check, check_integer, check_shape

# uint16 ids halve the memory of a list; the pad id `num_neurons` has to fit as well.
MAX_UINT16_NEURONS = 65_535


def id_dtype(num_neurons: int) -> np.dtype:
    """The dtype of ids among `num_neurons`: uint16 where the pad id fits, int32 above."""
    return np.dtype(np.uint16 if num_neurons <= MAX_UINT16_NEURONS else np.int32)


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class SparseSpikes:
    """Lists of the neurons that spike, and of those near enough to spiking to receive gradient.

    In each list the neurons that spike come first (``values`` 1), then those whose membrane lies between the second
    threshold and the threshold (``values`` 0); each group is sorted by id, and unused slots hold the id ``num_neurons``.
    A product with a list uses ``values[k] * weights[ids[k]]``: ids outside ``[0, num_neurons)`` contribute nothing,
    duplicates add. ``values`` is a float array because it carries the gradient.

    Shapes: any leading axes, ``[time, batch]`` for a sequence of batches.

    Example:
        >>> import jax.numpy as jnp
        >>> from snnjax import SparseSpikes
        >>> spikes = SparseSpikes.from_dense(jnp.array([[0.0, 1.0, 0.0, 1.0]]), capacity=3)
        >>> spikes.ids
        Array([[1, 3, 4]], dtype=uint16)
        >>> spikes.to_dense()
        Array([[0., 1., 0., 1.]], dtype=float32)
    """

    ids: Int[Array, "*axes capacity"]  # uint16 or int32
    values: Float[Array, "*axes capacity"]
    num_spikes: Int[Array, "*axes"]  # int32, the true count, beyond the capacity too
    num_listed: Int[Array, "*axes"]  # int32, the slots in use
    num_neurons: int = field(metadata={"static": True})

    @property
    def capacity(self) -> int:
        """The number of slots in a list."""
        return self.ids.shape[-1]

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the dense array that this stands for: ``[*axes, num_neurons]``."""
        return (*self.ids.shape[:-1], self.num_neurons)

    @property
    def dtype(self) -> Any:
        """The dtype of `values`."""
        return self.values.dtype

    @property
    def overflow(self) -> Int[Array, "*axes"]:
        """How many spikes did not fit into each list, int32 (0 while all fit)."""
        return jnp.maximum(self.num_spikes - self.capacity, 0)

    def __getitem__(self, index: Any) -> "SparseSpikes":
        """The lists at `index` of the leading axes; neurons cannot be indexed."""
        return jax.tree.map(lambda leaf: leaf[index], self)

    def in_range(self) -> Array:
        """True where a slot names a neuron, bool ``[*axes, capacity]``."""
        return (self.ids >= 0) & (self.ids < self.num_neurons)

    def to_dense(self) -> Float[Array, "*axes neurons"]:
        """The dense array ``out[ids[k]] += values[k]``, differentiable with respect to `values`."""
        values = jnp.where(self.in_range(), self.values, 0)
        rows = int(np.prod(self.ids.shape[:-1]))
        # One more column takes whatever is out of range, so that no id is clamped or wrapped onto a neuron.
        ids = jnp.where(self.in_range(), self.ids.astype(jnp.int32), self.num_neurons)
        dense = jnp.zeros((rows, self.num_neurons + 1), self.values.dtype)
        row = jnp.arange(rows)[:, None]
        dense = dense.at[row, ids.reshape(rows, -1)].add(values.reshape(rows, -1))
        return dense[:, :-1].reshape(self.shape)

    @classmethod
    def from_dense(cls, spikes: Float[ArrayLike, "*axes neurons"], capacity: int) -> "SparseSpikes":
        """List the non-zero entries of a dense array, in order of id; those beyond `capacity` are counted, not listed.

        Meant for inputs. A network's own spikes are listed by `select_spikes`, which is fair to high ids.
        """
        check_integer("SparseSpikes.from_dense", "capacity", capacity, 0)
        spikes = jnp.asarray(spikes)
        if not jnp.issubdtype(spikes.dtype, jnp.floating):
            spikes = spikes.astype(jnp.float32)
        num_neurons = spikes.shape[-1]
        active = spikes != 0
        ids = list_ids(active, capacity)
        padded = jnp.concatenate([spikes, jnp.zeros_like(spikes[..., :1])], axis=-1)
        values = jnp.take_along_axis(padded, ids, axis=-1)
        count = jnp.sum(active, axis=-1, dtype=jnp.int32)
        return cls(
            ids.astype(id_dtype(num_neurons)),
            values,
            count,
            jnp.minimum(count, capacity),
            num_neurons,
        )

    @classmethod
    def from_ids(
        cls, ids: Int[ArrayLike, "*axes capacity"], num_neurons: int, dtype: Any = jnp.float32
    ) -> "SparseSpikes":
        """Spikes of value 1 at `ids`; slots with the id `num_neurons`, or any other outside the range, are unused."""
        check_integer("SparseSpikes.from_ids", "num_neurons", num_neurons, 0)
        ids = jnp.asarray(ids)
        check(
            jnp.issubdtype(ids.dtype, jnp.integer) and ids.ndim > 0,
            "SparseSpikes.from_ids",
            "ids",
            "be an integer array [..., capacity]",
            f"{ids.dtype.name}{list(ids.shape)}",
            "Pass neuron ids, padded with num_neurons",
        )
        used = (ids >= 0) & (ids < num_neurons)
        count = jnp.sum(used, axis=-1, dtype=jnp.int32)
        ids = jnp.where(used, ids.astype(jnp.int32), num_neurons)
        return cls(ids.astype(id_dtype(num_neurons)), used.astype(dtype), count, count, num_neurons)


def list_ids(active: Array, capacity: int) -> Int[Array, "*axes capacity"]:
    """The first `capacity` ids of each row at which `active` is true, ascending, padded with the row's length (int32)."""
    num_neurons = active.shape[-1]
    if num_neurons == 0 or capacity == 0:
        return jnp.full((*active.shape[:-1], capacity), num_neurons, jnp.int32)
    slots = jnp.where(active, jnp.cumsum(active, axis=-1, dtype=jnp.int32) - 1, capacity)
    ids = jnp.broadcast_to(jnp.arange(num_neurons, dtype=jnp.int32), active.shape)
    out = jnp.full((int(np.prod(active.shape[:-1])), capacity), num_neurons, jnp.int32)
    row = jnp.arange(out.shape[0])[:, None]
    out = out.at[row, slots.reshape(-1, num_neurons)].set(ids.reshape(-1, num_neurons), mode="drop")
    return out.reshape(*active.shape[:-1], capacity)


def check_spikes(op: str, argument: str, spikes: SparseSpikes) -> None:
    """The leaves of `spikes` must fit together."""
    way_out = "Build it with SparseSpikes.from_ids or from_dense"
    axes = spikes.ids.shape[:-1]
    check_shape(op, f"{argument}.values", spikes.values, spikes.ids.shape, "..., capacity", way_out)
    check_shape(op, f"{argument}.num_spikes", spikes.num_spikes, axes, "...", way_out)
    check_shape(op, f"{argument}.num_listed", spikes.num_listed, axes, "...", way_out)
