"""Containers that hold a whole data set in NumPy arrays and return batches by index."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int

from snnjax._check import (
    check_array,
    check_integer,
    check_integers,
    check_shape,
    check_within,
    fail,
    short_repr,
    type_words,
)
from snnjax._sparse_spikes import SparseSpikes
from snnjax._types import Signal, Unchecked, id_dtype
from snnjax.data.event_lists import (
    MOST_OUTSIDE,
    Binned,
    bin_ragged,
    check_sizes,
    concatenate,
    pack,
    warn_of_one_step,
    warn_of_outside,
)

_CHECK_BLOCK = 64  # samples whose counts are checked at once, to spare memory
# Has a length, and `take(indices)` makes a `Batch`: one of those below, or a user's own.
Dataset = Any


class Batch(NamedTuple):
    """The inputs, labels and lengths of some samples, for a training step."""

    inputs: Signal  # SparseSpikes [time, batch], a series [time, batch, channels] or images [batch, pixels]
    labels: Int[Array, " batch"] | Int[Array, "time batch"]  # int32
    lengths: Int[Array, " batch"] | None  # int32 number of valid time steps, None if all are valid


@dataclass(frozen=True)
class EventDataset:
    """Samples as lists of event ids, one list per time step, padded with `num_neurons`.

    Errors: arrays do not match, counts are not those of the lists, or labels are outside ``[0, num_classes)``.

    Example:
        >>> import numpy as np
        >>> from snnjax.data import EventDataset
        >>> recordings = [(np.array([0.0, 1.5]), np.array([2, 0])), (np.array([0.5]), np.array([1]))]
        >>> data = EventDataset.from_events(recordings, [1, 0], 2, 3, num_classes=2, duration=2.0)
        >>> batch = data.take([1, 0])
        >>> batch.inputs.ids[:, 1], batch.labels
        (Array([[2],
               [0]], dtype=uint16), Array([0, 1], dtype=int32))
    """

    ids: np.ndarray  # [samples, time, capacity] uint16, or int32 above 65,535 neurons
    counts: np.ndarray  # [samples, time] int32, the true number of events, even beyond the capacity
    labels: np.ndarray  # [samples] integer
    num_neurons: int
    num_classes: int
    # [samples] int64, the number of events outside `duration`, which are in no list; a scalar is that of each sample
    outside: np.ndarray = field(default_factory=lambda: np.zeros((), np.int64))
    is_channels_last: bool = False  # whether `channels_last` has renumbered the events

    def __post_init__(self) -> None:
        size = check_integer("EventDataset", "num_neurons", self.num_neurons, 0)
        object.__setattr__(self, "num_neurons", size)
        _check_shape("EventDataset", "ids", self.ids, 3)
        _check_shape("EventDataset", "counts", self.counts, 2, self.ids.shape[:2])
        if self.counts.dtype != np.int32:
            dtype = f"{self.counts.dtype}"  # with the order of its bytes
            fail(
                f"EventDataset: `counts` must have dtype int32, got {dtype}. Cast it with counts.astype(np.int32)."
            )
        check_array("EventDataset", "outside", self.outside)
        if self.outside.ndim == 0:
            object.__setattr__(self, "outside", np.full(len(self.ids), self.outside))
        _check_shape("EventDataset", "outside", self.outside, 1, self.ids.shape[:1])
        _check_labels("EventDataset", self.labels, len(self.ids), self.num_classes)
        if self.counts.min(initial=0) < 0:
            least = self.counts.min()
            fail(f"EventDataset: `counts` must be at least 0, got {least}. Count the events of each list.")
        expected = id_dtype(self.num_neurons)
        if self.ids.dtype != expected:
            wanted, dtype = expected.name, f"{self.ids.dtype}"
            hint = f"Cast them with ids.astype(np.{wanted})"
            fail(f"EventDataset: `ids` must have dtype {wanted}, got {dtype}. {hint}.")
        check_within("EventDataset", "ids", self.ids, self.num_neurons, "Fill unused slots with num_neurons")
        _check_counts("EventDataset", self.ids, self.counts, self.num_neurons)

    @classmethod
    def from_events(
        cls,
        recordings: Iterable[tuple[np.ndarray, np.ndarray]],
        labels: Unchecked,
        num_steps: int,
        num_neurons: int,
        *,
        num_classes: int,
        duration: float | None = None,
        capacity: int | None = None,
    ) -> "EventDataset":
        """Make a data set from recordings ``(times[events], ids[events])``, binned as in `bin_events`.

        `recordings` may be a generator; the integer `labels` are read after it is exhausted. ``outside`` counts the
        events outside `duration` of each recording; a RuntimeWarning says so if they are more than 5 % of all, or
        nearly all of one recording, and another if nearly all events are in one step.
        """
        binning = num_steps, num_neurons, duration
        return binned_dataset("EventDataset.from_events", recordings, labels, *binning, num_classes, capacity)

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def num_steps(self) -> int:
        """The number of time steps of each sample."""
        return self.ids.shape[1]

    @property
    def capacity(self) -> int:
        """The number of slots in a list."""
        return self.ids.shape[2]

    @property
    def dropped(self) -> float:
        """The fraction of all events that did not fit into their lists."""
        lost = np.maximum(self.counts - self.capacity, 0).sum(dtype=np.int64)
        return float(lost / max(1, self.counts.sum(dtype=np.int64)))

    def select(self, indices: Unchecked) -> "EventDataset":
        """The data set of the samples at `indices`."""
        indices = _as_indices("EventDataset.select", indices)
        names = ("ids", "counts", "labels", "outside")
        return replace(self, **{name: getattr(self, name)[indices] for name in names})

    def channels_last(self, channels: int = 2) -> "EventDataset":
        """Renumber the events for convolutions, whose images are (height, width, channels).

        The readers and the simulated camera put the polarity first, ``id = polarity * pixels + pixel``; the result has
        ``id = pixel * channels + polarity``, and lists are sorted again.

        Errors: the number of inputs is not a multiple of `channels`, or the events are renumbered already.

        Example:
            >>> import numpy as np
            >>> from snnjax.data import EventDataset
            >>> recordings = [(np.array([0.0, 0.0]), np.array([2, 3 + 1]))]  # pixel 2 off, pixel 1 on
            >>> polarity_first = EventDataset.from_events(recordings, np.array([1]), 1, 2 * 3, num_classes=2)
            >>> polarity_first.channels_last().ids
            array([[[3, 4]]], dtype=uint16)
        """
        channels = check_integer("EventDataset.channels_last", "channels", channels, 1)
        if self.num_neurons % channels != 0:
            fail(
                f"EventDataset.channels_last: `channels` must divide the number of inputs, {self.num_neurons}, got "
                f"{channels}. Pass the number of polarities of the camera."
            )
        if self.is_channels_last:
            fail(
                "EventDataset.channels_last: `self` must have channels first, got channels last. Call it once."
            )
        renumbered = np.arange(self.num_neurons + 1, dtype=self.ids.dtype)  # the last id marks unused slots
        renumbered[:-1] = renumbered[:-1].reshape(-1, channels).T.ravel()
        ids = np.sort(renumbered[self.ids], axis=-1)
        return replace(self, ids=ids, is_channels_last=channels > 1)

    def take(self, indices: Unchecked) -> Batch:
        """The samples at `indices` as a `Batch` whose inputs are `SparseSpikes` ``[time, batch, capacity]``.

        Every event has the value 1.
        """
        indices = _as_indices("EventDataset.take", indices)
        ids = np.ascontiguousarray(self.ids[indices].swapaxes(0, 1))
        counts = np.ascontiguousarray(self.counts[indices].T)
        spikes = SparseSpikes(
            jnp.asarray(ids),
            None,
            jnp.asarray(counts),
            jnp.asarray(np.minimum(counts, self.capacity)),
            jnp.asarray(np.maximum(counts - self.capacity, 0)),
            self.num_neurons,
        )
        return Batch(spikes, _to_int32(self.labels[indices]), None)


@dataclass(frozen=True)
class SeriesDataset:
    """Samples as real-valued series of different lengths, padded with zeros, with one label per sample or per step.

    Errors: arrays do not match, a number is NaN or infinite, labels are outside ``[0, num_classes)`` (labels per step
    may be negative, for steps without a label), or lengths are outside ``[0, time]``.

    Example:
        >>> from snnjax.data import load_japanese_vowels
        >>> batch = load_japanese_vowels("test").take([0, 1, 2])
        >>> batch.inputs.shape, batch.lengths
        ((29, 3, 12), Array([19, 17, 19], dtype=int32))
    """

    series: np.ndarray  # [samples, time, channels] finite numbers
    lengths: np.ndarray  # [samples] integer
    labels: np.ndarray  # [samples] or [samples, time] integer
    num_classes: int

    def __post_init__(self) -> None:
        _check_shape("SeriesDataset", "series", self.series, 3)
        _check_numbers("SeriesDataset", "series", self.series)
        _check_shape("SeriesDataset", "lengths", self.lengths, 1, self.series.shape[:1])
        check_integers("SeriesDataset", "lengths", self.lengths)
        check_array("SeriesDataset", "labels", self.labels)
        if self.labels.ndim == 2:
            one_hot = len(self.series), self.num_classes
            if one_hot != self.series.shape[:2]:
                _check_one_hot("SeriesDataset", self.labels, one_hot, "[samples] or [samples, time]")
            _check_shape("SeriesDataset", "labels", self.labels, 2, self.series.shape[:2])
            _check_classes("SeriesDataset", np.maximum(self.labels, 0), self.num_classes)
        else:
            _check_labels("SeriesDataset", self.labels, len(self.series), self.num_classes)
        longest = self.series.shape[1]
        if not np.all((self.lengths >= 0) & (self.lengths <= longest)):
            fail(
                f"SeriesDataset: `lengths` must be in [0, {longest}], got {self.lengths.min(initial=0)} to "
                f"{self.lengths.max(initial=0)}. Pass the number of valid steps of each sample."
            )

    def __len__(self) -> int:
        return len(self.labels)

    def select(self, indices: Unchecked) -> "SeriesDataset":
        """The data set of the samples at `indices`."""
        indices = _as_indices("SeriesDataset.select", indices)
        return replace(
            self,
            series=self.series[indices],
            lengths=self.lengths[indices],
            labels=self.labels[indices],
        )

    def take(self, indices: Unchecked) -> Batch:
        """The samples at `indices` as a `Batch` whose inputs are ``[time, batch, channels]``."""
        indices = _as_indices("SeriesDataset.take", indices)
        series = np.ascontiguousarray(self.series[indices].swapaxes(0, 1))
        labels = np.ascontiguousarray(self.labels[indices].T)  # labels per step become [time, batch]
        return Batch(jnp.asarray(series), _to_int32(labels), _to_int32(self.lengths[indices]))


@dataclass(frozen=True)
class ImageDataset:
    """Images, grey for an encoder or for the simulated event camera (`saccade_events`), or in colour.

    Errors: arrays do not match, or labels are outside ``[0, num_classes)``.

    Example:
        >>> from snnjax.data import load_mnist_10k
        >>> batch = load_mnist_10k("test").take([0, 1])
        >>> batch.inputs.shape, float(batch.inputs.max())
        ((2, 784), 1.0)
    """

    images: np.ndarray  # uint8 [samples, height, width], 255 is white, or [samples, height, width, channels]
    labels: np.ndarray  # [samples] integer
    num_classes: int

    def __post_init__(self) -> None:
        check_array("ImageDataset", "images", self.images)
        _check_shape("ImageDataset", "images", self.images, 4 if self.images.ndim == 4 else 3)
        _check_labels("ImageDataset", self.labels, len(self.images), self.num_classes)
        if self.images.dtype != np.uint8:
            dtype = self.images.dtype.name
            fail(
                f"ImageDataset: `images` must have dtype uint8, got {dtype}. Scale them to 0 to 255, and cast them."
            )

    def __len__(self) -> int:
        return len(self.labels)

    def select(self, indices: Unchecked) -> "ImageDataset":
        """The data set of the samples at `indices`."""
        indices = _as_indices("ImageDataset.select", indices)
        return replace(self, images=self.images[indices], labels=self.labels[indices])

    def take(self, indices: Unchecked) -> Batch:
        """The samples at `indices` as a `Batch` of float32 in [0, 1], for the encoders.

        They are ``[batch, height * width]``, or ``[batch, height, width, channels]`` in colour.
        """
        indices = _as_indices("ImageDataset.take", indices)
        images = self.images[indices]
        flat = images.reshape(len(images), -1) if images.ndim == 3 else images
        pixels = flat.astype(np.float32) / np.float32(255)
        return Batch(jnp.asarray(pixels), _to_int32(self.labels[indices]), None)


def _to_int32(values: np.ndarray) -> Array:
    # Any negative label is none: that of a NaN, which was cast to an integer, would become 0.
    return jnp.asarray(np.maximum(values.astype(np.int64), -1).astype(np.int32))


def _as_indices(op: str, indices: Unchecked) -> slice | np.ndarray:
    """Indices of samples, a mask of them or a slice; a single one would remove the axis of the samples."""
    if isinstance(indices, slice):
        return indices
    found = np.asarray(indices)
    if found.ndim != 1 or (found.size and found.dtype.kind not in "iub"):
        hint = "Pass a list, such as [0]"
        fail(f"{op}: `indices` must be integers [batch], got {short_repr(indices)}. {hint}.")
    return found if found.size else found.astype(np.int64)  # an empty list holds floats


def binned_dataset(
    op: str,
    recordings: Iterable[Any],
    labels: Unchecked,
    num_steps: int,
    num_neurons: int,
    duration: float | None,
    num_classes: int,
    capacity: int | None,
    most_outside: float = MOST_OUTSIDE,
) -> EventDataset:
    """`EventDataset.from_events` in the name of `op`, which warns from any share of events outside `duration` on."""
    num_steps, num_neurons, capacity = check_sizes(op, num_steps, num_neurons, capacity)
    samples: list[Binned] = []
    for number, recording in enumerate(recordings):
        times, ids = _as_pair(op, number, recording)
        of = f" of recordings[{number}]"
        samples.append(bin_ragged(op, times, ids, num_steps, num_neurons, duration, of))
    outside, totals = (
        np.array([getattr(each, name) for each in samples], np.int64) for name in ("outside", "total")
    )
    warn_of_outside(op, outside, totals, duration, most_outside)
    counts = np.concatenate([np.zeros((0, num_steps), np.int32), *(each.lists.counts for each in samples)])
    warn_of_one_step(op, counts, int(totals.sum() - outside.sum()), duration, 4)
    ragged = concatenate([sample.lists for sample in samples], num_steps, num_neurons)
    ids, counts = pack(ragged, num_neurons, capacity)
    labels = np.asarray(labels) if len(samples) else np.zeros(len(labels), np.int32)
    return EventDataset(ids, counts, labels, num_neurons, num_classes, outside)


def _as_pair(op: str, number: int, recording: Unchecked) -> Any:
    """Check that `recording` is a pair; a structured array would be unpacked into its events."""
    is_pair = isinstance(recording, tuple | list) and len(recording) == 2
    dtypes = [getattr(part, "dtype", None) for part in (recording if is_pair else [recording])]
    has_fields = any(getattr(dtype, "names", None) for dtype in dtypes)
    if has_fields:
        hint = "Read it with structured_events"
        fail(f"{op}: `recordings[{number}]` must be a pair of plain arrays, got a structured array. {hint}.")
    if not is_pair:
        actual = type_words(recording)
        actual += f" of {len(recording)}" if isinstance(recording, tuple | list) else ""
        hint = "Pass the times and the ids of its events"
        fail(f"{op}: `recordings[{number}]` must be a pair (times, ids), got {actual}. {hint}.")
    return recording


def _check_shape(op: str, argument: str, value: np.ndarray, ndim: int, shape: tuple[int, ...] = ()) -> None:
    """Check that `value` has `ndim` axes, and these lengths if they are given."""
    check_array(op, argument, value)
    if value.ndim != ndim or (shape and value.shape != shape):
        form = f"shape {list(shape)}" if shape else f"{ndim} axes"
        fail(
            f"{op}: `{argument}` must have {form}, got shape {list(value.shape)}. Samples come first, then time."
        )


def _check_numbers(op: str, argument: str, value: np.ndarray) -> None:
    """Check that `value` holds real numbers that JAX can hold.

    A NaN would silence the neurons of its sample, and no score shows that.
    """
    if not any(jnp.issubdtype(value.dtype, kind) for kind in (jnp.floating, jnp.integer, jnp.bool_)):
        fail(f"{op}: `{argument}` must hold numbers, got {value.dtype.name}. Cast it to float32.")
    if not value.dtype.isnative or value.dtype == np.longdouble:
        actual = f"{value.dtype}"
        fail(f"{op}: `{argument}` must have a dtype that JAX has, got {actual}. Cast it to float32.")
    finite = np.isfinite(value)
    if not finite.all():
        actual = f"NaN or infinity in sample {np.argwhere(~finite)[0, 0]}"
        fail(f"{op}: `{argument}` must be finite, got {actual}. Fill what is missing, or remove the sample.")
    dtype = jax.dtypes.canonicalize_dtype(value.dtype)
    if dtype == value.dtype or value.size == 0:
        return
    most = (jnp.finfo if dtype.kind == "f" else jnp.iinfo)(dtype).max
    largest = np.abs(value.astype(np.float64)).max()
    if largest > most:
        fail(f"{op}: `{argument}` must fit into {dtype.name}, got {largest:g}. Scale it to numbers near 1.")


def _check_labels(op: str, labels: np.ndarray, samples: int, num_classes: int) -> None:
    check_integer(op, "num_classes", num_classes, 1)
    check_array(op, "labels", labels)
    _check_one_hot(op, labels, (samples, num_classes), "[samples]")
    check_shape(op, "labels", labels, (samples,), "samples", "Pass one class number per sample")
    _check_classes(op, labels, num_classes)


def _check_counts(op: str, ids: np.ndarray, counts: np.ndarray, num_neurons: int) -> None:
    """Check that lists hold as many events as are counted, from their first slot on, up to their capacity."""
    slots = np.arange(ids.shape[2])
    for first in range(0, len(ids), _CHECK_BLOCK):
        block = slice(first, first + _CHECK_BLOCK)
        wrong = np.any((ids[block] < num_neurons) != (slots < counts[block, :, None]), axis=2)
        if wrong.any():
            sample, step = np.argwhere(wrong)[0] + np.array([first, 0])
            listed = np.count_nonzero(ids[sample, step] < num_neurons)
            where, hint = (
                f"counts[{sample}, {step}]",
                "Ids come before unused slots: count those of each list",
            )
            fail(f"{op}: `{where}` must be that of its ids, {listed}, got {counts[sample, step]}. {hint}.")


def _check_one_hot(op: str, labels: np.ndarray, shape: tuple[int, int], axes: str) -> None:
    if labels.shape == shape:
        actual = f"shape {list(shape)}, which looks one-hot"
        fail(f"{op}: `labels` must be class numbers {axes}, got {actual}. Pass labels.argmax(axis=1).")


def _check_classes(op: str, labels: np.ndarray, num_classes: int) -> None:
    check_integers(op, "labels", labels)
    check_within(op, "labels", labels, num_classes - 1, "Number the classes from 0")
