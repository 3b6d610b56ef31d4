"""Containers: their contents, and errors for arrays that do not match."""

import re
import warnings
from dataclasses import replace

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from snnjax import SparseSpikes
from snnjax.data import EventDataset, ImageDataset, SeriesDataset, augment_camera_events
from tests.errors.refusals import refusals
from tests.numbers import array

IDS = np.array([[[0, 2], [3, 3]], [[1, 3], [0, 1]], [[3, 3], [2, 3]]], np.uint16)
COUNTS = np.array([[2, 0], [1, 3], [0, 1]], np.int32)
EVENTS = EventDataset(IDS, COUNTS, np.array([1, 0, 1]), num_neurons=3, num_classes=2)


def test_event_dataset_takes_time_first():
    batch = EVENTS.take([2, 1])
    spikes = batch.inputs
    assert isinstance(spikes, SparseSpikes)
    assert spikes.shape == (2, 2, 3)
    assert np.array_equal(spikes.to_dense(), [[[0, 0, 0], [0, 1, 0]], [[0, 0, 1], [1, 1, 0]]])
    assert np.asarray(spikes.num_spikes).tolist() == [[0, 1], [1, 3]]
    assert np.asarray(spikes.num_listed).tolist() == [[0, 1], [1, 2]]
    assert np.asarray(spikes.num_dropped).tolist() == [[0, 0], [0, 1]]
    assert batch.labels.tolist() == [1, 0]
    assert batch.lengths is None


def test_event_dataset_take_equals_from_ids():
    full = EVENTS.select([0, 2])
    spikes, expected = full.take([0, 1]).inputs, SparseSpikes.from_ids(IDS[[0, 2]].swapaxes(0, 1), 3)
    chex.assert_trees_all_equal(spikes, expected, strict=True)
    assert spikes.values is None  # each event has the value 1


@pytest.mark.parametrize("channels", [1, 2, 3])
def test_event_dataset_numbers_channels_last(channels):
    height, width = 3, 5
    images = np.random.default_rng(0).random((4, 6, channels, height, width)) < 0.3
    rows = images.reshape(4, 6, -1)
    counts = rows.sum(axis=-1).astype(np.int32)
    lists = SparseSpikes.from_dense(array(rows, jnp.float32), capacity=int(counts.max()) + 2)
    first = EventDataset(np.asarray(lists.ids), counts, np.arange(4), rows.shape[-1], num_classes=4)
    last = first.channels_last(channels)
    dense = np.asarray(last.take(range(4)).inputs.to_dense()).reshape(6, 4, height, width, channels)
    assert np.array_equal(np.moveaxis(dense, (1, 4), (0, 2)), images)
    assert last.ids.dtype == first.ids.dtype
    assert (np.diff(last.ids.astype(np.int64), axis=-1) >= 0).all()
    assert last.counts is first.counts


def test_event_dataset_refuses_channels_that_do_not_divide_its_inputs():
    text = r"^EventDataset.channels_last: `channels` must divide the number of inputs, 3, got 2. Pass"
    with pytest.raises(ValueError, match=text):
        EVENTS.channels_last()


def test_channels_are_put_last_once():
    """Twice, or moved about as if the polarity came first, events would be scrambled."""
    first = EventDataset(np.full((1, 1, 1), 5, np.uint16), COUNTS[1:2, :1], LABELS[:1], 2 * 2 * 2, 2)
    last = first.channels_last().select([0])
    with pytest.raises(
        ValueError, match=r"^EventDataset.channels_last: `self` must have channels first, got"
    ):
        last.channels_last()
    with pytest.raises(
        ValueError, match=r"^augment_camera_events: `events` must have the polarity first, got"
    ):
        augment_camera_events(jax.random.key(0), last, height=2, width=2)
    moved = augment_camera_events(jax.random.key(0), first, height=2, width=2).channels_last()
    assert moved.is_channels_last and not first.channels_last(1).is_channels_last


def test_event_dataset_properties():
    assert (len(EVENTS), EVENTS.num_steps, EVENTS.capacity) == (3, 2, 2)
    # One of seven events does not fit.
    assert EVENTS.dropped == pytest.approx(1 / 7, rel=1e-12)


def test_event_dataset_select_keeps_classes():
    data = EVENTS.select(EVENTS.labels == 0)
    assert len(data) == 1
    assert data.num_classes == 2
    assert np.array_equal(data.ids[0], IDS[1])


def test_event_dataset_from_no_recordings_is_empty():
    data = EventDataset.from_events([], [], 4, 9, num_classes=2)
    assert data.ids.shape == (0, 4, 1)
    assert data.dropped == 0


