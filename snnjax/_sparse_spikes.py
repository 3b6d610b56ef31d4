"""`SparseSpikes`: spikes as a short list of neuron ids instead of a long row of zeros."""

import dataclasses
import functools
import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
from jax.typing import DTypeLike
from jaxtyping import Array, ArrayLike, Float, Int, Integer, Shaped

from snnjax._arguments import explained
from snnjax._check import (
    check_array,
    check_integer,
    check_real_array,
    check_shape,
    check_size,
    check_within,
    fail,
    short_repr,
)
from snnjax._types import Unchecked, as_int32, id_dtype, upcast


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class SparseSpikes:
    """Lists of the neurons that spike, and of those close enough to spiking to receive a gradient.

    In each list that `select_spikes` or `lif_network` makes, the neurons that spike come first (``values`` 1, or those
    of graded spikes), then
    those whose membrane is between the second threshold and the threshold (``values`` 0). Each group is sorted by id;
    unused slots hold the id ``num_neurons``. Nothing else relies on that order, nor on unused slots being last. A
    product with a list uses ``values[k] * weights[ids[k]]``: ids outside ``[0, num_neurons)`` contribute nothing,
    and duplicates add up. ``values`` is a float array because it carries the gradient. It is None where every listed
    spike has the value 1, as in events: then there is nothing to transfer, compiled programs know it, and no gradient
    with respect to the values exists. `with_values` adds the array.

    Shapes may have any leading axes, such as ``[time, batch]`` for a batch of sequences.

    Example:
        >>> import jax.numpy as jnp
        >>> from snnjax import SparseSpikes
        >>> spikes = SparseSpikes.from_dense(jnp.array([[0.0, 1.0, 0.0, 1.0]]), capacity=3)
        >>> spikes.ids
        Array([[1, 3, 4]], dtype=uint16)
        >>> spikes.to_dense()
        Array([[0., 1., 0., 1.]], dtype=float32)
    """

    ids: Integer[Array, "*axes capacity"]  # uint16 or int32
    values: Float[Array, "*axes capacity"] | None  # None: every listed spike has the value 1
    # int32, the true count, even beyond the capacity; a graded spike counts its magnitude
    num_spikes: Int[Array, "*axes"]
    num_listed: Int[Array, "*axes"]  # int32, the slots in use
    num_dropped: Int[Array, "*axes"]  # int32, the true spikes that are in no list
    num_neurons: int = field(metadata={"static": True})

    def __post_init__(self) -> None:
        size = check_size("SparseSpikes", "num_neurons", self.num_neurons)
        object.__setattr__(self, "num_neurons", size)

    @property
    def capacity(self) -> int:
        """The number of slots in a list."""
        return self.ids.shape[-1]

    @property
    def shape(self) -> tuple[int, ...]:
        """``[*axes, num_neurons]``, the shape of the equivalent dense array."""
        return (*self.ids.shape[:-1], self.num_neurons)

    @property
    def dtype(self) -> Any:
        """The dtype of `values`; float32 where all are 1, which ops take as numbers of their weights' dtype."""
        return jnp.dtype(jnp.float32) if self.values is None else self.values.dtype

    def with_values(self, dtype: DTypeLike | None = None) -> "SparseSpikes":
        """The same lists with an array of values, which is then differentiated: their own, or ones in all slots.

        Args:
            dtype: of the values; None keeps `SparseSpikes.dtype`.

        Example:
            >>> import jax.numpy as jnp
            >>> from snnjax import SparseSpikes
            >>> events = SparseSpikes.from_ids(jnp.array([2, 5]), num_neurons=6)
            >>> print(events.values, events.with_values().values)
            None [1. 1.]
        """
        return dataclasses.replace(self, values=values_of(self, dtype))

    def __getitem__(self, index: Unchecked) -> "SparseSpikes":
        """The lists at `index` of the leading axes; neurons cannot be indexed."""
        index = index if isinstance(index, tuple) else (index,)
        # An ellipsis stands for leading axes only: the slot axis comes after it.
        slots = (slice(None),) if any(part is Ellipsis for part in index) else ()
        return SparseSpikes(
            self.ids[index + slots],
            None if self.values is None else self.values[index + slots],
            self.num_spikes[index],
            self.num_listed[index],
            self.num_dropped[index],
            self.num_neurons,
        )

    def __iter__(self) -> Iterator["SparseSpikes"]:
        """The lists at each index of the first axis, such as those of each time step."""
        # Without this, Python would index until an IndexError, which JAX does not raise.
        return (self[index] for index in range(len(self.num_spikes)))

    def to_dense(self) -> Float[Array, "*axes neurons"]:
        """The dense array ``out[ids[k]] += values[k]``, differentiable with respect to `values`."""
        return _to_dense(self)

    @classmethod
    @explained
    def from_dense(cls, spikes: Shaped[ArrayLike, "*axes neurons"], capacity: int) -> "SparseSpikes":
        """List the non-zero entries of a dense array by id; those beyond `capacity` are counted but not listed.

        This is for inputs. `select_spikes` lists the spikes of neurons, without disadvantage for high ids.
        """
        capacity = check_integer("SparseSpikes.from_dense", "capacity", capacity, 0)
        check_real_array("SparseSpikes.from_dense", "spikes", spikes)
        spikes = jnp.asarray(spikes)
        if not jnp.issubdtype(spikes.dtype, jnp.floating):
            spikes = spikes.astype(jnp.float32)
        return _from_dense(spikes, capacity)

    @classmethod
    @explained
    def from_ids(cls, ids: Integer[ArrayLike, "*axes capacity"], num_neurons: int) -> "SparseSpikes":
        """Make spikes with value 1 at `ids`; slots with the id `num_neurons` are unused.

        Their ``values`` are None; for a gradient with respect to them, add the array by `with_values`. Under `jax.jit`,
        where ids cannot be checked, slots with any other id out of range are unused, too.
        """
        num_neurons = check_integer("SparseSpikes.from_ids", "num_neurons", num_neurons, 0)
        check_array("SparseSpikes.from_ids", "ids", ids)
        # The values are checked before JAX, which may wrap NumPy's integers of 64 bits.
        given, ids = ids, jnp.asarray(ids)
        if not jnp.issubdtype(ids.dtype, jnp.integer) or ids.ndim == 0:
            expected = "be an integer array [..., capacity]"
            actual, hint = short_repr(ids), "Pass neuron ids, padded with num_neurons"
            fail(f"SparseSpikes.from_ids: `ids` must {expected}, got {actual}. {hint}.")
        check_within("SparseSpikes.from_ids", "ids", given, num_neurons, "Fill unused slots with num_neurons")
        return _from_ids(ids, num_neurons)


