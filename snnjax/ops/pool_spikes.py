"""`pool_spikes`: sum, mean or maximum of spikes over windows of an image, without a product."""

import dataclasses
import functools
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import DTypeLike
from jaxtyping import Array, PyTree, Shaped

from snnjax._arguments import explained
from snnjax._check import check_choice, check_integer, check_real_array, fail, plural
from snnjax._dispatch import Kernel, Target, evaluate
from snnjax._sharding import gathered
from snnjax._sparse_spikes import SparseSpikes, check_spikes, gather, in_range, scatter, values_of
from snnjax._types import Signal, Unchecked, id_dtype, uint16_or_int32, upcast
from snnjax.ops._convolution import padding_pairs, tuple_words
from snnjax.ops._kernel_operands import call_by_records, dtype_obstacle
from snnjax.ops._tables.pool_spikes import Operands, Results, WindowNumbers

# What is made of the spikes of a window, and the word for several of them.
POOLS = {"sum": "sums", "mean": "means", "max": "maxima"}


@jax.tree_util.register_static
@dataclass(frozen=True)
class Pooling:
    """Windows of an image; pixels at its far edges that fill no window belong to none."""

    shape: tuple[int, ...]  # of the image: (height, width, channels) or (length, channels)
    window: tuple[int, ...]  # height and width of a window, or its length
    strides: tuple[int, ...]  # from one window to the next
    how: str  # one of POOLS
    padding: tuple[tuple[int, int], ...]  # pixels before and after the image that have no spikes

    @property
    def out_shape(self) -> tuple[int, ...]:
        """The output shape, which is the windows per axis, and the channels."""
        axes = zip(self.shape[:-1], self.padding, self.window, self.strides, strict=True)
        return (
            *((length + sum(around) - size) // stride + 1 for length, around, size, stride in axes),
            self.shape[-1],
        )

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
        return 1 / math.prod(self.window) if self.how == "mean" else 1.0

    @property
    def is_adjacent(self) -> bool:
        """Whether windows lie side by side, so that a pixel is in at most one, from the first pixel on."""
        return self.strides == self.window and not self.is_padded

    @property
    def is_padded(self) -> bool:
        """Whether windows reach beyond the image."""
        return any(map(any, self.padding))

    @property
    def words(self) -> str:
        """A short description, for `snnjax info` and errors."""
        size = "x".join(map(str, self.window))
        steps = "" if self.strides == self.window else f" every {'x'.join(map(str, self.strides))}"
        return f"{POOLS[self.how]} over {size}{steps}{', padded' if self.is_padded else ''}"

    @property
    def obstacle(self) -> str | None:
        """Why `lif_network` does not pool like this, or None."""
        if self.how == "max":
            return "maximum pools"
        if self.is_padded:
            return "windows with padding"
        return None if self.is_adjacent else "windows that are not adjacent"

    def then(self, after: "Pooling") -> "Pooling | None":
        """This pooling followed by another one, as a single pooling if both do the same side by side, else None."""
        if after.how != self.how or not (self.is_adjacent and after.is_adjacent):
            return None
        sizes = tuple(a * b for a, b in zip(self.window, after.window, strict=True))
        return dataclasses.replace(self, window=sizes, strides=sizes)

    def windows(self, ids: Array) -> Array:
        """The windows of each id, int32 ``[..., most windows of a pixel]``; `num_outputs` where there are fewer."""
        rest = ids.astype(jnp.int32)
        rest, channel = rest // self.shape[-1], rest % self.shape[-1]
        place, stride, is_used = channel[..., None], self.shape[-1], in_range(ids, self.num_inputs)[..., None]
        before = (low for low, _ in self.padding)
        axes = zip(self.shape[:-1], before, self.window, self.strides, self.out_shape[:-1], strict=True)
        for length, low, size, step, windows in reversed(list(axes)):
            index, rest = rest % length + low, rest // length
            # The last window that begins at or before the pixel, and those before it that may still reach it.
            earlier = jax.lax.broadcasted_iota(jnp.int32, (*ids.shape, -(-size // step)), ids.ndim)
            own = (index // step)[..., None] - earlier
            there = (own >= 0) & (own < windows) & (index[..., None] - own * step < size)
            place = (place[..., None, :] + (own * stride)[..., None]).reshape(*ids.shape, -1)
            is_used = (is_used[..., None, :] & there[..., None]).reshape(*ids.shape, -1)
            stride *= windows
        return jnp.where(is_used, place, self.num_outputs)

    def pool(self, rows: Array) -> Array:
        """The sum, mean or maximum over windows of dense ``[..., inputs]``, as ``[..., outputs]``."""
        axes, image = rows.shape[:-1], rows.reshape(-1 if rows.size else 0, *self.shape)
        if self.how == "max":
            is_float = jnp.issubdtype(image.dtype, jnp.floating)
            pooled = _maximum(self, image) if is_float else self.over_windows(image)
        else:
            pooled = self._summed(image) if self.is_adjacent else self.over_windows(image)
        pooled = pooled * jnp.asarray(self.scale, pooled.dtype) if self.how == "mean" else pooled
        return pooled.reshape(*axes, self.num_outputs)

    def over_windows(self, image: Array) -> Array:
        """The sum or the maximum over the windows of ``[rows, *shape]``."""
        first, join = (_least(image.dtype), jax.lax.max) if self.how == "max" else (0, jax.lax.add)
        around = ((0, 0), *self.padding, (0, 0))
        sizes, strides = (1, *self.window, 1), (1, *self.strides, 1)
        return jax.lax.reduce_window(image, np.array(first, image.dtype), join, sizes, strides, around)

    def places(self, image: Array, outside: float) -> Iterator[Array]:
        """For each place of a window, row-major, what all windows have there: ``[rows, *windows, channels]``.

        Pixels as many apart as the strides lie side by side in a copy, which is split: the transpose of slices with
        strides would add a padded array for each place.
        """
        space, lengths, steps = len(self.strides), self.out_shape[:-1], self.strides
        most = [(size - 1) // step for size, step in zip(self.window, steps, strict=True)]
        room = [count + more for count, more in zip(lengths, most, strict=True)]
        axes = zip(room, steps, self.shape[:-1], self.padding, strict=True)
        around = [(low, count * step - length - low, 0) for count, step, length, (low, _) in axes]
        image = jax.lax.pad(image, np.array(outside, image.dtype), [(0, 0, 0), *around, (0, 0, 0)])
        split = [length for pair in zip(room, steps, strict=True) for length in pair]
        image = image.reshape(image.shape[0], *split, image.shape[-1])
        image = jnp.moveaxis(image, range(2, 2 + 2 * space, 2), range(space))
        phases = jax.lax.split(image.reshape(-1, *image.shape[space:]), [1] * math.prod(steps))
        for place in np.ndindex(*self.window):
            phase = int(
                np.ravel_multi_index([own % step for own, step in zip(place, steps, strict=True)], steps)
            )
            skipped = [own // step for own, step in zip(place, steps, strict=True)]
            kept = [slice(more, more + count) for more, count in zip(skipped, lengths, strict=True)]
            yield phases[phase][0][:, *kept]

    @property
    def axes_of_window(self) -> tuple[int, ...]:
        """The axes of `split` that count the pixels of a window."""
        return tuple(range(2, 2 + 2 * len(self.window), 2))

    def split(self, image: Array) -> Array:
        """The pixels of adjacent windows: ``[rows, windows, window (for each axis), channels]``."""
        kept = tuple(slice(n * size) for n, size in zip(self.out_shape[:-1], self.window, strict=True))
        split = [length for pair in zip(self.out_shape[:-1], self.window, strict=True) for length in pair]
        return image[:, *kept, :].reshape(image.shape[0], *split, self.shape[-1])

    def _summed(self, image: Array) -> Array:
        """The sums of adjacent windows."""
        return jnp.sum(self.split(image), axis=self.axes_of_window)

    def listed(self, spikes: SparseSpikes) -> SparseSpikes:
        """Lists of windows: each entry counts in all of its windows, or in those whose maximum it is."""
        windows = self.windows(spikes.ids)
        values = values_of(spikes) * jnp.asarray(self.scale, spikes.dtype)
        values = jnp.broadcast_to(values[..., None], windows.shape)
        if self.how == "max":
            is_largest = _is_largest(self, spikes)
            windows = jnp.where(is_largest, windows, self.num_outputs)
            values = jnp.where(is_largest, values, jnp.zeros_like(values))
        num_listed = jnp.sum(in_range(windows, self.num_outputs), axis=(-2, -1), dtype=jnp.int32)
        ids = windows.astype(id_dtype(self.num_outputs))
        ids, values = (each.reshape(*spikes.ids.shape[:-1], -1) for each in (ids, values))
        own = {"ids": ids, "values": values, "num_listed": num_listed, "num_neurons": self.num_outputs}
        return dataclasses.replace(spikes, **own)


@functools.partial(jax.custom_jvp, nondiff_argnums=(0,))
def _maximum(pooling: Pooling, image: Array) -> Array:
    """The largest of each window; its derivative is that of the first of them, without XLA's slow search for it."""
    return pooling.over_windows(image)


@_maximum.defjvp
def _maximum_derivative(pooling: Pooling, image: tuple[Array], tangent: tuple[Array]) -> tuple[Array, Array]:
    largest = pooling.over_windows(*image)
    if pooling.is_adjacent:
        return largest, _change_of_first(pooling, pooling.split(*image), largest, pooling.split(*tangent))
    found, is_found = jnp.zeros_like(largest), jnp.zeros(largest.shape, bool)
    for own, change in zip(pooling.places(*image, -np.inf), pooling.places(*tangent, 0), strict=True):
        is_first = (own == largest) & ~is_found
        found += jnp.where(is_first, change, 0)
        is_found |= is_first
    return largest, found


def _change_of_first(pooling: Pooling, image: Array, largest: Array, tangent: Array) -> Array:
    """That of the first of the largest pixels of each window; its transpose writes each pixel once, in its place."""
    axes, size = pooling.axes_of_window, math.prod(pooling.window)
    lengths = [length for pixels in pooling.window for length in (1, pixels)]
    place = np.arange(size, dtype=np.min_scalar_type(size)).reshape(1, *lengths, 1)
    is_largest = image == jnp.expand_dims(largest, axes)
    first = jnp.min(jnp.where(is_largest, place, place.dtype.type(size)), axes, keepdims=True)
    return jnp.sum(jnp.where(place == first, tangent, 0), axes)


def _is_largest(pooling: Pooling, spikes: SparseSpikes) -> Array:
    """Whether each entry has the largest value of its windows, the first of those with the same one."""
    axes, capacity = spikes.ids.shape[:-1], spikes.ids.shape[-1]
    values = jax.lax.stop_gradient(values_of(spikes))
    rows = tuple(each.reshape(-1 if each.size else 0, capacity) for each in (spikes.ids, values))
    operands = Operands(uint16_or_int32(rows[0]), rows[1])
    most = pooling.windows(jnp.zeros(1, jnp.int32)).shape[-1]
    shape = rows[0].shape if pooling.is_adjacent else (*rows[0].shape, most)
    results = Results(jax.ShapeDtypeStruct(shape, jnp.bool_))
    found: PyTree = evaluate(_LARGEST, operands, Operands(0, 0), Results(0), pooling, results=results)
    return found.is_largest.reshape(*axes, capacity, most)


def _largest_of_rows(operands: Operands, pooling: Pooling) -> Results:
    ids, windows = operands.ids, pooling.windows(operands.ids)
    places = windows.reshape(ids.shape[0], -1)
    rows = scatter(ids, upcast(operands.values), pooling.num_inputs)
    own, numbers = (jnp.repeat(x, windows.shape[-1], -1) for x in (gather(rows, ids), ids.astype(jnp.int32)))
    ties = (own == gather(pooling.pool(rows), places)) & in_range(places, pooling.num_outputs)
    # Each window keeps the lowest id; those of no window meet in a column of their own.
    row = jnp.arange(len(ids))[:, None]
    first = jnp.full((len(ids), pooling.num_outputs + 1), pooling.num_inputs, jnp.int32)
    first = first.at[row, jnp.where(ties, places, pooling.num_outputs)].min(numbers)
    is_largest = ties & (first[row, places] == numbers)
    return Results(is_largest if pooling.is_adjacent else is_largest.reshape(windows.shape))


def _call(operands: Operands, pooling: Pooling, results: Sequence[jax.ShapeDtypeStruct]) -> list[Array]:
    height, width = (1,) * (2 - len(pooling.window)) + pooling.shape[:-1]
    window_height, window_width = (1,) * (2 - len(pooling.window)) + pooling.window
    numbers = WindowNumbers(height, width, pooling.shape[-1], window_height, window_width)
    return call_by_records("snnjax_pool_spikes", operands, Results(*results), [numbers])


def _obstacle(shapes: Operands, pooling: Pooling) -> str | None:
    if not pooling.is_adjacent:
        return "windows that are not adjacent"
    return dtype_obstacle("values", shapes.values)


_LARGEST = Target("snnjax_pool_spikes", "pool_spikes", _largest_of_rows, {"cpu": Kernel(_call, _obstacle)})


def _least(dtype: DTypeLike) -> Any:
    """What no maximum is below."""
    return -np.inf if jnp.issubdtype(dtype, jnp.floating) else np.iinfo(dtype).min


@explained
def pool_spikes(
    spikes: SparseSpikes | Shaped[Array, "*axes neurons"],
    window: int | Sequence[int],
    *,
    shape: Sequence[int],
    strides: int | Sequence[int] | None = None,
    how: str = "sum",
    padding: int | Sequence[int | tuple[int, int]] = 0,
) -> SparseSpikes | Shaped[Array, "*axes outputs"]:
    """Sum or average spikes over the windows of an image, or take their maximum.

    ``out[y, x, c] = sum of in[s y : s y + h, t x : t x + w, c]`` with strides ``s, t``, divided by ``h w`` for "mean",
    and the largest of them for "max". Pixels at the far edges that fill no window are dropped. Sums and means are
    computed in float32 (float64 for float64). Sums of booleans, and of integers of fewer than 32 bits, are int32.

    Lists stay lists: ids are mapped to their windows. Where windows overlap, an entry becomes one for each of the ``m``
    windows that a pixel can be in, and so a list has ``m`` times as many slots. For "sum" and "mean", two spikes in one
    window are two entries; for "max", a window keeps the entry that is its maximum. Other slots get an id out of range.
    The counts of spikes and of those dropped are unchanged.

    The derivative is exact. That of a maximum reaches the first of the largest entries: in an array as in
    `jax.lax.reduce_window`; in a list the first of those listed, so a window without spikes passes its gradient to a
    listed neuron if it has one.

    Args:
        spikes: lists or an array, with the pixels and channels of the image on one flat axis, row-major.
        window: height and width of a window (one number for both), or its length.
        shape: (height, width, channels) of the image, or (length, channels), as for `spike_conv`.
        strides: how far it is from one window to the next, likewise; None for windows side by side.
        how: "sum", "mean" or "max".
        padding: pixels around the image that have no spikes: on every side, for each axis, or (before, after) for each.
            A mean counts them, a maximum does not.

    Raises:
        ValueError: if the shape, the padding or the window does not fit, `how` is unknown, or for the mean of integers.

    Example:
        >>> import jax.numpy as jnp
        >>> from snnjax import SparseSpikes
        >>> from snnjax import pool_spikes
        >>> image = jnp.arange(8.0)  # 2 x 4 pixels of one channel
        >>> pool_spikes(image, 2, shape=(2, 4, 1))
        Array([10., 18.], dtype=float32)
        >>> pool_spikes(image, 2, shape=(2, 4, 1), strides=1, how="max")
        Array([5., 6., 7.], dtype=float32)
        >>> pool_spikes(SparseSpikes.from_ids(jnp.array([0, 3, 7]), num_neurons=8), 2, shape=(2, 4, 1)).ids
        Array([0, 1, 1], dtype=uint16)
    """
    pooling = as_pooling("pool_spikes", shape, window, strides, how, padding)
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
    dtype = spikes.dtype
    if how == "mean" and not jnp.issubdtype(dtype, jnp.floating):
        hint = "Cast them with spikes.astype(jnp.float32)"
        fail(f"pool_spikes: `spikes` must be floating-point for a mean, got {dtype.name}. {hint}.")
    return pooled(pooling, gathered(spikes))


def pooled(pooling: Pooling, spikes: Signal) -> Signal:
    """Lists or an array, pooled."""
    if isinstance(spikes, SparseSpikes):
        return pooling.listed(spikes)
    if jnp.issubdtype(spikes.dtype, jnp.floating):
        return pooling.pool(upcast(spikes)).astype(spikes.dtype)
    is_short = spikes.dtype.itemsize < jnp.dtype(jnp.int32).itemsize
    found = pooling.pool(spikes.astype(jnp.int32) if is_short else spikes)
    return found.astype(spikes.dtype) if pooling.how == "max" else found


def as_pooling(
    op: str, shape: Sequence[int], window: Unchecked, strides: Unchecked, how: str, padding: Unchecked = 0
) -> Pooling:
    """The checked geometry; no window is all pixels."""
    shape = tuple(shape)
    check_image(op, shape)
    check_choice(op, "how", how, tuple(POOLS))
    space = len(shape) - 1
    sizes = shape[:-1] if window is None else _sizes(op, "window", window, space)
    steps = sizes if strides is None else _sizes(op, "strides", strides, space)
    around = _around(op, padding, sizes)
    for size, length, pair in zip(sizes, shape[:-1], around, strict=True):
        if size > length + sum(pair):
            actual = list(sizes)
            fail(
                f"{op}: `window` must fit into the image, {list(shape)}, got {actual}. Choose a smaller one."
            )
    return Pooling(shape, sizes, steps, how, around)


def _around(op: str, padding: Unchecked, window: tuple[int, ...]) -> tuple[tuple[int, int], ...]:
    """The pixels before and after each axis, fewer than a window has, so that each window holds some of the image."""
    pairs = padding_pairs(padding, len(window))
    if pairs is None:
        hint = "Pass the pixels on every side, such as 1"
        fail(f"{op}: `padding` must be an integer, or one or a pair for each axis, got {padding!r}. {hint}.")
    for pair, size in zip(pairs, window, strict=True):
        for number in pair:
            if check_integer(op, "padding", number, 0) >= size:
                hint = "Pad less, or choose a larger window"
                fail(f"{op}: `padding` must be less than the window, {list(window)}, got {number}. {hint}.")
    return tuple((int(low), int(high)) for low, high in pairs)


def _sizes(op: str, argument: str, value: Unchecked, space: int) -> tuple[int, ...]:
    sizes = tuple(value) if isinstance(value, Iterable) else (value,) * space
    if len(sizes) != space:
        expected = f"be an integer or {tuple_words(space)}"
        fail(f"{op}: `{argument}` must {expected}, got {sizes}. Pass one length per axis, or one for all.")
    for size in sizes:
        check_integer(op, argument, size, 1)
    return tuple(int(size) for size in sizes)


def check_image(op: str, shape: Unchecked) -> None:
    """Check that `shape` is (height, width, channels) or (length, channels), all positive."""
    if len(shape) not in (2, 3) or not all(isinstance(n, int) and n > 0 for n in shape):
        expected, actual = "be (height, width, channels) or (length, channels)", tuple(shape)
        fail(f"{op}: `shape` must {expected}, got {actual}. Pass the axes of the image, channels last.")