def test_event_dataset_from_many_recordings_equals_each_alone():
    random = np.random.default_rng(1)
    recordings = [(random.uniform(0, 1, n), random.integers(0, 9, n)) for n in random.integers(0, 30, 150)]
    labels = np.zeros(150, int)
    data = EventDataset.from_events(iter(recordings), labels, 3, 9, num_classes=1, duration=1.0, capacity=3)
    for k in (0, 63, 64, 149):
        alone = EventDataset.from_events([recordings[k]], [0], 3, 9, num_classes=1, duration=1.0, capacity=3)
        assert np.array_equal(data.ids[k], alone.ids[0])
        assert np.array_equal(data.counts[k], alone.counts[0])


@pytest.mark.parametrize(
    "start, scale",
    [
        (1.7e15, 1e6),  # microseconds since 1970
        (1.7e9, 1),  # seconds since 1970
        (100, 1),  # seconds since the camera was switched on
        (0, 1e3),  # milliseconds
        (0, 1e6),  # microseconds
        (-5, 1),
    ],
)
def test_event_dataset_warns_of_times_outside_the_duration(start, scale):
    times, ids = np.linspace(0, 0.5, 400, endpoint=False), np.arange(400) % 9
    recordings = [(times, ids), (start + scale * times, ids), ([], [])]
    share, all_of_one = ("49.9", "99.8") if start == 0 else ("50", "100")
    text = (
        f"EventDataset.from_events: {share} % of the events are outside [0, 0.5) and left out, the largest part in "
        f"recordings[1] with {all_of_one} %. Count times from the start of the recording, in the unit of duration, "
        "or pass a longer one."
    )
    with pytest.warns(RuntimeWarning, match=f"^{re.escape(text)}$"):
        data = EventDataset.from_events(recordings, [0, 0, 0], 5, 9, num_classes=1, duration=0.5)
    assert data.counts.sum(axis=1).tolist() == [45, 1 if start == 0 else 0, 0]
    assert data.outside.tolist() == [0, 399 if start == 0 else 400, 0]
    assert data.select([2, 1]).outside.tolist() == [0, data.outside[1]]
    # Without a duration nothing is lost.
    data = EventDataset.from_events(recordings, [0, 0, 0], 5, 9, num_classes=1)
    assert data.counts.sum(axis=1).tolist() == [45, 45, 0]
    assert data.outside.tolist() == [0, 0, 0]


def recordings_of(outside, total=100):
    """Recordings of events within and beyond a duration of 1, with so many outside."""
    return [(np.where(np.arange(total) < number, 1.5, 0.5), np.zeros(total, int)) for number in outside]


@pytest.mark.parametrize("outside, warns", [([5, 5, 5], False), ([5, 6, 5], True), ([0] * 99 + [100], True)])
def test_event_dataset_warns_from_a_twentieth_on_or_of_a_whole_recording(outside, warns):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        labels = np.zeros(len(outside), int)
        data = EventDataset.from_events(recordings_of(outside), labels, 2, 1, num_classes=1, duration=1.0)
    assert data.outside.tolist() == outside
    assert len(caught) == warns


def test_event_dataset_warns_of_a_mistaken_unit():
    """Seconds, and a duration in microseconds."""
    times, ids = np.linspace(0, 1.2, 614), np.arange(614)
    text = "EventDataset.from_events: 100 % of the events are in step 0 of 100. Pass the duration in the unit of times."
    with pytest.warns(RuntimeWarning, match=f"^{re.escape(text)}$"):
        EventDataset.from_events([(times, ids)] * 2, [0, 0], 100, 614, num_classes=1, duration=1.2e6)


def test_event_dataset_counts_nothing_outside_of_own_lists():
    assert EVENTS.outside.tolist() == [0, 0, 0]
    assert replace(EVENTS, outside=np.array([1, 0, 2])).select(slice(1, 3)).outside.tolist() == [0, 2]


def test_series_dataset_takes_time_first():
    series = np.arange(12, dtype=np.float32).reshape(2, 3, 2)
    data = SeriesDataset(series, np.array([3, 1], np.uint8), np.array([0, 1], np.uint8), num_classes=2)
    batch = data.take([1, 0, 1])
    assert batch.inputs.shape == (3, 3, 2)
    assert np.array_equal(batch.inputs[:, 0], series[1])
    assert batch.lengths.tolist() == [1, 3, 1]
    assert batch.lengths.dtype == jnp.int32
    assert len(data.select([1])) == 1


