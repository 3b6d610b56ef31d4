"""Structured arrays as Tonic gives them, written out by the test."""

import re
import weakref

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from snnjax.data import CameraEvents, EventDataset, bin_events, camera_events, structured_events

HEIGHT, WIDTH = 3, 5
EVENTS = st.lists(
    st.tuples(st.integers(0, 2**40), st.integers(0, WIDTH - 1), st.integers(0, HEIGHT - 1), st.integers(0, 1))
)
TIME, PIXEL = st.sampled_from(["i8", "u8"]), st.sampled_from(["i2", "u2", "u1", "i8"])


def array(events, t="i8", x="i8", y="i8", p="i8", order="txyp"):
    fields = np.array(events, [("t", t), ("x", x), ("y", y), ("p", p)])
    out = np.zeros(len(events), [(name, fields.dtype[name]) for name in order])
    for name in order:
        out[name] = fields[name]
    return out


@given(EVENTS, TIME, PIXEL, PIXEL, st.sampled_from(["?", "u1", "i8"]), st.permutations("txyp"))
def test_camera_events_round_trip(events, t, x, y, p, order):
    read = camera_events(array(events, t, x, y, p, order), height=HEIGHT, width=WIDTH)
    assert {column.dtype for column in read} == {np.dtype(np.int64)}
    assert list(zip(*(column.tolist() for column in read), strict=True)) == events


@pytest.mark.filterwarnings("ignore:(structured|bin)_events")
def test_structured_events_are_binned_as_any_others():
    recordings = [
        ([(0, 4, 2, 1), (6, 0, 0, 0)], 1),
        ([], 0),
        ([(9, 1, 1, 1), (9, 1, 1, 1), (10, 0, 0, 0)], 2),
    ]
    pairs = ((array(events), label) for events, label in recordings)
    options = {"num_steps": 2, "num_classes": 3, "duration": 10}
    dataset = structured_events(pairs, height=HEIGHT, width=WIDTH, **options)
    assert (dataset.num_neurons, dataset.labels.tolist()) == (30, [1, 0, 2])
    for sample, (events, _) in zip(range(3), recordings, strict=True):
        times, ids = [t for t, *_ in events], [(p * HEIGHT + y) * WIDTH + x for _, x, y, p in events]
        lists = bin_events(times, ids, 2, 30, duration=10, capacity=dataset.capacity)
        np.testing.assert_array_equal(dataset.ids[sample], lists.ids)


def test_structured_events_merges_pixels():
    recordings = [(array([(0, 4, 2, 1), (0, 3, 2, 1), (0, 2, 2, 1)]), 0)]
    options = {"num_steps": 1, "num_classes": 1, "duration": 1, "downsample": 2}
    dataset = structured_events(recordings, height=HEIGHT, width=WIDTH, **options)  # 2 rows of 3
    assert (dataset.num_neurons, dataset.ids.tolist()) == (12, [[[10, 11]]])


def test_structured_events_holds_one_recording_at_a_time():
    made = []

    def recordings():
        for number in range(5):
            events = array([(number, 1, 2, 1)] * 3)
            made.append(weakref.ref(events))
            yield events, 0
            # The last one may live on until the next one is taken.
            del events
            assert sum(each() is not None for each in made) <= 1

    options = {"num_steps": 1, "num_classes": 1}
    assert len(structured_events(recordings(), height=HEIGHT, width=WIDTH, **options)) == 5


@pytest.mark.parametrize(
    "dtype", [np.uint8, np.int8, np.uint16, np.int16, np.int32, np.uint32, np.uint64, bool]
)
def test_camera_events_number_pixels_in_wide_integers(dtype):
    camera = CameraEvents(np.zeros(2), *np.array([[1279, 0], [719, 1], [1, 0]], np.uint16))
    assert camera.ids(720, 1280).tolist() == [1843199, 1280]
    camera = camera._replace(
        x=camera.x.astype(np.uint8), y=camera.y.astype(np.uint8), polarity=np.array([1, 0], dtype)
    )
    assert camera.ids(720, 1280).tolist() == [(720 + 719 % 256) * 1280 + 255, 1280]
    assert camera.ids(720, 1280).dtype == np.int64


@pytest.mark.parametrize(
    "change, message",
    [
        (
            {"x": np.array([34], np.uint8)},
            "`x` must be between 0 and 33, got 34. Pass the width of the camera.",
        ),
        (
            {"y": np.array([-1], np.int8)},
            "`y` must be between 0 and 19, got -1. Pass the height of the camera.",
        ),
        (
            {"polarity": np.array([-1], np.int8)},
            "`polarity` must be between 0 and 1, got -1. Map polarities to 0 and 1.",
        ),
        (
            {"y": np.ma.array([0], mask=[True])},
            "`y` must have no masked entries, got a MaskedArray. Leave them out.",
        ),
        ({"x": np.array([0.0])}, "`x` must hold integers, got float64. Cast it with x.astype(int)."),
    ],
)
def test_camera_events_refuse_pixels_of_another_camera(change, message):
    zero = np.zeros(1, np.int64)
    with pytest.raises(ValueError, match=f"^{re.escape(f'CameraEvents.ids: {message}')}$"):
        CameraEvents(zero, zero, zero, zero)._replace(**change).ids(20, 34)