# Outside of `jax.jit`, the conversions compile one program for each shape, not one for each operation.
@functools.partial(jax.jit, inline=True)
def _to_dense(spikes: SparseSpikes) -> Array:
    rows = math.prod(spikes.ids.shape[:-1])
    ids, values = (leaf.reshape(rows, spikes.capacity) for leaf in (spikes.ids, values_of(spikes)))
    return scatter(ids, upcast(values), spikes.num_neurons).astype(values.dtype).reshape(spikes.shape)


@functools.partial(jax.jit, static_argnums=1, inline=True)
def _from_dense(spikes: Array, capacity: int) -> SparseSpikes:
    num_neurons = spikes.shape[-1]
    active = spikes != 0
    ids = list_ids(active, capacity)
    values = gather(spikes, ids)
    count = jnp.sum(active, axis=-1, dtype=jnp.int32)
    return SparseSpikes(
        ids.astype(id_dtype(num_neurons)),
        values,
        count,
        jnp.minimum(count, capacity),
        beyond(count, capacity),
        num_neurons,
    )


@functools.partial(jax.jit, static_argnums=1, inline=True)
def _from_ids(ids: Array, num_neurons: int) -> SparseSpikes:
    used = in_range(ids, num_neurons)
    count = jnp.sum(used, axis=-1, dtype=jnp.int32)
    ids = jnp.where(used, ids.astype(jnp.int32), num_neurons)
    listed = jnp.copy(count)  # in a buffer of its own, so that both can be donated
    return SparseSpikes(
        ids.astype(id_dtype(num_neurons)), None, count, listed, jnp.zeros_like(count), num_neurons
    )