def test_series_dataset_takes_labels_of_steps_time_first():
    labels = np.array([[0, 1, -(2**32)], [1, -1, -1]])  # NaN as an integer is as small
    data = SeriesDataset(np.zeros((2, 3, 1), np.float32), np.array([2, 1]), labels, num_classes=2)
    batch = data.take([1, 0])
    assert batch.labels.tolist() == [[1, 0], [-1, 1], [-1, -1]] and batch.labels.dtype == jnp.int32
    with pytest.raises(
        ValueError, match=r"^SeriesDataset: `labels` must be between 0 and 0, got 1\. Number the"
    ):
        replace(data, num_classes=1)
    with pytest.raises(ValueError, match=r"^SeriesDataset: `labels` must have shape \[2, 3\]"):
        replace(data, labels=labels[:, :1])


def test_image_dataset_takes_intensities():
    data = ImageDataset(np.array([[[0, 255], [51, 0]]], np.uint8), np.array([4]), num_classes=5)
    batch = data.take([0, 0])
    assert batch.inputs.dtype == jnp.float32
    # 51 / 255 is one rounding away from 0.2.
    assert np.allclose(batch.inputs, [[0, 1, 0.2, 0]] * 2, rtol=1e-7)
    assert batch.labels.tolist() == [4, 4]
    assert len(data.select([])) == 0


LABELS, SERIES = np.zeros(3, int), np.zeros((3, 4, 2), np.float32)