def read(events):
    return camera_events(events, height=HEIGHT, width=WIDTH)


FIELDS = "Pass a NumPy array whose dtype has these fields, as from Tonic without a transform."
FAILURES = {
    "list": (
        lambda: read([(0, 0, 0, 0)]),
        f"`events` must be a structured array [events] with the fields t, x, y and p, got a list. {FIELDS}",
    ),
    "plain": (
        lambda: read(np.zeros((3, 4))),
        f"`events` must be a structured array [events] with the fields t, x, y and p, got an array. {FIELDS}",
    ),
    "axes": (
        lambda: read(array([(0, 0, 0, 0)])[None]),
        f"`events` must be a structured array [events] with the fields t, x, y and p, got shape [1, 1]. {FIELDS}",
    ),
    "field": (
        lambda: read(array([(0, 0, 0, 0)])[["t", "x", "p"]]),
        "`events` must be a structured array [events] with the fields t, x, y and p, got one without y. "
        + FIELDS,
    ),
    "dtype": (
        lambda: read(array([(0.5, 0, 0, 0)], t="f8")),
        "`events` must have integers as t, got float64. Convert it to whole microseconds.",
    ),
    "column": (
        lambda: read(array([(0, 0.5, 0, 0)], x="f8")),
        "`events` must have integers as x, got float64. Cast the field.",
    ),
    "time": (
        lambda: read(array([(2**63, 0, 0, 0)], t="u8")),
        "`events` must have t in [0, 9223372036854775808), got 9223372036854775808. "
        "Count microseconds from the start of the sample.",
    ),
    "x": (
        lambda: read(array([(0, 4, 0, 0), (0, 5, 0, 0)])),
        "`events` must have x in [0, 5), got 5. Pass the width of the camera.",
    ),
    "y": (
        lambda: read(array([(0, 0, -1, 0)])),
        "`events` must have y in [0, 3), got -1. Count it from 0.",
    ),
    "height": (
        lambda: read(array([(0, 0, 3, 0)])),
        "`events` must have y in [0, 3), got 3. Pass the height of the camera.",
    ),
    "mask": (
        lambda: read(np.ma.array(array([(0, 0, 0, 0), (1, 0, 0, 0)]), mask=[(False,) * 4, (True,) * 4])),
        "`events['t']` must have no masked entries, got a MaskedArray. Leave them out.",
    ),
    "p": (
        lambda: read(array([(0, 0, 0, -1)])),
        "`events` must have p in [0, 2), got -1. Map polarities to 0 and 1.",
    ),
}


@pytest.mark.parametrize("case", sorted(FAILURES))
def test_wrong_events_are_named(case):
    call, text = FAILURES[case]
    with pytest.raises(ValueError, match=f"^{re.escape('camera_events: ' + text)}$"):
        call()


def test_wrong_recording_is_named_by_its_number():
    recordings = [(array([(0, 0, 0, 0)]), 0), (array([(0, 9, 0, 0)]), 0)]
    options = {"height": HEIGHT, "width": WIDTH, "num_steps": 1, "num_classes": 1}
    text = "structured_events: `recordings[1]` must have x in [0, 5), got 9. Pass the width of the camera."
    with pytest.raises(ValueError, match=f"^{re.escape(text)}$"):
        structured_events(recordings, **options)
    text = (
        "structured_events: `recordings` must hold at least one recording, got none. "
        "Pass pairs (structured array, label)."
    )
    with pytest.raises(ValueError, match=f"^{re.escape(text)}$"):
        structured_events([], **options)


@pytest.mark.parametrize(
    "pair, actual",
    [
        (array([(0, 0, 0, 0)] * 2), "an array"),
        ((array([(0, 0, 0, 0)]), 0, 1), "a tuple of 3"),
    ],
)
def test_structured_events_takes_pairs(pair, actual):
    text = (
        f"structured_events: `recordings[0]` must be a pair (structured array, label), got {actual}. "
        "Pass pairs, as zip(arrays, labels) makes them."
    )
    with pytest.raises(ValueError, match=f"^{re.escape(text)}$"):
        structured_events([pair], height=HEIGHT, width=WIDTH, num_steps=1, num_classes=1)


STRUCTURED = "of plain arrays, got a structured array. Read it with structured_events."
PAIR, EVENTS = "(times, ids)", "Pass the times and the ids of its events."


@pytest.mark.parametrize(
    "recording, found",
    [
        (array([(0, 0, 0, 0)] * 3), STRUCTURED),
        ((array([(0, 0, 0, 0)] * 3), 1), STRUCTURED),
        (np.zeros((2, 4)), f"{PAIR}, got an array. {EVENTS}"),
        ((np.zeros(3), np.zeros(3, int), 1), f"{PAIR}, got a tuple of 3. {EVENTS}"),
    ],
)
def test_from_events_says_where_structured_arrays_are_read(recording, found):
    text = f"EventDataset.from_events: `recordings[0]` must be a pair {found}"
    with pytest.raises(ValueError, match=f"^{re.escape(text)}$"):
        EventDataset.from_events([recording], [0], 1, 4, num_classes=1)