def values_of(spikes: SparseSpikes, dtype: DTypeLike | None = None) -> Array:
    """The values of lists, ones where all are; in `SparseSpikes.dtype` unless another dtype is given."""
    dtype = spikes.dtype if dtype is None else dtype
    if spikes.values is None:
        return jnp.ones(spikes.ids.shape, dtype)
    return jnp.asarray(spikes.values).astype(dtype)


def beyond(count: ArrayLike, capacity: int) -> Array:
    """How many of `count` spikes do not fit into a list of `capacity` slots."""
    return jnp.maximum(count - capacity, 0)


def in_range(ids: Array, num_neurons: int) -> Array:
    """True where an id is that of a neuron."""
    ids = as_int32(ids)
    return (ids >= 0) & (ids < num_neurons)


def scatter(ids: Array, values: Array, num_neurons: int) -> Array:
    """``out[row, ids[row, k]] += values[row, k]`` for lists ``[rows, capacity]``; ids out of range are dropped.

    Sums have the dtype of the values, so where ids may repeat these are in the accumulation dtype.
    """
    used = in_range(ids, num_neurons)
    # Beyond the last column, so that none is clamped or wrapped to a neuron.
    columns = jnp.where(used, ids.astype(jnp.int32), num_neurons)
    dense = jnp.zeros((ids.shape[0], num_neurons), values.dtype)
    if num_neurons == 0:  # no column, of which a gradient could be gathered
        return dense
    row = jnp.arange(ids.shape[0])[:, None]
    return dense.at[row, columns].add(jnp.where(used, values, 0), mode="drop")


def gather(dense: Array, ids: Array) -> Array:
    """``out[row, k] = dense[row, ids[row, k]]``, and 0 where an id is out of range."""
    if dense.shape[-1] == 0:
        return jnp.zeros(ids.shape, dense.dtype)
    used = in_range(ids, dense.shape[-1])
    columns = jnp.where(used, ids.astype(jnp.int32), 0)
    return jnp.where(used, jnp.take_along_axis(dense, columns, axis=-1), 0)


def list_ids(active: Array, capacity: int, then: Array | None = None) -> Int[Array, "*axes capacity"]:
    """The ids of each row where `active` is true, ascending, followed by those of `then`, at most `capacity`.

    Unused slots hold the row's length. The ids are int32.
    """
    num_neurons = active.shape[-1]
    rows = math.prod(active.shape[:-1])
    if num_neurons == 0 or capacity == 0 or rows == 0:
        return jnp.full((*active.shape[:-1], capacity), num_neurons, jnp.int32)
    slots = jnp.where(active, jnp.cumsum(active, axis=-1, dtype=jnp.int32) - 1, capacity)
    if then is not None:
        behind = jnp.sum(active, axis=-1, keepdims=True, dtype=jnp.int32) - 1
        slots = jnp.where(then, behind + jnp.cumsum(then, axis=-1, dtype=jnp.int32), slots)
    ids = jnp.broadcast_to(jnp.arange(num_neurons, dtype=jnp.int32), (rows, num_neurons))
    out = jnp.full((rows, capacity), num_neurons, jnp.int32)
    row = jnp.arange(rows)[:, None]
    out = out.at[row, slots.reshape(rows, num_neurons)].set(ids, mode="drop")
    return out.reshape(*active.shape[:-1], capacity)


def check_spikes(op: str, argument: str, spikes: SparseSpikes) -> None:
    """Check that the leaves of `spikes` match."""
    hint = "Build it with SparseSpikes.from_ids or from_dense"
    axes, dtype = spikes.ids.shape[:-1], spikes.ids.dtype
    if not jnp.issubdtype(dtype, jnp.integer):
        fail(f"{op}: `{argument}.ids` must hold integers, got {dtype.name}. {hint}.")
    if spikes.values is not None:
        check_shape(op, f"{argument}.values", spikes.values, spikes.ids.shape, "..., capacity", hint)
    check_shape(op, f"{argument}.num_spikes", spikes.num_spikes, axes, "...", hint)
    check_shape(op, f"{argument}.num_listed", spikes.num_listed, axes, "...", hint)
    check_shape(op, f"{argument}.num_dropped", spikes.num_dropped, axes, "...", hint)