REFUSED = {
    "EventDataset: `ids` must have 3 axes, got shape [2, 2]. Samples come first, then time.": lambda: (
        EventDataset(IDS[0], COUNTS, LABELS, 3, 2)
    ),
    "EventDataset: `counts` must have shape [3, 2], got shape [2, 2]. "
    "Samples come first, then time.": lambda: EventDataset(IDS, COUNTS[:2], LABELS, 3, 2),
    "EventDataset: `ids` must have dtype uint16, got int32. Cast them with ids.astype(np.uint16).": lambda: (
        EventDataset(IDS.astype(np.int32), COUNTS, LABELS, 3, 2)
    ),
    "EventDataset: `ids` must be between 0 and 3, got 12. Fill unused slots with num_neurons.": lambda: (
        EventDataset(IDS + np.uint16(9), COUNTS, LABELS, 3, 2)
    ),
    "EventDataset: `counts[1, 0]` must be that of its ids, 1, got 2. "
    "Ids come before unused slots: count those of each list.": lambda: EventDataset(
        IDS, np.maximum(COUNTS, [[0], [2], [0]]).astype(np.int32), LABELS, 3, 2
    ),
    "EventDataset: `counts[2, 1]` must be that of its ids, 1, got 1. "  # which the first slot does not hold
    "Ids come before unused slots: count those of each list.": lambda: EventDataset(
        np.stack([IDS[0], IDS[1], IDS[2, :, ::-1]]), COUNTS, LABELS, 3, 2
    ),
    f"EventDataset: `counts` must be at least 0, got {-1 - COUNTS.max()}. Count the events of each list.": lambda: (
        EventDataset(IDS, -1 - COUNTS, LABELS, 3, 2)
    ),
    "EventDataset: `counts` must have dtype int32, got uint8. "
    "Cast it with counts.astype(np.int32).": lambda: EventDataset(IDS, COUNTS.astype(np.uint8), LABELS, 3, 2),
    "EventDataset: `counts` must have dtype int32, got >i4. Cast it with counts.astype(np.int32).": lambda: (
        EventDataset(IDS, COUNTS.astype(">i4"), LABELS, 3, 2)
    ),
    "SeriesDataset: `series` must have a dtype that JAX has, got >f4. Cast it to float32.": lambda: (
        SeriesDataset(SERIES.astype(">f4"), LABELS + 1, LABELS, 5)
    ),
    f"SeriesDataset: `series` must have a dtype that JAX has, got {np.dtype(np.longdouble)}. Cast it to "
    "float32.": lambda: SeriesDataset(SERIES.astype(np.longdouble), LABELS + 1, LABELS, 5),
    "EventDataset: `outside` must have shape [3], got shape [2]. Samples come first, then time.": lambda: (
        replace(EVENTS, outside=np.zeros(2, int))
    ),
    "EventDataset: `labels` must be class numbers [samples], got shape [3, 2], which looks one-hot. "
    "Pass labels.argmax(axis=1).": lambda: EventDataset(IDS, COUNTS, np.eye(3, 2), 3, 2),
    "EventDataset: `labels` must be class numbers [samples], got shape [3, 3], which looks one-hot. "
    "Pass labels.argmax(axis=1).": lambda: EventDataset.from_events(
        [([0.0], [0])] * 3, np.eye(3), 1, 1, num_classes=3
    ),
    "SeriesDataset: `labels` must be class numbers [samples] or [samples, time], got shape [3, 5], which "
    "looks one-hot. "
    "Pass labels.argmax(axis=1).": lambda: SeriesDataset(SERIES, LABELS + 1, np.eye(3, 5, dtype=int), 5),
    "ImageDataset: `labels` must be class numbers [samples], got shape [3, 5], which looks one-hot. "
    "Pass labels.argmax(axis=1).": lambda: ImageDataset(np.zeros((3, 1, 1), np.uint8), np.eye(3, 5), 5),
    "EventDataset: `labels` must have shape [samples] = [3], got [2]. "
    "Pass one class number per sample.": lambda: EventDataset(IDS, COUNTS, LABELS[:2], 3, 2),
    "EventDataset: `labels` must be between 0 and 1, got 2. Number the classes from 0.": lambda: EventDataset(
        IDS, COUNTS, LABELS + 2, 3, 2
    ),
    "EventDataset: `labels` must be an array, got a list. Pass a JAX or NumPy array.": lambda: replace(
        EVENTS, labels=[1, 0, 1]
    ),
    "EventDataset: `labels` must hold integers, got float64. Cast it with labels.astype(int).": lambda: (
        EventDataset(IDS, COUNTS, LABELS + 0.5, 3, 2)
    ),
    "EventDataset.from_events: `capacity` must be an integer of at least 1, got 0. Pass 1 or more.": lambda: (
        EventDataset.from_events([], [], 1, 1, num_classes=1, capacity=0)
    ),
    "EventDataset.from_events: `times of recordings[1]` must be finite, got NaN or infinity. "
    "Remove such events.": lambda: EventDataset.from_events(
        [([0.0], [1]), ([np.nan], [0])], [0, 0], 1, 3, num_classes=1
    ),
    "EventDataset.from_events: `ids of recordings[0]` must be between 0 and 2, got 3. "
    "Pass a larger num_neurons.": lambda: EventDataset.from_events([([0.0], [3])], [0], 1, 3, num_classes=1),
    "SeriesDataset: `labels` must be an array, got a list. Pass a JAX or NumPy array.": lambda: SeriesDataset(
        SERIES, LABELS, [0, 0, 0], 1
    ),
    "SeriesDataset: `lengths` must hold integers, got float64. Cast it with lengths.astype(int).": lambda: (
        SeriesDataset(SERIES, LABELS + 0.5, LABELS, 1)
    ),
    "SeriesDataset: `series` must fit into float32, got 1e+300. Scale it to numbers near 1.": lambda: (
        SeriesDataset(np.full((3, 4, 2), 1e300), LABELS, LABELS, 1)
    ),
    "EventDataset.take: `indices` must be integers [batch], got 1. Pass a list, such as [0].": lambda: (
        EVENTS.take(1)
    ),
    "EventDataset.from_events: `ids of recordings[0]` must have no masked entries, got a MaskedArray. "
    "Leave them out.": lambda: EventDataset.from_events(
        [([0.0], np.ma.array([1], mask=[1]))], [0], 1, 3, num_classes=1
    ),
    "EventDataset.from_events: `ids of recordings[0]` must hold integers, got float64. Cast "
    "it with ids.astype(int).": lambda: EventDataset.from_events([([0.0], [0.5])], [0], 1, 3, num_classes=1),
    "EventDataset: `labels` must hold integers, got str96. Number words with np.unique(labels, "
    "return_inverse=True).": lambda: EventDataset(IDS, COUNTS, np.array(["one", "two", "one"]), 3, 2),
    "SeriesDataset: `series` must hold numbers, got object. Cast it to float32.": lambda: SeriesDataset(
        np.array(SERIES, object), LABELS, LABELS, 1
    ),
    "SeriesDataset: `series` must be finite, got NaN or infinity in sample 2. "
    "Fill what is missing, or remove the sample.": lambda: SeriesDataset(
        np.array([SERIES[0], SERIES[1], SERIES[2] - np.inf]), LABELS, LABELS, 1
    ),
    "SeriesDataset: `lengths` must be in [0, 4], got 0 to 5. Pass the "
    "number of valid steps of each sample.": lambda: SeriesDataset(SERIES, np.array([0, 4, 5]), LABELS, 1),
    "SeriesDataset: `num_classes` must be an integer of at least 1, got 0. Pass 1 or more.": lambda: (
        SeriesDataset(SERIES, LABELS, LABELS, 0)
    ),
    "ImageDataset: `images` must have dtype uint8, got float32. "
    "Scale them to 0 to 255, and cast them.": lambda: ImageDataset(SERIES, LABELS, 1),
}
test_datasets_refuse = refusals(REFUSED)
