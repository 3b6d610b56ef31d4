"""`pool_spikes`: sum or mean of spikes over windows of an image, without a product."""

import dataclasses
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Num

from snnjax._check import check_integer, check_real_array, fail, plural
from snnjax._sharding import gathered
from snnjax._types import id_dtype, upcast
from snnjax.ops._convolution import tuple_words
from snnjax.sparse_spikes import SparseSpikes, check_spikes, in_range


@jax.tree_util.register_static
@dataclass(frozen=True)
class Pooling:
    """Adjacent windows of an image; pixels left over at its far edges belong to none."""

    shape: tuple[int, ...]  # of the image: (height, width, channels) or (length, channels)
    window: tuple[int, ...]  # height and width of a window, or its length
    mean: bool

    @property
    def out_shape(self) -> tuple[int, ...]:
        """The output shape: windows per axis, and the channels."""
        lengths = zip(self.shape[:-1], self.window, strict=True)
        return (*(length // size for length, size in lengths), self.shape[-1])

    @property
    def num_inputs(self) -> int:
        """Pixels times channels."""
        return math.prod(self.shape)

    @property
    def num_outputs(self) -> int:
        """Windows times channels."""
        return math.prod(self.out_shape)

    @property
    def scale(self) -> float:
        """The weight of one spike."""
        return 1 / math.prod(self.window) if self.mean else 1.0

    @property
    def words(self) -> str:
        """A short description, for `snnjax info` and errors."""
        return f"{'means' if self.mean else 'sums'} over {'x'.join(map(str, self.window))}"

    def then(self, window: tuple[int, ...], mean: bool) -> "Pooling | None":
        """This pooling followed by another one, as a single pooling if both sum or both average, else None."""
        if mean != self.mean:
            return None
        sizes = tuple(a * b for a, b in zip(self.window, window, strict=True))
        return dataclasses.replace(self, window=sizes)

    def map_ids(self, ids: Array) -> Array:
        """The window of each id, int32; `num_outputs` for ids outside all windows."""
        is_used, rest = in_range(ids, self.num_inputs), ids.astype(jnp.int32)
        rest, channel = rest // self.shape[-1], rest % self.shape[-1]
        place, stride = channel, self.shape[-1]
        lengths = zip(self.shape[:-1], self.window, self.out_shape[:-1], strict=True)
        for length, size, windows in reversed(list(lengths)):
            index, rest = rest % length // size, rest // length
            is_used &= index < windows
            place, stride = place + index * stride, stride * windows
        return jnp.where(is_used, place, self.num_outputs)

    def pool(self, rows: Array) -> Array:
        """The sum or mean over windows of dense ``[..., inputs]``, as ``[..., outputs]``."""
        axes, image = rows.shape[:-1], rows.reshape(-1 if rows.size else 0, *self.shape)
        kept = tuple(slice(n * size) for n, size in zip(self.out_shape[:-1], self.window, strict=True))
        split = [length for pair in zip(self.out_shape[:-1], self.window, strict=True) for length in pair]
        image = image[:, *kept, :].reshape(image.shape[0], *split, self.shape[-1])
        summed = jnp.sum(image, axis=tuple(range(2, 2 + 2 * len(self.window), 2)))
        scale = jnp.asarray(self.scale, summed.dtype)
        return (summed * scale if self.mean else summed).reshape(*axes, self.num_outputs)


def pool_spikes(
    spikes: SparseSpikes | Num[Array, "*axes neurons"],
    shape: Sequence[int],
    window: int | Sequence[int],
    *,
    mean: bool = False,
) -> SparseSpikes | Num[Array, "*axes outputs"]:
    """Sum or average spikes over the windows of an image.

    ``out[y, x, c] = sum of in[y h : y h + h, x w : x w + w, c]``, divided by ``h w`` if `mean`. Windows are adjacent;
    pixels left over at the far edges are dropped. Lists stay lists: ids are mapped to their windows, two spikes in one
    window are two entries, and entries outside all windows get an id out of range. The spike counts are unchanged. The
    derivative is exact. Sums and means are computed in float32 (float64 for float64).

    Args:
        spikes: lists or an array, with the pixels and channels of the image on one flat axis, row-major.
        shape: (height, width, channels) of the image, or (length, channels).
        window: height and width of a window (one number for both), or its length.

    Raises:
        ValueError: if the shape or the window does not fit, or for the mean of integers.

    Example:
        >>> import jax.numpy as jnp
        >>> from snnjax import SparseSpikes
        >>> from snnjax.ops import pool_spikes
        >>> image = jnp.arange(8.0)  # 2 x 4 pixels of one channel
        >>> pool_spikes(image, (2, 4, 1), 2)
        Array([10., 18.], dtype=float32)
        >>> pool_spikes(SparseSpikes.from_ids(jnp.array([0, 3, 7]), num_neurons=8), (2, 4, 1), 2).ids
        Array([0, 1, 1], dtype=uint16)
    """
    pooling = as_pooling("pool_spikes", shape, window, mean)
    lists = isinstance(spikes, SparseSpikes)
    if lists:
        check_spikes("pool_spikes", "spikes", spikes)
    else:
        check_real_array("pool_spikes", "spikes", spikes)
    width = spikes.num_neurons if lists else (spikes.shape or (0,))[-1]
    if width != pooling.num_inputs:
        expected = f"hold {plural(pooling.num_inputs, 'neuron')}, as in the shape {pooling.shape}"
        hint = "Pass the shape of the image whose pixels spike"
        fail(f"pool_spikes: `spikes` must {expected}, got {width}. {hint}.")
    dtype = spikes.values.dtype if lists else spikes.dtype
    if mean and not jnp.issubdtype(dtype, jnp.floating):
        hint = "Cast them with spikes.astype(jnp.float32)"
        fail(f"pool_spikes: `spikes` must be floating-point for a mean, got {dtype.name}. {hint}.")
    return pooled(pooling, gathered(spikes))


def pooled(pooling: Pooling, spikes: Any) -> Any:
    """Lists or an array, pooled."""
    if not isinstance(spikes, SparseSpikes):
        is_float = jnp.issubdtype(spikes.dtype, jnp.floating)
        return pooling.pool(upcast(spikes) if is_float else spikes).astype(spikes.dtype)
    values = spikes.values * jnp.asarray(pooling.scale, spikes.values.dtype)
    ids = pooling.map_ids(spikes.ids).astype(id_dtype(pooling.num_outputs))
    return dataclasses.replace(spikes, ids=ids, values=values, num_neurons=pooling.num_outputs)


def as_pooling(op: str, shape: Sequence[int], window: Any, mean: bool) -> Pooling:
    """The checked geometry."""
    shape = tuple(shape)
    check_image(op, shape)
    sizes = tuple(window) if isinstance(window, Iterable) else (window,) * (len(shape) - 1)
    if len(sizes) != len(shape) - 1:
        expected = f"be an integer or {tuple_words(len(shape) - 1)}"
        fail(f"{op}: `window` must {expected}, got {sizes}. Pass one length per axis, or one for all.")
    for size in sizes:
        check_integer(op, "window", size, 1)
    sizes = tuple(int(size) for size in sizes)
    for size, length in zip(sizes, shape[:-1], strict=True):
        if size > length:
            actual = list(sizes)
            fail(
                f"{op}: `window` must fit into the image, {list(shape)}, got {actual}. Choose a smaller one."
            )
    return Pooling(shape, sizes, mean)


def check_image(op: str, shape: Any) -> None:
    """Check that `shape` is (height, width, channels) or (length, channels), all positive."""
    if len(shape) not in (2, 3) or not all(isinstance(n, int) and n > 0 for n in shape):
        expected, actual = "be (height, width, channels) or (length, channels)", tuple(shape)
        fail(f"{op}: `shape` must {expected}, got {actual}. Pass the axes of the image, channels last.")
